"""How many ballots put one item above another, for all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from permdist._check import frozen
from permdist._kernels import kernel
from permdist._result import Result

if TYPE_CHECKING:
    import pandas as pd

    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.ballots import Ballots

# Sums of weights that differ by less than this share of their total are equal but for rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Majorities(Result):
    """The weights of the ballots that put one item above another, or tie them.

    Attributes
    ----------
    wins : array of float, shape (n, n)
        ``wins[i, j]``: the weight of the ballots that put i above j.
    ties : array of float, shape (n, n)
        The weight of the ballots on which both are, without an order; symmetric.
    """

    wins: FloatArray
    ties: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "wins", frozen(self.wins))
        object.__setattr__(self, "ties", frozen(self.ties))

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.wins)

    @property
    def margins(self) -> FloatArray:
        """``wins - wins.T``, with exact zeros where only rounding is left."""
        margins = self.wins - self.wins.T
        margins[np.abs(margins) <= ROUNDING * (self.wins + self.wins.T)] = 0.0
        return margins

    @property
    def shares(self) -> FloatArray:
        """The share of the ballots with both items that put i above j, a tie as half.

        NaN where no ballot has both, and on the diagonal.
        """
        both = self.wins + self.wins.T + self.ties
        with np.errstate(invalid="ignore"):
            shares: FloatArray = (self.wins + self.ties / 2.0) / both
        np.fill_diagonal(shares, np.nan)
        return shares

    def to_frame(self) -> pd.DataFrame:
        """Return the majorities as a data frame, a row per pair of items.

        Returns
        -------
        DataFrame
            With the columns ``first`` and ``second`` (item numbers), ``wins`` (of the first),
            ``losses``, ``ties`` and ``share`` (of wins, a tie as half; NaN where no ballot has
            both).
        """
        import pandas as pd

        first, second = np.triu_indices(self.n_items, 1)
        columns = {
            "first": first,
            "second": second,
            "wins": self.wins[first, second],
            "losses": self.wins[second, first],
            "ties": self.ties[first, second],
            "share": self.shares[first, second],
        }
        return pd.DataFrame(columns)

    def cost(self, order: IntArray, penalty: float) -> float:
        """Return the weighted sum of the Kendall distances of an order to the ballots."""
        against = self.wins[np.ix_(order, order)]
        return float(np.tril(against, -1).sum()) + self.tied_cost(penalty)

    def bound(self, penalty: float) -> float:
        """Return the cost of all pairs in the order of their majority: a bound for any order."""
        lower = np.triu(np.minimum(self.wins, self.wins.T), 1).sum()
        return float(lower) + self.tied_cost(penalty)

    def tied_cost(self, penalty: float) -> float:
        """Return what ties cost, which is the same for every order."""
        return float(penalty * np.triu(self.ties, 1).sum())

    def relabeled(self, items: IntArray) -> Majorities:
        """Return the majorities of items that are numbered in another way."""
        chosen = np.ix_(items, items)
        return Majorities(self.wins[chosen], self.ties[chosen])


def count_pairs(ballots: Ballots, weights: FloatArray | None = None) -> Majorities:
    """Count how often each item is above each other one.

    A pair in one bucket is a tie, and so are two items that are both below all that a ballot lists.
    Items that are not on a ballot have no part in it. Of a choice of the best and the worst, all
    others of the menu are tied between them.

    Parameters
    ----------
    ballots : Ballots
    weights : array of float, shape (ballots,), optional
        Instead of those of the ballots.

    Examples
    --------
    >>> from permdist import Ballots
    >>> count_pairs(Ballots.of([[0, 1, 2], [[1, 2], 0], [2, 0, 1]])).wins
    array([[0., 2., 1.],
           [1., 0., 1.],
           [2., 1., 0.]])
    """
    n = ballots.n_items
    wins, ties = np.zeros((n, n)), np.zeros((n, n))
    last = np.append(ballots.ballot[1:] != ballots.ballot[:-1], True)
    chosen = ballots.weights if weights is None else weights
    _count(
        ballots.items,
        ballots.ptr,
        ballots.sizes,
        ballots.stages,
        ballots.signs > 0.0,
        last,
        chosen[ballots.ballot],
        wins,
        ties,
    )
    return Majorities(wins, ties + ties.T)


@kernel
def _count(
    items: IntArray,
    ptr: IntArray,
    sizes: IntArray,
    stages: IntArray,
    upright: BoolArray,
    last: BoolArray,
    weights: FloatArray,
    wins: FloatArray,
    ties: FloatArray,
) -> None:
    """Add up all pairs of all records; `last` says whether a record ends its ballot."""
    for row in range(len(ptr) - 1):
        weight = weights[row]
        if weight == 0.0:
            continue
        end = ptr[row + 1]
        start = ptr[row]
        for stage in range(stages[row], stages[row + 1]):
            below = start + sizes[stage]
            for a in range(start, below):
                one = items[a]
                for b in range(a + 1, below):
                    ties[one, items[b]] += weight
                if upright[row]:
                    for b in range(below, end):
                        wins[one, items[b]] += weight
                else:
                    for b in range(below, end):
                        wins[items[b], one] += weight
            start = below
        if last[row]:
            for a in range(start, end):
                for b in range(a + 1, end):
                    ties[items[a], items[b]] += weight
