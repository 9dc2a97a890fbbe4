"""Comparison of posteriors by their predictions, and by their evidence."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from permdist.diagnostics.exchange import has_trees, load_arviz, to_arviz
from permdist.posterior.groups import groups_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from permdist._typing import IntArray, RandomState
    from permdist.posterior.result import Posterior


def loo(posterior: Posterior, **options: Any) -> Any:
    """Return ``arviz.loo`` of a posterior, where one of w equal ballots is left out at a time.

    Parameters
    ----------
    posterior : Posterior
        A weight says how often an observation was made, a whole number.
    **options
        Passed on.
    """
    copies = _copies(posterior)
    if (copies == 1).all():
        data = posterior.to_arviz(["posterior", "log_likelihood"])
        return _quiet("loo", data, **options)
    if has_trees():
        return _quiet("loo", _units(posterior, copies), **options)
    # Equal observations have equal importance weights: arviz smooths them once.
    distinct = _units(posterior, np.minimum(copies, 1))
    found = _quiet("loo", distinct, **(options | {"pointwise": True}))
    return _counted(found, distinct, copies[copies > 0])


def _copies(posterior: Posterior) -> IntArray:
    """Return how often each observation was made; refuse what is no number of times."""
    weights = posterior.problem.weights
    if weights is None:
        weights = np.ones(posterior.problem.log_likelihood(posterior.flat[:1]).shape[1])
    copies = np.rint(weights)
    wrong = np.flatnonzero(copies != weights)
    if len(wrong):
        raise ValueError(
            "weights: expected whole numbers of ballots, of which one is left out at a time, got "
            f"{weights[wrong[0]]:.4g} for observation {wrong[0]}; pass whole weights and no "
            "half_life, or compare models by log_evidence()"
        )
    if not copies.any():
        raise ValueError("weights: expected some observations to leave out, got none")
    result: IntArray = copies.astype(np.int64)
    return result


def _units(posterior: Posterior, copies: IntArray) -> Any:
    """Return data for arviz with the log-likelihood of single ballots, repeated."""
    weights = posterior.problem.weights
    values = posterior.log_likelihood()
    if weights is not None:
        values = values / np.where(weights > 0.0, weights, 1.0)
    both = groups_of(posterior, ["posterior"], 1, 0)
    repeated = np.repeat(values, copies, axis=2)
    likelihood = both["posterior"].drop_vars(list(both["posterior"].data_vars))
    both["log_likelihood"] = likelihood.assign(y=(("chain", "draw", "observation"), repeated))
    return to_arviz(both)


def _counted(found: Any, data: Any, copies: IntArray) -> Any:
    """Count each pointwise value of arviz's result as often as its observation was made."""
    signs = {"log": 1.0, "negative_log": -1.0, "deviance": -2.0}
    sign = signs[found["scale"]]
    values = found["loo_i"].values
    total = float(copies @ values)
    likelihood = data["log_likelihood"]["y"].values
    likelihood = likelihood.reshape(-1, likelihood.shape[-1])
    fitted = logsumexp(likelihood, axis=0) - np.log(len(likelihood))
    result = found.copy()
    result["elpd_loo"] = total
    number = int(copies.sum())
    mean = total / number
    result["se"] = float(np.sqrt(copies @ (values - mean) ** 2))
    result["p_loo"] = float(copies @ fitted) - total / sign
    result["n_data_points"] = number
    which = np.repeat(np.arange(len(copies)), copies)
    for name in ("loo_i", "pareto_k"):
        result[name] = found[name].isel(observation=which)
    return result


def _quiet(name: str, data: Any, **options: Any) -> Any:
    """Call arviz without warnings about its use of other libraries, but with its own."""
    function = getattr(load_arviz(), name)
    with warnings.catch_warnings():
        for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        return function(data, **options)


def compare(posteriors: Mapping[str, Posterior], **options: Any) -> pd.DataFrame:
    """Compare posteriors by how well they predict each observation from the others.

    ``arviz.compare``: the expected log predictive density by Pareto-smoothed leave-one-out, with
    differences, their errors and stacking weights. The posteriors need the same observations; one
    of weight w counts as w equal ones, of which one is left out at a time.

    Parameters
    ----------
    posteriors : mapping of str to Posterior
    **options
        Passed on.

    Returns
    -------
    DataFrame
        The best first.
    """
    if len(posteriors) < 2:
        raise ValueError(f"posteriors: expected two or more, got {len(posteriors)}")
    copies = {name: _copies(each) for name, each in posteriors.items()}
    first = next(iter(copies.values()))
    told = ", ".join(f"{name} {each.sum():,}" for name, each in copies.items())
    if any(each.sum() != first.sum() for each in copies.values()):
        raise ValueError(f"posteriors: expected the same observations, got numbers: {told}")
    if any(not np.array_equal(each, first) for each in copies.values()):
        raise ValueError(
            "posteriors: expected the same observations, got other weights; pass the same ballots "
            "to all models, also merged or not"
        )
    if (first == 1).all():
        data = {
            name: each.to_arviz(["posterior", "log_likelihood"])
            for name, each in posteriors.items()
        }
    elif options.get("ic", "loo") == "loo" and not has_trees():
        scale = {key: options[key] for key in ("scale",) if key in options}
        data = {name: loo(each, **scale) for name, each in posteriors.items()}
    else:
        data = {name: _units(each, first) for name, each in posteriors.items()}
    table: pd.DataFrame = _quiet("compare", data, **options)
    return table


def compare_evidence(posteriors: Mapping[str, Posterior], *, rng: RandomState = 0) -> pd.DataFrame:
    """Compare models of the same data by their marginal likelihoods.

    A Bayes factor is sensitive to the priors, in particular to how wide they are: with vague priors
    it says more about them than about the data.

    Parameters
    ----------
    posteriors : mapping of str to Posterior
        Of the same data, with proper priors.
    rng : int, Generator or None

    Returns
    -------
    DataFrame
        The best first: ``log_evidence`` with its ``error``, ``log_bayes_factor`` of the best
        model against this one with its ``bayes_factor_error``, and the ``probability`` of each
        model if all were equally likely before.
    """
    import pandas as pd

    from permdist._check import as_rng

    if len(posteriors) < 2:
        raise ValueError(f"posteriors: expected two or more, got {len(posteriors)}")
    generators = as_rng(rng).spawn(len(posteriors))
    found = [
        each.log_evidence(rng=generator)
        for each, generator in zip(posteriors.values(), generators, strict=True)
    ]
    values = np.array([one.log_evidence for one in found])
    errors = np.array([one.error for one in found])
    best = int(values.argmax())
    weights = np.exp(values - values[best])
    both = np.hypot(errors, errors[best])
    both[best] = 0.0
    table = pd.DataFrame(
        {
            "log_evidence": values,
            "error": errors,
            "log_bayes_factor": values[best] - values,
            "bayes_factor_error": both,
            "probability": weights / weights.sum(),
        },
        index=pd.Index(list(posteriors), name="model"),
    )
    return table.sort_values("log_evidence", ascending=False, kind="stable")
