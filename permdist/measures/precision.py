"""Precision at k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from permdist import _check
from permdist._check import choice
from permdist.measures.base import MeasureAtK, Positional, count_above
from permdist.measures.recall import found_before

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements


@dataclass(frozen=True, repr=False)
class Precision(MeasureAtK):
    """The share of relevant items among the first k.

    Parameters
    ----------
    k : int
        The number of positions looked at, and the divisor, however few items there are.
    short : {"pad", "zero"}
        A query with fewer than k items: as if filled up with bad items, or 0, as LETOR 3.0's
        script has it.

    Examples
    --------
    >>> float(Precision(2)([0, 1, 2], labels=[1, 0, 1]))
    0.5
    """

    short: str = "pad"

    aliases = ("p", "precision", "prec")

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("short", self.short, ("pad", "zero"))

    def _values(self, placed: Placements) -> FloatArray:
        cuts = np.full(len(placed.length), self.k)
        values = found_before(placed.ptr, placed.start, placed.size, cuts) / self.k
        if self.short == "zero":
            values[placed.length < self.k] = 0.0
        return values

    def _weight(self, n: int) -> float:
        """Return what a good item among the first k of n adds."""
        return 0.0 if self.short == "zero" and n < self.k else 1.0 / self.k

    def step(self, labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return 1/k for a good item among the first k; see `Measure.step`."""
        _, _, position = count_above(above, labels)
        return (labels[level] > 0) * (position < self.k) * self._weight(int(np.sum(totals)))

    def positional(self, labels: ArrayLike) -> Positional | None:
        """Additive for all labels; see `Measure.positional`."""
        label = _check.grades("labels", labels)
        if not label.any():
            return None
        weights = np.where(np.arange(len(label)) < self.k, self._weight(len(label)), 0.0)
        return Positional((label > 0).astype(np.float64), weights, 0.0)
