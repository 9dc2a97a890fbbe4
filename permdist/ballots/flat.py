"""Flat arrays of ballots: which of them are equal, and who was preferred to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist._parallel import rows_of

if TYPE_CHECKING:
    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.ballots.ballots import Ballots


def equal_rows(
    ballots: Ballots, longest: int, most: int, values: FloatArray
) -> tuple[IntArray, IntArray]:
    """Return the first of each kind of record, and the kind of every record.

    Equal records have equal `values`, shape (records,).
    """
    number = len(ballots.signs)
    table = np.full((number, longest + most + 2), -1, dtype=np.int64)
    owner, bucket = rows_of(ballots.ptr), rows_of(ballots.stages)
    table[owner, np.arange(len(ballots.items)) - ballots.ptr[owner]] = ballots.items
    table[bucket, longest + np.arange(len(ballots.sizes)) - ballots.stages[bucket]] = ballots.sizes
    table[:, -1] = ballots.signs
    if (values != values[0]).any():
        table[:, -2] = np.unique(values, return_inverse=True)[1]
    # One number for each row where that is possible: much faster to sort, or to count.
    low = table.min(axis=0)
    spans = table.max(axis=0) - low + 1
    bits = float(np.log2(spans.astype(np.float64)).sum())
    if bits < 62.0:
        codes = np.zeros(number, dtype=np.int64)
        for column in np.flatnonzero(spans > 1):
            codes = codes * spans[column] + (table[:, column] - low[column])
        if 2.0**bits <= 4.0 * number + 100_000.0:
            first, which = _counted(codes, int(codes.max()) + 1)
        else:
            _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    else:
        _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    # In the order of the ballots, so that weights follow.
    sequence = np.argsort(first)
    place = np.empty_like(sequence)
    place[sequence] = np.arange(len(sequence))
    return first[sequence], place[which.ravel()]


def _counted(codes: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """Return the first place of every code that occurs, and which of these each code is."""
    first = np.full(most, -1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    present = first >= 0
    return first[present], (np.cumsum(present) - 1)[codes]


def ever_of(ballots: Ballots, bucket: IntArray) -> tuple[BoolArray, BoolArray]:
    """Return which items were ever above another one, and which below one.

    `bucket` is that of each entry, -1 for those that were never chosen.
    """
    owner = rows_of(ballots.ptr)
    first = bucket == ballots.stages[owner]
    # Those that were never chosen come last; where there are none, the last bucket does.
    rest = np.bincount(owner[bucket < 0], minlength=len(ballots.signs)) > 0
    last = (bucket < 0) | ((bucket == ballots.stages[owner + 1] - 1) & ~rest[owner])
    turned = ballots.signs[owner] < 0
    above, below = np.where(turned, ~first, ~last), np.where(turned, ~last, ~first)
    cast = ballots.record_weights[owner] > 0.0
    won, lost = np.zeros(ballots.n_items, np.bool_), np.zeros(ballots.n_items, np.bool_)
    won[ballots.items[above & cast]] = True
    lost[ballots.items[below & cast]] = True
    return won, lost


def entries_of(ballots: Ballots, name: str, table: FloatArray) -> FloatArray:
    """Return what a table has for each entry of `items`.

    Parameters
    ----------
    ballots : Ballots
    name : str
        Of the argument, for errors.
    table : array of float, shape (ballots, n) or (ballots, n, q)
        NaN where an item was not on a ballot, or anything else.
    """
    if table.shape[:2] != (ballots.n_ballots, ballots.n_items):
        rest = ", q" if table.ndim == 3 else ""
        raise ValueError(
            f"{name}: expected shape ({ballots.n_ballots}, {ballots.n_items}{rest}), "
            f"got {table.shape}"
        )
    owner = ballots.ballot[rows_of(ballots.ptr)]
    found = table[owner, ballots.items]
    missing = np.isnan(found.reshape(len(found), -1)).any(axis=1)
    if missing.any():
        at = int(np.argmax(missing))
        raise ValueError(
            f"{name}: expected a number for {ballots.names[ballots.items[at]]!r} on ballot "
            f"{owner[at]}, got nan"
        )
    return found


@kernel
def edges_of(
    items: IntArray,
    ptr: IntArray,
    sizes: IntArray,
    stages: IntArray,
    signs: FloatArray,
    weights: FloatArray,
) -> tuple[IntArray, IntArray]:
    """List edges as `Ballots.graph` says."""
    used = 0
    sources, targets = (
        np.empty(3 * len(items) + 1, np.int64),
        np.empty(3 * len(items) + 1, np.int64),
    )
    for row in range(len(ptr) - 1):
        if weights[row] == 0.0:
            continue
        start = ptr[row]
        before = -1  # an item of the bucket above
        for stage in range(stages[row], stages[row + 1] + 1):
            size = sizes[stage] if stage < stages[row + 1] else ptr[row + 1] - start
            for k in range(start, start + size):
                # The members of a tie are joined in a ring; those never chosen are not.
                if stage < stages[row + 1] and size > 1:
                    sources[used] = items[k]
                    targets[used] = items[start + (k - start + 1) % size]
                    used += 1
                if before >= 0 and (k == start or stage == stages[row + 1]):
                    sources[used] = before if signs[row] > 0 else items[k]
                    targets[used] = items[k] if signs[row] > 0 else before
                    used += 1
            if size > 0:
                before = items[start]
            start += size
    return sources[:used], targets[:used]
