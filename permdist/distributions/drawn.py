"""What draws say about a distribution: positions, pairs and the mode, with standard errors."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._parallel import row_blocks
from permdist.distributions.estimates import EstimatedOrder, Estimates, mean_of, means_of
from permdist.distributions.tied_draws import pairs_drawn
from permdist.rankings import check_orders, order_to_ranks
from permdist.sums.lattice import NotExactError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from permdist._typing import AnyIntArray, FloatArray, IntArray

# Consecutive draws of a chain are correlated; the means of so many batches of them hardly are.
BATCHES = 30


def ask(asked: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
    """Call a method with the options it takes.

    `Distribution.rank_marginals` and the like take ``method``, ``draws`` and ``rng``. A subclass of
    a user's own may override them without; its answers are then taken as exact.

    Parameters
    ----------
    asked : callable
    *arguments, **options
        For it. Options that it does not have are left out.

    Examples
    --------
    >>> ask(lambda k: 2 * k, 3, method="exact")
    6
    """
    taken = inspect.signature(asked).parameters
    if not any(one.kind is one.VAR_KEYWORD for one in taken.values()):
        options = {name: value for name, value in options.items() if name in taken}
    return asked(*arguments, **options)


def orders_of(draws: ArrayLike) -> IntArray:
    """Return draws of any batch shape as orders (draws, n); at least two.

    Parameters
    ----------
    draws : array of int, shape (..., n)
    """
    orders = check_orders(draws, name="dist")
    orders = orders.reshape(-1, orders.shape[-1])
    if len(orders) < 2:
        raise ValueError(f"dist: expected at least 2 orders, got {len(orders)}")
    return orders


def positions_counted(orders: AnyIntArray) -> FloatArray:
    """Count how often each item is at each position, (n, n), of orders (draws, n)."""
    n = orders.shape[-1]
    cells = orders.astype(np.int64) * n + np.arange(n)
    return np.bincount(cells.ravel(), minlength=n * n).reshape(n, n).astype(np.float64)


def pairs_counted(orders: AnyIntArray) -> FloatArray:
    """Count how often each item is above each other, (n, n), of orders (draws, n)."""
    return pairs_drawn(order_to_ranks(orders), np.less)[0]


def first_counted(orders: AnyIntArray, k: int) -> FloatArray:
    """Count how often each item is among the first k, (n,), of orders (draws, n)."""
    n = orders.shape[-1]
    return np.bincount(orders[..., :k].ravel(), minlength=n).astype(np.float64)


def shares(orders: AnyIntArray, counted: Callable[[AnyIntArray], FloatArray]) -> Estimates:
    """Return the shares of independent draws that a function counts, with standard errors.

    Parameters
    ----------
    orders : array of int, shape (draws, n)
    counted : callable
        Such as `positions_counted`.
    """
    total = _added(orders, counted)
    return means_of(total, total, len(orders))


def shares_of_chains(
    orders: AnyIntArray, counted: Callable[[AnyIntArray], FloatArray]
) -> Estimates:
    """Return the shares of draws of Markov chains that a function counts.

    Standard errors are from the means of batches of consecutive draws. With fewer than four
    batches, or fewer than four draws in each, they are not known: NaN.

    Parameters
    ----------
    orders : array of int, shape (chains, draws, n)
    counted : callable
        Such as `positions_counted`.
    """
    chains, draws, n = orders.shape
    mean = _added(orders.reshape(-1, n), counted) / (chains * draws)
    batches = max(1, min(BATCHES, draws // 4))
    length, number = draws // batches, chains * batches
    if number < 4 or length < 4:
        return Estimates(mean, draws=chains * draws)
    cut = orders[:, : batches * length].reshape(number, length, n)
    squares = np.zeros_like(mean)
    for batch in cut:
        squares += (_added(batch, counted) / length - mean) ** 2
    return Estimates(mean, np.sqrt(squares / (number - 1) / number), chains * draws)


def _added(orders: AnyIntArray, counted: Callable[[AnyIntArray], FloatArray]) -> FloatArray:
    """Count block by block, so that tables of all pairs stay small and Ctrl-C ends it."""
    blocks = row_blocks(len(orders), orders.shape[-1] ** 2)
    return np.sum([counted(orders[a:b]) for a, b in blocks], axis=0)


def mode_drawn(orders: IntArray, weigh: Callable[[IntArray], FloatArray] | None) -> EstimatedOrder:
    """Return the most probable order that can be found from draws.

    With log-weights: the most probable draw, improved by exchanges of two items until none makes
    it more probable. Without: the order that was drawn most often.

    Parameters
    ----------
    orders : array of int, shape (draws, n)
    weigh : callable or None
        Log-weights (draws,) of orders (draws, n).
    """
    different, first, counts = np.unique(orders, axis=0, return_index=True, return_counts=True)
    if weigh is not None:
        order = _climb(different[weigh(different).argmax()], weigh)
    elif counts.max() < 2 and len(orders) > 1:
        raise NotExactError(
            f"mode: no order was drawn twice in {len(orders):,} draws, and there are no "
            "log-probabilities to compare them by; increase draws, or give log_prob"
        )
    else:
        often = np.flatnonzero(counts == counts.max())
        order = different[often[first[often].argmin()]]
    share = mean_of((orders == order).all(axis=1).astype(np.float64))
    return EstimatedOrder(order, share, len(orders))


def _climb(order: IntArray, weigh: Callable[[IntArray], FloatArray]) -> IntArray:
    """Exchange the two items that gain most, until no exchange gains anything."""
    n = len(order)
    above, below = np.triu_indices(n, 1)
    best, rows = float(weigh(order[None])[0]), np.arange(len(above))
    while len(rows):
        near = np.tile(order, (len(rows), 1))
        near[rows, above], near[rows, below] = order[below], order[above]
        values = weigh(near)
        place = int(values.argmax())
        # Rounding must not lead round and round among equals.
        if not values[place] > best + 1e-12 * max(1.0, abs(best)):
            break
        order, best = near[place], float(values[place])
    return order
