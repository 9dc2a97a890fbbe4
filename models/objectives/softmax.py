"""Softmax losses ``sum_i t_i (log sum_j exp(s_j) - s_i)`` for given weights t, with derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.models.batch import derivatives_in_threads
from permdist.sums.exponential import exp_down

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch
    from permdist.models.objectives.base import BoundDerivatives


def softmax_losses(batch: Batch, targets: FloatArray, n_jobs: int | None) -> BoundDerivatives:
    """Return the function of all scores; the curvature is exact.

    Parameters
    ----------
    batch : Batch
    targets : array of float, shape (documents,)
        The weight of each document.
    n_jobs : int or None
    """
    totals = np.add.reduceat(targets, batch.ptr[:-1])

    def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
        _softmax(first, last, scores, targets, totals, batch.ptr, *out)

    return derivatives_in_threads(work, batch, 4.0 * batch.sizes, n_jobs)


@kernel
def _softmax(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    targets: FloatArray,
    totals: FloatArray,
    ptr: IntArray,
    values: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
) -> None:
    """Fill in values (queries,), gradient and curvature (documents,)."""
    for q in range(first_query, last_query):
        _lower(scores, np.uint64(ptr[q]), np.uint64(ptr[q + 1]), gradient)
    # All queries at once: vector instructions then leave no short remainders.
    start, stop = ptr[first_query], ptr[last_query]
    exponentials(gradient[start:stop], curvature[start:stop])
    for q in range(first_query, last_query):
        a, b = np.uint64(ptr[q]), np.uint64(ptr[q + 1])
        values[q] = _one(targets, a, b, totals[q], gradient, curvature)


# Numbers without a sign cannot count from the end, which would keep loops from vectorizing; four
# lanes of a sum or a maximum need not wait for each other.


@kernel(inline=True)
def _lower(scores: FloatArray, a: np.uint64, b: np.uint64, out: FloatArray) -> None:
    """Subtract the highest score of a query."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    whole = b - (b - a) % four
    high, h1, h2, h3 = scores[a], scores[a], scores[a], scores[a]
    for i in range(a, whole, four):
        s, s1, s2, s3 = scores[i], scores[i + one], scores[i + two], scores[i + three]
        high = s if s > high else high
        h1 = s1 if s1 > h1 else h1
        h2 = s2 if s2 > h2 else h2
        h3 = s3 if s3 > h3 else h3
    for i in range(whole, b):
        high = scores[i] if scores[i] > high else high
    high = h1 if h1 > high else high
    h2 = h3 if h3 > h2 else h2
    high = h2 if h2 > high else high
    for i in range(a, b):
        out[i] = scores[i] - high


@kernel(fuse=True)
def exponentials(logs: FloatArray, out: FloatArray) -> None:
    """Fill in exponentials of numbers that are not positive."""
    for i in range(len(logs)):
        out[i] = exp_down(logs[i])


@kernel(inline=True)
def _one(
    targets: FloatArray,
    a: np.uint64,
    b: np.uint64,
    weight: float,
    gradient: FloatArray,
    curvature: FloatArray,
) -> float:
    """Return the value of one query, and replace scores and their exponentials by derivatives."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    whole = b - (b - a) % four
    total, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    mean, m1, m2, m3 = 0.0, 0.0, 0.0, 0.0
    for i in range(a, whole, four):
        total += curvature[i]
        t1 += curvature[i + one]
        t2 += curvature[i + two]
        t3 += curvature[i + three]
        mean += targets[i] * gradient[i]
        m1 += targets[i + one] * gradient[i + one]
        m2 += targets[i + two] * gradient[i + two]
        m3 += targets[i + three] * gradient[i + three]
    total, mean = (total + t1) + (t2 + t3), (mean + m1) + (m2 + m3)
    for i in range(whole, b):
        total += curvature[i]
        mean += targets[i] * gradient[i]
    share = 1.0 / total
    for i in range(a, b):
        p = curvature[i] * share
        gradient[i] = weight * p - targets[i]
        curvature[i] = weight * p * (1.0 - p)
    return weight * np.log(total) - mean
