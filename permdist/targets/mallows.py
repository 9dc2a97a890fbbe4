"""Mallows' models: displacements, stages and cycles, one target each, and Ulam's distance.

What a swap of neighbors changes takes a few operations, but for cycles, along which it is looked
up, and for the longest increasing subsequence, which is found anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist.targets.base import State, Target, anywhere, compiled

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


class Center(NamedTuple):
    """The place of each item in the center, and the parameters.

    `table` has the cost of each displacement, the theta of each stage or cycle, or a single theta.
    """

    ranks: IntArray
    table: FloatArray

    def tempered(self, share: float) -> Center:
        """Return the constants for log-weights that are `share` times as large."""
        return Center(self.ranks, share * self.table)


def displacement_target(ranks: IntArray, costs: FloatArray, **options: Any) -> Target:
    """Return the target of ``-sum costs[|rank - position|]``; options as for `Target`."""
    return _target(Center(ranks, costs), peek_moves, restore_moves, **options)


def stages_target(ranks: IntArray, thetas: FloatArray, **options: Any) -> Target:
    """Return the target of Kendall's distance with a theta per stage, shape (n - 1,)."""
    table = np.append(thetas, 0.0)
    options |= {"integers": len(ranks), "swap": swap_stages}
    return _target(Center(ranks, table), peek_stages, restore_stages, **options)


def cycles_target(ranks: IntArray, thetas: FloatArray, **options: Any) -> Target:
    """Return the target of Cayley's distance with a theta per item but the last."""
    options |= {"floats": len(ranks), "costs": (5.0 * len(ranks), 3.0)}
    table = np.append(thetas, 0.0)
    return _target(Center(ranks, table), peek_cycles, restore_cycles, **options)


def ulam_target(ranks: IntArray, theta: float, **options: Any) -> Target:
    """Return the target of Ulam's distance."""
    options |= {"floats": len(ranks), "costs": (20.0 * len(ranks), 3.0)}
    return _target(Center(ranks, np.array([theta])), peek_ulam, restore_ulam, **options)


def _target(constants: Center, peek: Any, restore: Any, **options: Any) -> Target:
    n = len(constants.ranks)
    options |= {"start": anywhere(n), "temper": constants.tempered}
    return Target(n, peek, restore, constants=constants, **options)


# ---- displacements ------------------------------------------------------------------------------


@compiled
def peek_moves(target: Center, state: State, k: int) -> float:
    """Return the log-weight after a swap of positions k and k + 1."""
    a, b = target.ranks[state.order[k]], target.ranks[state.order[k + 1]]
    costs = target.table
    before = costs[abs(a - k)] + costs[abs(b - k - 1)]
    return state.value[0] + (before - costs[abs(b - k)] - costs[abs(a - k - 1)])


@compiled
def restore_moves(target: Center, state: State) -> None:
    """Add up the costs of all displacements."""
    value = 0.0
    for k in range(len(state.order)):
        value -= target.table[abs(target.ranks[state.order[k]] - k)]
    state.value[0] = value


# ---- stages: the state's integers count later items that the center ranks higher ----------------


@compiled
def peek_stages(target: Center, state: State, k: int) -> float:
    """Return the log-weight after a swap of positions k and k + 1."""
    worse = target.ranks[state.order[k]] > target.ranks[state.order[k + 1]]
    upper, lower = state.integers[k], state.integers[k + 1]
    first, second = target.table[k], target.table[k + 1]
    down = upper - 1 if worse else upper
    up = lower if worse else lower + 1
    return state.value[0] + (first * (upper - up) + second * (lower - down))


@compiled
def swap_stages(target: Center, state: State, k: int, value: float) -> None:
    """Swap positions k and k + 1; the log-weight becomes `value`."""
    order, counts = state.order, state.integers
    worse = target.ranks[order[k]] > target.ranks[order[k + 1]]
    down = counts[k] - 1 if worse else counts[k]
    counts[k] = counts[k + 1] if worse else counts[k + 1] + 1
    counts[k + 1] = down
    order[k], order[k + 1] = order[k + 1], order[k]
    state.value[0] = value


@compiled
def restore_stages(target: Center, state: State) -> None:
    """Count for every position."""
    n, order = len(state.order), state.order
    value = 0.0
    for k in range(n):
        smaller = 0
        for later in range(k + 1, n):
            smaller += target.ranks[order[later]] < target.ranks[order[k]]
        state.integers[k] = smaller
        value -= target.table[k] * smaller
    state.value[0] = value


# ---- cycles -------------------------------------------------------------------------------------


@compiled
def peek_cycles(target: Center, state: State, k: int) -> float:
    """Return the log-weight after a swap of positions k and k + 1.

    The swap joins two cycles or splits one. Of the two, that with the lower last item gains or
    loses the parameter of this item.
    """
    ranks, order = target.ranks, state.order
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
    change = target.table[min(first, second)]
    return state.value[0] + (change if together else -change)


@compiled
def restore_cycles(target: Center, state: State) -> None:
    """Add up the parameters of all items that are not the last of their cycles."""
    n = len(state.order)
    value = 0.0
    for k in range(n):
        state.floats[k] = 0.0
    for j in range(n - 1, -1, -1):
        if state.floats[j] > 0.0:
            value -= target.table[j]
        else:
            at = j
            while state.floats[at] == 0.0:
                state.floats[at] = 1.0
                at = target.ranks[state.order[at]]
    for k in range(n):
        state.floats[k] = 0.0
    state.value[0] = value


# ---- Ulam's distance: the state's floats are scratch space --------------------------------------


@compiled
def _log_weight(target: Center, state: State, swapped: int) -> float:
    """Find the longest increasing subsequence with two neighbors swapped, or none if negative."""
    n, tails, length = len(state.order), state.floats, 0
    for k in range(n):
        at = k
        if swapped >= 0 and k == swapped:
            at = k + 1
        elif swapped >= 0 and k == swapped + 1:
            at = k - 1
        value = target.ranks[state.order[at]]
        low, high = 0, length
        while low < high:
            middle = (low + high) // 2
            if tails[middle] < value:
                low = middle + 1
            else:
                high = middle
        tails[low] = value
        length = max(length, low + 1)
    return -target.table[0] * (n - length) if length < n else 0.0


@compiled
def peek_ulam(target: Center, state: State, k: int) -> float:
    """Return the log-weight after a swap of positions k and k + 1."""
    return _log_weight(target, state, k)


@compiled
def restore_ulam(target: Center, state: State) -> None:
    """Find the longest increasing subsequence."""
    state.value[0] = _log_weight(target, state, -1)
