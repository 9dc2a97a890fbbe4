"""Exact sums over all orders, or over all valid sign vectors, of a few items: subset programs.

A state is the set of items placed so far. Orders are all ways through the sets. Orders that differ
only inside blocks, runs of items of the same level, have the same signs of pairs of different
levels; the valid sign vectors, each counted once, are the orders whose blocks ascend by item
number, so that a state also has the last item.

The exponent of an order is ``F + weight * measure``, less F of the order of the labels. An item
with `a` items of other levels above it, and `h` items of higher levels anywhere, adds
``-x (a - h)``, with x its score times twice the model's scale. The sum of a set is kept as
``exp(top) * rest``, with `top` the exponent of the best way there: one exponential per cell, no
logarithm.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._kernels import kernel
from permdist._parallel import run_interruptible
from permdist.sums.lattice import NotExactError
from permdist.sums.shape import level_steps

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure

MOST_ITEMS = 21  # of orders
MANY = 18  # items whose sets take many seconds
MOST_SIGNED = 18  # of valid sign vectors, which take as many numbers as items per set


class Subsets:
    """Exact sums over the orders, or the valid sign vectors, of one query.

    Parameters
    ----------
    scores : array of float, shape (n,)
        Times twice the model's scale.
    labels : array of int, shape (n,)
    measure : Measure, optional
        Whose mean is wanted.
    tilt : Measure, optional
        Another one, which is added to the exponent.
    weight : float
        Its weight there.
    distinct : bool
        Whether to count every valid sign vector once, instead of every order.
    """

    def __init__(
        self,
        scores: FloatArray,
        labels: IntArray,
        measure: Measure | None = None,
        tilt: Measure | None = None,
        weight: float = 0.0,
        *,
        distinct: bool = False,
    ) -> None:
        check_items(len(scores), distinct=distinct)
        steps, tilts = steps_of(measure, labels), weight * steps_of(tilt, labels)
        self._inputs = scores, *layout(labels), steps, tilts, distinct

    @cached_property
    def _forward(self) -> Any:
        return self._run(forward, *self._inputs, True)

    @property
    def log_sum(self) -> float:
        """The log of the sum of all weights."""
        tops, table, _ = self._forward
        return float(tops[-1] + np.log(table[-1].sum()))

    @property
    def mean(self) -> float:
        """The mean of the measure, less its offset."""
        _, table, dots = self._forward
        return float(dots[-1].sum() / table[-1].sum())

    @cached_property
    def _backward(self) -> Any:
        return self._run(backward, *self._inputs, True, *self._forward)

    def slopes(self) -> FloatArray:
        """Differentiate `log_sum` by the scores, shape (n,)."""
        found: FloatArray = self._backward[0]
        return found

    def mean_slopes(self) -> FloatArray:
        """Differentiate `mean` by the scores, shape (n,)."""
        found: FloatArray = self._backward[1]
        return found

    def pairwise(self) -> FloatArray:
        """Return the probability that i is above j, of items of different levels; else 0.

        Of valid sign vectors only.
        """
        return self._run(_pairwise, self._backward[2], self._inputs[1])

    def sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw valid sign vectors as orders whose blocks ascend, shape (size, n)."""
        level_of = self._inputs[1]
        uniforms = rng.random((size, len(level_of)))
        return self._run(_walk_back, self._forward[1], level_of, uniforms)

    def _run(self, function: Any, *inputs: Any) -> Any:
        n = len(self._inputs[0])
        return run_interruptible(function, *inputs) if n >= MANY else function(*inputs)


def check_items(n_items: int, *, distinct: bool) -> None:
    """Refuse more items than the sets of them can be listed for."""
    limit = MOST_SIGNED if distinct else MOST_ITEMS
    if n_items > limit:
        what = "valid sign vectors" if distinct else "orders"
        raise NotExactError(f"{what}: exact up to {limit} items, got {n_items}")


