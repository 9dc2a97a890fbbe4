"""Interleavings of the classes, each sorted by score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from permdist.models.rules import OneOf
from permdist.models.spaces.base import Space, Sums, register_space
from permdist.sums.thresholds import GRADES, choose_grades, interleave

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.measures import Measure
    from permdist.models.batch import Batch

    Jobs = int | None


class InterleavingSums(Sums):
    """All ways to interleave the classes, each sorted by score.

    ``log_sums`` is convex in the scores: for every pattern of labels, sorting inside the classes
    gives the largest F, so the sum is over maxima of linear functions. It has kinks where scores
    of a class tie.

    Over thresholds (`grades`), ``log_sums`` is a weighted sum of such sums, one per threshold
    between labels, each over the interleavings of the documents above and below it: a composite
    likelihood, as convex as each of them. ``mean_gains`` adds up the expected gain
    of each threshold under its own model.
    """

    def __init__(
        self,
        batch: Batch,
        measure: Measure,
        n_jobs: Jobs,
        grades: str = "auto",
    ) -> None:
        super().__init__(batch, measure, n_jobs)
        layout = batch.labels, batch.ptr, batch.scale
        self._sums = interleave(*layout, measure, grades=grades, shared=batch.shared)

    def log_sums(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:
        """Sum over all interleavings."""
        values, gradient = self._sums.log_sums(scores, -kappa, self._in_threads)
        return values + kappa * (1.0 - self._sums.offsets), gradient

    def mean_gains(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Average over all interleavings."""
        values, gradient = self._sums.means(scores, self._in_threads)
        return values + self._sums.offsets, gradient


@register_space
@dataclass(frozen=True)
class Interleavings(Space):
    """All interleavings of the classes of equal labels, each class sorted by score.

    Parameters
    ----------
    grades : {"auto", "levels", "thresholds"}
        Queries of more than two labels: interleave all labels at once; add up the sums over the
        thresholds between labels; or do so where all labels would take more than 2 million cells.
    """

    alias: ClassVar[str] = "interleavings"
    kinked: ClassVar[bool] = True
    grades: str = "auto"

    def __post_init__(self) -> None:
        OneOf(GRADES).check("grades", self.grades)

    def settle(self, labels: IntArray, ptr: IntArray) -> Space:
        """Decide about queries of more than two labels by all of them; see `Space.settle`."""
        return replace(self, grades=choose_grades(labels, ptr, grades=self.grades))

    def _sums(self, batch: Batch, measure: Measure, n_jobs: Jobs, _rng: RandomState) -> Sums:
        return InterleavingSums(batch, measure, n_jobs, self.grades)
