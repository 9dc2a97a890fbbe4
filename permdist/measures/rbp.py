"""Rank-biased precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from permdist import _check
from permdist._check import finite
from permdist._kernels import kernel
from permdist.measures.base import BinaryMeasure, Positional, count_above

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements


@dataclass(frozen=True, repr=False)
class RBP(BinaryMeasure):
    """Rank-biased precision, for a reader who goes on to the next item with probability p.

    ``RBP = (1 - p) sum_r p^(r - 1) [the item at rank r is relevant]``; even the best order of
    finitely many items is below 1.

    Parameters
    ----------
    p : float
        The persistence, between 0 and 1: 0.5 looks at two items on average, 0.95 at twenty.
    k : int, optional
        Only the first k positions count.

    References
    ----------
    Moffat and Zobel: Rank-biased precision for measurement of retrieval effectiveness (2008).

    Examples
    --------
    >>> float(RBP(p=0.5)([0, 1, 2], labels=[1, 0, 1]))  # 0.5 (1 + 0.25)
    0.625
    """

    p: float = 0.8
    k: int | None = None

    aliases = ("rbp",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "p", persistence(self.p))

    def weights(self, n: int) -> FloatArray:
        """Return the weight of positions 0 to n-1, which is 0 from the cut-off on."""
        position = np.arange(n)
        return np.where(position < self.cut_off, (1.0 - self.p) * self.p**position, 0.0)

    def _values(self, placed: Placements) -> FloatArray:
        weights = self.weights(int(placed.length.max(initial=0)))
        return _sum_weights(placed.ptr, placed.start, placed.size, weights)

    def step(self, labels: IntArray, _totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return the weight of the position for a good item; see `Measure.step`."""
        _, _, position = count_above(above, labels)
        inside = (labels[level] > 0) & (position < self.cut_off)
        return inside * (1.0 - self.p) * self.p**position

    def positional(self, labels: ArrayLike) -> Positional | None:
        """Additive for all labels; see `Measure.positional`."""
        good = _check.grades("labels", labels) > 0
        if not good.any():
            return None
        return Positional(good.astype(np.float64), self.weights(len(good)), 0.0)


def persistence(value: float) -> float:
    """Check a persistence: a number between 0 and 1, both excluded."""
    p = float(finite("p", value, ndim=0))
    if not 0.0 < p < 1.0:
        raise ValueError(f"p: expected a number between 0 and 1, got {p}")
    return p


@kernel
def _sum_weights(ptr: IntArray, start: IntArray, size: IntArray, weights: FloatArray) -> FloatArray:
    """Add up the weights of the relevant items' positions; tied ones share their mean."""
    out = np.zeros(len(ptr) - 1)
    for q in range(len(ptr) - 1):
        for entry in range(ptr[q], ptr[q + 1]):
            begin, share = start[entry], size[entry]
            if begin >= len(weights):
                break
            total = 0.0
            for t in range(begin, begin + share):
                total += weights[t]
            out[q] += total / share
    return out
