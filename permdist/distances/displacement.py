"""Distances that add up over items, by how far each is from its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._kernels import kernel
from permdist.distances.base import AdditiveDistance, Center, Sums, subset_work
from permdist.distances.centers import Places
from permdist.sums.shape import Shape, fits
from permdist.targets.base import State, Target, compiled

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


class Displacement(AdditiveDistance):
    """A sum over items of a cost of their displacement; a subclass gives `cost`.

    A ballot that places all items is a product over its buckets of tied items.
    """

    takes_ties = True

    @classmethod
    def cost(cls, moves: Any, n: int) -> Any:
        """Return what displacements from 0 to n - 1 add to the distance, elementwise."""
        raise NotImplementedError

    @classmethod
    def from_identity(cls, orders: IntArray) -> Any:
        """Return the distance of each order from 0, 1, ...."""
        n = orders.shape[1]
        return _total_cost(orders, cls.cost(np.arange(n), n))

    @classmethod
    def between_ranks(cls, a: FloatArray, b: FloatArray, penalty: float) -> FloatArray:
        """Return distances between rankings with ties; the penalty plays no part."""
        del penalty
        return cls.cost(np.abs(a - b), a.shape[1]).sum(axis=1)

    @classmethod
    def center_statistic(cls, n: int) -> Places:
        """Return how often each item is at each position."""
        return Places(lambda moves: cls.cost(moves, n))

    @classmethod
    def start_center(cls, levels: IntArray, weights: FloatArray) -> IntArray:
        """Return a center for EM to start from: the best one if tied items are between places."""
        if (levels < 0).any():
            return super().start_center(levels, weights)
        statistic = cls.center_statistic(levels.shape[1])
        return statistic.best(statistic.count(levels, weights))[0]

    def step_costs(self, shape: Shape, ranks: IntArray) -> FloatArray:
        """Return what the next item adds to the distance, shape (subsets, items)."""
        table = self.cost(np.arange(self.n), self.n).astype(np.float64)
        return _step_costs(shape.n_states, ranks[shape.items], table)

    def _agreeing(self, levels: IntArray) -> Sums | None:
        if (levels < 0).any():
            return super()._agreeing(levels)
        sizes = np.bincount(levels)
        first = np.cumsum(sizes) - sizes
        ranks, alone = np.arange(self.n) - first[levels], sizes[levels] == 1
        cost = float(self.cost(np.abs(ranks[alone]), self.n).sum())
        total = np.array([-self.theta * cost, cost, 0.0])
        for level in np.flatnonzero(sizes > 1).tolist():
            found = self.bucket(ranks[levels == level])
            if found is None:
                return super()._agreeing(levels)
            total += found
        return Sums(*total.tolist())

    def work(self, levels: IntArray) -> float:
        """Return about how many elementary operations `agreeing` takes; infinite if not exact."""
        if (levels < 0).any():
            return super().work(levels)
        total = sum(map(self.bucket_work, np.bincount(levels).tolist()))
        return 1e4 + total if total < np.inf else super().work(levels)

    def bucket_work(self, size: int) -> float:
        """Return about how many operations `bucket` takes."""
        return subset_work(size)

    def bucket(self, ranks: IntArray) -> Sums | None:
        """Add up over all orders of some items at the positions 0, 1, ...; None if too many.

        Parameters
        ----------
        ranks : array of int, shape (size,)
            The place of each item in the center, less the first position of the bucket; ascending.
        """
        if len(ranks) == self.n:
            return self.sums
        if not fits(len(ranks)):
            return None
        return self._sums_of_lattice(self.lattice_given(np.zeros_like(ranks), ranks), ranks)

    def target(self, ranks: IntArray, **options: Any) -> Target:
        """Return the target of chains: a swap of neighbors moves two items."""
        costs = self.theta * self.cost(np.arange(self.n), self.n)
        return Center.target(ranks, costs, _peek, _restore, **options)


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def _total_cost(orders: IntArray, costs: IntArray) -> IntArray:
    """Add up the costs of all displacements, orders (m, n), costs (n,)."""
    out = np.zeros(len(orders), costs.dtype)
    for row in range(len(orders)):
        total = costs[0]
        for k in range(orders.shape[1]):
            total += costs[abs(orders[row, k] - k)]
        out[row] = total - costs[0]
    return out


@kernel
def _step_costs(states: int, ranks: IntArray, costs: FloatArray) -> FloatArray:
    """Look up the cost of each next item; the bits of a state are the items placed."""
    n = len(ranks)
    result = np.empty((states, n))
    for state in range(states):
        position, rest = 0, state
        while rest:
            rest &= rest - 1
            position += 1
        for c in range(n):
            result[state, c] = 0.0 if state >> c & 1 else costs[abs(ranks[c] - position)]
    return result


@compiled
def _peek(center: Center, state: State, k: int) -> float:
    """Return the log-weight after a swap of positions k and k + 1."""
    a, b = center.ranks[state.order[k]], center.ranks[state.order[k + 1]]
    costs = center.costs
    before = costs[abs(a - k)] + costs[abs(b - k - 1)]
    return state.value[0] + (before - costs[abs(b - k)] - costs[abs(a - k - 1)])


@compiled
def _restore(center: Center, state: State) -> None:
    """Add up the costs of all displacements."""
    value = 0.0
    for k in range(len(state.order)):
        value -= center.costs[abs(center.ranks[state.order[k]] - k)]
    state.value[0] = value
