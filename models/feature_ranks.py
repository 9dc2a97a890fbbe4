"""Rankings by single features, as FeatureRank, BLFeatureRank and DiffRank combine them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


class Intervals(NamedTuple):
    """The quasi-KNN weak rankers of all features.

    Attributes
    ----------
    centers : array of float, shape (features, intervals)
        The mean value of each feature among documents of each degree of relevance, from the least
        relevant interval up.
    """

    centers: FloatArray

    def ranks(self, features: FloatArray, ptr: IntArray) -> FloatArray:
        """Rank the documents of each query by each feature, shape (features, documents).

        A value belongs to the interval with the nearest center; higher intervals rank higher.
        Inside an interval larger values rank higher where its center is above the one before it
        (for the first: below the one after it), lower where it is below, and the same where the
        two are equal. The top has rank n, the last rank 1, and equal ones share their mean.
        """
        result = np.empty(features.shape[::-1])
        for k, (column, centers) in enumerate(zip(features.T, self.centers, strict=True)):
            _rank_values(np.ascontiguousarray(column), centers, ptr, result[k])
        return result


def quasi_knn(features: FloatArray, labels: IntArray, ptr: IntArray, intervals: int) -> Intervals:
    """Find the interval centers of every feature.

    Each query's documents, from the least relevant up, are cut into intervals of equal length; a
    center is the mean of the values of all queries in the same interval. A query with fewer
    documents than intervals fills some of them only; an interval that no query fills is left out.

    Examples
    --------
    >>> import numpy as np
    >>> found = quasi_knn(np.array([[0.9], [0.1], [0.5]]), np.array([2, 0, 1]), np.array([0, 3]), 3)
    >>> found.centers
    array([[0.1, 0.5, 0.9]])
    """
    sums = np.zeros((features.shape[1], intervals))
    number = np.zeros(intervals)
    for a, b in pairwise(ptr):
        order = a + np.argsort(labels[a:b], kind="stable")
        place = (np.arange(b - a) * intervals) // (b - a)
        np.add.at(sums.T, place, features[order])
        np.add.at(number, place, 1.0)
    filled = np.flatnonzero(number)
    return Intervals(sums[:, filled] / number[filled])


@kernel
def _rank_values(column: FloatArray, centers: FloatArray, ptr: IntArray, out: FloatArray) -> None:
    """Fill in the ranks of one feature's values inside each query."""
    k = len(centers)
    for q in range(len(ptr) - 1):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        interval, inner = np.empty(n), np.empty(n)
        for i in range(n):
            nearest, distance = 0, abs(column[a + i] - centers[0])
            for c in range(1, k):
                if abs(column[a + i] - centers[c]) < distance:
                    nearest, distance = c, abs(column[a + i] - centers[c])
            slope = 1.0
            if k > 1:
                before = max(nearest, 1)
                slope = np.sign(centers[before] - centers[before - 1])
            interval[i] = nearest
            inner[i] = slope * column[a + i]
        # Two stable sorts, the second by interval: documents from the top down.
        first = np.argsort(-inner, kind="mergesort")
        second = np.argsort(-interval[first], kind="mergesort")
        start = 0
        for t in range(n):
            i, following = first[second[t]], first[second[min(t + 1, n - 1)]]
            same = interval[i] == interval[following] and inner[i] == inner[following]
            if t + 1 < n and same:
                continue
            for u in range(start, t + 1):
                out[a + first[second[u]]] = n - 0.5 * (start + t)
            start = t + 1


@kernel
def rank_within(scores: FloatArray, ptr: IntArray, out: FloatArray) -> None:
    """Turn scores into ranks inside each query: n for the best, 1 for the last, ties shared."""
    for q in range(len(ptr) - 1):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        order = np.argsort(-scores[a : a + n], kind="mergesort")
        start = 0
        for t in range(n):
            if t + 1 < n and scores[a + order[t]] == scores[a + order[t + 1]]:
                continue
            for u in range(start, t + 1):
                out[a + order[u]] = n - 0.5 * (start + t)
            start = t + 1
