"""Precision, recall and their relatives: relevant items among the first positions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist import _check
from permdist._check import choice, finite
from permdist._kernels import kernel
from permdist.measures.base import (
    LARGEST_CUT,
    BinaryMeasure,
    MeasureAtK,
    Positional,
    count_above,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements

LARGEST_MULTIPLE = 1000.0


class _AmongFirst(BinaryMeasure):
    """The number of relevant items among the first positions, over a divisor."""

    @abstractmethod
    def _first(self, relevant: Any, length: Any) -> tuple[Any, Any]:
        """Return how many positions count and the divisor, by numbers of relevant and all items."""

    def _values(self, placed: Placements) -> FloatArray:
        relevant = np.diff(placed.ptr)
        cuts, divisors = self._first(relevant, placed.length)
        cuts = cuts + np.zeros_like(relevant)
        return found_before(placed.ptr, placed.start, placed.size, cuts) / np.maximum(divisors, 1)

    def step(self, labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return one over the divisor for a good item among the first; see `Measure.step`."""
        _, _, position = count_above(above, labels)
        cut, divisor = self._first(np.sum(totals[labels > 0]), np.sum(totals))
        return (labels[level] > 0) * (position < cut) / np.maximum(divisor, 1)

    def positional(self, labels: ArrayLike) -> Positional | None:
        """Additive for all labels; see `Measure.positional`."""
        good = _check.grades("labels", labels) > 0
        if not good.any():
            return None
        cut, divisor = self._first(np.sum(good), len(good))
        weights = np.where(np.arange(len(good)) < cut, 1.0 / np.maximum(divisor, 1), 0.0)
        return Positional(good.astype(np.float64), weights, 0.0)


@dataclass(frozen=True, repr=False)
class Precision(_AmongFirst, MeasureAtK):
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

    def _first(self, _relevant: Any, length: Any) -> tuple[Any, Any]:
        return (np.where(length < self.k, 0, self.k) if self.short == "zero" else self.k), self.k


class WTA(_AmongFirst):
    """Winner takes all: 1 if the item at the top is relevant, else 0.

    It equals `Precision(1)`; this is its name in the literature.

    Examples
    --------
    >>> float(WTA()([2, 0, 1], labels=[1, 0, 1]))
    1.0
    """

    aliases = ("wta",)

    def _first(self, _relevant: Any, _length: Any) -> tuple[Any, Any]:
        return 1, 1


class Recall(_AmongFirst, MeasureAtK):
    """The share of the relevant items that stand among the first k.

    Examples
    --------
    >>> float(Recall(2)([0, 1, 2], labels=[1, 0, 1]))
    0.5
    """

    aliases = ("recall",)

    def _first(self, relevant: Any, _length: Any) -> tuple[Any, Any]:
        return self.k, relevant


class RelativePrecision(Recall):
    """Precision at k over the best that any order can have: trec_eval's ``relative_P``.

    It equals precision while k is below the number of relevant items, and recall beyond.

    Examples
    --------
    >>> float(RelativePrecision(5)([0, 1, 2], labels=[1, 0, 1]))
    1.0
    """

    aliases = ("relative_p",)

    def _first(self, relevant: Any, _length: Any) -> tuple[Any, Any]:
        return self.k, np.minimum(relevant, self.k)


@dataclass(frozen=True, repr=False)
class RPrecision(_AmongFirst):
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

    def _first(self, relevant: Any, _length: Any) -> tuple[Any, Any]:
        cuts = np.floor(self.multiple * np.asarray(relevant) + 0.9)
        cuts = np.minimum(cuts, LARGEST_CUT).astype(np.int64)
        return cuts, cuts


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
def found_before(ptr: IntArray, start: IntArray, size: IntArray, cuts: IntArray) -> FloatArray:
    """Count the relevant items before a cut-off of each query, tied ones by their share."""
    out = np.zeros(len(cuts))
    for q in range(len(cuts)):
        for entry in range(ptr[q], ptr[q + 1]):
            if start[entry] >= cuts[q]:
                break
            out[q] += (min(cuts[q], start[entry] + size[entry]) - start[entry]) / size[entry]
    return out


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
