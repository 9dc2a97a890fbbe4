"""The good-bad pair model without what it is summed over: scores, labels and a tilt."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import LARGEST_SCORE, check_scores, finite, grades, scale_of
from permdist._kernels import kernel
from permdist.distributions.items import Items
from permdist.measures import Measure, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from permdist._typing import FloatArray, IntArray

# A measure is rounded to about 1e-16, and kappa times that is the error of the exponent.
LARGEST_KAPPA = 1e6


class Arranged(NamedTuple):
    """Items by score and by level, the lowest level first.

    Attributes
    ----------
    ranked : array of int, shape (n,)
        The items by score, from the top down; equal scores by item number.
    values : array of int, shape (levels,)
        The different labels, ascending.
    level_of : array of int, shape (n,)
    totals : array of int, shape (levels,)
        The size of each level.
    by_level : array of int, shape (n,)
        The items level after level, inside by score.
    balance : array of int, shape (n,)
        How many items have lower labels, less how many have higher ones: the derivatives, but for
        the scale, of F of the order of the labels.
    reference : float
        F of the order of the scores: the sum of all differences between labels.
    """

    ranked: IntArray
    values: IntArray
    level_of: IntArray
    totals: IntArray
    by_level: IntArray
    balance: IntArray
    reference: float


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
        values = _copied("scores", scores, finite, np.float64)
        label = _copied("labels", labels, grades, np.int64)
        super().__init__(len(values), names)
        if label.shape != values.shape:
            raise ValueError(f"labels: expected {len(values)} labels, got shape {label.shape}")
        least, most, lowest, highest = _extremes(values, label)
        if not (math.isfinite(least) and math.isfinite(most)):
            finite("scores", values)  # says where
        if lowest < 0:
            grades("labels", label)
        if lowest >= highest:
            raise ValueError("labels: expected at least two different labels, got one class")
        # A plain 1.0 needs no more checks; anything else has them.
        self._scale = scale if type(scale) is float and scale == 1.0 else scale_of("scale", scale)
        plain = type(kappa) is float and math.isfinite(kappa)
        self._kappa = kappa if plain else float(finite("kappa", kappa, ndim=0))
        self._tilt = None if tilt is None else parse(tilt)
        if self._tilt is not None and not abs(self._kappa) <= LARGEST_KAPPA:
            raise ValueError(
                f"kappa: expected at most {LARGEST_KAPPA:.0e}, got {kappa}; beyond, the rounding "
                "of the measure shows in the probabilities"
            )
        if self._scale * max(most, -least) > LARGEST_SCORE:
            check_scores(values, 1.0 / self._scale)
        values.flags.writeable = label.flags.writeable = False
        self._scores, self._own_labels = values, label
        self._check_tilt()

    def _check_tilt(self) -> None:
        """Refuse measures that the space has no sums for."""

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
    def _arranged(self) -> Arranged:
        """The items by score and by level."""
        return arrange(self._scores, self._own_labels, self._scale)

    @property
    def _ranked(self) -> IntArray:
        """The items by score, from the top down."""
        return self._arranged.ranked

    @property
    def _levels(self) -> tuple[IntArray, IntArray]:
        """The level of each item, and how many items each level has."""
        return self._arranged.level_of, self._arranged.totals

    @cached_property
    def _gaps(self) -> FloatArray:
        """The scaled differences between neighboring scores, from the top down."""
        ranked = self._scores[self._ranked]
        return self._scale * (ranked[:-1] - ranked[1:])

    @property
    def _reference(self) -> float:
        """F of the order of the scores, the largest there is."""
        return self._arranged.reference

    @cached_property
    def _standard(self) -> FloatArray:
        """Scores times twice the scale, the lowest at 0."""
        return (self._scores - self._scores.min()) / (0.5 / self._scale)

    def _shown(self, *options: str) -> str:
        """Write the model as a call; the options follow the labels."""
        scores = np.array2string(self._scores, precision=4, threshold=8, separator=", ")
        labels = np.array2string(self._own_labels, threshold=8, separator=", ")
        parts = [scores, labels, *options]
        parts += [f"scale={self._scale:g}"] if self._scale != 1.0 else []
        parts += [f"tilt={self._tilt.name!r}, kappa={self._kappa:g}"] if self._tilt else []
        return f"{type(self).__name__}({', '.join(parts)})"


def _copied(name: str, values: ArrayLike, check: Callable[..., Any], dtype: Any) -> NDArray[Any]:
    """Copy a plain array of numbers as it is; check and convert anything else."""
    if type(values) is np.ndarray and values.dtype == dtype and values.ndim == 1:
        return values.copy()
    return np.array(check(name, values) if dtype is np.int64 else check(name, values, ndim=1))


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def _extremes(scores: FloatArray, labels: IntArray) -> tuple[float, float, int, int]:
    """Find the smallest and largest score, infinite or not a number if any is, and label."""
    least, most, lowest, highest = np.inf, -np.inf, 0, -1
    total = 0.0
    for i in range(len(scores)):
        least, most = min(least, scores[i]), max(most, scores[i])
        total += 0.0 * scores[i]  # not a number for an infinite score, or one that is none
        lowest = labels[i] if i == 0 else min(lowest, labels[i])
        highest = max(highest, labels[i])
    return least + total, most + total, lowest, highest


def arrange(scores: FloatArray, labels: IntArray, scale: float) -> Arranged:
    """Sort items by score and group them by label."""
    ranked = np.argsort(-scores, kind="stable")
    by_level = ranked[np.argsort(labels[ranked], kind="stable")]
    return Arranged(*_group(scores, labels, scale, ranked, by_level))


@kernel
def _group(
    scores: FloatArray, labels: IntArray, scale: float, ranked: IntArray, by_level: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray, float]:
    """Return all that `Arranged` has, from the items by score and by level."""
    n = len(scores)
    levels = 1
    for i in range(1, n):
        levels += labels[by_level[i]] != labels[by_level[i - 1]]
    values, first = np.empty(levels, np.int64), np.empty(levels + 1, np.int64)
    level_of, balance = np.empty(n, np.int64), np.empty(n, np.int64)
    values[0], first[0], first[levels] = labels[by_level[0]], 0, n
    level = 0
    for i in range(n):
        item = by_level[i]
        if labels[item] != values[level]:
            level += 1
            values[level], first[level] = labels[item], i
        level_of[item] = level
    totals, place = np.empty(levels, np.int64), np.empty(levels, np.int64)
    for level in range(levels):
        totals[level], place[level] = first[level + 1] - first[level], 0
    for item in range(n):
        balance[item] = first[level_of[item]] + first[level_of[item] + 1] - n
    crossing, reference = 0, 0.0  # pairs of different levels across a gap
    for k in range(n - 1):
        item = ranked[k]
        level = level_of[item]
        crossing += (n - totals[level]) - 2 * (k - place[level])
        place[level] += 1
        reference += scale * (scores[item] - scores[ranked[k + 1]]) * crossing
    return ranked, values, level_of, totals, by_level, balance, reference
