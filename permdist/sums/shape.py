"""The states of a dynamic program over orders, and what its steps add up to.

Items form classes; inside a class their order is fixed, and a state says how many of each class
are placed. With every item a class of its own the states are all subsets and the paths all n!
orders; with classes sorted by score the paths are the interleavings of these classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist._parallel import pointers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure

MAX_CELLS = 50_000_000
MAX_REMEMBERED = 100_000


@dataclass(frozen=True, eq=False)
class Shape:
    """The states of a lattice: classes of items, each in a fixed order.

    Attributes
    ----------
    classes : tuple of arrays of int
        The items of each class, from the top down.
    """

    classes: tuple[IntArray, ...]

    @classmethod
    def of_orders(cls, n_items: int) -> Shape:
        """Return the shape with every item in a class of its own: the paths are all orders."""
        return cls(tuple(np.array([item]) for item in range(n_items)))

    @cached_property
    def items(self) -> IntArray:
        """The items, class after class."""
        return np.concatenate(self.classes)

    @cached_property
    def sizes(self) -> IntArray:
        """The number of items of each class."""
        return np.array([len(members) for members in self.classes])

    @cached_property
    def first(self) -> IntArray:
        """Where each class starts in `items`."""
        return pointers(self.sizes)

    @cached_property
    def strides(self) -> IntArray:
        """The step in the number of a state that placing one more of a class makes."""
        return np.concatenate([[1], np.cumprod(self.sizes + 1)])

    @property
    def n_states(self) -> int:
        """The number of states; the first is empty, the last is complete."""
        return int(self.strides[-1])

    @property
    def n_cells(self) -> int:
        """The number of log-weights."""
        return self.n_states * len(self.classes)

    @cached_property
    def counts(self) -> IntArray:
        """How many of each class are placed in each state, shape (states, classes)."""
        number = np.arange(self.n_states)[:, None]
        return number // self.strides[:-1] % (self.sizes + 1)

    @property
    def geometry(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """What kernels need to know: sizes, strides, first and items."""
        return self.sizes, self.strides, self.first, self.items

    def steps_of(self, measure: Measure, labels: IntArray) -> FloatArray:
        """Tabulate what each next item adds to a measure, shape (states, classes)."""
        values, level_of, totals = np.unique(labels, return_inverse=True, return_counts=True)
        # A state matters to a measure only by its counts of labels; these are numbered as states.
        strides = np.concatenate([[1], np.cumprod(totals + 1)])
        table = level_steps(measure, tuple(values.tolist()), tuple(totals.tolist()))
        return _expand(table, *self.geometry, level_of, strides)

    def sum_pairs(self, pairs: FloatArray) -> FloatArray:
        """Add up what each next item gains over all that come later, shape (states, classes).

        Parameters
        ----------
        pairs : array of float, shape (n, n)
            Entry ``[i, j]`` is added if i is above j, for items of different classes. With entries
            of one sign the sums have all their digits.
        """
        nothing = np.zeros(0), np.zeros(0, dtype=np.int64)
        return _sum_pairs(pairs, *nothing, 1.0, *self.geometry)

    def sum_losses(self, scores: FloatArray, levels: IntArray, factor: float) -> FloatArray:
        """Add up by how much better items of another level come later, shape (states, classes).

        As `sum_pairs` of ``factor * min(scores[i] - scores[j], 0)`` where the levels differ,
        without a matrix.
        """
        inputs = np.zeros((1, 1)), scores, levels, factor, *self.geometry
        return _sum_pairs(*inputs)


def level_steps(measure: Measure, labels: tuple[int, ...], totals: tuple[int, ...]) -> FloatArray:
    """Tabulate what an item of each level adds to a measure, shape (levels, states).

    Parameters
    ----------
    measure : Measure
    labels : tuple of int
        The different labels, ascending.
    totals : tuple of int
        How many items have each of them. States are numbered as in `Shape`.
    """
    few = math.prod(total + 1 for total in totals) <= MAX_REMEMBERED
    return (_remembered_steps if few else _level_steps)(measure, labels, totals)


def _level_steps(measure: Measure, labels: tuple[int, ...], totals: tuple[int, ...]) -> FloatArray:
    values, counts = np.array(labels), np.array(totals)
    strides = np.concatenate([[1], np.cumprod(counts + 1)])
    # All but the complete state, after which nothing comes.
    above = np.arange(strides[-1] - 1)[:, None] // strides[:-1] % (counts + 1)
    table = np.zeros((len(labels), strides[-1]))
    for level in range(len(labels)):
        table[level, :-1] = measure.step(values, counts, level, above)
    return table


# A learner asks for the same table at every step of its optimizer.
_remembered_steps = lru_cache(maxsize=256)(_level_steps)


def fits(n_items: int) -> bool:
    """Check whether the lattice of all orders of this many items is affordable."""
    return n_items < 40 and n_items * 2**n_items <= MAX_CELLS


def cells_of(totals: ArrayLike) -> float:
    """Count the log-weights of all interleavings of classes of these sizes."""
    sizes = np.asarray(totals).tolist()
    return math.prod(size + 1.0 for size in sizes) * len(sizes)


def check_cells(totals: IntArray) -> None:
    """Raise ValueError if the lattice of interleavings of classes of these sizes is too large."""
    cells = cells_of(totals)
    if cells > MAX_CELLS:
        raise ValueError(
            f"labels: the lattice of interleavings would have {cells:,.0f} cells, the limit is "
            f"{MAX_CELLS:,}; merge grades"
        )


# ---- kernels: sizes (classes,), strides (classes + 1,), first (classes + 1,), items (n,) --------


@kernel(inline=True)
def count_up(counts: IntArray, sizes: IntArray) -> None:
    """Step to the next state, as an odometer does."""
    c = 0
    while counts[c] == sizes[c]:
        counts[c] = 0
        c += 1
    counts[c] += 1


@kernel(inline=True)
def count_down(counts: IntArray, sizes: IntArray) -> None:
    """Step to the state before."""
    c = 0
    while counts[c] == 0:
        counts[c] = sizes[c]
        c += 1
    counts[c] -= 1


@kernel(inline=True)
def _pair(
    pairs: FloatArray, scores: FloatArray, levels: IntArray, factor: float, i: int, j: int
) -> float:
    """Look up what i above j adds, or take it from the scores where there are any."""
    if len(scores) == 0:
        return pairs[i, j]
    return factor * min(scores[i] - scores[j], 0.0) if levels[i] != levels[j] else 0.0


@kernel
def _sum_pairs(
    pairs: FloatArray,
    scores: FloatArray,
    levels: IntArray,
    factor: float,
    sizes: IntArray,
    strides: IntArray,
    first: IntArray,
    items: IntArray,
) -> FloatArray:
    """Sum over all items that are left beside the next item of a class.

    From the complete state down: with one more item left, what it adds goes on top of the sum of
    the state without it, so that nothing is ever subtracted.
    """
    states, classes = strides[-1], len(sizes)
    result = np.zeros((states, classes))
    counts = sizes.copy()
    for state in range(states - 2, -1, -1):
        count_down(counts, sizes)
        lead = 0  # the first two classes of which something is left
        while counts[lead] == sizes[lead]:
            lead += 1
        second = lead + 1
        while second < classes and counts[second] == sizes[second]:
            second += 1
        if second == classes:
            continue
        left = items[first[lead] + counts[lead]]
        without = state + strides[lead]
        for c in range(second, classes):
            if counts[c] < sizes[c]:
                item = items[first[c] + counts[c]]
                gain = _pair(pairs, scores, levels, factor, item, left)
                result[state, c] = result[without, c] + gain
        other = items[first[second] + counts[second]]
        gain = _pair(pairs, scores, levels, factor, left, other)
        result[state, lead] = result[state + strides[second], lead] + gain
    return result


@kernel
def _expand(
    table: FloatArray,
    sizes: IntArray,
    strides: IntArray,
    first: IntArray,
    items: IntArray,
    level_of: IntArray,
    level_strides: IntArray,
) -> FloatArray:
    """Look up table (levels, counts of levels) for every next item of every state."""
    states, classes = strides[-1], len(sizes)
    result = np.zeros((states, classes))
    counts = np.zeros(classes, np.int64)
    number = 0  # of the counts of levels in this state
    for state in range(states):
        for c in range(classes):
            if counts[c] < sizes[c]:
                result[state, c] = table[level_of[items[first[c] + counts[c]]], number]
        c = 0
        while c < classes and counts[c] == sizes[c]:
            for k in range(first[c], first[c + 1]):
                number -= level_strides[level_of[items[k]]]
            counts[c] = 0
            c += 1
        if c < classes:
            number += level_strides[level_of[items[first[c] + counts[c]]]]
            counts[c] += 1
    return result
