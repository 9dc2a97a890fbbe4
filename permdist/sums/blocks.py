"""All interleavings of two classes in fixed orders, each block of r items weighed by 1 / r!.

As many orders as the product of the factorials of its blocks have the same signs of good-bad pairs.
So the sum of `exp F`, each divided by that product, over all orders counts every valid sign vector
once; here is the part of it for one order of the bads and one of the goods. A state says how many
of each are placed and the class of the last block; a step places a whole block.

Bads first, then goods, each from the top down; scores are times twice the model's scale, and
exponents are relative to the order of the labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._kernels import kernel
from permdist.sums.exponential import exp_down

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

NEVER = -1e300


# ---- kernels: scores (m + p,), sizes (m, p), steps (2, states) with state i + (m + 1) j ---------
#
# Arrays of class c are (other + 1, own + 1): by the number of the other class and of its own, so
# that the ways into a state, by all sizes of its last block, are side by side. Class 0 are the
# bads. `along` is the exponent of placing items one by one from none of the own class; `before`
# the log of the sum up to the start of a block, less `along` there. Both classes share one array
# of shape (2, larger + 1, larger + 1).


@kernel(fuse=True)
def forward(
    scores: FloatArray, sizes: IntArray, steps: FloatArray, weight: float
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Return the log of the sum, the logs of the sums of all states, `along` and `before`."""
    m, p = sizes
    most = max(m, p)
    along = _along(scores, sizes, steps, weight)
    logs = np.full((2, most + 1, most + 1), NEVER)
    before = np.full((2, most + 1, most + 1), NEVER)
    before[0, 0, 0] = before[1, 0, 0] = 0.0
    fewer = _fewer(most)
    terms = np.empty(most)
    for i in range(m + 1):
        for j in range(p + 1):
            for c in range(2):
                other, own = (j, i) if c == 0 else (i, j)
                if own == 0:
                    continue
                source, less = before[c, other, :own], fewer[most - own :]
                top = NEVER
                for k in range(own):
                    terms[k] = source[k] - less[k]
                    top = max(top, terms[k])
                if top <= 0.5 * NEVER:
                    continue
                total = 0.0
                for k in range(own):
                    total += exp_down(terms[k] - top)
                logs[c, other, own] = top + np.log(total) + along[c, other, own]
            if i + j > 0:
                before[1, i, j] = logs[0, j, i] - along[1, i, j]
                before[0, j, i] = logs[1, i, j] - along[0, j, i]
    ends = logs[0, p, m], logs[1, m, p]
    top = max(ends[0], ends[1])
    total = np.exp(ends[0] - top) + np.exp(ends[1] - top)
    return top + np.log(total), logs, along, before


@kernel
def _fewer(most: int) -> FloatArray:
    """Tabulate log r! from `most` down to 1: entry k of the last `own` is of a block from k on."""
    result = np.zeros(most)
    for r in range(2, most + 1):
        result[most - r] = result[most - r + 1] + np.log(r)
    return result


@kernel
def _along(scores: FloatArray, sizes: IntArray, steps: FloatArray, weight: float) -> FloatArray:
    m, p = sizes
    along = np.zeros((2, max(m, p) + 1, max(m, p) + 1))
    for j in range(p + 1):
        for i in range(m):
            step = weight * steps[0, i + (m + 1) * j]
            along[0, j, i + 1] = along[0, j, i] - scores[i] * (j - p) + step
    for i in range(m + 1):
        for j in range(p):
            step = weight * steps[1, i + (m + 1) * j]
            along[1, i, j + 1] = along[1, i, j] - scores[m + j] * i + step
    return along


@kernel(fuse=True)
def shares_into(
    logs: FloatArray, along: FloatArray, before: FloatArray, fewer: FloatArray, out: FloatArray
) -> None:
    """Fill in the share of each way into a state, by the number of its class before the block.

    `logs` and `along` are those of the state, `before` (own,) those of the starts of its block.
    """
    less = fewer[len(fewer) - len(before) :]
    for k in range(len(before)):
        out[k] = exp_down(min(before[k] - less[k] + (along - logs), 0.0))


