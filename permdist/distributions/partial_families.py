"""Families of components for ballots that say less than full rankings: Mallows, and uniform."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist import rankings
from permdist._check import choice
from permdist.ballots import levels_of
from permdist.distributions.mallows import Mallows
from permdist.distributions.mallows_em import Settings, fit_partial
from permdist.distributions.mallows_evidence import Partial, moments_given
from permdist.distributions.mixture_families import Family

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray
    from permdist.ballots import Ballots


class PartialMallowsFamily(Family):
    """Mallows components with the same prior, and ballots that say less than full rankings."""

    n_parameters = 1

    def __init__(self, ballots: Ballots, noise: bool, prior: float, distance: str) -> None:
        super().__init__(ballots, noise)
        choice("distance", distance, rankings.DISTANCES)
        self.levels, self.prior, self.distance = levels_of(ballots), prior, distance
        self.chance_distance = Mallows(
            np.arange(ballots.n_items), 0.0, distance
        ).expected_distance()

    def fit(self, counts: FloatArray, previous: Any) -> Mallows:
        """Look for a better center than the previous one, and for the spread that goes with it."""
        start = None if previous is None else previous.center
        settings = Settings("exact", prior=self.prior, start=start)
        data = dataclasses.replace(self.ballots, weights=counts, unit_weights=None)
        ballots = Partial.of(self.levels, counts)
        found = fit_partial(Mallows, data, ballots, self.distance, None, None, settings)
        return Mallows(found.center, found.theta, self.distance, self.names)

    def log_prob(self, model: Mallows) -> FloatArray:
        """Return the log-probability of each ballot."""
        found: FloatArray = model.log_prob(self.ballots)
        return found

    def log_prior(self, model: Mallows) -> float:
        """Return the mean log-probability of all orders, as often as the prior counts."""
        return -self.prior * (model.theta * self.chance_distance + model.log_partition())

    def derivatives(self, model: Mallows) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Differentiate by theta; the center is taken as known."""
        given = [moments_given(model, levels) for levels in self.levels]
        slopes = model.expected_distance() - np.array([one.mean for one in given])
        spreads = model.distance_variance() - np.array([one.variance for one in given])
        return slopes[:, None], lambda counts: np.array([[counts @ spreads]])


class UniformFamily(Family):
    """All orders equally probable; ballots of any kind."""

    n_parameters = 0

    def fit(self, counts: FloatArray, previous: Any) -> Mallows:
        """Return the model with theta 0."""
        del counts, previous
        return Mallows(np.arange(self.ballots.n_items), 0.0, "kendall", self.names)

    def log_prob(self, model: Mallows) -> FloatArray:
        """Return the log-probability of each ballot, by counting the orders that agree."""
        del model
        return Partial(levels_of(self.ballots), self.counts).log_uniform()

    def derivatives(self, model: Mallows) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Return derivatives by no parameter."""
        del model
        return np.zeros((len(self.counts), 0)), lambda _: np.zeros((0, 0))
