"""The best center of rankings, from what their total distance from a center depends on.

Each class is one such statistic of weighted orders: how to count it, its expected value in a
program over subsets, and the center with the least total distance for given counts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from permdist import rankings
from permdist.rankings import enumerate_orders, order_to_ranks
from permdist.sums.lattice import NotExactError
from permdist.sums.shape import fits

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.distances.base import Distance

MOST_CENTERS = 8  # items, of which all orders are tried as centers


class CenterStatistic(Protocol):
    """What the total distance of weighted orders from a center depends on."""

    def count(self, ranks: IntArray, weights: FloatArray) -> FloatArray:
        """Add up over orders, given by the rank of each item, shape (m, n)."""

    def expect(self, model: Any) -> FloatArray:
        """Return the mean over orders; the model knows `pairwise` and `rank_marginals`."""

    def total(self, counts: FloatArray, center: IntArray) -> float:
        """Return the total distance from a center."""

    def best(self, counts: FloatArray) -> tuple[IntArray, bool]:
        """Return the center with the least total distance, and whether this is proved."""

    def relabeled(self, counts: FloatArray, items: IntArray) -> FloatArray:
        """Return the counts of items that are numbered in another way."""


class Pairs:
    """How often an item is above another, shape (n, n): enough for Kendall's distance.

    Parameters
    ----------
    time_limit : float, optional
        Seconds to prove that a center of many items is the best.
    """

    def __init__(self, time_limit: float | None = None) -> None:
        self.time_limit = time_limit

    def count(self, ranks: IntArray, weights: FloatArray) -> FloatArray:
        """Add up over orders, or the levels of any ballots."""
        above = np.zeros((ranks.shape[1],) * 2)
        for row, weight in zip(ranks, weights, strict=True):
            above += weight * ((row[:, None] < row) & (row[:, None] >= 0))
        return above

    def expect(self, model: Any) -> FloatArray:
        """Return pairwise chances."""
        return model.pairwise()

    def total(self, counts: FloatArray, center: IntArray) -> float:
        """Add up the pairs that the center has in the opposite order."""
        return float(np.tril(counts[np.ix_(center, center)]).sum())

    def best(self, counts: FloatArray) -> tuple[IntArray, bool]:
        """Solve Kemeny's problem."""
        if fits(len(counts)):
            from permdist.distributions.custom import WeightedOrders

            return WeightedOrders.from_pairs(counts).mode(), True
        return self.kemeny(counts)

    def kemeny(self, counts: FloatArray) -> tuple[IntArray, bool]:
        """Solve Kemeny's problem for any number of items, as `permdist.rankings.consensus` does."""
        from permdist.ballots import Ballots

        winners, losers = np.nonzero(counts > 0.0)
        weights = counts[winners, losers]
        pairs = Ballots.from_pairs(winners, losers, weights=weights, n_items=len(counts))
        found = rankings.consensus(pairs, "kemeny", time_limit=self.time_limit)
        return np.array(found.order), bool(found.proved)

    def relabeled(self, counts: FloatArray, items: IntArray) -> FloatArray:
        """Return the counts of items that are numbered in another way."""
        return counts[np.ix_(items, items)]


class Places:
    """How often an item is at a position or half position: enough where displacements add up.

    Parameters
    ----------
    cost : callable
        ``cost(displacements)`` returns what displacements add to the distance.
    """

    def __init__(self, cost: Any) -> None:
        self.cost = cost

    def count(self, ranks: IntArray, weights: FloatArray) -> FloatArray:
        """Add up over orders, or levels of all items; tied ones have a mean position.

        Returns shape (n, 2 n - 1), a column for every half position.
        """
        n = ranks.shape[1]
        twice = np.rint(2.0 * rankdata(ranks, axis=1) - 2.0).astype(np.int64)
        places = np.zeros((n, 2 * n - 1))
        np.add.at(places, (np.arange(n), twice), weights[:, None])
        return places

    def expect(self, model: Any) -> FloatArray:
        """Return rank marginals."""
        return model.rank_marginals()

    def total(self, counts: FloatArray, center: IntArray) -> float:
        """Add up the costs of all displacements."""
        return float((counts[center] * self._costs(*counts.shape).T).sum())

    def _costs(self, n: int, columns: int) -> FloatArray:
        """Return what an item costs from each position on a ballot to each place, (columns, n)."""
        positions = np.linspace(0.0, n - 1.0, columns)
        return self.cost(np.abs(positions[:, None] - np.arange(n)))

    def best(self, counts: FloatArray) -> tuple[IntArray, bool]:
        """Solve an assignment problem."""
        costs = counts @ self._costs(*counts.shape)
        return np.argsort(linear_sum_assignment(costs)[1]), True

    def relabeled(self, counts: FloatArray, items: IntArray) -> FloatArray:
        """Return the counts of items that are numbered in another way."""
        return counts[items]


class Orders:
    """How often each order is seen, for any distance and few items; as `enumerate_orders` lists.

    Parameters
    ----------
    distance : type of Distance
    """

    def __init__(self, distance: type[Distance]) -> None:
        self.distance = distance

    def count(self, ranks: IntArray, weights: FloatArray) -> FloatArray:
        """Add up over orders."""
        n = ranks.shape[1]
        if n > MOST_CENTERS:
            raise NotExactError(
                f"center: for {self.distance.name} found exactly up to {MOST_CENTERS} items, the "
                f"ballots have {n}; pass a center"
            )
        number = self._number(order_to_ranks(ranks))
        return np.bincount(number, weights, math.factorial(n)).astype(np.float64, copy=False)

    def _number(self, orders: IntArray) -> IntArray:
        """Return the places of orders in `enumerate_orders`, which lists them lexically."""
        n = orders.shape[1]
        digits = n ** np.arange(n - 1, -1, -1)
        return np.searchsorted(enumerate_orders(n) @ digits, orders @ digits)

    def relabeled(self, counts: FloatArray, items: IntArray) -> FloatArray:
        """Return the counts of items that are numbered in another way."""
        return counts[self._number(items[enumerate_orders(len(items))])]

    def expect(self, model: Any) -> FloatArray:
        """Not available: rank marginals and pairwise chances say too little."""
        del model
        raise NotExactError(f"the chances of all orders, for {self.distance.name}")

    def total(self, counts: FloatArray, center: IntArray) -> float:
        """Add up the distance of each order."""
        orders = enumerate_orders(len(center))
        return float(counts @ self.distance.from_identity(order_to_ranks(center)[orders]))

    def best(self, counts: FloatArray) -> tuple[IntArray, bool]:
        """Try all orders as centers."""
        sizes = {len(enumerate_orders(n)): n for n in range(1, MOST_CENTERS + 1)}
        every = enumerate_orders(sizes[len(counts)])
        ranks, totals = order_to_ranks(every), np.zeros(len(every))
        for seen in np.flatnonzero(counts):
            totals += counts[seen] * self.distance.from_identity(ranks[:, every[seen]])
        return every[int(totals.argmin())], True
