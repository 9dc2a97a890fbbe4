"""Simulation-based calibration: checks that draws come from the posterior they claim to.

Parameters are drawn from the prior, data from the model, and draws from the posterior given these
data. If everything is right, the parameters are one more draw from that posterior: the rank of any
number computed from them, among those of the draws, is uniform.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import chi2

from permdist._check import as_rng, count
from permdist._result import Result, frame_cells
from permdist._text import plural, text_table, visible
from permdist.posterior.diagnose import labels_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.posterior.problem import Problem

MOST_PRINTED = 20
# The p-value, corrected for the number of quantities, below which something is wrong.
WRONG = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Result):
    """The ranks of true values among posterior draws. Prints as a table with a verdict.

    Parameters
    ----------
    ranks : array of int, shape (replications, quantities)
        How many of the draws are below the truth, from 0 to `draws`.
    draws : int
        The number of draws that each truth is compared with.
    names : tuple of str
        The names of the quantities.
    """

    ranks: IntArray
    draws: int
    names: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Whether the ranks are uniform, in words, at a level of 1% for all quantities together."""
        bins = self._usual_bins
        if not bins:
            return (
                f"{plural(len(self.ranks), 'replication')} of {plural(self.draws, 'draw')}: no "
                "verdict; take at least 10 replications, and a number of draws such as 31, so that "
                "draws + 1 has divisors."
            )
        name, value = self.worst(bins)
        number = plural(len(self.names), "quantity", "quantities")
        told = f"the smallest p-value is that of {name}, {value:.2g}, adjusted for {number}"
        if value < WRONG:
            return f"Not calibrated: {told}. The sampler, the prior or the simulation is wrong."
        return f"No sign of errors in {plural(len(self.ranks), 'replication')}: {told}."

    @property
    def caption(self) -> str:
        """What was compared."""
        size = f"{plural(len(self.ranks), 'replication')} of {plural(self.draws, 'draw')}"
        return f"Simulation-based calibration, {size}"

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row per quantity.

        Returns
        -------
        DataFrame
            The mean of the ranks as a share of the draws, 0.5 if all is right, its ``z`` (a
            truth that is mostly above the draws has a high one), and the ``p_value`` of a uniform
            histogram, NaN with too few replications.
        """
        import pandas as pd

        shares = (self.ranks + 0.5) / (self.draws + 1.0)
        number = self.draws + 1.0
        error = np.sqrt((1.0 - 1.0 / number**2) / 12.0 / len(self.ranks))
        bins = self._usual_bins
        values = self.p_values(bins) if bins else np.full(len(self.names), np.nan)
        mean = shares.mean(axis=0)
        return pd.DataFrame(
            {"mean": mean, "z": (mean - 0.5) / error, "p_value": values},
            index=pd.Index(self.names, name="quantity"),
        )

    @property
    def _usual_bins(self) -> int:
        """The most bins, up to 16, for which there are p-values; 0 if there are none."""
        most = min(16, len(self.ranks) // 5)
        fitting = [bins for bins in range(2, most + 1) if (self.draws + 1) % bins == 0]
        return max(fitting, default=0)

    def _cells(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        return frame_cells(self.to_frame().iloc[:most])

    def _remarks(self) -> list[str]:
        return [self.verdict]

    def __repr__(self) -> str:
        return f"Calibration({len(self.names)} quantities, {len(self.ranks)} replications)"

    def __str__(self) -> str:
        head, rows = self._cells(MOST_PRINTED)
        more = len(self.names) - len(rows)
        rest = f"\n... and {more:,} more, in to_frame()" if more > 0 else ""
        return visible(f"{self.caption}\n{text_table(head, rows)}{rest}\n{self.verdict}")

    def histogram(self, bins: int = 16) -> IntArray:
        """Return how many ranks fall into each of equal ranges, shape (quantities, bins).

        Parameters
        ----------
        bins : int
            A divisor of ``draws + 1``.
        """
        bins = count("bins", bins, minimum=2)
        if (self.draws + 1) % bins:
            raise ValueError(f"bins: expected a divisor of {self.draws + 1}, got {bins}")
        place = self.ranks * bins // (self.draws + 1)
        return np.stack([np.bincount(column, minlength=bins) for column in place.T])

    def p_values(self, bins: int = 16) -> FloatArray:
        """Return the p-value of each quantity: chi-square for flat histograms.

        Parameters
        ----------
        bins : int
            As of `histogram`; five replications or more per bin are needed.
        """
        table = self.histogram(bins)
        expected = len(self.ranks) / bins
        if expected < 5.0:
            raise ValueError(
                f"bins: expected at most {len(self.ranks) // 5} for {len(self.ranks)} "
                f"replications, got {bins}"
            )
        return np.asarray(chi2.sf(((table - expected) ** 2 / expected).sum(axis=1), bins - 1))

    def worst(self, bins: int = 16) -> tuple[str, float]:
        """Return the quantity with the smallest p-value, and that times their number (at most 1).

        Parameters
        ----------
        bins : int
            As of `p_values`.
        """
        values = self.p_values(bins)
        at = int(np.argmin(values))
        return self.names[at], min(1.0, float(values[at]) * len(values))


def simulation_based_calibration(
    make_problem: Callable[[Any], Problem],
    data: Any,
    *,
    replications: int = 320,
    draws: int = 31,
    thin: int = 2,
    tune: int | None = None,
    rng: RandomState = None,
    quantities: Callable[[FloatArray], FloatArray] | None = None,
) -> Calibration:
    """Compare prior draws with posterior draws given data that they have generated.

    Besides the parameters, the log-likelihood is compared, which shows errors that leave each
    parameter's own distribution right.

    Parameters
    ----------
    make_problem : callable
        Returns the posterior, a `Problem` with a proper prior, for some data.
    data : object
        Any data: those that are drawn have the same size and alternatives.
    replications : int
        How often this is done.
    draws : int
        The number of draws that the truth is compared with.
    thin : int
        The number of transitions between two of them: ranks are uniform only if draws are nearly
        independent.
    tune : int, optional
        The number of draws to discard at the beginning; by default what the family needs.
    rng : int, Generator or None
    quantities : callable, optional
        Returns what to compare, shape (draws, k), of draws (draws, size); the parameters by
        default.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> from permdist.posterior import Normal, problem_of
    >>> found = simulation_based_calibration(
    ...     lambda ballots: problem_of(PlackettLuce, ballots, Normal(0.0, 1.0)),
    ...     [[0, 1, 2], [1, 0, 2], [2, 1, 0]],
    ...     replications=40, rng=0,
    ... )
    >>> found.worst(bins=8)[1] > 1e-4
    True
    >>> found.verdict[:17], found.names[0]
    ('No sign of errors', 'scores[0]')
    """
    replications, draws = count("replications", replications), count("draws", draws)
    thin = count("thin", thin)
    generator = as_rng(rng)
    template = make_problem(data)
    total = draws * thin
    discard = template.default_tune(total) if tune is None else count("tune", tune, minimum=0)
    names = labels_of(template)
    if quantities is not None:
        width = quantities(template.prior_draws(1, generator)).shape[1]
        names = [f"quantity {i}" for i in range(width)]
    ranks = np.empty((replications, len(names) + 1), dtype=np.int64)
    for row in range(replications):
        truth = template.prior_draws(1, generator)
        problem = make_problem(template.replicate(truth[0], generator))
        table, values = np.empty((discard + total, problem.size)), np.empty(discard + total)
        problem.advance(problem.start(generator), table, values, generator)
        kept = table[discard + thin - 1 :: thin]
        both = np.concatenate([truth, kept])
        shown = both if quantities is None else np.asarray(quantities(both))
        likelihood = problem.log_likelihood(both).sum(axis=1)
        shown = np.column_stack([shown, likelihood])
        below = (shown[1:] < shown[0]).sum(axis=0)
        equal = (shown[1:] == shown[0]).sum(axis=0)
        ranks[row] = below + generator.integers(0, equal + 1)
    return Calibration(ranks, draws, (*names, "log_likelihood"))
