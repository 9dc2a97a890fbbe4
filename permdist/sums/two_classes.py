"""All interleavings of two classes under the good-bad pair model, at a few nanoseconds per cell.

The engine of `interleavings.py` for two classes, with the functions of `levels.py`: bads first,
then goods, each from the top down; scores are times twice the model's scale. The cells of an
anti-diagonal (equally many items placed) do not depend on each other, so they are kept side by
side and the compiler turns their loops into vector instructions. A cell's sum is kept as
``exp(top) * rest``, with `top` the exponent of the best way there: one exponential per cell, no
logarithm, no underflow.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.rankings.sorting import copy
from permdist.sums.exponential import exp_down
from permdist.sums.shape import level_steps

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure

NEVER = -1e300
ROUNDS = 512  # `rest` at most doubles from one anti-diagonal to the next


@lru_cache(maxsize=64)
def tabulate(measure: Measure, labels: tuple[int, ...], totals: tuple[int, ...]) -> FloatArray:
    """Tabulate what placing a bad or a good adds to a measure, shape (2, cells).

    Cell (i, j), i of the lower label and j of the higher one placed, holds the step that led
    there; cells follow each other by ``i + j``, then by j.
    """
    m, p = totals
    goods, bads = np.mgrid[0 : p + 1, 0 : m + 1]
    by_diagonal = np.lexsort((goods.ravel(), (goods + bads).ravel()))
    # There, states are numbered by i + (m + 1) j, and hold the step that leaves them.
    table = level_steps(measure, labels, totals).reshape(2, p + 1, m + 1)
    steps = np.zeros_like(table)
    steps[0, :, 1:] = table[0, :, :-1]
    steps[1, 1:, :] = table[1, :-1, :]
    return np.ascontiguousarray(steps.reshape(2, -1)[:, by_diagonal])


# ---- kernels: scores (m + p,), sizes (m, p), steps and shares (2, cells) as in `tabulate` ---
#
# Arrays over a diagonal have p + 2 entries: j goods placed is entry j + 1, and entries outside
# the lattice stay empty. Diagonal t holds j from max(0, t - m) to min(p, t); arrays over the bads
# are reversed, so that the entry of ``i = t - j`` bads placed is number m - i.


@kernel(fuse=True)
def forward(
    scores: FloatArray, sizes: IntArray, steps: FloatArray, weight: float, by_score: bool
) -> tuple[float, FloatArray]:
    """Return the log of the sum over all interleavings, and the share of each way into a cell.

    The exponent is F plus `weight` times the steps, less F of the order of the scores
    (`by_score`; both classes must be sorted) or of that of the labels.
    """
    m, p = sizes
    n = p + m
    goods, least, sums = np.zeros(p + 1), np.zeros(p + 1), np.zeros(m + 1)
    copy(scores[m:], goods[1:])
    for i in range(m):  # sums of the first i bads, the last first
        sums[m - i - 1] = sums[m - i] + scores[i]
    if by_score:
        # What a good loses where it belongs by its score; any other place is measured from there.
        i = 0
        for j in range(1, p + 1):
            while i < m and scores[i] > goods[j]:
                i += 1
            least[j] = i * goods[j] - sums[m - i]
    tops, rests = np.full((2, p + 2), NEVER), np.zeros((2, p + 2))
    tops[0, 1], rests[0, 1] = 0.0, 1.0
    shares = np.empty((2, (p + 1) * (m + 1)))
    shares[:, 0] = 0.0
    end = 1
    for t in range(1, n + 1):
        low = max(0, t - m)
        width = min(p, t) + 1 - low
        old, new = (t - 1) & 1, t & 1
        start, end = end, end + width
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
            by_good = top_good[k] + (weight * step_good[k] - lost)
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
    return tops[n & 1, p + 1] + np.log(rests[n & 1, p + 1]), shares


@kernel(fuse=True)
def means(shares: FloatArray, sizes: IntArray, steps: FloatArray) -> FloatArray:
    """Average the steps over all ways to each cell, shape (cells,)."""
    m, p = sizes
    along = np.zeros(shares.shape[1])
    start_before, start = 0, 1
    for t in range(1, p + m + 1):
        low, low_before = max(0, t - m), max(0, t - 1 - m)
        last, last_before = min(p, t), min(p, t - 1)
        here, before = start - low, start_before - low_before
        # By a bad from j goods, by a good from j - 1, where these are cells.
        width = min(last, last_before) + 1 - low
        into, source = along[here + low :][:width], along[before + low :][:width]
        share, step = shares[0, here + low :][:width], steps[0, here + low :][:width]
        for k in range(width):
            into[k] += share[k] * (source[k] + step[k])
        begin = max(low, low_before + 1)
        width = min(last, last_before + 1) + 1 - begin
        into, source = along[here + begin :][:width], along[before + begin - 1 :][:width]
        share, step = shares[1, here + begin :][:width], steps[1, here + begin :][:width]
        for k in range(width):
            into[k] += share[k] * (source[k] + step[k])
        start_before, start = start, start + last - low + 1
    return along


@kernel(fuse=True)
def slopes(shares: FloatArray, sizes: IntArray, out: FloatArray) -> None:
    """Differentiate the log-sum, relative to the order of the labels, by the scores (n,)."""
    m, p = sizes
    n = p + m
    flows = np.zeros((2, p + 2))
    flows[n & 1, p + 1] = 1.0
    passed, after = np.zeros(p + 1), np.zeros(m + 1)
    start = shares.shape[1]
    for t in range(n, 0, -1):
        low = max(0, t - m)
        width = min(p, t) + 1 - low
        old, new = (t - 1) & 1, t & 1
        start, end = start - width, start
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
    _gather(passed, after, out)


@kernel(fuse=True)
def mean_slopes(
    shares: FloatArray, sizes: IntArray, steps: FloatArray, along: FloatArray, out: FloatArray
) -> None:
    """Differentiate the last of the `means` along by the scores (n,)."""
    m, p = sizes
    n = p + m
    flows, pulls = np.zeros((2, p + 2)), np.zeros((2, p + 2))
    flows[n & 1, p + 1] = 1.0
    rows = np.zeros((2, p + 2))  # the means of a diagonal, where neighbors find them
    passed, after = np.zeros(p + 1), np.zeros(m + 1)
    rows[n & 1, p + 1] = along[-1]
    start = shares.shape[1]
    for t in range(n, 0, -1):
        low, low_before = max(0, t - m), max(0, t - 1 - m)
        width, width_before = min(p, t) + 1 - low, min(p, t - 1) + 1 - low_before
        old, new = (t - 1) & 1, t & 1
        start, end = start - width, start
        here = slice(low + 1, low + 1 + width)
        left = slice(low, low + width)
        rows[old, low : low + width + 1] = 0.0
        copy(along[start - width_before : start], rows[old, low_before + 1 :])
        flows[old, low : low + width + 1] = 0.0
        pulls[old, low : low + width + 1] = 0.0
        flow, pull, mean = flows[new, here], pulls[new, here], rows[new, here]
        flow_bad, pull_bad, mean_bad = flows[old, here], pulls[old, here], rows[old, here]
        flow_good, pull_good, mean_good = flows[old, left], pulls[old, left], rows[old, left]
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
    _gather(passed, after, out)


@kernel
def _gather(passed: FloatArray, after: FloatArray, out: FloatArray) -> None:
    """Turn bads above each good, and goods placed after m - i bads, into derivatives."""
    p, m = len(passed) - 1, len(after) - 1
    for j in range(p):
        out[m + j] = -passed[j + 1]
    running = 0.0
    for i in range(m):
        running += after[i]
        out[m - 1 - i] = running


@kernel
def best(
    scores: FloatArray, sizes: IntArray, steps: FloatArray, weight: float, out: FloatArray
) -> float:
    """Return the largest exponent, relative to the order of the labels, and its slopes (n,)."""
    m, p = sizes
    n = p + m
    goods, bads = np.zeros(p + 1), np.zeros(m + 1)
    copy(scores[m:], goods[1:])
    for i in range(m):
        bads[m - i - 1] = scores[i]
    tops = np.full((2, p + 2), NEVER)
    tops[0, 1] = 0.0
    last = np.empty((p + 1) * (m + 1), np.int8)
    end = 1
    for t in range(1, n + 1):
        low = max(0, t - m)
        width = min(p, t) + 1 - low
        old, new = (t - 1) & 1, t & 1
        start, end = end, end + width
        top_bad, top_good = tops[old, low + 1 : low + 1 + width], tops[old, low : low + width]
        top, came = tops[new, low + 1 : low + 1 + width], last[start:end]
        good, bad = goods[low : low + width], bads[m - t + low : m - t + low + width]
        step_bad, step_good = steps[0, start:end], steps[1, start:end]
        above, left = float(t - low), float(p - low)
        for k in range(width):
            by_bad = top_bad[k] + bad[k] * (left - k) + weight * step_bad[k]
            by_good = top_good[k] - good[k] * (above - k) + weight * step_good[k]
            came[k] = by_good >= by_bad
            top[k] = max(by_good, by_bad)
        if low > 0:  # this entry has left the lattice
            tops[new, low] = NEVER
    j = p
    for t in range(n, 0, -1):
        low = max(0, t - m)
        end -= min(p, t) + 1 - low
        if last[end + j - low]:
            out[m + j - 1] = j - t
            j -= 1
        else:
            out[t - j - 1] = p - j
    return tops[n & 1, p + 1]
