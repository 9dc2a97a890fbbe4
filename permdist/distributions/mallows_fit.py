"""Maximum likelihood for Mallows' model: the center, then the spread by one root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq, linear_sum_assignment

from permdist import rankings
from permdist._check import choice
from permdist._ragged import rows_of
from permdist.ballots import Ballots
from permdist.distributions.base import MAX_LISTED, NotExactError
from permdist.distributions.custom import WeightedOrders
from permdist.distributions.distance_model import DISPLACEMENTS, check_theta, displacement_costs
from permdist.rankings import check_orders, enumerate_orders, order_to_ranks
from permdist.sums.shape import fits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.distributions.mallows import Mallows

MOST_THETA = 690.0  # exp(-690) is the smallest mean distance that is told from 0


@dataclass(frozen=True)
class MallowsFit:
    """How a Mallows model was fitted.

    Attributes
    ----------
    log_likelihood : float
        The sum of the log-probabilities of the ballots, by weight.
    standard_error : float
        Of theta, from the curvature of the log-likelihood; 0 if theta was given. The center is
        taken as known.
    mean_distance : float
        The mean distance of the ballots from the center.
    n_ballots : float
        The sum of the weights.
    proved : bool
        Whether no other center has a higher likelihood, or the center was given.
    """

    log_likelihood: float
    standard_error: float
    mean_distance: float
    n_ballots: float
    proved: bool = True


def fit_mallows(
    cls: type[Mallows],
    ballots: Any,
    distance: str,
    center: ArrayLike | None,
    theta: float | None,
    weights: ArrayLike | None,
    names: Sequence[str] | None,
) -> Mallows:
    """Estimate what was not given; parameters as in `Mallows.fit`."""
    choice("distance", distance, rankings.DISTANCES)
    data = Ballots.of(ballots, weights=weights, names=names)
    orders, counts, n = full_orders(data), data.weights, data.n_items
    total = float(counts.sum())
    if center is None:
        order, proved = best_center(orders, counts, distance)
    else:
        order, proved = check_orders(center, n, name="center"), True
    mean = float(counts @ getattr(rankings, distance)(orders, order)) / total
    given = theta is not None
    spread = check_theta("theta", theta) if given else theta_at(cls, order, distance, mean)
    model = cls(order, spread, distance, data.names if data.is_named else names)
    error = 0.0 if given else (total * model.distance_variance()) ** -0.5
    likelihood = -total * (spread * mean + model.log_partition())
    model.__dict__["_fit"] = MallowsFit(likelihood, error, mean, total, proved)
    return model


def full_orders(data: Ballots) -> IntArray:
    """Return ballots as orders, shape (ballots, n), if they are full rankings without ties."""
    n = data.n_items
    short = np.flatnonzero(np.diff(data.ptr) != n)
    if len(short) or len(data.signs) != data.n_ballots or (data.signs < 0).any():
        at = int(short[0]) if len(short) else 0
        raise ValueError(
            f"ballots: expected rankings of all {n} items, got one of "
            f"{int(np.diff(data.ptr)[at])} at index {int(data.ballot[at])}"
        )
    stages = np.diff(data.stages)
    tied = np.bincount(rows_of(data.stages), data.sizes > 1, minlength=len(stages))
    incomplete = np.flatnonzero((stages < n - 1) | (tied > 0))
    if len(incomplete):
        raise ValueError(
            "ballots: expected full rankings without ties, got ties or items without a place at "
            f"index {int(incomplete[0])}"
        )
    return np.asarray(data.items).reshape(-1, n)


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
    if distance == "kendall" and hasattr(rankings, "consensus"):
        found = rankings.consensus(orders, "kemeny", weights=counts)
        return np.array(found.order), bool(found.proved)
    if n <= MAX_LISTED:
        every = enumerate_orders(n)
        costs = rankings.distance_matrix(every, orders, distance=distance) @ counts
        return every[int(costs.argmin())], True
    limit = next(m for m in range(40, 0, -1) if fits(m)) if distance == "kendall" else MAX_LISTED
    raise NotExactError(
        f"center: for {distance} found exactly up to {limit} items, the ballots have {n}; pass a "
        "center"
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
    high = 1.0 / len(center)
    while excess(high) > 0.0:
        if high > MOST_THETA:
            raise ValueError(f"ballots: a mean distance of {mean:g} has no estimate of theta")
        high *= 2.0
    return float(brentq(excess, 0.0, high, xtol=1e-12, rtol=1e-14))
