"""Rankings by single features, as FeatureRank, BLFeatureRank and DiffRank combine them.

Here are the quasi-KNN weak rankers, and the scores that stand for ranks when they are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from permdist._kernels import kernel
from permdist._parallel import pack
from permdist.models.batch import in_threads
from permdist.models.blocks import columns_of
from permdist.rankings.sorting import ascending as stable_order
from permdist.rankings.sorting import copy, members_by, sort

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch

CUTS = ("labels", "documents")
CENTERS = {"normal": None, "posterior": 0, "middle": 1, "prior": 2}  # which third, from below
KINDS = ("normal", "ranks", "values")
CLOSE = 1e-9  # centers, and distances to them, that differ by less of their range are equal
ROUNDING = 1e-13
NO_LABELS = np.zeros(0, dtype=np.int64)


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

        A single center ranks all values in their own order, as a linear function does.
        """
        return Scale("ranks", ptr).weak(self, features)


class Scale:
    """The scores that stand for the ranks within queries.

    Parameters
    ----------
    kind : {"ranks", "normal", "values"}
        The ranks r = 1 .. n themselves; the normal quantiles of ``(r - 1/2) / n``; or, for the
        ranking by a feature, its values in the query in ascending order, less their mean and over
        their standard deviation (in descending order with the sign changed where the center of
        the most relevant interval is below that of the least relevant one). A combined ranking has
        no values of its own and has normal quantiles instead.
    ptr : array of int, shape (queries + 1,)
    n_jobs : int, optional
    """

    def __init__(self, kind: str, ptr: IntArray, n_jobs: int | None = 1) -> None:
        self.kind, self.ptr, self.n_jobs = kind, np.array(ptr), n_jobs
        sizes, which = np.unique(np.diff(ptr), return_inverse=True)
        tables = [np.arange(1.0, n + 0.25, 0.5) for n in sizes]
        if kind != "ranks":
            tables = [ndtri((r - 0.5) / n) for r, n in zip(tables, sizes, strict=True)]
        self.table, starts = pack(tables)
        self.start = starts[:-1][which]
        self.spans = np.array([(one[-1] - one[0]) or 1.0 for one in tables])[which]
        self._cost = 40.0 * np.diff(ptr)

    def weak(self, weak: Intervals, features: FloatArray) -> FloatArray:
        """Score the documents of each query by each feature, shape (features, documents)."""
        result = np.empty(features.shape[::-1])
        for k, column in columns_of(features):
            centers = np.array(weak.centers[k])
            close = CLOSE * float(np.ptp(centers))
            scores = self.table, self.start, self.kind == "values", result[k]
            self._work(_score_values, column, centers, close, self.ptr, *scores)
        return result

    def rank(self, values: FloatArray, batch: Batch | None = None) -> tuple[FloatArray, FloatArray]:
        """Score the ranks of values, higher ones on top, equal ones sharing their mean rank.

        Returns
        -------
        scores : array of float, shape (documents,)
        taus : array of float, shape (queries,)
            Kendall's tau with the labels of `batch`, in which ties count nothing.
        """
        values = np.asarray(values, dtype=np.float64)
        scores, taus = np.empty(len(values)), np.zeros(len(self.ptr) - 1)
        judged = (NO_LABELS, taus) if batch is None else (batch.levels, batch.n_pairs)
        self._work(_rank, values, self.ptr, self.table, self.start, *judged, scores, taus)
        return scores, taus

    def _work(self, work: Callable[..., None], *given: Any) -> None:
        """Call a kernel for all queries, in threads."""
        in_threads(lambda a, b: work(a, b, *given), self._cost, self.n_jobs)

    def unit(self, h: FloatArray) -> FloatArray:
        """Divide scores, in place, by the largest difference that two in a query can have."""
        sizes = np.diff(self.ptr)
        if self.kind == "values":
            starts = self.ptr[:-1]
            for row in h:
                span = np.maximum.reduceat(row, starts) - np.minimum.reduceat(row, starts)
                row /= np.repeat(np.where(span > 0.0, span, 1.0), sizes)
        else:
            h /= np.repeat(self.spans, sizes)
        return h


