"""A space: the rankings that exchange one good document of the best ranking with one bad one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from permdist.models.spaces import Space, Sums, register_space
from permdist.models.spaces.restart import exponents


class ExchangeSums(Sums):
    """Sums over the best ranking and all that exchange two documents of it, listed."""

    def __init__(self, batch, measure, weight):
        super().__init__(batch, measure)
        self.lists = []
        for q, (a, b) in enumerate(batch.bounds):
            label = batch.labels[a:b]
            best = np.argsort(-label, kind="stable")
            orders = [best]
            for i in range(b - a):
                for j in range(i + 1, b - a):
                    if label[best[i]] != label[best[j]]:
                        other = best.copy()
                        other[[i, j]] = other[[j, i]]
                        orders.append(other)
            slopes = weight * batch.scale[q] * exponents(np.array(orders), label)
            self.lists.append((slopes - slopes[0], measure(np.array(orders), label)))

    def log_sums(self, scores, kappa):
        """Return log-sums and their gradients."""
        values, gradient = np.empty(len(self.batch)), np.empty(len(scores))
        for q, (a, b) in enumerate(self.batch.bounds):
            slopes, gains = self.lists[q]
            logits = slopes @ scores[a:b] + kappa * (1.0 - gains)
            chances = np.exp(logits - logits.max())
            values[q] = logits.max() + np.log(chances.sum())
            gradient[a:b] = chances @ slopes / chances.sum()
        return values, gradient

    def mean_gains(self, scores):
        """Return expected gains and their gradients."""
        values, gradient = np.empty(len(self.batch)), np.empty(len(scores))
        for q, (a, b) in enumerate(self.batch.bounds):
            slopes, gains = self.lists[q]
            logits = slopes @ scores[a:b]
            chances = np.exp(logits - logits.max())
            chances /= chances.sum()
            values[q] = chances @ gains
            gradient[a:b] = (chances * (gains - values[q])) @ slopes
        return values, gradient


@dataclass(frozen=True)
class Exchanges(Space):
    """One exchange away from the best ranking."""

    alias: ClassVar[str] = "exchanges"
    weight: float = 1.0

    def _sums(self, batch, measure, _n_jobs, _rng):
        return ExchangeSums(batch, measure, self.weight)


def register():
    """Let learners find it by its name."""
    register_space(Exchanges)
