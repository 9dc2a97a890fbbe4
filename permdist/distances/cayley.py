"""Cayley's distance: the fewest swaps of two items, n less the number of cycles.

`X_j` is 0 if item j is the last of its cycle in the order of the center, and 1 otherwise; it has
weight ``exp(-thetas[j] X_j)``, independently of all others, and the sum of all `X_j` is the
distance. With a theta per item it is the generalized model.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit

from permdist._kernels import kernel
from permdist.distances.base import ANSWERS, ANY, LISTED, Center, Sums, exchangeable
from permdist.distances.levels import is_top
from permdist.distances.staged import StagedDistance
from permdist.targets.base import State, Target, compiled

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


class Cayley(StagedDistance):
    """Cayley's distance; everything is exact for any number of items with one theta for all.

    References
    ----------
    Fligner, Verducci: Distance based ranking models (1986).
    """

    name = "cayley"
    quick = (150, 2000)
    limits: ClassVar = dict.fromkeys(ANSWERS, ANY) | {"distance_distribution": 20_000}
    also_exact = ", and first places"

    @classmethod
    def from_identity(cls, orders: IntArray) -> Any:
        """Return the distance of each order from 0, 1, ...."""
        return _stages(orders).sum(axis=1)

    @classmethod
    def largest(cls, n: int) -> float:
        """Return n - 1: all items are on one cycle."""
        return n - 1

    @classmethod
    def stages(cls, orders: IntArray) -> IntArray:
        """Return `X` of the first places, shape (m, k) for orders (m, k)."""
        return _stages(orders)

    @classmethod
    def stage_sums(cls, thetas: FloatArray, left: FloatArray) -> Sums:
        """Return sums of `X` where so many items are not before it: 1 and `left` - 1 ways."""
        odds = np.log(left - 1.0) - thetas
        chance = expit(odds)
        return Sums(np.logaddexp(0.0, odds), chance, chance * expit(-odds))

    def can(self, answer: str) -> bool:
        """Whether an answer is exact for so many items."""
        if answer in ("rank_marginals", "pairwise") and not self.is_plain:
            return self.n <= LISTED
        return super().can(answer)

    def distribution(self) -> FloatArray:
        """Return the probability of each distance, a Poisson-binomial distribution."""
        self.check_can("distance_distribution")
        return _poisson_binomial(self.by_stage.mean, np.exp(-self.by_stage.log_total))

    @cached_property
    def _two_stay(self) -> tuple[float, float]:
        """The chances that one item stays, and that two do."""
        stay = np.exp(-self.by_stage.log_total[:2])
        return float(stay[0]), float(stay.prod())

    def rank_marginals(self) -> FloatArray:
        """Return rank marginals: an item stays, or goes to any other place."""
        if not self.is_plain or self.n == 1:
            return super().rank_marginals()
        result = np.full((self.n, self.n), self.by_stage.mean[0] / (self.n - 1))
        np.fill_diagonal(result, self._two_stay[0])
        return result

    def pairwise(self) -> FloatArray:
        """Return pairwise chances from where two items can go together."""
        if not self.is_plain or self.n == 1:
            return super().pairwise()
        both, ratio = self._two_stay[1], float(np.exp(-self.thetas[0]))
        once, twice = ratio * both, ratio * ratio * both
        return exchangeable(self.n, both, once, once, twice, twice)

    def sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders: insert one item after the other into a cycle, or let it be one."""
        return _draw(self.by_stage.mean, rng.random((size, self.n - 1)))

    def _agreeing(self, levels: IntArray) -> Sums | None:
        return self._top(levels) or super()._agreeing(levels)

    def work(self, levels: IntArray) -> float:
        """Return about how many elementary operations `agreeing` takes; infinite if not exact."""
        return 1e4 if is_top(levels) else super().work(levels)

    def target(self, ranks: IntArray, **options: Any) -> Target:
        """Return the target of chains: a swap joins two cycles or splits one."""
        options |= {"floats": self.n, "costs": (5.0 * self.n, 3.0)}
        return Center.target(ranks, np.append(self.thetas, 0.0), _peek, _restore, **options)


# ---- kernels -----------------------------------------------------------------------------------


@kernel
def _stages(orders: IntArray) -> IntArray:
    """Mark all items that are not the last of their cycles, for orders or first places (m, k).

    The item at place j, or the one that it leads to through earlier places, is j itself if j is
    the last of its cycle.
    """
    m, places = orders.shape
    out, leads = np.zeros((m, places), np.int64), np.empty(places, np.int64)
    for row in range(m):
        for j in range(places):
            item = orders[row, j]
            while item < j:
                item = leads[item]
            leads[j] = item
            out[row, j] = item != j
    return out


@kernel
def _poisson_binomial(chances: FloatArray, others: FloatArray) -> FloatArray:
    """Return the distribution of a sum of variables that are 1 with the given chances, or 0."""
    result = np.zeros(len(chances) + 1)
    result[0] = 1.0
    for t in range(len(chances)):
        for d in range(t + 1, 0, -1):
            result[d] = result[d] * others[t] + result[d - 1] * chances[t]
        result[0] *= others[t]
    return result


@kernel
def _draw(chances: FloatArray, uniforms: FloatArray) -> IntArray:
    """Insert items from the last to the first, chances (n - 1,), uniforms (draws, n - 1)."""
    draws, n = len(uniforms), len(chances) + 1
    orders = np.empty((draws, n), np.int64)
    for row in range(draws):
        for k in range(n):
            orders[row, k] = k
        for j in range(n - 2, -1, -1):
            u = uniforms[row, j]
            if u < chances[j]:
                later = n - 1 - j
                at = j + 1 + min(int(u / chances[j] * later), later - 1)
                orders[row, j], orders[row, at] = orders[row, at], orders[row, j]
    return orders


@compiled
def _peek(center: Center, state: State, k: int) -> float:
    """Return the log-weight after a swap of positions k and k + 1.

    The swap joins two cycles or splits one. Of the two, that with the lower last item gains or
    loses the parameter of this item.
    """
    ranks, order = center.ranks, state.order
    at = ranks[order[k]]
    first = at
    while at != k and at != k + 1:
        at = ranks[order[at]]
        first = max(first, at)
    together = at == k + 1
    at = ranks[order[k + 1]]
    second = at
    while at != k and at != k + 1:
        at = ranks[order[at]]
        second = max(second, at)
    change = center.costs[min(first, second)]
    return state.value[0] + (change if together else -change)


@compiled
def _restore(center: Center, state: State) -> None:
    """Add up the parameters of all items that are not the last of their cycles, as `_stages`."""
    value, leads = 0.0, state.floats
    for j in range(len(state.order)):
        item = center.ranks[state.order[j]]
        while item < j:
            item = int(leads[item])
        leads[j] = item
        if item != j:
            value -= center.costs[j]
    state.value[0] = value
