"""A consensus ranking, how much the ballots support it, and how firm it is."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng, count, frozen
from permdist._progress import tracked
from permdist._result import Result
from permdist._text import plural, text_table
from permdist.ballots import cast_ballots
from permdist.consensus.methods import BY_POSITION, answer, counted, placed_for
from permdist.inference.bootstrap import resampled

if TYPE_CHECKING:
    import pandas as pd

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.ballots import Ballots
    from permdist.consensus.majorities import Majorities

_HEADS = {"share": "above next", "margin": "margin", "kept": "kept"}


@dataclass(frozen=True, eq=False, repr=False)
class Consensus(Result):
    """One ranking that represents many. Prints as a table.

    Attributes
    ----------
    order : array of int, shape (n,)
        The items, the best first.
    names : tuple of str
        The names of the items 0, 1, ...
    method : str
    cost : float
        The weighted sum of the distances from the order to the ballots: the footrule or Spearman's
        distance for these two methods, Kendall's for all others.
    lower_bound : float
        No order has a lower cost than this; never above `cost`.
    proved : bool
        Whether no order has a lower cost. Borda's, Copeland's, ranked pairs' and Schulze's rules do
        not minimize it; for them this says that each pair of items is ordered by its majority.
    scores : array of float or None, shape (n,)
        Of the method's own kind, by item number; None for methods that minimize a distance.
    majorities : Majorities
        The weights of the ballots with one item above another, ``majorities.wins`` and ``.ties``.
    ballots : Ballots
    penalty : float
        The cost of a pair that is tied on a ballot.
    replicates : array of int or None, shape (replicates, n)
        The orders of resampled ballots, after `bootstrap`.

    Examples
    --------
    >>> from permdist import rankings
    >>> ballots = [["tea", "milk", "cola"], ["tea", "cola", "milk"], ["cola", "tea", "milk"]]
    >>> print(rankings.consensus(ballots, weights=[3, 2, 2]))
    3 items, 7 ballots; kemeny: cost 5, proved to be the lowest
    place  name  above next  margin
    1      tea         0.71       3
    2      cola        0.57       1
    3      milk
    """

    order: IntArray
    names: tuple[str, ...]
    method: str
    cost: float
    lower_bound: float
    proved: bool
    scores: FloatArray | None
    majorities: Majorities
    ballots: Ballots
    penalty: float = 0.5
    replicates: IntArray | None = None

    def __post_init__(self) -> None:
        for name in ("order", "scores", "replicates"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, frozen(value))

    def __len__(self) -> int:
        return len(self.order)

    @property
    def ranked_names(self) -> tuple[str, ...]:
        """The names of the items, the best first."""
        return tuple(self.names[item] for item in self.order)

    @property
    def ranks(self) -> IntArray:
        """The position of each item, from 0, shape (n,)."""
        return np.argsort(self.order)

    @property
    def margins(self) -> FloatArray:
        """How much more ballots put i above j than j above i, by weight, shape (n, n)."""
        return self.majorities.margins

    @property
    def kept(self) -> FloatArray | None:
        """The share of the replicates in which each item is above the next one, shape (n - 1,).

        None before `bootstrap`.
        """
        if self.replicates is None:
            return None
        places = np.argsort(self.replicates, axis=1)[:, self.order]
        shares: FloatArray = (places[:, :-1] < places[:, 1:]).mean(axis=0)
        return shares

    @property
    def caption(self) -> str:
        """What the table shows, in one line."""
        total = float(self.ballots.weights.sum())
        noun = "ballot" if total == 1.0 else "ballots"
        text = f"{plural(len(self), 'item')}, {total:,.6g} {noun}; {self.method}: "
        kind = "" if self.method in (*BY_POSITION, "kemeny") else "Kendall "
        text += f"{kind}cost {self.cost:,.10g}"
        if self.proved:
            text += ", proved to be the lowest"
        else:
            text += f", lower bound {self.lower_bound:,.10g}"
        if self.replicates is not None:
            text += f"; kept: in {plural(len(self.replicates), 'bootstrap replicate')}"
        return text

    def bootstrap(
        self,
        replicates: int = 1000,
        *,
        rng: RandomState = None,
        by: str | None = None,
        exact: bool = False,
        progress: bool = False,
    ) -> Consensus:
        """Return the consensus with rankings of resampled ballots, which tell how firm it is.

        Ballots are drawn with replacement, as many as there are (`Ballots.units`), or clusters of
        them, and ranked by the same method. Ties, which the methods break by item number, are
        broken at random here. So the share of a pair about which the ballots say nothing is one
        half, not one.

        Parameters
        ----------
        replicates : int
        rng : int, numpy.random.Generator or None
        by : {"ballot", "cluster"}, optional
            What is drawn; by default clusters if the ballots have some.
        exact : bool
            Whether Kemeny's method solves its integer program in every replicate. By default it
            uses local search in each component of the majority graph, which is much faster and
            nearly always finds the best order. The other methods are exact in any case.
        progress : bool
            Whether to show a progress bar.

        Examples
        --------
        >>> from permdist import rankings
        >>> found = rankings.consensus([[0, 1, 2], [0, 2, 1]], weights=[30, 20])
        >>> found.bootstrap(200, rng=0).kept.round(1)
        array([1. , 0.9])
        """
        from permdist._check import choice

        number, generator = count("replicates", replicates), as_rng(rng)
        ballots = cast_ballots(self.ballots)[0].merged()
        by = by or ("ballot" if ballots.clusters is None else "cluster")
        choice("by", by, ("ballot", "cluster"))
        if by == "cluster" and ballots.clusters is None:
            raise ValueError("by: the ballots have no clusters")
        placed = placed_for(ballots, self.method)
        orders = np.empty((number, len(self)), dtype=np.int64)
        numbers = range(number)
        for one in tracked(numbers, "bootstrap", number) if progress else numbers:
            weights = resampled(generator, ballots, by)
            items = generator.permutation(len(self))
            counts = counted(ballots, placed, weights).relabeled(items)
            orders[one] = items[answer(self.method, counts, self.penalty, exact=exact).order]
        return dataclasses.replace(self, replicates=orders)

    # ---- tables --------------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """Return the ranking as a data frame, the best item first.

        Returns
        -------
        DataFrame
            With the columns ``place``, ``name``, ``score`` (if the method has scores), ``share``
            (of the ballots that have both, those that put the item above the next one, a tie as
            half), ``margin`` (the weight of those that do, less those that do the opposite) and,
            after `bootstrap`, ``kept``. The last item has no next one: NaN.

        Examples
        --------
        >>> from permdist import rankings
        >>> rankings.consensus([[0, 1], [0, 1], [1, 0]], "borda").to_frame()["score"].tolist()
        [2.0, 1.0]
        """
        import pandas as pd

        above, below = self.order[:-1], self.order[1:]
        columns: dict[str, Any] = {
            "place": np.arange(1, len(self) + 1),
            "name": list(self.ranked_names),
        }
        if self.scores is not None:
            columns["score"] = self.scores[self.order]
        columns["share"] = np.append(self.majorities.shares[above, below], np.nan)
        columns["margin"] = np.append(self.margins[above, below], np.nan)
        if self.kept is not None:
            columns["kept"] = np.append(self.kept, np.nan)
        return pd.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON.

        Examples
        --------
        >>> from permdist import rankings
        >>> rankings.consensus([["b", "a"]]).to_dict()["order"]
        ['b', 'a']
        """
        return {
            "method": self.method,
            "order": list(self.ranked_names),
            "cost": self.cost,
            "lower_bound": self.lower_bound,
            "proved": self.proved,
            "ballots": float(self.ballots.weights.sum()),
            "items": self.to_frame().to_dict("records"),
        }

    def __repr__(self) -> str:
        head, rows = self._cells()
        return f"{self.caption}\n{text_table(head, rows, left=['name'])}"

    def _cells(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Return the headings and the rows as they are read by people, so many at most."""
        frame = self.to_frame().iloc[:most]
        rows = [
            [_shown(column, value) for column, value in zip(frame.columns, row, strict=True)]
            for row in frame.itertuples(index=False, name=None)
        ]
        return [_HEADS.get(column, column) for column in frame.columns], rows


def _shown(column: str, value: Any) -> str:
    if isinstance(value, float) and np.isnan(value):
        return ""
    if column in ("share", "kept"):
        return f"{value:.2f}"
    return f"{value:,.8g}" if isinstance(value, float) else str(value)
