"""Swap two neighbors, chosen at random, by the Metropolis rule.

With probability 1 / n nothing is proposed. Otherwise the chain would alternate between even and odd
permutations wherever every swap is accepted.
"""

from __future__ import annotations

from typing import Any

from permdist._kernels import kernel
from permdist.samplers.kernels.randomness import accept, pick
from permdist.targets import State, peek, swap


@kernel(inline=True)
def adjacent(target: Any, state: State, rng: Any) -> bool:
    """Propose to swap two neighbors."""
    k = pick(rng, len(state.order))
    if k == len(state.order) - 1:
        return False
    value = peek(target, state, k)
    if accept(rng, value - state.value[0]):
        swap(target, state, k, value)
        return True
    return False
