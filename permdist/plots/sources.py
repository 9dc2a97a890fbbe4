"""What plots of distributions are drawn from: exact answers, or whatever has draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from permdist._typing import IntArray, RandomState
    from permdist.distributions import Estimates


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
    from permdist.distributions import Estimates, drawn

    if hasattr(source, what):
        found = drawn.ask(getattr(source, what), draws=draws, rng=rng)
        return found if isinstance(found, Estimates) else Estimates(found)
    counted = drawn.positions_counted if what == "rank_marginals" else drawn.pairs_counted
    return drawn.shares(drawn.orders_of(source), counted)


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
    from permdist.distributions.drawn import orders_of

    if hasattr(source, "sample"):
        return np.asarray(source.sample(draws, rng))
    return orders_of(source.drawn("draws") if hasattr(source, "drawn") else source)


def estimated_from(table: Estimates) -> str:
    """Say that a table is an estimate, as a second line of a label; nothing where it is exact.

    Parameters
    ----------
    table : Estimates
    """
    if not table.draws:
        return ""
    largest = float(np.max(table.standard_error))
    error = "" if np.isnan(largest) else f", ± {largest:.2g} at most"
    return f"\nestimated from {table.draws:,} draws{error}"
