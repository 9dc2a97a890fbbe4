"""Maximum likelihood for Mallows' model: the center, then the spread by one root."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq, linear_sum_assignment

from permdist import rankings
from permdist._check import choice
from permdist._parallel import rows_of
from permdist.ballots import Ballots, levels_of
from permdist.distributions.base import MAX_LISTED, NotExactError
from permdist.distributions.custom import WeightedOrders
from permdist.distributions.distance_model import DISPLACEMENTS, check_theta, displacement_costs
from permdist.distributions.fit_tables import FitTable, ranked_names
from permdist.distributions.mallows_em import Settings, fit_partial
from permdist.distributions.mallows_evidence import MOST_THETA, Partial
from permdist.rankings import check_orders, enumerate_orders, order_to_ranks
from permdist.sums.shape import fits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.distributions.mallows import Mallows


@dataclass(frozen=True)
class MallowsFit(FitTable):
    """How a Mallows model was fitted. Prints as a table.

    Attributes
    ----------
    log_likelihood : float
        The sum of the log-probabilities of the ballots, by weight.
    standard_error : float
        Of theta, from the curvature of the log-likelihood; 0 if theta was given. The center is
        taken as known. NaN where the curvature is not negative, as it may be if theta is 0.
    mean_distance : float
        The mean distance of the ballots from the center; for ballots that say less than a full
        ranking the expected one, given what they say.
    n_ballots : float
        The sum of the weights.
    proved : bool
        Whether no other center has a higher likelihood, or the center was given.
    n_iter : int
        The number of iterations of EM; 0 for full rankings, which need none.
    converged : bool
        Whether these came to an end before the largest number.
    draws : int
        The number of draws per ballot behind the estimate; 0 if all sums are exact.
    monte_carlo_error : float
        The standard error of theta as an estimate of the maximum, from the draws; 0 if exact.
    log_likelihood_error : float
        The Monte Carlo error of the log-likelihood; 0 if exact.
    estimates : tuple of (str, float, float)
        Theta, with its standard error; see `to_frame`.
    about : str
        What was fitted, in one line.
    """

    log_likelihood: float
    standard_error: float
    mean_distance: float
    n_ballots: float
    proved: bool = True
    n_iter: int = 0
    converged: bool = True
    draws: int = 0
    monte_carlo_error: float = 0.0
    log_likelihood_error: float = 0.0
    estimates: tuple[tuple[str, float, float], ...] = field(default=(), repr=False)
    about: str = field(default="", repr=False)

    def _remarks(self) -> list[str]:
        proof = "no other has a higher likelihood" if self.proved else "not proved to be the best"
        return [f"mean distance {self.mean_distance:.6g}; the center: {proof}"]


def fit_mallows(
    cls: type[Mallows],
    data: Ballots,
    distance: str,
    center: ArrayLike | None,
    theta: float | None,
    names: Sequence[str] | None,
    settings: Settings,
) -> Mallows:
    """Estimate what was not given; parameters as in `Mallows.fit`."""
    choice("distance", distance, rankings.DISTANCES)
    known = None if center is None else check_orders(center, data.n_items, name="center")
    spread = None if theta is None else check_theta("theta", theta)
    shown = data.names if data.is_named else names
    fit = _fit_partial if short_of_full(data) else _fit_full
    order, value, result = fit(cls, data, distance, known, spread, settings)
    model = cls(order, value, distance, shown)
    model.__dict__["_fit"] = replace(
        result,
        estimates=(("theta", model.theta, result.standard_error),),
        about=f"Mallows ({distance}): {ranked_names(model.names, model.center.tolist())}",
    )
    return model


def _fit_full(
    cls: type[Mallows],
    data: Ballots,
    distance: str,
    center: IntArray | None,
    theta: float | None,
    settings: Settings,
) -> tuple[IntArray, float, MallowsFit]:
    """Find the best center, then the spread that goes with the mean distance."""
    del settings
    orders, counts = full_orders(data), data.weights
    total = float(counts.sum())
    order, proved = (center, True) if center is not None else best_center(orders, counts, distance)
    mean = float(counts @ getattr(rankings, distance)(orders, order)) / total
    value = theta_at(cls, order, distance, mean) if theta is None else theta
    model = cls(order, value, distance)
    error = 0.0 if theta is not None else (total * model.distance_variance()) ** -0.5
    likelihood = -total * (value * mean + model.log_partition())
    return order, value, MallowsFit(likelihood, error, mean, total, proved)


def _fit_partial(
    cls: type[Mallows],
    data: Ballots,
    distance: str,
    center: IntArray | None,
    theta: float | None,
    settings: Settings,
) -> tuple[IntArray, float, MallowsFit]:
    """Sum over the orders that agree with each ballot, or draw some."""
    if data.features is not None:
        raise ValueError("ballots: covariates have no coefficients in a Mallows model")
    ballots = Partial.of(levels_of(data), data.weights)
    found = fit_partial(cls, data, ballots, distance, center, theta, settings)
    error = noise = 0.0
    if theta is None:
        information = found.information
        error = information**-0.5 if information > 0.0 else np.nan
        noise = found.given.error / information if information > 0.0 else np.nan
    result = MallowsFit(
        log_likelihood=found.given.log_likelihood,
        standard_error=error,
        mean_distance=found.given.distance / ballots.total,
        n_ballots=ballots.total,
        proved=found.proved,
        n_iter=found.n_iter,
        converged=found.converged,
        draws=found.draws,
        monte_carlo_error=noise,
        log_likelihood_error=found.log_likelihood_error,
    )
    return found.center, found.theta, result


def full_orders(data: Ballots) -> IntArray:
    """Return ballots as orders, shape (ballots, n), if they are full rankings without ties."""
    fault = short_of_full(data)
    if fault:
        raise ValueError(f"ballots: expected {fault}")
    return np.asarray(data.items).reshape(-1, data.n_items)


def short_of_full(data: Ballots) -> str:
    """Say what makes ballots less than full rankings; nothing if they are full."""
    n = data.n_items
    short = np.flatnonzero(np.diff(data.ptr) != n)
    if len(short) or len(data.signs) != data.n_ballots or (data.signs < 0).any():
        at = int(short[0]) if len(short) else 0
        length = int(np.diff(data.ptr)[at])
        return f"rankings of all {n} items, got one of {length} at index {int(data.ballot[at])}"
    stages = np.diff(data.stages)
    tied = np.bincount(rows_of(data.stages), data.sizes > 1, minlength=len(stages))
    incomplete = np.flatnonzero((stages < n - 1) | (tied > 0))
    if len(incomplete):
        return (
            "full rankings without ties, got ties or items without a place at index "
            f"{int(incomplete[0])}"
        )
    return ""


def best_center(orders: IntArray, counts: FloatArray, distance: str) -> tuple[IntArray, bool]:
    """Find the order with the least total distance from some orders, and whether this is proved.

    Parameters
    ----------
    orders : array of int, shape (rankings, n)
    counts : array of float, shape (rankings,)
    distance : str
    """
    n = orders.shape[1]
    if distance in DISPLACEMENTS:
        positions = np.arange(n)
        at = np.zeros((n, n))  # how often each item is at each position
        np.add.at(at, (orders, positions), counts[:, None])
        moves = np.abs(positions[:, None] - positions)
        costs = at @ displacement_costs(distance, n)[moves]
        return np.argsort(linear_sum_assignment(costs)[1]), True
    if distance == "kendall" and fits(n):
        above = np.zeros((n, n))
        for ranks, count in zip(order_to_ranks(orders), counts, strict=True):
            above += count * (ranks[:, None] < ranks)
        return WeightedOrders.from_pairs(above).mode(), True
    if distance == "kendall":
        found = rankings.consensus(orders, "kemeny", weights=counts)
        return np.array(found.order), bool(found.proved)
    if n <= MAX_LISTED:
        every = enumerate_orders(n)
        costs = rankings.distance_matrix(every, orders, distance=distance) @ counts
        return every[int(costs.argmin())], True
    raise NotExactError(
        f"center: for {distance} found exactly up to {MAX_LISTED} items, the ballots have {n}; "
        "pass a center"
    )


def theta_at(cls: type[Mallows], center: IntArray, distance: str, mean: float) -> float:
    """Find the parameter at which the expected distance is the mean distance."""

    def excess(theta: float) -> float:
        return cls(center, theta, distance).expected_distance() - mean

    if len(center) == 1:
        raise ValueError("ballots: expected at least two items, got one: theta has no influence")
    if excess(0.0) <= 0.0:
        return 0.0
    if mean == 0.0:
        raise ValueError(
            "ballots: all are equal to the center, so theta has no finite estimate; pass theta"
        )
    low, high = 0.0, 1.0 / len(center)
    while True:
        try:
            if excess(high) <= 0.0:
                break
            low = high
        except NotExactError:
            # With many items Spearman's distance is known at 0 and where theta is large.
            if low > 0.0:
                raise
        if high > MOST_THETA:
            raise ValueError(f"ballots: a mean distance of {mean:g} has no estimate of theta")
        high *= 1.5
    return float(brentq(excess, low, high, xtol=1e-12, rtol=1e-14))
