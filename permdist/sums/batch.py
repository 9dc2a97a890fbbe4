"""Sums over the interleavings of many queries: one loop, for any number of classes each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._kernels import kernel
from permdist._parallel import bounds, pack
from permdist.rankings.sorting import copy, members_by
from permdist.sums.blocks import forward as forward_blocks
from permdist.sums.blocks import sums as sums_of_blocks
from permdist.sums.interleavings import tabulate
from permdist.sums.levels import best as best_of_levels
from permdist.sums.levels import forward as forward_levels
from permdist.sums.levels import layout
from permdist.sums.levels import mean_slopes as mean_slopes_of_levels
from permdist.sums.levels import means as means_of_levels
from permdist.sums.levels import slopes as slopes_of_levels
from permdist.sums.shape import MAX_CELLS, cells_of, level_steps
from permdist.sums.tables import Tables
from permdist.sums.two_classes import best as best_of_two
from permdist.sums.two_classes import forward as forward_two
from permdist.sums.two_classes import mean_slopes as mean_slopes_of_two
from permdist.sums.two_classes import means as means_of_two
from permdist.sums.two_classes import slopes as slopes_of_two

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure

    Work = Callable[[int, int], None]
    Spread = Callable[[Work, FloatArray], None]

LOG_SUM, MEAN, BEST, LOGS = range(4)
PER_LEVEL_CELL = 8.0  # the cost of a cell of three classes and more, in cells of two classes
FEW = 40  # sorted by insertion


def refuse_cells(cells: FloatArray, totals: list[IntArray], n_orders: int = 0) -> None:
    """Refuse lattices of too many cells, of queries of more than two labels.

    Two classes grow with the product of their sizes, which is no more than there are pairs.

    Parameters
    ----------
    cells : array of float, shape (queries,)
        0 for queries of two labels.
    totals : list of arrays of int
        The number of documents of each label, of each query.
    n_orders : int
        Fixed orders of the classes, if any.
    """
    total = float(cells.sum()) * max(1, n_orders)
    if total > MAX_CELLS:
        _refuse(total, totals[int(cells.argmax())])


class BatchInterleavings:
    """The interleavings of the classes of every query of a batch.

    F is relative to the best order of the labels. Each method takes the scores, shape
    (documents,), and a function that calls ``work(first, last)`` on ranges of queries of given
    costs; it returns a value per query and the derivatives of each by its own scores.

    Parameters
    ----------
    labels : array of int, shape (documents,)
        Of contiguous queries; each has at least two different ones.
    ptr : array of int, shape (queries + 1,)
        Where each query starts.
    scale : array of float, shape (queries,)
        The factor of score differences in each query.
    measure : Measure
    n_orders : int
        How many fixed orders of the classes to average over; 0 to sort them by score each time.
    distinct : bool
        Whether to divide every term by the number of orders with the same signs, as `blocks` does:
        for two classes in fixed orders only.
    shared : dict, optional
        Keeps the tables of the measure, for several batches.

    Attributes
    ----------
    offsets : array of float, shape (queries,)
        The constant to which each measure's steps add.
    members : array of int, shape (documents,)
        The documents by query and, inside, by label.
    """

    def __init__(
        self,
        labels: IntArray,
        ptr: IntArray,
        scale: FloatArray,
        measure: Measure,
        n_orders: int = 0,
        *,
        distinct: bool = False,
        shared: dict[Any, Any] | None = None,
    ) -> None:
        self._scale, self._n_orders, self._distinct = scale, n_orders, distinct
        known = {} if shared is None else shared
        self._tables: Tables = known.setdefault(("steps", measure, distinct), Tables())
        levels = [np.unique(labels[a:b], return_counts=True) for a, b in bounds(ptr)]
        totals = [total for _, total in levels]
        cells = np.array([cells_of(total) for total in totals])
        many = np.array([len(total) > 2 for total in totals], dtype=bool)
        refuse_cells(cells * many, totals, n_orders)  # before any table is made
        members, offsets, table_at = [], [], []
        for (a, b), (values, total) in zip(bounds(ptr), levels, strict=True):
            members.append(a + np.argsort(labels[a:b], kind="stable"))
            offsets.append(measure.offset(values, total))
            key = values.tobytes(), total.tobytes()
            table = None
            if key not in self._tables:
                by_level = tuple(values.tolist()), tuple(total.tolist())
                if distinct:
                    table = level_steps(measure, *by_level)
                else:
                    table = tabulate(measure, values, total)
            table_at.append(self._tables.place(key, table))
        self.offsets = np.array(offsets)
        sizes, size_ptr = pack(totals)
        self.members, item_ptr = pack(members)
        self._layout = sizes, size_ptr, self.members, item_ptr
        self._table_at = np.array(table_at, dtype=np.int64)
        self._arrangements = np.zeros(0, dtype=np.int64)
        self._bases = np.zeros((len(totals), max(1, n_orders)))
        self._cost = np.where(many, PER_LEVEL_CELL * cells, cells / 2.0 + 20.0 * np.diff(ptr))
        self._cost *= max(1, n_orders)
        if distinct:
            self._cost *= np.diff(ptr)

    def fix_orders(self, arrangements: IntArray, bases: FloatArray) -> None:
        """Fix the orders, and what the log-sum of each is measured from.

        Parameters
        ----------
        arrangements : array of int
            Documents query by query, order by order, and inside class after class.
        bases : array of float, shape (queries, n_orders)
        """
        self._arrangements, self._bases = arrangements, bases

    def logs(self, scores: FloatArray, weight: float, spread: Spread) -> FloatArray:
        """Return the log-sum of each order less its base, shape (queries, n_orders)."""
        found = np.empty_like(self._bases)
        self._run(LOGS, scores, weight, spread, found)
        return found

    def log_sums(
        self, scores: FloatArray, weight: float, spread: Spread
    ) -> tuple[FloatArray, FloatArray]:
        """Return ``log sum_y exp(F(y) + weight * (measure(y) - offset))``."""
        return self._run(LOG_SUM, scores, weight, spread)

    def means(self, scores: FloatArray, spread: Spread) -> tuple[FloatArray, FloatArray]:
        """Return the mean of the measure, less its offset, under ``exp F``."""
        return self._run(MEAN, scores, 0.0, spread)

    def best(
        self, scores: FloatArray, weight: float, spread: Spread
    ) -> tuple[FloatArray, FloatArray]:
        """Return the largest ``F(y) + weight * (measure(y) - offset)``, and a subgradient."""
        return self._run(BEST, scores, weight, spread)

    def _run(
        self,
        task: int,
        scores: FloatArray,
        weight: float,
        spread: Spread,
        found: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        values, gradient = np.empty(len(self._scale)), np.zeros(len(scores))
        layout = *self._layout, self._tables.flat, self._table_at
        inputs = scores, *layout, self._arrangements, self._n_orders, self._scale
        each = np.zeros((0, 0)) if found is None else found
        options = self._bases, task, weight, values, gradient, each
        function = _sum_blocks if self._distinct else _sum_queries

        def work(first: int, last: int) -> None:
            function(first, last, *inputs, *options)

        spread(work, self._cost)
        return values, gradient


def _refuse(cells: float, total: IntArray) -> None:
    raise ValueError(
        f"graded: interleaving the levels takes {cells:,.0f} cells at every step, the limit is "
        f"{MAX_CELLS:,} (a query has levels of {total.tolist()} documents); use "
        "grades='thresholds', graded=False, or fewer different labels"
    )


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def _sum_queries(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    sizes: IntArray,
    size_ptr: IntArray,
    items: IntArray,
    item_ptr: IntArray,
    tables: FloatArray,
    table_at: IntArray,
    arrangements: IntArray,
    n_orders: int,
    scales: FloatArray,
    bases: FloatArray,
    task: int,
    weight: float,
    values: FloatArray,
    gradient: FloatArray,
    each: FloatArray,
) -> None:
    """Fill in values (queries,) and gradient (documents,) of some queries.

    Query q has classes of ``sizes[size_ptr[q]:size_ptr[q + 1]]`` documents, from the lowest level
    up: ``items[item_ptr[q]:item_ptr[q + 1]]``, class after class. With n_orders, arrangements
    holds them in that many orders, whose log-sums are less bases (queries, orders) and go to each,
    of the same shape, if that is all that is asked for; otherwise they are sorted by score.
    """
    orders = max(1, n_orders)
    for q in range(first_query, last_query):
        size = sizes[size_ptr[q] : size_ptr[q + 1]]
        members = items[item_ptr[q] : item_ptr[q + 1]]
        levels, n, factor = len(size), len(members), 2.0 * scales[q]
        strides, first = layout(size)
        states = strides[levels]
        steps = tables[table_at[q] : table_at[q] + levels * states].reshape(levels, states)
        who = np.empty((orders, n), np.int64)
        logs, means = np.zeros(orders), np.zeros(orders)
        slopes, mean_slopes = np.zeros((orders, n)), np.zeros((orders, n))
        scaled = np.empty(n)
        for k in range(orders):
            if n_orders == 0:
                for c in range(levels):
                    _sort_down(members, scores, first[c], first[c + 1], who[k])
            else:
                start = item_ptr[q] * orders + k * n
                copy(arrangements[start : start + n], who[k])
            for i in range(n):
                scaled[i] = factor * scores[who[k, i]]
            if task == BEST:
                if levels == 2:
                    logs[k] = best_of_two(scaled, size, steps, weight, slopes[k])
                else:
                    logs[k] = best_of_levels(scaled, size, steps, weight, slopes[k])
                _share_ties(scaled, first, slopes[k])
                continue
            if levels == 2:
                logs[k], shares = forward_two(scaled, size, steps, weight, False)
            else:
                logs[k], shares = forward_levels(scaled, size, steps, weight, False)
            if task == LOGS:
                continue
            if task == LOG_SUM or orders > 1:
                if levels == 2:
                    slopes_of_two(shares, size, slopes[k])
                else:
                    slopes_of_levels(shares, size, slopes[k])
            if task == MEAN:
                if levels == 2:
                    along = means_of_two(shares, size, steps)
                    mean_slopes_of_two(shares, size, steps, along, mean_slopes[k])
                else:
                    along = means_of_levels(shares, size, steps)
                    mean_slopes_of_levels(shares, size, steps, along, mean_slopes[k])
                means[k] = along[-1]
            if n_orders == 0:
                _share_ties(scaled, first, slopes[k])
                _share_ties(scaled, first, mean_slopes[k])
        for k in range(orders):
            logs[k] -= bases[q, k]
            if task == LOGS:
                each[q, k] = logs[k]
        if task == LOGS:
            continue
        values[q] = _mix(logs, means, slopes, mean_slopes, who, factor, task, gradient)


@kernel
def _sum_blocks(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    sizes: IntArray,
    size_ptr: IntArray,
    _items: IntArray,
    item_ptr: IntArray,
    tables: FloatArray,
    table_at: IntArray,
    arrangements: IntArray,
    n_orders: int,
    scales: FloatArray,
    bases: FloatArray,
    task: int,
    weight: float,
    values: FloatArray,
    gradient: FloatArray,
    each: FloatArray,
) -> None:
    """Do the same for two classes in fixed orders, every block of r items weighed by 1 / r!."""
    for q in range(first_query, last_query):
        size, factor = sizes[size_ptr[q] : size_ptr[q + 1]], 2.0 * scales[q]
        n, states = size[0] + size[1], (size[0] + 1) * (size[1] + 1)
        steps = tables[table_at[q] : table_at[q] + 2 * states].reshape(2, states)
        start = item_ptr[q] * n_orders
        who = arrangements[start : start + n_orders * n].reshape(n_orders, n)
        logs, means = np.zeros(n_orders), np.zeros(n_orders)
        slopes, mean_slopes = np.zeros((n_orders, n)), np.zeros((n_orders, n))
        scaled = np.empty(n)
        for k in range(n_orders):
            for i in range(n):
                scaled[i] = factor * scores[who[k, i]]
            if task == LOGS:
                each[q, k] = forward_blocks(scaled, size, steps, weight)[0] - bases[q, k]
                continue
            inputs = scaled, size, steps, weight, task == MEAN
            found = sums_of_blocks(*inputs, slopes[k], mean_slopes[k])
            logs[k], means[k] = found[0] - bases[q, k], found[1]
        if task != LOGS:
            values[q] = _mix(logs, means, slopes, mean_slopes, who, factor, task, gradient)


@kernel
def _mix(
    logs: FloatArray,
    means: FloatArray,
    slopes: FloatArray,
    mean_slopes: FloatArray,
    who: IntArray,
    factor: float,
    task: int,
    gradient: FloatArray,
) -> float:
    """Average the sums over several orders, or their means; add the derivatives to gradient.

    Shapes: logs and means (orders,), the others (orders, items). Slopes are by scores times
    factor.
    """
    orders, n = who.shape
    largest = logs[0]
    for k in range(1, orders):
        largest = max(largest, logs[k])
    chances, total, mean = np.empty(orders), 0.0, 0.0
    for k in range(orders):
        chances[k] = np.exp(logs[k] - largest)
        total += chances[k]
    for k in range(orders):
        chances[k] /= total
        mean += chances[k] * means[k]
    for k in range(orders):
        for i in range(n):
            more = factor * slopes[k, i]
            if task == MEAN:
                more = factor * mean_slopes[k, i] + (means[k] - mean) * more
            gradient[who[k, i]] += chances[k] * more
    return mean if task == MEAN else largest + np.log(total / orders)


@kernel
def _share_ties(scores: FloatArray, first: IntArray, slopes: FloatArray) -> None:
    """Average slopes (n,) over equal scores of a class, so that no order of the documents matters.

    The mean over all orders of tied documents is a subgradient wherever that of one order is.
    """
    for c in range(len(first) - 1):
        start = first[c]
        for i in range(first[c] + 1, first[c + 1] + 1):
            if i == first[c + 1] or scores[i] != scores[start]:
                if i - start > 1:
                    total = 0.0
                    for k in range(start, i):
                        total += slopes[k]
                    for k in range(start, i):
                        slopes[k] = total / (i - start)
                start = i


@kernel
def _sort_down(members: IntArray, scores: FloatArray, start: int, end: int, out: IntArray) -> None:
    """Sort documents by descending score, equal ones as they are; few of them by insertion."""
    if end - start > FEW:
        copy(members_by(-1.0, scores, members[start:end]), out[start:end])
        return
    for i in range(start, end):
        item, place = members[i], i
        while place > start and scores[out[place - 1]] < scores[item]:
            out[place] = out[place - 1]
            place -= 1
        out[place] = item
