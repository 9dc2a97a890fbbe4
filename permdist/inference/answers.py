"""What follows from estimated scores and the covariance of their errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from permdist.ballots.ballots import find_item
from permdist.inference.normal import check_level

if TYPE_CHECKING:
    import pandas as pd

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.ballots import Ballots
    from permdist.inference.comparisons import Difference
    from permdist.inference.leaderboard import Leaderboard
    from permdist.inference.quasi import QuasiVariances


class Answers(ABC):
    """Comparisons, places and tables of a `Fit`: how sure we are of what is true."""

    names: tuple[str, ...]
    scores: FloatArray

    @abstractmethod
    def covariance(self, kind: str = "observed") -> FloatArray:
        """Return the covariance of the scores, which add up to 0, shape (n, n)."""

    @abstractmethod
    def intervals(self, level: float = 0.95, kind: str = "observed") -> FloatArray:
        """Return an interval for each score, shape (n, 2)."""

    @property
    @abstractmethod
    def ballots(self) -> Ballots:
        """The ballots, equal ones counted together."""

    def index(self, item: int | str) -> int:
        """Return the number of an item that is given by number or name."""
        return find_item(item, self.names)

    def compare(
        self, first: int | str, second: int | str, *, level: float = 0.95, kind: str = "observed"
    ) -> Difference:
        """Compare two items: the difference of their scores, its error and a p-value.

        Parameters
        ----------
        first, second : int or str
        level : float
            Of the interval.
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
        """
        from permdist.inference.comparisons import compare

        pair = self.index(first), self.index(second)
        return compare(self.scores, self.covariance(kind), *pair, level=check_level(level))

    def comparisons(
        self, *, level: float = 0.95, kind: str = "observed", adjust: str = "max-t"
    ) -> pd.DataFrame:
        """Compare all pairs at once.

        Parameters
        ----------
        level : float
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
        adjust : {"max-t", "holm", "bonferroni", "none"}
            How p-values and intervals account for the number of pairs.
        """
        from permdist.inference.comparisons import all_pairs

        return all_pairs(
            self.scores, self.covariance(kind), self.names, level=check_level(level), adjust=adjust
        )

    def quasi_variances(self, kind: str = "observed") -> QuasiVariances:
        """Return variances that give the errors of all differences as if scores were independent.

        Parameters
        ----------
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
        """
        from permdist.inference.quasi import quasi_variances

        return quasi_variances(self.covariance(kind))

    def rank_sets(self, level: float = 0.95, kind: str = "observed") -> IntArray:
        """Return the best and the worst true place that each item can have, shape (n, 2).

        Parameters
        ----------
        level : float
            All sets together hold the true places with this probability.
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
        """
        from permdist.inference.ranks import rank_sets

        return rank_sets(self.scores, self.covariance(kind), level=check_level(level))

    def prob_above(self, first: int | str, second: int | str, kind: str = "observed") -> float:
        """Return how sure we are that one item's true score is above another's.

        This is not the chance that it is ranked above in one future ranking (`pairwise`).

        Parameters
        ----------
        first, second : int or str
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
        """
        from permdist.inference.ranks import prob_above

        i, j = self.index(first), self.index(second)
        return float(prob_above(self.scores, self.covariance(kind))[i, j])

    def prob_best(self, kind: str = "observed", *, rng: RandomState = 0) -> FloatArray:
        """Return how sure we are that each item's true score is the highest, shape (n,).

        This is not the chance to be first in one future ranking (`rank_marginals`).

        Parameters
        ----------
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
        rng : int, Generator or None
        """
        from permdist.inference.ranks import prob_best

        return prob_best(self.scores, self.covariance(kind), rng=rng)

    def leaderboard(
        self,
        level: float = 0.95,
        kind: str = "observed",
        *,
        elo: bool = False,
        anchor: int | str | None = None,
    ) -> Leaderboard:
        """Return a table of places, scores, intervals and rank sets.

        Parameters
        ----------
        level : float
        kind : {"observed", "penalized", "sandwich", "bootstrap"}
        elo : bool
            Whether to show scores as Elo ratings, 400 for a tenfold worth.
        anchor : int or str, optional
            The item that has 1000 Elo points; the mean of all by default.
        """
        from permdist.inference.leaderboard import make

        return make(
            self.names,
            self.scores,
            self.covariance(kind),
            level=check_level(level),
            counts=self.ballots.counts()[: len(self.names)],
            elo=elo,
            anchor=None if anchor is None else self.names[self.index(anchor)],
            intervals=self.intervals(level, kind),
            kind=kind,
        )
