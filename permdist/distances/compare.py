"""Distances between rankings, batched: many against one, one by one, or all pairs.

Every function broadcasts its two batches; `distance_matrix` compares all with all. Kendall,
footrule and Spearman also take bucket orders and top-k lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from permdist._check import finite
from permdist._kernels import kernel
from permdist.distances import DISTANCES, distance_named
from permdist.rankings.orders import _inverse, check_orders
from permdist.rankings.partial import BucketOrder, TopK
from permdist.rankings.sorting import weigh_inversions

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

__all__ = [
    "DISTANCES",
    "between",
    "cayley",
    "distance_matrix",
    "footrule",
    "hamming",
    "kendall",
    "spearman",
    "ulam",
    "weighted_kendall",
]

BLOCK = 1_000_000  # entries compared at a time
Ranking = ArrayLike | BucketOrder | TopK | Sequence[BucketOrder | TopK]


def kendall(
    a: Ranking, b: Ranking, *, penalty: float = 0.5, normalize: bool = False
) -> NDArray[Any] | Any:
    """Count the pairs of items that two rankings put in opposite order, in O(n log n).

    Parameters
    ----------
    a, b : orders of shape (..., n), or (sequences of) `BucketOrder` and `TopK`
        Batches broadcast against each other.
    penalty : float in [0, 1]
        The cost of a pair that is tied in exactly one of the two rankings. With 1/2 this is the
        mean over all ways to break the ties of one ranking, and a metric.
    normalize : bool
        Divide by the largest distance, n(n-1)/2.

    Returns
    -------
    array or scalar
        Whole numbers for total orders, floats otherwise.

    References
    ----------
    Fagin, Kumar, Mahdian, Sivakumar, Vee: Comparing and aggregating rankings with ties (2004).

    Examples
    --------
    >>> kendall([[0, 1, 2], [2, 1, 0]], [0, 1, 2])
    array([0, 3])
    >>> float(kendall(TopK([0], n_items=3), [0, 1, 2]))
    0.5
    """
    return _elementwise("kendall", a, b, normalize, penalty)


def weighted_kendall(
    a: Ranking,
    b: Ranking,
    weights: ArrayLike | None = None,
    *,
    additive: bool = True,
    normalize: bool = False,
) -> NDArray[Any] | Any:
    """Kendall distance in which each discordant pair counts by the weights of its items.

    Parameters
    ----------
    a, b : orders of shape (..., n)
    weights : array of float, shape (n,), optional
        Non-negative item weights. By default the weight of an item is ``1 / (1 + rank)`` with its
        rank in `b`, so that an exchange near the top of `b` costs most (and the distance is not
        symmetric).
    additive : bool
        A discordant pair costs ``w_i + w_j`` (the default) or ``w_i * w_j``.
    normalize : bool
        Divide by the weight of all pairs.

    References
    ----------
    Vigna: A weighted correlation index for rankings with ties (2015). With total orders
    ``1 - 2 * weighted_kendall(..., normalize=True)`` is his index for the given ranks.

    Examples
    --------
    >>> weighted_kendall([[1, 0, 2], [0, 2, 1]], [0, 1, 2])  # a swap at the top, one below
    array([1.5       , 0.83333333])
    """
    orders, ranks = _total("weighted_kendall", "a", a), _total("weighted_kendall", "b", b)
    left, right, first, second, shape = _paired(orders, ranks)
    n = left.shape[1]
    if weights is None:
        table: FloatArray = 1.0 / (1.0 + _inverse(right).astype(np.float64))
    else:
        table = finite("weights", weights, ndim=1)[None, :]
        if table.shape[1] != n:
            raise ValueError(f"weights: expected {n} weights, got {table.shape[1]}")
        if (table < 0).any():
            raise ValueError(f"weights: expected no negative weight, got {table.min()}")
    right_ranks = _inverse(right)
    out = _weighted_kendall(left, right_ranks, table, first, second, additive)
    if normalize:
        totals = table.sum(axis=1)
        squares = (table**2).sum(axis=1)
        whole = (n - 1) * totals if additive else (totals**2 - squares) / 2
        whole = np.broadcast_to(whole, len(right))[second]
        out = np.divide(out, whole, out=np.zeros_like(out), where=whole > 0)
    return out.reshape(shape)[()]


def footrule(a: Ranking, b: Ranking, *, normalize: bool = False) -> NDArray[Any] | Any:
    """Add up how far each item moves between two rankings (Spearman's footrule).

    Ties and unlisted items have the mean position of their bucket. The largest value is
    ``floor(n^2 / 2)``. Parameters and result as in `kendall`.

    Examples
    --------
    >>> int(footrule([2, 1, 0], [0, 1, 2]))
    4
    """
    return _elementwise("footrule", a, b, normalize)


def spearman(a: Ranking, b: Ranking, *, normalize: bool = False) -> NDArray[Any] | Any:
    """Add up the squares of how far each item moves (the distance under Spearman's rho).

    The largest value is ``n (n^2 - 1) / 3``, and rho is ``1 - 2 * spearman(..., normalize=True)``.
    Parameters and result as in `kendall`.

    Examples
    --------
    >>> int(spearman([2, 1, 0], [0, 1, 2]))
    8
    """
    return _elementwise("spearman", a, b, normalize)


def cayley(a: ArrayLike, b: ArrayLike, *, normalize: bool = False) -> NDArray[Any] | Any:
    """Count the swaps of any two items that turn one order into the other: n minus the cycles.

    Examples
    --------
    >>> int(cayley([2, 1, 0], [0, 1, 2]))
    1
    """
    return _elementwise("cayley", a, b, normalize)


def hamming(a: ArrayLike, b: ArrayLike, *, normalize: bool = False) -> NDArray[Any] | Any:
    """Count the positions at which two orders hold different items.

    Examples
    --------
    >>> int(hamming([2, 1, 0], [0, 1, 2]))
    2
    """
    return _elementwise("hamming", a, b, normalize)


def ulam(a: ArrayLike, b: ArrayLike, *, normalize: bool = False) -> NDArray[Any] | Any:
    """Count the items that must be moved: n minus the longest common subsequence.

    Examples
    --------
    >>> int(ulam([2, 0, 1], [0, 1, 2]))  # take item 2 out, put it at the end
    1
    """
    return _elementwise("ulam", a, b, normalize)


def between(distance: str, a: Ranking, b: Ranking) -> NDArray[Any] | Any:
    """Return the distance of that name, as `kendall` does.

    Parameters
    ----------
    distance : str
    a, b : orders of shape (..., n), or (sequences of) `BucketOrder` and `TopK`

    Examples
    --------
    >>> int(between("ulam", [2, 0, 1], [0, 1, 2]))
    1
    """
    return _elementwise(distance, a, b, normalize=False)


def distance_matrix(
    a: Ranking,
    b: Ranking | None = None,
    *,
    distance: str = "kendall",
    penalty: float = 0.5,
    normalize: bool = False,
) -> NDArray[Any]:
    """Compare every ranking of `a` with every ranking of `b` (or of `a`).

    Parameters
    ----------
    a, b : orders of shape (rankings, n), or sequences of `BucketOrder` and `TopK`
    distance : str
        "kendall", "footrule", "spearman", "cayley", "hamming", "ulam", or one that was registered.
    penalty, normalize
        As in `kendall`.

    Returns
    -------
    array, shape (len(a), len(b))

    Examples
    --------
    >>> distance_matrix([[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    array([[0, 1, 3],
           [1, 0, 2],
           [3, 2, 0]])
    """
    left = _side(distance, "a", a)
    right = left if b is None else _side(distance, "b", b)
    for name, side in (("a", left), ("b", right)):
        if len(side.shape) != 1:
            raise ValueError(f"{name}: expected shape (rankings, n), got {(*side.shape, '...')}")
    if b is None:
        first, second = (index.astype(np.int64) for index in np.triu_indices(len(left.orders), 1))
        values = _compute(distance, left, left, first, second, normalize, penalty)
        result = np.zeros((len(left.orders),) * 2, dtype=values.dtype)
        result[first, second] = values
        result[second, first] = values
        return result
    _same_items(left.orders, right.orders)
    first, second = np.indices((len(left.orders), len(right.orders)), dtype=np.int64)
    values = _compute(distance, left, right, first.ravel(), second.ravel(), normalize, penalty)
    return values.reshape(first.shape)


class _Side(NamedTuple):
    """One side of a comparison: total orders, or orders plus shared ranks where there are ties."""

    orders: IntArray
    ranks: FloatArray | None
    shape: tuple[int, ...]


def _side(distance: str, name: str, rankings: Ranking) -> _Side:
    """Convert any kind of input to rows of orders, with ranks if something is tied."""
    single = isinstance(rankings, BucketOrder | TopK)
    several: Any = [rankings] if single else rankings
    is_sequence = isinstance(several, Sequence) and len(several) > 0
    if not (is_sequence and any(isinstance(entry, BucketOrder | TopK) for entry in several)):
        orders = check_orders(several, name=name)
        return _Side(orders.reshape(-1, orders.shape[-1]), None, orders.shape[:-1])
    if not distance_named(distance).takes_ties:
        raise TypeError(f"{name}: {distance} compares total orders only, got ties or a top-k list")
    buckets = [
        entry.to_bucket_order()
        if isinstance(entry, TopK)
        else entry
        if isinstance(entry, BucketOrder)
        else BucketOrder.from_order(entry)
        for entry in several
    ]
    sizes = {bucket.n_items for bucket in buckets}
    if len(sizes) > 1:
        raise ValueError(f"{name}: expected rankings of the same items, got sizes {sorted(sizes)}")
    rows = np.stack([bucket.order() for bucket in buckets])
    ranks = np.stack([bucket.ranks() for bucket in buckets])
    return _Side(rows, ranks, () if single else (len(buckets),))


def _total(distance: str, name: str, rankings: Ranking) -> IntArray:
    """Convert input that must be total orders."""
    if isinstance(rankings, BucketOrder | TopK) or (
        isinstance(rankings, Sequence)
        and any(isinstance(entry, BucketOrder | TopK) for entry in rankings)
    ):
        raise TypeError(f"{name}: {distance} compares total orders only, got ties or a top-k list")
    return check_orders(rankings, name=name)  # type: ignore[arg-type]


def _same_items(a: IntArray, b: IntArray) -> None:
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"b: expected rankings of {a.shape[-1]} items as in a, got {b.shape[-1]}")


def _broadcast(
    a: tuple[int, ...], b: tuple[int, ...]
) -> tuple[IntArray, IntArray, tuple[int, ...]]:
    """Pair up the rows of two batches: row numbers on each side, and the shape of the result."""
    rows_a = np.arange(int(np.prod(a)), dtype=np.int64).reshape(a)
    rows_b = np.arange(int(np.prod(b)), dtype=np.int64).reshape(b)
    try:
        first, second = np.broadcast_arrays(rows_a, rows_b)
    except ValueError as error:
        raise ValueError(f"b: batch shape {b} does not broadcast with that of a, {a}") from error
    return first.flatten(), second.flatten(), first.shape


def _paired(
    a: IntArray, b: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray, tuple[int, ...]]:
    """Flatten two batches of orders and pair up their rows."""
    _same_items(a, b)
    first, second, shape = _broadcast(a.shape[:-1], b.shape[:-1])
    n = a.shape[-1]
    return a.reshape(-1, n), b.reshape(-1, n), first, second, shape


def _elementwise(
    distance: str, a: Ranking, b: Ranking, normalize: bool, penalty: float = 0.5
) -> NDArray[Any] | Any:
    left, right = _side(distance, "a", a), _side(distance, "b", b)
    _same_items(left.orders, right.orders)
    first, second, shape = _broadcast(left.shape, right.shape)
    values = _compute(distance, left, right, first, second, normalize, penalty)
    return values.reshape(shape)[()]


def _compute(
    distance: str,
    left: _Side,
    right: _Side,
    first: IntArray,
    second: IntArray,
    normalize: bool,
    penalty: float,
) -> NDArray[Any]:
    """Run a distance's kernel over the given pairs of rows."""
    if not 0.0 <= penalty <= 1.0:
        raise ValueError(f"penalty: expected a number from 0 to 1, got {penalty}")
    kind = distance_named(distance)
    n, right_ranks = left.orders.shape[1], _inverse(right.orders)
    tied = left.ranks is not None or right.ranks is not None
    if tied:
        a = _inverse(left.orders).astype(np.float64) if left.ranks is None else left.ranks
        b = right_ranks.astype(np.float64) if right.ranks is None else right.ranks
    found = []
    step = max(1, BLOCK // n)
    for start in range(0, max(1, len(first)), step):
        x, y = first[start : start + step], second[start : start + step]
        if tied:
            found.append(kind.between_ranks(a[x], b[y], float(penalty)))
        else:
            found.append(kind.from_identity(_relabel(left.orders, right_ranks, x, y)))
    values = found[0] if len(found) == 1 else np.concatenate(found)
    if not normalize:
        return values
    largest = kind.largest(n)
    return values / largest if largest else values.astype(np.float64)


@kernel
def _relabel(orders: IntArray, ranks: IntArray, first: IntArray, second: IntArray) -> IntArray:
    """Read ranks (B, n) along orders (A, n), for pairs of rows."""
    n = orders.shape[1]
    out = np.empty((len(first), n), np.int64)
    for row in range(len(first)):
        for k in range(n):
            out[row, k] = ranks[second[row], orders[first[row], k]]
    return out


@kernel
def _weighted_kendall(
    a: IntArray,
    b_ranks: IntArray,
    weights: FloatArray,
    first: IntArray,
    second: IntArray,
    additive: bool,
) -> FloatArray:
    """Weigh the inversions of `_kendall`; weights (1, n) or one row for each row of b."""
    n = a.shape[1]
    values, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    w, spare_w = np.empty(n), np.empty(n)
    out = np.empty(len(first))
    for pair in range(len(first)):
        x, y = first[pair], second[pair]
        row = y if len(weights) > 1 else 0
        for k in range(n):
            values[k] = b_ranks[y, a[x, k]]
            w[k] = weights[row, a[x, k]]
        out[pair] = weigh_inversions(values, w, spare, spare_w, n, additive)
    return out
