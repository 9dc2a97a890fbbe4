"""Positive diagonals that stand for second derivatives, shared by several objectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.models.batch import in_threads
from permdist.sums.exponential import exp_down

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch


def by_gradient(gradient: FloatArray, ptr: IntArray) -> FloatArray:
    """Return the size of each slope plus the mean size of its query.

    It is the curvature of objectives that know nothing better: a Newton step of a document or of a
    leaf is then at most 1, whatever the units of the objective, and shorter where slopes disagree.

    Parameters
    ----------
    gradient : array of float, shape (documents,)
    ptr : array of int, shape (queries + 1,)
    """
    size = np.abs(gradient)
    counts = np.diff(ptr)
    result: FloatArray = size + np.repeat(np.add.reduceat(size, ptr[:-1]) / counts, counts)
    return result


def by_means(means: FloatArray, largest: FloatArray) -> FloatArray:
    """Bound variances by means: ``(largest - mean) (largest + mean)``, of Bhatia and Davis.

    Second derivatives of a log-sum of exponentials are variances of what the scores are multiplied
    by in the exponents, first derivatives its means. Where it is between ``-largest`` and
    ``largest``, nothing with this mean has a larger variance.

    Parameters
    ----------
    means, largest : array of float, shape (documents,)
    """
    result: FloatArray = np.maximum((largest - means) * (largest + means), 1e-6 * largest * largest)
    return result


def number_of_others(batch: Batch) -> FloatArray:
    """Return how many documents of its query have another label, of each document."""
    first = np.zeros(len(batch), dtype=np.int64)
    np.cumsum(batch.n_levels[:-1], out=first[1:])
    number = batch.levels + first[batch.query_of]
    own = np.bincount(number)[number]
    return batch.sizes[batch.query_of] - own


def slopes_of_best(batch: Batch) -> FloatArray:
    """Return how many documents have a lower label less how many have a higher one."""
    order = np.lexsort((batch.labels, batch.query_of))
    label, query = batch.labels[order], batch.query_of
    new = np.r_[True, (np.diff(label) != 0) | (np.diff(query) != 0)]
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], len(order))
    group = np.cumsum(new) - 1
    lower = starts[group] - batch.ptr[query]
    higher = batch.ptr[query + 1] - ends[group]
    result = np.empty(len(order))
    result[order] = lower - higher
    return result


def pair_variances(
    batch: Batch, factors: FloatArray, tilts: FloatArray, scores: FloatArray, n_jobs: int | None
) -> FloatArray:
    """Add up ``factor^2 p (1 - p)`` over the documents with other labels, of each document.

    p is the logistic function of ``factor (s_upper - s_lower) - tilt``.

    Parameters
    ----------
    batch : Batch
    factors, tilts : array of float, shape (queries,)
    scores : array of float, shape (documents,)
    n_jobs : int or None
    """
    result = np.zeros(len(scores))

    def work(first: int, last: int) -> None:
        _pair_variances(first, last, scores, batch.levels, batch.ptr, factors, tilts, result)

    in_threads(work, 2.0 * batch.sizes**2, n_jobs)
    return result


@kernel
def _pair_variances(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    levels: IntArray,
    ptr: IntArray,
    factors: FloatArray,
    tilts: FloatArray,
    out: FloatArray,
) -> None:
    """Fill in the sums of `pair_variances`, (documents,)."""
    for q in range(first_query, last_query):
        a, b = ptr[q], ptr[q + 1]
        square = factors[q] * factors[q]
        for i in range(a, b):
            total = 0.0
            for j in range(a, i):
                if levels[i] != levels[j]:
                    sign = 1.0 if levels[i] > levels[j] else -1.0
                    x = sign * factors[q] * (scores[i] - scores[j]) - tilts[q]
                    small = exp_down(-abs(x))
                    part = square * small / ((1.0 + small) * (1.0 + small))
                    total += part
                    out[j] += part
            out[i] += total
