"""Kernels of the Plackett-Luce model: log-probabilities, their gradients, and draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.rankings.sorting import copy

if TYPE_CHECKING:
    from permdist._typing import BoolArray, FloatArray, IntArray


@kernel
def log_prob(lists: IntArray, scores: FloatArray, worths: FloatArray, rest: bool) -> FloatArray:
    """Log-probabilities, from the bottom up; with `rest`, unlisted items are below the list.

    Sums of worths are multiplied up, and a logarithm is taken only when the product leaves the
    range of plain numbers.
    """
    rankings, k = lists.shape
    out = np.empty(rankings)
    everything = worths.sum()
    partial = rest and k < len(worths)
    for row in range(rankings):
        total = 0.0
        if partial:
            listed = 0.0
            for place in range(k):
                listed += worths[lists[row, place]]
            total = everything - listed
            if total < 1e-3 * everything:  # too much cancellation: add up what is left
                taken = np.zeros(len(worths), np.bool_)
                for place in range(k):
                    taken[lists[row, place]] = True
                total = 0.0
                for item in range(len(worths)):
                    if not taken[item]:
                        total += worths[item]
        value, product = 0.0, 1.0
        for place in range(k - 1, -1, -1):
            item = lists[row, place]
            total += worths[item]
            value += scores[item]
            product *= total
            if product < 1e-150 or product > 1e150:
                value -= np.log(product)
                product = 1.0
        out[row] = value - np.log(product)
    return out


@kernel
def _unlisted(listed: IntArray, scores: FloatArray) -> tuple[BoolArray, float, float]:
    """Return which items are listed, and the others' largest score and sum relative to it."""
    taken, largest, total = np.zeros(len(scores), np.bool_), -np.inf, 0.0
    for place in range(len(listed)):
        taken[listed[place]] = True
    for item in range(len(scores)):
        if not taken[item] and scores[item] > largest:
            largest = scores[item]
    for item in range(len(scores)):
        if not taken[item]:
            total += np.exp(scores[item] - largest)
    return taken, largest, total


@kernel
def log_prob_spread(lists: IntArray, scores: FloatArray, rest: bool) -> FloatArray:
    """Log-probabilities for scores of any spread: sums are relative to their largest term."""
    rankings, k = lists.shape
    out = np.empty(rankings)
    for row in range(rankings):
        largest, total = -np.inf, 0.0
        if rest and k < len(scores):
            _, largest, total = _unlisted(lists[row], scores)
        value = 0.0
        for place in range(k - 1, -1, -1):
            s = scores[lists[row, place]]
            if s > largest:
                total = total * np.exp(largest - s) + 1.0
                largest = s
            else:
                total += np.exp(s - largest)
            # One logarithm carries the small difference where the item itself dominates.
            value += (s - largest) - np.log(total)
        out[row] = value
    return out


@kernel
def log_prob_gradient(lists: IntArray, scores: FloatArray, rest: bool) -> FloatArray:
    """Differentiate, (rankings, n): 1 if listed, less the chances to win each stage."""
    rankings, k = lists.shape
    n = len(scores)
    out = np.zeros((rankings, n))
    logs = np.empty(k)
    for row in range(rankings):
        taken, largest, total = _unlisted(lists[row], scores)
        if not rest:
            largest, total = -np.inf, 0.0
        for place in range(k - 1, -1, -1):
            s = scores[lists[row, place]]
            if s > largest:
                total = total * np.exp(largest - s) + 1.0
                largest = s
            else:
                total += np.exp(s - largest)
            logs[place] = largest + np.log(total)
        # sum over stages of exp(-log total), relative to the largest of them so far
        peak, stages = -np.inf, 0.0
        for place in range(k):
            if -logs[place] > peak:
                stages = stages * np.exp(peak + logs[place]) + 1.0
                peak = -logs[place]
            else:
                stages += np.exp(-logs[place] - peak)
            item = lists[row, place]
            out[row, item] = 1.0 - np.exp(scores[item] + peak) * stages
        if rest:
            for item in range(n):
                if not taken[item]:
                    out[row, item] = -np.exp(scores[item] + peak) * stages
    return out


@kernel
def argsort_rows(keys: FloatArray) -> IntArray:
    """Sort short rows by insertion: keys (rows, n), which are used up."""
    rows, n = keys.shape
    out = np.empty((rows, n), np.int64)
    for row in range(rows):
        for i in range(n):
            key = keys[row, i]
            j = i
            while j > 0 and keys[row, j - 1] > key:
                keys[row, j] = keys[row, j - 1]
                out[row, j] = out[row, j - 1]
                j -= 1
            keys[row, j] = key
            out[row, j] = i
    return out


@kernel
def draw_top(worths: FloatArray, uniforms: FloatArray) -> IntArray:
    """Draw the first places one by one, uniforms (draws, k), from a tree of sums of worths.

    A drawn item is taken out by adding up the sums on its way to the root anew, which leaves no
    rounding behind, and put back at the end of the draw.
    """
    draws, k = uniforms.shape
    n = len(worths)
    leaves = 1
    while leaves < n:
        leaves *= 2
    tree = np.zeros(2 * leaves)
    copy(worths, tree[leaves:])
    for node in range(leaves - 1, 0, -1):
        tree[node] = tree[2 * node] + tree[2 * node + 1]
    out = np.empty((draws, k), np.int64)
    for draw in range(draws):
        for place in range(k):
            target = uniforms[draw, place] * tree[1]
            node = 1
            while node < leaves:
                left = tree[2 * node]
                # Rounding may leave a target beyond the last item: never enter an empty branch.
                if target < left or tree[2 * node + 1] == 0.0:
                    node = 2 * node
                else:
                    target -= left
                    node = 2 * node + 1
            out[draw, place] = node - leaves
            tree[node] = 0.0
            while node > 1:
                node //= 2
                tree[node] = tree[2 * node] + tree[2 * node + 1]
        for place in range(k):
            node = out[draw, place] + leaves
            tree[node] = worths[out[draw, place]]
            while node > 1:
                node //= 2
                tree[node] = tree[2 * node] + tree[2 * node + 1]
    return out
