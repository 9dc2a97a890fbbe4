"""Merges of three grades and more: the two-class sums of `merges`, over a lattice of all counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._kernels import kernel
from permdist.distributions.lattice import MAX_CELLS, grade_table

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure
    from permdist.models.batch import Batch


class Grades:
    """The layout of the queries with three grades and more, as the kernel wants it.

    Parameters
    ----------
    batch : Batch
    queries : array of int
        Which of its queries.
    measure : Measure
    orders : int
        How many fixed orders of each grade, 0 to sort them by score.
    """

    def __init__(self, batch: Batch, queries: IntArray, measure: Measure, orders: int) -> None:
        totals, grades, members = [], [], []
        for q in queries:
            a, b = batch.ptr[q], batch.ptr[q + 1]
            grade, total = np.unique(batch.labels[a:b], return_counts=True)
            grades.append(tuple(grade.tolist()))
            totals.append(tuple(total.tolist()))
            members.append(a + np.argsort(batch.labels[a:b], kind="stable"))
        self.cells = np.array([np.prod(np.array(t) + 1.0) * len(t) for t in totals])
        # Two classes grow with the product of their sizes, which is no more than there are pairs.
        many = np.array([len(t) > 2 for t in totals], dtype=bool)
        total_cells = float(self.cells[many].sum()) * max(1, orders)
        if total_cells > MAX_CELLS:
            raise ValueError(
                f"graded: merging the grades takes {total_cells:,.0f} cells at every step, the "
                f"limit is {MAX_CELLS:,} (a query has grades of "
                f"{list(totals[(self.cells * many).argmax()])} documents); use graded=False, "
                "space='restart', or fewer grades"
            )
        where: dict[Any, int] = {}
        tables: list[FloatArray] = []
        at, size = [], 0
        for key in zip(grades, totals, strict=True):
            if key not in where:
                table = grade_table(measure, *key)
                where[key] = size
                tables.append(table.ravel())
                size += table.size
            at.append(where[key])
        self.offsets = np.array(
            [
                measure.offset(np.array(grade), np.array(total))
                for grade, total in zip(grades, totals, strict=True)
            ]
        )
        sizes, size_ptr = packed([np.array(t) for t in totals])
        items, item_ptr = packed(members)
        table = np.concatenate(tables) if tables else np.zeros(0)
        self.layout = sizes, size_ptr, items, item_ptr, table, np.array(at, dtype=np.int64)


def packed(parts: list[IntArray]) -> tuple[IntArray, IntArray]:
    """Put arrays behind each other, and say where each starts."""
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return (np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)), starts


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def mix(
    logs: FloatArray,
    means: FloatArray,
    slopes: FloatArray,
    mean_slopes: FloatArray,
    who: IntArray,
    of_mean: bool,
    gradient: FloatArray,
) -> float:
    """Average the sums over several orders, or their means; add the derivatives to gradient.

    Shapes: logs and means (orders,), the others (orders, items).
    """
    orders, n = who.shape
    largest = logs.max()
    chances = np.exp(logs - largest)
    total = chances.sum()
    chances /= total
    mean = (chances * means).sum()
    for k in range(orders):
        for i in range(n):
            more = slopes[k, i]
            if of_mean:
                more = mean_slopes[k, i] + (means[k] - mean) * more
            gradient[who[k, i]] += chances[k] * more
    return mean if of_mean else largest + np.log(total / orders)


@kernel
def sum_grades(
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
    weight: float,
    of_mean: bool,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Fill in values (queries,) and gradient (documents,) of some queries.

    Query q has the grades ``sizes[size_ptr[q]:size_ptr[q + 1]]``, from the lowest up, and the
    documents ``items[item_ptr[q]:item_ptr[q + 1]]``, grade after grade; arrangements holds them in
    each of n_orders orders, where these are not to be sorted by score.
    """
    orders = max(1, n_orders)
    for q in range(first_query, last_query):
        size = sizes[size_ptr[q] : size_ptr[q + 1]]
        members = items[item_ptr[q] : item_ptr[q + 1]]
        levels, n = len(size), len(members)
        strides, first = np.ones(levels + 1, np.int64), np.zeros(levels + 1, np.int64)
        for c in range(levels):
            strides[c + 1] = strides[c] * (size[c] + 1)
            first[c + 1] = first[c] + size[c]
        states = strides[levels]
        steps = tables[table_at[q] : table_at[q] + levels * states].reshape(levels, states)
        total, shares = np.empty(states), np.empty((states, levels))
        along = np.zeros(states)
        who = np.empty((orders, n), np.int64)
        logs, means = np.empty(orders), np.zeros(orders)
        slopes, mean_slopes = np.zeros((orders, n)), np.zeros((orders, n))
        level_scores = np.empty(n)
        for k in range(orders):
            if n_orders == 0:
                for c in range(levels):
                    grade = members[first[c] : first[c + 1]]
                    who[k, first[c] : first[c + 1]] = grade[
                        np.argsort(-scores[grade], kind="mergesort")
                    ]
            else:
                start = item_ptr[q] * orders + k * n
                who[k] = arrangements[start : start + n]
            for i in range(n):
                level_scores[i] = 2.0 * scales[q] * scores[who[k, i]]
            _climb(level_scores, size, strides, first, steps, weight, total, shares)
            logs[k] = total[-1]
            if of_mean:
                _average(shares, size, strides, steps, along)
                means[k] = along[-1]
            _descend(shares, size, strides, first, steps, along, of_mean, slopes[k], mean_slopes[k])
            slopes[k] *= 2.0 * scales[q]
            mean_slopes[k] *= 2.0 * scales[q]
        values[q] = mix(logs, means, slopes, mean_slopes, who, of_mean, gradient)


