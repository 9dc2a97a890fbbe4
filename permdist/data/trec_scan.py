"""Kernels for TREC's files: columns of a text, names as slices of it, ranking, look-up.

A name (a query's or a document's id) is a slice ``text[start:stop]`` and its hash; no object is
made for it. Two names are the same if their bytes are, and compare as bytes do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from permdist._kernels import kernel
from permdist.data.letor_scan import NEWLINE, SPACE, Bytes, _number
from permdist.rankings.sorting import ascending, copy

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

Hashes = NDArray[np.uint64]
Words = NDArray[np.uint64]

BLANKS_FROM, BLANKS_TO = 9, 13  # tab, newline, vertical tab, form feed, return
BINARY, FIELDS = 1, 2


@kernel
def count_rows(text: Bytes) -> tuple[int, int]:
    """Count the lines that are not blank; the second number is a line of binary data, or 0."""
    rows, line, i, n = 0, 0, 0, len(text)
    while i < n:
        line += 1
        found = False
        while i < n and text[i] != NEWLINE:
            c = text[i]
            if c > SPACE:
                found = True
            elif c < BLANKS_FROM or BLANKS_TO < c < SPACE:
                return rows, line
            i += 1
        rows += found
        i += 1
    return rows, 0


@kernel
def scan_columns(
    text: Bytes, width: int, columns: IntArray, places: IntArray, line_of: IntArray
) -> tuple[int, int]:
    """Find some columns of every line that is not blank.

    places (rows, 2 len(columns)): start and stop of each column; line_of (rows,).

    Returns (line, number of fields) of the first line without `width` fields, or (0, 0).
    """
    row, line, i, n = 0, 0, 0, len(text)
    while i < n:
        line += 1
        field, wanted = 0, 0
        while i < n and text[i] != NEWLINE:
            if text[i] <= SPACE:
                i += 1
                continue
            start = i
            while i < n and text[i] > SPACE:
                i += 1
            if wanted < len(columns) and field == columns[wanted]:
                places[row, 2 * wanted], places[row, 2 * wanted + 1] = start, i
                wanted += 1
            field += 1
        if field:
            if field != width:
                return line, field
            line_of[row] = line
            row += 1
        i += 1
    return 0, 0


@kernel
def read_numbers(text: Bytes, start: IntArray, stop: IntArray, out: FloatArray) -> int:
    """Read slices as numbers; those that need more care, or are none, become NaN. Count them."""
    late = 0
    for row in range(len(start)):
        value, kind = _number(text, start[row], stop[row])
        out[row] = value
        if kind != 0:
            out[row] = np.nan
            late += 1
    return late


@kernel
def hash_names(text: Bytes, start: IntArray, stop: IntArray, out: Hashes) -> None:
    """Hash slices (FNV-1a, with a last stir so that the low bits are good)."""
    for row in range(len(start)):
        value = np.uint64(14695981039346656037)
        for i in range(start[row], stop[row]):
            value = (value ^ np.uint64(text[i])) * np.uint64(1099511628211)
        value = (value ^ (value >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
        out[row] = value ^ (value >> np.uint64(29))


@kernel(inline=True)
def _same(a: Bytes | Words, start: int, stop: int, b: Bytes | Words, begin: int, end: int) -> bool:
    """Return whether two names are the same."""
    if stop - start != end - begin:
        return False
    i = 0
    while i < stop - start and a[start + i] == b[begin + i]:
        i += 1
    return i == stop - start


@kernel
def number_names(
    text: Bytes | Words,
    start: IntArray,
    stop: IntArray,
    hashes: Hashes,
    slots: IntArray,
    out: IntArray,
) -> int:
    """Assign numbers to different names by first appearance; slots: a power of two of zeros.

    Returns how many there are; slots keep their first rows plus one.
    """
    mask = np.uint64(len(slots) - 1)
    found = 0
    for row in range(len(start)):
        if row and _same(text, start[row], stop[row], text, start[row - 1], stop[row - 1]):
            out[row] = out[row - 1]
            continue
        at = hashes[row] & mask
        while True:
            first = slots[at] - 1
            if first < 0:
                slots[at] = row + 1
                out[row] = found
                found += 1
                break
            if hashes[first] == hashes[row] and _same(
                text, start[row], stop[row], text, start[first], stop[first]
            ):
                out[row] = out[first]
                break
            at = (at + np.uint64(1)) & mask
    return found


@kernel
def sort_hashes(hashes: Hashes, ptr: IntArray, rows: IntArray, ordered: Hashes) -> None:
    """Sort the hashes of each query; `rows` says from which row each one comes."""
    for q in range(len(ptr) - 1):
        own = hashes[ptr[q] : ptr[q + 1]]
        order = ascending(own)
        for k in range(len(own)):
            rows[ptr[q] + k] = ptr[q] + order[k]
            ordered[ptr[q] + k] = own[order[k]]


@kernel
def pack_names(
    text: Bytes, start: IntArray, stop: IntArray, rows: IntArray, offsets: IntArray, words: Words
) -> None:
    """Pack names, in the order of `rows`, into words: the length, then eight bytes per word.

    offsets (rows + 1,): where each begins; words are zero before.
    """
    for k in range(len(rows)):
        low, high = start[rows[k]], stop[rows[k]]
        at = offsets[k]
        words[at] = high - low
        for i in range(high - low):
            word = at + 1 + i // 8
            words[word] |= np.uint64(text[low + i]) << np.uint64(8 * (i % 8))


@kernel
def find_twice(
    text: Words,
    offsets: IntArray,
    rows: IntArray,
    ordered: Hashes,
    ptr: IntArray,
    line: IntArray,
) -> int:
    """Find a name that comes twice in a query: the place of the first repetition, or -1.

    line (rows,): by which number rows are early or late.
    """
    found = -1
    for q in range(len(ptr) - 1):
        for a in range(ptr[q], ptr[q + 1]):
            b = a + 1
            while b < ptr[q + 1] and ordered[b] == ordered[a]:
                if _same(text, offsets[a], offsets[a + 1], text, offsets[b], offsets[b + 1]):
                    later = a if line[rows[a]] > line[rows[b]] else b
                    if found < 0 or line[rows[later]] < line[rows[found]]:
                        found = later
                b += 1
    return found


@kernel
def match_rows(
    text: Words,
    offsets: IntArray,
    rows: IntArray,
    ordered: Hashes,
    low: int,
    high: int,
    other: Words,
    others: IntArray,
    other_rows: IntArray,
    other_ordered: Hashes,
    other_low: int,
    other_high: int,
    out: IntArray,
    out_low: int,
) -> None:
    """Write for each row of one query, from `low`, which row of the other has its name."""
    j = other_low
    for i in range(low, high):
        while j < other_high and other_ordered[j] < ordered[i]:
            j += 1
        k = j
        while k < other_high and other_ordered[k] == ordered[i]:
            if _same(text, offsets[i], offsets[i + 1], other, others[k], others[k + 1]):
                out[out_low + rows[i] - low] = other_rows[k]
                break
            k += 1


@kernel(inline=True)
def _comes_first(
    text: Bytes, start: IntArray, stop: IntArray, keys: FloatArray, a: int, b: int
) -> bool:
    """Return whether row a comes before row b: higher key, else the later name by its bytes."""
    if keys[a] != keys[b]:
        return keys[a] > keys[b]
    size_a, size_b = stop[a] - start[a], stop[b] - start[b]
    for i in range(min(size_a, size_b)):
        x, y = text[start[a] + i], text[start[b] + i]
        if x != y:
            return x > y
    return size_a > size_b


@kernel
def rank_rows(
    text: Bytes, start: IntArray, stop: IntArray, keys: FloatArray, ptr: IntArray, order: IntArray
) -> None:
    """Put the rows of each query, named in `order`, into trec_eval's order; by merging."""
    spare = np.empty_like(order)
    for q in range(len(ptr) - 1):
        low, high = ptr[q], ptr[q + 1]
        ready = True
        for k in range(low + 1, high):
            if not _comes_first(text, start, stop, keys, order[k - 1], order[k]):
                ready = False
                break
        if ready:
            continue
        size = 1
        while size < high - low:
            for left in range(low, high, 2 * size):
                middle, right = min(left + size, high), min(left + 2 * size, high)
                i, j = left, middle
                for k in range(left, right):
                    if j >= right or (
                        i < middle and not _comes_first(text, start, stop, keys, order[j], order[i])
                    ):
                        spare[k] = order[i]
                        i += 1
                    else:
                        spare[k] = order[j]
                        j += 1
            copy(spare[low:high], order[low:high])
            size *= 2


