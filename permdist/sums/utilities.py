"""Independent noisy scores, integrated exactly in one dimension.

Given the utility u of one item, every other item beats it independently, so that its position is
Poisson-binomial; the rest is an integral over u by the trapezoid rule, which converges
exponentially.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._kernels import kernel
from permdist.rankings.sorting import copy

if TYPE_CHECKING:
    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.measures import Positional


class Noise(NamedTuple):
    """The noise at the nodes u: its density, the density's derivative, and both tails.

    Each of shape (nodes, n); `above` is the chance of a utility above u, `below` of one below,
    each with all its digits. The nodes are `step` apart.
    """

    density: FloatArray
    slope: FloatArray
    above: FloatArray
    below: FloatArray
    step: float


def nodes(scores: FloatArray, low: float, high: float, gap: float, step: float) -> FloatArray:
    """Return the multiples of `step` from ``low`` before to ``high`` after the scores, ascending.

    Where neighboring scores are more than `gap` apart their noise does not meet, and what lies
    between is left out.
    """
    ends = np.sort(scores)
    starts = np.concatenate([[True], np.diff(ends) > gap])
    first = np.floor((ends[starts] + low) / step)
    last_of = np.append(np.flatnonzero(starts)[1:], len(ends)) - 1
    last = np.ceil((ends[last_of] + high) / step)
    return np.concatenate([np.arange(a, b + 1) for a, b in zip(first, last, strict=True)]) * step


def at_nodes(x: FloatArray, scores: FloatArray) -> FloatArray:
    """Return the distance of every node from every score, shape (nodes, n)."""
    return x[:, None] - scores


def marginals(noise: Noise, kept: int) -> FloatArray:
    """Return the probabilities of the first `kept` positions, shape (n, kept)."""
    n = noise.above.shape[1]
    weighted, result = noise.density * noise.step, np.zeros((n, kept))
    work = _work_space(n, kept)
    # Halving costs a logarithm; the sums are vectorized.
    _marginals(noise.above, noise.below, weighted, *work, result)
    return result


def expected_sum(noise: Noise, form: Positional) -> tuple[float, FloatArray]:
    """Return the expected value of a sum over positions, and its gradient by the scores (n,).

    Scores are in units of the noise. Costs O(items x positions that count) per node.
    """
    n = noise.above.shape[1]
    counted = int(np.max(np.flatnonzero(form.weights), initial=0)) + 1
    weights = np.ascontiguousarray(form.weights[:counted])
    gradient = np.zeros(n)
    total = _expected_sum(*noise[:4], form.gains, weights, 0.0, gradient)
    return form.offset + noise.step * total, noise.step * gradient


def expected_steps(noise: Noise, good: BoolArray, steps: FloatArray) -> float:
    """Return the expected sum of steps (p, m + 1) over the goods and bads above each good item.

    Goods and bads above an item are independent: the steps are summed over both numbers.
    """
    p, m = int(good.sum()), int((~good).sum())
    tables = (
        np.ascontiguousarray(noise.above[:, good]),
        np.ascontiguousarray(noise.below[:, good]),
        np.ascontiguousarray(noise.above[:, ~good]),
        np.ascontiguousarray(noise.below[:, ~good]),
        np.ascontiguousarray(noise.density[:, good]) * noise.step,
    )
    work = *_work_space(p, p), np.empty(m + 1), np.empty(p)
    return _expect_steps(*tables, steps, *work, 0.0)


def _work_space(n: int, kept: int) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return out (n, kept), stack and plan for `_leave_one_out`.

    Kernels that make no arrays are compiled sooner.
    """
    return np.empty((n, kept)), np.empty((64, 2, kept + 2)), np.empty((4, 64), np.int64)


# ---- kernels ----------------------------------------------------------------------------------


@kernel
def _leave_one_out(
    above: FloatArray,
    below: FloatArray,
    out: FloatArray,
    stack: FloatArray,
    plan: IntArray,
) -> None:
    """Fill out (n, kept) with the distribution of how many of the *others* are above.

    above and below (n,) are independent chances and what they lack to 1. Halving: the polynomial
    of all items outside a range is multiplied by those of its right half to serve its left half,
    and the other way round. Only sums of products of non-negative numbers occur, so that all
    digits are good. stack (levels, 2, kept + 2) and plan (4, levels) are work space.
    """
    n, kept = len(above), out.shape[1]
    # now: which of the two rows of a level holds its polynomial
    low, high, side, now = plan[0], plan[1], plan[2], plan[3]
    for r in range(kept + 2):
        stack[0, 0, r] = 0.0
    stack[0, 0, 2] = 1.0  # two zeros in front stand for negative powers
    low[0], high[0], side[0], now[0] = 0, n, 0, 0
    depth = 0
    while depth >= 0:
        a, b = low[depth], high[depth]
        if b - a == 1:
            copy(stack[depth, now[depth], 2 : kept + 2], out[a])
            depth -= 1
            continue
        if side[depth] == 2:
            depth -= 1
            continue
        middle = (a + b) // 2
        start, end = (middle, b) if side[depth] == 0 else (a, middle)
        source, turn = stack[depth, now[depth]], 0
        degree = n - (b - a)
        j = start
        while j < end:
            target = stack[depth + 1, turn]
            target[0] = 0.0
            target[1] = 0.0
            p, q = above[j], below[j]
            if j + 1 < end:  # two factors at once
                p2, q2 = above[j + 1], below[j + 1]
                c0, c1, c2 = q * q2, p * q2 + q * p2, p * p2
                j += 2
                degree += 2
                top = min(degree, kept - 1) + 1
                for r in range(top):
                    target[r + 2] = c0 * source[r + 2] + c1 * source[r + 1] + c2 * source[r]
            else:
                j += 1
                degree += 1
                top = min(degree, kept - 1) + 1
                for r in range(top):
                    target[r + 2] = q * source[r + 2] + p * source[r + 1]
            for r in range(top + 2, min(top + 4, kept + 2)):
                target[r] = 0.0
            source = target
            turn = 1 - turn
        now[depth + 1] = 1 - turn
        for r in range(degree + 3, kept + 2):
            source[r] = 0.0
        low[depth + 1], high[depth + 1] = (a, middle) if side[depth] == 0 else (middle, b)
        side[depth + 1] = 0
        side[depth] += 1
        depth += 1


