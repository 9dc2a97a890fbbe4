"""Success at k: whether anything relevant is among the first k."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.measures.base import MeasureAtK, count_above

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements


class Success(MeasureAtK):
    """1 if there is a relevant item among the first k, else 0.

    Examples
    --------
    >>> float(Success(2)([1, 0, 2], labels=[1, 0, 1]))
    1.0
    """

    aliases = ("success", "hit")

    def _values(self, placed: Placements) -> FloatArray:
        return _success(placed.ptr, placed.start, placed.size, self.k)

    def step(self, labels: IntArray, _totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return 1 for the first good item, if among the first k; see `Measure.step`."""
        goods, _, position = count_above(above, labels)
        return (labels[level] > 0) * (goods == 0) * (position < self.k) * 1.0


@kernel
def _success(ptr: IntArray, start: IntArray, size: IntArray, k: int) -> FloatArray:
    """Return whether the first relevant item is before k, as a probability where it is tied.

    With r good items in a tie of g, all of the first t places are bad with the chance
    ``prod (g - r - i) / (g - i)`` over i < t.
    """
    out = np.zeros(len(ptr) - 1)
    for q in range(len(ptr) - 1):
        first, p = ptr[q], ptr[q + 1] - ptr[q]
        if p == 0 or start[first] >= k:
            continue
        n, g = start[first], size[first]
        if n + g <= k:
            out[q] = 1.0
            continue
        r = 1
        while r < p and start[first + r] == n:
            r += 1
        nothing = 1.0
        for i in range(k - n):
            nothing *= max(0, g - r - i) / (g - i)
        out[q] = 1.0 - nothing
    return out
