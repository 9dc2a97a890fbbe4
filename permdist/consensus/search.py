"""Good orders quickly: local search by insertion, from Borda's order and from shaken ones.

``margins[i, j]`` is what an order gains if it has i above j instead of j above i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.rankings.sorting import copy

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

MOVES = 4  # random insertions that shake an order


def search(margins: FloatArray, start: IntArray, shakes: int, moves: int = MOVES) -> IntArray:
    """Return an order that no insertion of one item improves.

    The same margins give the same order: the random numbers have a fixed seed.

    Parameters
    ----------
    margins : array of float, shape (n, n)
    start : array of int, shape (n,)
        The order to begin with.
    shakes : int
        How often the best order is changed at random and improved again.
    moves : int
        How many random insertions change it.
    """
    order = np.array(start, dtype=np.int64)
    n = len(order)
    if n < 2:
        return order
    places = np.random.default_rng(0).integers(n, size=(shakes, moves, 2))
    least = 1e-9 * float(np.abs(margins).max())
    _search(np.ascontiguousarray(margins), order, places, least)
    return order


def borda_order(margins: FloatArray) -> IntArray:
    """Return the items by the sums of their margins; equal sums by number."""
    return np.argsort(-margins.sum(axis=1), kind="stable")


@kernel
def _search(margins: FloatArray, order: IntArray, moves: IntArray, least: float) -> None:
    """Improve an order in place; `least` is the smallest gain that counts."""
    _insert(margins, order, least)
    best = _value(margins, order)
    trial = order.copy()
    for shake in range(len(moves)):
        copy(order, trial)
        for step in range(moves.shape[1]):
            _move(trial, moves[shake, step, 0], moves[shake, step, 1])
        _insert(margins, trial, least)
        value = _value(margins, trial)
        if value > best + least:
            best = value
            copy(trial, order)


@kernel
def _value(margins: FloatArray, order: IntArray) -> float:
    """Add up the margins of all pairs as they are ordered."""
    total = 0.0
    for a in range(len(order)):
        for b in range(a + 1, len(order)):
            total += margins[order[a], order[b]]
    return total


@kernel
def _insert(margins: FloatArray, order: IntArray, least: float) -> None:
    """Move items to their best places until no move is left that gains."""
    n = len(order)
    moved = True
    while moved:
        moved = False
        for item in range(n):
            place = 0
            while order[place] != item:
                place += 1
            best, target = least, place
            gain = 0.0
            for k in range(place - 1, -1, -1):
                gain += margins[item, order[k]]
                if gain > best:
                    best, target = gain, k
            gain = 0.0
            for k in range(place + 1, n):
                gain += margins[order[k], item]
                if gain > best:
                    best, target = gain, k
            if target != place:
                _move(order, place, target)
                moved = True


@kernel
def _move(order: IntArray, source: int, target: int) -> None:
    """Take the item at one place out and insert it at another."""
    item = order[source]
    step = 1 if target > source else -1
    k = source
    while k != target:
        order[k] = order[k + step]
        k += step
    order[target] = item