def quasi_knn(
    features: FloatArray,
    labels: IntArray,
    ptr: IntArray,
    intervals: int,
    *,
    cut: str = "labels",
    center: str = "normal",
) -> Intervals:
    """Find the interval centers of every feature.

    Parameters
    ----------
    features : array of float, shape (documents, features)
    labels : array of int, shape (documents,)
    ptr : array of int, shape (queries + 1,)
    intervals : int
        Their number K.
    cut : {"labels", "documents"}
        With ``"documents"``, each query's documents, from the least relevant up, are cut into K
        intervals of equal length, and a center is the mean of the values of all queries in the
        same interval. Documents of equal labels share their places: the centers are those of the
        mean over all ways to order them. With ``"labels"``, each label is an interval; where there
        are more than K labels, documents are cut.
    center : {"normal", "prior", "middle", "posterior"}
        The mean of all values of an interval, or of the most relevant, the middle or the least
        relevant third of its documents. Equal labels share their places here, too, so that this
        changes nothing for intervals of a single label.

    Notes
    -----
    A query with fewer documents than intervals fills some of them only; an interval that no query
    fills is left out.

    Examples
    --------
    >>> import numpy as np
    >>> found = quasi_knn(np.array([[0.9], [0.1], [0.5]]), np.array([2, 0, 1]), np.array([0, 3]), 3)
    >>> found.centers
    array([[0.1, 0.5, 0.9]])
    """
    columns = (column for _, column in columns_of(features))
    labels, ptr = np.array(labels), np.array(ptr)
    grades, grade_of = np.unique(labels, return_inverse=True)
    if cut == "labels" and len(grades) <= intervals:
        number = np.bincount(grade_of).astype(float)
        sums = np.array([np.bincount(grade_of, column) for column in columns])
    else:
        third = CENTERS[center]
        finer, part = (1, 0) if third is None else (3, third)
        order = np.lexsort((labels, np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))))
        sums, number = np.zeros((features.shape[1], intervals)), np.zeros(intervals)
        for column, row in zip(columns, sums, strict=True):
            number[:] = 0.0
            _gather(column, labels, order, ptr, finer, part, row, number)
    filled = np.flatnonzero(number)
    centers = sums[:, filled] / number[filled]
    width = features.max(axis=0).astype(np.float64) - features.min(axis=0)
    return Intervals(_joined(centers, CLOSE * width))


def _joined(centers: FloatArray, close: FloatArray) -> FloatArray:
    """Make centers equal that are so but for rounding: their difference must have no sign."""
    order = np.argsort(centers, axis=1, kind="stable")
    ascending_centers = np.take_along_axis(centers, order, axis=1)
    new = np.diff(ascending_centers, axis=1, prepend=-np.inf) > close[:, None]
    start = np.maximum.accumulate(np.where(new, np.arange(centers.shape[1]), 0), axis=1)
    joined = np.empty_like(centers)
    np.put_along_axis(joined, order, np.take_along_axis(ascending_centers, start, axis=1), axis=1)
    return joined


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def ascending(values: FloatArray) -> IntArray:
    """Return the order of values, lowest first, in linear time unless they are very uneven.

    Any order of all of them if there is a NaN.
    """
    n = len(values)
    low, high = values[0], values[0]
    for i in range(1, n):
        low, high = min(low, values[i]), max(high, values[i])
    scale = (n - 1) / (high - low) if high > low else 0.0
    if not scale < 1e300:
        return stable_order(values)
    bucket, ends = np.empty(n, np.int64), np.zeros(n + 1, np.int64)
    for i in range(n):
        place = (values[i] - low) * scale
        if not 0.0 <= place < n:  # NaN, or the range is infinite
            return stable_order(values)
        bucket[i] = int(place)
        ends[bucket[i] + 1] += 1
    for b in range(n):
        ends[b + 1] += ends[b]
    order = np.empty(n, np.int64)
    for i in range(n):
        order[ends[bucket[i]]] = i
        ends[bucket[i]] += 1
    moves = 0
    for t in range(1, n):  # insertion, inside buckets only
        i, at = order[t], t
        while at > 0 and values[order[at - 1]] > values[i]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
        moves += t - at
        if moves > 8 * n:
            return stable_order(values)
    return order


