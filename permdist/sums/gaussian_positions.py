"""Expected sums over positions under independent Gaussian noise, for all queries of a batch.

`expected_sums` is the integral of `permdist.sums.utilities` to about 1e-11 in absolute terms. Only
utilities at which one of the counted positions can be held are looked at, and at each of them only
documents that may be on either side of it. `independent_sums` is SoftRank's recursion.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.rankings.sorting import descending
from permdist.sums.exponential import exp_down

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

REACH = 8.0  # standard deviations; beyond them lies less than 1e-15
BLOCK = 32  # nodes that are worked on at once
FINE = 0.66  # nodes are so many standard deviations of the sharpest position apart
WIDEST = 0.5  # but never farther than this, in standard deviations of the noise
NEVER = -32.0  # the logarithm of a chance that counts as none


# ---- kernels ------------------------------------------------------------------------------------


@kernel(fuse=True, inline=True)
def _tail_over_density(x: float) -> float:
    """Return ``(1 - Phi(x)) / phi(x)`` for x from 0 to 8.5, to 5e-15 of it.

    A polynomial in ``1 / (x + 4)``, fitted to scipy's erfcx at Chebyshev nodes.
    """
    t = 1.9411764705882355 - 11.764705882352942 / (x + 4.0)
    y = 2.8944222336603035e-10
    y = y * t + 6.794629917190217e-10
    y = y * t - 4.277071189731471e-09
    y = y * t - 1.8941757186515375e-08
    y = y * t + 3.7496750115510685e-08
    y = y * t + 3.6963931056189636e-07
    y = y * t - 2.40788948985068e-07
    y = y * t - 6.970366688124408e-06
    y = y * t + 3.875409666263659e-06
    y = y * t + 0.00014539073621716082
    y = y * t - 0.0003178060188304599
    y = y * t - 0.002853811595605973
    y = y * t + 0.023789135973789375
    y = y * t - 0.09456271663721774
    y = y * t + 0.24919232279170117
    y = y * t - 0.47133828047847964
    return y * t + 0.41203077947424244


@kernel(fuse=True)
def _fill_noise(
    top: float, step: float, score: float, density: FloatArray, above: FloatArray
) -> None:
    """Fill in the density of a document's utility at a block of nodes, and its upper tail."""
    for b in range(len(density)):
        x = top - b * step - score
        f = exp_down(-0.5 * x * x) * 0.3989422804014327
        tail = f * _tail_over_density(abs(x))
        density[b] = f
        above[b] = tail if x >= 0.0 else 1.0 - tail


@kernel
def _log_chance(mean: float, count: float) -> float:
    """Bound the logarithm of the chance of `count` or fewer, or more, independent events.

    Chernoff's bound, for a count below or above the mean.
    """
    return count - mean + (count * math.log(mean / count) if count > 0.0 else 0.0)


@kernel
def _sharpest(score: FloatArray, top: float, kept: int) -> float:
    """Return the smallest standard deviation of the utility at one of the first positions.

    Where mu documents are expected above u, with variance V, and D is the derivative of mu, the
    document at position mu has a utility of standard deviation ``sqrt(V) / D``. Scores fall; top
    is where to start from.
    """
    n, most = len(score), kept + 4.0 * math.sqrt(kept)
    density, above = np.empty(BLOCK), np.empty(BLOCK)
    mean, variance, steep = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    certain, sharpest = 0, 0.0
    while top > score[n - 1] - REACH:
        while certain < n and score[certain] > top + REACH:
            certain += 1
        for b in range(len(mean)):
            mean[b], variance[b], steep[b] = certain, 1e-8, 0.0
        for t in range(certain, n):
            if score[t] < top - (BLOCK - 1) * WIDEST - REACH:
                break
            _fill_noise(top, WIDEST, score[t], density, above)
            for b in range(len(mean)):
                mean[b] += above[b]
                variance[b] += above[b] * (1.0 - above[b])
                steep[b] += density[b]
        for b in range(len(mean)):
            sharpest = max(sharpest, steep[b] * steep[b] / variance[b])
            if mean[b] > most:
                return 1.0 / math.sqrt(sharpest)
        top -= BLOCK * WIDEST
    return 1.0 / math.sqrt(sharpest)


@kernel(fuse=True)
def _go_through(above: FloatArray, first: int, last: int, cut: int, chance: FloatArray) -> None:
    """Fill in the chances of 0, 1, ... documents above each node, one document after the other.

    above (documents, nodes) are independent chances; chance (documents + 1, cut, nodes) has those
    before the first document, and gets those after each.
    """
    width = above.shape[1]
    for i in range(first, last):
        for b in range(width):
            chance[i + 1, 0, b] = (1.0 - above[i, b]) * chance[i, 0, b]
        for r in range(1, cut):
            for b in range(width):
                p = above[i, b]
                chance[i + 1, r, b] = (1.0 - p) * chance[i, r, b] + p * chance[i, r - 1, b]


