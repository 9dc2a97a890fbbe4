"""What plots of distributions are drawn from: exact answers, or whatever has draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.distributions.drawn import ask, pairs_counted, positions_counted, shares
from permdist.distributions.estimates import Estimates
from permdist.rankings import check_orders

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import IntArray, RandomState

COUNTED = {"rank_marginals": positions_counted, "pairwise": pairs_counted}


def table_of(source: Any, what: str, draws: int, rng: RandomState) -> Estimates:
    """Return rank marginals, pairwise probabilities or the like, with standard errors.

    Parameters
    ----------
    source : Distribution, TiedRankings, Chains, or array of int, shape (..., n)
        Anything with a method of that name, or orders.
    what : str
        The name of the method.
    draws : int
        How many a distribution draws if it is not exact.
    rng : int, Generator or None
    """
    if hasattr(source, what):
        found = ask(getattr(source, what), draws=draws, rng=rng)
        return found if isinstance(found, Estimates) else Estimates(found)
    return shares(_orders(source), COUNTED[what])


def names_of(source: Any, n_items: int) -> tuple[str, ...]:
    """Return the names of the items; their numbers where there are none.

    Parameters
    ----------
    source : as in `table_of`
    n_items : int
    """
    return tuple(getattr(source, "names", None) or map(str, range(n_items)))


def drawn_from(source: Any, draws: int, rng: RandomState) -> IntArray:
    """Return orders (draws, n): drawn, or those that there are.

    Parameters
    ----------
    source : as in `table_of`
    draws : int
        How many a distribution draws.
    rng : int, Generator or None
    """
    if hasattr(source, "sample"):
        return np.asarray(source.sample(draws, rng))
    return _orders(source.drawn("draws") if hasattr(source, "drawn") else source)


def estimated_from(table: Estimates) -> str:
    """Say that a table is an estimate, for a label; nothing where it is exact.

    Parameters
    ----------
    table : Estimates
    """
    if not table.draws:
        return ""
    largest = float(np.max(table.standard_error))
    error = "" if np.isnan(largest) else f", ± {largest:.2g} at most"
    return f" (estimated from {table.draws:,} draws{error})"


def _orders(source: ArrayLike) -> IntArray:
    orders = check_orders(source, name="dist")
    orders = orders.reshape(-1, orders.shape[-1])
    if len(orders) < 2:
        raise ValueError(f"dist: expected at least 2 orders, got {len(orders)}")
    return orders
