"""Posterior draws for leaderboards: what is sampled, and what is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import count
from permdist._text import plural
from permdist.inference import PseudoWins
from permdist.inference.goodness import pair_chances

if TYPE_CHECKING:
    import pandas as pd

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.ballots import Ballots
    from permdist.posterior import Posterior

# The precision of the normal prior of scores, relative to their mean: a standard deviation of 3.2.
USUAL_PRIOR = 0.1
# Draws behind mean chances.
CHANCES = 400


def check_options(prior: Any, errors: str | None, bootstrap: int, draws: int) -> tuple[Any, int]:
    """Return the prior and the number of draws; refuse options of other kinds of errors.

    Parameters
    ----------
    prior : Ridge, Normal, float or None
    errors : str or None
    bootstrap : int
    draws : int
        Per chain.
    """
    if errors is not None or bootstrap:
        raise ValueError(
            "errors, bootstrap: with bayes=True errors come from the posterior; leave them out"
        )
    if isinstance(prior, PseudoWins):
        raise ValueError(
            "prior: imagined wins are not a prior density; with bayes=True pass a number or "
            "permdist.inference.Ridge"
        )
    if isinstance(prior, int | float) and prior == 0:
        raise ValueError("prior: expected a positive number with bayes=True, got 0")
    return USUAL_PRIOR if prior is None else prior, count("draws", draws, minimum=20)


def posterior_of(
    ballots: Ballots,
    prior: Any,
    half_life: float | None,
    draws: int,
    rng: RandomState,
    progress: bool,
) -> Posterior:
    """Draw from the posterior of the scores, of Davidson's model where there are ties.

    Parameters
    ----------
    ballots : Ballots
    prior : Ridge, Normal or float
    half_life : float or None
    draws : int
        Per chain.
    rng : int, Generator or None
    progress : bool
    """
    from permdist.distributions import DavidsonLuce, PlackettLuce
    from permdist.posterior import sample

    model = DavidsonLuce if ballots.tie_sizes else PlackettLuce
    return sample(
        model, ballots, prior, draws=draws, rng=rng, progress=progress, half_life=half_life
    )


def mean_chances(posterior: Posterior, one: IntArray, two: IntArray) -> FloatArray:
    """Return the posterior means of the chances that one wins, that two wins, and of a tie.

    Parameters
    ----------
    posterior : Posterior
    one, two : array of int, shape (pairs,)
        Items.

    Returns
    -------
    array of float, shape (pairs, 3)
    """
    problem = posterior.problem
    total: FloatArray = np.zeros((len(one), 3))
    draws = posterior.some(CHANCES)
    for parts in map(problem.split, draws):
        log_tie = None
        if "log_ties" in parts:
            sizes = list(problem.coords["tie_size"])
            log_tie = float(parts["log_ties"][sizes.index(2)]) if 2 in sizes else None
        total += pair_chances(parts["scores"], log_tie, one, two)
    return total / len(draws)


def coefficient_table(posterior: Posterior, level: float) -> pd.DataFrame:
    """Return the posterior of the coefficients of covariates: mean, sd and interval.

    Parameters
    ----------
    posterior : Posterior
    level : float
    """
    import pandas as pd

    draws = posterior["covariates"]
    flat = draws.reshape(-1, draws.shape[-1])
    low, high = np.quantile(flat, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
    return pd.DataFrame(
        {"mean": flat.mean(axis=0), "sd": flat.std(axis=0, ddof=1), "low": low, "high": high},
        index=pd.Index(list(posterior.problem.coords["covariate"]), name="covariate"),
    )


def facts(posterior: Posterior) -> dict[str, str]:
    """Return what a summary tells of the posterior.

    Parameters
    ----------
    posterior : Posterior
    """
    prior: Any = getattr(posterior.problem, "priors", {}).get("scores")
    told = repr(prior)
    if prior is not None and getattr(prior, "centered", False):
        told = f"normal, of precision {1.0 / float(prior.covariance):g} around the mean score"
    size = f"{plural(posterior.n_chains, 'chain')} of {plural(posterior.n_draws, 'draw')}"
    return {"prior": told, "draws": size, "chains": _told(posterior.verdict)}


def _told(verdict: str) -> str:
    """Leave out the advice that is about an option of `permdist.posterior.sample`."""
    return verdict.replace("; take more, or a longer tune", "; take more")
