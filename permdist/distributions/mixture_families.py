"""What the components of a fitted mixture may be: how to fit one to weighted ballots."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import choice, count, finite
from permdist.ballots import levels_of
from permdist.distances import distance_named
from permdist.distances.compare import between
from permdist.distributions.base import Distribution
from permdist.distributions.mallows import Mallows
from permdist.distributions.mallows_fit import (
    Evidence,
    Search,
    by_sums,
    full_orders,
    log_uniform,
    short_of_full,
    theta_at,
)
from permdist.distributions.mixture import ballot_log_probs
from permdist.distributions.mixture_parameters import differences, parameters_of
from permdist.distributions.plackett_luce import PlackettLuce
from permdist.inference.fit import NO_ESTIMATE, NoEstimateError, maximize
from permdist.inference.likelihood import Likelihood, Penalty
from permdist.inference.priors import Ridge
from permdist.rankings import order_to_ranks

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray
    from permdist.ballots import Ballots

# The error of a score that a weighted fit leaves before its last Newton step.
STEP_TOL = 1e-5
# Newton's method for theta: the most steps, and how small the last one must be, relative to theta.
NEWTON_STEPS, THETA_TOL = 8, 1e-7
FAMILIES = ("plackett-luce", "mallows")


class Family(ABC):
    """Ballots, and how components are fitted to them.

    Parameters
    ----------
    ballots : Ballots
        Equal ones counted together.
    noise : bool
        Whether there is a uniform component, too.
    """

    n_parameters: int | None

    def __init__(self, ballots: Ballots, noise: bool) -> None:
        self.ballots, self.counts = ballots, np.asarray(ballots.weights)
        names = ballots.names if ballots.is_named else None
        self.names, self.noise = names, PlackettLuce(np.zeros(ballots.n_items), names)
        self.has_noise = bool(noise)

    @abstractmethod
    def fit(self, counts: FloatArray, previous: Any) -> Distribution:
        """Fit a component to ballots that count so much; from the previous one, or None."""

    @abstractmethod
    def log_prob(self, model: Any) -> FloatArray:
        """Return the log-probability of each ballot."""

    def log_prior(self, model: Any) -> float:
        """Return the logarithm of the prior density of a component, up to a constant."""
        del model  # for subclasses
        return 0.0

    @abstractmethod
    def derivatives(
        self, model: Any
    ) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]] | None:
        """Return derivatives of log-probabilities; None if the parameters are not known.

        The first ones of each ballot, shape (ballots, q), and a function of how much ballots count
        that returns minus the second ones of the log-likelihood, shape (q, q).
        """


class PlackettLuceFamily(Family):
    """Plackett-Luce components with a ridge on the scores; ballots of any kind without ties."""

    def __init__(self, ballots: Ballots, noise: bool, prior: float) -> None:
        super().__init__(ballots, noise)
        if ballots.tie_sizes:
            raise ValueError("ballots: expected none with ties; Plackett-Luce has no ties")
        if ballots.features is not None:
            raise ValueError("ballots: expected none with covariates")
        self.likelihood = Likelihood(ballots, ())
        self.penalty = Penalty(Ridge(prior), self.likelihood) if prior else None
        self.n_parameters = ballots.n_items - 1

    def fit(self, counts: FloatArray, previous: Any) -> PlackettLuce:
        """Maximize by Newton's method."""
        n = self.ballots.n_items
        start = np.zeros(n) if previous is None else np.array(previous.scores)
        try:
            optimum = maximize(self.likelihood, self.penalty, start, 100, STEP_TOL, counts)
        except NoEstimateError:
            raise NoEstimateError(
                f"{NO_ESTIMATE} for a component, within which some items are always above the "
                "others or not compared with them; set prior above 0"
            ) from None
        found = optimum.parameters
        return PlackettLuce(found - found.mean(), self.names)

    def log_prob(self, model: PlackettLuce) -> FloatArray:
        """Return the log-probability of each ballot."""
        return self.likelihood.log_likelihoods(np.asarray(model.scores))

    def log_prior(self, model: PlackettLuce) -> float:
        """Return minus the ridge's penalty."""
        return 0.0 if self.penalty is None else -self.penalty(np.asarray(model.scores))[0]

    def derivatives(
        self, model: PlackettLuce
    ) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Differentiate by the scores."""
        scores = np.asarray(model.scores)
        slopes = self.likelihood.slopes(scores).toarray()
        return slopes, lambda counts: self.likelihood(scores, counts)[2]


class MallowsFamily(Family):
    """Mallows components with ballots spread evenly over all orders as a prior; full rankings."""

    n_parameters = 1

    def __init__(self, ballots: Ballots, noise: bool, prior: float, distance: str) -> None:
        super().__init__(ballots, noise)
        self.kind = distance_named(distance)
        self.orders, self.prior = full_orders(ballots), prior
        self.ranks = order_to_ranks(self.orders)
        self.chance_distance = self.kind(ballots.n_items, 0.0).sums.mean

    def fit(self, counts: FloatArray, previous: Any) -> Mallows:
        """Find the best center, then the spread that goes with its mean distance."""
        statistic = self.kind.center_statistic(self.orders.shape[1])
        center = statistic.best(statistic.count(self.ranks, counts))[0]
        cost = float(counts @ self._distances(center))
        if previous is not None:
            # With many items the best center is not always found.
            before = float(counts @ self._distances(previous.center))
            if before <= cost:
                center, cost = previous.center, before
        total = cost + self.prior * self.chance_distance
        mean = total / (float(counts.sum()) + self.prior)
        start = 0.0 if previous is None else previous.theta
        theta = 0.0 if len(center) == 1 else self._theta(len(center), mean, start)
        return Mallows(center, theta, self.kind.name, self.names)

    def _theta(self, n: int, mean: float, start: float) -> float:
        """Find the theta with this mean distance: Newton's method if it gets there, or a search."""
        theta = start
        for _ in range(NEWTON_STEPS if start > 0.0 else 0):
            sums = self.kind(n, theta).sums
            step = (sums.mean - mean) / sums.variance if sums.variance > 0.0 else np.inf
            theta += step
            if not 0.0 < theta < 2.0 * start:
                break
            if abs(step) <= THETA_TOL * theta:
                return theta
        return theta_at(self.kind, n, mean)

    def _distances(self, center: Any) -> FloatArray:
        found: FloatArray = between(self.kind.name, self.orders, center)
        return found

    def log_prob(self, model: Mallows) -> FloatArray:
        """Return the log-probability of each ballot."""
        found: FloatArray = model.log_prob(self.orders)
        return found

    def log_prior(self, model: Mallows) -> float:
        """Return the mean log-probability of all orders, as often as the prior counts."""
        return -self.prior * (model.theta * self.chance_distance + model.log_partition())

    def derivatives(self, model: Mallows) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Differentiate by theta; the center is taken as known."""
        slopes = (model.expected_distance() - self._distances(model.center))[:, None]
        variance = model.distance_variance()
        return slopes, lambda counts: np.array([[counts.sum() * variance]])


class PartialMallowsFamily(Family):
    """Mallows components with the same prior, and ballots that say less than full rankings."""

    n_parameters = 1

    def __init__(self, ballots: Ballots, noise: bool, prior: float, distance: str) -> None:
        super().__init__(ballots, noise)
        self.levels, self.prior, self.kind = levels_of(ballots), prior, distance_named(distance)
        self.chance_distance = self.kind(ballots.n_items, 0.0).sums.mean

    def fit(self, counts: FloatArray, previous: Any) -> Mallows:
        """Look for a better center than the previous one, and for the spread that goes with it."""
        search = Search("exact", start=None if previous is None else previous.center)
        evidence = Evidence.counted(self.kind, self.levels, counts, self.prior)
        found = by_sums(evidence, None, None, search)
        return Mallows(found.center, found.theta, self.kind.name, self.names)

    def log_prob(self, model: Mallows) -> FloatArray:
        """Return the log-probability of each ballot."""
        found: FloatArray = model.log_prob(self.ballots)
        return found

    def log_prior(self, model: Mallows) -> float:
        """Return the mean log-probability of all orders, as often as the prior counts."""
        return -self.prior * (model.theta * self.chance_distance + model.log_partition())

    def derivatives(self, model: Mallows) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Differentiate by theta; the center is taken as known."""
        given = self.kind(model.n_items, model.theta).agreeing_all(self.levels[:, model.center])
        slopes = model.expected_distance() - given.mean
        spreads = model.distance_variance() - given.variance
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
        return log_uniform(levels_of(self.ballots))

    def derivatives(self, model: Mallows) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        """Return derivatives by no parameter."""
        del model
        return np.zeros((len(self.counts), 0)), lambda _: np.zeros((0, 0))