@kernel(fuse=True)
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
    most = max(m, p)
    value, logs, along, before = forward(scores, sizes, steps, weight)
    fewer, shares = _fewer(most), np.empty(most)
    gains = _along(np.zeros(m + p), sizes, steps, 1.0)
    # Means of the steps up to each state, and up to the start of a block less the gains there.
    means, starts = np.zeros((2, most + 1, most + 1)), np.zeros((2, most + 1, most + 1))
    mean = 0.0
    if of_mean:
        for i in range(m + 1):
            for j in range(p + 1):
                for c in range(2):
                    other, own = (j, i) if c == 0 else (i, j)
                    if own == 0 or logs[c, other, own] <= 0.5 * NEVER:
                        continue
                    here = logs[c, other, own], along[c, other, own]
                    shares_into(here[0], here[1], before[c, other, :own], fewer, shares)
                    source, total = starts[c, other, :own], 0.0
                    for k in range(own):
                        total += shares[k] * source[k]
                    means[c, other, own] = total + gains[c, other, own]
                if i + j > 0:
                    starts[1, i, j] = means[0, j, i] - gains[1, i, j]
                    starts[0, j, i] = means[1, i, j] - gains[0, j, i]
        mean = np.exp(logs[0, p, m] - value) * means[0, p, m]
        mean += np.exp(logs[1, m, p] - value) * means[1, m, p]
    chances, pulls = np.zeros((2, most + 1, most + 1)), np.zeros((2, most + 1, most + 1))
    # By the class of the next block, as its ways in are.
    flows, moves = np.zeros((2, most + 1, most + 1)), np.zeros((2, most + 1, most + 1))
    for c in range(2):
        other, own = (p, m) if c == 0 else (m, p)
        chances[c, other, own] = np.exp(logs[c, other, own] - value)
        pulls[c, other, own] = chances[c, other, own] * (means[c, other, own] - mean)
    # What is added at the first item of a block, and taken away after its last.
    changes, mean_changes = np.zeros((2, most + 1)), np.zeros((2, most + 1))
    for i in range(m, -1, -1):
        for j in range(p, -1, -1):
            if i + j < m + p:
                chances[0, j, i], chances[1, i, j] = flows[1, i, j], flows[0, j, i]
                pulls[0, j, i], pulls[1, i, j] = moves[1, i, j], moves[0, j, i]
            for c in range(2):
                other, own = (j, i) if c == 0 else (i, j)
                chance, pull = chances[c, other, own], pulls[c, other, own]
                if own == 0 or (chance == 0.0 and pull == 0.0):
                    continue
                slope = float(p - j) if c == 0 else -float(i)
                here = logs[c, other, own], along[c, other, own]
                shares_into(here[0], here[1], before[c, other, :own], fewer, shares)
                flow, change = flows[c, other, :own], changes[c, :own]
                for k in range(own):
                    passed = chance * shares[k]
                    flow[k] += passed
                    change[k] += passed * slope
                changes[c, own] -= chance * slope
                if of_mean:
                    move, change = moves[c, other, :own], mean_changes[c, :own]
                    start, surplus = starts[c, other, :own], gains[c, other, own]
                    surplus -= means[c, other, own]
                    total = 0.0
                    for k in range(own):
                        moved = shares[k] * (pull + chance * (start[k] + surplus))
                        move[k] += moved
                        change[k] += moved * slope
                        total += moved
                    mean_changes[c, own] -= total * slope
    for c in range(2):
        running, mean_running = 0.0, 0.0
        for k in range(sizes[c]):
            running += changes[c, k]
            mean_running += mean_changes[c, k]
            slopes[c * m + k] = running
            mean_slopes[c * m + k] = mean_running
    return value, mean


@kernel
def draw(
    scores: FloatArray,
    sizes: IntArray,
    steps: FloatArray,
    weight: float,
    rng: Any,
    above: IntArray,
) -> None:
    """Draw an interleaving, the last block first; fill in the others above each item (n,)."""
    m, p = sizes
    value, logs, along, before = forward(scores, sizes, steps, weight)
    fewer, shares = _fewer(max(m, p)), np.empty(max(m, p))
    i, j = m, p
    c = 0 if rng.random() < np.exp(logs[0, p, m] - value) else 1
    while i + j > 0:
        other, own = (j, i) if c == 0 else (i, j)
        here = logs[c, other, own], along[c, other, own]
        shares_into(here[0], here[1], before[c, other, :own], fewer, shares)
        u, chosen = rng.random(), own - 1
        for k in range(own - 1, -1, -1):
            if shares[k] > 0.0:
                chosen = k
                u -= shares[k]
                if u < 0.0:
                    break
        for k in range(chosen, own):
            above[c * m + k] = other
        if c == 0:
            i = chosen
        else:
            j = chosen
        c = 1 - c