def layout(labels: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the level of each item, strides of the counts of levels, and higher items of each."""
    _, level_of, totals = np.unique(labels, return_inverse=True, return_counts=True)
    strides = np.concatenate([[1], np.cumprod(totals + 1)[:-1]]).astype(np.int64)
    return level_of.astype(np.int64), strides, len(labels) - np.cumsum(totals)


def steps_of(measure: Measure | None, labels: IntArray) -> FloatArray:
    """Tabulate what an item of each level adds to a measure, shape (levels, counts of levels)."""
    values, totals = np.unique(labels, return_counts=True)
    if measure is None:
        return np.zeros((len(values), int(np.prod(totals + 1))))
    return level_steps(measure, tuple(values.tolist()), tuple(totals.tolist()))


# ---- kernels: scores and level_of (n,), strides and higher (levels,) ----------------------------
#
# `steps` and `tilts` (levels, counts) are what an item adds to a measure, and to the exponent.
# A set is a number whose bits are its items. Of orders, `table` has one column, the sum over all
# ways to a set. Of sign vectors it has n: for an item of the set, the ways that end with it; for
# any other item, the ways that it may follow. `dots` are its derivatives by a weight of `steps`.


@kernel
def forward(
    scores: FloatArray,
    level_of: IntArray,
    strides: IntArray,
    higher: IntArray,
    steps: FloatArray,
    tilts: FloatArray,
    distinct: bool,
    dual: bool,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return tops (sets,), table and, with `dual`, dots (sets, 1 or n)."""
    n, levels = len(scores), len(strides)
    sets, width = 1 << n, n if distinct else 1
    tops, table = np.zeros(sets), np.zeros((sets, width))
    dots = np.zeros((sets if dual else 1, width))
    table[0] = 1.0
    counts, terms = np.zeros(levels, np.int64), np.empty(n)
    sums, dot_sums = np.empty(levels), np.empty(levels)
    for here in range(1, sets):
        size, number = _count(here, level_of, strides, counts)
        top = -np.inf
        for i in range(n):
            if here >> i & 1:
                level, before = level_of[i], here ^ (1 << i)
                if table[before, i if distinct else 0] > 0.0:
                    slope = higher[level] - (size - counts[level])
                    term = tops[before] + scores[i] * slope + tilts[level, number - strides[level]]
                    terms[i] = term
                    top = max(top, term)
        tops[here] = top
        for i in range(n):
            if here >> i & 1:
                level, before = level_of[i], here ^ (1 << i)
                column = i if distinct else 0
                value = table[before, column]
                if value > 0.0:
                    factor = np.exp(terms[i] - top)
                    table[here, column] += value * factor
                    if dual:
                        step = steps[level, number - strides[level]]
                        dots[here, column] += (dots[before, column] + value * step) * factor
        if distinct:
            _permit(here, level_of, table[here], sums)
            if dual:
                _permit(here, level_of, dots[here], dot_sums)
    return tops, table, dots


@kernel
def _count(here: int, level_of: IntArray, strides: IntArray, counts: IntArray) -> tuple[int, int]:
    """Count the items of each level in a set; return its size and the number of the counts."""
    counts[:] = 0
    size, number = 0, 0
    for i in range(len(level_of)):
        if here >> i & 1:
            counts[level_of[i]] += 1
            size += 1
            number += strides[level_of[i]]
    return size, number


@kernel
def _permit(here: int, level_of: IntArray, row: FloatArray, sums: FloatArray) -> None:
    """Fill in, for items outside of a set, the ways that may come before them.

    These end with an item of another level, or with one of the same level and a lower number.
    """
    sums[:] = 0.0
    for i in range(len(level_of)):
        if here >> i & 1:
            sums[level_of[i]] += row[i]
        else:
            row[i] = sums[level_of[i]]
    for i in range(len(level_of)):
        if not here >> i & 1:
            others = 0.0
            for level in range(len(sums)):
                if level != level_of[i]:
                    others += sums[level]
            row[i] += others


@kernel
def backward(
    scores: FloatArray,
    level_of: IntArray,
    strides: IntArray,
    higher: IntArray,
    steps: FloatArray,
    tilts: FloatArray,
    distinct: bool,
    dual: bool,
    tops: FloatArray,
    table: FloatArray,
    dots: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the slopes of the log-sum and of the mean (n,), and the flows of sign vectors.

    `pulls` are derivatives of the log-sum by `table`, `turns` theirs by a weight of
    `steps`. In the flows
    (sets, n), those of items of the set are probabilities of the last step there.
    """
    n, levels = len(scores), len(strides)
    sets, width = table.shape
    pulls, turns = np.zeros((sets, width)), np.zeros((len(dots), width))
    total = table[sets - 1].sum()
    slopes, mean_slopes = np.zeros(n), np.zeros(n)
    pulls[sets - 1] = 1.0 / total
    if dual:
        turns[sets - 1] = -dots[sets - 1].sum() / total**2
    counts, sums = np.zeros(levels, np.int64), np.empty(levels)
    for here in range(sets - 1, 0, -1):
        size, number = _count(here, level_of, strides, counts)
        if distinct and here < sets - 1:
            _follow(here, level_of, pulls[here], sums)
            if dual:
                _follow(here, level_of, turns[here], sums)
        for i in range(n):
            column = i if distinct else 0
            if here >> i & 1:
                level, before = level_of[i], here ^ (1 << i)
                value = table[before, column]
                if value <= 0.0:
                    if distinct:
                        pulls[here, i] = 0.0
                    continue
                step = steps[level, number - strides[level]]
                slope = higher[level] - (size - counts[level])
                term = tops[before] + scores[i] * slope + tilts[level, number - strides[level]]
                factor = np.exp(term - tops[here])
                pull = pulls[here, column] * factor
                pulls[before, column] += pull
                slopes[i] += slope * pull * value
                if dual:
                    turn = turns[here, column] * factor + pull * step
                    turns[before, column] += turn
                    mean_slopes[i] += slope * (turn * value + pull * dots[before, column])
                if distinct:
                    pulls[here, i] = pull * value
    return slopes, mean_slopes, pulls


@kernel
def _follow(here: int, level_of: IntArray, row: FloatArray, sums: FloatArray) -> None:
    """Fill in, for items of a set, the sum over those outside of it that may come after them."""
    sums[:] = 0.0
    for i in range(len(level_of) - 1, -1, -1):
        if here >> i & 1:
            row[i] = sums[level_of[i]]
        else:
            sums[level_of[i]] += row[i]
    for i in range(len(level_of)):
        if here >> i & 1:
            for level in range(len(sums)):
                if level != level_of[i]:
                    row[i] += sums[level]


@kernel
def _pairwise(flows: FloatArray, level_of: IntArray) -> FloatArray:
    """Add up the flows of each item while another one is not yet placed."""
    sets, n = flows.shape
    result = np.zeros((n, n))
    for here in range(1, sets):
        for i in range(n):
            if here >> i & 1:
                for j in range(n):
                    if level_of[i] != level_of[j] and not here >> j & 1:
                        result[i, j] += flows[here, i]
    return result


@kernel
def _walk_back(table: FloatArray, level_of: IntArray, uniforms: FloatArray) -> IntArray:
    """Draw the last item, and then again and again the one before."""
    draws, n = uniforms.shape
    orders = np.empty((draws, n), np.int64)
    for draw in range(draws):
        here, after = (1 << n) - 1, -1
        for position in range(n - 1, -1, -1):
            total = 0.0
            for i in range(n):
                if _may_precede(here, i, after, level_of):
                    total += table[here, i]
            u, chosen = uniforms[draw, position] * total, -1
            for i in range(n):
                if _may_precede(here, i, after, level_of) and table[here, i] > 0.0:
                    chosen = i
                    u -= table[here, i]
                    if u < 0.0:
                        break
            orders[draw, position] = chosen
            here, after = here ^ (1 << chosen), chosen
    return orders


@kernel
def _may_precede(here: int, i: int, after: int, level_of: IntArray) -> bool:
    """Check whether an item of a set may be the last one before another."""
    if not here >> i & 1:
        return False
    return after < 0 or level_of[i] != level_of[after] or i < after
