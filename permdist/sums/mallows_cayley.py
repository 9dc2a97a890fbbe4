"""Cayley's distance: the engine of Mallows' model and the generalized one.

The distance is n less the number of cycles. `X_j` is 0 if item j is the last of its cycle in the
order of the center, and 1 otherwise; it has weight ``exp(-thetas[j] X_j)``, independently of all
others, and the sum of all `X_j` is the distance.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from permdist._kernels import kernel
from permdist.sums.mallows import DistanceSums, Moments, exchangeable, refuse_distances

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

MOST_LISTED = 20_000  # items, for the distribution of the distance


class CayleySums(DistanceSums):
    """Sums over all orders with a parameter per item but the last.

    Parameters
    ----------
    thetas : array of float, shape (n - 1,)
        Non-negative.
    """

    def __init__(self, thetas: FloatArray) -> None:
        self.n = len(thetas) + 1
        self.thetas = thetas
        # Then the weight of an order depends on the lengths of its cycles only.
        self.has_marginals = self.has_pairwise = bool((thetas == thetas[:1]).all())
        # Item j is the last of its cycle, or one of n - 1 - j later ones follows it.
        self._odds = np.log(np.arange(self.n - 1, 0, -1)) - thetas

    @property
    def log_partition(self) -> float:
        """The log of the product of ``1 + (n - 1 - j) exp(-theta)``."""
        return float(self.stage_sums.sum())

    @property
    def stage_sums(self) -> FloatArray:
        """The log of the sum of the weights of each `X`, shape (n - 1,)."""
        return np.logaddexp(0.0, self._odds)

    @cached_property
    def moments(self) -> Moments:
        """Sums over independent variables that are 0 or 1."""
        chances = expit(self._odds)
        energy = np.where(chances > 0.0, np.minimum(self.thetas, 1e9) * chances, 0.0)
        variance = (chances * expit(-self._odds)).sum()
        return Moments(float(chances.sum()), float(variance), float(energy.sum()))

    @property
    def stage_means(self) -> FloatArray:
        """The mean of each `X`, shape (n - 1,)."""
        return expit(self._odds)

    def distances(self) -> FloatArray:
        """Return the probability of each distance, a Poisson-binomial distribution."""
        refuse_distances(self.n, MOST_LISTED)
        return _poisson_binomial(expit(self._odds), expit(-self._odds))

    def rank_marginals(self) -> FloatArray | None:
        """Return rank marginals: an item stays, or goes to any other place."""
        n = self.n
        if not self.has_marginals:
            return None
        if n == 1:
            return np.ones((1, 1))
        result = np.full((n, n), expit(self._odds[0]) / (n - 1))
        np.fill_diagonal(result, expit(-self._odds[0]))
        return result

    def pairwise(self) -> FloatArray | None:
        """Return pairwise chances from where two items can go together."""
        n = self.n
        if not self.has_pairwise:
            return None
        if n == 1:
            return np.zeros((1, 1))
        both = expit(-self._odds[0]) * (expit(-self._odds[1]) if n > 2 else 1.0)
        ratio = np.exp(-self.thetas[0])
        once, twice = ratio * both, ratio * ratio * both
        return exchangeable(n, both, once, once, twice, twice)

    def draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders: insert one item after the other into a cycle, or let it be one."""
        return _draw(expit(self._odds), rng.random((size, self.n - 1)))

    def stage_total(self, orders: IntArray) -> FloatArray:
        """Add up thetas times `X` over the items of each order, orders (rankings, n)."""
        return _stage_total(orders, self.thetas)


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def _poisson_binomial(chances: FloatArray, others: FloatArray) -> FloatArray:
    """Return the distribution of a sum of variables that are 1 with the given chances, or 0."""
    result = np.zeros(len(chances) + 1)
    result[0] = 1.0
    for t in range(len(chances)):
        for d in range(t + 1, 0, -1):
            result[d] = result[d] * others[t] + result[d - 1] * chances[t]
        result[0] *= others[t]
    return result


@kernel
def _draw(chances: FloatArray, uniforms: FloatArray) -> IntArray:
    """Insert items from the last to the first, chances (n - 1,), uniforms (draws, n - 1)."""
    draws, n = len(uniforms), len(chances) + 1
    orders = np.empty((draws, n), np.int64)
    for row in range(draws):
        for k in range(n):
            orders[row, k] = k
        for j in range(n - 2, -1, -1):
            u = uniforms[row, j]
            if u < chances[j]:
                later = n - 1 - j
                at = j + 1 + min(int(u / chances[j] * later), later - 1)
                orders[row, j], orders[row, at] = orders[row, at], orders[row, j]
    return orders


@kernel
def _stage_total(orders: IntArray, thetas: FloatArray) -> FloatArray:
    """Add up the parameters of all items that are not the last of their cycles."""
    rankings, n = orders.shape
    out = np.zeros(rankings)
    seen = np.empty(n, np.bool_)
    for row in range(rankings):
        seen[:] = False
        # From the last item down: the first one met on a cycle is its last.
        for j in range(n - 1, -1, -1):
            if seen[j]:
                out[row] += thetas[j]
                continue
            at = j
            while not seen[at]:
                seen[at] = True
                at = orders[row, at]
    return out
