"""Kernels of sums over rows: the distribution of the number of bads above a good, and its tilt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._exp import exp_down
from permdist._kernels import kernel
from permdist._loops import count_below, members_by

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

CERTAIN = 40.0  # a chance of exp(-40) is lost beside 1, in double precision
TINY = 1e-17  # chances of counts that are left out
WIDE = 1e270  # steps so much smaller than others are as good as 0
STEEP = 300.0  # exponents of the tilt beyond which sums are kept as logarithms
TIED = 1e-10  # scores that differ by less, relative to the largest, are equal but for rounding
LOG_MEAN, MEAN, BEST = range(3)


@kernel
def sort_goods(
    scores: FloatArray,
    members: IntArray,
    ptr: IntArray,
    first: IntArray,
    cuts: IntArray,
    goods_ptr: IntArray,
    goods: IntArray,
    par: IntArray,
) -> None:
    """Fill in the goods of every threshold by descending score, and where each tie starts."""
    for q in range(len(ptr) - 1):
        largest = 0.0
        for i in range(ptr[q], ptr[q + 1]):
            largest = max(largest, abs(scores[i]))
        for t in range(first[q], first[q + 1]):
            own = members[ptr[q] + cuts[t] : ptr[q + 1]]
            by_score = members_by(-1.0, scores, own)
            start = goods_ptr[t]
            for k in range(len(own)):
                goods[start + k] = by_score[k]
                par[start + k] = start + k
                if k > 0:
                    gap = scores[goods[start + k - 1]] - scores[goods[start + k]]
                    if gap <= TIED * largest:
                        par[start + k] = par[start + k - 1]
            k = 0
            while k < len(own):  # members of a tie by number, so that equal orders are equal
                end = k + 1
                while end < len(own) and par[start + end] == par[start + k]:
                    end += 1
                for i in range(start + k + 1, start + end):  # they nearly always are
                    good, j = goods[i], i
                    while j > start + k and goods[j - 1] > good:
                        goods[j] = goods[j - 1]
                        j -= 1
                    goods[j] = good
                k = end


@kernel
def sum_queries(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    members: IntArray,
    ptr: IntArray,
    first: IntArray,
    cuts: IntArray,
    shares: FloatArray,
    goods_ptr: IntArray,
    goods: IntArray,
    par: IntArray,
    weights: FloatArray,
    tables: FloatArray,
    place: IntArray,
    all_ends: IntArray,
    scales: FloatArray,
    kappa: float,
    task: int,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Add up the rows of some queries: values (queries,) and gradient (documents,).

    Query q has the thresholds ``first[q]`` to ``first[q + 1]``: the bads of threshold t are
    ``members[ptr[q]:ptr[q] + cuts[t]]``, its goods ``goods[goods_ptr[t]:goods_ptr[t + 1]]`` in
    their order; those with the same number in par are on a par. weights (documents,) is the sum of
    the shares of a document's thresholds.
    """
    cells = np.empty(1024)
    for q in range(first_query, last_query):
        table_at, stride, ends_at = place[q, 0], place[q, 1], place[q, 2]
        factor = 2.0 * scales[q]
        for t in range(first[q], first[q + 1]):
            m = cuts[t]
            bads = members_by(1.0, scores, members[ptr[q] : ptr[q] + m])
            x_bads, by_bads = np.empty(m), np.empty(m)
            for b in range(m):
                x_bads[b], by_bads[b] = factor * scores[bads[b]], 0.0
            chances, slopes = np.empty(m), np.empty(m)
            steps, heights = np.empty(m + 1), np.empty(m + 2)
            starts, stops = np.empty(m + 1, np.int64), np.empty(m + 1, np.int64)
            lows = np.empty(m + 1, np.int64)
            start, stop = goods_ptr[t], goods_ptr[t + 1]
            k = start
            while k < stop:
                last = k + 1
                while last < stop and par[last] == par[k]:
                    last += 1
                # The steps do not change from this count on; from a 0 it would be compiled twice.
                end = min(m, all_ends[ends_at + k - start])
                for j in range(k - start + 1, last - start):
                    end = max(end, min(m, all_ends[ends_at + j]))
                for i in range(end + 1):
                    total = 0.0
                    for j in range(k - start, last - start):
                        total += tables[table_at + j * stride + i]
                    steps[i] = total / (last - k)
                for i in range(k, last):
                    g = goods[i]
                    if task == BEST or end == 0:
                        values[q] += 0.0 if task == LOG_MEAN else shares[t] * steps[0]
                        continue
                    value, low, high, cells = _sum_row(
                        factor * scores[g],
                        x_bads,
                        steps,
                        end,
                        kappa * weights[g],
                        task,
                        (chances, slopes, heights),
                        (starts, stops, lows),
                        cells,
                    )
                    share = shares[t] / weights[g] if task == LOG_MEAN else shares[t]
                    values[q] += share * value
                    total = 0.0
                    for b in range(low, high):
                        total += slopes[b]
                        by_bads[b] += share * slopes[b]
                    gradient[g] += share * factor * total
                k = last
            for b in range(m):
                gradient[bads[b]] -= factor * by_bads[b]