class OtherFamily(Family):
    """Components that a function fits; derivatives are difference quotients."""

    def __init__(
        self,
        ballots: Ballots,
        noise: bool,
        function: Callable[..., Any],
        n_parameters: int | None,
    ) -> None:
        super().__init__(ballots, noise)
        self.function = function
        self.n_parameters = None if n_parameters is None else count("n_parameters", n_parameters)
        try:
            self.orders: Any = full_orders(ballots)
        except ValueError:
            self.orders = None

    def fit(self, counts: FloatArray, previous: Any) -> Distribution:
        """Call the function."""
        del previous
        ballots = self.orders
        if ballots is None:
            ballots = dataclasses.replace(self.ballots, weights=counts, unit_weights=None)
        model = self.function(ballots, counts)
        if not isinstance(model, Distribution):
            raise TypeError(
                f"family: expected it to return a Distribution, got {type(model).__name__}"
            )
        if model.n_items != self.ballots.n_items:
            raise ValueError(
                f"family: expected it to return a distribution over {self.ballots.n_items} items, "
                f"got {model.n_items}"
            )
        return model

    def log_prob(self, model: Distribution) -> FloatArray:
        """Return the log-probability of each ballot."""
        if self.orders is None:
            return ballot_log_probs(model, self.ballots)
        found: FloatArray = model.log_prob(self.orders)
        return found

    def derivatives(
        self, model: Distribution
    ) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]] | None:
        """Differentiate by the parameters that the component tells, if it does."""
        point = parameters_of(model)
        return None if point is None else differences(self.log_prob, point)


