"""Kernels of many Plackett-Luce or other utility models at once: draws, log-probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.rankings.sorting import ascending
from permdist.sums import luce

if TYPE_CHECKING:
    from permdist._typing import BoolArray, FloatArray, IntArray

single_log_prob = luce.log_prob
single_log_prob_spread = luce.log_prob_spread
single_gradient = luce.log_prob_gradient


@kernel
def order_lists(
    first: int, last: int, keys: FloatArray, ptr: IntArray, places: IntArray, out: IntArray
) -> None:
    """Order the items of each list by keys, the lowest first.

    keys (draws, items) as ptr cuts them; places (lists, n) are the items of each list and then
    what is not in it, which stays where it is; out (draws, lists, n).
    """
    draws, n = len(keys), places.shape[1]
    for draw in range(draws):
        for q in range(first, last):
            a, b = ptr[q], ptr[q + 1]
            order = ascending(keys[draw, a:b])
            for k in range(b - a):
                out[draw, q, k] = places[q, order[k]]
            for k in range(b - a, n):
                out[draw, q, k] = places[q, k]


@kernel
def first_stranger(orders: IntArray, sizes: IntArray, mask: BoolArray) -> int:
    """Return where the first item stands that is before the end of its list and not in it, or -1.

    orders (draws, lists, n), mask (lists, n); the place is that in the flat array.
    """
    draws, lists, n = orders.shape
    for draw in range(draws):
        for q in range(lists):
            for k in range(sizes[q]):
                if not mask[q, orders[draw, q, k]]:
                    return (draw * lists + q) * n + k
    return -1


@kernel(depends=(single_log_prob, single_log_prob_spread))
def log_probs(
    first: int,
    last: int,
    orders: IntArray,
    number: IntArray,
    ptr: IntArray,
    scores: FloatArray,
    centered: FloatArray,
    worths: FloatArray,
    plain: BoolArray,
    out: FloatArray,
) -> None:
    """Fill in log-probabilities (draws, lists) of orders (draws, lists, n).

    number (lists, n) is the number of each item within its list; plain says for which lists worths
    are exact as plain numbers.
    """
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        lists = np.empty((len(orders), b - a), np.int64)
        for draw in range(len(orders)):
            for k in range(b - a):
                lists[draw, k] = number[q, orders[draw, q, k]]
        if plain[q]:
            values = single_log_prob(lists, centered[a:b], worths[a:b], True)
        else:
            values = single_log_prob_spread(lists, scores[a:b], True)
        for draw in range(len(orders)):
            out[draw, q] = values[draw]


@kernel(depends=(single_gradient,))
def log_prob_gradients(
    first: int,
    last: int,
    orders: IntArray,
    number: IntArray,
    ptr: IntArray,
    centered: FloatArray,
    out: FloatArray,
) -> None:
    """Fill in derivatives (draws, items) of log-probabilities; see `log_probs`."""
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        lists = np.empty((len(orders), b - a), np.int64)
        for draw in range(len(orders)):
            for k in range(b - a):
                lists[draw, k] = number[q, orders[draw, q, k]]
        slopes = single_gradient(lists, centered[a:b], True)
        for draw in range(len(orders)):
            for i in range(b - a):
                out[draw, a + i] = slopes[draw, i]
