"""The good-bad pair model over sign vectors: sums over all pairs in O(n log n) plus a window.

Beyond a difference of about 37 the kernels are exactly 0, 1 or linear in double precision, so that
only neighbors in sorted order need a look at each pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._exp import exp_down
from permdist._inversions import different_pairs
from permdist._kernels import kernel
from permdist._loops import members_by
from permdist._ragged import bounds, pointers, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray

    Work = Callable[[int, int], None]

SATURATED = 19.0  # tanh(19) is 1 and log1p(exp(-38)) is 0, next to what they are added to


class BatchPairs:
    """The pairs of documents with different labels, for every query of a batch.

    Parameters
    ----------
    labels : array of int, shape (documents,)
        Of contiguous queries.
    ptr : array of int, shape (queries + 1,)

    Attributes
    ----------
    n_pairs : array of float, shape (queries,)
    cost : array of float, shape (queries,)
        About how long each query takes.
    """

    def __init__(self, labels: IntArray, ptr: IntArray) -> None:
        # Documents by query and, inside, by label; and where each such class starts.
        members = np.lexsort((labels, rows_of(ptr)))
        totals = [np.unique(labels[a:b], return_counts=True)[1] for a, b in bounds(ptr)]
        class_ptr = pointers(np.concatenate(totals) if totals else [])
        self._layout = members, class_ptr, pointers([len(total) for total in totals])
        self.n_pairs = np.array([float(different_pairs(total)) for total in totals])
        self.cost = self.n_pairs + 20.0 * np.diff(ptr)

    def sums(
        self,
        scores: FloatArray,
        scale: FloatArray,
        tilts: FloatArray,
        spread: Callable[[Work, FloatArray], None],
    ) -> tuple[FloatArray, FloatArray]:
        """Add up over the pairs of each query, ``x = scale (s_upper - s_lower)``.

        Returns
        -------
        values : array of float, shape (2, queries)
            ``sum log(exp(x) + exp(-x + tilt))``, and the expected number of pairs in the right
            order.
        gradients : array of float, shape (2, documents)
            Of both by the scores.
        """
        work, values, gradients = self.begin(scores, scale, tilts)
        spread(work, self.cost)
        return values, gradients

    def begin(
        self, scores: FloatArray, scale: FloatArray, tilts: FloatArray
    ) -> tuple[Work, FloatArray, FloatArray]:
        """Return what fills in the results of `sums` for some queries, and these results."""
        values, gradients = np.zeros((2, len(scale))), np.zeros((2, len(scores)))

        def work(first: int, last: int) -> None:
            _sum_queries(first, last, scores, *self._layout, scale, tilts, values, gradients)

        return work, values, gradients


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def _sum_queries(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    classes: IntArray,
    class_ptr: IntArray,
    first: IntArray,
    scales: FloatArray,
    tilts: FloatArray,
    values: FloatArray,
    gradients: FloatArray,
) -> None:
    """Add log-partitions and numbers of pairs in the right order to values and gradients.

    The classes of query q are number ``first[q]`` to ``first[q + 1]``, from the lowest label up;
    class c holds the documents ``classes[class_ptr[c]:class_ptr[c + 1]]``.
    """
    for q in range(first_query, last_query):
        start, end = class_ptr[first[q]], class_ptr[first[q + 1]]
        order, ascending = np.empty(end - start, np.int64), np.empty(end - start)
        for c in range(first[q], first[q + 1]):
            by_score = members_by(1.0, scores, classes[class_ptr[c] : class_ptr[c + 1]])
            for k in range(len(by_score)):
                order[class_ptr[c] - start + k] = by_score[k]
                ascending[class_ptr[c] - start + k] = scores[by_score[k]]
        for upper in range(first[q] + 1, first[q + 1]):
            good = slice(class_ptr[upper] - start, class_ptr[upper + 1] - start)
            for lower in range(first[q], upper):
                bad = slice(class_ptr[lower] - start, class_ptr[lower + 1] - start)
                value, right, by_good, by_bad, more_good, more_bad = _sum_two_classes(
                    ascending[good], ascending[bad], scales[q], tilts[q]
                )
                values[0, q] += value
                values[1, q] += right
                for i in range(len(by_good)):
                    gradients[0, order[good][i]] += by_good[i]
                    gradients[1, order[good][i]] += more_good[i]
                for i in range(len(by_bad)):
                    gradients[0, order[bad][i]] += by_bad[i]
                    gradients[1, order[bad][i]] += more_bad[i]


@kernel
def _sum_two_classes(
    good: FloatArray, bad: FloatArray, scale: float, tilt: float
) -> tuple[float, float, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sum over good x bad, both ascending: log 2cosh(x) with x = scale (g - b) - tilt / 2.

    Returns the sum plus tilt / 2 per pair, the sum of sigmoid(2x), and the derivatives of both by
    the good and the bad scores.
    """
    p, m = len(good), len(bad)
    prefix = np.zeros(m + 1)
    for j in range(m):
        prefix[j + 1] = prefix[j] + bad[j]
    by_good, by_bad = np.zeros(p), np.zeros(m)
    more_good, more_bad = np.zeros(p), np.zeros(m)
    size, tanh, slope = np.empty(m), np.empty(m), np.empty(m)
    # Outside the window tanh is +-1: whole ranges of bads are charged at their ends.
    charge = np.zeros(m + 1)
    value, right = 0.0, 0.0
    low, high = 0, 0
    for i in range(p):
        # bads[:low] are so far below that x > SATURATED, bads[high:] so far above that -x is.
        while low < m and scale * (good[i] - bad[low]) - tilt / 2 > SATURATED:
            low += 1
        high = max(high, low)
        while high < m and scale * (good[i] - bad[high]) - tilt / 2 >= -SATURATED:
            high += 1
        value += scale * (low * good[i] - prefix[low]) - low * tilt / 2
        value -= scale * ((m - high) * good[i] - (prefix[m] - prefix[high])) - (m - high) * tilt / 2
        right += low
        by_good[i] += low - (m - high)
        charge[0] -= 1.0
        charge[low] += 1.0
        charge[high] += 1.0
        charge[m] -= 1.0
        window = slice(low, high)
        middle = scale * good[i] - tilt / 2
        pair = middle, scale
        tanhs, slopes = tanh[window], slope[window]
        _look_at(pair, bad[window], size[window], tanhs, slopes, by_bad[window], more_bad[window])
        product = 1.0
        for j in range(high - low):
            value += abs(middle - scale * bad[low + j])
            product *= size[low + j]
            if j % 512 == 511:  # each factor is 2 at most
                value += np.log(product)
                product = 1.0
            by_good[i] += tanhs[j]
            more_good[i] += slopes[j]
        value += np.log(product)
        right += 0.5 * (high - low)
        for j in range(high - low):
            right += 0.5 * tanhs[j]
    running = 0.0
    for j in range(m):
        running += charge[j]
        by_bad[j] += running
    value += p * m * tilt / 2
    return (
        value,
        right,
        scale * by_good,
        scale * by_bad,
        scale * more_good,
        scale * more_bad,
    )


@kernel(fuse=True)
def _look_at(
    pair: tuple[float, float],
    bad: FloatArray,
    size: FloatArray,
    tanh: FloatArray,
    slope: FloatArray,
    by_bad: FloatArray,
    more_bad: FloatArray,
) -> None:
    """Fill in ``1 + exp(-2 |x|)``, tanh(x) and its slope, ``x = pair[0] - pair[1] bad``; add up."""
    middle, scale = pair
    for j in range(len(bad)):
        x = middle - scale * bad[j]
        small = exp_down(-2.0 * abs(x))
        over = 1.0 / (1.0 + small)
        size[j] = 1.0 + small
        tanh[j] = np.copysign((1.0 - small) * over, x)
        slope[j] = 2.0 * small * over * over
        by_bad[j] -= tanh[j]
        more_bad[j] -= slope[j]
