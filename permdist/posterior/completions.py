"""The missing parts of ballots as part of a chain's state: full orders that agree with them.

Given center and theta, an item of an order is taken out and put back at a place that agrees with
the ballot, drawn from its full conditional. Besides, two items of the center change places together
with those of all orders whose ballots say nothing about which of the two is above: items that few
ballots place could hardly move otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.distances.completions import distance_of, redraw_one
from permdist.posterior.centers import energy_of

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


def any_completions(levels: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw an order per ballot that agrees with it, any of them.

    Parameters
    ----------
    levels : array of int, shape (ballots, n)
        As from `permdist.ballots.levels_of`.
    rng : Generator
    """
    orders = np.argsort(rng.random(levels.shape), axis=1)
    for order, level in zip(orders, levels, strict=True):
        listed = np.flatnonzero(level[order] >= 0)
        items = order[listed]
        order[listed] = items[np.argsort(level[items], kind="stable")]
    return orders


# ---- kernels: orders and levels (ballots, n), center (n,), costs (n,) of displacements ----------


@kernel
def complete(
    orders: IntArray,
    levels: IntArray,
    center: IntArray,
    kind: int,
    costs: FloatArray,
    theta: float,
    rng: np.random.Generator,
) -> None:
    """Relocate about half of the items of every order, and swap some where that changes less."""
    rows, n = orders.shape
    ranks, order = np.empty(n, np.int64), np.empty(n, np.int64)
    level, spare, values = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    for k in range(n):
        ranks[center[k]] = k
    for row in range(rows):
        for k in range(n):
            order[k] = ranks[orders[row, k]]
            level[k] = levels[row, center[k]]
        for _ in range((n + 1) // 2):
            redraw_one(order, level, kind, costs, theta, spare, values, rng)
        if 0 < kind < 3:
            _swap_some(order, level, kind, costs, theta, rng)
        for k in range(n):
            orders[row, k] = center[order[k]]


@kernel
def _swap_some(
    order: IntArray,
    level: IntArray,
    kind: int,
    costs: FloatArray,
    theta: float,
    rng: np.random.Generator,
) -> None:
    """Propose to exchange items that a ballot treats alike; items are as the center ranks them."""
    n = len(order)
    for _ in range(2 * n):
        k, p = min(int(rng.random() * n), n - 1), min(int(rng.random() * n), n - 1)
        x, y = order[k], order[p]
        if k == p or level[x] != level[y]:
            continue
        if kind == 1:
            change = costs[abs(x - p)] + costs[abs(y - k)] - costs[abs(x - k)] - costs[abs(y - p)]
        else:
            at = x
            while at != k and at != p:
                at = order[at]
            change = -1.0 if at == p else 1.0  # a cycle becomes two, or two become one
        if change <= 0.0 or rng.random() < np.exp(-theta * change):
            order[k], order[p] = y, x


@kernel
def relabel(
    orders: IntArray,
    levels: IntArray,
    center: IntArray,
    kind: int,
    costs: FloatArray,
    theta: float,
    pairs: FloatArray,
    places: FloatArray,
    ranks: IntArray,
    coefs: FloatArray,
    distance: int,
    tries: int,
    rng: np.random.Generator,
) -> None:
    """Propose to exchange two items in the center and in all orders that may exchange them.

    The last arrays are those of an `Energy`, of the prior and of ballots without missing parts.
    """
    rows, n = orders.shape
    before, after = np.empty(n, np.int64), np.empty(n, np.int64)
    old, new, spare = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for _ in range(tries):
        k, p = min(int(rng.random() * n), n - 1), min(int(rng.random() * (n - 1)), n - 2)
        if p >= k:
            p += 1
        x, y = center[k], center[p]
        change = -energy_of(center, pairs, places, ranks, coefs, distance)
        for j in range(n):
            before[center[j]] = j
        center[k], center[p] = y, x
        change += energy_of(center, pairs, places, ranks, coefs, distance)
        for j in range(n):
            after[center[j]] = j
        for row in range(rows):
            if levels[row, x] != levels[row, y]:
                for j in range(n):
                    old[j], new[j] = before[orders[row, j]], after[orders[row, j]]
                lost = distance_of(old, kind, costs, spare)
                change += theta * (distance_of(new, kind, costs, spare) - lost)
        if change <= 0.0 or rng.random() < np.exp(-change):
            for row in range(rows):
                if levels[row, x] == levels[row, y]:
                    for j in range(n):
                        if orders[row, j] == x:
                            orders[row, j] = y
                        elif orders[row, j] == y:
                            orders[row, j] = x
        else:
            center[k], center[p] = x, y


@kernel
def count_pairs(orders: IntArray) -> FloatArray:
    """Count how often the second item is above the first, shape (n, n)."""
    rows, n = orders.shape
    result = np.zeros((n, n))
    for row in range(rows):
        for k in range(n):
            for p in range(k):
                result[orders[row, k], orders[row, p]] += 1.0
    return result


@kernel
def count_places(orders: IntArray) -> FloatArray:
    """Count how often each item is at each position, shape (n, n)."""
    rows, n = orders.shape
    result = np.zeros((n, n))
    for row in range(rows):
        for k in range(n):
            result[orders[row, k], k] += 1.0
    return result


@kernel
def ranks_of(orders: IntArray) -> IntArray:
    """Return the rank of each item in each order."""
    result = np.empty_like(orders)
    for row in range(len(orders)):
        for k in range(orders.shape[1]):
            result[row, orders[row, k]] = k
    return result


@kernel
def distances_to(levels: IntArray, center: IntArray, kind: int, costs: FloatArray) -> FloatArray:
    """Return the distance of each ballot from a center, shape (ballots,).

    Of full rankings; for Kendall's distance also of ties: the pairs in the opposite order.
    """
    rows, n = levels.shape
    result, spare = np.zeros(rows), np.empty(n, np.int64)
    seq = np.empty(n, np.int64)
    for row in range(rows):
        for k in range(n):
            seq[k] = levels[row, center[k]]
        # Ranks along the center have the distance of the order: all are symmetric.
        if kind == 0:
            for k in range(n):
                for p in range(k):
                    result[row] += seq[p] > seq[k]
        else:
            result[row] = distance_of(seq, kind, costs, spare)
    return result
