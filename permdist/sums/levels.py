"""All interleavings of any number of classes under the good-bad pair model.

The engine of `interleavings.py` for three classes and more; `two_classes.py` has the same functions
for two. Items are numbered class after class, the lowest level first, each class from its top down;
scores are times twice the model's scale. States are those of `shape.py`. A state's sum is kept as
``exp(top) * rest``, with `top` the exponent of the best way there: no logarithm per state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.sums.exponential import exp_down
from permdist.sums.shape import count_down, count_up, level_steps

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

LARGEST_REST = 1e200

tabulate = level_steps


# ---- kernels: scores (n,), sizes (levels,), steps (levels, states), shares (states, levels) -----


@kernel
def forward(
    scores: FloatArray, sizes: IntArray, steps: FloatArray, weight: float, by_score: bool
) -> tuple[float, FloatArray]:
    """Return the log of the sum over all interleavings, and the share of each way into a state.

    The exponent is F plus `weight` times the steps, less F of the order of the scores
    (`by_score`) or of that of the labels.
    """
    levels = len(sizes)
    strides, first = layout(sizes)
    gains = _pair_gains(scores, sizes, first, by_score)
    states = strides[levels]
    tops, rests, shares = np.empty(states), np.empty(states), np.zeros((states, levels))
    tops[0], rests[0] = 0.0, 1.0
    counts, terms = np.zeros(levels, np.int64), np.empty(levels)
    for state in range(1, states):
        count_up(counts, sizes)
        top = -np.inf
        for c in range(levels):
            if counts[c] > 0:
                before = state - strides[c]
                item = first[c] + counts[c] - 1
                term = tops[before] + weight * steps[c, before]
                for d in range(c):
                    term += gains[item, first[d] + d + counts[d]]
                terms[c] = term
                top = max(top, term)
        rest = 0.0
        for c in range(levels):
            if counts[c] > 0:
                shares[state, c] = rests[state - strides[c]] * exp_down(terms[c] - top)
                rest += shares[state, c]
        inverse = 1.0 / rest
        for c in range(levels):
            shares[state, c] *= inverse
        if rest > LARGEST_REST:
            top += np.log(rest)
            rest = 1.0
        tops[state], rests[state] = top, rest
    return tops[states - 1] + np.log(rests[states - 1]), shares


@kernel
def layout(sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the strides of the states and where each class starts, both (levels + 1,)."""
    levels = len(sizes)
    strides, first = np.ones(levels + 1, np.int64), np.zeros(levels + 1, np.int64)
    for c in range(levels):
        strides[c + 1] = strides[c] * (sizes[c] + 1)
        first[c + 1] = first[c] + sizes[c]
    return strides, first


@kernel
def _pair_gains(scores: FloatArray, sizes: IntArray, first: IntArray, by_score: bool) -> FloatArray:
    """Tabulate what an item gains with i items of a lower level above it and the others below.

    Entry ``[item, first[d] + d + i]`` for level d. Less what the order of the scores gains, all
    terms have one sign and nothing cancels.
    """
    levels, n = len(sizes), len(scores)
    gains = np.zeros((n, n + levels))
    for c in range(1, levels):
        for item in range(first[c], first[c + 1]):
            score = scores[item]
            for d in range(c):
                slot = first[d] + d
                above = 0.0
                for i in range(sizes[d]):
                    gap = scores[first[d] + i] - score
                    above += min(gap, 0.0) if by_score else gap
                    gains[item, slot + i + 1] = above
                if by_score:
                    below = 0.0
                    for i in range(sizes[d] - 1, -1, -1):
                        below -= max(scores[first[d] + i] - score, 0.0)
                        gains[item, slot + i] += below
    return gains


@kernel
def means(shares: FloatArray, sizes: IntArray, steps: FloatArray) -> FloatArray:
    """Average the steps over all ways to each state, shape (states,)."""
    strides, _ = layout(sizes)
    along = np.zeros(len(shares))
    for state in range(1, len(shares)):
        for c in range(len(sizes)):
            if shares[state, c] > 0.0:
                before = state - strides[c]
                along[state] += shares[state, c] * (along[before] + steps[c, before])
    return along


@kernel
def slopes(shares: FloatArray, sizes: IntArray, out: FloatArray) -> None:
    """Differentiate the log-sum, relative to the order of the labels, by the scores (n,)."""
    _descend(shares, sizes, shares, np.empty(0), False, out)


@kernel
def mean_slopes(
    shares: FloatArray, sizes: IntArray, steps: FloatArray, along: FloatArray, out: FloatArray
) -> None:
    """Differentiate the last of the `means` along by the scores (n,)."""
    _descend(shares, sizes, steps, along, True, out)


@kernel
def _descend(
    shares: FloatArray,
    sizes: IntArray,
    steps: FloatArray,
    along: FloatArray,
    of_mean: bool,
    out: FloatArray,
) -> None:
    """Go back from the complete state; steps and along are read only if `of_mean`."""
    strides, first = layout(sizes)
    levels, states = len(sizes), len(shares)
    chances, pulls = np.zeros(states), np.zeros(states)
    chances[-1] = 1.0
    counts = sizes.copy()
    out[:] = 0.0
    for state in range(states - 1, 0, -1):
        if chances[state] > 0.0:
            lower, higher = 0, 0
            for c in range(levels):
                higher += sizes[c] - counts[c]
            for c in range(levels):
                higher -= sizes[c] - counts[c]
                share = shares[state, c]
                if share > 0.0:
                    before = state - strides[c]
                    moved = flow = chances[state] * share
                    chances[before] += flow
                    if of_mean:
                        surplus = along[before] + steps[c, before] - along[state]
                        moved = pulls[state] * share + flow * surplus
                        pulls[before] += moved
                    out[first[c] + counts[c] - 1] += moved * (higher - lower)
                lower += counts[c]
        count_down(counts, sizes)


@kernel
def best(
    scores: FloatArray, sizes: IntArray, steps: FloatArray, weight: float, out: FloatArray
) -> float:
    """Return the largest exponent, relative to the order of the labels, and its slopes (n,)."""
    strides, first = layout(sizes)
    levels = len(sizes)
    states = strides[levels]
    tops, last = np.empty(states), np.zeros(states, np.int8)
    tops[0] = 0.0
    counts = np.zeros(levels, np.int64)
    for state in range(1, states):
        count_up(counts, sizes)
        top, lower, higher = -np.inf, 0, 0
        for c in range(levels):
            higher += sizes[c] - counts[c]
        for c in range(levels):
            higher -= sizes[c] - counts[c]
            if counts[c] > 0:
                before = state - strides[c]
                gain = scores[first[c] + counts[c] - 1] * (higher - lower)
                term = tops[before] + gain + weight * steps[c, before]
                if term > top:
                    top, last[state] = term, c
            lower += counts[c]
        tops[state] = top
    state = states - 1
    while state > 0:
        c = last[state]
        lower, higher = 0, 0
        for other in range(levels):
            if other < c:
                lower += counts[other]
            elif other > c:
                higher += sizes[other] - counts[other]
        out[first[c] + counts[c] - 1] = higher - lower
        counts[c] -= 1
        state -= strides[c]
    return tops[states - 1]
