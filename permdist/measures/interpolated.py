"""Interpolated precision at levels of recall, and its average over eleven of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import finite
from permdist._kernels import kernel
from permdist.measures.base import BinaryMeasure

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements

ELEVEN = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


class _Interpolated(BinaryMeasure):
    """A mean of maxima along the ranking: no sum of steps, and no average over ties."""

    additive = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ties == "average":
            raise ValueError(
                f"ties: {self.aliases[0]} has no average over ties, the mean of a maximum; "
                "expected 'index'"
            )

    @abstractmethod
    def _recalls(self) -> FloatArray:
        """Return the levels of recall that are averaged."""

    def _values(self, placed: Placements) -> FloatArray:
        return _interpolate(placed.ptr, placed.start, placed.length, self._recalls())

    def step(self, *_: Any) -> FloatArray:
        """Refuse: a maximum over what comes later is no sum along the ranking."""
        raise ValueError(f"{self.name}: is no sum along the ranking, it has no steps")


@dataclass(frozen=True, repr=False)
class InterpolatedPrecision(_Interpolated):
    """The highest precision at any position where at least so much of recall is reached.

    As in trec_eval up to version 9, "so much" is ``floor(recall * R + 0.9)`` of the R relevant
    items; where they are not all retrieved, the value is 0. Not a sum along the ranking: it has
    no `step`, and no average over ties.

    Parameters
    ----------
    recall : float
        From 0 to 1.

    Examples
    --------
    >>> float(InterpolatedPrecision(1.0)([0, 1, 2], labels=[1, 0, 1]))
    0.6666666666666666
    """

    recall: float = 0.0

    aliases = ("iprec", "iprec_at_recall")

    def __post_init__(self) -> None:
        super().__post_init__()
        recall = float(finite("recall", self.recall, ndim=0))
        if not 0.0 <= recall <= 1.0:
            raise ValueError(f"recall: expected a number from 0 to 1, got {recall}")
        object.__setattr__(self, "recall", recall)

    def _recalls(self) -> FloatArray:
        return np.array([self.recall])


class ElevenPoint(_Interpolated):
    """The mean of interpolated precision at recall 0, 0.1, ..., 1: trec_eval's ``11pt_avg``.

    It has no `step`, and no average over ties.

    Examples
    --------
    >>> float(ElevenPoint()([0, 1, 2], labels=[1, 0, 0]))
    1.0
    """

    aliases = ("11pt", "11pt_avg")

    def _recalls(self) -> FloatArray:
        return ELEVEN


@kernel
def _interpolate(
    ptr: IntArray, start: IntArray, length: IntArray, recalls: FloatArray
) -> FloatArray:
    """Average the interpolated precision of every query over some levels of recall."""
    out = np.zeros(len(ptr) - 1)
    for q in range(len(ptr) - 1):
        first, p = ptr[q], ptr[q + 1] - ptr[q]
        found = 0
        while found < p and start[first + found] < length[q]:
            found += 1
        if found == 0:
            continue
        for recall in recalls:
            best = 0.0
            for j in range(max(int(recall * p + 0.9), 1), found + 1):
                best = max(best, j / (start[first + j - 1] + 1.0))
            out[q] += best
        out[q] /= len(recalls)
    return out
