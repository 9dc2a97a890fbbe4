"""Derivatives of the log-probabilities of single records of rankings with ties."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


@kernel
def log_prob_slopes(
    utilities: FloatArray, deltas: FloatArray, ptr: IntArray, sizes: IntArray, stages: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Differentiate the log-probability of each record, for any spread of utilities.

    Records and deltas are as in `permdist.sums.davidson`. Polynomials of all alternatives but one
    are products of those before it and those after it: nothing is subtracted.

    Returns
    -------
    by_utility : array of float, shape (len(utilities),)
    by_tie : array of float, shape (records, len(deltas))
        By log delta_t, at t.
    """
    records, most = len(ptr) - 1, len(deltas)
    by_utility, by_tie = np.zeros(len(utilities)), np.zeros((records, most))
    longest = 0
    for row in range(records):
        longest = max(longest, ptr[row + 1] - ptr[row])
    x, chances = np.empty(longest), np.empty((longest, most))
    before, after = np.empty((longest + 1, most)), np.empty((longest + 1, most))
    weights = np.empty(most)
    for row in range(records):
        start, end = ptr[row], ptr[row + 1]
        for stage in range(stages[row], stages[row + 1]):
            values = utilities[start:end]
            m, high, total = len(values), values.max(), 0.0
            for t in range(1, min(most, m + 1)):
                for k in range(m):
                    x[k] = np.exp((values[k] - high) / t)
                _multiply_up(x, m, t, before)
                _multiply_down(x, m, t, after)
                weights[t] = deltas[t] * before[m, t]
                total += weights[t]
                for k in range(m):
                    others = 0.0
                    for degree in range(t):
                        others += before[k, degree] * after[k + 1, t - 1 - degree]
                    chances[k, t] = deltas[t] * x[k] * others
            size = sizes[stage]
            by_tie[row, size] += 1.0
            for t in range(1, min(most, m + 1)):
                by_tie[row, t] -= weights[t] / total
                for k in range(m):
                    by_utility[start + k] -= chances[k, t] / (t * total)
            for k in range(size):
                by_utility[start + k] += 1.0 / size
            start += size
    return by_utility, by_tie


@kernel
def _multiply_up(x: FloatArray, m: int, most: int, table: FloatArray) -> None:
    """Fill in the polynomials of the first 0, 1, ..., m numbers, up to a degree."""
    for degree in range(most + 1):
        table[0, degree] = 1.0 if degree == 0 else 0.0
    for k in range(m):
        table[k + 1, 0] = 1.0
        for degree in range(1, most + 1):
            table[k + 1, degree] = table[k, degree] + x[k] * table[k, degree - 1]


@kernel
def _multiply_down(x: FloatArray, m: int, most: int, table: FloatArray) -> None:
    """Fill in the polynomials of the last m, ..., 1, 0 numbers, up to a degree."""
    for degree in range(most + 1):
        table[m, degree] = 1.0 if degree == 0 else 0.0
    for k in range(m - 1, -1, -1):
        table[k, 0] = 1.0
        for degree in range(1, most + 1):
            table[k, degree] = table[k + 1, degree] + x[k] * table[k + 1, degree - 1]
