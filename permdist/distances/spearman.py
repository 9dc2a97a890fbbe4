"""Spearman's distance: the sum of the squares of how far each item moves."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist._typing import FloatArray
from permdist.distances.base import register
from permdist.distances.displacement import Displacement


@register
class Spearman(Displacement):
    """Spearman's distance; sums go over all subsets of up to about 21 items.

    References
    ----------
    Diaconis: Group representations in probability and statistics (1988).
    """

    name = "spearman"
    limits: ClassVar = {"distribution": 14}
    also_exact = ", and those with buckets of up to 21 items"

    @classmethod
    def cost(cls, moves: Any, n: int) -> Any:
        """Return the squares of displacements."""
        return moves * moves

    @classmethod
    def largest(cls, n: int) -> float:
        """Return the distance from the reverse, n (n^2 - 1) / 3."""
        return n * (n * n - 1) / 3

    def distribution(self) -> FloatArray:
        """Return the probability of each distance; odd ones do not occur."""
        self.check_can("distribution")
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
