"""Winner takes all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from permdist.measures.base import BinaryMeasure, Positional
from permdist.measures.precision import Precision

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements


class WTA(BinaryMeasure):
    """Winner takes all: 1 if the item at the top is relevant, else 0.

    The same number as `Precision(1)`, under the name that the literature gives it.


    Examples
    --------
    >>> float(WTA()([2, 0, 1], labels=[1, 0, 1]))
    1.0
    """

    aliases = ("wta",)

    def _values(self, placed: Placements) -> FloatArray:
        return Precision(1).values(placed)

    def step(self, labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return 1 for a good item at the top; see `Measure.step`."""
        return Precision(1).step(labels, totals, level, above)

    def positional(self, labels: ArrayLike) -> Positional | None:
        """Additive for all labels; see `Measure.positional`."""
        return Precision(1).positional(labels)
