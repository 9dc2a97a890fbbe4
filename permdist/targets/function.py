"""A log-weight that is only known as a function, which is asked again at every step."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from permdist.targets.base import State, Target, exchange, positive_start

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import IntArray


def function_target(
    n_items: int,
    log_weight: Callable[[IntArray], float],
    change: Callable[[IntArray, int], float] | None = None,
    **options: Any,
) -> Target:
    """Return the target of a function.

    Parameters
    ----------
    n_items : int
    log_weight : callable
        The log-weight of one order.
    change : callable, optional
        How the log-weight changes if positions k and k + 1 of an order are swapped. If both
        functions are compiled, then so are the chains.
    **options
        As for `Target`.
    """
    given = [log_weight] if change is None else [log_weight, change]
    make = _compiled if all(hasattr(function, "py_func") for function in given) else _functions
    start = positive_start(n_items, log_weight)
    return Target(n_items, *make(log_weight, change), start=start, costs=(1000.0, 1.0), **options)


def _plain(function: Any) -> Any:
    return getattr(function, "py_func", function)


def _functions(
    function: Any, change: Any, decorate: Callable[[Any], Any] = _plain
) -> tuple[Any, Any, Any]:
    """Return `peek`, `restore` and `swap` around a function."""

    @decorate
    def peek_anew(_target: Any, state: State, k: int) -> float:
        order = state.order
        order[k], order[k + 1] = order[k + 1], order[k]
        value = function(order)
        order[k], order[k + 1] = order[k + 1], order[k]
        return value

    @decorate
    def peek_change(target: Any, state: State, k: int) -> float:
        if state.value[0] == -np.inf:  # from an order of weight 0 differences do not lead back
            return peek_anew(target, state, k)
        value = state.value[0] + change(state.order, k)
        return value if np.isfinite(value) else peek_anew(target, state, k)

    @decorate
    def restore(_target: Any, state: State) -> None:
        state.value[0] = function(state.order)

    swap = exchange if decorate is not _plain else _plain(exchange)
    return peek_anew if change is None else peek_change, restore, swap


@lru_cache(maxsize=16)
def _compiled(function: Any, change: Any) -> tuple[Any, Any, Any]:
    """Compile the functions once, so that chains compiled for them can be found again."""
    return _functions(function, change, numba.njit(nogil=True, error_model="numpy"))
