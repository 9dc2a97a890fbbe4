"""The block flip: an item changes places with one of the neighboring block of another label.

A block is a run of items with equal labels, which can be permuted freely. The kernel chooses two
neighboring blocks and an item of each, and proposes that these two change sides. No proposal leaves
all pairs of different labels as they were.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from permdist._kernels import kernel
from permdist.samplers.kernels.randomness import accept, pick
from permdist.targets import State, peek, swap


@kernel(inline=True)
def flip(target: Any, state: State, rng: Any) -> bool:
    """Propose to flip the pair of two items in neighboring blocks."""
    order, levels = state.order, target.levels
    n = len(order)
    borders = 0
    for k in range(n - 1):
        borders += levels[order[k]] != levels[order[k + 1]]
    left = pick(rng, borders + 1)
    if left == borders:  # stay, so that the chain is aperiodic
        return False
    k = 0
    while True:  # the border number `left` is between k and k + 1
        if levels[order[k]] != levels[order[k + 1]]:
            if left == 0:
                break
            left -= 1
        k += 1
    upper, lower = levels[order[k]], levels[order[k + 1]]
    first, last = k, k + 1
    while first > 0 and levels[order[first - 1]] == upper:
        first -= 1
    while last < n - 1 and levels[order[last + 1]] == lower:
        last += 1
    i, j = first + pick(rng, k - first + 1), k + 1 + pick(rng, last - k)
    order[i], order[k] = order[k], order[i]
    order[j], order[k + 1] = order[k + 1], order[j]
    # The items join the blocks beyond, if those have their labels and nothing is left between.
    top, bottom = k, k + 1
    if first == k:
        while top > 0 and levels[order[top - 1]] == lower:
            top -= 1
    if last == k + 1:
        while bottom < n - 1 and levels[order[bottom + 1]] == upper:
            bottom += 1
    after = borders
    # Each side: where the block had other items, a border more; where the item joins, one less.
    if first < k:
        after += 1
    elif top < k:
        after -= 1
    if last > k + 1:
        after += 1
    elif bottom > k + 1:
        after -= 1
    # The chance to choose these two items in their blocks, and the number of orders with the same
    # blocks, cancel; of the chances of a move and its reverse there remain those of the border.
    value = peek(target, state, k)
    if accept(rng, value - state.value[0] + np.log((borders + 1) / (after + 1))):
        swap(target, state, k, value)
        i, j = top + pick(rng, k - top + 1), k + 1 + pick(rng, bottom - k)
        order[i], order[k] = order[k], order[i]
        order[j], order[k + 1] = order[k + 1], order[j]
        return True
    order[j], order[k + 1] = order[k + 1], order[j]
    order[i], order[k] = order[k], order[i]
    return False
