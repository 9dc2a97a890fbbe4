"""R-precision: precision where as many items are looked at as are relevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist import _check
from permdist._check import finite
from permdist.measures.base import LARGEST_CUT, BinaryMeasure, Positional, count_above
from permdist.measures.recall import found_before

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements

LARGEST_MULTIPLE = 1000.0


@dataclass(frozen=True, repr=False)
class RPrecision(BinaryMeasure):
    """Precision at the number R of relevant items, or at a multiple of it.

    Parameters
    ----------
    multiple : float
        How many items are looked at, as a multiple of R: ``floor(multiple * R + 0.9)``, as in
        trec_eval's ``Rprec_mult``.

    Examples
    --------
    >>> float(RPrecision()([0, 1, 2], labels=[1, 0, 1]))
    0.5
    """

    multiple: float = 1.0

    aliases = ("rprec", "r_precision")

    def __post_init__(self) -> None:
        super().__post_init__()
        multiple = float(finite("multiple", self.multiple, ndim=0))
        if not 0.0 < multiple <= LARGEST_MULTIPLE:
            raise ValueError(
                f"multiple: expected more than 0 and at most {LARGEST_MULTIPLE:g}, got {multiple}"
            )
        object.__setattr__(self, "multiple", multiple)

    def _cuts(self, relevant: Any) -> IntArray:
        """Return how many items are looked at for so many relevant ones."""
        cuts = np.floor(self.multiple * np.asarray(relevant) + 0.9)
        return np.minimum(cuts, LARGEST_CUT).astype(np.int64)

    def _values(self, placed: Placements) -> FloatArray:
        cuts = self._cuts(np.diff(placed.ptr))
        found = found_before(placed.ptr, placed.start, placed.size, cuts)
        return found / np.maximum(cuts, 1)

    def step(self, labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return one over the number looked at for a good item among them; see `Measure.step`."""
        _, _, position = count_above(above, labels)
        cut = int(self._cuts(np.sum(totals[labels > 0])))
        return (labels[level] > 0) * (position < cut) / max(cut, 1)

    def positional(self, labels: ArrayLike) -> Positional | None:
        """Additive for all labels; see `Measure.positional`."""
        good = _check.grades("labels", labels) > 0
        if not good.any():
            return None
        cut = int(self._cuts(np.sum(good)))
        weights = np.where(np.arange(len(good)) < cut, 1.0 / max(cut, 1), 0.0)
        return Positional(good.astype(np.float64), weights, 0.0)
