"""All merges of two sorted classes, summed in a few nanoseconds a lattice cell.

What `lattice.py` does for any number of classes, for two: the cells of an anti-diagonal (as many
items placed) do not depend on each other, so they are kept side by side and the compiler turns
their loops into vector instructions. A cell's sum is kept as ``exp(top) * rest``, with `top` the
exponent of the best way there: one exponential a cell, no logarithm, no underflow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from permdist._exp import exp_down
from permdist._interrupts import patiently
from permdist._kernels import kernel
from permdist._typing import FloatArray, IntArray
from permdist.distributions.lattice import grade_table
from permdist.measures import Measure

NEVER = -1e300
ROUNDS = 512  # `rest` at most doubles from one anti-diagonal to the next


class Slopes(NamedTuple):
    """Derivatives by the scores of the goods and of the bads, both from the top down."""

    goods: FloatArray
    bads: FloatArray


class Merges:
    """Exact sums over all merges of goods with bads, each class from its best down.

    The weight of a merge is ``exp(-2 sum |g - b| + weight * sum of steps)``, the first sum over
    the pairs whose lower score is above: the good-bad model, relative to the order of the scores.

    Parameters
    ----------
    goods, bads : arrays of float, shapes (p,) and (m,)
        Scores times the model's scale, in the order of each class.
    steps : array of float, shape (2, cells), optional
        What placing a bad (row 0) or a good (row 1) adds, as `diagonal_steps` lays it out.
    weight : float
        The weight of the steps.
    """

    def __init__(
        self,
        goods: FloatArray,
        bads: FloatArray,
        steps: FloatArray | None = None,
        weight: float = 0.0,
    ) -> None:
        self._goods = np.concatenate([[0.0], goods])
        # Sums of the first 0 .. m bads; the last first, as an anti-diagonal meets them.
        self._sums = np.concatenate([[0.0], np.cumsum(bads)])[::-1].copy()
        # What a good loses where it belongs by its score; any other place is measured from there.
        better = np.searchsorted(-bads, -goods, side="left")
        self._least = np.concatenate([[0.0], better * goods - self._sums[::-1][better]])
        self._first = diagonals(len(goods), len(bads))
        self._steps = np.zeros((2, self._first[-1])) if steps is None else steps
        self._weight = weight

    @cached_property
    def _shares(self) -> tuple[float, FloatArray]:
        shares = np.empty((2, self._first[-1]))
        inputs = self._goods, self._least, self._sums, self._steps, self._weight, self._first
        return self._patiently(_forward, *inputs, shares), shares

    @property
    def log_sum(self) -> float:
        """The log of the sum of all weights."""
        return self._shares[0]

    def gradient(self) -> Slopes:
        """Differentiate `log_sum`."""
        p, m = len(self._goods) - 1, len(self._sums) - 1
        return slopes(*self._patiently(_backward, self._shares[1], self._first, p, m))

    def expect(self, steps: FloatArray) -> float:
        """Give the mean of a sum of steps, laid out by `diagonal_steps`."""
        return float(self._means(steps)[-1])

    def expect_gradient(self, steps: FloatArray) -> Slopes:
        """Differentiate `expect`."""
        p, m = len(self._goods) - 1, len(self._sums) - 1
        means = self._means(steps)
        inputs = self._shares[1], steps, means, self._first, p, m
        return slopes(*self._patiently(_backward_mean, *inputs))

    def _means(self, steps: FloatArray) -> FloatArray:
        p, m = len(self._goods) - 1, len(self._sums) - 1
        return self._patiently(_means, self._shares[1], steps, self._first, p, m)

    def _patiently(self, kernel: Callable[..., Any], *inputs: Any) -> Any:
        """Walk the cells so that Ctrl-C ends it."""
        return patiently(float(self._first[-1]), kernel, *inputs)


def slopes(passed: FloatArray, after: FloatArray) -> Slopes:
    """Turn the bads that each good lets pass, and the goods after i bads, into derivatives."""
    return Slopes(-2.0 * passed, 2.0 * after[::-1].cumsum()[::-1][1:])


@lru_cache(maxsize=1024)
def diagonals(p: int, m: int) -> IntArray:
    """Say where each anti-diagonal starts: ``p + m + 1`` starts, then the number of cells."""
    placed = np.arange(p + m + 1)
    widths = np.minimum(p, placed) - np.maximum(0, placed - m) + 1
    return np.concatenate([[0], np.cumsum(widths)])


@lru_cache(maxsize=64)
def diagonal_steps(
    measure: Measure, grades: tuple[int, int], totals: tuple[int, int]
) -> FloatArray:
    """Tabulate what placing a bad or a good adds to a measure, shape (2, cells).

    Cell (i, j), i of the lower grade and j of the higher one placed, holds the step that led
    there; cells follow each other by ``i + j``, then by j.
    """
    m, p = totals
    goods, bads = np.mgrid[0 : p + 1, 0 : m + 1]
    by_diagonal = np.lexsort((goods.ravel(), (goods + bads).ravel()))
    # grade_table numbers the states by i + (m + 1) j, and tells the step that leaves them.
    table = grade_table(measure, grades, totals).reshape(2, p + 1, m + 1)
    steps = np.zeros_like(table)
    steps[0, :, 1:] = table[0, :, :-1]
    steps[1, 1:, :] = table[1, :-1, :]
    result = np.ascontiguousarray(steps.reshape(2, -1)[:, by_diagonal])
    result.flags.writeable = False
    return result


# ---- kernels: tables (2, cells), bads in row 0 and goods in row 1; first as in `diagonals` ------
#
# Arrays over a diagonal have p + 2 entries: j goods placed is entry j + 1, and entries outside
# the lattice stay empty. Diagonal t holds j from max(0, t - m) to min(p, t).


@kernel(fuse=True)
def _forward(
    goods: FloatArray,
    least: FloatArray,
    sums: FloatArray,
    steps: FloatArray,
    weight: float,
    first: IntArray,
    shares: FloatArray,
) -> float:
    """Fill in which share of a cell's sum came by a bad and by a good; give the log of the last.

    goods and least (p + 1,) with one entry in front, sums (m + 1,) from the last down. Whatever
    `least` is, it is the same in all merges and changes no share.
    """
    p, m = len(goods) - 1, len(sums) - 1
    n = p + m
    tops, rests = np.full((2, p + 2), NEVER), np.zeros((2, p + 2))
    tops[0, 1], rests[0, 1] = 0.0, 1.0
    shares[:, 0] = 0.0
    for t in range(1, n + 1):
        low = max(0, t - m)
        width = min(p, t) + 1 - low
        old, new = (t - 1) & 1, t & 1
        start, end = first[t], first[t] + width
        top_bad, top_good = tops[old, low + 1 : low + 1 + width], tops[old, low : low + width]
        rest_bad, rest_good = rests[old, low + 1 : low + 1 + width], rests[old, low : low + width]
        top, rest = tops[new, low + 1 : low + 1 + width], rests[new, low + 1 : low + 1 + width]
        score, passed = goods[low : low + width], sums[m - t + low : m - t + low + width]
        lowest = least[low : low + width]
        step_bad, step_good = steps[0, start:end], steps[1, start:end]
        share_bad, share_good = shares[0, start:end], shares[1, start:end]
        above = float(t - low)  # bads placed in the first cell; one less in each of the next
        for k in range(width):
            by_bad = top_bad[k] + weight * step_bad[k]
            lost = ((above - k) * score[k] - passed[k]) - lowest[k]
            by_good = top_good[k] + (weight * step_good[k] - 2.0 * lost)
            gap = by_good - by_bad
            small = exp_down(-abs(gap))
            bad = rest_bad[k] * (small if gap >= 0.0 else 1.0)
            good = rest_good[k] * (1.0 if gap >= 0.0 else small)
            total = bad + good
            top[k], rest[k] = max(by_bad, by_good), total
            inverse = 1.0 / total
            share_bad[k], share_good[k] = bad * inverse, good * inverse
        if low > 0:  # this entry has left the lattice
            tops[new, low], rests[new, low] = NEVER, 0.0
        if t % ROUNDS == 0:
            for k in range(width):
                top[k] += np.log(rest[k])
                rest[k] = 1.0
    return tops[n & 1, p + 1] + np.log(rests[n & 1, p + 1])


@kernel(fuse=True)
def _backward(shares: FloatArray, first: IntArray, p: int, m: int) -> tuple[FloatArray, FloatArray]:
    """Give the mean number of bads above each good, and of goods placed after i bads."""
    n = p + m
    flows = np.zeros((2, p + 2))
    flows[n & 1, p + 1] = 1.0
    passed, after = np.zeros(p + 1), np.zeros(m + 1)
    for t in range(n, 0, -1):
        low = max(0, t - m)
        width = min(p, t) + 1 - low
        old, new = (t - 1) & 1, t & 1
        start, end = first[t], first[t] + width
        flow = flows[new, low + 1 : low + 1 + width]
        flow_bad, flow_good = flows[old, low + 1 : low + 1 + width], flows[old, low : low + width]
        share_bad, share_good = shares[0, start:end], shares[1, start:end]
        mine, counts = passed[low : low + width], after[m - t + low : m - t + low + width]
        above = float(t - low)
        flows[old, low : low + width + 1] = 0.0
        for k in range(width):
            moved = flow[k] * share_good[k]
            flow_good[k] += moved
            mine[k] += moved * (above - k)
            counts[k] += moved
        for k in range(width):
            flow_bad[k] += flow[k] * share_bad[k]
    return passed[1:], after[::-1]


@kernel(fuse=True)
def _means(shares: FloatArray, steps: FloatArray, first: IntArray, p: int, m: int) -> FloatArray:
    """Mean of the steps on the way to each cell, shape (cells,)."""
    means = np.zeros(first[-1])
    for t in range(1, p + m + 1):
        low, low_before = max(0, t - m), max(0, t - 1 - m)
        last, last_before = min(p, t), min(p, t - 1)
        here, before = first[t] - low, first[t - 1] - low_before
        # By a bad from j goods, by a good from j - 1, where these are cells.
        width = min(last, last_before) + 1 - low
        into, source = means[here + low :][:width], means[before + low :][:width]
        share, step = shares[0, here + low :][:width], steps[0, here + low :][:width]
        for k in range(width):
            into[k] += share[k] * (source[k] + step[k])
        begin = max(low, low_before + 1)
        width = min(last, last_before + 1) + 1 - begin
        into, source = means[here + begin :][:width], means[before + begin - 1 :][:width]
        share, step = shares[1, here + begin :][:width], steps[1, here + begin :][:width]
        for k in range(width):
            into[k] += share[k] * (source[k] + step[k])
    return means


@kernel(fuse=True)
def _backward_mean(
    shares: FloatArray, steps: FloatArray, means: FloatArray, first: IntArray, p: int, m: int
) -> tuple[FloatArray, FloatArray]:
    """Differentiate the last mean by log-weights; gathered as in `_backward`."""
    n = p + m
    flows, pulls = np.zeros((2, p + 2)), np.zeros((2, p + 2))
    flows[n & 1, p + 1] = 1.0
    along = np.zeros((2, p + 2))  # the means of a diagonal, where neighbors find them
    passed, after = np.zeros(p + 1), np.zeros(m + 1)
    along[n & 1, p + 1] = means[-1]
    for t in range(n, 0, -1):
        low, low_before = max(0, t - m), max(0, t - 1 - m)
        width = min(p, t) + 1 - low
        old, new = (t - 1) & 1, t & 1
        start, end = first[t], first[t] + width
        here = slice(low + 1, low + 1 + width)
        left = slice(low, low + width)
        along[old, low : low + width + 1] = 0.0
        along[old, low_before + 1 : low_before + 1 + first[t] - first[t - 1]] = means[
            first[t - 1] : first[t]
        ]
        flows[old, low : low + width + 1] = 0.0
        pulls[old, low : low + width + 1] = 0.0
        flow, pull, mean = flows[new, here], pulls[new, here], along[new, here]
        flow_bad, pull_bad, mean_bad = flows[old, here], pulls[old, here], along[old, here]
        flow_good, pull_good, mean_good = flows[old, left], pulls[old, left], along[old, left]
        share_bad, share_good = shares[0, start:end], shares[1, start:end]
        step_bad, step_good = steps[0, start:end], steps[1, start:end]
        mine, counts = passed[low : low + width], after[m - t + low : m - t + low + width]
        above = float(t - low)
        for k in range(width):
            surplus = mean_good[k] + step_good[k] - mean[k]
            moved = share_good[k] * (pull[k] + flow[k] * surplus)
            flow_good[k] += flow[k] * share_good[k]
            pull_good[k] += moved
            mine[k] += moved * (above - k)
            counts[k] += moved
        for k in range(width):
            surplus = mean_bad[k] + step_bad[k] - mean[k]
            flow_bad[k] += flow[k] * share_bad[k]
            pull_bad[k] += share_bad[k] * (pull[k] + flow[k] * surplus)
    return passed[1:], after[::-1]
