"""Binary G, a measure between AP and NDCG that trec_eval has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.measures.base import BinaryMeasure, count_above

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements


class BinG(BinaryMeasure):
    """The mean over relevant items of ``1 / log2(2 + bad items above)``: trec_eval's ``binG``.

    Examples
    --------
    >>> round(float(BinG()([0, 1, 2], labels=[1, 0, 1])), 4)  # (1 + 1 / log2(3)) / 2
    0.8155
    """

    aliases = ("bing",)

    def _values(self, placed: Placements) -> FloatArray:
        return _bing(placed.ptr, placed.length, placed.start, placed.size)

    def step(self, labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return the discount by bad items above, for a good item; see `Measure.step`."""
        _, bads, _ = count_above(above, labels)
        return (labels[level] > 0) / np.log2(2.0 + bads) / np.sum(totals[labels > 0])


@kernel
def _bing(ptr: IntArray, length: IntArray, start: IntArray, size: IntArray) -> FloatArray:
    """Average the discounts; in a tie of m bad items, 0 to m of them are equally likely above."""
    out = np.zeros(len(length))
    for q in range(len(length)):
        first, p = ptr[q], ptr[q + 1] - ptr[q]
        k = 0
        while k < p and start[first + k] < length[q]:
            n, g = start[first + k], size[first + k]
            r = 1
            while g > 1 and k + r < p and start[first + k + r] == n:
                r += 1
            total = 0.0
            for bads in range(n - k, n - k + g - r + 1):
                total += 1.0 / np.log2(2.0 + bads)
            out[q] += r * total / (g - r + 1)
            k += r
        out[q] /= p
    return out