@kernel
def judge_rows(
    text: Words,
    offsets: IntArray,
    rows: IntArray,
    ordered: Hashes,
    ptr: IntArray,
    run_query: IntArray,
    other: Words,
    others: IntArray,
    other_rows: IntArray,
    other_ordered: Hashes,
    other_ptr: IntArray,
    query: IntArray,
    grades: IntArray,
    out_ptr: IntArray,
    judgement: IntArray,
    rest_ptr: IntArray,
    rest: IntArray,
) -> None:
    """Judge the retrieved documents of some queries, and collect what was not retrieved.

    For the k-th evaluated query, run_query[k] is its number in the run (-1: not there) and
    query[k] that in the judgements. judgement (retrieved,): the grade, -2 for a document in the
    pool without one, -1 otherwise. rest (judged documents,): grades not retrieved.
    """
    seen = np.zeros(len(grades), np.bool_)
    judgement[:] = -1
    for k in range(len(query)):
        q, r = query[k], run_query[k]
        if r >= 0:
            match_rows(
                text,
                offsets,
                rows,
                ordered,
                ptr[r],
                ptr[r + 1],
                other,
                others,
                other_rows,
                other_ordered,
                other_ptr[q],
                other_ptr[q + 1],
                judgement,
                out_ptr[k],
            )
            for i in range(out_ptr[k], out_ptr[k + 1]):
                found = judgement[i]
                if found >= 0:
                    seen[found] = True
                    judgement[i] = grades[found] if grades[found] >= 0 else -2
        last = rest_ptr[k]
        for row in range(other_ptr[q], other_ptr[q + 1]):
            if grades[row] >= 0 and not seen[row]:
                rest[last] = grades[row]
                last += 1
        rest_ptr[k + 1] = last
