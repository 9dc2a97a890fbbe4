"""Comparison of posteriors by their predictions, and by their evidence."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.diagnostics.summary import load_arviz

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from permdist._typing import RandomState
    from permdist.posterior.result import Posterior


def loo(posterior: Posterior, **options: Any) -> Any:
    """Return ``arviz.loo`` of a posterior.

    Parameters
    ----------
    posterior : Posterior
    **options
        Passed on.
    """
    data = posterior.to_arviz(["posterior", "log_likelihood"])
    return _quiet("loo", data, **options)


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
    differences, their errors and stacking weights. The posteriors need the same observations.

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
    data = {
        name: each.to_arviz(["posterior", "log_likelihood"]) for name, each in posteriors.items()
    }
    sizes = {name: _observations(each) for name, each in data.items()}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise ValueError(f"posteriors: expected the same observations, got numbers: {told}")
    table: pd.DataFrame = _quiet("compare", data, **options)
    return table


def _observations(data: Any) -> int:
    return int(data["log_likelihood"]["y"].shape[-1])


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
