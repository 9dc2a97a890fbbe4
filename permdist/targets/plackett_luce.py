"""Plackett-Luce: the chain keeps the sum of the worths from each position on, or its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist.targets.base import State, Target, anywhere, compiled

if TYPE_CHECKING:
    from permdist._typing import FloatArray

LARGEST_WORTH = 300.0  # the widest range of log-worths that are kept as plain numbers


class Worths(NamedTuple):
    """Worths of the items, or their logs; the state's `floats` are sums from each position on."""

    scores: FloatArray


def plackett_luce_target(scores: FloatArray, **options: Any) -> Target:
    """Return the target for log-worths of at most 0; options as for `Target`."""
    n = len(scores)
    options |= {"floats": n + 1, "normalizer": 0.0, "start": anywhere(n)}
    if np.ptp(scores) <= LARGEST_WORTH:
        constants, costs = Worths(np.exp(scores)), (16.0, 2.3)
        return Target(n, peek, restore, swap, constants, costs=costs, **options)
    constants, costs = Worths(scores), (18.0, 22.0)
    return Target(n, peek_logs, restore_logs, swap_logs, constants, costs=costs, **options)


@compiled
def peek(target: Worths, state: State, k: int) -> float:
    """Return the log-weight after a swap of positions k and k + 1."""
    a, b = state.order[k], state.order[k + 1]
    rest = state.floats[k + 2] if k + 2 < len(state.floats) else 0.0
    return state.value[0] + np.log((rest + target.scores[b]) / (rest + target.scores[a]))


@compiled
def swap(target: Worths, state: State, k: int, value: float) -> None:
    """Swap positions k and k + 1; the log-weight becomes `value`."""
    a, b = state.order[k], state.order[k + 1]
    state.order[k], state.order[k + 1] = b, a
    state.value[0] = value
    state.floats[k + 1] = state.floats[k + 2] + target.scores[a]


@compiled
def restore(target: Worths, state: State) -> None:
    """Sum the worths from the last position up."""
    n, order = len(state.order), state.order
    value = 0.0
    state.floats[n] = 0.0
    for k in range(n - 1, -1, -1):
        state.floats[k] = state.floats[k + 1] + target.scores[order[k]]
        value += np.log(target.scores[order[k]] / state.floats[k])
    state.value[0] = value


@compiled
def peek_logs(target: Worths, state: State, k: int) -> float:
    """Return the log-weight after a swap of positions k and k + 1."""
    a = state.order[k]
    return state.value[0] + state.floats[k + 1] - log_add(state.floats[k + 2], target.scores[a])


@compiled
def swap_logs(target: Worths, state: State, k: int, value: float) -> None:
    """Swap positions k and k + 1; the log-weight becomes `value`."""
    a, b = state.order[k], state.order[k + 1]
    state.order[k], state.order[k + 1] = b, a
    state.value[0] = value
    state.floats[k + 1] = log_add(state.floats[k + 2], target.scores[a])


@compiled
def restore_logs(target: Worths, state: State) -> None:
    """Sum the worths from the last position up, in logs."""
    n, order = len(state.order), state.order
    value = 0.0
    state.floats[n] = -np.inf
    for k in range(n - 1, -1, -1):
        state.floats[k] = log_add(state.floats[k + 1], target.scores[order[k]])
        value += target.scores[order[k]] - state.floats[k]
    state.value[0] = value


@compiled
def log_add(x: float, y: float) -> float:
    """log(exp x + exp y)."""
    large, small = max(x, y), min(x, y)
    return large if small == -np.inf else large + np.log1p(np.exp(small - large))
