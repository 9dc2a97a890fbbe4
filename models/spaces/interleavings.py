"""Interleavings of the classes, each in a fixed order: sorted by score, or drawn beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._check import as_rng, count
from permdist._kernels import kernel
from permdist.distributions.merges import (
    _backward,
    _backward_mean,
    _forward,
    _means,
    diagonal_steps,
)
from permdist.models.spaces.base import Sums
from permdist.models.spaces.grades import Grades, mix, packed, sum_grades

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.measures import Measure
    from permdist.models.batch import Batch


class InterleavingSums(Sums):
    """All ways to merge the classes, each sorted by score.

    ``log_sums`` is convex in the scores: for every pattern of labels, sorting inside the classes
    gives the largest F, so the sum is over maxima of linear functions. It has kinks where scores
    of a class tie.
    """

    n_orders = 0  # sorted anew for every call

    def __init__(self, batch: Batch, measure: Measure, n_jobs: int | None = None) -> None:
        super().__init__(batch, measure, n_jobs)
        self._binary = np.flatnonzero(batch.is_binary)
        self._graded = np.flatnonzero(~batch.is_binary)
        self._arrangements = self._graded_arrangements = np.zeros(0, dtype=np.int64)
        self._grades = Grades(batch, self._graded, measure, self.n_orders)
        goods, bads, tables, at, offsets = [], [], [], [], []
        where: dict[tuple[int, ...], int] = {}
        size = 0
        for q in self._binary:
            a, b = batch.ptr[q], batch.ptr[q + 1]
            (low, high), (m, p) = np.unique(batch.labels[a:b], return_counts=True)
            key = (int(low), int(high), int(m), int(p))
            if key not in where:
                table = diagonal_steps(measure, key[:2], key[2:])
                where[key] = size
                tables.append(table.ravel())
                size += table.size
            at.append(where[key])
            offsets.append(measure.offset(np.array(key[:2]), np.array(key[2:])))
            goods.append(a + np.flatnonzero(batch.labels[a:b] == high))
            bads.append(a + np.flatnonzero(batch.labels[a:b] == low))
        good, good_ptr = packed(goods)
        bad, bad_ptr = packed(bads)
        table = np.concatenate(tables) if tables else np.zeros(0)
        self._layout = good, good_ptr, bad, bad_ptr, table, np.array(at, dtype=np.int64)
        self._offsets = np.empty(len(batch))
        self._offsets[self._binary], self._offsets[self._graded] = offsets, self._grades.offsets
        p, m = np.diff(good_ptr), np.diff(bad_ptr)
        self._cost = (p + 1.0) * (m + 1.0) + 20.0 * (p + m)

    def log_sums(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:
        """Sum over all interleavings."""
        values, gradient = self._run(scores, -kappa, False)
        return values + kappa * (1.0 - self._offsets), gradient

    def mean_gains(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Average over all interleavings."""
        values, gradient = self._run(scores, 0.0, True)
        return values + self._offsets, gradient

    def _run(
        self, scores: FloatArray, weight: float, of_mean: bool
    ) -> tuple[FloatArray, FloatArray]:
        values, gradient = np.empty(len(self.batch)), np.zeros(len(scores))
        two, more = np.empty(len(self._binary)), np.empty(len(self._graded))
        options = weight, of_mean

        def sum_two(first: int, last: int) -> None:
            order = self._arrangements, self.n_orders, self.batch.scale[self._binary]
            _sum_merges(first, last, scores, *self._layout, *order, *options, two, gradient)

        def sum_more(first: int, last: int) -> None:
            order = self._graded_arrangements, self.n_orders, self.batch.scale[self._graded]
            layout = self._grades.layout
            sum_grades(first, last, scores, *layout, *order, *options, more, gradient)

        self._in_threads(sum_two, self._cost)
        self._in_threads(sum_more, self._grades.cells)
        values[self._binary], values[self._graded] = two, more
        return values, gradient


