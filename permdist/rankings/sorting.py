"""Sorting, copying and counting inversions, for kernels: compiled once and quickly.

The sorts that numba brings take a second each to compile, in every kernel that uses them, and an
array that is assigned to a slice brings two seconds of error messages with it. Kernels use these.
Inversions are counted in O(n log n): the kernel under Kendall distances, AUC and Kendall's tau.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

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


def different_pairs(totals: ArrayLike) -> int:
    """Count the pairs of items of different classes, from the number of items of each class.

    Examples
    --------
    >>> different_pairs([2, 3, 1])  # 2 * 3 + 2 * 1 + 3 * 1
    11
    """
    return int((np.sum(totals) ** 2 - np.sum(np.square(totals))) // 2)


@kernel
def count_inversions(values: IntArray, spare: IntArray, n: int) -> int:
    """Count pairs ``i < j`` with ``values[i] > values[j]``, i, j < n; both arrays are used up.

    Up to 160 values all pairs are compared, which vectorizes: below that size nothing is faster.
    Beyond, insertion sort in runs of eight, then a bottom-up merge sort: an element of the right
    run that goes first passes all that is left of the left run.
    """
    total = 0
    if n <= 160:
        for i in range(1, n):
            value = values[i]
            for j in range(i):
                total += values[j] > value
        return total
    for start in range(0, n, 8):
        for i in range(start + 1, min(start + 8, n)):
            value = values[i]
            j = i
            while j > start and values[j - 1] > value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
            total += i - j
    source, target = values, spare
    width = 8
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            end = min(start + 2 * width, n)
            left, right, out = start, middle, start
            while left < middle and right < end:
                # Written without branches on the data: which run goes first is unpredictable.
                from_right = source[left] > source[right]
                target[out] = source[right] if from_right else source[left]
                total += (middle - left) if from_right else 0
                right += from_right
                left += not from_right
                out += 1
            while left < middle:
                target[out] = source[left]
                left += 1
                out += 1
            while right < end:
                target[out] = source[right]
                right += 1
                out += 1
        source, target = target, source
        width *= 2
    return total


@kernel
def weigh_inversions(
    values: IntArray,
    weights: FloatArray,
    spare_values: IntArray,
    spare_weights: FloatArray,
    n: int,
    additive: bool,
) -> float:
    """Add up ``w_i + w_j`` (or ``w_i * w_j``) over the inversions; all four arrays are used up."""
    total = 0.0
    rest = np.empty(n)
    v, w, other_v, other_w = values, weights, spare_values, spare_weights
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            end = min(start + 2 * width, n)
            left, right = start, middle
            # What is left of the left run is added up from its end: subtracting would cancel.
            remaining = 0.0
            for i in range(middle - 1, start - 1, -1):
                remaining += w[i]
                rest[i] = remaining
            for out in range(start, end):
                if right >= end or (left < middle and v[left] <= v[right]):
                    other_v[out], other_w[out] = v[left], w[left]
                    left += 1
                else:
                    other_v[out], other_w[out] = v[right], w[right]
                    if left < middle:
                        if additive:
                            total += rest[left] + (middle - left) * w[right]
                        else:
                            total += rest[left] * w[right]
                    right += 1
        v, w, other_v, other_w = other_v, other_w, v, w
        width *= 2
    return total
