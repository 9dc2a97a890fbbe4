"""Expected sums over positions under Plackett-Luce, for all queries of a batch.

Items are ranked by arrival times, exponential with their worths as rates: given one item's time t,
each other item is above it independently, with chance ``1 - exp(-worth t)``. What is left is an
integral over t, by the trapezoid rule in v with ``t = exp(v - exp(-v)) / (sum of worths)``, which
converges exponentially and needs few nodes before the first arrival. How far apart the nodes are
follows from how sharply the counted positions are located in time. A constant added to all scores
changes nothing, so that slopes add up to 0: what they do add up to tells the error, and where it is
above `TOLERANCE` the sum is repeated with nodes half as far apart.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.rankings.sorting import descending
from permdist.sums.exponential import exp_down
from permdist.sums.gaussian_positions import BLOCK, NEVER, _go_back, _go_through, _log_chance

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

FIRST = -3.5  # the value of v before which less than 1e-15 of all first arrivals lie
SURE = 4.0  # an arrival e^4 mean times ago is certain to 1e-23
NOT_YET = -39.5  # the chance of an arrival within e^-39.5 mean times counts as none
WIDEST_GAP = 90.0  # between scores; a wider one makes no difference
FINE = 0.7  # nodes are so many standard deviations of the sharpest position apart
WIDEST = 0.25  # but never farther than this, in units of v
TOLERANCE = 1e-12  # of the largest sum
HALVINGS = 5


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def ranked_scores(
    scores: FloatArray, order: IntArray, noise: float, widest: float, ranked: FloatArray
) -> None:
    """Fill in the scores of a query from the highest down, in units of the noise, from 0 on.

    order (documents,) are the documents from the highest down; no gap is wider than `widest`.
    """
    ranked[0] = 0.0
    for t in range(1, len(order)):
        gap = (scores[order[t - 1]] - scores[order[t]]) / noise
        ranked[t] = ranked[t - 1] - min(gap, widest)


@kernel
def log_rate(score: FloatArray) -> float:
    """Return the logarithm of the sum of the worths; scores fall from 0."""
    total = 0.0
    for t in range(len(score)):
        total += math.exp(score[t])
    return math.log(total)


@kernel
def fill_times(
    first: int, step: float, rate: float, log_time: FloatArray, ratio: FloatArray, per: FloatArray
) -> None:
    """Fill in a block of times: logarithms, ratios to the first, and derivatives by the node.

    first is the number of the first node; per are derivatives of the logarithms.
    """
    for b in range(len(log_time)):
        v = FIRST + (first + b) * step
        rest = math.exp(-v)
        log_time[b] = v - rest - rate
        ratio[b] = math.exp(log_time[b] - log_time[0])
        per[b] = step * (1.0 + rest)


@kernel(fuse=True)
def fill_arrivals(
    start: float, ratio: FloatArray, mean: FloatArray, flow: FloatArray, above: FloatArray
) -> None:
    """Fill in the chances of a document to have arrived at a block of times.

    start is ``worth t`` at the first of them, mean the same at all of them; above is
    ``1 - exp(-mean)``, and flow its derivative by the score: also the density of log t.
    """
    for b in range(len(mean)):
        x = start * ratio[b]
        left = exp_down(-x)
        mean[b] = x
        flow[b] = x * left
        above[b] = 1.0 - left


@kernel
def find_window(score: FloatArray, log_time: FloatArray, certain: int, end: int) -> tuple[int, int]:
    """Move on to a block of times: how many have certainly arrived, and how many may have."""
    n = len(score)
    while certain < n and score[certain] + log_time[0] > SURE:
        certain += 1
    while end < n and score[end] + log_time[-1] >= NOT_YET:
        end += 1
    return certain, end


@kernel
def too_late(fewest: float, n: int, kept: int) -> bool:
    """Check whether one of the first positions can still be free for another document.

    fewest is the expected number of others that have arrived, or of the fewest; bounded from how
    many have arrived, and from how many have not.
    """
    if fewest > kept - 1 and _log_chance(fewest, kept - 1.0) < NEVER:
        return True
    left = max(n - 1 - fewest, 1e-300)
    return n - kept > left and _log_chance(left, float(n - kept)) < NEVER


@kernel
def next_node(node: int, step: float, rate: float, score: float) -> int:
    """Return the node after a block without documents: near the first arrival of the next one."""
    v = NOT_YET - score + rate
    return max(node + BLOCK, math.floor((v - FIRST) / step) if v > 5.0 else 0)


@kernel(fuse=True)
def sharpest(score: FloatArray, rate: float, kept: int) -> float:
    """Return the smallest standard deviation of the time of one of the first positions, in v.

    Where mu documents are expected to have arrived, with variance V, and D is the derivative of mu
    by v, the document at position mu has a time of standard deviation ``sqrt(V) / D``.
    """
    n, most = len(score), kept + 4.0 * math.sqrt(kept)
    log_time, ratio, per = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    mean, flow, above = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    number, variance, steep = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    certain, end, node, found = 0, 0, 0, 0.0
    while certain < n:
        fill_times(node, WIDEST, rate, log_time, ratio, per)
        certain, end = find_window(score, log_time, certain, end)
        if certain < n and certain == end:
            node = next_node(node, WIDEST, rate, score[certain])
            continue
        node += BLOCK
        for b in range(len(number)):
            number[b], variance[b], steep[b] = certain, 1e-8, 0.0
        for t in range(certain, end):
            fill_arrivals(math.exp(score[t] + log_time[0]), ratio, mean, flow, above)
            for b in range(len(number)):
                number[b] += above[b]
                variance[b] += above[b] * (1.0 - above[b])
                steep[b] += flow[b]
        for b in range(len(number)):
            rise = steep[b] * per[b] / WIDEST
            found = max(found, rise * rise / variance[b])
            if number[b] > most:
                return 1.0 / math.sqrt(found)
    return 1.0 / math.sqrt(found)


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
    does. Scores are divided by the noise.
    """
    for q in range(first_query, last_query):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        begin, kept = weight_ptr[q], weight_ptr[q + 1] - weight_ptr[q]
        values[q] = 0.0
        for i in range(n):
            gradient[a + i] = 0.0
        if kept == 0:
            continue
        order = descending(scores[a : a + n])
        score, gain, slopes = np.empty(n), np.empty(n), np.empty(n)
        ranked_scores(scores[a : a + n], order, noise, WIDEST_GAP, score)
        total, heaviest = 0.0, 0.0
        for t in range(n):
            gain[t] = gains[a + order[t]]
            total += abs(gain[t])
        for r in range(kept):
            heaviest = max(heaviest, abs(weights[begin + r]))
        if total * heaviest == 0.0:
            continue
        rate = log_rate(score)
        step = min(WIDEST, FINE * sharpest(score, rate, kept))
        for _ in range(HALVINGS):
            values[q] = sum_at_nodes(score, gain, weights[begin : begin + kept], rate, step, slopes)
            error = 0.0
            for t in range(n):
                error += slopes[t]
            if abs(error) < TOLERANCE * total * heaviest:
                break
            step *= 0.5
        for t in range(n):
            gradient[a + order[t]] = slopes[t] / noise


