"""Average precision."""

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
class AP(BinaryMeasure):
    """Average precision: the mean, over the relevant items, of the precision at their positions.

    Labels above 0 are relevant. The mean over queries is MAP.

    Parameters
    ----------
    k : int, optional
        Relevant items below position k add nothing; the mean is still over all of them, as in
        trec_eval's ``map_cut``.

    References
    ----------
    Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, section 1.6.2 (which
    leaves out the division by the number of relevant items).

    Examples
    --------
    >>> round(float(AP()([0, 1, 2], labels=[1, 0, 1])), 4)  # (1/1 + 2/3) / 2
    0.8333
    """

    k: int | None = None

    aliases = ("ap", "map")

    def _values(self, placed: Placements) -> FloatArray:
        return _ap(*placed, self.cut_off)

    def step(self, labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return the precision at the next position, if the item is good; see `Measure.step`."""
        if labels[level] == 0:
            return np.zeros(np.shape(above)[:-1])
        goods, _, position = count_above(above, labels)
        p = int(np.sum(totals[labels > 0]))
        inside = position < self.cut_off
        return inside * (goods + 1) / ((position + 1) * p)


@kernel
def _ap(
    ptr: IntArray, length: IntArray, start: IntArray, size: IntArray, _grade: IntArray, cut: int
) -> FloatArray:
    """Average precision of every query, in expectation over ties.

    In a tie of g items with r good ones, a position holds a good item with probability r / g, and
    then (r - 1) / (g - 1) of the tied items above it are good on average.
    """
    out = np.empty(len(length))
    for q in range(len(length)):
        first, p = ptr[q], ptr[q + 1] - ptr[q]
        total = 0.0
        k = 0
        while k < p:
            n, g = start[first + k], size[first + k]
            if g == 1:
                if n < cut:
                    total += (k + 1.0) / (n + 1.0)
                k += 1
                continue
            r = 1
            while k + r < p and start[first + k + r] == n:
                r += 1
            among = (r - 1.0) / (g - 1.0)
            for t in range(min(g, cut - n)):
                total += r / g * (k + 1.0 + t * among) / (n + t + 1.0)
            k += r
        out[q] = total / p
    return out
