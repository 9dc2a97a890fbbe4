"""Kernels of rows: the distribution of the number of bads above a good, its tilt and slopes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.rankings.sorting import count_below
from permdist.sums.exponential import exp_down

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


@kernel(fuse=True)
def exponentiate(values: FloatArray, count: int) -> None:
    """Replace the first values, which are not positive, by their exponentials."""
    # Numbers without a sign cannot count from the end, which would keep loops from vectorizing.
    for i in range(np.uint64(count)):
        values[i] = exp_down(values[i])


@kernel(fuse=True)
def fill_chances(
    x: float, low: int, high: int, x_bads: FloatArray, chances: FloatArray, others: FloatArray
) -> None:
    """Fill in the chances ``sigmoid(x_bad - x)`` of bads from low to high to be above, and below.

    Both have all their digits: as a good's score moves, the smaller one may become the larger.
    """
    for b in range(np.uint64(low), np.uint64(high)):
        small = exp_down(-abs(x - x_bads[b]))
        over = 1.0 / (1.0 + small)
        chances[b] = over if x < x_bads[b] else small * over
        others[b] = small * over if x < x_bads[b] else over


@kernel
def log_pairs(
    x: float, low: int, high: int, x_bads: FloatArray, chances: FloatArray, others: FloatArray
) -> float:
    """Return the sum of ``log(1 + exp(x_bad - x))``, which from high on is ``x_bad - x``."""
    total, product = 0.0, 1.0
    for b in range(low, high):
        product *= max(chances[b], others[b])
        if (b - low) % 512 == 511:  # each factor is a half at least
            total -= np.log(product)
            product = 1.0
    total -= np.log(product)
    for b in range(count_below(x_bads, x), len(x_bads)):
        total += x_bads[b] - x
    return total


@kernel(fuse=True)
def count_above(
    low: int,
    high: int,
    top: int,
    tiny: float,
    chances: FloatArray,
    others: FloatArray,
    places: tuple[IntArray, IntArray, IntArray],
    cells: FloatArray,
) -> FloatArray:
    """Fill cells with the distribution of the number above, before each bad and after all.

    Before bad b the counts from ``lows[b]`` on have the chances ``cells[starts[b]:stops[b]]``;
    those below tiny at both ends are left out, and counts from top on are one.
    """
    starts, stops, lows = places
    starts[low], stops[low], lows[low] = 0, 1, 0
    cells[0] = 1.0
    for b in range(low, high):
        p, q = chances[b], others[b]
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
def differentiate(
    low: int,
    high: int,
    chances: FloatArray,
    others: FloatArray,
    heights: FloatArray,
    places: tuple[IntArray, IntArray, IntArray],
    cells: FloatArray,
    slopes: FloatArray,
) -> float:
    """Go back from the last bad: return the mean of heights, fill in its derivatives."""
    starts, stops, lows = places
    for b in range(high - 1, low - 1, -1):
        p, q = chances[b], others[b]
        start, first = starts[b], lows[b]
        size = stops[b] - start
        chance, height = cells[start : start + size], heights[first : first + size + 1]
        # Four sums: one alone would wait for every addition.
        one, two, three, four = 0.0, 0.0, 0.0, 0.0
        for k in range(size // 4):
            i = 4 * k
            h0, h1, h2 = height[i], height[i + 1], height[i + 2]
            h3, h4 = height[i + 3], height[i + 4]
            one += chance[i] * (h1 - h0)
            two += chance[i + 1] * (h2 - h1)
            three += chance[i + 2] * (h3 - h2)
            four += chance[i + 3] * (h4 - h3)
            height[i] = q * h0 + p * h1
            height[i + 1] = q * h1 + p * h2
            height[i + 2] = q * h2 + p * h3
            height[i + 3] = q * h3 + p * h4
        for i in range(4 * (size // 4), size):
            one += chance[i] * (height[i + 1] - height[i])
            height[i] = q * height[i] + p * height[i + 1]
        slopes[b] = -p * q * ((one + two) + (three + four))
    return heights[0]


@kernel
def tilt_steeply(
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


@kernel(fuse=True)
def moments(chances: FloatArray, heights: FloatArray, center: float) -> tuple[float, float]:
    """Return the sum of ``chances[i] heights[i]``, and that with the factors ``i - center``."""
    # Four sums: one alone would wait for every addition.
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    by_one, by_two, by_three, by_four = 0.0, 0.0, 0.0, 0.0
    size = len(chances)
    for k in range(size // 4):
        i = 4 * k
        at = i - center
        w0, w1 = chances[i] * heights[i], chances[i + 1] * heights[i + 1]
        w2, w3 = chances[i + 2] * heights[i + 2], chances[i + 3] * heights[i + 3]
        one, two, three, four = one + w0, two + w1, three + w2, four + w3
        by_one, by_two = by_one + at * w0, by_two + (at + 1.0) * w1
        by_three, by_four = by_three + (at + 2.0) * w2, by_four + (at + 3.0) * w3
    for i in range(4 * (size // 4), size):
        one += chances[i] * heights[i]
        by_one += (i - center) * chances[i] * heights[i]
    return (one + two) + (three + four), (by_one + by_two) + (by_three + by_four)
