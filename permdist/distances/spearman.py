"""Spearman's distance: the sum of the squares of how far each item moves."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist.distances.base import Sums
from permdist.distances.displacement import Displacement
from permdist.sums.shape import fits

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


class Spearman(Displacement):
    """Spearman's distance; sums go over all subsets of up to about 21 items.

    References
    ----------
    Diaconis: Group representations in probability and statistics (1988).
    """

    name = "spearman"
    limits: ClassVar = {"distance_distribution": 14}
    also_exact = ", and those with buckets of up to 21 items"

    @classmethod
    def cost(cls, moves: Any, n: int) -> Any:
        """Return the squares of displacements."""
        del n
        return moves * moves

    @classmethod
    def largest(cls, n: int) -> float:
        """Return the distance from the reverse, n (n^2 - 1) / 3."""
        return n * (n * n - 1) / 3

    def can(self, answer: str) -> bool:
        """Whether an answer is exact for so many items; most are if all orders are as probable."""
        uniform = self.theta == 0.0 and answer in ("log_partition", "sample", "rank_marginals")
        return uniform or super().can(answer)

    @property
    def _is_beyond(self) -> bool:
        return self.theta == 0.0 and not fits(self.n)

    @property
    def log_partition(self) -> float:
        """The log of the sum of all weights."""
        return self.sums.log_total if self._is_beyond else super().log_partition

    @cached_property
    def sums(self) -> Sums:
        """The log of the sum of all weights, and mean and variance of the distance."""
        if not self._is_beyond:
            return super().sums
        n = float(self.n)
        variance = n * n * (n - 1.0) * (n + 1.0) ** 2 / 36.0
        return Sums(math.lgamma(n + 1.0), n * (n * n - 1.0) / 6.0, variance)

    def sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders."""
        if not self._is_beyond:
            return super().sample(size, rng)
        return rng.permuted(np.tile(np.arange(self.n), (size, 1)), axis=1)

    def rank_marginals(self) -> FloatArray:
        """Return rank marginals."""
        if not self._is_beyond:
            return super().rank_marginals()
        return np.full((self.n, self.n), 1.0 / self.n)

    def distribution(self) -> FloatArray:
        """Return the probability of each distance; odd ones do not occur."""
        self.check_can("distance_distribution")
        halves = _half_distances(self.n, float(self.theta))
        result = np.zeros(2 * len(halves) - 1)
        result[::2] = halves / halves.sum()
        return result


@kernel
def _half_distances(n: int, theta: float) -> FloatArray:
    """Distribution of half the distance, up to a factor: subsets of items at the first places.

    Odd squares come in pairs: a displacement of x counts as (x^2 + x) / 2, signed, whose linear
    part adds up to 0 in the end and is never negative on the way.
    """
    length = n * (n * n - 1) // 6 + 1
    table = np.zeros((1 << n, length))
    table[0, 0] = 1.0
    for state in range(1 << n):
        position, rest = 0, state
        while rest:
            rest &= rest - 1
            position += 1
        for item in range(n):
            if state >> item & 1:
                continue
            move = item - position
            step = (move * move + move) // 2
            weight = np.exp(-theta * (move * move))
            to = state | 1 << item
            for s in range(length - step):
                if table[state, s] > 0.0:
                    table[to, s + step] += weight * table[state, s]
    return table[(1 << n) - 1].copy()
