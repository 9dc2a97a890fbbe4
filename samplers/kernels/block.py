"""The block step: new positions for all items of a class at once, one class after the other.

Give every item a uniform time in [0, 1], by which items are ordered. Given the times of all other
items, those of a class are independent in the good-bad pair model: the density of an item's time is
constant between two neighboring times of the others. Given the order alone, the lengths of these
gaps have a Dirichlet distribution, so that the times need not be kept: the step draws the lengths,
then a gap for each item of the class, then the order of the items within each gap. Where a measure
tilts the model, this is a proposal, accepted by what the tilt makes of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from permdist._kernels import kernel
from permdist.samplers.kernels.randomness import accept, divide, draw, locate, pick
from permdist.sums.exponential import exp_down
from permdist.targets import State, restore

WIDEST = 600.0  # the range of exponents whose exponentials can be multiplied safely


@kernel(inline=True)
def block(target: Any, state: State, rng: Any) -> bool:
    """Draw new positions for every class in turn."""
    moved = False
    for level in range(len(target.strides)):
        moved |= resample(target, state, rng, level)
    return moved


@kernel(inline=True)
def resample(target: Any, state: State, rng: Any, level: int) -> bool:
    """Draw new positions for the items of one class, given the order of all others.

    ``state.floats`` is scratch space: n numbers for `draw`, the gaps of the items of the class, and
    the order before the step.
    """
    order, levels, scores = state.order, target.levels, target.scores
    gaps, logs, room = state.weights, state.shares, state.floats
    n, others = len(order), 0
    gaps[0] = 0.0
    for k in range(n):
        room[2 * n + k] = order[k]
        if levels[order[k]] == level:
            gaps[others] += 1.0
        else:
            others += 1
            gaps[others] = 0.0
    divide(rng, gaps, others + 1)
    # Each of the u others above an item adds its own score and takes away the item's.
    above, total = 0, 0.0
    gaps[0] = np.log(gaps[0])
    for k in range(n):
        if levels[order[k]] != level:
            above += 1
            total += scores[order[k]]
            gaps[above] = np.log(gaps[above]) + total
    least, most = np.inf, -np.inf
    for k in range(n):
        if levels[order[k]] == level:
            least, most = min(least, scores[order[k]]), max(most, scores[order[k]])
    center = 0.5 * (least + most)
    low, high = np.inf, -np.inf
    for u in range(others + 1):
        gaps[u] -= center * u
        low, high = min(low, gaps[u]), max(high, gaps[u])
    near = high - low + 0.5 * (most - least) * others < WIDEST
    if near:  # products instead of exponentials of sums
        for u in range(others + 1):
            gaps[u] = exp_down(gaps[u] - high)
    for k in range(n):
        if levels[order[k]] == level:
            score = scores[order[k]] - center
            if near:
                factor, power, total = np.exp(-score), 1.0, 0.0
                for u in range(others + 1):
                    total += gaps[u] * power
                    logs[u] = total
                    power *= factor
                room[n + k] = locate(rng, logs, others + 1)
            else:
                for u in range(others + 1):
                    logs[u] = gaps[u] - score * u
                room[n + k] = draw(rng, logs, others + 1, room)
    tilted, before = target.table.shape[1] > 1, 0.0
    if tilted:
        before = state.value[0] - across(target, state, level)
    # `gaps` is now the place of the item below each gap, `logs` the next free place in it.
    for u in range(others + 1):
        gaps[u] = 0.0
    for k in range(n):
        if levels[order[k]] == level:
            gaps[int(room[n + k])] += 1.0
    place = 0.0
    for u in range(others + 1):
        logs[u] = place
        place += gaps[u] + 1.0
        gaps[u] = place - 1.0
    above = 0
    for k in range(n):
        item = int(room[2 * n + k])
        if levels[item] == level:
            gap = int(room[n + k])
            order[int(logs[gap])] = item
            logs[gap] += 1.0
        else:
            order[int(gaps[above])] = item
            above += 1
    begin = 0
    for u in range(others + 1):  # in each gap, any order
        end = int(gaps[u])
        for k in range(end - 1, begin, -1):
            j = begin + pick(rng, k - begin + 1)
            order[j], order[k] = order[k], order[j]
        begin = end + 1
    restore(target, state)
    if tilted and not accept(rng, state.value[0] - across(target, state, level) - before):
        for k in range(n):
            order[k] = int(room[2 * n + k])
        restore(target, state)
        return False
    moved = False
    for k in range(n):
        moved |= order[k] != int(room[2 * n + k])
    return moved


@kernel(inline=True)
def across(target: Any, state: State, level: int) -> float:
    """Sum, up to a constant, what pairs of an item of one class and one of another add."""
    inside, outside, total = 0, 0, 0.0
    for k in range(len(state.order)):
        item = state.order[k]
        if target.levels[item] == level:
            total -= target.scores[item] * outside
            inside += 1
        else:
            total -= target.scores[item] * inside
            outside += 1
    return total
