"""All sign vectors of the good-bad pairs: everything is in closed form, for AUC."""

from __future__ import annotations

import numpy as np

from permdist._check import FloatArray
from permdist.distributions.pairs import pair_sums
from permdist.measures import AUC, Measure
from permdist.models.spaces.base import Batch, Space, best_slopes


class Pairs(Space):
    """Sign vectors, transitive or not; the gain must be AUC, for which the sums factorise."""

    def __init__(self, batch: Batch, measure: Measure, threads: int | None = None) -> None:
        super().__init__(batch, measure, threads)
        totals = [np.unique(batch.labels[a:b], return_counts=True)[1] for a, b in batch.bounds]
        self._pairs = np.array([(t.sum() ** 2 - (t**2).sum()) / 2.0 for t in totals])
        # F of the best vector is linear in the scores: labels below less labels above.
        self._best = np.concatenate(
            [best_slopes(batch.labels[a:b]) for a, b in batch.bounds] or [np.zeros(0)]
        )
        self._best *= batch.scale[batch.query_of]

    def log_sums(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:
        """Sum up ``log(1 + exp(-2 scale (s_g - s_b) + kappa / pairs))`` over pairs."""
        values, gradient = np.empty(len(self.batch)), np.empty(len(scores))
        if kappa != 0.0:
            self._need_auc()

        def work(first: int, last: int) -> None:
            for q in range(first, last):
                a, b = self.batch.ptr[q], self.batch.ptr[q + 1]
                tilt = kappa / self._pairs[q]
                sums = pair_sums(
                    scores[a:b], self.batch.labels[a:b], float(self.batch.scale[q]), tilt
                )
                values[q] = sums.log_partition - self._best[a:b] @ scores[a:b]
                gradient[a:b] = sums.gradient - self._best[a:b]

        self._spread(work, self._pairs)
        return values, gradient

    def mean_gains(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Average the chances of all pairs to be in the right order."""
        self._need_auc()
        values, gradient = np.empty(len(self.batch)), np.empty(len(scores))

        def work(first: int, last: int) -> None:
            for q in range(first, last):
                a, b = self.batch.ptr[q], self.batch.ptr[q + 1]
                sums = pair_sums(
                    scores[a:b], self.batch.labels[a:b], float(self.batch.scale[q]), 0.0
                )
                values[q] = sums.satisfied / self._pairs[q]
                gradient[a:b] = sums.satisfied_gradient / self._pairs[q]

        self._spread(work, self._pairs)
        return values, gradient

    def _need_auc(self) -> None:
        if not isinstance(self.measure, AUC):
            raise ValueError(
                f"space: over pairs only AUC factorises, the measure is {self.measure.name!r}; "
                "use space='interleavings', 'lattice' or 'restart'"
            )
