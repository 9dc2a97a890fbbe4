"""Tables of draws of rankings with ties: positions, pairs, measures."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure


def places(starts: FloatArray, rule: str) -> FloatArray:
    """Add up the chances of positions from those of buckets by start and size, (n, n, T)."""
    n, _, largest = starts.shape
    result = np.zeros((n, n))
    for size in range(1, largest + 1):
        chances = starts[:, : n - size + 1, size - 1]
        shared = {"min": (0,), "max": (size - 1,)}.get(rule, range(size))
        for place in shared:
            result[:, place : place + n - size + 1] += chances / len(shared)
    return result


def places_drawn(ranks: IntArray, rule: str) -> tuple[FloatArray, FloatArray]:
    """Return the sums over draws of positions (n, n), and of their squares where shared."""
    n = ranks.shape[1]
    if rule == "dense":
        table = np.zeros((n, n))
        np.add.at(table, (np.arange(n), ranks), 1.0)
        return table, table
    starts, sizes = _buckets_drawn(ranks)
    counts = np.zeros((n, n, int(sizes.max())))
    np.add.at(counts, (np.arange(n), starts, sizes - 1), 1.0)
    if rule == "share":
        return places(counts, rule), places(counts / np.arange(1, counts.shape[2] + 1), rule)
    table = places(counts, rule)
    return table, table


def first_drawn(ranks: IntArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Return the sums over draws, and of squares, of the chances to be among the first k."""
    starts, sizes = _buckets_drawn(ranks)
    shares = np.clip((k - starts) / sizes, 0.0, 1.0)
    return shares.sum(axis=0), (shares**2).sum(axis=0)


def _buckets_drawn(ranks: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first position and the size of each item's bucket in each draw."""
    rows = np.arange(len(ranks))[:, None]
    sizes = np.zeros(ranks.shape, dtype=np.int64)
    np.add.at(sizes, (rows, ranks), 1)
    return (np.cumsum(sizes, axis=1) - sizes)[rows, ranks], sizes[rows, ranks]


def measured(
    measure: Measure, ranks: IntArray, labels: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Return a measure of each draw: the mean over all ways to break ties, or one of them."""
    if measure.additive:
        average = dataclasses.replace(measure, ties="average")
        return np.asarray(average.from_scores(-ranks.astype(np.float64), labels))
    keys = ranks + rng.random(ranks.shape)
    return np.asarray(measure(np.argsort(keys, axis=1), labels))


def pairs_drawn(ranks: IntArray, relation: Any) -> tuple[FloatArray, FloatArray]:
    """Count the draws in which each pair of items has a relation; twice, 1 squared is 1."""
    table = relation(ranks[:, :, None], ranks[:, None, :]).sum(axis=0).astype(np.float64)
    np.fill_diagonal(table, 0.0)
    return table, table
