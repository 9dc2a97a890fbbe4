"""Measures at smooth positions with a curvature, and faster where queries are short."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.models.smooth_positions import _fill, _measure, _positions, _slope, _tau
from permdist.rankings.sorting import descending
from permdist.sums.exponential import exp_down

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

DENSE = 300  # documents of a query up to which all pairs are looked at, once


@kernel
def measure_derivatives(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    gains: FloatArray,
    levels: IntArray,
    ptr: IntArray,
    units: FloatArray,
    alpha: float,
    beta: float,
    kind: int,
    window: float,
    measure: int,
    cut: float,
    log2: bool,
    values: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
) -> None:
    """Fill in what `sum_measures` does, and the curvature (documents,).

    The curvature of a document adds up ``|slope by position| alpha^2 sigmoid'`` over the positions
    that its score moves.
    """
    longest = 0
    for q in range(first_query, last_query):
        longest = max(longest, ptr[q + 1] - ptr[q])
    width = (min(longest, DENSE) + 15) // 16 * 16
    above, terms, low = np.empty((width, width)), np.empty((width, width)), np.empty(width)
    for q in range(first_query, last_query):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        dense = n <= DENSE and kind < 2 and measure != 4
        order = np.arange(n) if dense and measure != 1 else descending(scores[a : a + n])
        s, gain = np.empty(n), np.empty(n)
        level = np.empty(n, np.int64)
        for t in range(n):
            s[t] = alpha * scores[a + order[t]]
            gain[t] = gains[a + order[t]] / units[q]
            level[t] = levels[a + order[t]]
        back, curved = np.zeros(n), np.zeros(n)
        if measure == 4:
            value = _tau(s, level, kind, window, back)
            _curve_tau(s, level, kind, curved)
        else:
            good = np.flatnonzero(gain)
            inside = cut if cut < n else np.inf
            slopes = np.zeros(len(good))
            form = gain[good], measure, inside, beta, kind, window, log2
            if dense:
                position = _all_positions(1.0 + kind, s, good, above, terms, low)
                value = _measure(position, *form, slopes)
                _pull_all(good, slopes, terms, back, curved)
            else:
                position = _positions(s, good, kind, window)
                value = _measure(position, *form, slopes)
                _pull_both(s, good, kind, window, slopes, back, curved)
        values[q] = 1.0 - value
        for t in range(n):
            gradient[a + order[t]] = -alpha * back[t]
            curvature[a + order[t]] = alpha * alpha * curved[t]


@kernel(fuse=True)
def _all_positions(
    unit: float,
    scores: FloatArray,
    good: IntArray,
    above: FloatArray,
    terms: FloatArray,
    low: FloatArray,
) -> FloatArray:
    """Return the smooth positions of some documents; keep the slopes of their sigmoids in terms.

    Row t of above and of terms belongs to document ``good[t]``. Rows are as wide as vector
    instructions like them; what is beyond the documents is not used.
    """
    n = len(scores)
    width = (n + 15) // 16 * 16
    for j in range(width):
        low[j] = unit * scores[min(j, n - 1)]
    result = np.empty(len(good))
    for t in range(len(good)):
        own = low[good[t]]
        row, slope = above[t, :width], terms[t, :width]
        for j in range(width):
            x = low[j] - own
            e = exp_down(-abs(x))
            over = 1.0 / (1.0 + e)
            row[j] = over if x > 0.0 else e * over
            slope[j] = unit * e * over * over
        slope[good[t]] = 0.0
        row[good[t]] = 0.0
        for j in range(n, width):
            row[j] = 0.0
        p, p1, p2, p3 = 0.0, 0.0, 0.0, 0.0
        for j in range(0, width, 4):
            p += row[j]
            p1 += row[j + 1]
            p2 += row[j + 2]
            p3 += row[j + 3]
        result[t] = 1.0 + ((p + p1) + (p2 + p3))
    return result


@kernel
def _pull_all(
    good: IntArray, slopes: FloatArray, terms: FloatArray, back: FloatArray, curved: FloatArray
) -> None:
    """Turn derivatives by positions into derivatives by scores (times alpha), and curvatures."""
    n = len(back)
    for t in range(len(good)):
        row, slope, size = terms[t, :n], slopes[t], abs(slopes[t])
        for j in range(n):
            back[j] += slope * row[j]
            curved[j] += size * row[j]
        p, p1, p2, p3 = 0.0, 0.0, 0.0, 0.0
        whole = n - n % 4
        for j in range(0, whole, 4):
            p += row[j]
            p1 += row[j + 1]
            p2 += row[j + 2]
            p3 += row[j + 3]
        for j in range(whole, n):
            p += row[j]
        total = (p + p1) + (p2 + p3)
        back[good[t]] -= slope * total
        curved[good[t]] += size * total


@kernel
def _pull_both(
    scores: FloatArray,
    wanted: IntArray,
    kind: int,
    window: float,
    slopes: FloatArray,
    back: FloatArray,
    curved: FloatArray,
) -> None:
    """Do so where scores fall, in windows beyond which sigmoids are flat."""
    n, first, end = len(scores), 0, 0
    terms = np.empty(n)
    for t in range(len(wanted)):
        i = wanted[t]
        while scores[first] - scores[i] > window:
            first += 1
        end = max(end, i + 1)
        while end < n and scores[i] - scores[end] <= window:
            end += 1
        _fill(kind, True, scores, i, first, end, terms)
        total = 0.0
        for j in range(first, end):
            if j != i:
                back[j] += slopes[t] * terms[j]
                curved[j] += abs(slopes[t]) * terms[j]
                total += terms[j]
        back[i] -= slopes[t] * total
        curved[i] += abs(slopes[t]) * total


@kernel
def _curve_tau(scores: FloatArray, level: IntArray, kind: int, curved: FloatArray) -> None:
    """Add up the slopes of the sigmoids of pairs of different labels, by their number."""
    n, pairs = len(scores), 0
    for i in range(n):
        for j in range(i):
            if level[i] != level[j]:
                pairs += 1
                part = 2.0 * _slope(kind, scores[i] - scores[j])
                curved[i] += part
                curved[j] += part
    for i in range(n):
        curved[i] /= pairs