@kernel(fuse=True)
def sum_at_nodes(
    score: FloatArray,
    gain: FloatArray,
    weights: FloatArray,
    rate: float,
    step: float,
    slopes: FloatArray,
) -> float:
    """Return the expected sum of one query, whose scores fall, and fill in its slopes.

    At every node, documents are gone through one by one: each has arrived or not, or is the one
    whose position is asked for, marked by its gain and density. Documents with a gain come first:
    the others cannot be marked, and take half the work. Going back gives all derivatives.
    """
    n, kept = len(score), len(weights)
    total = 0.0
    for t in range(n):
        slopes[t] = 0.0
    goods = np.flatnonzero(gain)
    log_time, ratio, per = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    mean, flow, above = np.empty((n, BLOCK)), np.empty((n, BLOCK)), np.empty((n, BLOCK))
    plain = np.zeros((len(goods) + 1, kept, BLOCK))
    marked = np.zeros((n + 1, kept, BLOCK))
    by_plain, by_marked = np.empty((kept + 1, BLOCK)), np.empty((kept + 1, BLOCK))
    moved, own, rows = np.empty(BLOCK), np.empty(BLOCK), np.empty(n, np.int64)
    width = len(moved)
    certain, end, good, last_good, node = 0, 0, 0, 0, 0
    while True:
        fill_times(node, step, rate, log_time, ratio, per)
        certain, end = find_window(score, log_time, certain, end)
        while good < len(goods) and goods[good] < certain:
            good += 1
        if certain >= kept or good == len(goods):
            break
        if goods[good] >= end:  # nobody that counts can arrive here: go on where somebody can
            node = next_node(node, step, rate, score[goods[good]])
            continue
        node += BLOCK
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
        # How many others have arrived at the first and at the last of these times.
        fewest, most = certain - 1.0, 0.0
        for i in range(n_all):
            start = math.exp(score[rows[i]] + log_time[0])
            fill_arrivals(start, ratio, mean[i], flow[i], above[i])
            fewest += above[i, 0]
            most += above[i, width - 1]
        if too_late(fewest, n, kept):
            break
        cut = kept - certain
        while cut - 1 > most and _log_chance(most, cut - 1.0) < NEVER:
            cut -= 1
        for b in range(width):
            plain[0, 0, b] = 1.0
        for i in range(n_good):
            g = gain[rows[i]]
            for b in range(width):
                left, mark = 1.0 - above[i, b], g * flow[i, b]
                marked[i + 1, 0, b] = left * marked[i, 0, b] + mark * plain[i, 0, b]
                plain[i + 1, 0, b] = left * plain[i, 0, b]
            for r in range(1, cut):
                for b in range(width):
                    p, mark = above[i, b], g * flow[i, b]
                    part = (1.0 - p) * marked[i, r, b] + p * marked[i, r - 1, b]
                    marked[i + 1, r, b] = part + mark * plain[i, r, b]
                    plain[i + 1, r, b] = (1.0 - p) * plain[i, r, b] + p * plain[i, r - 1, b]
        _go_through(above, n_good, n_all, cut, marked)
        for b in range(width):
            by_plain[cut, b] = 0.0
            by_marked[cut, b] = 0.0
        for r in range(cut):
            for b in range(width):
                by_plain[r, b] = 0.0
                by_marked[r, b] = weights[certain + r] * per[b]
                total += marked[n_all, r, b] * by_marked[r, b]
        for i in range(n_all - 1, n_good - 1, -1):
            _go_back(above, i, cut, marked, by_marked, moved)
            slope = 0.0
            for b in range(width):
                slope += flow[i, b] * moved[b]
            slopes[rows[i]] += slope
        for i in range(n_good - 1, -1, -1):
            g = gain[rows[i]]
            for b in range(width):
                moved[b] = 0.0
                own[b] = 0.0
            for r in range(cut):
                for b in range(width):
                    change = by_marked[r + 1, b] - by_marked[r, b]
                    other = by_plain[r + 1, b] - by_plain[r, b]
                    moved[b] += marked[i, r, b] * change + plain[i, r, b] * other
                    own[b] += plain[i, r, b] * by_marked[r, b]
                    by_plain[r, b] += above[i, b] * other + g * flow[i, b] * by_marked[r, b]
                    by_marked[r, b] += above[i, b] * change
            slope = 0.0
            for b in range(width):
                # A higher score brings the density forward.
                slope += flow[i, b] * (moved[b] + g * (1.0 - mean[i, b]) * own[b])
            slopes[rows[i]] += slope
    return total
