"""How kernels draw at random; tests replace these functions by an enumeration of outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._kernels import kernel
from permdist.sums.exponential import exp_down

if TYPE_CHECKING:
    from permdist._typing import FloatArray


@kernel(inline=True)
def pick(rng: Any, n: int) -> int:
    """Draw one of ``0 .. n-1`` uniformly."""
    return int(rng.random() * n)


@kernel(inline=True)
def accept(rng: Any, change: float) -> bool:
    """Return True with probability ``min(1, exp(change))``; NaN is rejected."""
    if change >= 0.0:
        return True
    return rng.random() < exp_down(change)


@kernel(inline=True)
def weigh(rng: Any, weights: FloatArray, n: int) -> int:
    """Draw one of ``0 .. n-1`` in proportion to its weight."""
    total = 0.0
    for k in range(n):
        total += weights[k]
    left = rng.random() * total
    last = 0
    for k in range(n):
        if weights[k] > 0.0:
            last = k
            left -= weights[k]
            if left < 0.0:
                break
    return last


@kernel(inline=True)
def draw(rng: Any, log_weights: FloatArray, n: int, scratch: FloatArray) -> int:
    """Draw one of ``0 .. n-1`` in proportion to the exponential of its log-weight."""
    largest = -np.inf
    for k in range(n):
        if log_weights[k] > largest:  # never true of NaN, which gets no weight
            largest = log_weights[k]
    for k in range(n):
        scratch[k] = exp_down(log_weights[k] - largest)
    return weigh(rng, scratch, n)


@kernel(inline=True)
def locate(rng: Any, sums: FloatArray, n: int) -> int:
    """Draw one of ``0 .. n-1`` in proportion to its weight, given the cumulative sums."""
    left = rng.random() * sums[n - 1]
    low, high = 0, n - 1  # the first sum above `left` is between them
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > left:
            high = middle
        else:
            low = middle + 1
    return low


@kernel(inline=True)
def divide(rng: Any, counts: FloatArray, n: int) -> None:
    """Divide an interval at random, up to a factor of all lengths.

    The first n entries of `counts` are the numbers of uniform points that lie in the gaps between
    ``n - 1`` other ones; they become the lengths of these gaps.
    """
    for k in range(n):
        length = 0.0
        for _ in range(int(counts[k]) + 1):
            length -= np.log(1.0 - rng.random())
        counts[k] = length
