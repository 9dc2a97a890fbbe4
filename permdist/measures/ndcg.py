"""Normalized discounted cumulative gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from permdist import _check
from permdist._check import choice
from permdist._kernels import kernel
from permdist.measures.base import Measure, Positional

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements

LARGEST_EXPONENT = 1000
LARGEST_TABLE = 4096


@dataclass(frozen=True, repr=False)
class NDCG(Measure):
    """Discounted cumulative gain, divided by that of the best order.

    ``DCG = sum_i gain(label_i) * discount(rank_i)``.

    Parameters
    ----------
    k : int, optional
        Only the first k positions count, in the value and in the ideal.
    gain : {"exp2", "linear"}
        ``2^label - 1``, or the label itself. trec_eval's is linear.
    discount : {"log2", "jk"}
        For the 1-based rank r: ``1 / log2(1 + r)``, or Järvelin and Kekäläinen's
        ``1 / max(1, log2 r)``, which leaves ranks 1 and 2 undiscounted, as LETOR does.
    short : {"pad", "zero"}
        A query with fewer than k items: as if filled up with bad items, or 0, as LETOR's scripts
        have it.

    References
    ----------
    Järvelin and Kekäläinen: Cumulated gain-based evaluation of IR techniques (2002); Burges et
    al.: Learning to rank using gradient descent (2005).

    Examples
    --------
    >>> labels = [1, 0, 2]
    >>> round(float(NDCG()([0, 1, 2], labels)), 4)  # (1/1 + 3/2) / (3/1 + 1/1.585)
    0.6885
    >>> round(float(NDCG(gain="linear", discount="jk")([0, 1, 2], labels)), 4)
    0.754
    """

    k: int | None = None
    gain: str = "exp2"
    discount: str = "log2"
    short: str = "pad"

    aliases = ("ndcg",)
    partial = True

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("gain", self.gain, ("exp2", "linear"))
        choice("discount", self.discount, ("log2", "jk"))
        choice("short", self.short, ("pad", "zero"))

    def gains(self, labels: ArrayLike) -> FloatArray:
        """Return the gain of each grade."""
        grade = np.asarray(labels)
        if self.gain == "linear":
            return grade.astype(np.float64)
        return np.ldexp(1.0, grade.astype(np.intc)) - 1.0

    def discounts(self, n: int) -> FloatArray:
        """Return the discount of positions 0 to n-1, which is 0 from the cut-off on."""
        rank = np.arange(1, n + 1, dtype=np.float64)
        divisor = np.log2(1.0 + rank) if self.discount == "log2" else np.log2(np.maximum(rank, 2))
        return np.where(rank <= (n if self.k is None else self.k), 1.0 / divisor, 0.0)

    def check_grades(self, grade: IntArray) -> None:
        """Refuse labels whose exponential gain is beyond double precision."""
        if self.gain == "exp2" and grade.size and grade.max() > LARGEST_EXPONENT:
            raise ValueError(
                f"labels: gain='exp2' takes labels up to {LARGEST_EXPONENT}, got {grade.max()}; "
                "use gain='linear' for long strict orders"
            )

    def _values(self, placed: Placements) -> FloatArray:
        # A run may retrieve fewer items than the best order would.
        longest = max(int(placed.length.max(initial=0)), int(np.diff(placed.ptr).max(initial=0)))
        # Grades number the rows of a table of gains; huge ones are renumbered first.
        top = int(placed.grade.max(initial=0))
        if top <= LARGEST_TABLE:
            levels, level = np.arange(top + 1), placed.grade
        else:
            levels, level = np.unique(placed.grade, return_inverse=True)
        gains, discounts = self.gains(levels), self.discounts(longest)
        values = _ndcg(placed.ptr, placed.start, placed.size, level, gains, discounts)
        if self.short == "zero" and self.k is not None:
            values[placed.length < self.k] = 0.0
        return values

    def step(self, labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return the discounted gain over the ideal; see `Measure.step`."""
        position = np.asarray(above, dtype=np.int64).sum(axis=-1)
        scaled = self.positional(np.repeat(labels, totals))
        if scaled is None:
            raise ValueError("totals: NDCG is undefined without a relevant item")
        return scaled.weights[position] * self.gains(labels[level])

    def positional(self, labels: ArrayLike) -> Positional | None:
        """Return the gains, and the discounts over the ideal; see `Measure.positional`."""
        label = _check.grades("labels", labels)
        self.check_grades(label)
        gains, discounts = self.gains(label), self.discounts(len(label))
        ideal = float(np.sort(gains)[::-1] @ discounts)
        if ideal == 0.0:
            return None
        if self.short == "zero" and self.k is not None and len(label) < self.k:
            return Positional(gains, np.zeros_like(discounts), 0.0)
        return Positional(gains, discounts / ideal, 0.0)


@kernel
def _ndcg(
    ptr: IntArray,
    start: IntArray,
    size: IntArray,
    level: IntArray,
    gains: FloatArray,
    discount: FloatArray,
) -> FloatArray:
    """Divide DCG by its ideal in every query; tied items share the mean of their discounts."""
    out = np.empty(len(ptr) - 1)
    of_level = np.zeros(len(gains), np.int64)
    for q in range(len(ptr) - 1):
        total = 0.0
        mean, of = 0.0, -1
        for entry in range(ptr[q], ptr[q + 1]):
            begin, share, gain = start[entry], size[entry], gains[level[entry]]
            of_level[level[entry]] += 1
            if share == 1:
                if begin < len(discount):
                    total += gain * discount[begin]
                continue
            if of != begin:
                mean, of = 0.0, begin
                for t in range(begin, begin + share):
                    mean += discount[t]
                mean /= share
            total += gain * mean
        ideal = 0.0
        rank = 0
        for best in range(len(gains) - 1, -1, -1):
            for _ in range(of_level[best]):
                ideal += gains[best] * discount[rank]
                rank += 1
            of_level[best] = 0
        out[q] = total / ideal
    return out