@kernel
def _marginals(
    above: FloatArray,
    below: FloatArray,
    weighted: FloatArray,
    out: FloatArray,
    stack: FloatArray,
    plan: IntArray,
    result: FloatArray,
) -> None:
    """Add up (nodes, n) to the probabilities of the first positions, result (n, kept)."""
    n_nodes, n = above.shape
    kept = result.shape[1]
    for node in range(n_nodes):
        _leave_one_out(above[node], below[node], out, stack, plan)
        for i in range(n):
            if weighted[node, i] > 0.0:
                for r in range(kept):
                    result[i, r] += weighted[node, i] * out[i, r]


@kernel
def _expect_steps(
    above_good: FloatArray,
    below_good: FloatArray,
    above_bad: FloatArray,
    below_bad: FloatArray,
    weighted: FloatArray,
    steps: FloatArray,
    out: FloatArray,
    stack: FloatArray,
    plan: IntArray,
    bads: FloatArray,
    mean: FloatArray,
    total: float,
) -> float:
    """Add to a total: steps (p, m + 1) over how many goods and bads are above each good item.

    bads (m + 1,), mean (p,) and what `_leave_one_out` takes are work space.
    """
    n_nodes, p = above_good.shape
    m = above_bad.shape[1]
    for node in range(n_nodes):
        _leave_one_out(above_good[node], below_good[node], out, stack, plan)
        for r in range(m + 1):
            bads[r] = 0.0
        bads[0] = 1.0
        for j in range(m):
            chance, rest = above_bad[node, j], below_bad[node, j]
            for r in range(j + 1, 0, -1):
                bads[r] = rest * bads[r] + chance * bads[r - 1]
            bads[0] *= rest
        for g in range(p):
            mean[g] = 0.0
            for b in range(m + 1):
                mean[g] += bads[b] * steps[g, b]
        for i in range(p):
            inner = 0.0
            for g in range(p):
                inner += out[i, g] * mean[g]
            total += weighted[node, i] * inner
    return total


@kernel
def _expected_sum(
    density: FloatArray,
    slope: FloatArray,
    above: FloatArray,
    below: FloatArray,
    gains: FloatArray,
    values: FloatArray,
    total: float,
    result: FloatArray,
) -> float:
    """Add sum_i gains[i] E values[rank of i] to a total, its derivatives by the scores to result.

    Positions from len(values) on count nothing. At every node, items are gone through one by one:
    each is above or not, or is the one whose position is asked for, marked by its gain and
    density. Going back through the same steps gives all derivatives, in O(items x positions); only
    sums of products of non-negative numbers are built up.
    """
    n_nodes, n = above.shape
    kept = len(values)
    plain, marked = np.empty((n + 1, kept)), np.empty((n + 1, kept))
    by_plain, by_marked = np.empty(kept + 1), np.empty(kept + 1)
    for node in range(n_nodes):
        plain[0, :] = 0.0
        plain[0, 0] = 1.0
        marked[0, :] = 0.0
        for j in range(n):
            p, q = above[node, j], below[node, j]
            mark = gains[j] * density[node, j]
            plain[j + 1, 0] = q * plain[j, 0]
            marked[j + 1, 0] = q * marked[j, 0] + mark * plain[j, 0]
            for r in range(1, kept):
                plain[j + 1, r] = q * plain[j, r] + p * plain[j, r - 1]
                marked[j + 1, r] = q * marked[j, r] + p * marked[j, r - 1] + mark * plain[j, r]
        by_plain[:] = 0.0
        copy(values, by_marked)
        by_marked[kept] = 0.0
        for r in range(kept):
            total += marked[n, r] * values[r]
        for j in range(n - 1, -1, -1):
            p, q = above[node, j], below[node, j]
            mark = gains[j] * density[node, j]
            moved, own = 0.0, 0.0
            for r in range(kept):
                # One more item above makes of position r the next one.
                moved += marked[j, r] * (by_marked[r + 1] - by_marked[r])
                moved += plain[j, r] * (by_plain[r + 1] - by_plain[r])
                own += plain[j, r] * by_marked[r]
            # A higher score shifts the density up: its derivative is minus the slope.
            result[j] += density[node, j] * moved - gains[j] * slope[node, j] * own
            for r in range(kept):
                by_plain[r] = q * by_plain[r] + p * by_plain[r + 1] + mark * by_marked[r]
                by_marked[r] = q * by_marked[r] + p * by_marked[r + 1]
    return total
