"""All interleavings of two classes in fixed orders, each block of r items weighed by 1 / r!.

As many orders as the product of the factorials of its blocks have the same signs of good-bad pairs.
So the sum of `exp F`, each divided by that product, over all orders counts every valid sign vector
once; here is the part of it for one order of the bads and one of the goods. A state says how many
of each are placed and the class of the last block; a step places a whole block.

Bads first, then goods, each from the top down; scores are times twice the model's scale, and
exponents are relative to the order of the labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._exp import exp_down
from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


# ---- kernels: scores (m + p,), sizes (m, p), steps (2, states) with state i + (m + 1) j ---------
#
# `along[c, i, j]` is the exponent of placing items of class c one by one from none of that class
# up to (i, j), so that a block has a difference of two; logs (2, m + 1, p + 1) of class c.


@kernel
def forward(
    scores: FloatArray, sizes: IntArray, steps: FloatArray, weight: float
) -> tuple[float, FloatArray, FloatArray]:
    """Return the log of the sum, the logs of the sums of all states, and `along`."""
    m, p = sizes
    along = _along(scores, sizes, steps, weight)
    logs = np.full((2, m + 1, p + 1), -np.inf)
    fewer = log_factorials(max(m, p))
    terms = np.empty(max(m, p) + 1)
    for i in range(m + 1):
        for j in range(p + 1):
            for c in range(2):
                most = _terms(logs, along, fewer, c, i, j, terms)
                if most > 0:
                    top = terms[1 : most + 1].max()
                    if top > -np.inf:
                        total = 0.0
                        for r in range(1, most + 1):
                            total += exp_down(terms[r] - top)
                        logs[c, i, j] = top + np.log(total)
    top = max(logs[0, m, p], logs[1, m, p])
    total = np.exp(logs[0, m, p] - top) + np.exp(logs[1, m, p] - top)
    return top + np.log(total), logs, along


@kernel
def log_factorials(most: int) -> FloatArray:
    """Tabulate log r! from 0 up."""
    result = np.zeros(most + 1)
    for r in range(2, most + 1):
        result[r] = result[r - 1] + np.log(r)
    return result


@kernel
def _along(scores: FloatArray, sizes: IntArray, steps: FloatArray, weight: float) -> FloatArray:
    m, p = sizes
    along = np.zeros((2, m + 1, p + 1))
    for j in range(p + 1):
        for i in range(m):
            step = weight * steps[0, i + (m + 1) * j]
            along[0, i + 1, j] = along[0, i, j] - scores[i] * (j - p) + step
    for i in range(m + 1):
        for j in range(p):
            step = weight * steps[1, i + (m + 1) * j]
            along[1, i, j + 1] = along[1, i, j] - scores[m + j] * i + step
    return along


@kernel
def _terms(
    logs: FloatArray,
    along: FloatArray,
    fewer: FloatArray,
    c: int,
    i: int,
    j: int,
    terms: FloatArray,
) -> int:
    """Fill in the log-weights of all ways into a state, by the size of the block; return how many.

    Before a block is one of the other class, or nothing.
    """
    most = i if c == 0 else j
    here = along[c, i, j]
    for r in range(1, most + 1):
        a, b = (i - r, j) if c == 0 else (i, j - r)
        before = 0.0 if a + b == 0 else logs[1 - c, a, b]
        terms[r] = before + here - along[c, a, b] - fewer[r]
    return most


@kernel
def sums(
    scores: FloatArray,
    sizes: IntArray,
    steps: FloatArray,
    weight: float,
    of_mean: bool,
    slopes: FloatArray,
    mean_slopes: FloatArray,
) -> tuple[float, float]:
    """Return the log of the sum and the mean of the steps; fill in both slopes (n,).

    The mean and its slopes only if `of_mean`.
    """
    m, p = sizes
    value, logs, along = forward(scores, sizes, steps, weight)
    fewer, terms = log_factorials(max(m, p)), np.empty(max(m, p) + 1)
    gains = _along(np.zeros(m + p), sizes, steps, 1.0)
    means = np.zeros((2, m + 1, p + 1))
    mean = 0.0
    chances, pulls = np.zeros((2, m + 1, p + 1)), np.zeros((2, m + 1, p + 1))
    if of_mean:
        for i in range(m + 1):
            for j in range(p + 1):
                for c in range(2):
                    if logs[c, i, j] == -np.inf:
                        continue
                    for r in range(1, _terms(logs, along, fewer, c, i, j, terms) + 1):
                        share = exp_down(min(terms[r] - logs[c, i, j], 0.0))
                        a, b = (i - r, j) if c == 0 else (i, j - r)
                        gain = gains[c, i, j] - gains[c, a, b]
                        means[c, i, j] += share * (means[1 - c, a, b] + gain)
        for c in range(2):
            mean += np.exp(logs[c, m, p] - value) * means[c, m, p]
    for c in range(2):
        chances[c, m, p] = np.exp(logs[c, m, p] - value)
        pulls[c, m, p] = chances[c, m, p] * (means[c, m, p] - mean)
    # What is added at the first item of a block, and taken away after its last.
    changes, mean_changes = np.zeros((2, max(m, p) + 1)), np.zeros((2, max(m, p) + 1))
    for i in range(m, -1, -1):
        for j in range(p, -1, -1):
            for c in range(2):
                chance, pull = chances[c, i, j], pulls[c, i, j]
                if chance == 0.0 and pull == 0.0:
                    continue
                slope, last = (p - j, i) if c == 0 else (-i, j)
                for r in range(1, _terms(logs, along, fewer, c, i, j, terms) + 1):
                    share = exp_down(min(terms[r] - logs[c, i, j], 0.0))
                    a, b = (i - r, j) if c == 0 else (i, j - r)
                    flow = chance * share
                    chances[1 - c, a, b] += flow
                    changes[c, last - r] += flow * slope
                    changes[c, last] -= flow * slope
                    if of_mean:
                        gain = gains[c, i, j] - gains[c, a, b] + means[1 - c, a, b]
                        moved = pull * share + flow * (gain - means[c, i, j])
                        pulls[1 - c, a, b] += moved
                        mean_changes[c, last - r] += moved * slope
                        mean_changes[c, last] -= moved * slope
    for c in range(2):
        running, mean_running = 0.0, 0.0
        for k in range(sizes[c]):
            running += changes[c, k]
            mean_running += mean_changes[c, k]
            slopes[c * m + k] = running
            mean_slopes[c * m + k] = mean_running
    return value, mean
