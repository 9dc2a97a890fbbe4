"""Sorting and copying for kernels, compiled once and quickly.

The sorts that numba brings take a second each to compile, in every kernel that uses them, and an
array that is assigned to a slice brings two seconds of error messages with it. Kernels use these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from permdist._typing import FloatArray, IntArray

_RUN = 12  # values that are sorted by insertion


@kernel
def ascending(values: NDArray[Any]) -> IntArray:
    """Return the indices that sort values, equal ones in the order of their indices.

    Parameters
    ----------
    values : array, shape (n,)
        Without NaN.
    """
    n = len(values)
    order, other = np.empty(n, np.int64), np.empty(n, np.int64)
    for start in range(0, n, _RUN):
        for i in range(start, min(start + _RUN, n)):
            value, k = values[i], i
            while k > start and values[order[k - 1]] > value:
                order[k] = order[k - 1]
                k -= 1
            order[k] = i
    width = _RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for k in range(start, end):
                if j >= end or (i < middle and values[order[i]] <= values[order[j]]):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order


@kernel
def descending(values: FloatArray) -> IntArray:
    """Return the indices from the largest value down, equal ones in the order of their indices."""
    negative = np.empty(len(values))
    for i in range(len(values)):
        negative[i] = -values[i]
    return ascending(negative)


@kernel
def members_by(sign: float, values: FloatArray, members: IntArray) -> IntArray:
    """Return members by ``sign * values[member]``, the lowest first, equal ones as they are."""
    picked, out = np.empty(len(members)), np.empty(len(members), np.int64)
    for i in range(len(members)):
        picked[i] = sign * values[members[i]]
    order = ascending(picked)
    for i in range(len(members)):
        out[i] = members[order[i]]
    return out


@kernel
def sort(values: NDArray[Any]) -> None:
    """Sort values in place; without NaN."""
    order, old = ascending(values), np.empty(len(values), values.dtype)
    copy(values, old)
    for i in range(len(values)):
        values[i] = old[order[i]]


@kernel
def copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Copy all values of the source, to the beginning of the target."""
    for i in range(len(source)):
        target[i] = source[i]


@kernel
def count_below(values: FloatArray, limit: float) -> int:
    """Return how many values, which ascend, are below a limit."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < limit:
            low = middle + 1
        else:
            high = middle
    return low