def different_ballots(ballots: Ballots) -> Ballots:
    """Count equal ballots together, whenever they were cast."""
    data = dataclasses.replace(ballots, times=None)
    return data.merged() if data.n_items > 1 else data


def family_of(
    family: Any,
    ballots: Ballots,
    noise: bool,
    prior: float,
    distance: str,
    n_parameters: int | None,
) -> Family:
    """Return how to fit components to some ballots; parameters as in `Mixture.fit`."""
    strength = float(finite("prior", prior, ndim=0))
    if strength < 0.0:
        raise ValueError(f"prior: expected a non-negative number, got {strength:g}")
    data = different_ballots(ballots)
    if isinstance(family, str):
        choice("family", family, FAMILIES)
    if family in ("plackett-luce", PlackettLuce):
        return PlackettLuceFamily(data, noise, strength)
    if family in ("mallows", Mallows):
        if short_of_full(data):
            return PartialMallowsFamily(data, noise, strength, distance)
        return MallowsFamily(data, noise, strength, distance)
    if isinstance(family, type):
        fit = getattr(family, "fit", None)
        if fit is None:
            raise TypeError(f"family: expected a class with a method fit, got {family.__name__}")
        return OtherFamily(data, noise, lambda orders, w: fit(orders, weights=w), n_parameters)
    if not callable(family):
        raise TypeError(
            "family: expected a name, a class or a function of ballots and weights, got "
            f"{type(family).__name__}"
        )
    return OtherFamily(data, noise, family, n_parameters)
