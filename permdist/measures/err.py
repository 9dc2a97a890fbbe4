"""Expected reciprocal rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from permdist._check import count
from permdist._kernels import kernel
from permdist.measures.base import Measure

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements


@dataclass(frozen=True, repr=False)
class ERR(Measure):
    """Expected reciprocal rank: a reader goes down the list and stops when satisfied.

    An item of grade g satisfies with probability ``R = (2^g - 1) / 2^max_grade``, and
    ``ERR = sum_r 1/r * R_(r) * prod_(above) (1 - R)``. Even the best order has a value below 1.

    Parameters
    ----------
    k : int, optional
        Only the first k positions count.
    max_grade : int
        The highest grade of the scale (not of the query): 4 on the usual five-grade scale.

    References
    ----------
    Chapelle, Metlzer, Zhang, Grinspan: Expected reciprocal rank for graded relevance (2009).

    Examples
    --------
    >>> float(ERR(max_grade=1)([0, 1], labels=[0, 1]))  # R = 1/2 at the second place
    0.25
    """

    k: int | None = None
    max_grade: int = 4

    aliases = ("err",)
    partial = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "max_grade", count("max_grade", self.max_grade))

    def check_grades(self, grade: IntArray) -> None:
        """Refuse grades above the scale."""
        if grade.size and grade.max() > self.max_grade:
            raise ValueError(
                f"labels: expected grades up to max_grade={self.max_grade}, got {grade.max()}"
            )

    def stop_probability(self, labels: ArrayLike) -> FloatArray:
        """Return the probability that an item of each grade satisfies the reader."""
        grade = np.asarray(labels, dtype=np.intc)
        return np.ldexp(1.0, grade - self.max_grade) - np.ldexp(1.0, -self.max_grade)

    def _values(self, placed: Placements) -> FloatArray:
        stop = self.stop_probability(placed.grade)
        return _err(placed.ptr, placed.start, placed.size, stop, self.cut_off)

    def step(self, labels: IntArray, _totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return the chance to stop here, over the rank; see `Measure.step`."""
        counts = np.asarray(above, dtype=np.int64)
        stop = self.stop_probability(labels)
        position = counts.sum(axis=-1)
        reached = np.prod((1.0 - stop) ** counts, axis=-1)
        inside = position < self.cut_off
        return inside * reached * stop[level] / (position + 1)


@kernel
def _err(ptr: IntArray, start: IntArray, size: IntArray, stop: FloatArray, cut: int) -> FloatArray:
    """ERR of every query, in expectation over ties.

    In a tie of g items, let on[t] be the mean over all subsets of t items of the chance to pass
    them all. The reader stops at the t-th place of the tie with probability on[t-1] - on[t]. An
    item with chance x to be passed turns the means of n items into those of n + 1:
    ``((n + 1 - t) on[t] + t x on[t-1]) / (n + 1)``.
    """
    out = np.zeros(len(ptr) - 1)
    for q in range(len(ptr) - 1):
        reached = 1.0
        k = ptr[q]
        while k < ptr[q + 1]:
            n, g = start[k], size[k]
            if g == 1:
                if n < cut:
                    out[q] += reached * stop[k] / (n + 1.0)
                reached *= 1.0 - stop[k]
                k += 1
                continue
            r = 1
            while k + r < ptr[q + 1] and start[k + r] == n:
                r += 1
            on = np.ones(g + 1)
            for i in range(r):
                members = g - r + i
                for t in range(members + 1, 0, -1):
                    kept = (members + 1 - t) * on[t] if t <= members else 0.0
                    on[t] = (kept + t * (1.0 - stop[k + i]) * on[t - 1]) / (members + 1)
            for t in range(1, min(g, cut - n) + 1):
                out[q] += reached * (on[t - 1] - on[t]) / (n + t)
            reached *= on[g]
            k += r
    return out
