"""Measures as sums over positions, for all queries of a batch at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._parallel import bounds, pointers

if TYPE_CHECKING:
    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.measures.base import Measure


class PositionalBatch(NamedTuple):
    """``offsets[q] + sum_i gains[i] * weights[rank of i]`` of each query q.

    Attributes
    ----------
    gains : array of float, shape (documents,)
    weights : array of float
        Of the positions that count, one query after the other.
    weight_ptr : array of int, shape (queries + 1,)
        Where the weights of each query start.
    offsets : array of float, shape (queries,)
    known : array of bool, shape (queries,)
        Whether the measure is such a sum for the labels of the query; if not, all of the above is
        0 or empty.
    """

    gains: FloatArray
    weights: FloatArray
    weight_ptr: IntArray
    offsets: FloatArray
    known: BoolArray


def positional_batch(measure: Measure, labels: IntArray, ptr: IntArray) -> PositionalBatch:
    """Return a measure as sums over positions, cut off behind the last position that counts.

    Parameters
    ----------
    measure : Measure
    labels : array of int, shape (documents,)
    ptr : array of int, shape (queries + 1,)

    Examples
    --------
    >>> from permdist.measures import Precision
    >>> form = positional_batch(Precision(2), np.array([1, 0, 1, 0, 1]), np.array([0, 3, 5]))
    >>> form.gains, form.weights, form.weight_ptr
    (array([1., 0., 1., 0., 1.]), array([0.5, 0.5, 0.5, 0.5]), array([0, 2, 4]))
    """
    queries = len(ptr) - 1
    gains, offsets = np.zeros(len(labels)), np.zeros(queries)
    known, weights = np.zeros(queries, dtype=bool), [np.zeros(0)]
    counts = np.zeros(queries, dtype=np.int64)
    for q, (a, b) in enumerate(bounds(ptr)):
        form = measure.positional(labels[a:b])
        if form is not None:
            gains[a:b], offsets[q], known[q] = form.gains, form.offset, True
            counted = np.flatnonzero(form.weights)
            counts[q] = counted[-1] + 1 if len(counted) else 0
            weights.append(form.weights[: counts[q]])
    return PositionalBatch(gains, np.concatenate(weights), pointers(counts), offsets, known)
