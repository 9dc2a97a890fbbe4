"""Two programs over the orders that agree with a ballot: classes for Kendall, cuts for footrule.

Both return the log of the sum of weights, and mean and variance of the distance. In every state
the log of the sum of the weights that lead to it is kept, and the two moments of the distance so
far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


def footrule_sums(moves: IntArray, theta: float) -> tuple[float, float, float]:
    """Add up over all ways to put some items into the places 0, 1, ..., weighted by footrule.

    Parameters
    ----------
    moves : array of int, shape (size,)
        Where the items would be in the center, in any order; different numbers of any sign.
    theta : float
    """
    size = len(moves)
    # Going up the line, items come first where an item and a place meet.
    where = np.concatenate([np.sort(moves), np.arange(size)])
    events = np.argsort(where, kind="stable")
    gaps = np.diff(where[events], append=where[events[-1]])
    return _cut_sums(events < size, gaps, theta)


# ---- kernels -----------------------------------------------------------------------------------


@kernel
def _merged(logs: FloatArray, means: FloatArray, spreads: FloatArray, n: int) -> FloatArray:
    """Return log of the sum, mean and variance of n parts with such logs and moments."""
    out = np.zeros(3)
    largest = -np.inf
    for t in range(n):
        largest = max(largest, logs[t])
    out[0] = largest
    if largest == -np.inf:
        return out
    total = 0.0
    for t in range(n):
        logs[t] = np.exp(logs[t] - largest)
        total += logs[t]
    out[0] += np.log(total)
    for t in range(n):
        out[1] += logs[t] / total * means[t]
    for t in range(n):
        out[2] += logs[t] / total * (spreads[t] + (means[t] - out[1]) ** 2)
    return out


@kernel
def _cut_sums(is_item: FloatArray, gaps: IntArray, theta: float) -> tuple[float, float, float]:
    """Go along the line: an item takes an open place or stays open, and so does a place.

    At a cut a items and b places are open, each of which costs a unit of distance per unit of the
    line; a - b is the number of items passed less that of places passed. `is_item` and `gaps`,
    the way to the next event, have shape (2 size,).
    """
    events = len(is_item)
    size = events // 2
    old, new = np.zeros((3, size + 2)), np.zeros((3, size + 2))
    old[0, 1:] = -np.inf
    logs, means, spreads = np.empty(2), np.empty(2), np.empty(2)
    excess, log = 0, 0.0  # items less places passed
    for t in range(events):
        before = excess
        excess += 1 if is_item[t] else -1
        best = -np.inf
        for a in range(size + 1):
            b = a - excess
            new[0, a] = -np.inf
            if b < 0 or b > size:
                continue
            # It stays open, or one of the open ones of the other kind is closed.
            stay, close = (a - 1, a) if is_item[t] else (a, a + 1)
            ways = a - before if is_item[t] else a + 1
            logs[0] = old[0, stay] if stay >= 0 and stay - before >= 0 else -np.inf
            logs[1] = -np.inf
            if close - before >= 0 and ways > 0 and close <= size:
                logs[1] = old[0, close] + np.log(ways)
            for part in range(2):
                at = stay if part == 0 else close
                at = min(max(at, 0), size)
                means[part], spreads[part] = old[1, at], old[2, at]
            found = _merged(logs, means, spreads, 2)
            if found[0] == -np.inf:
                continue
            cost = (a + b) * float(gaps[t])
            new[0, a] = found[0] - (theta * cost if cost > 0.0 else 0.0)
            new[1, a], new[2, a] = found[1] + cost, found[2]
            best = max(best, new[0, a])
        for a in range(size + 1):
            new[0, a] -= best
        log += best
        old, new = new, old
    return log + old[0, 0], old[1, 0], old[2, 0]


@kernel
def class_sums(
    sizes: IntArray, marks: IntArray, thetas: FloatArray, tables: FloatArray
) -> tuple[float, float, float]:
    """Add up Kendall weights over the orders that agree with levels of classes of items.

    Parameters
    ----------
    sizes : array of int, shape (classes,)
        The classes, as they follow each other in the center.
    marks : array of int, shape (classes,)
        The level of each class, -1 if it is free.
    thetas : array of float, shape (n,)
    tables : array of float, shape (3, n, largest size) or (3, 1, largest size)
        For each stage and number of items left in a class: log of the geometric sum, mean, variance
        of which of them comes next. One row is for all stages.
    """
    classes = len(sizes)
    counts, strides = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    free = 1
    for c in range(classes):
        if marks[c] < 0:
            strides[c] = free
            free *= sizes[c] + 1
    start = np.zeros((3, free))
    start[0, 1:] = -np.inf
    last = marks.max() + 1
    logs, means, spreads = np.empty(classes + 1), np.empty(classes + 1), np.empty(classes + 1)
    for level in range(last + 1):
        # One level after the other; after the last one only free items are left.
        states = free
        for c in range(classes):
            if marks[c] == level:
                strides[c] = states
                states *= sizes[c] + 1
        table = np.empty((3, states))
        for state in range(states):
            placed = 0
            for c in range(classes):
                if marks[c] == level or marks[c] < 0:
                    counts[c] = state // strides[c] % (sizes[c] + 1)
                else:
                    counts[c] = sizes[c] if marks[c] < level else 0
                placed += counts[c]
            # Free items that come after a level are placed with the next one.
            complete = level < last and state >= states - free
            stage, ahead, n = placed - 1, 0, 0
            row = min(stage, tables.shape[1] - 1)
            if state < free:
                logs[0], means[0], spreads[0] = start[0, state], start[1, state], start[2, state]
                n = 1
            for c in range(classes):
                mine = marks[c] == level or (marks[c] < 0 and not complete)
                if mine and counts[c] > 0:
                    before, left = state - strides[c], sizes[c] - counts[c]
                    cost = thetas[stage] * ahead if ahead > 0 else 0.0
                    logs[n] = table[0, before] + tables[0, row, left] - cost
                    means[n] = table[1, before] + tables[1, row, left] + ahead
                    spreads[n] = table[2, before] + tables[2, row, left]
                    n += 1
                ahead += sizes[c] - counts[c]
            if n == 0:
                table[0, state], table[1, state], table[2, state] = -np.inf, 0.0, 0.0
                continue
            found = _merged(logs, means, spreads, n)
            table[0, state], table[1, state], table[2, state] = found[0], found[1], found[2]
        start = table[:, states - free :].copy()
    return start[0, -1], start[1, -1], start[2, -1]
