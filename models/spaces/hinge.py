"""The worst ranking instead of a sum over all: loss-augmented inference, exactly."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from permdist.models.batch import Batch, in_threads
from permdist.sums.batch import BatchInterleavings

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.measures import Measure


class StructuredHinge:
    """The largest ``F(y) - F(best) + 1 - measure(y)`` over all rankings y of each query.

    For any pattern of labels, F is largest where documents of the same label are sorted by score,
    so the search is over interleavings of sorted classes: a longest path in a lattice with one
    cell for every number of documents of each label that are placed.

    Parameters
    ----------
    batch : Batch
    measure : Measure
    n_jobs : int, optional
        How many queries to work on at the same time; the result does not depend on it.
    """

    def __init__(self, batch: Batch, measure: Measure, n_jobs: int | None = None) -> None:
        self.batch, self.n_jobs = batch, n_jobs
        self._sums = BatchInterleavings(batch.labels, batch.ptr, batch.scale, measure)

    def __call__(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the hinges, shape (queries,), and a subgradient by scores, shape (documents,)."""
        values, gradient = self._sums.best(scores, -1.0, partial(in_threads, n_jobs=self.n_jobs))
        return values + 1.0 - self._sums.offsets, gradient
