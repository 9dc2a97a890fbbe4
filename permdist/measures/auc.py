"""AUC and Kendall's tau: pairs of items with different labels in the right order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import grades
from permdist._kernels import kernel
from permdist.measures.base import Measure, Positional
from permdist.rankings.sorting import copy, count_inversions, different_pairs, sort

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures.placements import Placements


class AUC(Measure):
    """The area under the ROC curve: satisfied pairs over all pairs with different labels.

    With graded labels every pair of items with different labels counts once.

    It is undefined where all labels are equal. Averaged, a tie counts one half.

    References
    ----------
    Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, section 1.6.1.

    Examples
    --------
    >>> float(AUC()([0, 1, 2, 3], labels=[1, 0, 1, 0]))  # three of four pairs
    0.75
    """

    aliases = ("auc",)

    def _values(self, placed: Placements) -> FloatArray:
        return _auc(*placed)

    def _undefined(self, placed: Placements) -> Any:
        return _pairs(placed.ptr, placed.length, placed.grade) == 0

    def step(self, _labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Count the worse items that are still to come; see `Measure.step`."""
        to_come = np.asarray(totals) - np.asarray(above, dtype=np.int64)
        return to_come[..., :level].sum(axis=-1) / different_pairs(totals)

    def positional(self, labels: ArrayLike) -> Positional | None:
        """Linear in the ranks of the good items where labels are binary."""
        label = grades("labels", labels)
        good = label > label.min()
        p, m = int(good.sum()), int((~good).sum())
        if len(np.unique(label)) != 2 or p == 0 or m == 0:
            return None
        # Bad items above the goods: the sum of the goods' ranks less that of the best case.
        weights = -np.arange(len(label)) / (p * m)
        return Positional(good.astype(np.float64), weights, 1 + (p - 1) / (2 * m))


class KendallTau(Measure):
    """Satisfied less violated pairs, over all pairs with different labels: ``2 AUC - 1``.

    For strictly ordered labels this is Kendall's rank correlation; the normalized Kendall
    distance is ``(1 - tau) / 2``.

    It is undefined where all labels are equal. Averaged, a tie counts nothing.

    References
    ----------
    Wang, Mao, Zeng, Xia: Listwise Approaches Based on Feature's Ranking Discovery, equation (5).

    Examples
    --------
    >>> tau = KendallTau()([0, 2, 1], labels=[3, 2, 1])
    >>> round(float(1 - tau) / 2, 3)  # the paper's example: one pair of three
    0.333
    """

    aliases = ("tau", "kendall", "kendalltau")
    range = (-1.0, 1.0)

    def _values(self, placed: Placements) -> FloatArray:
        return 2.0 * _auc(*placed) - 1.0

    def _undefined(self, placed: Placements) -> Any:
        return _pairs(placed.ptr, placed.length, placed.grade) == 0

    def step(self, _labels: IntArray, totals: IntArray, level: int, above: ArrayLike) -> FloatArray:
        """Count worse items still to come less better ones; see `Measure.step`."""
        to_come = np.asarray(totals) - np.asarray(above, dtype=np.int64)
        worse, better = to_come[..., :level].sum(axis=-1), to_come[..., level + 1 :].sum(axis=-1)
        return (worse - better) / different_pairs(totals)


@kernel
def _pairs(ptr: IntArray, length: IntArray, grade: IntArray) -> IntArray:
    """Count the pairs with different labels in every query."""
    out = np.empty(len(length), np.int64)
    for q in range(len(length)):
        own = grade[ptr[q] : ptr[q + 1]]
        zeros = length[q] - len(own)
        equal = zeros * (zeros - 1) // 2
        same = True
        for i in range(1, len(own)):
            same = same and own[i] == own[0]
        if same:
            equal += len(own) * (len(own) - 1) // 2
        else:
            ordered = np.empty(len(own), np.int64)
            copy(own, ordered)
            sort(ordered)
            run = 0
            for i in range(1, len(ordered)):
                run = run + 1 if ordered[i] == ordered[i - 1] else 0
                equal += run
        out[q] = length[q] * (length[q] - 1) // 2 - equal
    return out


@kernel
def _auc(
    ptr: IntArray, length: IntArray, start: IntArray, size: IntArray, grade: IntArray
) -> FloatArray:
    """Divide the satisfied pairs by all pairs; a tied pair counts one half."""
    pairs = _pairs(ptr, length, grade)
    out = np.empty(len(length))
    longest = 0
    for q in range(len(length)):
        longest = max(longest, ptr[q + 1] - ptr[q])
    values, spare = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for q in range(len(length)):
        first, p = ptr[q], ptr[q + 1] - ptr[q]
        zeros = length[q] - p
        satisfied = 0.0
        k = 0
        while k < p:
            end = k + 1
            while end < p and start[first + end] == start[first + k]:
                end += 1
            # Against the zeros: those below the tie count whole, those inside it one half.
            zeros_above = start[first + k] - k
            zeros_tied = size[first + k] - (end - k)
            satisfied += (end - k) * (zeros - zeros_above - 0.5 * zeros_tied)
            # Ascending inside a tie, so that its pairs are not counted as satisfied below.
            for t in range(k, end):
                value = grade[first + t]
                at = t
                while at > k and values[at - 1] > value:
                    values[at] = values[at - 1]
                    at -= 1
                values[at] = value
            run, equal = 0, 0
            for t in range(k + 1, end):
                run = run + 1 if values[t] == values[t - 1] else 0
                equal += run
            satisfied += 0.5 * ((end - k) * (end - k - 1) // 2 - equal)
            k = end
        satisfied += count_inversions(values, spare, p)
        out[q] = satisfied / pairs[q]
    return out
