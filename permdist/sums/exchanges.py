"""Exchanges of two documents: what they do to a measure, and sums over pairs so weighed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist._parallel import bounds, pointers, rows_of
from permdist.sums.exponential import exp_down
from permdist.sums.row_tables import decompose

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure

    Work = Callable[[int, int], None]

CHUNK = 2_000_000  # places of exchanged rankings that are measured at a time
TIMES = 20.0  # nanoseconds per pair


class BatchExchanges:
    """The pairs of documents with different labels of every query, one by one.

    Pairs are numbered query by query; inside, by the document of the higher label, from the lowest
    label up, and then by that of the lower one. Documents of the same label are in the order in
    which they were given.

    Parameters
    ----------
    labels : array of int, shape (documents,)
        Of contiguous queries.
    ptr : array of int, shape (queries + 1,)

    Attributes
    ----------
    n_pairs : array of int, shape (queries,)
    pair_ptr : array of int, shape (queries + 1,)
        The first pair of each query.

    Examples
    --------
    >>> from permdist.measures import AP
    >>> pairs = BatchExchanges(np.array([1, 0, 0]), np.array([0, 3]))
    >>> pairs.changes(AP(), np.array([2.0, 1.0, 3.0]))  # from place 2 to places 3 and 1
    array([-0.16666667,  0.5       ])
    """

    def __init__(self, labels: IntArray, ptr: IntArray) -> None:
        self._labels, self._ptr = labels, ptr
        query = rows_of(ptr)
        self._members = np.lexsort((labels, query))
        label = labels[self._members]
        new = np.r_[True, (np.diff(label) != 0) | (np.diff(query) != 0)]
        first = np.maximum.accumulate(np.where(new, np.arange(len(label)), 0))
        # Of each document, how many of its query have a lower label, and its first pair.
        self._lower = first - ptr[query]
        self._first_pair = pointers(self._lower)
        self.pair_ptr = self._first_pair[ptr]
        self.n_pairs = np.diff(self.pair_ptr)

    def changes(self, measure: Measure, scores: FloatArray) -> FloatArray:
        """Return what exchanging each pair in the ranking by score adds to a measure.

        Equal scores are in the order of the documents. Sums over positions and sums over rows (AP,
        RR and other measures of binary relevance) are in closed form, a few operations per pair;
        for others every exchanged ranking is measured.

        Returns
        -------
        array of float, shape (pairs,)
        """
        found = np.zeros(self._first_pair[-1])
        for (a, b), (first, last) in zip(bounds(self._ptr), bounds(self.pair_ptr), strict=True):
            members = self._members[a:b] - a
            labels, lower = self._labels[a:b], self._lower[a:b]
            order = np.argsort(-scores[a:b], kind="stable")
            place = np.empty(b - a, dtype=np.int64)
            place[order] = np.arange(b - a)
            out = found[first:last]
            form = measure.positional(labels) if measure.additive else None
            if form is not None:
                _of_positions(place[members], lower, form.gains[members], form.weights, out)
                continue
            values, totals = np.unique(labels, return_counts=True)
            steps = decompose(measure, values, totals)
            if steps is None or len(steps.thresholds) > 1:
                _measured(measure, order, labels, place[members], lower, out)
            elif steps.thresholds:
                level, share = steps.thresholds[0]
                cut = int(totals[:level].sum())
                table = share * steps.table
                _of_rows(place[members], lower, cut, table, steps.stride, out)
        return found

    def sums(
        self,
        scores: FloatArray,
        scale: FloatArray,
        weights: FloatArray,
        spread: Callable[[Work, FloatArray], None],
    ) -> tuple[FloatArray, FloatArray]:
        """Add up ``weight log(1 + exp(-2 scale (s_upper - s_lower)))`` over pairs.

        Parameters
        ----------
        scores : array of float, shape (documents,)
        scale : array of float, shape (queries,)
        weights : array of float, shape (pairs,)
        spread : callable
            Calls a function of ranges of queries, given the cost of each.

        Returns
        -------
        values : array of float, shape (queries,)
        gradient : array of float, shape (documents,)
        """
        values, gradient = np.zeros(len(scale)), np.zeros(len(scores))
        layout = self._members, self._ptr, self._lower, self._first_pair

        def work(first: int, last: int) -> None:
            _weighted_sums(first, last, scores, *layout, scale, weights, values, gradient)

        spread(work, TIMES * self.n_pairs + np.diff(self._ptr))
        return values, gradient


def _measured(
    measure: Measure,
    order: IntArray,
    labels: IntArray,
    place: IntArray,
    lower: IntArray,
    out: FloatArray,
) -> None:
    """Fill in changes by measuring every exchanged ranking."""
    upper = np.repeat(np.arange(len(lower)), lower)
    under = np.concatenate([np.arange(count) for count in lower])
    before = float(measure(order, labels))
    step = max(1, CHUNK // len(order))
    for a in range(0, len(out), step):
        one, other = place[upper[a : a + step]], place[under[a : a + step]]
        row = np.arange(len(one))
        orders = np.tile(order, (len(one), 1))
        orders[row, one], orders[row, other] = order[other], order[one]
        out[a : a + step] = measure(orders, labels) - before


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def _of_positions(
    place: IntArray, lower: IntArray, gains: FloatArray, weights: FloatArray, out: FloatArray
) -> None:
    """Fill in changes of ``sum gains[i] weights[place of i]``, documents by label."""
    pair = 0
    for k in range(len(place)):
        for j in range(lower[k]):
            out[pair] = (gains[k] - gains[j]) * (weights[place[j]] - weights[place[k]])
            pair += 1


@kernel
def _of_rows(
    place: IntArray,
    lower: IntArray,
    cut: int,
    table: FloatArray,
    stride: int,
    out: FloatArray,
) -> None:
    """Fill in changes of ``sum_j table[j stride + i]``: good j (from 0) has i bads above it.

    Documents are by label, the bads first, `cut` of them. A good that is exchanged with a bad
    above it moves the goods between them one number down, each with one bad less above it; a good
    that is exchanged with a bad below it does the opposite.
    """
    n = len(place)
    p = n - cut
    is_good = np.zeros(n + 1, np.int64)
    for k in range(cut, n):
        is_good[place[k]] = 1
    above = np.zeros(n + 1, np.int64)  # of each place, the goods above it
    # Sums over the first j goods of what they gain one number down, or one up.
    down, up, own = np.zeros(p + 1), np.zeros(p + 1), np.zeros(p)
    j = 0
    for t in range(n):
        above[t] = j
        if is_good[t]:
            i = t - j
            own[j] = table[j * stride + i]
            down[j + 1] = down[j]
            if j + 1 < p and i > 0:
                down[j + 1] += table[(j + 1) * stride + i - 1] - own[j]
            up[j + 1] = up[j]
            if j > 0 and i < cut:
                up[j + 1] += table[(j - 1) * stride + i + 1] - own[j]
            j += 1
    pair = 0
    for k in range(n):
        for other in range(lower[k]):
            if k < cut or other >= cut:  # both are good, or bad
                out[pair] = 0.0
            else:
                x, y = place[k], place[other]
                a, b = above[x], above[y]
                if y < x:
                    out[pair] = table[b * stride + y - b] + down[a] - down[b] - own[a]
                else:
                    new = table[(b - 1) * stride + y - b + 1]
                    out[pair] = new + up[b] - up[a + 1] - own[a]
            pair += 1


@kernel
def _weighted_sums(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    members: IntArray,
    ptr: IntArray,
    lower: IntArray,
    first_pair: IntArray,
    scales: FloatArray,
    weights: FloatArray,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Fill in values (queries,) and gradient (documents,)."""
    for q in range(first_query, last_query):
        start, factor, total = ptr[q], 2.0 * scales[q], 0.0
        for k in range(start, ptr[q + 1]):
            pair, upper = first_pair[k], members[k]
            score, slope = scores[upper], 0.0
            for j in range(lower[k]):
                weight, other = weights[pair + j], members[start + j]
                x = factor * (score - scores[other])
                small = exp_down(-abs(x))
                total += weight * (np.log1p(small) + max(-x, 0.0))
                wrong = weight * factor * (small if x > 0.0 else 1.0) / (1.0 + small)
                slope -= wrong
                gradient[other] += wrong
            gradient[upper] += slope
        values[q] = total
