"""Winner takes all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from permdist._typing import FloatArray, IntArray
from permdist.measures.base import Measure, Positional
from permdist.measures.placements import Placements
from permdist.measures.precision import Precision


@dataclass(frozen=True, kw_only=True, repr=False)
class WTA(Measure):
    """Winner takes all: 1 if the item at the top is relevant, else 0.

    The same number as `Precision(1)`, under the name that the literature gives it.

    Parameters
    ----------
    empty, ties
        See `Measure`.

    Examples
    --------
    >>> float(WTA()([2, 0, 1], labels=[1, 0, 1]))
    1.0
    """

    aliases: ClassVar[tuple[str, ...]] = ("wta",)
    partial: ClassVar[bool] = True
    binary: ClassVar[bool] = True

    def _values(self, placed: Placements) -> FloatArray:
        return Precision(1)._values(placed)

    def step(self, grades: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Give 1 for a good item at the top; see `Measure.step`."""
        return Precision(1).step(grades, totals, level, above)

    def positional(self, labels: ArrayLike) -> Positional | None:
        """Additive for all labels; see `Measure.positional`."""
        return Precision(1).positional(labels)
