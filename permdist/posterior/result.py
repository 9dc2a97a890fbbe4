"""The draws of a posterior, and what they say: estimates, places, predictions, evidence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._check import as_rng, count
from permdist._result import Result, frame_cells
from permdist._text import plural
from permdist.inference.normal import check_level
from permdist.posterior import places
from permdist.posterior.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import pandas as pd
    import xarray
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.distributions import Distribution
    from permdist.inference.leaderboard import Leaderboard
    from permdist.measures import Measure
    from permdist.posterior.checks import Check
    from permdist.posterior.diagnose import PosteriorSummary
    from permdist.posterior.evidence import Evidence
    from permdist.posterior.exact import ExactPosterior
    from permdist.posterior.expectations import Expected

LEVEL = 0.95
MODELS = 200


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Result):
    """Draws from the posterior of a model's parameters; what `sample` returns.

    Notebooks show the estimates with their diagnostics, as `summary` does.

    Parameters
    ----------
    problem : Problem
        What was sampled; it knows the meaning of a draw.
    draws : array of float, shape (chain, draw, size)
    log_density : array of float, shape (chain, draw)
        The logarithm of prior times likelihood at each draw.
    seconds : float
        How long it took.
    tune : int
        The transitions before the first draw that was kept, per chain.
    complete : bool
        False if the run was interrupted.
    """

    problem: Problem
    draws: FloatArray
    log_density: FloatArray
    seconds: float = 0.0
    tune: int = 0
    complete: bool = True
    _most_rows: ClassVar[int] = 40

    def __post_init__(self) -> None:
        if not isinstance(self.problem, Problem):
            raise TypeError(f"problem: expected a Problem, got {type(self.problem).__name__}")
        draws = np.ascontiguousarray(self.draws, dtype=np.float64)
        density = np.ascontiguousarray(self.log_density, dtype=np.float64)
        if draws.ndim != 3 or draws.shape[2] != self.problem.size or not draws.size:
            raise ValueError(
                f"draws: expected shape (chains, draws, {self.problem.size}), got {draws.shape}"
            )
        if density.shape != draws.shape[:2]:
            raise ValueError(f"log_density: expected {draws.shape[:2]}, got {density.shape}")
        for name, array in (("draws", draws), ("log_density", density)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    # ---- what there is -----------------------------------------------------------------------

    @property
    def n_chains(self) -> int:
        """The number of chains."""
        return int(self.draws.shape[0])

    @property
    def n_draws(self) -> int:
        """The number of draws per chain."""
        return int(self.draws.shape[1])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the items; empty where the problem has none."""
        return tuple(map(str, self.problem.coords.get("item", ())))

    @property
    def flat(self) -> FloatArray:
        """The draws of all chains one after the other, shape (chains * draws, size)."""
        return self.draws.reshape(-1, self.draws.shape[2])

    def some(self, size: int) -> FloatArray:
        """Return draws at equal distances over all chains, shape (size, self.problem.size).

        Parameters
        ----------
        size : int
            All draws if there are not more.
        """
        flat = self.flat
        chosen = min(count("size", size), len(flat))
        return flat[(np.arange(chosen) * len(flat)) // chosen]

    def __getitem__(self, name: str) -> FloatArray:
        """Return the draws of a variable, shape (chain, draw, ...)."""
        parts = self.problem.split(self.draws)
        if name not in parts:
            raise KeyError(f"expected one of {', '.join(parts)}, got {name!r}")
        return parts[name]

    # ---- datasets ----------------------------------------------------------------------------

    @cached_property
    def dataset(self) -> xarray.Dataset:
        """The draws as an `xarray.Dataset` with the dimensions chain and draw, and names."""
        from permdist.posterior.groups import attributes, dataset_of

        return dataset_of(self.problem, self.draws, attributes(self))

    def to_arviz(
        self,
        groups: Iterable[str] | None = None,
        *,
        predictive: int = 100,
        rng: RandomState = 0,
    ) -> Any:
        """Return the draws and what belongs to them for arviz.

        Parameters
        ----------
        groups : iterable of str, optional
            Of ``posterior``, ``sample_stats``, ``prior``, ``log_likelihood``,
            ``posterior_predictive``, ``prior_predictive`` and ``observed_data``; by default all
            that the problem has: an improper prior has no draws, a prior alone no data.
        predictive : int
            How many sets of data are replicated, from draws at equal distances.
        rng : int, Generator or None
            For the prior and the replicated data.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            The latter from arviz 1.0 on.
        """
        from permdist.diagnostics.exchange import to_arviz
        from permdist.posterior.groups import groups_of

        return to_arviz(groups_of(self, groups, predictive, rng))

    def log_likelihood(self) -> FloatArray:
        """Return the log-likelihood of each observation, shape (chain, draw, observation)."""
        found = self.problem.log_likelihood(self.flat)
        return found.reshape(*self.draws.shape[:2], found.shape[1])

    # ---- estimates ---------------------------------------------------------------------------

    def summary(self, level: float = LEVEL) -> PosteriorSummary:
        """Return estimates with intervals and diagnostics by arviz, and a verdict in words.

        Parameters
        ----------
        level : float
            Of the intervals, which leave out as much on either side.
        """
        from permdist.posterior.diagnose import summarize

        return summarize(self, check_level(level))

    @cached_property
    def _summary(self) -> PosteriorSummary:
        return self.summary()

    @property
    def verdict(self) -> str:
        """Whether the chains agree, in words; as in `summary`."""
        return self._summary.verdict

    @property
    def converged(self) -> bool:
        """Whether the chains agree and there are enough effective draws; as in `summary`."""
        return self._summary.converged

    @property
    def caption(self) -> str:
        """What was sampled."""
        size = f"{plural(self.n_chains, 'chain')} of {plural(self.n_draws, 'draw')}"
        return f"Posterior of {self.problem.family}, {size}"

    def to_frame(self) -> pd.DataFrame:
        """Return the table of `summary` as a data frame."""
        return self._summary.to_frame()

    def _facts(self) -> dict[str, Any]:
        return {"parameters": self.problem.size, "seconds": round(self.seconds, 2)}

    def _cells(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        frame = self.to_frame().iloc[:most]
        return frame_cells(frame if frame["note"].any() else frame.drop(columns="note"))

    def _remarks(self) -> list[str]:
        return [self.verdict]

    def __repr__(self) -> str:
        return f"Posterior({self.problem.family}, {self.n_chains} x {self.n_draws} draws)"

    def __str__(self) -> str:
        return f"{self.caption}\n{self._summary}"

    # ---- places ------------------------------------------------------------------------------

    @cached_property
    def ranks(self) -> IntArray:
        """The rank of every item in every draw, 0 at the top, shape (chain, draw, n)."""
        ranks = places.ranks_of(self.problem, self.flat)
        return ranks.reshape(*self.draws.shape[:2], ranks.shape[1])

    @property
    def _flat_ranks(self) -> IntArray:
        return self.ranks.reshape(-1, self.ranks.shape[2])

    def rank_probabilities(self) -> pd.DataFrame:
        """Return the probability that each item has each true place.

        How sure the posterior is of the order of the scores (or of the center). The places in one
        future ranking are another matter: ``Distribution.rank_marginals`` of `models`.

        Returns
        -------
        DataFrame
            A row per item, a column per place, 1 at the top.
        """
        import pandas as pd

        shares = places.place_shares(self._flat_ranks)
        columns = pd.RangeIndex(1, len(shares) + 1, name="place")
        return pd.DataFrame(shares, index=pd.Index(self.names, name="item"), columns=columns)

    def pairwise(self) -> pd.DataFrame:
        """Return the probability that the item of the row is truly above that of the column.

        Returns
        -------
        DataFrame
            NaN on the diagonal.
        """
        import pandas as pd

        shares = places.pair_shares(self._flat_ranks)
        np.fill_diagonal(shares, np.nan)
        index = pd.Index(self.names, name="item")
        return pd.DataFrame(shares, index=index, columns=self.names)

    def best(self, top: int = 1) -> pd.DataFrame:
        """Return the probability that each item is truly the best one, the likeliest first.

        Parameters
        ----------
        top : int
            Of the best `top` items, instead.

        Returns
        -------
        DataFrame
            With the columns ``probability`` and ``mcse``, its Monte Carlo standard error: 0 where
            all draws agree.
        """
        import pandas as pd

        from permdist.diagnostics.summary import diagnose

        inside = (self.ranks < count("top", top)).astype(np.float64)
        error = np.nan_to_num(np.asarray(diagnose(inside)["mcse"]))
        table = {"probability": inside.mean(axis=(0, 1)), "mcse": error}
        frame = pd.DataFrame(table, index=pd.Index(self.names, name="item"))
        return frame.sort_values("probability", ascending=False, kind="stable")

    def rank_sets(self, level: float = LEVEL, *, simultaneous: bool = True) -> pd.DataFrame:
        """Return credible sets of places.

        Parameters
        ----------
        level : float
        simultaneous : bool
            Whether all sets together hold the true places with this probability; otherwise each
            does by itself.

        Returns
        -------
        DataFrame
            The columns ``first`` and ``last``: places from 1 at the top.
        """
        import pandas as pd

        found = places.simultaneous_sets if simultaneous else places.interval_sets
        sets = found(self._flat_ranks, check_level(level))
        index = pd.Index(self.names, name="item")
        return pd.DataFrame(sets, index=index, columns=["first", "last"])

    def leaderboard(
        self, level: float = LEVEL, *, elo: bool = False, anchor: int | str | None = None
    ) -> Leaderboard:
        """Return a table of posterior means, credible intervals, places and chances to be best.

        Parameters
        ----------
        level : float
            Of the intervals, each by itself, and of the sets of places, all at once.
        elo : bool
            Whether to show scores as Elo ratings, too: 400 for a tenfold worth.
        anchor : int or str, optional
            The item that has 1000 Elo points; the mean of all by default.
        """
        from permdist.posterior.boards import leaderboard_of

        return leaderboard_of(self, check_level(level), elo, anchor)

    # ---- models and predictions --------------------------------------------------------------

    def models(self, size: int = MODELS, rng: RandomState = None) -> list[Distribution]:
        """Return the distribution over rankings of some draws.

        Parameters
        ----------
        size : int
        rng : int, Generator or None
            For draws at random, with replacement; by default they are at equal distances.
        """
        chosen = count("size", size)
        flat = self.flat
        draws = (
            self.some(chosen) if rng is None else flat[as_rng(rng).integers(len(flat), size=chosen)]
        )
        found = []
        for draw in draws:
            model = self.problem.model(draw)
            if model is None:
                raise ValueError(
                    f"a posterior of {self.problem.family} has no single distribution over "
                    "rankings per draw: it depends on the query or the ballot; use its draws"
                )
            found.append(model)
        return found

    def expect(
        self,
        measure: str | Measure,
        labels: ArrayLike,
        *,
        size: int = MODELS,
        level: float = LEVEL,
        rng: RandomState = 0,
    ) -> Expected:
        """Return the posterior of the expected value of a measure.

        Parameters
        ----------
        measure : Measure or str
        labels : array of int, shape (n,)
            Relevance labels of the items.
        size : int
            From how many draws, at equal distances.
        level : float
            Of the interval.
        rng : int, Generator or None
            For expectations that are not exact.
        """
        from permdist.posterior.expectations import expectation

        return expectation(self, measure, labels, size, check_level(level), rng)

    def check(
        self,
        statistic: str | Callable[[Any], Any] = "distance",
        *,
        draws: int = 200,
        level: float = LEVEL,
        rng: RandomState = 0,
    ) -> Check:
        """Compare the data with data that the model makes: a posterior predictive check.

        Parameters
        ----------
        statistic : {"distance", "wins", "top", "ties"} or callable
            ``"distance"``: the mean distance of the ballots to their consensus, as a share of the
            pairs that each orders; ``"wins"``: the win rate of each pair; ``"top"``: the share of
            ballots that each item heads; ``"ties"``: the share of pairs that are tied. A function
            takes data as `Problem.replicate` makes them and returns a number or an array of a
            fixed shape.
        draws : int
            How many sets of data are replicated.
        level : float
            Of the intervals of the replicates.
        rng : int, Generator or None
        """
        from permdist.posterior.checks import check

        return check(self, statistic, count("draws", draws, minimum=2), check_level(level), rng)

    # ---- comparing models --------------------------------------------------------------------

    def loo(self, **options: Any) -> Any:
        """Return arviz's estimate of the predictive accuracy by leaving out each observation.

        Of a ballot that was cast w times, one is left out at a time; weights that are no whole
        numbers are refused. The log-likelihoods of `to_arviz` are those of all w together.

        Parameters
        ----------
        **options
            Passed to ``arviz.loo``.
        """
        from permdist.posterior.comparing import loo

        return loo(self, **options)

    def log_evidence(self, *, rng: RandomState = 0) -> Evidence:
        """Return the logarithm of the marginal likelihood, by bridge sampling.

        Parameters
        ----------
        rng : int, Generator or None
        """
        from permdist.posterior.evidence import bridge

        return bridge(self, rng)

    def exact(self) -> ExactPosterior:
        """Return the exact posterior of a small model, to put beside the draws."""
        from permdist.posterior.exact import exact

        return exact(self.problem)

    # ---- pictures ----------------------------------------------------------------------------

    def plot_scores(self, level: float = LEVEL, *, ax: Axes | None = None) -> Axes:
        """Draw the scores with their intervals, and the places that they may have.

        Parameters
        ----------
        level : float
        ax : Axes, optional
        """
        from permdist import plots

        axes = plots.plot_intervals(self.leaderboard(level), ax=ax)
        axes.set_xlabel(f"score (log-worth), with {100.0 * level:g}% credible intervals")
        return axes

    def plot_variable(
        self, name: str | None = None, level: float = LEVEL, *, ax: Axes | None = None
    ) -> Axes:
        """Draw the medians of a variable with intervals, 50% of the probability in bold.

        Parameters
        ----------
        name : str, optional
            The first variable by default.
        level : float
            Of the wider interval.
        ax : Axes, optional
        """
        from permdist import plots
        from permdist.posterior.diagnose import labels_of

        labels = labels_of(self.problem)
        begin = 0
        for variable in self.problem.variables:
            if name in (None, variable.name):
                rows = slice(begin, begin + variable.size)
                return plots.plot_forest(
                    self.flat[:, rows], labels[rows], level=check_level(level), ax=ax
                )
            begin += variable.size
        options = ", ".join(one.name for one in self.problem.variables)
        raise ValueError(f"name: expected one of {options}, got {name!r}")

    def plot_rank_probabilities(self, *, most: int = 40, ax: Axes | None = None) -> Axes:
        """Draw how sure each item's true place is, as a map, the best item at the top.

        Parameters
        ----------
        most : int
            The number of items to draw, the best ones.
        ax : Axes, optional
        """
        from permdist import plots

        return plots.plot_rank_probabilities(self.rank_probabilities(), most=most, ax=ax)

    # ---- files -------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the draws to a netCDF file, which xarray, arviz and many other tools read.

        Parameters
        ----------
        path : path

        See Also
        --------
        permdist.posterior.load : Read it again.
        """
        from permdist.posterior.files import save

        save(self, path)
