"""Posterior predictive checks for rankings: what the model would have made of the data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng, choice
from permdist._result import Result
from permdist._text import plural, text_table, visible
from permdist.ballots import Ballots
from permdist.consensus import count_pairs

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from matplotlib.axes import Axes

    from permdist._typing import FloatArray, RandomState
    from permdist.posterior.problem import Problem
    from permdist.posterior.result import Posterior

MOST_PRINTED = 20


@dataclass(frozen=True, eq=False, repr=False)
class Check(Result):
    """A statistic of the data beside that of replicated data.

    A p-value is the probability, over the posterior, that replicated data are as far out as the
    data are. As the same data were used twice, p-values of a true model are closer to one half
    than uniform ones: small ones speak against the model, and others do not speak for it.

    Attributes
    ----------
    statistic : str
        Its name.
    observed : array of float, shape (k,)
    replicated : array of float, shape (draws, k)
    labels : tuple of str
        What the k numbers belong to.
    level : float
        Of the intervals.
    """

    statistic: str
    observed: FloatArray
    replicated: FloatArray
    labels: tuple[str, ...]
    level: float

    @property
    def p_values(self) -> FloatArray:
        """Two-sided posterior predictive p-values, shape (k,).

        Twice the smaller of the shares of replicates on either side, equal ones on both, with the
        data counted as one more replicate, so that none is 0.
        """
        above = (self.replicated >= self.observed).sum(axis=0)
        below = (self.replicated <= self.observed).sum(axis=0)
        tail = np.minimum(above, below)
        return np.minimum(1.0, 2.0 * (tail + 1.0) / (len(self.replicated) + 1.0))

    @property
    def caption(self) -> str:
        """What was checked, and how many numbers are out of the ordinary."""
        frame = self.to_frame()
        if len(frame) == 1:
            return f"Check of {self.statistic}: p = {frame['p_value'].iloc[0]:.3g}"
        outside = int((~frame["inside"]).sum())
        usual = (1.0 - self.level) * len(frame)
        return (
            f"Check of {self.statistic}: {outside} of {plural(len(frame), 'number')} outside "
            f"their {100.0 * self.level:g}% intervals (about {usual:.3g} would be usual)"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the check as a data frame.

        Returns
        -------
        DataFrame
            A row per number: ``observed``, ``mean``, ``low`` and ``high`` of the replicates,
            ``p_value``, and ``inside``, whether the data are inside the interval.
        """
        import pandas as pd

        tails = [0.5 - 0.5 * self.level, 0.5 + 0.5 * self.level]
        low, high = np.quantile(self.replicated, tails, axis=0)
        columns = {
            "observed": self.observed,
            "mean": self.replicated.mean(axis=0),
            "low": low,
            "high": high,
            "p_value": self.p_values,
            "inside": (self.observed >= low) & (self.observed <= high),
        }
        return pd.DataFrame(columns, index=pd.Index(self.labels, name=self.statistic))

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the data against the replicates.

        Parameters
        ----------
        ax : Axes, optional
        """
        from permdist import plots

        return plots.plot_check(self, ax=ax)

    def __repr__(self) -> str:
        return f"Check({self.caption})"

    def __str__(self) -> str:
        head, rows = self._cells(MOST_PRINTED)
        more = len(self.labels) - len(rows)
        rest = f"\n... and {more:,} more, in to_frame()" if more > 0 else ""
        return visible(f"{self.caption}\n{text_table(head, rows)}{rest}")


def check(
    posterior: Posterior,
    statistic: str | Callable[[Any], Any],
    draws: int,
    level: float,
    rng: RandomState,
) -> Check:
    """Compute a statistic of the data and of replicated data.

    Parameters
    ----------
    posterior : Posterior
    statistic : str or callable
    draws : int
    level : float
    rng : int, Generator or None
    """
    problem, generator = posterior.problem, as_rng(rng)
    if callable(statistic):
        function, name = statistic, getattr(statistic, "__name__", "statistic")
    else:
        name = choice("statistic", statistic, STATISTICS)
        function = STATISTICS[name]
    data = data_of(problem)
    observed = _values(function, data, name)
    rows = [
        _values(function, problem.replicate(draw, generator), name)
        for draw in posterior.some(draws)
    ]
    replicated = np.array(rows)
    if replicated.shape[1:] != observed.shape:
        raise ValueError(
            f"statistic: expected the same shape for data and replicates, got {observed.shape} "
            f"and {replicated.shape[1:]}"
        )
    # What no data set can tell, such as the win rate of a pair that no ballot has, is left out.
    told = np.isfinite(observed) & np.isfinite(replicated).all(axis=0)
    if not told.any():
        raise ValueError(f"statistic: {name} is not a finite number for these data")
    labels = np.array(_labels(problem, name, observed.shape, posterior.names), dtype=object)
    return Check(name, observed[told], replicated[:, told], tuple(labels[told]), level)


def data_of(problem: Problem) -> Any:
    """Return the data in the form in which `Problem.replicate` makes them.

    Parameters
    ----------
    problem : Problem
    """
    for name in ("data", "ballots"):
        found = getattr(problem, name, None)
        if found is not None:
            return found
    observed = problem.observed
    if len(observed) == 1:
        ((_, values),) = observed.values()
        return np.asarray(values)
    if not observed:
        raise ValueError("check: this posterior has no data to check; it is that of a prior alone")
    return {name: np.asarray(values) for name, (_, values) in observed.items()}


def _values(function: Callable[[Any], Any], data: Any, name: str) -> FloatArray:
    try:
        found = np.asarray(function(data), dtype=np.float64)
    except (TypeError, ValueError) as error:
        if name in STATISTICS and not isinstance(data, Ballots):
            raise TypeError(
                f"statistic: {name!r} is for ballots, and these data are none "
                f"({type(data).__name__}); pass a function of such data"
            ) from error
        raise
    return found.ravel()


def _labels(
    problem: Problem, name: str, shape: tuple[int, ...], names: tuple[str, ...]
) -> list[str]:
    if name in ("wins", "top"):
        labels = list(names)
        if name == "wins":
            labels = [f"{one} over {two}" for one, two in combinations(names, 2)]
        if len(labels) != shape[0]:
            raise ValueError(
                f"coords: expected 'item', the names of all items, for a check of {name!r}, got "
                f"{len(names)} names in {type(problem).__name__}.coords; with from_functions, "
                "pass items="
            )
        return labels
    return [name] if shape == (1,) else [f"{name}[{k}]" for k in range(shape[0])]


# ---- statistics of ballots -----------------------------------------------------------------------


def distance_to_consensus(data: Any) -> float:
    """Return the mean distance of ballots to their consensus, as a share of pairs.

    The share of the ordered pairs on ballots that contradict the order by Borda's count of the
    same ballots; tied pairs are left out.

    Parameters
    ----------
    data : ballots of any kind that `Ballots.of` takes

    Examples
    --------
    >>> float(distance_to_consensus([[0, 1, 2], [0, 1, 2], [0, 2, 1]]))
    0.1111111111111111
    """
    pairs = count_pairs(Ballots.of(data))
    met = pairs.wins + pairs.wins.T + pairs.ties
    rate = np.divide((pairs.wins - pairs.wins.T).sum(axis=1), np.maximum(met.sum(axis=1), 1e-300))
    order = np.argsort(-rate, kind="stable")
    total = pairs.wins.sum()
    against = np.tril(pairs.wins[np.ix_(order, order)], -1).sum()
    return float(against / total) if total else np.nan


def win_rates(data: Any) -> FloatArray:
    """Return the share of ballots that put i above j, a tie as half, for each pair i < j.

    Parameters
    ----------
    data : ballots of any kind that `Ballots.of` takes

    Returns
    -------
    array of float, shape (n (n - 1) / 2,)
        NaN for pairs that share no ballot.

    Examples
    --------
    >>> win_rates([[0, 1, 2], [0, 1, 2], [0, 2, 1], [1, 0, 2]])
    array([0.75, 1.  , 0.75])
    """
    shares = count_pairs(Ballots.of(data)).shares
    return shares[np.triu_indices(len(shares), 1)]


def top_shares(data: Any) -> FloatArray:
    """Return the share of ballots that each item heads; items that share the top share it.

    Parameters
    ----------
    data : ballots of any kind that `Ballots.of` takes

    Examples
    --------
    >>> top_shares([[0, 1, 2], [0, 1, 2], [0, 2, 1], [1, 0, 2]])
    array([0.75, 0.25, 0.  ])
    """
    ballots = Ballots.of(data)
    best = ballots.signs > 0
    first = ballots.stages[:-1][best]
    sizes = ballots.sizes[first]
    weights = ballots.record_weights[best]
    begins = ballots.ptr[:-1][best]
    owner = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    heads = ballots.items[begins[owner] + within]
    counts = np.bincount(heads, (weights / sizes)[owner], ballots.n_items)
    return counts / weights.sum()


def tied_share(data: Any) -> float:
    """Return the share of pairs on ballots that are tied.

    Parameters
    ----------
    data : ballots of any kind that `Ballots.of` takes

    Examples
    --------
    >>> round(tied_share([[0, 1], [[0, 1]], [1, 0]]), 3)
    0.333
    """
    pairs = count_pairs(Ballots.of(data))
    tied = 0.5 * pairs.ties.sum()
    total = tied + pairs.wins.sum()
    return float(tied / total) if total else np.nan


STATISTICS: dict[str, Callable[[Any], Any]] = {
    "distance": distance_to_consensus,
    "wins": win_rates,
    "top": top_shares,
    "ties": tied_share,
}
