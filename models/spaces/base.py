"""What a learner asks of a space of rankings: two numbers a query, and their derivatives.

A space is made once for a collection; then it is asked again and again for other scores. All sums
are relative to the best ranking of each query, so that a good model keeps its digits.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from permdist._interrupts import patiently
from permdist._typing import FloatArray, IntArray
from permdist.measures import Measure
from permdist.measures.placements import place_by_scores

SMALL = 150_000.0  # less than this, in steps of some nanoseconds, is done before threads wake up


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
    """

    labels: IntArray
    ptr: IntArray
    scale: FloatArray

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @cached_property
    def query_of(self) -> IntArray:
        """The query of each document."""
        return np.repeat(np.arange(len(self)), np.diff(self.ptr))

    @cached_property
    def is_binary(self) -> Any:
        """Whether each query has exactly two different labels."""
        return np.array([len(np.unique(self.labels[a:b])) == 2 for a, b in self.bounds], dtype=bool)

    @cached_property
    def levels(self) -> IntArray:
        """The labels of each query, numbered from 0 without gaps."""
        parts = [np.unique(self.labels[a:b], return_inverse=True)[1] for a, b in self.bounds]
        return np.concatenate(parts).astype(np.int64)

    def measured(self, measure: Measure, scores: FloatArray) -> FloatArray:
        """Measure the ranking of each query by score, ties by the measure's own rule."""
        return measure.values(place_by_scores(scores, self.labels, self.ptr, measure.ties))

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """The first document of each query and the one after its last."""
        return list(pairwise(self.ptr.tolist()))


class Space(ABC):
    """The rankings that are summed over, for every query of a batch.

    Parameters
    ----------
    batch : Batch
    measure : Measure
        The gain; the loss is 1 less it.
    threads : int
        How many queries to work on at the same time; the result does not depend on it.
    """

    def __init__(self, batch: Batch, measure: Measure, threads: int | None = None) -> None:
        self.batch, self.measure, self.threads = batch, measure, threads

    @abstractmethod
    def log_sums(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:
        """Give ``log sum_y exp(F(y) - F(best) + kappa loss(y))`` and derivatives by scores.

        Returns
        -------
        values : array of float, shape (queries,)
        gradient : array of float, shape (documents,)
            Each query's value by its own scores.
        """

    @abstractmethod
    def mean_gains(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give the expected gain under ``exp F``, and derivatives, shapes as in `log_sums`."""

    def _spread(self, work: Callable[[int, int], None], cost: FloatArray) -> None:
        spread(work, cost, self.threads)


def spread(work: Callable[[int, int], None], cost: FloatArray, threads: int | None) -> None:
    """Call ``work(first, last)`` on ranges of queries of about the same cost, in threads."""
    if not len(cost):
        return
    workers = (os.cpu_count() or 1) if threads in (None, -1) else int(threads or 1)
    total = np.concatenate([[0.0], np.cumsum(cost)])
    parts = min(4 * workers, len(cost)) if workers > 1 and total[-1] > SMALL else 1
    cuts = np.searchsorted(total, np.linspace(0.0, total[-1], parts + 1))
    cuts[0], cuts[-1] = 0, len(cost)
    ranges = [(int(a), int(b)) for a, b in pairwise(cuts) if a < b]
    if len(ranges) == 1:
        patiently(total[-1], work, *ranges[0])
        return
    list(_pool(workers).map(lambda part: work(*part), ranges))


@lru_cache(maxsize=8)
def _pool(threads: int) -> ThreadPoolExecutor:
    """Keep threads for the next call, a fraction of a millisecond later."""
    return ThreadPoolExecutor(threads)


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)


def best_slopes(labels: IntArray) -> FloatArray:
    """Differentiate F at the best ranking: items with lower labels less those with higher ones."""
    _, level, totals = np.unique(labels, return_inverse=True, return_counts=True)
    below = np.concatenate([[0], np.cumsum(totals)[:-1]])[level]
    return (2 * below + totals[level] - len(labels)).astype(float)
