"""Kernels of sums over rows: goods in order, gathered where their scores are near, added up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.rankings.sorting import count_below, members_by
from permdist.sums.row_counts import (
    count_above,
    differentiate,
    exponentiate,
    fill_chances,
    log_pairs,
    moments,
    tilt_steeply,
)

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

    Tables = tuple[IntArray, FloatArray, int, IntArray, FloatArray]
    Floats = tuple[FloatArray, ...]
    Ints = tuple[IntArray, IntArray, IntArray]

CERTAIN = 40.0  # a chance of exp(-40) is lost beside 1, in double precision
TINY = 1e-17  # chances of counts that are left out
WIDE = 1e270  # steps so much smaller than others are as good as 0
STEEP = 300.0  # exponents of the tilt beyond which sums are kept as logarithms
NEAR = 300.0  # exponents that may lie between the distributions of goods of one group
SETUP = 16  # counts that take as long to go through as it takes to begin
TIED = 1e-10  # scores that differ by less, relative to the largest, are equal but for rounding
LOG_MEAN, LOG_SUM, MEAN, BEST = range(4)


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
    m, p = 0, 0
    for t in range(first[first_query], first[last_query]):
        m, p = max(m, cuts[t]), max(p, goods_ptr[t + 1] - goods_ptr[t])
    x_goods, by_goods, parts = np.empty(p), np.empty(p), np.empty(p)
    tilts, highest, spread, until = np.empty(p), np.empty(p), np.empty(p), np.empty(p, np.int64)
    of_goods = x_goods, by_goods, parts, tilts, highest, spread
    x_bads, by_bads, mixed = np.empty(m), np.empty(m), np.empty(m + 1)
    work = np.empty(m), np.empty(m), np.empty(m), np.empty(m + 2), np.empty(m + 2), np.empty(m + 2)
    places = np.empty(m + 1, np.int64), np.empty(m + 1, np.int64), np.empty(m + 1, np.int64)
    cells = np.empty(1024)
    for q in range(first_query, last_query):
        factor, stride = 2.0 * scales[q], place[q, 1]
        table, ends = tables[place[q, 0] :], all_ends[place[q, 2] :]
        for t in range(first[q], first[q + 1]):
            m, p = cuts[t], goods_ptr[t + 1] - goods_ptr[t]
            own, ties = goods[goods_ptr[t] : goods_ptr[t + 1]], par[goods_ptr[t] : goods_ptr[t + 1]]
            rows = ties, table, stride, ends, mixed
            bads = members_by(1.0, scores, members[ptr[q] : ptr[q] + m])
            for b in range(m):
                x_bads[b], by_bads[b] = factor * scores[bads[b]], 0.0
            for i in range(p):
                steps, until[i] = _steps_of(i, m, rows)
                if task == BEST:
                    values[q] += shares[t] * steps[0]
                    continue
                x_goods[i] = factor * scores[own[i]]
                parts[i] = shares[t] if task == MEAN else shares[t] / weights[own[i]]
                tilts[i] = kappa * weights[own[i]]
                # How unlikely it can be, as a logarithm, that no bad is above.
                rare = m * (np.log(2.0) + max(0.0, x_bads[m - 1] - x_goods[i]))
                highest[i], spread[i] = _span(task, tilts[i], rare, steps, until[i])
            if task == BEST:
                continue
            last = 0
            for k in range(p):  # by a range: from a 0 the kernels would be compiled twice
                if k < last:
                    continue
                group = _group_from(k, p, m, x_goods, spread, until)
                value, cells = _sum_group(
                    task, k, group, x_bads[:m], by_bads, of_goods, until, rows, work, places, cells
                )
                values[q] += value
                last = group[0]
            for i in range(p):
                gradient[own[i]] += factor * by_goods[i]
            for b in range(m):
                gradient[bads[b]] -= factor * by_bads[b]


@kernel
def _steps_of(i: int, m: int, rows: Tables) -> tuple[FloatArray, int]:
    """Return the steps of a good, the means of those on a par, and where they no longer change."""
    ties, table, stride, ends, mixed = rows
    k, last = i, i + 1
    while k > 0 and ties[k - 1] == ties[i]:
        k -= 1
    while last < len(ties) and ties[last] == ties[i]:
        last += 1
    end = 0
    for j in range(k, last):
        end = max(end, min(m, ends[j]))
    if last == k + 1:
        return table[k * stride :], end
    for c in range(end + 1):
        total = 0.0
        for j in range(k, last):
            total += table[j * stride + c]
        mixed[c] = total / (last - k)
    return mixed, end


@kernel
def _span(task: int, tilt: float, rare: float, steps: FloatArray, end: int) -> tuple[float, float]:
    """Return the largest exponent of the tilt, and how far the logs of the summands differ."""
    least, most, small = steps[0], steps[0], abs(steps[0])
    for c in range(1, end + 1):
        least, most, small = min(least, steps[c]), max(most, steps[c]), min(small, abs(steps[c]))
    if task != MEAN:
        return max(tilt * (steps[0] - least), tilt * (steps[0] - most)), abs(tilt) * (most - least)
    # Small means are wanted to all their digits; none is below the chance of its first step.
    large = max(most, -least)
    spread = np.log(large / small) if large < small * WIDE else np.log(WIDE)
    if large < abs(steps[0]) * WIDE:
        spread = min(spread, np.log(large / abs(steps[0])) + rare)
    return 0.0, spread


@kernel
def _group_from(
    k: int, p: int, m: int, x_goods: FloatArray, spread: FloatArray, until: IntArray
) -> tuple[int, float, float, float, float]:
    """Gather goods from k on that can share one distribution of the number above.

    Among m bads, counts of one good are distributed as those of another, tilted: by ``exp(count
    half)`` at most from the middle of their scores.

    Returns
    -------
    last : int
    lower, upper : float
        The range of their scores.
    widest : float
        The largest spread of the logs of their summands.
    near : float
        How much less likely counts can be in the middle than they are for one of them.
    """
    lower, upper, widest, near = x_goods[k], x_goods[k], spread[k], 0.0
    counts, last = until[k] + SETUP, k + 1
    alone = min(m, np.sqrt(2.0 * m * CERTAIN))  # about so many counts matter
    together = alone
    while last < p and max(widest, spread[last]) <= STEEP:
        low, high = min(lower, x_goods[last]), max(upper, x_goods[last])
        more, half = max(widest, spread[last]), 0.5 * (high - low)
        # Hoeffding's bound of counts that matter to one, and the distance of the means.
        far = half * min(m, np.sqrt(0.5 * m * (CERTAIN + more)) + 0.25 * m * half)
        size = min(m, np.sqrt(2.0 * m * (CERTAIN + far)))
        if far > NEAR or half * m > 2.0 * NEAR or size > together + alone:
            break
        lower, upper, widest, near, together = low, high, more, far, size
        counts += until[last] + SETUP if until[last] > 0 else 0
        last += 1
    if 2 * counts > m:
        return last, lower, upper, widest, near
    return k + 1, x_goods[k], x_goods[k], spread[k], 0.0  # alone, it needs the first counts only


@kernel
def _sum_group(
    task: int,
    first: int,
    group: tuple[int, float, float, float, float],
    x_bads: FloatArray,
    by_bads: FloatArray,
    of_goods: Floats,
    until: IntArray,
    rows: Tables,
    work: Floats,
    places: Ints,
    cells: FloatArray,
) -> tuple[float, FloatArray]:
    """Add up some goods' rows; also return the cells, which may have become more.

    x_bads (m,) ascends. Fills in the derivatives by the goods, adds those by the bads, negative.
    """
    x_goods, by_goods, parts, tilts, highest, _ = of_goods
    chances, others, slopes, heights, powers, sums = work
    last, lower, upper, widest, near = group
    m, alone = len(x_bads), last == first + 1
    # Bads outside the window are above or below for certain, whatever the steps do.
    low = count_below(x_bads, lower - (CERTAIN + widest))
    high = count_below(x_bads, upper + (CERTAIN + widest))
    above, top, middle = m - high, high - low, 0.5 * (lower + upper)
    if alone:  # counts from which its steps stay the same are one
        top = min(top, max(until[first] - above, 0))
    if top > 0 or task == LOG_SUM:
        fill_chances(middle, low, high, x_bads, chances, others)
    pairs = log_pairs(middle, low, high, x_bads, chances, others) if task == LOG_SUM else 0.0
    steep = task != MEAN and top > 0 and widest > STEEP
    if steep and len(cells) < (high - low) * (top + 1):
        cells = np.empty((high - low) * (top + 1))
    if not steep and top > 0:
        tiny = TINY * np.exp(-widest - near)
        cells = count_above(low, high, top, tiny, chances, others, places, cells)
    for c in range(top + 2):
        sums[c] = 0.0
    total, whole = 0.0, 0.0
    for i in range(first, last):
        steps, end = _steps_of(i, m, rows)
        base, unit = (0.0, 1.0) if task == MEAN else (steps[0], -tilts[i])
        for c in range(top + 1):  # a step, or the exponent of its tilt
            heights[c] = unit * (steps[min(above + c, end)] - base) - highest[i]
        apart, count = middle - x_goods[i], 0.0
        if top == 0:
            value = heights[0]
        elif steep:
            value = tilt_steeply(middle, x_bads, low, high, top, heights, chances, slopes, cells)
        else:
            before, stop, least = places[0][high], places[1][high], places[2][high]
            rest = heights[least:], powers[least:], sums[least:]
            value, count = _weigh(task, parts[i], apart, least, cells[before:stop], *rest)
        total += parts[i] * (value + highest[i])
        whole += parts[i]
        if task == LOG_SUM:
            total += parts[i] * (pairs + above * apart)
            count += above
        by_goods[i] = -parts[i] * count
    if top > 0 and not steep:
        sums[top + 1] = sums[top]  # further bads above change nothing
        differentiate(low, high, chances, others, sums, places, cells, slopes)
    own = 0.0
    for b in range(low, high):
        slope = 0.0 if top == 0 else slopes[b] * (whole if steep else 1.0)
        if task == LOG_SUM:
            slope -= whole * chances[b]
        by_bads[b] += slope
        own += slope
    if task == LOG_SUM:
        for b in range(high, m):
            by_bads[b] -= whole
            own -= whole
    if alone:
        by_goods[first] = own
    return total, cells


@kernel(fuse=True)
def _weigh(
    task: int,
    part: float,
    apart: float,
    least: int,
    chances: FloatArray,
    heights: FloatArray,
    powers: FloatArray,
    sums: FloatArray,
) -> tuple[float, float]:
    """Return the value of a good's row, and minus its derivative by the score; add its sums.

    chances are those of the counts from `least` on for a good with another score, `apart` above;
    heights, powers and sums begin there, too.
    """
    size = len(chances)
    shift = max(0.0, apart * (size - 1))
    if task == LOG_SUM:
        for c in range(size):
            heights[c] += c * apart - shift
        exponentiate(heights, size)
        total, moment = moments(chances, heights, 0.0)
        for c in range(size):
            sums[c] += part / total * heights[c]
        return np.log(total) + shift + least * apart, least + moment / total
    for c in range(size):
        powers[c] = c * apart - shift
    exponentiate(powers, size)
    if task == LOG_MEAN:
        exponentiate(heights, size)
    for c in range(size):
        heights[c] *= powers[c]
    norm, count = moments(chances, powers, 0.0)
    total = moments(chances, heights, 0.0)[0]
    mean = total / norm
    unit, other = (1.0 / norm, mean / norm) if task == MEAN else (1.0 / total, 1.0 / norm)
    for c in range(size):
        heights[c] = unit * heights[c] - other * powers[c]
        sums[c] += part * heights[c]
    slope = moments(chances, heights, count / norm)[1]
    return mean if task == MEAN else np.log(mean), slope
