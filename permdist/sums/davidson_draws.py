"""Draws of rankings with ties: stage by stage, a set out of what is left.

A stage chooses the size t with weight ``delta_t e_t``, with e_t the elementary symmetric polynomial
of ``x = worth^(1/t)``, and then a set of that size with probability proportional to the product of
its x. The polynomials are kept in a binary tree over the items, for each t those of degree 0 to t:
a set is drawn by a walk down the tree and removed by a walk up, O(T^3 log n) per item. Nothing is
ever subtracted or divided out. Numbers are plain where all worths are, otherwise logarithms.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from permdist._check import frozen
from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

# The sum of a stage is at least exp(-spread of the scores) and at most n^T.
PLAIN_SPREAD = 300.0


def tree_of(scores: FloatArray, largest_tie: int) -> tuple[FloatArray, bool]:
    """Return the tree of all items, and whether its numbers are logarithms.

    Parameters
    ----------
    scores : array of float, shape (n,)
        The highest is 0.
    largest_tie : int
        T, at most n.

    Returns
    -------
    tree : array of float, shape (2 * leaves, T (T + 3) / 2)
        Node 1 is the root, those below node k are 2k and 2k + 1; item i is leaf ``leaves + i``.
    logs : bool
    """
    n = len(scores)
    logs = not (-scores.min() < PLAIN_SPREAD and largest_tie * math.log(n) < PLAIN_SPREAD)
    leaves = 1 << max(n - 1, 0).bit_length()
    width = largest_tie * (largest_tie + 3) // 2
    tree = np.empty((2 * leaves, width))
    grow(tree, frozen(scores), largest_tie, logs)
    return tree, logs


# ---- kernels: tree (2 * leaves, width), scores (n,), ties (T,) from log delta_1 = 0 on -----------


@kernel
def grow(tree: FloatArray, scores: FloatArray, largest_tie: int, logs: bool) -> None:
    """Fill a tree."""
    leaves = len(tree) // 2
    for leaf in range(leaves):
        _empty(tree[leaves + leaf], largest_tie, logs)
        if leaf < len(scores):
            at = 0
            for size in range(1, largest_tie + 1):
                x = scores[leaf] / size
                tree[leaves + leaf, at + 1] = x if logs else np.exp(x)
                at += size + 1
    for node in range(leaves - 1, 0, -1):
        _join(tree, node, largest_tie, logs)


@kernel
def draw(
    tree: FloatArray, logs: bool, scores: FloatArray, ties: FloatArray, uniforms: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Draw rankings with one uniform number per stage from `uniforms` (draws, n).

    Returns
    -------
    ranks : array of int, shape (draws, n)
        The number of the bucket of each item.
    log_prob : array of float, shape (draws,)
    """
    draws, n = uniforms.shape
    leaves, largest_tie = len(tree) // 2, len(ties)
    ranks, log_prob = np.empty((draws, n), np.int64), np.zeros(draws)
    here = np.empty(tree.shape)
    weights = np.empty(largest_tie)
    chosen = np.empty(largest_tie, np.int64)
    nodes, needs = np.empty(128, np.int64), np.empty(128, np.int64)
    for row in range(draws):
        for node in range(len(tree)):  # a copy, which compiles faster than an assignment does
            for column in range(tree.shape[1]):
                here[node, column] = tree[node, column]
        left, stage = n, 0
        while left > 0:
            u = uniforms[row, stage]
            size, u, log_total = _draw_size(here[1], ties, min(largest_tie, left), logs, u, weights)
            _draw_set(here, size, logs, u, chosen, nodes, needs)
            total = 0.0
            for k in range(size):
                ranks[row, chosen[k]] = stage
                total += scores[chosen[k]]
                _remove(here, leaves + chosen[k], largest_tie, logs)
            if left > 1:  # the last item is chosen for certain
                log_prob[row] += ties[size - 1] + total / size - log_total
            left -= size
            stage += 1
    return ranks, log_prob


