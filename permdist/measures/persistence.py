"""Top-k persistence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.measures.base import Measure
from permdist.rankings.sorting import sort

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements


@dataclass(frozen=True, repr=False)
class TopKPersistence(Measure):
    """The share of the true first k items that a ranking puts among its first k.

    Labels say the true order, the higher the better. Where labels are tied across the k-th place,
    any of the tied items may fill the places that are left, so that the best orders have value 1.

    Parameters
    ----------
    k : int
        Queries with fewer items use their length instead.

    References
    ----------
    Wang, Mao, Zeng, Xia: Listwise Approaches Based on Feature's Ranking Discovery, section 5.5.

    Examples
    --------
    >>> float(TopKPersistence(2)([0, 3, 1, 2], labels=[4, 3, 2, 1]))
    0.5
    """

    k: int = 10

    aliases = ("persistence", "topk")

    def _values(self, placed: Placements) -> FloatArray:
        return _persistence(*placed, self.k)

    def step(self, _labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return 1/k for an item of the true first k inside the first k; see `Measure.step`."""
        counts = np.asarray(above, dtype=np.int64)
        k = min(self.k, int(np.sum(totals)))
        better = int(np.sum(totals[level + 1 :]))
        # Of this grade, so many belong to the true first k: all, some or none.
        places = min(int(totals[level]), max(0, k - better))
        inside = counts.sum(axis=-1) < k
        return inside * (counts[..., level] < places) / k


@kernel
def _persistence(
    ptr: IntArray, length: IntArray, start: IntArray, size: IntArray, grade: IntArray, k: int
) -> FloatArray:
    """Overlap of the first k by rank and by grade; the tie at the k-th rank in expectation.

    Items above the k-th best grade must be found; of those at that grade, as many as places are
    left. In a tie that straddles rank k the number of the latter is hypergeometric.
    """
    out = np.zeros(len(length))
    for q in range(len(length)):
        first, p = ptr[q], ptr[q + 1] - ptr[q]
        top = min(k, length[q])
        ordered = grade[first : first + p].copy()
        sort(ordered)
        border = ordered[p - top] if p >= top else 0
        places = top
        for entry in range(first, first + p):
            places -= grade[entry] > border
        found = 0.0  # above the border
        at_border = 0  # at it, and certainly inside
        tied_border, tie_start, tie_size = 0, 0, 1
        for entry in range(first, first + p):
            begin, share = start[entry], size[entry]
            if begin >= top:
                break
            if begin + share > top:
                tie_start, tie_size = begin, share
            inside = min(top - begin, share) / share
            if grade[entry] > border:
                found += inside
            elif grade[entry] == border:
                if inside == 1.0:
                    at_border += 1
                else:
                    tied_border += 1
        if border == 0:
            # Bad items fill the places that are left, and there are always enough of them.
            out[q] = (found + places) / top
            continue
        if tied_border == 0:
            out[q] = (found + min(places, at_border)) / top
            continue
        draws = top - tie_start
        low = max(0, draws - (tie_size - tied_border))
        chance = 1.0  # relative to that of `low`, normalized at the end
        total, mean = 0.0, 0.0
        for hits in range(low, min(draws, tied_border) + 1):
            total += chance
            mean += chance * min(places, at_border + hits)
            factor = (tied_border - hits) * float(draws - hits)
            chance *= factor / ((hits + 1.0) * (tie_size - tied_border - draws + hits + 1.0))
            if chance > 1e200:  # only ratios count
                total, mean, chance = total / chance, mean / chance, 1.0
        out[q] = (found + mean / total) / top
    return out
