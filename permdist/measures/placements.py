"""The positions of the relevant items, from which every measure is computed.

Items with grade 0 need not be ranked at all, only counted, and relevant items are few: their
positions come from counting better scores, which vectorizes, and a sort is the exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._check import frozen
from permdist._kernels import kernel
from permdist.rankings.sorting import descending

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

NEVER = 2**62  # the position of a relevant item that was not retrieved, beyond all cut-offs


class Placements(NamedTuple):
    """The relevant items of every query, from the top down.

    Query ``q`` owns the entries ``ptr[q]:ptr[q + 1]`` of the flat arrays. An entry is an item of
    grade > 0; it shares the positions ``start .. start + size - 1`` with the items it is tied
    with (``size`` is 1 where ties are broken), and entries of one tie stand together. Where a
    run left relevant items out, they come last, with ``start = NEVER`` and ``size = 1``.

    Attributes
    ----------
    ptr : array of int, shape (queries + 1,)
    length : array of int, shape (queries,)
        The number of items of each query, relevant or not.
    start, size, grade : arrays of int, shape (entries,)
    """

    ptr: IntArray
    length: IntArray
    start: IntArray
    size: IntArray
    grade: IntArray


def place_by_scores(scores: FloatArray, labels: IntArray, ptr: IntArray, ties: str) -> Placements:
    """Place the items of queries ``ptr[q]:ptr[q + 1]`` by score, ties by index or shared."""
    scores, labels, ptr = frozen(scores), frozen(labels), frozen(ptr)
    relevant = np.zeros(len(ptr), np.int64)
    _count_relevant(labels, ptr, relevant)
    length = np.diff(ptr)
    start, size, grade = (np.empty(relevant[-1], np.int64) for _ in range(3))
    work = np.empty((3, length.max() if len(length) else 0), np.int64)
    inputs = scores, labels, ptr, relevant, ties == "average"
    if _place_by_comparing(*inputs, work[0], work[1], work[2], start, size, grade):
        _place_by_sorting(*inputs, start, size, grade)
    return Placements(relevant, length, start, size, grade)


def place_by_orders(orders: IntArray, labels: IntArray, ptr: IntArray) -> Placements:
    """Place items by given orders, whose entries count from the start of their query."""
    orders, labels, ptr = frozen(orders), frozen(labels), frozen(ptr)
    relevant = np.zeros(len(ptr), np.int64)
    _count_relevant(labels, ptr, relevant)
    start, size, grade = _place_by_orders(orders, labels, ptr, relevant)
    return Placements(relevant, np.diff(ptr), start, size, grade)


@kernel
def _count_relevant(labels: IntArray, ptr: IntArray, relevant: IntArray) -> None:
    """Fill `relevant` (queries + 1,) with the running number of labels > 0."""
    for q in range(len(ptr) - 1):
        found = 0
        for i in range(ptr[q], ptr[q + 1]):
            found += labels[i] > 0
        relevant[q + 1] = relevant[q] + found


# Two kernels, since the sort takes longest to compile and few queries need it.


@kernel
def _should_be_sorted(n_relevant: int, n_items: int) -> bool:
    """Return whether sorting all items of a query is faster than comparing the relevant ones."""
    # A compared pair costs a quarter of a nanosecond, a sorted item many times its log2(n).
    return n_relevant > 24 * np.log2(n_items + 1.0)


@kernel
def _place_by_comparing(
    scores: FloatArray,
    labels: IntArray,
    ptr: IntArray,
    relevant: IntArray,
    share: bool,
    item_at: IntArray,
    above_of: IntArray,
    tied_of: IntArray,
    start: IntArray,
    size: IntArray,
    grade: IntArray,
) -> bool:
    """Fill in start, size and grade (relevant[-1],) of the relevant items, query by query.

    Returns whether queries are left to be sorted. item_at, above_of and tied_of (longest query,)
    are work space.
    """
    left = False
    for k in range(len(item_at)):
        item_at[k] = -1  # position -> relevant item, emptied after use
    for q in range(len(ptr) - 1):
        if _should_be_sorted(relevant[q + 1] - relevant[q], ptr[q + 1] - ptr[q]):
            left = True
            continue
        row, label = scores[ptr[q] : ptr[q + 1]], labels[ptr[q] : ptr[q + 1]]
        n = len(row)
        for i in range(n):
            if label[i] == 0:
                continue
            s = row[i]
            above, tied = 0, 0
            for j in range(n):
                above += row[j] > s
                tied += row[j] == s
            position = above
            if tied > 1:
                for j in range(i):
                    position += row[j] == s
            item_at[position] = i
            above_of[i] = above if share else position
            tied_of[i] = tied if share else 1
        entry, last = relevant[q], relevant[q + 1]
        k = 0
        while entry < last:
            i = item_at[k]
            if i >= 0:
                start[entry], size[entry], grade[entry] = above_of[i], tied_of[i], label[i]
                entry += 1
                item_at[k] = -1
            k += 1
    return left


@kernel
def _place_by_sorting(
    scores: FloatArray,
    labels: IntArray,
    ptr: IntArray,
    relevant: IntArray,
    share: bool,
    start: IntArray,
    size: IntArray,
    grade: IntArray,
) -> None:
    """Fill in start, size and grade (relevant[-1],) of what `_place_by_comparing` has left."""
    for q in range(len(ptr) - 1):
        if not _should_be_sorted(relevant[q + 1] - relevant[q], ptr[q + 1] - ptr[q]):
            continue
        row, label = scores[ptr[q] : ptr[q + 1]], labels[ptr[q] : ptr[q + 1]]
        n = len(row)
        order = descending(row)
        entry = relevant[q]
        k = 0
        while k < n:
            end = k + 1
            if share:
                while end < n and row[order[end]] == row[order[k]]:
                    end += 1
            for t in range(k, end):
                if label[order[t]] > 0:
                    start[entry], size[entry], grade[entry] = k, end - k, label[order[t]]
                    entry += 1
            k = end


@kernel
def _place_by_orders(
    orders: IntArray, labels: IntArray, ptr: IntArray, relevant: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return start, size and grade (relevant[-1],) by walking down each order."""
    entries = relevant[-1]
    start = np.empty(entries, np.int64)
    grade = np.empty(entries, np.int64)
    entry = 0
    for q in range(len(ptr) - 1):
        for k in range(ptr[q + 1] - ptr[q]):
            label = labels[ptr[q] + orders[ptr[q] + k]]
            if label > 0:
                start[entry], grade[entry] = k, label
                entry += 1
    return start, np.ones(entries, np.int64), grade
