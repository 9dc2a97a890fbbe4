"""Functions of one order or of many: which of the two a user's function is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.rankings import random_orders
from permdist.sums.lattice import NotExactError

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray

REMEDY = (
    "it takes one order at a time: let log_prob return "
    'np.vectorize(one, signature="(n)->()", otypes=[float])(orders), where one is that function of '
    "a single order, or pass it to Distribution.from_functions"
)
# A function of one order may take very long for many, before it fails: few are tried first.
FEW = 100


class BatchError(ValueError):
    """A function does not return one number for each of several orders."""


def log_probs(
    log_prob: Callable[[IntArray], Any], orders: IntArray, name: str = "log_prob"
) -> FloatArray:
    """Return log-probabilities (...) of orders (..., n); explain where a function takes only one.

    Parameters
    ----------
    log_prob : callable
    orders : array of int, shape (..., n)
    name : str
        Of the function, for errors.
    """
    if orders.ndim == 2 and len(orders) > FEW:
        log_probs(log_prob, orders[: 2 if orders.shape[1] == 3 else 3].copy(), name)
    try:
        values = np.asarray(log_prob(orders), dtype=np.float64)
    except NotExactError:
        raise
    except Exception as error:
        if not takes_one(log_prob, orders):
            raise
        raise BatchError(
            f"{name}: failed for orders of shape {orders.shape} ({_said(error)}); {REMEDY}"
        ) from error
    if values.shape != orders.shape[:-1]:
        text = (
            f"{name}: expected shape {orders.shape[:-1]} for orders of shape {orders.shape}, "
            f"got {values.shape}"
        )
        raise BatchError(f"{text}; {REMEDY}" if takes_one(log_prob, orders) else text)
    return values


def takes_one(function: Callable[[IntArray], Any], orders: IntArray) -> bool:
    """Check whether a function returns a number for the first of some orders.

    Parameters
    ----------
    function : callable
    orders : array of int, shape (..., n)
    """
    if orders.ndim < 2 or not orders.size:
        return False
    try:
        return np.asarray(function(orders.reshape(-1, orders.shape[-1])[0])).shape == ()
    except Exception:
        return False


def is_batched(function: Callable[[IntArray], Any], n_items: int, name: str) -> bool:
    """Find out by trial whether a function takes orders (batch, n), or only one order.

    Parameters
    ----------
    function : callable
    n_items : int
    name : str
        Of the function, for errors.
    """
    # As many orders as items could be mistaken for one order.
    tried = random_orders(n_items, 2 if n_items == 3 else 3, rng=0)
    singles, together = [_try(function, order) for order in tried], _try(function, tried)
    takes_one = all(np.shape(one) == () and not isinstance(one, Exception) for one in singles)
    takes_many = not isinstance(together, Exception) and np.shape(together) == (len(tried),)
    if takes_one and takes_many and not np.allclose(together, singles, equal_nan=True):
        raise ValueError(
            f"{name}: gives other values for several orders at once than for each of them; "
            "pass batched=True or batched=False to say which are meant"
        )
    if not takes_one and not takes_many:
        first = singles[0]
        got = [
            _said(one) if isinstance(one, Exception) else f"shape {np.shape(one)}"
            for one in (first, together)
        ]
        cause = next((one for one in (first, together) if isinstance(one, Exception)), None)
        raise ValueError(
            f"{name}: expected a number for an order of shape ({n_items},), or {len(tried)} of "
            f"them for orders of shape {tried.shape}; got {got[0]}, and {got[1]}"
        ) from cause
    return takes_many


def one_by_one(
    function: Callable[[IntArray], Any], name: str = "log_prob"
) -> Callable[[IntArray], FloatArray]:
    """Return a function of orders (batch, n) that calls one of a single order for each.

    Parameters
    ----------
    function : callable
    name : str
        Of the function, for errors.
    """

    def number(order: IntArray) -> float:
        value = function(order)
        try:
            return float(value)
        except (TypeError, ValueError):
            got = "None" if value is None else f"{type(value).__name__} {value!r}"[:80]
            raise TypeError(
                f"{name}: expected a number for the order {order.tolist()}, got {got}"
            ) from None

    def batched(orders: IntArray) -> FloatArray:
        return np.array([number(order) for order in orders], dtype=np.float64)

    return batched


def _try(function: Callable[[IntArray], Any], orders: IntArray) -> Any:
    """Return the numbers of a function, or what it raises."""
    try:
        values = function(orders.copy())
        if values is None:  # which numpy would take for NaN
            return TypeError("it returned None")
        return np.asarray(values, dtype=np.float64)
    except Exception as error:
        return error


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
