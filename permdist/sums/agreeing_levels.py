"""What the levels of a ballot allow: lists of orders, classes of items, steps, and stages."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from permdist._typing import BoolArray, IntArray

MOST_LISTED = 50_000  # completions of one ballot
FEW_ITEMS = 8  # of which all orders are looked through


def is_top(levels: IntArray) -> bool:
    """Check for first places of all items: buckets of one item, but for the last."""
    return bool((levels >= 0).all() and (np.bincount(levels)[:-1] == 1).all())


def classes_of(levels: IntArray) -> tuple[IntArray, IntArray]:
    """Return the lengths of runs of equal levels, and these levels."""
    starts = np.flatnonzero(np.diff(levels, prepend=-2))
    return np.diff(np.append(starts, len(levels))), levels[starts]


def class_cells(sizes: IntArray, marks: IntArray) -> float:
    """Return the size of the table that `class_sums` goes through."""
    free = float(np.prod(sizes[marks < 0] + 1.0))
    own = sum(float(np.prod(sizes[marks == mark] + 1.0)) for mark in range(int(marks.max()) + 1))
    return free * (own + 1.0) * len(sizes)


def n_completions(levels: IntArray) -> float:
    """Return how many orders are looked through to list those that agree with a ballot."""
    if (levels < 0).any():
        return float(math.factorial(len(levels))) if len(levels) <= FEW_ITEMS else np.inf
    number = math.prod(math.factorial(min(size, 20)) for size in np.bincount(levels).tolist())
    return float(number) if number <= MOST_LISTED else np.inf


@lru_cache(maxsize=FEW_ITEMS)
def _every_order(n: int) -> IntArray:
    return np.array(list(itertools.permutations(range(n))))


def completions(levels: IntArray) -> IntArray | None:
    """List the orders that agree with a ballot, shape (orders, n); None if there are too many."""
    if n_completions(levels) == np.inf:
        return None
    if (levels < 0).any():
        every = _every_order(len(levels))
        marks = levels[every]
        highest = np.maximum.accumulate(marks, axis=1)
        return every[((marks < 0) | (marks == highest)).all(axis=1)]
    buckets = (np.flatnonzero(levels == level).tolist() for level in range(levels.max() + 1))
    parts = [list(itertools.permutations(bucket)) for bucket in buckets]
    return np.array([list(itertools.chain(*each)) for each in itertools.product(*parts)])


def allowed_steps(levels: IntArray) -> BoolArray:
    """Return which next item agrees with a ballot in each state of the subset program.

    Shape (2^n, n); an item may come when all items of lower levels are placed.
    """
    n, bits = len(levels), 1 << np.arange(len(levels))
    states = np.arange(1 << n)
    result = np.ones((1 << n, n), np.bool_)
    for item, level in enumerate(levels.tolist()):
        need = int(bits[(levels >= 0) & (levels < level)].sum())
        if need:
            result[:, item] = states & need == need
    return result


def moved_stages(top: list[int]) -> list[bool]:
    """Return for each of the first places whether it is not the last of its cycle.

    The item at place j, or the one that it leads to through earlier places, is j itself if so.
    """
    leads: list[int] = []
    for j, item in enumerate(top):
        while item < j:
            item = leads[item]
        leads.append(item)
    return [item != j for j, item in enumerate(leads)]