@kernel
def _climb(
    level_scores: FloatArray,
    size: IntArray,
    strides: IntArray,
    first: IntArray,
    steps: FloatArray,
    weight: float,
    total: FloatArray,
    shares: FloatArray,
) -> None:
    """Sum up all ways to each state, relative to the best ranking; keep who came last, and how.

    An item counts once for every lower one above it and once, with the other sign, for every
    higher one below it.
    """
    levels = len(size)
    counts = np.zeros(levels, np.int64)
    total[0] = 0.0
    for state in range(1, len(total)):
        c = 0
        while counts[c] == size[c]:
            counts[c] = 0
            c += 1
        counts[c] += 1
        largest, lower, higher = -np.inf, 0, 0
        for c in range(levels):
            higher += size[c] - counts[c]
        for c in range(levels):
            higher -= size[c] - counts[c]
            shares[state, c] = -np.inf
            if counts[c] > 0:
                before = state - strides[c]
                score = level_scores[first[c] + counts[c] - 1]
                term = total[before] + score * (higher - lower) + weight * steps[c, before]
                shares[state, c] = term
                largest = max(largest, term)
            lower += counts[c]
        sum_ = 0.0
        for c in range(levels):
            if counts[c] > 0:
                shares[state, c] = np.exp(shares[state, c] - largest)
                sum_ += shares[state, c]
            else:
                shares[state, c] = 0.0
        for c in range(levels):
            shares[state, c] /= sum_
        total[state] = largest + np.log(sum_)


@kernel
def _average(
    shares: FloatArray, size: IntArray, strides: IntArray, steps: FloatArray, along: FloatArray
) -> None:
    """Average the steps over all ways to each state."""
    for state in range(1, len(along)):
        along[state] = 0.0
        for c in range(len(size)):
            if shares[state, c] > 0.0:
                before = state - strides[c]
                along[state] += shares[state, c] * (along[before] + steps[c, before])


@kernel
def _descend(
    shares: FloatArray,
    size: IntArray,
    strides: IntArray,
    first: IntArray,
    steps: FloatArray,
    along: FloatArray,
    of_mean: bool,
    slopes: FloatArray,
    mean_slopes: FloatArray,
) -> None:
    """Differentiate the log-sum, and the mean, by the score of each place of each grade."""
    levels, states = len(size), len(shares)
    chance, extra = np.zeros(states), np.zeros(states)
    chance[-1] = 1.0
    counts = size.copy()
    for state in range(states - 1, 0, -1):
        if chance[state] > 0.0:
            lower, higher = 0, 0
            for c in range(levels):
                higher += size[c] - counts[c]
            for c in range(levels):
                higher -= size[c] - counts[c]
                share = shares[state, c]
                if share > 0.0:
                    before = state - strides[c]
                    flow = chance[state] * share
                    chance[before] += flow
                    place = first[c] + counts[c] - 1
                    slopes[place] += flow * (higher - lower)
                    if of_mean:
                        surplus = along[before] + steps[c, before] - along[state]
                        more = extra[state] * share + flow * surplus
                        extra[before] += more
                        mean_slopes[place] += more * (higher - lower)
                lower += counts[c]
        c = 0
        while counts[c] == 0:
            counts[c] = size[c]
            c += 1
        counts[c] -= 1
