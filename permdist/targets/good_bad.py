"""The good-bad pair model: pairs of different labels count by their scores, tilts by a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist.targets.base import State, Target, anywhere, compiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import FloatArray, IntArray


class Levels(NamedTuple):
    """The constants of the model.

    In the state, ``integers[k]`` is the column of the tilt's table at position k, if there is a
    tilt; the counts of the levels, which `restore` needs, follow after them.
    """

    offset: float
    scores: FloatArray  # (n,), times twice the scale
    levels: IntArray  # (n,), the level of each item
    strides: IntArray  # (levels,), how a level's count enters the number of a column
    table: FloatArray  # (levels, counts of levels above), or one column without a tilt

    def tempered(self, share: float) -> Levels:
        """Return the constants for log-weights that are `share` times as large."""
        return self._replace(
            offset=share * self.offset, scores=share * self.scores, table=share * self.table
        )


def good_bad_target(
    constants: Levels, classes: Sequence[IntArray] | None = None, **options: Any
) -> Target:
    """Return the target over orders, or over interleavings of classes in a fixed order.

    Parameters
    ----------
    constants : Levels
    classes : sequence of arrays of int, optional
        The items of each class from the top down, if items of a class never pass each other.
    **options
        As for `Target`.
    """
    n = len(constants.scores)
    options |= {"integers": n + len(constants.strides), "costs": (2.8, 2.3)}
    if classes is None:
        options |= {"has_levels": True, "has_pair_scores": True, "floats": 3 * n}
        options |= {"start": anywhere(n), "temper": constants.tempered}
        return Target(n, peek, restore, swap, constants, **options)

    def start(rng: np.random.Generator) -> IntArray:
        pattern = rng.permutation(np.repeat(np.arange(len(classes)), [*map(len, classes)]))
        taken = [iter(members) for members in classes]
        return np.array([next(taken[c]) for c in pattern], dtype=np.int64)

    return Target(n, peek_sorted, restore, swap, constants, start=start, **options)


@compiled
def peek(target: Levels, state: State, k: int) -> float:
    """Return the log-weight after a swap of positions k and k + 1."""
    a, b = state.order[k], state.order[k + 1]
    above, below = target.levels[a], target.levels[b]
    if above == below:
        return state.value[0]
    change = target.scores[b] - target.scores[a]
    if target.table.shape[1] > 1:
        here = state.integers[k]
        after = target.table[below, here] + target.table[above, here + target.strides[below]]
        before = target.table[above, here] + target.table[below, here + target.strides[above]]
        change += after - before
    return state.value[0] + change


@compiled
def peek_sorted(target: Levels, state: State, k: int) -> float:
    """Return the same, where items of equal level never pass each other."""
    if target.levels[state.order[k]] == target.levels[state.order[k + 1]]:
        return -np.inf
    return peek(target, state, k)


@compiled
def swap(target: Levels, state: State, k: int, value: float) -> None:
    """Swap positions k and k + 1; the log-weight becomes `value`."""
    a, b = state.order[k], state.order[k + 1]
    state.order[k], state.order[k + 1] = b, a
    state.value[0] = value
    if target.table.shape[1] > 1:
        state.integers[k + 1] = state.integers[k] + target.strides[target.levels[b]]


@compiled
def restore(target: Levels, state: State) -> None:
    """Count the levels from the top down."""
    n, order, integers = len(state.order), state.order, state.integers
    counts = n  # where they begin
    value, number = 0.0, 0
    for level in range(len(target.strides)):
        integers[counts + level] = 0
    for k in range(n):
        level = target.levels[order[k]]
        value -= target.scores[order[k]] * (k - integers[counts + level])  # others above
        if target.table.shape[1] > 1:
            integers[k] = number
            value += target.table[level, number]
        integers[counts + level] += 1
        number += target.strides[level]
    # 0.5 s (below - above) = 0.5 s (others - 2 above): the first part does not change.
    for item in range(n):
        value += 0.5 * target.scores[item] * (n - integers[counts + target.levels[item]])
    state.value[0] = value + target.offset