@kernel(fuse=True)
def _go_back(
    above: FloatArray,
    i: int,
    cut: int,
    chance: FloatArray,
    by_chance: FloatArray,
    moved: FloatArray,
) -> None:
    """Undo one step of `_go_through`, from derivatives by its results to those before it.

    moved (nodes,) gets the derivatives by the chances of document i to be above.
    """
    moved[:] = 0.0
    for r in range(cut):
        for b in range(len(moved)):
            change = by_chance[r + 1, b] - by_chance[r, b]
            moved[b] += chance[i, r, b] * change
            by_chance[r, b] += above[i, b] * change


@kernel(fuse=True)
def expected_sums(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    ptr: IntArray,
    gains: FloatArray,
    weights: FloatArray,
    weight_ptr: IntArray,
    noise: float,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Fill in sum_i gains[i] E weights[position of i] of each query, and its gradient.

    gains (documents,) and scores as ptr cuts them; weights of the counted positions as weight_ptr
    does.
    """
    for q in range(first_query, last_query):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        begin, kept = weight_ptr[q], weight_ptr[q + 1] - weight_ptr[q]
        values[q] = 0.0
        gradient[a : a + n] = 0.0
        if kept == 0:
            continue
        order = descending(scores[a : a + n])
        # From the highest score down, in units of the noise. No noise bridges 2 REACH.
        score, gain = np.zeros(n), np.empty(n)
        for t in range(n):
            gain[t] = gains[a + order[t]]
            if t > 0:
                gap = (scores[a + order[t - 1]] - scores[a + order[t]]) / noise
                score[t] = score[t - 1] - min(gap, 2.0 * REACH)
        value, slopes = _expected_sum(score, gain, weights[begin : begin + kept])
        values[q] = value
        for t in range(n):
            gradient[a + order[t]] = slopes[t] / noise


@kernel(fuse=True)
def _expected_sum(
    score: FloatArray, gain: FloatArray, weights: FloatArray
) -> tuple[float, FloatArray]:
    """Return the expected sum of one query, whose scores fall, and its gradient by the scores.

    At every node, documents are gone through one by one: each is above it or not, or is the one
    whose position is asked for, marked by its gain and density. Documents with a gain come first:
    the others cannot be marked, and take half the work. Going back gives all derivatives.
    """
    n, kept = len(score), len(weights)
    total, slopes = 0.0, np.zeros(n)
    goods = np.flatnonzero(gain)
    if len(goods) == 0:
        return total, slopes
    density, above = np.empty((n, BLOCK)), np.empty((n, BLOCK))
    plain = np.zeros((len(goods) + 1, kept, BLOCK))
    marked = np.zeros((n + 1, kept, BLOCK))
    by_plain, by_marked = np.empty((kept + 1, BLOCK)), np.empty((kept + 1, BLOCK))
    moved, own, rows = np.empty(BLOCK), np.empty(BLOCK), np.empty(n, np.int64)
    width = len(moved)
    certain, end, good, last_good = 0, 0, 0, 0
    step = min(WIDEST, FINE * _sharpest(score, score[goods[0]] + REACH, kept))
    node = math.floor((score[goods[0]] + REACH) / step)
    while True:
        top, bottom = node * step, (node - BLOCK + 1) * step
        while certain < n and score[certain] > top + REACH:
            certain += 1
        while end < n and score[end] >= bottom - REACH:
            end += 1
        while good < len(goods) and goods[good] < certain:
            good += 1
        if certain >= kept or good == len(goods):
            break
        if goods[good] >= end:  # no noise that counts is here: go on where there is some
            node = math.floor((score[goods[good]] + REACH) / step)
            continue
        node -= BLOCK
        last_good = max(last_good, good)
        while last_good < len(goods) and goods[last_good] < end:
            last_good += 1
        n_good, n_all = last_good - good, end - certain
        # Goods first, then the others.
        i, j = 0, n_good
        for t in range(certain, end):
            if gain[t] != 0.0:
                rows[i] = t
                i += 1
            else:
                rows[j] = t
                j += 1
        # How many others are above the highest and the lowest of these nodes.
        fewest, most = certain - 1.0, 0.0
        for i in range(n_all):
            _fill_noise(top, step, score[rows[i]], density[i], above[i])
            fewest += above[i, 0]
            most += above[i, width - 1]
        if fewest > kept - 1 and _log_chance(fewest, kept - 1.0) < NEVER:
            break
        cut = kept - certain
        while cut - 1 > most and _log_chance(most, cut - 1.0) < NEVER:
            cut -= 1
        plain[0, 0, :] = 1.0
        for i in range(n_good):
            g = gain[rows[i]]
            for b in range(width):
                below, mark = 1.0 - above[i, b], g * density[i, b]
                marked[i + 1, 0, b] = below * marked[i, 0, b] + mark * plain[i, 0, b]
                plain[i + 1, 0, b] = below * plain[i, 0, b]
            for r in range(1, cut):
                for b in range(width):
                    p, mark = above[i, b], g * density[i, b]
                    part = (1.0 - p) * marked[i, r, b] + p * marked[i, r - 1, b]
                    marked[i + 1, r, b] = part + mark * plain[i, r, b]
                    plain[i + 1, r, b] = (1.0 - p) * plain[i, r, b] + p * plain[i, r - 1, b]
        _go_through(above, n_good, n_all, cut, marked)
        for r in range(cut):
            for b in range(width):
                by_plain[r, b] = 0.0
                by_marked[r, b] = weights[certain + r]
                total += marked[n_all, r, b] * weights[certain + r]
        by_plain[cut, :] = 0.0
        by_marked[cut, :] = 0.0
        for i in range(n_all - 1, n_good - 1, -1):
            _go_back(above, i, cut, marked, by_marked, moved)
            slope = 0.0
            for b in range(width):
                slope += density[i, b] * moved[b]
            slopes[rows[i]] += slope
        for i in range(n_good - 1, -1, -1):
            g = gain[rows[i]]
            moved[:] = 0.0
            own[:] = 0.0
            for r in range(cut):
                for b in range(width):
                    change = by_marked[r + 1, b] - by_marked[r, b]
                    other = by_plain[r + 1, b] - by_plain[r, b]
                    moved[b] += marked[i, r, b] * change + plain[i, r, b] * other
                    own[b] += plain[i, r, b] * by_marked[r, b]
                    by_plain[r, b] += above[i, b] * other + g * density[i, b] * by_marked[r, b]
                    by_marked[r, b] += above[i, b] * change
            slope = 0.0
            for b in range(width):
                # A higher score shifts the density up.
                x = top - b * step - score[rows[i]]
                slope += density[i, b] * (moved[b] + g * x * own[b])
            slopes[rows[i]] += slope
    return step * total, step * slopes


@kernel(fuse=True)
def independent_sums(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    ptr: IntArray,
    gains: FloatArray,
    weights: FloatArray,
    weight_ptr: IntArray,
    noise: float,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Fill in what `expected_sums` would if others were above a document independently.

    Documents with a gain take the place of nodes. O(documents x documents with a gain x counted
    positions), less what no noise can bring to one of these positions.
    """
    unit = 1.0 / (math.sqrt(2.0) * noise)
    for q in range(first_query, last_query):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        begin, kept = weight_ptr[q], weight_ptr[q + 1] - weight_ptr[q]
        values[q] = 0.0
        gradient[a : a + n] = 0.0
        order = descending(scores[a : a + n])
        goods = order[np.flatnonzero(gains[a : a + n][order])]
        if kept == 0 or len(goods) == 0:
            continue
        score = scores[a : a + n]
        width = min(BLOCK, len(goods))
        density, above = np.empty((n, width)), np.empty((n, width))
        chance, by_chance = np.zeros((n + 1, kept, width)), np.zeros((kept + 1, width))
        moved, mean, own = np.empty(width), np.empty(width), np.empty(width)
        chance[0, 0, :] = 1.0
        for start in range(0, len(goods), width):
            used = min(width, len(goods) - start)
            for b in range(width):
                own[b] = score[goods[start + min(b, used - 1)]]
            mean[:] = 0.0
            for i in range(n):
                for b in range(width):
                    x = min(max(unit * (own[b] - score[i]), -30.0), 30.0)
                    f = exp_down(-0.5 * x * x) * 0.3989422804014327
                    tail = f * _tail_over_density(abs(x))
                    density[i, b] = f
                    above[i, b] = tail if x >= 0.0 else 1.0 - tail
                    mean[b] += above[i, b]
            for b in range(used):  # no document is above itself
                above[goods[start + b], b] = 0.0
                mean[b] -= 0.5
            # Those that follow have even more documents above them.
            fewest = mean[:used].min()
            if fewest > kept - 1 and _log_chance(fewest, kept - 1.0) < NEVER:
                break
            _go_through(above, 0, n, kept, chance)
            for b in range(width):
                gain = gains[a + goods[start + b]] if b < used else 0.0
                for r in range(kept):
                    by_chance[r, b] = gain * weights[begin + r]
                    values[q] += by_chance[r, b] * chance[n, r, b]
                by_chance[kept, b] = 0.0
            for i in range(n - 1, -1, -1):
                _go_back(above, i, kept, chance, by_chance, moved)
                for b in range(used):
                    flow = unit * density[i, b] * moved[b]
                    gradient[a + i] += flow
                    gradient[a + goods[start + b]] -= flow
