"""Recall at k, and precision relative to the best that is possible at k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist import _check
from permdist._kernels import kernel
from permdist.measures.base import MeasureAtK, Positional, count_above

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements


class Recall(MeasureAtK):
    """The share of the relevant items that stand among the first k.

    Examples
    --------
    >>> float(Recall(2)([0, 1, 2], labels=[1, 0, 1]))
    0.5
    """

    aliases = ("recall",)

    def _divisor(self, relevant: Any) -> Any:
        """Return what the number of relevant items found is divided by."""
        return relevant

    def _values(self, placed: Placements) -> FloatArray:
        relevant = np.diff(placed.ptr)
        found = found_before(placed.ptr, placed.start, placed.size, np.full_like(relevant, self.k))
        return found / np.maximum(self._divisor(relevant), 1)

    def step(self, labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return one over the divisor for a good item among the first k; see `Measure.step`."""
        _, _, position = count_above(above, labels)
        relevant = np.sum(totals[labels > 0])
        return (labels[level] > 0) * (position < self.k) / self._divisor(relevant)

    def positional(self, labels: ArrayLike) -> Positional | None:
        """Additive for all labels; see `Measure.positional`."""
        good = _check.grades("labels", labels) > 0
        if not good.any():
            return None
        weight = 1.0 / self._divisor(np.sum(good))
        weights = np.where(np.arange(len(good)) < self.k, weight, 0.0)
        return Positional(good.astype(np.float64), weights, 0.0)


class RelativePrecision(Recall):
    """Precision at k over the best that any order can have: trec_eval's ``relative_P``.

    It equals precision while k is below the number of relevant items, and recall beyond.

    Examples
    --------
    >>> float(RelativePrecision(5)([0, 1, 2], labels=[1, 0, 1]))
    1.0
    """

    aliases = ("relative_p",)

    def _divisor(self, relevant: Any) -> Any:
        return np.minimum(relevant, self.k)


@kernel
def found_before(ptr: IntArray, start: IntArray, size: IntArray, cuts: IntArray) -> FloatArray:
    """Count the relevant items before a cut-off of each query, tied ones by their share."""
    out = np.zeros(len(cuts))
    for q in range(len(cuts)):
        for entry in range(ptr[q], ptr[q + 1]):
            if start[entry] >= cuts[q]:
                break
            out[q] += (min(cuts[q], start[entry] + size[entry]) - start[entry]) / size[entry]
    return out