@kernel
def _gather(
    column: FloatArray,
    labels: IntArray,
    order: IntArray,
    ptr: IntArray,
    finer: int,
    part: int,
    sums: FloatArray,
    number: FloatArray,
) -> None:
    """Add up one feature by intervals, or by one of the `finer` parts of each.

    `order` has each query's documents from the lowest label up. Every place of a tie has the mean
    of the tie.
    """
    k = len(sums)
    for q in range(len(ptr) - 1):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        low = 0
        while low < n:
            high, total = low, 0.0
            while high < n and labels[order[a + high]] == labels[order[a + low]]:
                total += column[order[a + high]]
                high += 1
            for place in range(low, high):
                fine = place * k * finer // n
                if fine % finer == part:
                    sums[fine // finer] += total / (high - low)
                    number[fine // finer] += 1.0
            low = high


@kernel
def _score_values(
    first: int,
    last: int,
    column: FloatArray,
    centers: FloatArray,
    close: float,
    ptr: IntArray,
    table: FloatArray,
    start: IntArray,
    by_value: bool,
    out: FloatArray,
) -> None:
    """Fill in the scores of one feature's values inside the queries from `first` to `last`."""
    k = len(centers)
    rising, falling = True, k > 1
    for c in range(1, k):
        rising = rising and centers[c] > centers[c - 1]
        falling = falling and centers[c] < centers[c - 1]
    up = -1.0 if centers[k - 1] < centers[0] else 1.0
    for q in range(first, last):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        interval, inner, ordered = np.zeros(n), np.empty(n), np.empty(n)
        for i in range(n):
            inner[i] = up * column[a + i]
        if rising or falling:
            order = ascending(inner)
            for i in range(n):
                ordered[i] = inner[order[i]]
        else:
            copy(inner, ordered)
            sort(ordered)
            for i in range(n):
                nearest, distance = 0, abs(column[a + i] - centers[0])
                for c in range(1, k):
                    if abs(column[a + i] - centers[c]) < distance - close:
                        nearest, distance = c, abs(column[a + i] - centers[c])
                before = max(nearest, 1)
                interval[i] = nearest
                inner[i] = np.sign(centers[before] - centers[before - 1]) * column[a + i]
            by_inner = stable_order(inner)
            order = members_by(1.0, interval, by_inner)
        middle, spread = 0.0, 0.0
        for i in range(n):
            middle += ordered[i]
        middle /= n
        if by_value:
            for i in range(n):
                spread += (ordered[i] - middle) ** 2
            spread = np.sqrt(spread / n)
            if not ordered[n - 1] > ordered[0]:
                spread = 0.0
        low = 0
        while low < n:
            i, high = order[low], low + 1
            while high < n and (
                interval[order[high]] == interval[i] and inner[order[high]] == inner[i]
            ):
                high += 1
            score = table[start[q] + low + high - 1]
            if by_value:
                score = 0.0
                if spread > 0.0:
                    for t in range(low, high):
                        score += ordered[t]
                    score = (score / (high - low) - middle) / spread
            for t in range(low, high):
                out[a + order[t]] = score
            low = high


@kernel
def _rank(
    first: int,
    last: int,
    values: FloatArray,
    ptr: IntArray,
    table: FloatArray,
    start: IntArray,
    levels: IntArray,
    pairs: FloatArray,
    out: FloatArray,
    taus: FloatArray,
) -> None:
    """Fill in the scores of ranks, and tau where there are labels, of some of the queries."""
    judged = len(levels) > 0
    for q in range(first, last):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        order = ascending(values[a : a + n])
        size = levels[a : a + n].max() + 1 if judged else 0
        tree = np.zeros(size + 1, np.int64)  # of the levels seen so far, from the bottom up
        # Sums that are equal but for rounding share a rank.
        close = ROUNDING * (values[a + order[n - 1]] - values[a + order[0]])
        low, balance = 0, 0
        while low < n:
            high = low + 1
            while high < n and values[a + order[high]] <= values[a + order[high - 1]] + close:
                high += 1
            for t in range(low, high):
                out[a + order[t]] = table[start[q] + low + high - 1]
            if judged:
                for t in range(low, high):
                    node = levels[a + order[t]]
                    lower, own = 0, node + 1
                    while node > 0:
                        lower += tree[node]
                        node -= node & -node
                    not_higher = 0
                    while own > 0:
                        not_higher += tree[own]
                        own -= own & -own
                    balance += lower - (low - not_higher)
                for t in range(low, high):
                    node = levels[a + order[t]] + 1
                    while node <= size:
                        tree[node] += 1
                        node += node & -node
            low = high
        if judged:
            taus[q] = balance / pairs[q]
