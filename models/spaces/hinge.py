"""The worst ranking instead of a sum over all: loss-augmented inference, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from permdist.measures import AUC, Measure
from permdist.models.batch import Batch, in_threads
from permdist.sums.thresholds import interleave

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray


@dataclass(frozen=True)
class WithPairs:
    """A measure less `weight` times the share of pairs in the wrong order, ``1 - AUC``.

    It has the steps of a measure, which is all that a search over interleavings asks for.
    """

    measure: Measure
    weight: float

    def step(self, labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Return the amount that the next item adds; see `Measure.step`."""
        own = self.measure.step(labels, totals, level, above)
        return own + self.weight * AUC().step(labels, totals, level, above)

    def offset(self, labels: IntArray, totals: IntArray) -> float:
        """Return the constant to which the steps add; see `Measure.offset`."""
        return self.measure.offset(labels, totals) - self.weight


class StructuredHinge:
    """The largest ``F(y) - F(best) + loss(y)`` over all rankings y of each query.

    The loss is ``1 - measure(y) + auc_weight * (1 - AUC(y))``. For any pattern of labels, F is
    largest where documents of the same label are sorted by score, so the search is over
    interleavings of sorted classes: a longest path in a lattice with one cell for every number of
    documents of each label that are placed.

    Parameters
    ----------
    batch : Batch
    measure : Measure
    n_jobs : int, optional
        How many queries to work on at the same time; the result does not depend on it.
    auc_weight : float
        The weight of the share of pairs in the wrong order.
    grades : {"levels", "thresholds", "auto"}
        What to do with more than two labels; see `permdist.sums.thresholds.interleave`.
    """

    def __init__(
        self,
        batch: Batch,
        measure: Measure,
        n_jobs: int | None = None,
        *,
        auc_weight: float = 0.0,
        grades: str = "levels",
    ) -> None:
        self.batch, self.n_jobs = batch, n_jobs
        if auc_weight:
            measure = cast("Measure", WithPairs(measure, float(auc_weight)))
        layout = batch.labels, batch.ptr, batch.scale
        self._sums = interleave(*layout, measure, grades=grades, shared=batch.shared)

    def __call__(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the hinges, shape (queries,), and a subgradient by scores, shape (documents,)."""
        values, gradient = self._sums.best(scores, -1.0, partial(in_threads, n_jobs=self.n_jobs))
        return values + 1.0 - self._sums.offsets, gradient
