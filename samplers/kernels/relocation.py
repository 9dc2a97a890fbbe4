"""Remove an item and draw its position from the full conditional: a Gibbs step."""

from __future__ import annotations

from typing import Any

from permdist._kernels import kernel
from permdist.samplers.kernels.randomness import draw, pick
from permdist.targets import State, peek, swap


@kernel(inline=True)
def relocation(target: Any, state: State, rng: Any) -> bool:
    """Draw a new position for one item, given the order of the others."""
    n = len(state.order)
    start = pick(rng, n)
    weights = state.weights
    weights[start] = state.value[0]
    for k in range(start, n - 1):  # to the end, noting the log-weights
        weights[k + 1] = peek(target, state, k)
        swap(target, state, k, weights[k + 1])
    for k in range(n - 2, start - 1, -1):  # back
        swap(target, state, k, weights[k])
    for k in range(start - 1, -1, -1):  # to the top
        weights[k] = peek(target, state, k)
        swap(target, state, k, weights[k])
    end = draw(rng, weights, n, state.shares)
    for k in range(end):
        swap(target, state, k, weights[k + 1])
    return end != start