@kernel(fuse=True)
def _sum_row(
    x: float,
    x_bads: FloatArray,
    steps: FloatArray,
    end: int,
    tilt: float,
    task: int,
    work: tuple[FloatArray, FloatArray, FloatArray],
    places: tuple[IntArray, IntArray, IntArray],
    cells: FloatArray,
) -> tuple[float, int, int, FloatArray]:
    """Return the mean of one row's step, or the log of that of exp(tilt (steps[0] - step)).

    x_bads (m,) ascends; steps do not change from count `end` on. Also returns which
    bads can be above or below, whose derivatives by ``x - x_bad`` are filled into slopes, and the
    cells, which may have become more.
    """
    chances, slopes, heights = work
    m = len(x_bads)
    lowest, highest = 0.0, 0.0
    if task == LOG_MEAN:
        for i in range(end + 1):
            lowest = min(lowest, tilt * (steps[0] - steps[i]))
            highest = max(highest, tilt * (steps[0] - steps[i]))
        spread = highest - lowest
    else:  # small means are wanted to all their digits: their logarithm is taken
        least, most = abs(steps[0]), abs(steps[0])
        for i in range(1, end + 1):
            least, most = min(least, abs(steps[i])), max(most, abs(steps[i]))
        spread = np.log(most / least) if most < least * WIDE else np.log(WIDE)
    # Bads outside the window are above or below for certain, whatever the steps do.
    low = count_below(x_bads, x - (CERTAIN + spread))
    high = count_below(x_bads, x + (CERTAIN + spread))
    above = m - high
    top = min(high - low, end - above)
    if top <= 0:
        step = steps[min(above, end)]
        value = tilt * (steps[0] - step) if task == LOG_MEAN else step
        return value, low, low, cells
    _fill_chances(x, low, high, x_bads, chances)
    if task == LOG_MEAN:
        for i in range(top + 1):
            heights[i] = tilt * (steps[0] - steps[above + i]) - highest
        if spread > STEEP:
            if len(cells) < (high - low) * (top + 1):
                cells = np.empty((high - low) * (top + 1))
            value = _tilt_steeply(x, x_bads, low, high, top, heights, chances, slopes, cells)
            return value + highest, low, high, cells
        _exponentiate(heights, top + 1)
    else:
        for i in range(top + 1):
            heights[i] = steps[above + i]
    tiny = TINY * np.exp(-spread)
    heights[top + 1] = heights[top]  # further bads above change nothing
    cells = _count(low, high, top, tiny, chances, places, cells)
    mean = _differentiate(low, high, chances, heights, places, cells, slopes)
    if task == LOG_MEAN:
        for b in range(low, high):
            slopes[b] /= mean
        mean = np.log(mean) + highest
    return mean, low, high, cells


@kernel(fuse=True)
def _exponentiate(values: FloatArray, count: int) -> None:
    """Replace the first values, which are not positive, by their exponentials."""
    # Numbers without a sign cannot count from the end, which would keep loops from vectorizing.
    for i in range(np.uint64(count)):
        values[i] = exp_down(values[i])


@kernel(fuse=True)
def _fill_chances(x: float, low: int, high: int, x_bads: FloatArray, chances: FloatArray) -> None:
    """Fill in the chances ``sigmoid(x_bad - x)`` of bads from low to high to be above."""
    for b in range(np.uint64(low), np.uint64(high)):
        small = exp_down(-abs(x - x_bads[b]))
        over = 1.0 / (1.0 + small)
        chances[b] = over if x < x_bads[b] else small * over


