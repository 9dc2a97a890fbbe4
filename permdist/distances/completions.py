"""Draws of orders that agree with ballots, by a Markov chain per ballot.

A step takes one item out of an order and puts it back at a place that agrees with the ballot, with
the chances that Mallows' model gives to these places: a Gibbs step. Neighbors that a ballot says
nothing about can change places, by which every order that agrees can be reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._kernels import kernel
from permdist.distances.cayley import Cayley
from permdist.distances.displacement import Displacement
from permdist.distances.kendall import Kendall
from permdist.distances.ulam import Ulam
from permdist.sums.lattice import NotExactError

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.distances.base import Distance


class Drawn(NamedTuple):
    """What some draws per ballot add up to.

    Attributes
    ----------
    distances : array of float, shape (draws, ballots)
        From the center.
    pairs : array of float, shape (n, n)
        How often the first item was above the second, per draw and by the weights of the ballots.
    places : array of float, shape (n, n)
        How often each item was at each position, likewise.
    """

    distances: FloatArray
    pairs: FloatArray
    places: FloatArray


class Chains:
    """One chain per ballot; each call goes on where the last one ended.

    Parameters
    ----------
    levels : array of int, shape (ballots, n)
        What the ballots say, by item.
    weights : array of float, shape (ballots,)
    distance : type of Distance
    """

    def __init__(self, levels: IntArray, weights: FloatArray, distance: type[Distance]) -> None:
        self.levels, self.weights = levels, weights
        self.kind, self.costs = kernel_of(distance, levels.shape[1])
        self.orders: IntArray = np.zeros((0, levels.shape[1]), np.int64)  # before the first draws

    def __call__(
        self, center: IntArray, theta: float, draws: int, rng: np.random.Generator
    ) -> Drawn:
        """Draw some orders per ballot, with a parameter and items as a center ranks them.

        The statistics are by item, whatever the center.
        """
        n = self.levels.shape[1]
        ranks = np.argsort(center)
        levels = np.ascontiguousarray(self.levels[:, center])
        orders = ranks[self.orders] if len(self.orders) else start_at(levels)
        values = np.empty((draws, len(levels)))
        pairs, places = np.zeros((n, n)), np.zeros((n, n))
        found = values, pairs, places
        _relocate(orders, levels, self.weights, self.kind, self.costs, theta, rng, *found)
        self.orders = center[orders]
        back = np.ix_(ranks, ranks)
        return Drawn(values, pairs[back] / draws, places[ranks] / draws)


def kernel_of(distance: type[Distance], n: int) -> tuple[int, FloatArray]:
    """Return which kernel draws orders, and what each displacement adds to the distance, if so.

    Parameters
    ----------
    distance : type of Distance
    n : int
        The number of items.
    """
    if issubclass(distance, Displacement):
        return 1, distance.cost(np.arange(n), n).astype(np.float64)
    kinds: dict[type[Distance], int] = {Kendall: 0, Cayley: 2, Ulam: 3}
    if distance not in kinds:
        raise NotExactError(
            f"method: for {distance.name} there are no draws of orders that agree with a ballot"
        )
    return kinds[distance], np.zeros(n)


def start_at(levels: IntArray) -> IntArray:
    """Return an order that agrees with each ballot and has the items in order otherwise.

    An item that is not on the ballot goes right below the one before it.
    """
    n = levels.shape[1]
    keys = levels.astype(np.float64)
    for k in range(n):
        missing = levels[:, k] < 0
        keys[missing, k] = keys[missing, k - 1] if k else 0.0
    return np.argsort(keys, axis=1, kind="stable")


# ---- kernels: items are numbered as the center ranks them --------------------------------------


@kernel
def distance_of(order: IntArray, kind: int, costs: FloatArray, spare: IntArray) -> float:
    """Return the distance of an order from 0, 1, ...; spare has shape (n,)."""
    n, total = len(order), 0.0
    if kind == 0:
        for i in range(n):
            for j in range(i):
                total += order[j] > order[i]
    elif kind == 1:
        for k in range(n):
            total += costs[abs(order[k] - k)]
    elif kind == 2:
        spare[:] = 0
        total = float(n)
        for k in range(n):
            if spare[k] == 0:
                total -= 1.0
                at = k
                while spare[at] == 0:
                    spare[at] = 1
                    at = order[at]
    else:
        length = 0  # of the longest increasing subsequence, by patience
        for k in range(n):
            at = np.searchsorted(spare[:length], order[k])
            spare[at] = order[k]
            length = max(length, at + 1)
        total = float(n - length)
    return total


@kernel
def _shift(order: IntArray, source: int, target: int) -> None:
    """Move one entry to another place; those between move by one."""
    item = order[source]
    step = 1 if target > source else -1
    for k in range(source, target, step):
        order[k] = order[k + step]
    order[target] = item


@kernel
def _passed(a: int, b: int, k: int, kind: int, costs: FloatArray) -> float:
    """Return the change of the distance when a at k and b at k + 1 change places."""
    if kind == 0:
        return 1.0 if a < b else -1.0
    before = costs[abs(a - k)] + costs[abs(b - k - 1)]
    return costs[abs(b - k)] + costs[abs(a - k - 1)] - before


@kernel
def redraw_one(
    order: IntArray,
    level: IntArray,
    kind: int,
    costs: FloatArray,
    theta: float,
    spare: IntArray,
    values: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Take a random item out of an order, and draw its place from its full conditional.

    Parameters
    ----------
    order : array of int, shape (n,)
    level : array of int, shape (n,)
        What the ballot says.
    kind : int
        As `kernel_of` returns it.
    costs : array of float, shape (n,)
    theta : float
    spare : array of int, shape (n,)
    values : array of float, shape (n,)
        Overwritten.
    rng : Generator
    """
    n = len(order)
    k = min(int(rng.random() * n), n - 1)
    item = order[k]
    mine = level[item]
    low, high = k, k
    while low > 0 and not 0 <= level[order[low - 1]] < mine:
        low -= 1
    while high < n - 1 and not (mine >= 0 and level[order[high + 1]] > mine):
        high += 1
    values[k] = 0.0
    if kind < 2:
        for p in range(k - 1, low - 1, -1):
            values[p] = values[p + 1] + _passed(order[p], item, p, kind, costs)
        for p in range(k + 1, high + 1):
            # The items above have moved up by one; this one is next.
            values[p] = values[p - 1] + _passed(item, order[p], p - 1, kind, costs)
    else:
        for p in range(low, high + 1):
            _shift(order, k, p)
            values[p] = distance_of(order, kind, costs, spare)
            _shift(order, p, k)
    least = values[low : high + 1].min()
    total = 0.0
    for p in range(low, high + 1):
        values[p] = np.exp(-theta * (values[p] - least))
        total += values[p]
    share, p = rng.random() * total, low
    while p < high and share >= values[p]:
        share -= values[p]
        p += 1
    _shift(order, k, p)


@kernel
def _relocate(
    orders: IntArray,
    levels: IntArray,
    weights: FloatArray,
    kind: int,
    costs: FloatArray,
    theta: float,
    rng: np.random.Generator,
    distances: FloatArray,
    pairs: FloatArray,
    places: FloatArray,
) -> None:
    """Make n / 2 steps per draw and ballot; distances (draws, ballots) are filled.

    Pairs (n, n) and places (n, n) are added to, by weights (ballots,).
    """
    draws, (rows, n) = len(distances), orders.shape
    spare, values = np.empty(n, np.int64), np.empty(n)
    for row in range(rows):
        order, level = orders[row], levels[row]
        for draw in range(draws):
            for _ in range((n + 1) // 2):
                redraw_one(order, level, kind, costs, theta, spare, values, rng)
            distances[draw, row] = distance_of(order, kind, costs, spare)
            for p in range(n):
                places[order[p], p] += weights[row]
                for below in range(p + 1, n):
                    pairs[order[p], order[below]] += weights[row]
