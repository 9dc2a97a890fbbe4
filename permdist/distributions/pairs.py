"""Sums over all good-bad pairs of a saturating function, in O(n log n) plus a window.

Beyond a difference of about 37 the kernels are exactly 0, 1 or linear in double precision, so that
only neighbors in sorted order need a look at each pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from permdist._kernels import kernel
from permdist._typing import FloatArray, IntArray

SATURATED = 19.0  # tanh(19) is 1 and log1p(exp(-38)) is 0, next to what they are added to


class PairSums(NamedTuple):
    """Sums over pairs of items with different labels.

    Attributes
    ----------
    log_partition : float
        ``sum log(exp(x) + exp(-x + tilt))`` over pairs, ``x = scale (s_upper - s_lower)``.
    satisfied : float
        The expected number of pairs in the right order.
    gradient : array of float, shape (n,)
        Of the log-partition by the scores.
    satisfied_gradient : array of float, shape (n,)
    """

    log_partition: float
    satisfied: float
    gradient: FloatArray
    satisfied_gradient: FloatArray


def pair_sums(scores: FloatArray, labels: IntArray, scale: float, tilt: float) -> PairSums:
    """Add up over all pairs of items with different labels, grade by grade."""
    levels = np.unique(labels)
    groups = [np.flatnonzero(labels == level) for level in levels]
    groups = [group[np.argsort(scores[group], kind="stable")] for group in groups]
    gradient, satisfied_gradient = np.zeros(len(scores)), np.zeros(len(scores))
    log_partition = satisfied = 0.0
    for upper in range(1, len(groups)):
        for lower in range(upper):
            good, bad = groups[upper], groups[lower]
            value, right, by_good, by_bad, more_good, more_bad = two_classes(
                scores[good], scores[bad], scale, tilt
            )
            log_partition += value
            satisfied += right
            gradient[good] += by_good
            gradient[bad] += by_bad
            satisfied_gradient[good] += more_good
            satisfied_gradient[bad] += more_bad
    return PairSums(log_partition, satisfied, gradient, satisfied_gradient)


@kernel
def two_classes(
    good: FloatArray, bad: FloatArray, scale: float, tilt: float
) -> tuple[float, float, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sum over good x bad, both ascending: log 2cosh(x) with x = scale (g - b) - tilt / 2.

    Returns the sum plus tilt / 2 a pair, the sum of sigmoid(2x), and the derivatives of both by
    the good and the bad scores.
    """
    p, m = len(good), len(bad)
    prefix = np.zeros(m + 1)
    for j in range(m):
        prefix[j + 1] = prefix[j] + bad[j]
    by_good, by_bad = np.zeros(p), np.zeros(m)
    more_good, more_bad = np.zeros(p), np.zeros(m)
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
        for j in range(low, high):
            x = scale * (good[i] - bad[j]) - tilt / 2
            small = np.exp(-2.0 * abs(x))
            value += abs(x) + np.log1p(small)
            tanh = (1.0 - small) / (1.0 + small)
            chance = 1.0 / (1.0 + small)
            if x < 0.0:
                tanh, chance = -tanh, small / (1.0 + small)
            right += chance
            by_good[i] += tanh
            by_bad[j] -= tanh
            slope = 2.0 * small / (1.0 + small) ** 2
            more_good[i] += slope
            more_bad[j] -= slope
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
