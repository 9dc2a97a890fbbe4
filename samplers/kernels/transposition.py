"""Exchange any two items by the Metropolis rule, through O(n) swaps of neighbors.

With probability 1 / n the two are the same item and nothing happens, so the chain is aperiodic.
"""

from __future__ import annotations

from typing import Any

from permdist._kernels import kernel
from permdist.samplers.kernels.randomness import accept, pick
from permdist.targets import State, peek, swap


@kernel(inline=True)
def transposition(target: Any, state: State, rng: Any) -> bool:
    """Propose to exchange two items at any distance."""
    n = len(state.order)
    i, j = pick(rng, n), pick(rng, n)
    if i == j:
        return False
    low, high = min(i, j), max(i, j)
    before = state.value[0]
    exchange_pair(target, state, low, high)
    if accept(rng, state.value[0] - before):
        return True
    exchange_pair(target, state, low, high)
    state.value[0] = before
    return False


@kernel(inline=True)
def exchange_pair(target: Any, state: State, low: int, high: int) -> None:
    """Exchange two positions by swaps: one item down, then the other one up."""
    for k in range(low, high):
        swap(target, state, k, peek(target, state, k))
    for k in range(high - 2, low - 1, -1):
        swap(target, state, k, peek(target, state, k))
