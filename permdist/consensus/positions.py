"""Consensus rankings by how far items are from their positions on the ballots."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._parallel import rows_of

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.ballots import Ballots


class Placed(NamedTuple):
    """Which positions the ballots give to the items.

    Attributes
    ----------
    entries : array of int, shape (ballots * n,)
        ``item * (2 n - 1) + 2 * position``: a number for every item at every half position.
    ballot : array of int, shape (ballots * n,)
    n_items : int
    """

    entries: IntArray
    ballot: IntArray
    n_items: int

    def table(self, weights: FloatArray) -> FloatArray:
        """Return the weight of the ballots with item i at position k / 2, shape (n, 2 n - 1)."""
        size = self.n_items * (2 * self.n_items - 1)
        counts = np.bincount(self.entries, weights[self.ballot], size)
        return counts.reshape(self.n_items, -1).astype(np.float64)


def positions(ballots: Ballots, method: str) -> Placed:
    """Return the position of each item on each ballot.

    Tied items, and those below all that are listed, have the mean position of their bucket, as in
    `permdist.rankings.footrule`. Ballots of some of the items have no positions among all.

    Parameters
    ----------
    ballots : Ballots
    method : str
        For the message of an error.
    """
    n = ballots.n_items
    if len(ballots.ballot) != ballots.n_ballots:
        raise ValueError(
            f"method: {method!r} needs positions, and choices of the best and the worst have none; "
            "use 'kemeny'"
        )
    lengths = np.diff(ballots.ptr)
    if (lengths != n).any():
        at = int(np.argmax(lengths != n))
        raise ValueError(
            f"method: {method!r} needs ballots of all {n} items, ballot {at} has {lengths[at]}; "
            "use 'kemeny', or pass subset=False (--below on the command line) if items that are "
            "left out are below the others"
        )
    row = rows_of(ballots.stages)
    upper = np.cumsum(ballots.sizes) - ballots.sizes
    upper -= upper[ballots.stages[:-1]][row]  # the items above each bucket, on its ballot
    listed = np.bincount(row, ballots.sizes, len(lengths)).astype(np.int64)
    twice = np.empty((len(lengths), n), dtype=np.int64)
    twice[:] = (listed + n - 1)[:, None]  # for the items below all that are listed
    inside = np.arange(n) < listed[:, None]
    twice[inside] = np.repeat(2 * upper + ballots.sizes - 1, ballots.sizes)
    entries = ballots.items * (2 * n - 1) + twice.ravel()
    return Placed(entries, np.repeat(ballots.ballot, n), n)


def footrule_order(table: FloatArray) -> tuple[IntArray, float]:
    """Return the order with the smallest sum of distances to the ballots, and that sum.

    An assignment problem: item i at position k costs the distances to its positions on all ballots,
    whatever the other items do.

    Parameters
    ----------
    table : array of float, shape (n, 2 n - 1)
        As from `Placed.table`.
    """
    from scipy.optimize import linear_sum_assignment

    n = len(table)
    costs = table @ np.abs(np.arange(2 * n - 1)[:, None] / 2.0 - np.arange(n))
    items, places = linear_sum_assignment(costs)
    order = np.empty(len(costs), dtype=np.int64)
    order[places] = items
    return order, float(costs[items, places].sum())


def spearman_order(table: FloatArray) -> tuple[IntArray, float]:
    """Return the order with the smallest sum of squared distances to the ballots, and that sum.

    The assignment problem has a closed form here. With m the mean position of an item, weighted,
    the squares of its distances to position k add up to a constant plus the total weight times
    ``(k - m)^2``, and among all orders sorting by m makes these smallest. Equal means are sorted
    by item number.

    Parameters
    ----------
    table : array of float, shape (n, 2 n - 1)
        As from `Placed.table`.
    """
    n = len(table)
    totals = table @ np.arange(2 * n - 1.0)
    # Sums of weights that are equal but for rounding are ties.
    order = np.argsort(np.round(totals / max(totals.max(), 1e-300), 13), kind="stable")
    places = np.empty(n)
    places[order] = np.arange(n)
    gaps = np.arange(2 * n - 1) / 2.0 - places[:, None]
    return order, float((table * gaps**2).sum())
