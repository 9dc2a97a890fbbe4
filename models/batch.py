"""The queries that a learner learns from, and work on them in threads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist import _parallel
from permdist._check import as_rng
from permdist._parallel import in_threads as in_threads
from permdist._parallel import map_blocks as map_blocks
from permdist._parallel import n_threads as n_threads
from permdist.measures.placements import place_by_scores
from permdist.rankings.sorting import different_pairs

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import BoolArray, FloatArray, IntArray, RandomState
    from permdist.measures import Measure

RANDOM_ORDERS = 50
PART = 1 << 15  # documents whose placing takes a millisecond, and is worth a thread


@dataclass(frozen=True, eq=False)
class Batch:
    """The queries that a learner can learn from: each has at least two different labels.

    Attributes
    ----------
    labels : array of int, shape (documents,)
    ptr : array of int, shape (queries + 1,)
        Where each query starts.
    scale : array of float, shape (queries,)
        The factor of score differences in each query.
    first : int
        The number of the first query among all that are learned from, where the batch is a part of
        these: what is drawn for a query depends on its number only.
    shared : dict
        Tables that depend on numbers of labels only, for all parts of the same queries.
    """

    labels: IntArray
    ptr: IntArray
    scale: FloatArray
    first: int = 0
    shared: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, labels: IntArray, ptr: IntArray, *, scale: bool = False) -> Batch:
        """Make a batch whose factors are 1 or, with `scale`, 1 over the number of pairs."""
        batch = cls(labels, ptr, np.ones(len(ptr) - 1))
        return cls(labels, ptr, 1.0 / batch.n_pairs) if scale else batch

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def part(self, start: int, stop: int) -> Batch:
        """Return the queries from `start` up to `stop`."""
        a, b = self.ptr[start], self.ptr[stop]
        ptr, scale = self.ptr[start : stop + 1] - a, self.scale[start:stop]
        return Batch(self.labels[a:b], ptr, scale, self.first + start, self.shared)

    def streams(self, random_state: RandomState) -> list[np.random.Generator]:
        """Return a generator for each query, which depends on the query's number only."""
        if random_state is None or isinstance(random_state, np.random.Generator):
            random_state = int(as_rng(random_state).integers(2**63))
        as_rng(random_state)  # checks it
        numbers = range(self.first, self.first + len(self))
        seeds = (np.random.SeedSequence(random_state, spawn_key=(number,)) for number in numbers)
        return [np.random.default_rng(seed) for seed in seeds]

    @cached_property
    def query_of(self) -> IntArray:
        """The query of each document."""
        return _parallel.rows_of(self.ptr)

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """The first document of each query and the one after its last."""
        return _parallel.bounds(self.ptr)

    @cached_property
    def sizes(self) -> FloatArray:
        """The number of documents of each query."""
        return np.diff(self.ptr).astype(np.float64)

    @cached_property
    def _classes(self) -> tuple[IntArray, IntArray, IntArray]:
        """The query and the size of each class of equal labels, and the class of each document."""
        order = np.lexsort((self.labels, self.query_of))
        query, label = self.query_of, self.labels[order]
        new = np.r_[True, (np.diff(label) != 0) | (np.diff(query) != 0)]
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.cumsum(new) - 1
        starts = np.flatnonzero(new)
        return query[starts], np.diff(np.append(starts, len(order))), number

    @cached_property
    def n_levels(self) -> IntArray:
        """The number of different labels of each query."""
        return np.bincount(self._classes[0], minlength=len(self))

    @cached_property
    def levels(self) -> IntArray:
        """The labels of each query, numbered from 0 without gaps."""
        first = _parallel.pointers(self.n_levels)[:-1]
        return self._classes[2] - first[self.query_of]

    @cached_property
    def n_pairs(self) -> FloatArray:
        """The number of pairs of documents with different labels, of each query."""
        classes = _parallel.bounds(_parallel.pointers(self.n_levels))
        return np.array([different_pairs(self._classes[1][a:b]) for a, b in classes], dtype=float)

    def measured(self, measure: Measure, scores: FloatArray, n_jobs: int | None = 1) -> FloatArray:
        """Measure the ranking of each query by score, ties by the measure's own rule.

        Parameters
        ----------
        measure : Measure
        scores : array of float, shape (documents,)
        n_jobs : int, optional
            Threads, all processors for None; the result does not depend on it.
        """
        workers = n_threads(n_jobs)
        parts = min(len(scores) // PART, 4 * workers) if workers > 1 else 1
        # A long query may be more than a part.
        cuts = np.unique(np.searchsorted(self.ptr, np.linspace(0, len(scores), max(parts, 1) + 1)))
        if len(cuts) <= 2:
            return measure.values(place_by_scores(scores, self.labels, self.ptr, measure.ties))

        def work(number: int) -> FloatArray:
            first, last = cuts[number : number + 2]
            a, b = self.ptr[first], self.ptr[last]
            ptr = self.ptr[first : last + 1] - a
            return measure.values(place_by_scores(scores[a:b], self.labels[a:b], ptr, measure.ties))

        return np.concatenate(map_blocks(work, len(cuts) - 1, n_jobs))

    def beyond_chance(self, measure: Measure, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a measure of each query, and that of a random order.

        Ties of scores count as broken at random in both. The latter is exact for measures that
        average over ties, and the mean over random orders for others.
        """
        shared = with_shared_ties(measure)
        if shared.ties == "average":
            return self.measured(shared, scores), self.measured(shared, np.zeros(len(scores)))
        rng = np.random.default_rng(self.first)
        drawn = [self.measured(measure, rng.random(len(scores))) for _ in range(RANDOM_ORDERS)]
        return self.measured(measure, scores), np.mean(drawn, axis=0)


def with_shared_ties(measure: Measure) -> Measure:
    """Return the measure with the mean over all ways to break ties, where it has one."""
    try:
        shared = replace(measure, ties="average")
    except ValueError:
        return measure
    label, ptr = np.array([1, 0]), np.array([0, 2])
    first, last, tied = (
        shared.values(place_by_scores(np.array(scores), label, ptr, "average"))[0]
        for scores in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0))
    )
    # A measure of somebody's own may not look at ties at all.
    return shared if abs(first + last - 2.0 * tied) < 1e-9 else measure


def teaching(labels: IntArray, ptr: IntArray) -> BoolArray:
    """Return which queries have documents of different labels."""
    starts = ptr[:-1]
    return np.maximum.reduceat(labels, starts) > np.minimum.reduceat(labels, starts)


def sums_in_threads(
    work: Callable[..., Any], batch: Batch, cost: FloatArray, n_jobs: int | None
) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
    """Turn a kernel over a range of queries into a function of all scores.

    Parameters
    ----------
    work : callable
        Called with the first and the last query, the scores, and the arrays that it fills: values
        of shape (queries,) and a gradient of shape (documents,).
    batch : Batch
    cost : array of float, shape (queries,)
        About how many nanoseconds each query takes.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.
    """

    def sums(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, gradient = np.zeros(len(batch)), np.zeros(len(scores))
        in_threads(lambda a, b: work(a, b, scores, values, gradient), cost, n_jobs)
        return values, gradient

    return sums


def derivatives_in_threads(
    work: Callable[..., Any], batch: Batch, cost: FloatArray, n_jobs: int | None
) -> Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]:
    """Do as `sums_in_threads`, with a curvature of shape (documents,) as a third array to fill.

    Parameters
    ----------
    work, batch, cost, n_jobs
        As in `sums_in_threads`.
    """

    def sums(scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        values, gradient, curvature = (
            np.zeros(len(batch)),
            np.zeros(len(scores)),
            np.zeros(len(scores)),
        )
        in_threads(lambda a, b: work(a, b, scores, values, gradient, curvature), cost, n_jobs)
        return values, gradient, curvature

    return sums


NO_CURVATURE: FloatArray = np.empty(0)  # what kernels get that are to fill in none
