"""The good-bad pair model without what it is summed over: scores, labels and a tilt."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from permdist._check import finite, grades, scale_of
from permdist._kernels import kernel
from permdist.distributions.gaps import narrowed
from permdist.distributions.items import Items
from permdist.measures import Measure, parse
from permdist.rankings import order_by_scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray

# A measure is rounded to about 1e-16, and kappa times that is the error of the exponent.
LARGEST_KAPPA = 1e6
LARGEST_EXPONENT = 1e300
# Twice the scaled gap between scores that no interleaving crosses: exp(-100) of them do.
IMPASSABLE = 100.0


class PairModel(Items):
    """Scores, labels and tilt of ``F(y) = scale * sum_gb y_gb (s_g - s_b)``.

    Parameters
    ----------
    scores : array of float, shape (n,)
    labels : array of int, shape (n,)
    scale : float
    tilt : Measure or str, optional
    kappa : float
    names : sequence of str, optional
    """

    def __init__(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        scale: float = 1.0,
        tilt: Measure | str | None = None,
        kappa: float = 1.0,
        names: Sequence[str] | None = None,
    ) -> None:
        values, label = finite("scores", scores, ndim=1).copy(), grades("labels", labels).copy()
        super().__init__(len(values), names)
        if label.shape != values.shape:
            raise ValueError(f"labels: expected {len(values)} labels, got shape {label.shape}")
        if not label.size or label.min() == label.max():
            raise ValueError("labels: expected at least two different labels, got one class")
        self._scale, self._kappa = scale_of("scale", scale), float(finite("kappa", kappa, ndim=0))
        self._tilt = None if tilt is None else parse(tilt)
        if self._tilt is not None and not abs(self._kappa) <= LARGEST_KAPPA:
            raise ValueError(
                f"kappa: expected at most {LARGEST_KAPPA:.0e}, got {kappa}; beyond, the rounding "
                "of the measure shows in the probabilities"
            )
        largest = self._scale * (float(values.max()) - float(values.min())) * len(values) ** 2
        if not largest < LARGEST_EXPONENT:
            raise ValueError(
                f"scores, scale: exponents up to {largest:.1e} leave the range of floating-point "
                f"numbers; the limit is {LARGEST_EXPONENT:.0e}"
            )
        values.flags.writeable = label.flags.writeable = False
        self._scores, self._own_labels = values, label

    @property
    def scores(self) -> FloatArray:
        """The items' scores."""
        return self._scores

    @property
    def labels(self) -> IntArray:
        """The items' labels."""
        return self._own_labels

    @property
    def scale(self) -> float:
        """The factor of the score differences."""
        return self._scale

    @property
    def tilt(self) -> Measure | None:
        """The measure whose loss is added to the exponent."""
        return self._tilt

    @property
    def kappa(self) -> float:
        """The weight of the tilt."""
        return self._kappa

    @cached_property
    def _ranked(self) -> IntArray:
        """The items by score, from the top down."""
        return order_by_scores(self._scores)

    @cached_property
    def _gaps(self) -> FloatArray:
        """The scaled differences between neighboring scores, from the top down."""
        return -self._scale * np.diff(self._scores[self._ranked])

    @cached_property
    def _grouped(self) -> tuple[IntArray, IntArray, IntArray]:
        """The different labels, ascending, the level of each item, and the size of each level."""
        return np.unique(self._own_labels, return_inverse=True, return_counts=True)

    @property
    def _levels(self) -> tuple[IntArray, IntArray]:
        """The level of each item, and how many items each level has."""
        return self._grouped[1:]

    @cached_property
    def _reference(self) -> float:
        """F of the order of the scores: the sum of all differences between labels."""
        return self._sum_gaps(self._gaps)

    def _sum_gaps(self, gaps: FloatArray) -> float:
        """Sum the gaps below each item of the ranking by score, times the pairs across them."""
        return float(_signed_gaps(self._ranked, *self._levels, gaps))

    @cached_property
    def _narrowed(self) -> FloatArray:
        """Scores times twice the scale, without what makes no difference between orders.

        A gap that outweighs the number of orders and the whole range of the tilt separates the
        items above it from those below, however wide it is.
        """
        reach = 0.0 if self._tilt is None else abs(self._kappa) * float(np.ptp(self._tilt.range))
        return narrowed(self._scores, 0.5 / self._scale, IMPASSABLE + reach)

    def _shown(self, *options: str) -> str:
        """Write the model as a call; the options follow the labels."""
        scores = np.array2string(self._scores, precision=4, threshold=8, separator=", ")
        labels = np.array2string(self._own_labels, threshold=8, separator=", ")
        parts = [scores, labels, *options]
        parts += [f"scale={self._scale:g}"] if self._scale != 1.0 else []
        parts += [f"tilt={self._tilt.name!r}, kappa={self._kappa:g}"] if self._tilt else []
        return f"{type(self).__name__}({', '.join(parts)})"


@kernel
def _signed_gaps(ranked: IntArray, level_of: IntArray, totals: IntArray, gaps: FloatArray) -> float:
    """Sum gaps (n - 1,) times the pairs of different levels across them; ranked (n,) by score."""
    n = len(ranked)
    placed = np.zeros(len(totals), np.int64)
    crossing, value = 0, 0.0
    for k in range(n - 1):
        level = level_of[ranked[k]]
        crossing += (n - totals[level]) - 2 * (k - placed[level])
        placed[level] += 1
        value += gaps[k] * crossing
    return value
