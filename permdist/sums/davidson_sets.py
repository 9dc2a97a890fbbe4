"""Exact sums over all rankings with ties of a few items: a program over sets of items.

From every set that is still to be ranked, a stage goes to all sets with one bucket less: ``3^n``
steps with ties of any size, about ``2^n n^2 / 8`` with ties of two.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._check import frozen
from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

MOST_STEPS = 30_000_000  # one or two seconds


class Sums(NamedTuple):
    """What the program adds up.

    Attributes
    ----------
    entropy : float
    above, tied : array of float, shape (n, n)
        The chances that item i is above item j, and that they are in one bucket; diagonals 0.
    starts : array of float, shape (n, n, T)
        The chance that item i is in a bucket of t + 1 items whose first position is r: [i, r, t].
    buckets : array of float, shape (n, n) or (n, 1)
        The chance that item i is in bucket b, if these were asked for.
    flows : array of float, shape (codes, codes)
        The chance that a bucket with the second code is placed below items with the first.
    """

    entropy: float
    above: FloatArray
    tied: FloatArray
    starts: FloatArray
    buckets: FloatArray
    flows: FloatArray


def n_steps(n_items: int, largest_tie: int) -> int:
    """Return the number of steps of the program, sets times buckets that may come next.

    Examples
    --------
    >>> n_steps(3, 3), 3**3 - 2**3
    (19, 19)
    """
    sizes = range(1, min(n_items, largest_tie) + 1)
    return sum(math.comb(n_items, size) << (n_items - size) for size in sizes)


def fits(n_items: int, largest_tie: int) -> bool:
    """Check whether the program is affordable."""
    return n_items < 64 and n_steps(n_items, largest_tie) <= MOST_STEPS


def add_up(
    scores: FloatArray, ties: FloatArray, *, numbered: bool = False, codes: IntArray | None = None
) -> Sums:
    """Run the program.

    Parameters
    ----------
    scores : array of float, shape (n,)
    ties : array of float, shape (T,)
        Log-deltas from that of single items, 0, on.
    numbered : bool
        Whether to count buckets, which takes n times the memory.
    codes : array of int, shape (n,), optional
        The code of a set is the sum over its items. Without it, all codes are 0.
    """
    n, own = len(scores), codes
    if own is None:
        own = np.zeros(n, dtype=np.int64)
    inputs = frozen(scores), frozen(ties), n if numbered else 1, own
    return Sums(*_forward(*inputs))


def best_ranking(scores: FloatArray, ties: FloatArray) -> list[list[int]]:
    """Return the buckets of the most probable ranking.

    Of equally probable buckets the one is taken that comes first in a dictionary, with items
    sorted by score, and by number where scores are equal.
    """
    order = np.argsort(-scores, kind="stable")
    picks = _best_buckets(frozen(scores[order]), frozen(ties))
    buckets, here = [], len(picks) - 1
    while here > 0:
        pick = int(picks[here])
        buckets.append([int(order[k]) for k in range(len(scores)) if pick >> k & 1])
        here ^= pick
    return buckets


def mean_over_extensions(
    flows: FloatArray, steps: FloatArray, strides: IntArray, totals: IntArray
) -> float:
    """Add up a measure along rankings, in each of which ties are broken by chance.

    Parameters
    ----------
    flows : array of float, shape (codes, codes)
        As in `Sums`, with the code of a set that `strides` make of its numbers of items by level.
    steps : array of float, shape (levels, codes)
        What an item of a level adds below items with a code.
    strides, totals : array of int, shape (levels,)
    """

    @cache
    def value(above: int, bucket: int) -> float:
        counts = (bucket // strides % (totals + 1)).tolist()
        total = 0.0
        for level, number in enumerate(counts):
            if number:
                step, stride = float(steps[level, above]), int(strides[level])
                rest = value(above + stride, bucket - stride) if bucket > stride else 0.0
                total += number * (step + rest)
        return total / sum(counts)

    above, buckets = np.nonzero(flows)
    values = [value(a, b) for a, b in zip(above.tolist(), buckets.tolist(), strict=True)]
    return float(flows[above, buckets] @ np.array(values))


# ---- kernels: scores (n,), ties (T,); a set is a number whose bits are its items -----------------


@kernel
def _choices(
    here: int,
    scores: FloatArray,
    ties: FloatArray,
    masks: IntArray,
    parents: IntArray,
    lasts: IntArray,
    totals: FloatArray,
    weights: FloatArray,
) -> tuple[int, float]:
    """List the buckets that can be chosen out of a set; return their number and the log of the sum.

    Bucket c has the items of bucket ``parents[c]`` (if not -1) and a higher one, ``lasts[c]``;
    those with fewer items come first. `weights` are logarithms relative to the largest one.
    """
    n, found, first = len(scores), 0, 0
    top = -np.inf
    for size in range(1, len(ties) + 1):
        begin = found
        for parent in range(first if size > 1 else -1, begin if size > 1 else 0):
            low = 0 if parent < 0 else lasts[parent] + 1
            mask = 0 if parent < 0 else masks[parent]
            total = 0.0 if parent < 0 else totals[parent]
            for item in range(low, n):
                if here >> item & 1:
                    masks[found] = mask | 1 << item
                    parents[found], lasts[found] = parent, item
                    totals[found] = total + scores[item]
                    weights[found] = ties[size - 1] + totals[found] / size
                    top = max(top, weights[found])
                    found += 1
        first = begin
    total = 0.0
    for choice in range(found):
        weights[choice] -= top
        total += np.exp(weights[choice])
    return found, np.log(total)


@kernel
def _n_choices(n: int, largest_tie: int) -> int:
    """Return how many buckets can be chosen out of n items."""
    result, term = 0, 1
    for size in range(1, largest_tie + 1):
        term = term * (n - size + 1) // size
        result += term
    return result


@kernel
def _forward(
    scores: FloatArray, ties: FloatArray, columns: int, codes: IntArray
) -> tuple[float, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the fields of `Sums`; `columns` is 1 unless buckets are counted, then n."""
    n, sets, most = len(scores), 1 << len(scores), _n_choices(len(scores), len(ties))
    masks, parents = np.empty(most, np.int64), np.empty(most, np.int64)
    lasts, sizes = np.empty(most, np.int64), np.empty(most, np.int64)
    totals, weights = np.empty(most), np.empty(most)
    all_codes = codes.sum()
    arrive = np.zeros((sets, columns))  # the chance to come to a set, after so many buckets
    arrive[sets - 1, 0] = 1.0
    starts, buckets = np.zeros((n, n, len(ties))), np.zeros((n, columns))
    above, tied = np.zeros((n, n)), np.zeros((n, n))
    flows = np.zeros((all_codes + 1, all_codes + 1))
    chosen, together = np.empty(n), np.empty((n, n))
    entropy = 0.0
    for here in range(sets - 1, 0, -1):
        arrival = 0.0
        for column in range(columns):
            arrival += arrive[here, column]
        if arrival <= 0.0:
            continue
        number, log_total = _choices(here, scores, ties, masks, parents, lasts, totals, weights)
        left, code = 0, all_codes
        for item in range(n):
            chosen[item] = 0.0
            for other in range(n):
                together[item, other] = 0.0
            left += here >> item & 1
            code -= codes[item] * (here >> item & 1)
        for choice in range(number):
            parent = parents[choice]
            sizes[choice] = 1 if parent < 0 else sizes[parent] + 1
            chance = np.exp(weights[choice] - log_total)
            if chance <= 0.0:
                continue
            entropy -= arrival * chance * (weights[choice] - log_total)
            after, own = here ^ masks[choice], 0
            if columns == 1:
                arrive[after, 0] += arrival * chance
            else:
                for column in range(columns - 1):
                    arrive[after, column + 1] += arrive[here, column] * chance
            member = choice
            while member >= 0:
                item, other = lasts[member], parents[member]
                own += codes[item]
                chosen[item] += chance
                starts[item, n - left, sizes[choice] - 1] += arrival * chance
                while other >= 0:
                    together[lasts[other], item] += chance
                    other = parents[other]
                member = parents[member]
            flows[code, own] += arrival * chance
        for i in range(n):
            if here >> i & 1:
                for column in range(columns):
                    buckets[i, column] += arrive[here, column] * chosen[i]
                for j in range(n):
                    if i != j and here >> j & 1:
                        share = together[i, j] if i < j else together[j, i]
                        tied[i, j] += arrival * share
                        above[i, j] += arrival * max(chosen[i] - share, 0.0)
    return entropy, above, tied, starts, buckets, flows


@kernel
def _best_buckets(scores: FloatArray, ties: FloatArray) -> IntArray:
    """Return the best next bucket of each set, all sets that can be reached from it considered."""
    sets, most = 1 << len(scores), _n_choices(len(scores), len(ties))
    masks, parents = np.empty(most, np.int64), np.empty(most, np.int64)
    lasts = np.empty(most, np.int64)
    totals, weights = np.empty(most), np.empty(most)
    best, picks = np.zeros(sets), np.zeros(sets, np.int64)
    for here in range(1, sets):
        number, log_total = _choices(here, scores, ties, masks, parents, lasts, totals, weights)
        top = 0.0
        for choice in range(number):
            value = weights[choice] - log_total + best[here ^ masks[choice]]
            # Equal ones differ by rounding; the first is kept.
            if picks[here] == 0 or value > top + 1e-12 * max(1.0, -top):
                top, picks[here] = value, masks[choice]
        best[here] = top
    return picks
