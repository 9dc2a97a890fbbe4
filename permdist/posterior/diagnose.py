"""The diagnostics and the estimates of a posterior: a table and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._text import plural
from permdist.diagnostics.summary import (
    FEW_DRAWS,
    GOOD_ESS,
    GOOD_RHAT,
    MOST_DRAWS,
    Summary,
    diagnose,
)

if TYPE_CHECKING:
    import pandas

    from permdist.posterior.problem import Problem
    from permdist.posterior.result import Posterior

MOST_COLUMNS = 2000


@dataclass(frozen=True, repr=False)
class PosteriorSummary(Summary):
    """Estimates and diagnostics of the parameters, with a verdict in words.

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each number of a draw, such as ``scores[tea]``, and one for the log-density:
        mean, standard deviation, the ends of the interval and the median, Monte Carlo standard
        error of the mean, R-hat, bulk and tail effective draws. What is constant has none of the
        last four; see the column `note`.
    converged : bool
        Whether every R-hat is at most 1.01 and there are 100 effective draws per chain.
    verdict : str
        The same in words, with a recommendation.
    ess_per_second : float
        Effective draws per second of the number that mixes worst.
    kernel : str
        The family.
    """

    def to_frame(self) -> pandas.DataFrame:
        """Return a copy of the table, whose columns are those of `table`."""
        return self.table.rename_axis("parameter")

    def _facts(self) -> dict[str, Any]:
        return {
            "posterior of": self.kernel,
            "effective draws per second": f"{self.ess_per_second:,.0f}",
        }

    def _worst(self) -> tuple[list[str], int]:
        """Return the rows to show, in their order, and how many that mix better are left out."""
        table, most = self.table, max(self.shown, 30)
        if len(table) <= most:
            return list(table.index), 0
        alike = table.assign(r_hat=table["r_hat"].round(2))
        worst = alike.sort_values(["r_hat", "ess_bulk"], ascending=[False, True], kind="stable")
        kept = set(worst.index[: self.shown])
        return [name for name in table.index if name in kept], len(table) - len(kept)

    def _remarks(self) -> list[str]:
        _, left = self._worst()
        return [f"Not shown: {left} more that mix better, in to_frame()."] if left else []


def labels_of(problem: Problem) -> list[str]:
    """Return the names of the numbers of a draw, such as ``scores[tea]``.

    Parameters
    ----------
    problem : Problem
    """
    found = []
    for variable in problem.variables:
        if not variable.shape:
            found.append(variable.name)
            continue
        parts = [
            list(problem.coords.get(dim, range(length)))
            for dim, length in zip(variable.dims, variable.shape, strict=True)
        ]
        found += [f"{variable.name}[{', '.join(map(str, place))}]" for place in product(*parts)]
    return found


def summarize(posterior: Posterior, level: float) -> PosteriorSummary:
    """Make the table and the verdict.

    Parameters
    ----------
    posterior : Posterior
    level : float
        Of the intervals.
    """
    import pandas

    draws, log_density = posterior.draws, posterior.log_density
    _, length, size = draws.shape
    if length < 4:
        raise ValueError(f"draws: expected at least 4 per chain for diagnostics, got {length}")
    stride = -(-length // MOST_DRAWS)
    found: dict[str, list[Any]] = {}
    for start in range(0, size, MOST_COLUMNS):
        part = diagnose(draws[:, ::stride, start : start + MOST_COLUMNS])
        for key, values in part.items():
            found.setdefault(key, []).extend(values)
    for key, values in diagnose(log_density[:, ::stride, None]).items():
        found[key].extend(values)
    flat = np.concatenate([draws.reshape(-1, size), log_density.reshape(-1, 1)], axis=1)
    tails = [0.5 - 0.5 * level, 0.5, 0.5 + 0.5 * level]
    low, median, high = np.quantile(flat, tails, axis=0)
    columns: dict[str, Any] = {
        "mean": flat.mean(axis=0),
        "sd": flat.std(axis=0, ddof=1),
        f"{100.0 * tails[0]:g}%": low,
        "50%": median,
        f"{100.0 * tails[2]:g}%": high,
    }
    columns |= {key: found[key] for key in ("mcse", "r_hat", "ess_bulk", "ess_tail", "note")}
    table = pandas.DataFrame(columns, index=[*labels_of(posterior.problem), "log_density"])
    good, verdict, speed = _judge(table, posterior)
    return PosteriorSummary(table, good, verdict, speed, posterior.problem.family)


def _judge(table: pandas.DataFrame, posterior: Posterior) -> tuple[bool, str, float]:
    """Return whether the chains agree, a verdict in words, and the effective draws per second."""
    chains, length = posterior.draws.shape[:2]
    wanted = GOOD_ESS * chains
    rhat, ess = table["r_hat"].dropna(), table["ess_bulk"].dropna()
    interrupted = "" if posterior.complete else " The run was interrupted."
    if (table["note"] == "constant").all():
        return True, f"Every draw is the same: there is nothing to diagnose.{interrupted}", 0.0
    if rhat.empty or ess.empty or length < FEW_DRAWS:
        few = (
            f"{plural(length, 'draw')} per chain: too few for diagnostics; take at least "
            f"{FEW_DRAWS}."
        )
        return False, few + interrupted, 0.0
    lowest, highest = float(ess.min()), float(rhat.max())
    if highest > GOOD_RHAT:
        verdict = (
            f"The chains do not agree yet: R-hat of {rhat.idxmax()} is {highest:.3f} "
            f"(above {GOOD_RHAT}). Do not use these draws; take more, or a longer tune."
        )
    elif lowest < wanted:
        needed = length * wanted / max(lowest, 1e-9)
        verdict = (
            f"The chains agree, but {ess.idxmin()} has only {lowest:,.0f} effective draws; for "
            f"{wanted} take about {np.ceil(needed):,.0f} draws per chain."
        )
    else:
        verdict = (
            f"The chains agree: R-hat is at most {highest:.4f}, with at least {lowest:,.0f} "
            "effective draws."
        )
    good = highest <= GOOD_RHAT and lowest >= wanted
    return good, verdict + interrupted, lowest / max(posterior.seconds, 1e-9)
