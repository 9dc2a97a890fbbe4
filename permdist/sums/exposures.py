"""Exposures under independent noisy scores: the expected weight of each item's position.

For all queries of a batch, under Plackett-Luce or Gaussian scores, by the quadratures of
`luce_positions` and `gaussian_positions`. Their gradients by the scores are expected sums there,
with the derivatives by the exposures as gains.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.rankings.sorting import descending
from permdist.sums import gaussian_positions, luce_positions
from permdist.sums.gaussian_positions import BLOCK, NEVER, REACH, _fill_noise, _log_chance
from permdist.sums.gaussian_positions import _sharpest as gaussian_sharpest
from permdist.sums.luce_positions import (
    HALVINGS,
    TOLERANCE,
    WIDEST_GAP,
    fill_arrivals,
    fill_times,
    find_window,
    log_rate,
    ranked_scores,
    too_late,
)

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

LUCE_WIDEST, LUCE_FINE = luce_positions.WIDEST, luce_positions.FINE
GAUSSIAN_WIDEST, GAUSSIAN_FINE = gaussian_positions.WIDEST, gaussian_positions.FINE
luce_sharpest = luce_positions.sharpest


# ---- kernels ------------------------------------------------------------------------------------


@kernel(fuse=True, depends=(luce_sharpest, gaussian_sharpest))
def exposures(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    ptr: IntArray,
    weights: FloatArray,
    weight_ptr: IntArray,
    noise: float,
    gaussian: bool,
    out: FloatArray,
) -> None:
    """Fill in E weights[position of i] for every document i of each query.

    scores and out (documents,) as ptr cuts them; weights of the counted positions as weight_ptr
    does. Noise is Gaussian, or that of Plackett-Luce. Since every position is held by one document,
    exposures add up to the weights: what is missing tells the error.
    """
    for q in range(first_query, last_query):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        begin, kept = weight_ptr[q], weight_ptr[q + 1] - weight_ptr[q]
        for i in range(n):
            out[a + i] = 0.0
        if kept == 0:
            continue
        order = descending(scores[a : a + n])
        score, found = np.empty(n), np.empty(n)
        gap = 2.0 * REACH if gaussian else WIDEST_GAP
        ranked_scores(scores[a : a + n], order, noise, gap, score)
        total, size = 0.0, 0.0
        for r in range(kept):
            total += weights[begin + r]
            size += abs(weights[begin + r])
        if gaussian:
            rate = 0.0
            step = min(GAUSSIAN_WIDEST, GAUSSIAN_FINE * gaussian_sharpest(score, REACH, kept))
        else:
            rate = log_rate(score)
            step = min(LUCE_WIDEST, LUCE_FINE * luce_sharpest(score, rate, kept))
        for _ in range(HALVINGS):
            _exposures(score, weights[begin : begin + kept], rate, step, gaussian, found)
            error = -total
            for t in range(n):
                error += found[t]
            if abs(error) <= TOLERANCE * size:
                break
            step *= 0.5
        for t in range(n):
            out[a + order[t]] = found[t]


@kernel(fuse=True)
def _exposures(
    score: FloatArray,
    weights: FloatArray,
    rate: float,
    step: float,
    gaussian: bool,
    found: FloatArray,
) -> None:
    """Fill in the exposures of one query, whose scores fall.

    At every node, the chances of numbers of documents above it are built up over the documents
    before each one, and the expected weights over those after it. Only sums of products of
    chances and weights occur.
    """
    n, kept = len(score), len(weights)
    for t in range(n):
        found[t] = 0.0
    log_time, ratio, per = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    mean, density, above = np.empty(BLOCK), np.empty((n, BLOCK)), np.empty((n, BLOCK))
    chance, ahead = np.zeros((n + 1, kept, BLOCK)), np.empty((kept + 1, BLOCK))
    certain, end, node, width = 0, 0, 0, len(mean)
    top = math.floor(REACH / step)  # of Gaussian nodes, which fall
    while True:
        if gaussian:
            high, low = (top - node) * step, (top - node - width + 1) * step
            while certain < n and score[certain] > high + REACH:
                certain += 1
            while end < n and score[end] >= low - REACH:
                end += 1
            for b in range(width):
                per[b] = step
        else:
            high = 0.0
            fill_times(node, step, rate, log_time, ratio, per)
            certain, end = find_window(score, log_time, certain, end)
        if certain >= min(kept, n):
            break
        node += BLOCK
        if certain == end:
            continue
        n_all = end - certain
        fewest, most = certain - 1.0, 0.0
        for i in range(n_all):
            if gaussian:
                _fill_noise(high, step, score[certain + i], density[i], above[i])
            else:
                start = math.exp(score[certain + i] + log_time[0])
                fill_arrivals(start, ratio, mean, density[i], above[i])
            fewest += above[i, 0]
            most += above[i, width - 1]
        if too_late(fewest, n, kept):
            break
        cut = kept - certain
        while cut - 1 > most and _log_chance(most, cut - 1.0) < NEVER:
            cut -= 1
        for b in range(width):
            chance[0, 0, b] = per[b]
        for i in range(n_all):
            for b in range(width):
                chance[i + 1, 0, b] = (1.0 - above[i, b]) * chance[i, 0, b]
            for r in range(1, cut):
                for b in range(width):
                    p = above[i, b]
                    chance[i + 1, r, b] = (1.0 - p) * chance[i, r, b] + p * chance[i, r - 1, b]
        for b in range(width):
            ahead[cut, b] = 0.0
        for r in range(cut):
            for b in range(width):
                ahead[r, b] = weights[certain + r]
        for i in range(n_all - 1, -1, -1):
            for b in range(width):
                mean[b] = 0.0
            for r in range(cut):
                for b in range(width):
                    mean[b] += chance[i, r, b] * ahead[r, b]
                    ahead[r, b] += above[i, b] * (ahead[r + 1, b] - ahead[r, b])
            total = 0.0
            for b in range(width):
                total += density[i, b] * mean[b]
            found[certain + i] += total
