"""The good-bad pair model over sign vectors: sums over all pairs in O(n log n) plus a window.

Beyond a difference of about 37 the kernels are exactly 0, 1 or linear in double precision, so that
only neighbors in sorted order need a look at each pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist._parallel import bounds, pointers, rows_of
from permdist.rankings.sorting import different_pairs, members_by
from permdist.sums.exponential import exp_down

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
    longest = 0
    for q in range(first_query, last_query):
        longest = max(longest, class_ptr[first[q + 1]] - class_ptr[first[q]])
    order, ascending = np.empty(longest, np.int64), np.empty(longest)
    by_good, by_bad = np.empty(longest), np.empty(longest)
    more_good, more_bad = np.empty(longest), np.empty(longest)
    size, tanh, slope = np.empty(longest), np.empty(longest), np.empty(longest)
    prefix, charge = np.empty(longest + 1), np.empty(longest + 1)
    for q in range(first_query, last_query):
        start, scale = class_ptr[first[q]], scales[q]
        for c in range(first[q], first[q + 1]):
            by_score = members_by(1.0, scores, classes[class_ptr[c] : class_ptr[c + 1]])
            for k in range(len(by_score)):
                order[class_ptr[c] - start + k] = by_score[k]
                ascending[class_ptr[c] - start + k] = scores[by_score[k]]
        for upper in range(first[q] + 1, first[q + 1]):
            good, p = class_ptr[upper] - start, class_ptr[upper + 1] - class_ptr[upper]
            for lower in range(first[q], upper):
                bad, m = class_ptr[lower] - start, class_ptr[lower + 1] - class_ptr[lower]
                value, right = _sum_two_classes(
                    ascending[good : good + p],
                    ascending[bad : bad + m],
                    scale,
                    tilts[q],
                    prefix,
                    charge,
                    size,
                    tanh,
                    slope,
                    by_good,
                    by_bad,
                    more_good,
                    more_bad,
                )
                values[0, q] += value
                values[1, q] += right
                for i in range(p):
                    gradients[0, order[good + i]] += scale * by_good[i]
                    gradients[1, order[good + i]] += scale * more_good[i]
                for i in range(m):
                    gradients[0, order[bad + i]] += scale * by_bad[i]
                    gradients[1, order[bad + i]] += scale * more_bad[i]


@kernel
def _sum_two_classes(
    good: FloatArray,
    bad: FloatArray,
    scale: float,
    tilt: float,
    prefix: FloatArray,
    charge: FloatArray,
    size: FloatArray,
    tanh: FloatArray,
    slope: FloatArray,
    by_good: FloatArray,
    by_bad: FloatArray,
    more_good: FloatArray,
    more_bad: FloatArray,
) -> tuple[float, float]:
    """Sum over good x bad, both ascending: log 2cosh(x) with x = scale (g - b) - tilt / 2.

    Returns the sum plus tilt / 2 per pair, and the sum of sigmoid(2x); fills in the derivatives of
    both by the good and the bad scores, divided by scale. What comes before them is work space.
    """
    p, m = len(good), len(bad)
    prefix[0] = 0.0
    for j in range(m):
        prefix[j + 1] = prefix[j] + bad[j]
        by_bad[j], more_bad[j] = 0.0, 0.0
    # Outside the window tanh is +-1: whole ranges of bads are charged at their ends.
    for j in range(m + 1):
        charge[j] = 0.0
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
        charge[0] -= 1.0
        charge[low] += 1.0
        charge[high] += 1.0
        charge[m] -= 1.0
        middle = scale * good[i] - tilt / 2
        _look_at(middle, scale, low, high, bad, size, tanh, slope, by_bad, more_bad)
        product = 1.0
        upward, more = float(low - (m - high)), 0.0
        for j in range(low, high):
            value += abs(middle - scale * bad[j])
            product *= size[j]
            if (j - low) % 512 == 511:  # each factor is 2 at most
                value += np.log(product)
                product = 1.0
            upward += tanh[j]
            more += slope[j]
        by_good[i], more_good[i] = upward, more
        value += np.log(product)
        right += 0.5 * (high - low)
        for j in range(low, high):
            right += 0.5 * tanh[j]
    running = 0.0
    for j in range(m):
        running += charge[j]
        by_bad[j] += running
    return value + p * m * tilt / 2, right


@kernel(fuse=True)
def _look_at(
    middle: float,
    scale: float,
    low: int,
    high: int,
    bad: FloatArray,
    size: FloatArray,
    tanh: FloatArray,
    slope: FloatArray,
    by_bad: FloatArray,
    more_bad: FloatArray,
) -> None:
    """Fill in ``1 + exp(-2 |x|)``, tanh(x) and its slope, ``x = middle - scale bad``; add up."""
    # Numbers without a sign cannot count from the end, which would keep the loop from vectorizing.
    for j in range(np.uint64(low), np.uint64(high)):
        x = middle - scale * bad[j]
        small = exp_down(-2.0 * abs(x))
        over = 1.0 / (1.0 + small)
        size[j] = 1.0 + small
        tanh[j] = np.copysign((1.0 - small) * over, x)
        slope[j] = 2.0 * small * over * over
        by_bad[j] -= tanh[j]
        more_bad[j] -= slope[j]
