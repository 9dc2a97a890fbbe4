"""Maximum likelihood for the generalized Mallows model: a center, then one root per stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import logit

from permdist._check import finite
from permdist.ballots import Ballots, levels_of
from permdist.distributions.fit_tables import FitTable, ranked_names
from permdist.distributions.mallows import Mallows
from permdist.distributions.mallows_evidence import MOST_THETA, Partial
from permdist.rankings import check_orders
from permdist.sums.agreeing_levels import is_top, moved_stages
from permdist.sums.mallows_kendall import stage_moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.distributions.generalized_mallows import GeneralizedMallows


@dataclass(frozen=True)
class GeneralizedMallowsFit(FitTable):
    """How a generalized Mallows model was fitted. Prints as a table.

    Attributes
    ----------
    log_likelihood : float
        The sum of the log-probabilities of the ballots, by weight.
    standard_errors : array of float, shape (n - 1,)
        Of the thetas, from the curvature of the log-likelihood without the prior; infinite for
        stages that no ballot reaches. The center is taken as known.
    stage_means : array of float, shape (n - 1,)
        What each stage adds to the distance of a ballot, on average; NaN for stages that no ballot
        reaches.
    stage_weights : array of float, shape (n - 1,)
        The sum of the weights of the ballots that reach each stage.
    n_ballots : float
        The sum of the weights.
    proved : bool
        Whether the center is proved to be the consensus of the ballots, or was given.
    estimates : tuple of (str, float, float)
        The thetas, with their standard errors; see `to_frame`.
    about : str
        What was fitted, in one line.
    """

    log_likelihood: float
    standard_errors: FloatArray
    stage_means: FloatArray
    stage_weights: FloatArray
    n_ballots: float
    proved: bool = True
    estimates: tuple[tuple[str, float, float], ...] = field(default=(), repr=False)
    about: str = field(default="", repr=False)


def fit_stages(
    cls: type[GeneralizedMallows],
    data: Ballots,
    distance: str,
    center: ArrayLike | None,
    prior: float,
    names: Sequence[str] | None,
) -> GeneralizedMallows:
    """Estimate what was not given; parameters as in `GeneralizedMallows.fit`."""
    n, strength = data.n_items, float(finite("prior", prior, ndim=0))
    if strength < 0.0:
        raise ValueError(f"prior: expected a non-negative number, got {strength:g}")
    if n == 1:
        raise ValueError("ballots: expected at least two items, got one: there are no stages")
    levels = levels_of(data)
    wrong = [row for row, each in enumerate(levels) if not is_top(each)]
    if wrong:
        raise ValueError(
            "ballots: expected full rankings or first places out of all items without ties, got "
            f"something else at index {wrong[0]}"
        )
    order, proved = _center(data, distance, center)
    totals, reached = _stage_totals(Partial.of(levels[:, order], data.weights), distance)
    left = np.arange(n, 1.0, -1.0)
    chance = (left - 1.0) / 2.0 if distance == "kendall" else (left - 1.0) / left
    counts = reached + strength
    with np.errstate(invalid="ignore"):
        means = (totals + strength * chance) / counts
    thetas = np.zeros(n - 1)
    for stage in np.flatnonzero(counts > 0.0).tolist():
        thetas[stage] = _root(distance, int(left[stage]), float(means[stage]), stage)
    model = cls(order, thetas, distance, data.names if data.is_named else names)
    if distance == "kendall":
        variances = stage_moments(thetas, left)[1]
    else:
        shares = (left - 1.0) / (left - 1.0 + np.exp(thetas))
        variances = shares * (1.0 - shares)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors, means = (reached * variances) ** -0.5, totals / reached
    likelihood = float(data.weights @ model.log_prob(data))
    total = float(data.weights.sum())
    label = [f"theta {k + 1}: {model.names[item]}" for k, item in enumerate(order[:-1].tolist())]
    rows = tuple(zip(label, thetas.tolist(), errors.tolist(), strict=True))
    about = f"GeneralizedMallows ({distance}): {ranked_names(model.names, order.tolist())}"
    model.__dict__["_fit"] = GeneralizedMallowsFit(
        likelihood, errors, means, reached, total, proved, rows, about
    )
    return model


def _center(data: Ballots, distance: str, center: ArrayLike | None) -> tuple[IntArray, bool]:
    """Return the center that was given, or the one of Mallows' model."""
    if center is not None:
        return check_orders(center, data.n_items, name="center"), True
    # Centers do not depend on a theta that is given, but for Cayley's distance and first places.
    found = Mallows.fit(data, distance=distance, theta=1.0)
    return found.center, found.fit_result is not None and found.fit_result.proved


def _stage_totals(ballots: Partial, distance: str) -> tuple[FloatArray, FloatArray]:
    """Add up what each stage adds to the distance, and the weights of the ballots that reach it.

    Parameters
    ----------
    ballots : Partial
        First places, with items numbered as the center ranks them.
    distance : str
    """
    n = ballots.n_items
    totals, reached = np.zeros(n - 1), np.zeros(n - 1)
    for levels, weight in zip(ballots.levels, ballots.weights, strict=True):
        k = min(int(levels.max()), n - 1)  # the last place of a full ranking is no stage
        top = np.argsort(levels, kind="stable")[:k]
        if distance == "kendall":
            added = top - np.tril(top[:, None] > top, -1).sum(axis=1)
        else:
            added = np.array(moved_stages(top.tolist()), dtype=np.int64)
        totals[:k] += weight * added
        reached[:k] += weight
    return totals, reached


def _root(distance: str, left: int, mean: float, stage: int) -> float:
    """Find the parameter of a stage with so many items left from the mean of what it adds."""
    if mean == 0.0:
        raise ValueError(
            f"ballots: all agree with the center at position {stage}, so its theta has no finite "
            "estimate; set prior above 0"
        )
    if distance == "cayley":
        return 0.0 if mean >= (left - 1.0) / left else float(np.log(left - 1.0) - logit(mean))
    if mean >= (left - 1.0) / 2.0:
        return 0.0
    size = np.array([float(left)])

    def excess(theta: float) -> float:
        return float(stage_moments(np.array([theta]), size)[0][0]) - mean

    return float(brentq(excess, 0.0, MOST_THETA, xtol=1e-13, rtol=1e-14))