@kernel
def _draw_size(
    root: FloatArray, ties: FloatArray, most: int, logs: bool, u: float, weights: FloatArray
) -> tuple[int, float, float]:
    """Draw the size of a set; return it, what is left of `u`, and the log of the total weight."""
    at, top = 0, -np.inf
    for size in range(1, most + 1):
        value = root[at + size]
        weights[size - 1] = ties[size - 1] + (value if logs else np.log(value))
        top = max(top, weights[size - 1])
        at += size + 1
    total = 0.0
    for size in range(1, most + 1):
        weights[size - 1] = np.exp(weights[size - 1] - top)
        total += weights[size - 1]
    rest, chosen, share = u * total, 1, 1.0
    for size in range(1, most + 1):
        if weights[size - 1] > 0.0:
            chosen, share = size, weights[size - 1]
            if rest < share:
                break
            rest -= share
    return chosen, min(rest / share, 1.0), top + np.log(total)


@kernel
def _draw_set(
    tree: FloatArray,
    size: int,
    logs: bool,
    u: float,
    chosen: IntArray,
    nodes: IntArray,
    needs: IntArray,
) -> None:
    """Draw a set of `size` items from the root down: how many are left, how many right.

    What is left of `u` after a choice is uniform again, so that one number is enough.
    """
    at, leaves = (size - 1) * (size + 2) // 2, len(tree) // 2
    waiting, found = 1, 0
    nodes[0], needs[0] = 1, size
    while waiting > 0:
        waiting -= 1
        node, need = nodes[waiting], needs[waiting]
        while node < leaves:
            whole = tree[node, at + need]
            below, share = -1, 1.0
            rest = u
            for first in range(need + 1):
                a, b = tree[2 * node, at + first], tree[2 * node + 1, at + need - first]
                part = np.exp(a + b - whole) if logs else a * b / whole
                if part > 0.0:
                    if below >= 0:
                        rest -= share
                    below, share = first, part
                    if rest < share:
                        break
            u = min(max(rest / share, 0.0), 1.0)
            if 0 < below < need:
                nodes[waiting], needs[waiting] = 2 * node + 1, need - below
                waiting += 1
            node = 2 * node if below > 0 else 2 * node + 1
            need = below if below > 0 else need
        chosen[found] = node - leaves
        found += 1


@kernel
def _remove(tree: FloatArray, leaf: int, largest_tie: int, logs: bool) -> None:
    """Take an item out of the tree."""
    _empty(tree[leaf], largest_tie, logs)
    node = leaf >> 1
    while node > 0:
        _join(tree, node, largest_tie, logs)
        node >>= 1


@kernel
def _empty(row: FloatArray, largest_tie: int, logs: bool) -> None:
    """Write the polynomials of no item: 1 of degree 0, else 0."""
    at = 0
    for size in range(1, largest_tie + 1):
        row[at] = 0.0 if logs else 1.0
        for degree in range(1, size + 1):
            row[at + degree] = -np.inf if logs else 0.0
        at += size + 1


@kernel
def _join(tree: FloatArray, node: int, largest_tie: int, logs: bool) -> None:
    """Multiply the polynomials of both nodes below."""
    a, b, to = tree[2 * node], tree[2 * node + 1], tree[node]
    at = 0
    for size in range(1, largest_tie + 1):
        for degree in range(size + 1):
            if logs:
                top = -np.inf
                for first in range(degree + 1):
                    top = max(top, a[at + first] + b[at + degree - first])
                total = 0.0
                if top > -np.inf:
                    for first in range(degree + 1):
                        total += np.exp(a[at + first] + b[at + degree - first] - top)
                to[at + degree] = top + np.log(total) if top > -np.inf else top
            else:
                total = 0.0
                for first in range(degree + 1):
                    total += a[at + first] * b[at + degree - first]
                to[at + degree] = total
        at += size + 1