class LatticeSums(InterleavingSums):
    """All ways to merge the classes, for several fixed orders of each class, and their mean.

    The orders are drawn once. ``log_sums`` is smooth, convex, and the mean of the sums is an
    unbiased estimate of the mean over all orders.

    Parameters
    ----------
    orders : int
        How many.
    rng : int, Generator or None
    """

    def __init__(
        self,
        batch: Batch,
        measure: Measure,
        n_jobs: int | None = None,
        *,
        orders: int = 4,
        rng: RandomState = None,
    ) -> None:
        self.n_orders = count("orders", orders)
        super().__init__(batch, measure, n_jobs)
        generator = as_rng(rng)
        two: list[IntArray] = []
        more: list[IntArray] = []
        for q in range(len(batch)):
            a, b = batch.ptr[q], batch.ptr[q + 1]
            label = batch.labels[a:b]
            members = [a + np.flatnonzero(label == grade) for grade in np.unique(label)]
            for _ in range(self.n_orders):
                drawn = [generator.permutation(grade) for grade in members]
                if len(members) == 2:
                    two += drawn[::-1]
                else:
                    more += drawn
        self._arrangements, self._graded_arrangements = packed(two)[0], packed(more)[0]
        self._cost *= self.n_orders


# ---- kernels ------------------------------------------------------------------------------------


@kernel(fuse=True)
def _sum_merges(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    goods: IntArray,
    good_ptr: IntArray,
    bads: IntArray,
    bad_ptr: IntArray,
    tables: FloatArray,
    table_at: IntArray,
    arrangements: IntArray,
    n_orders: int,
    scales: FloatArray,
    weight: float,
    of_mean: bool,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Fill in values (queries,) and gradient (documents,) of some queries.

    n_orders is 0 where the classes are to be sorted by score; otherwise arrangements holds, for
    each query and each of its orders, the goods and then the bads.
    """
    orders = max(1, n_orders)
    for q in range(first_query, last_query):
        good, bad = goods[good_ptr[q] : good_ptr[q + 1]], bads[bad_ptr[q] : bad_ptr[q + 1]]
        p, m, scale = len(good), len(bad), scales[q]
        n, cells = p + m, (p + 1) * (m + 1)
        first = np.empty(n + 2, np.int64)
        first[0] = 0
        for t in range(n + 1):
            first[t + 1] = first[t] + min(p, t) - max(0, t - m) + 1
        steps = tables[table_at[q] : table_at[q] + 2 * cells].reshape(2, cells)
        shares = np.empty((2, cells))
        above, least, sums = np.zeros(p + 1), np.zeros(p + 1), np.zeros(m + 1)
        who = np.empty((orders, n), np.int64)
        logs, means = np.empty(orders), np.zeros(orders)
        slopes, mean_slopes = np.empty((orders, n)), np.zeros((orders, n))
        for k in range(orders):
            if n_orders == 0:
                who[0, :p] = good[np.argsort(-scores[good], kind="mergesort")]
                who[0, p:] = bad[np.argsort(-scores[bad], kind="mergesort")]
            else:
                start = (good_ptr[q] + bad_ptr[q]) * orders + k * n
                who[k] = arrangements[start : start + n]
            for j in range(p):
                above[j + 1] = scale * scores[who[k, j]]
            for i in range(m):
                sums[m - i - 1] = sums[m - i] + scale * scores[who[k, p + i]]
            logs[k] = _forward(above, least, sums, steps, weight, first, shares)
            passed, after = _backward(shares, first, p, m)
            _slopes(passed, after, scale, slopes[k])
            if of_mean:
                along = _means(shares, steps, first, p, m)
                means[k] = along[-1]
                passed, after = _backward_mean(shares, steps, along, first, p, m)
                _slopes(passed, after, scale, mean_slopes[k])
        values[q] = mix(logs, means, slopes, mean_slopes, who, of_mean, gradient)


@kernel
def _slopes(passed: FloatArray, after: FloatArray, scale: float, out: FloatArray) -> None:
    """Turn bads above each good, and goods placed after i bads, into derivatives by scores."""
    p, m = len(passed), len(after) - 1
    for j in range(p):
        out[j] = -2.0 * scale * passed[j]
    running = 0.0
    for i in range(m - 1, -1, -1):
        running += after[i + 1]
        out[p + i] = 2.0 * scale * running
