"""Which way of fitting Plackett-Luce to ballots: by pairs of alternatives, or by their length."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import count
from permdist.ballots import Rankings
from permdist.distributions.newton import check_tol
from permdist.distributions.plackett_luce_fit import fit_rankings
from permdist.inference.fit import fit_ballots, named_features
from permdist.inference.priors import Ridge
from permdist.inference.sparse import DENSE_ITEMS, SparseLikelihood

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist.ballots import Ballots
    from permdist.inference import Fit

# Rankings of many items that are longer than this are fitted without looking at pairs.
LONG = 20


def fit_any(
    ballots: Ballots,
    *,
    features: Any,
    offset: ArrayLike | None,
    half_life: float | None,
    prior: Any,
    max_iter: int,
    tol: float,
) -> Fit:
    """Estimate scores from ballots without ties; parameters as in `fit_ballots`."""
    if ballots.tie_sizes:
        raise ValueError("ballots: some have ties; fit permdist.DavidsonLuce to these")
    strength = ridge_strength(prior)
    plain = strength is not None and all(each is None for each in (features, offset, half_life))
    if plain and ballots.n_items > DENSE_ITEMS and are_long_rankings(ballots):
        data = ballots.merged()
        return fit_rankings(
            Rankings.of(data),
            data.names,
            float(strength or 0.0),
            count("max_iter", max_iter),
            check_tol(tol),
            partial(SparseLikelihood, data, ()),
        )
    design, feature_names = named_features(features)
    return fit_ballots(
        ballots,
        (),
        features=design,
        feature_names=feature_names,
        offset=offset,
        half_life=half_life,
        prior=prior,
        max_iter=max_iter,
        tol=tol,
    )


def are_long_rankings(ballots: Ballots) -> bool:
    """Check for rankings of some items each, without covariates and clusters, most of them long.

    Their likelihood takes time in proportion to their length; second derivatives by pairs would
    take its square.
    """
    lengths, stages = np.diff(ballots.ptr), np.diff(ballots.stages)
    if float((lengths.astype(np.float64) ** 2).sum()) < LONG * float(lengths.sum()):
        return False
    complete = (stages >= lengths - 1).all() and len(ballots.ballot) == ballots.n_ballots
    ordinary = ballots.clusters is None and ballots.features is None and (ballots.signs > 0).all()
    return bool(complete and ordinary)


def ridge_strength(prior: Any) -> float | None:
    """Return the strength of a ridge on the scores, 0 without a prior, None for other priors."""
    if prior is None:
        return 0.0
    return prior.strength if isinstance(prior, Ridge) and not prior.covariates else None
