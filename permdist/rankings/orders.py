"""Total orders: checking, conversions, composition, enumeration and rank addition."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from permdist._check import as_rng, batch_shape, count, finite, integers
from permdist._kernels import kernel
from permdist._parallel import row_blocks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState

MAX_ENUMERATED = 10
FEW_ENTRIES = 1_000_000  # of a batch of orders that takes no time and no room to speak of


def check_orders(
    orders: ArrayLike, n_items: int | None = None, *, name: str = "orders"
) -> IntArray:
    """Return orders as int64; an error names the first entry that is not part of a permutation.

    Parameters
    ----------
    orders : array of int, shape (..., n)
        Each row (last axis) must hold every item ``0 .. n-1`` once.
    n_items : int, optional
        The number of items expected.
    name : str
        The argument's name in error messages.

    Returns
    -------
    array of int64, shape (..., n)

    Examples
    --------
    >>> check_orders([2, 0, 1])
    array([2, 0, 1])
    >>> check_orders([0, 0, 1])
    Traceback (most recent call last):
        ...
    ValueError: orders: expected each item once, got item 0 again at index 1
    """
    array = integers(name, orders, what="item numbers")
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{name}: expected rankings of at least one item, got shape {array.shape}")
    n = array.shape[-1]
    if n_items is not None and n != n_items:
        raise ValueError(f"{name}: expected rankings of {n_items} items, got {n}")
    at = first_fault(array.reshape(-1, n), n)
    if at >= 0:
        raise ValueError(f"{name}: {describe_fault(array, at, n)}")
    return array


def describe_fault(array: IntArray, at: int, n_items: int) -> str:
    """Describe what is wrong with the entry that `first_fault` found."""
    where = tuple(int(i) for i in np.unravel_index(at, array.shape))
    item, place = array[where], where[0] if array.ndim == 1 else where
    if 0 <= item < n_items:
        return f"expected each item once, got item {item} again at index {place}"
    first = "; items count from 0" if item == n_items else ""
    return f"expected items 0 to {n_items - 1}, got {item} at index {place}{first}"


def inverse(orders: ArrayLike) -> IntArray:
    """Invert permutations: ``inverse(order)[order[k]] == k``.

    Examples
    --------
    >>> inverse([2, 0, 1])
    array([1, 2, 0])
    """
    return _inverse(check_orders(orders))


def order_to_ranks(orders: ArrayLike) -> IntArray:
    """Turn orders (item at each position) into ranks (position of each item).

    Examples
    --------
    >>> order_to_ranks([2, 0, 1])  # item 2 on top, then 0, then 1
    array([1, 2, 0])
    """
    return inverse(orders)


def ranks_to_order(ranks: ArrayLike) -> IntArray:
    """Turn ranks (position of each item) into orders (item at each position).

    Examples
    --------
    >>> ranks_to_order([1, 2, 0])
    array([2, 0, 1])
    """
    return _inverse(check_orders(ranks, name="ranks"))


def order_by_scores(scores: ArrayLike) -> IntArray:
    """Rank items by score, the highest first; equal scores by item number.

    Parameters
    ----------
    scores : array of float, shape (..., n)
        Finite scores.

    Examples
    --------
    >>> order_by_scores([0.2, 0.9, 0.2])
    array([1, 0, 2])
    """
    array = finite("scores", scores)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"scores: expected at least one item, got shape {array.shape}")
    return np.argsort(-array, axis=-1, kind="stable")


def ranks_by_scores(scores: ArrayLike) -> IntArray:
    """Return the position of every item when ranked by score; ties as in `order_by_scores`.

    Examples
    --------
    >>> ranks_by_scores([0.2, 0.9, 0.2])
    array([1, 0, 2])
    """
    return _inverse(order_by_scores(scores))


def identity(n_items: int) -> IntArray:
    """Return the order ``0, 1, .., n-1``."""
    n = count("n_items", n_items)
    return np.arange(n, dtype=np.int64)


def compose(first: ArrayLike, second: ArrayLike) -> IntArray:
    """Compose permutations: ``compose(f, g)[k] == f[g[k]]``, batches broadcast.

    Examples
    --------
    >>> compose([2, 0, 1], [1, 2, 0])  # an order after its own inverse
    array([0, 1, 2])
    """
    f, g = check_orders(first, name="first"), check_orders(second, name="second")
    if f.shape[-1] != g.shape[-1]:
        raise ValueError(f"second: expected {f.shape[-1]} items as in first, got {g.shape[-1]}")
    shape = np.broadcast_shapes(f.shape, g.shape)
    return np.take_along_axis(np.broadcast_to(f, shape), np.broadcast_to(g, shape), axis=-1)


def enumerate_orders(n_items: int) -> IntArray:
    """List all ``n!`` orders in lexicographic sequence, for up to 10 items.

    Examples
    --------
    >>> enumerate_orders(3).tolist()
    [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    """
    n = count("n_items", n_items)
    if n > MAX_ENUMERATED:
        raise ValueError(
            f"n_items: enumeration is limited to {MAX_ENUMERATED} items "
            f"({math.factorial(MAX_ENUMERATED):,} orders), got {n}"
        )
    # One item after the other goes before all orders of the rest, which keep their sequence.
    orders = np.zeros((1, 1), dtype=np.int64)
    for size in range(2, n + 1):
        rest = np.array([[item for item in range(size) if item != top] for top in range(size)])
        below = rest[:, orders]  # (tops, orders, size - 1)
        tops = np.broadcast_to(np.arange(size)[:, None, None], (*below.shape[:2], 1))
        orders = np.concatenate([tops, below], axis=2).reshape(-1, size)
    return orders


def random_orders(
    n_items: int, size: int | tuple[int, ...] | None = None, rng: RandomState = None
) -> IntArray:
    """Draw orders uniformly at random.

    Parameters
    ----------
    n_items : int
    size : int or tuple of int, optional
        The batch shape; a single order without it.
    rng : int, numpy.random.Generator or None
        The source of randomness; a seed gives the same orders every time.

    Examples
    --------
    >>> random_orders(4, size=2, rng=0).shape
    (2, 4)
    """
    shape, n = batch_shape(size), count("n_items", n_items)
    number, generator = math.prod(shape), as_rng(rng)
    if number * n <= FEW_ENTRIES:
        return generator.permuted(np.broadcast_to(np.arange(n), (*shape, n)), axis=-1)
    result = np.empty((number, n), dtype=np.int64)
    for a, b in row_blocks(number, n):
        result[a:b] = generator.permuted(np.broadcast_to(np.arange(n), (b - a, n)), axis=-1)
    return result.reshape(*shape, n)


def rank_addition(orders: ArrayLike, weights: ArrayLike | None = None) -> IntArray:
    """Add rankings: the order of the weighted sum of rank points.

    An item earns ``n`` points at the top of a ranking down to 1 at its bottom. The points are
    added up with the weights, and only the *order* of the sums is kept, so very different weights
    can have the same result. With equal weights this is Borda's rule.

    Parameters
    ----------
    orders : array of int, shape (..., rankings, n)
    weights : array of float, shape (rankings,), optional
        Any finite weights, 1 each by default; a negative one counts a ranking backwards.

    Returns
    -------
    array of int, shape (..., n)
        Sums that are equal in double precision are ordered by item number.

    References
    ----------
    Wang, Mao, Zeng, Xia: Listwise Approaches Based on Feature's Ranking Discovery, section 4.1.

    Examples
    --------
    The paper's example: points (3, 2, 1) and (3, 1, 2), with two different weightings.

    >>> rank_addition([[0, 1, 2], [0, 2, 1]], weights=[1.0, 0.8])
    array([0, 1, 2])
    >>> rank_addition([[0, 1, 2], [0, 2, 1]], weights=[0.7, 0.2])
    array([0, 1, 2])
    """
    array = check_orders(orders)
    if array.ndim < 2:
        raise ValueError(f"orders: expected shape (..., rankings, n), got {array.shape}")
    points = (array.shape[-1] - _inverse(array)).astype(np.float64)
    if weights is None:
        return order_by_scores(points.sum(axis=-2))
    weight = finite("weights", weights, ndim=1)
    if len(weight) != array.shape[-2]:
        raise ValueError(f"weights: expected {array.shape[-2]} weights, got {len(weight)}")
    total: FloatArray = np.einsum("r,...rn->...n", weight, points)
    return order_by_scores(total)


def _inverse(permutations: IntArray) -> IntArray:
    """Invert permutations that are known to be valid."""
    result = np.empty_like(permutations)
    positions = np.broadcast_to(np.arange(permutations.shape[-1]), permutations.shape)
    np.put_along_axis(result, permutations, positions, axis=-1)
    return result


@kernel
def first_fault(rows: IntArray, n_items: int) -> int:
    """Find the flat index of the first entry that repeats or leaves 0..n-1; -1 if none does."""
    batch, k = rows.shape
    seen_in = np.full(n_items, -1, np.int64)
    for row in range(batch):
        for position in range(k):
            item = rows[row, position]
            if item < 0 or item >= n_items or seen_in[item] == row:
                return row * k + position
            seen_in[item] = row
    return -1