@kernel(fuse=True)
def _count(
    low: int,
    high: int,
    top: int,
    tiny: float,
    chances: FloatArray,
    places: tuple[IntArray, IntArray, IntArray],
    cells: FloatArray,
) -> FloatArray:
    """Fill cells with the distribution of the number above, before each bad from low to high.

    Before bad b the counts from ``lows[b]`` on have the chances ``cells[starts[b]:stops[b]]``;
    those below tiny at both ends are left out, and counts from top on are one.
    """
    starts, stops, lows = places
    starts[low], stops[low], lows[low] = 0, 1, 0
    cells[0] = 1.0
    for b in range(low, high - 1):
        p = chances[b]
        q = 1.0 - p
        old, new = starts[b], stops[b]
        size = new - old
        if len(cells) < new + size + 1:
            more = np.empty(2 * (new + size + 1))
            for i in range(new):
                more[i] = cells[i]
            cells = more
        before, after = cells[old:new], cells[new : new + size]
        after[0] = q * before[0]
        for i in range(size - 1):
            after[i + 1] = q * before[i + 1] + p * before[i]
        if lows[b] + size <= top:
            cells[new + size] = p * cells[new - 1]
            size += 1
        else:
            cells[new + size - 1] += p * cells[new - 1]
        shift = 0
        while size > 1 and cells[new + size - 1] < tiny:
            size -= 1
        while size > 1 and cells[new + shift] < tiny:
            shift += 1
            size -= 1
        starts[b + 1], stops[b + 1] = new + shift, new + shift + size
        lows[b + 1] = lows[b] + shift
    return cells


@kernel(fuse=True)
def _differentiate(
    low: int,
    high: int,
    chances: FloatArray,
    heights: FloatArray,
    places: tuple[IntArray, IntArray, IntArray],
    cells: FloatArray,
    slopes: FloatArray,
) -> float:
    """Go back from the last bad: return the mean of heights, fill in its derivatives."""
    starts, stops, lows = places
    for b in range(high - 1, low - 1, -1):
        p = chances[b]
        start, first = starts[b], lows[b]
        size = stops[b] - start
        chance, height = cells[start : start + size], heights[first : first + size + 1]
        # Four sums: one alone would wait for every addition.
        one, two, three, four = 0.0, 0.0, 0.0, 0.0
        for k in range(size // 4):
            i = 4 * k
            h0, h1, h2, h3 = height[i], height[i + 1], height[i + 2], height[i + 3]
            d0, d1, d2, d3 = h1 - h0, h2 - h1, h3 - h2, height[i + 4] - h3
            one += chance[i] * d0
            two += chance[i + 1] * d1
            three += chance[i + 2] * d2
            four += chance[i + 3] * d3
            height[i] = h0 + p * d0
            height[i + 1] = h1 + p * d1
            height[i + 2] = h2 + p * d2
            height[i + 3] = h3 + p * d3
        for i in range(4 * (size // 4), size):
            difference = height[i + 1] - height[i]
            one += chance[i] * difference
            height[i] += p * difference
        slopes[b] = -p * (1.0 - p) * ((one + two) + (three + four))
    return heights[0]


@kernel
def _tilt_steeply(
    x: float,
    x_bads: FloatArray,
    low: int,
    high: int,
    top: int,
    heights: FloatArray,
    chances: FloatArray,
    slopes: FloatArray,
    cells: FloatArray,
) -> float:
    """Return the log of the mean of exp(heights), in logarithms all the way.

    cells hold the tilted chance of each bad to be above, given how many there are before it.
    """
    for b in range(high - 1, low - 1, -1):
        logit = x_bads[b] - x
        log_q = -(max(logit, 0.0) + np.log1p(np.exp(-abs(logit))))
        at = (b - low) * (top + 1)
        for i in range(min(b - low, top) + 1):
            more = logit + (heights[i + 1] - heights[i] if i < top else 0.0)
            small = np.exp(-abs(more))
            cells[at + i] = (1.0 if more > 0.0 else small) / (1.0 + small)
            heights[i] += log_q + max(more, 0.0) + np.log1p(small)
    value = heights[0]
    for i in range(1, top + 1):
        heights[i] = 0.0
    heights[0] = 1.0  # now the tilted distribution of the number above
    for b in range(low, high):
        at, above = (b - low) * (top + 1), 0.0
        for i in range(min(b - low, top), -1, -1):
            moved = heights[i] * cells[at + i]
            above += moved
            if i < top:
                heights[i] -= moved
                heights[i + 1] += moved
        slopes[b] = chances[b] - above
    return value
