"""Reciprocal rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.measures.base import BinaryMeasure, count_above

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements


@dataclass(frozen=True, repr=False)
class RR(BinaryMeasure):
    """One over the rank of the first relevant item. The mean over queries is MRR.

    Parameters
    ----------
    k : int, optional
        0 if there is no relevant item among the first k.

    Examples
    --------
    >>> float(RR()([1, 0, 2], labels=[1, 0, 1]))
    0.5
    """

    k: int | None = None

    aliases = ("rr", "mrr")

    def _values(self, placed: Placements) -> FloatArray:
        return _rr(*placed, self.cut_off)

    def step(self, labels: IntArray, _totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return 1/rank for the first good item, 0 for all others; see `Measure.step`."""
        goods, _, position = count_above(above, labels)
        inside = position < self.cut_off
        return (labels[level] > 0) * (goods == 0) * inside / (position + 1)


@kernel
def _rr(
    ptr: IntArray, length: IntArray, start: IntArray, size: IntArray, _grade: IntArray, cut: int
) -> FloatArray:
    """Reciprocal rank of the first relevant item, in expectation over the tie it is in.

    With r good items in a tie of g, the first of them is at the t-th place (from 0) with the
    chance that t bad ones come first, built up factor by factor.
    """
    out = np.zeros(len(length))
    for q in range(len(length)):
        first, p = ptr[q], ptr[q + 1] - ptr[q]
        if p == 0:
            continue
        n, g = start[first], size[first]
        r = 1
        while r < p and start[first + r] == n:
            r += 1
        chance = r / g
        for t in range(min(g - r + 1, cut - n)):
            out[q] += chance / (n + t + 1.0)
            if t < g - r:
                chance *= (g - r - t) / (g - t - 1.0)
    return out
