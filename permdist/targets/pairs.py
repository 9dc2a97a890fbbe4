"""Log-weights that add up over all pairs of items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from permdist.targets.base import State, Target, anywhere, compiled

if TYPE_CHECKING:
    from permdist._typing import FloatArray


class Pairs(NamedTuple):
    """Entry ``[i, j]`` of `table` is added where i is above j."""

    table: FloatArray

    def tempered(self, share: float) -> Pairs:
        """Return the constants for log-weights that are `share` times as large."""
        return Pairs(share * self.table)


def pairs_target(table: FloatArray, **options: Any) -> Target:
    """Return the target of a matrix of pair weights; options as for `Target`."""
    constants = Pairs(table)
    options |= {"start": anywhere(len(table)), "temper": constants.tempered}
    return Target(len(table), peek, restore, constants=constants, **options)


@compiled
def peek(target: Pairs, state: State, k: int) -> float:
    """Return the log-weight after a swap of positions k and k + 1."""
    a, b = state.order[k], state.order[k + 1]
    return state.value[0] + target.table[b, a] - target.table[a, b]


@compiled
def restore(target: Pairs, state: State) -> None:
    """Sum over all pairs."""
    n, order = len(state.order), state.order
    value = 0.0
    for k in range(n):
        for later in range(k + 1, n):
            value += target.table[order[k], order[later]]
    state.value[0] = value
