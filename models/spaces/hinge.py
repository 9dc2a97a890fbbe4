"""The worst ranking instead of a sum over all: loss-augmented inference, exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.models.batch import Batch, in_threads
from permdist.models.spaces.grades import Grades

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure


class StructuredHinge:
    """The largest ``F(y) - F(best) + 1 - measure(y)`` over all rankings y of each query.

    For any pattern of labels, F is largest where documents of the same label are sorted by score,
    so the search is over merges of sorted classes: a longest path in a lattice with one cell for
    every (goods, bads) placed, or for every count of each grade.

    Parameters
    ----------
    batch : Batch
    measure : Measure
    n_jobs : int, optional
        How many queries to work on at the same time; the result does not depend on it.
    """

    def __init__(self, batch: Batch, measure: Measure, n_jobs: int | None = None) -> None:
        self.batch, self.n_jobs = batch, n_jobs
        self._grades = Grades(batch, np.arange(len(batch)), measure, 0)

    def __call__(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give the hinges, shape (queries,), and a subgradient by scores, shape (documents,)."""
        values, gradient = np.empty(len(self.batch)), np.zeros(len(scores))
        layout, scale = self._grades.layout, self.batch.scale

        def work(first: int, last: int) -> None:
            worst_merges(first, last, scores, *layout, scale, values, gradient)

        in_threads(work, self._grades.cells, self.n_jobs)
        return values + 1.0 - self._grades.offsets, gradient


@kernel
def worst_merges(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    sizes: IntArray,
    size_ptr: IntArray,
    items: IntArray,
    item_ptr: IntArray,
    tables: FloatArray,
    table_at: IntArray,
    scales: FloatArray,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Fill in values (queries,) and gradient (documents,); the layout is that of `Grades`."""
    for q in range(first_query, last_query):
        size = sizes[size_ptr[q] : size_ptr[q + 1]]
        members = items[item_ptr[q] : item_ptr[q + 1]]
        levels, n = len(size), len(members)
        strides, first = np.ones(levels + 1, np.int64), np.zeros(levels + 1, np.int64)
        who, weight = np.empty(n, np.int64), np.empty(n)
        for c in range(levels):
            strides[c + 1] = strides[c] * (size[c] + 1)
            first[c + 1] = first[c] + size[c]
            _sort_down(members, scores, first[c], first[c + 1], who)
        for i in range(n):
            weight[i] = 2.0 * scales[q] * scores[who[i]]
        states = strides[levels]
        steps = tables[table_at[q] : table_at[q] + levels * states].reshape(levels, states)
        total, last = np.empty(states), np.zeros(states, np.int8)
        total[0] = 0.0
        counts = np.zeros(levels, np.int64)
        if levels == 2:
            _worst_of_two(weight, size, steps, total, last)
            counts[:] = size
        for state in range(1, states if levels > 2 else 0):
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
                if counts[c] > 0:
                    before = state - strides[c]
                    gain = weight[first[c] + counts[c] - 1] * (higher - lower)
                    term = total[before] + gain - steps[c, before]
                    if term > largest:
                        largest, last[state] = term, c
                lower += counts[c]
            total[state] = largest
        values[q] = total[states - 1]
        state = states - 1
        while state > 0:
            c = last[state]
            lower, higher = 0, 0
            for other in range(levels):
                if other < c:
                    lower += counts[other]
                elif other > c:
                    higher += size[other] - counts[other]
            gradient[who[first[c] + counts[c] - 1]] += 2.0 * scales[q] * (higher - lower)
            counts[c] -= 1
            state -= strides[c]


@kernel
def _sort_down(members: IntArray, scores: FloatArray, start: int, end: int, out: IntArray) -> None:
    """Sort documents by descending score, equal ones as they are; few of them by insertion."""
    if end - start > 40:
        part = members[start:end]
        out[start:end] = part[np.argsort(-scores[part], kind="mergesort")]
        return
    for i in range(start, end):
        item, place = members[i], i
        while place > start and scores[out[place - 1]] < scores[item]:
            out[place] = out[place - 1]
            place -= 1
        out[place] = item


@kernel
def _worst_of_two(
    weight: FloatArray, size: IntArray, steps: FloatArray, total: FloatArray, last: IntArray
) -> None:
    """Do the same for two classes, row by row: j goods are placed, and i bads."""
    m, p = size
    for i in range(1, m + 1):
        total[i] = total[i - 1] + weight[i - 1] * p - steps[0, i - 1]
    for j in range(1, p + 1):
        row, above = j * (m + 1), (j - 1) * (m + 1)
        lift, left = -weight[m + j - 1], float(p - j)
        for i in range(m + 1):
            total[row + i] = total[above + i] + lift * i - steps[1, above + i]
        last[row] = 1
        here = total[row]
        for i in range(1, m + 1):
            # Without a branch: which way is better is as good as random.
            by_bad, by_good = here + weight[i - 1] * left - steps[0, row + i - 1], total[row + i]
            last[row + i] = by_good >= by_bad
            here = max(by_good, by_bad)
            total[row + i] = here
