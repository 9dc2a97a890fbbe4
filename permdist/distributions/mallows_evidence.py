"""What ballots that say less than a full ranking say about a Mallows model.

With d the distance from the center, the log-probability of a ballot has the slope
``E[d] - E[d | ballot]`` by theta, and the curvature ``Var[d | ballot] - Var[d]`` (Louis' formula):
for a given center theta is one root, whether the conditional moments are exact or from draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from permdist import rankings
from permdist.distributions.distance_model import displacement_costs
from permdist.sums.agreeing_draws import Chains
from permdist.sums.mallows_kendall import KendallSums

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.distributions.mallows import Mallows
    from permdist.sums.agreeing import Agreeing

MOST_THETA = 690.0  # exp(-690) is the smallest mean distance that is told from 0


class Given(NamedTuple):
    """Sums over the ballots, by weight, at a center and a parameter.

    Attributes
    ----------
    log_likelihood : float
    distance, variance : float
        Conditional mean and variance of the distance from the center, added up.
    error : float
        Monte Carlo standard error of `distance`.
    """

    log_likelihood: float
    distance: float
    variance: float
    error: float = 0.0


@dataclass(frozen=True, eq=False)
class Partial:
    """Different ballots, and how often each was cast.

    Attributes
    ----------
    levels : array of int, shape (ballots, n)
        As from `permdist.ballots.levels_of`.
    weights : array of float, shape (ballots,)
    """

    levels: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, levels: IntArray, weights: FloatArray) -> Partial:
        """Count equal ballots together; leave out those that do not count."""
        cast = weights > 0.0
        different, which = np.unique(levels[cast], axis=0, return_inverse=True)
        counts = np.bincount(which.reshape(-1), weights[cast])
        return cls(different, counts.astype(np.float64))

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self.levels.shape[1]

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    @property
    def are_whole(self) -> bool:
        """Whether all ballots say something about all items: ties and first places."""
        return bool((self.levels >= 0).all())

    def agree_with(self, center: IntArray) -> bool:
        """Check whether a center is what every ballot says."""
        levels = self.levels[:, center]
        highest = np.maximum.accumulate(levels, axis=1)
        return bool(((levels < 0) | (levels == highest)).all())

    def log_uniform(self) -> FloatArray:
        """Return the log-probability of each ballot if all orders are equally probable."""
        sizes = [np.bincount(levels[levels >= 0]) for levels in self.levels]
        return np.array(
            [float(gammaln(each + 1.0).sum() - gammaln(each.sum() + 1.0)) for each in sizes]
        )


class Evidence(ABC):
    """What ballots say about a Mallows model.

    Parameters
    ----------
    cls : type
        Of the model.
    ballots : Partial
    distance : str

    Attributes
    ----------
    prior : float
        The number of ballots spread evenly over all orders that count besides in `slope`.
    """

    prior = 0.0

    def __init__(self, cls: type[Mallows], ballots: Partial, distance: str) -> None:
        self.cls, self.ballots, self.distance = cls, ballots, distance

    def model(self, center: IntArray, theta: float) -> Mallows:
        """Return the model with a center and a parameter."""
        return self.cls(center, theta, self.distance)

    @abstractmethod
    def given(self, center: IntArray, theta: float) -> Given:
        """Add up over all ballots."""

    def slope(self, center: IntArray, theta: float) -> float:
        """Differentiate the log-likelihood by theta, with that of the prior."""
        mean = self.model(center, theta).expected_distance()
        more = self.prior * (mean - self._chance_distance) if self.prior else 0.0
        return self.ballots.total * mean - self.given(center, theta).distance + more

    @cached_property
    def _chance_distance(self) -> float:
        return self.model(np.arange(self.ballots.n_items), 0.0).expected_distance()

    def theta(self, center: IntArray, guess: float) -> float:
        """Maximize the likelihood for a center."""
        if not self.prior and self.ballots.agree_with(center):
            raise ValueError(
                "ballots: all agree with the center, so theta has no finite estimate; pass theta"
            )
        if self.slope(center, 0.0) <= 0.0:
            return 0.0
        low, high = 0.0, guess if guess > 0.0 else 1.0 / self.ballots.n_items
        while self.slope(center, high) > 0.0:
            low, high = high, 2.0 * high
            if high > MOST_THETA:
                raise ValueError("ballots: theta has no finite estimate; pass theta")
        found = brentq(lambda t: self.slope(center, t), low, high, xtol=1e-11, rtol=1e-11)
        return float(found)


class Buckets(Evidence):
    """Kendall's distance, and ballots that say something about all items, in closed form.

    Pairs that the ballots order cost what they cost for any theta; inside a bucket of s items the
    order is that of a model with s items.
    """

    def __init__(self, cls: type[Mallows], ballots: Partial, distance: str) -> None:
        super().__init__(cls, ballots, distance)
        sizes = np.zeros(ballots.n_items + 1)
        for levels, weight in zip(ballots.levels, ballots.weights, strict=True):
            np.add.at(sizes, np.bincount(levels), weight)
        sizes[:2] = 0.0
        self.sizes = sizes

    def given(self, center: IntArray, theta: float) -> Given:
        """Add up over the sizes of buckets."""
        model, cost = self.model(center, theta), self.cost(center)
        log = -theta * cost - self.ballots.total * model.log_partition()
        distance, variance = cost, 0.0
        for size in np.flatnonzero(self.sizes).tolist():
            sums, number = KendallSums(np.full(size - 1, theta)), float(self.sizes[size])
            log += number * sums.log_partition
            distance += number * sums.moments.mean
            variance += number * sums.moments.variance
        return Given(log, distance, variance)

    def cost(self, center: IntArray) -> float:
        """Count, by weight, the pairs that a ballot has in the opposite order."""
        levels, cost = self.ballots.levels[:, center], np.zeros(len(self.ballots.levels))
        for k in range(1, levels.shape[1]):
            cost += (levels[:, :k] > levels[:, k : k + 1]).sum(axis=1)
        return float(self.ballots.weights @ cost)


class Exact(Evidence):
    """Sums over the orders that agree with each ballot."""

    def given(self, center: IntArray, theta: float) -> Given:
        """Add up what the model knows about each ballot."""
        model, found = self.model(center, theta), np.zeros(3)
        agreement = model._agreement  # noqa: SLF001
        for levels, weight in zip(
            self.ballots.levels[:, center], self.ballots.weights, strict=True
        ):
            found += weight * np.array(agreement(levels))
        found[0] -= self.ballots.total * model.log_partition()
        return Given(*(float(value) for value in found))

    def work(self, center: IntArray) -> float:
        """Return about how many elementary operations `given` takes; infinite if impossible."""
        agreement = self.model(center, 1.0)._agreement  # noqa: SLF001
        return sum(agreement.cost(levels) for levels in self.ballots.levels[:, center])


class Draws(Evidence):
    """Draws of orders that agree with each ballot; `draws` may be changed between calls.

    Parameters
    ----------
    cls, ballots, distance
        As in `Evidence`.
    draws : int
        Per ballot and call.
    rng : Generator
    """

    def __init__(
        self,
        cls: type[Mallows],
        ballots: Partial,
        distance: str,
        draws: int,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(cls, ballots, distance)
        self.draws, self.rng = draws, rng
        costs = displacement_costs(distance, ballots.n_items)
        self.chains = Chains(ballots.levels, ballots.weights, distance, costs)

    def given(self, center: IntArray, theta: float) -> Given:
        """Average over draws; the log-likelihood is not known."""
        self.chains(center, theta, max(1, self.draws // 10), self.rng)
        distances = self.chains(center, theta, self.draws, self.rng).distances
        weights = self.ballots.weights
        variance = float(weights @ distances.var(axis=0, ddof=min(1, self.draws - 1)))
        series = distances @ weights
        return Given(np.nan, float(series.mean()), variance, _batch_error(series))

    def neighbor_gains(self, center: IntArray, theta: float) -> FloatArray:
        """Estimate the gain of log-likelihood from each swap of neighbors in the center, (n - 1,).

        The probabilities of a ballot under two centers have the ratio of the mean of
        ``exp(-theta (d' - d))`` over orders that agree with it, drawn with the first.
        """
        distance = getattr(rankings, self.distance)
        others = np.tile(center, (len(center) - 1, 1))
        rows = np.arange(len(others))
        others[rows, rows], others[rows, rows + 1] = center[1:], center[:-1]
        ratios = np.zeros((len(others), len(self.ballots.levels)))
        for _ in range(self.draws):
            self.chains(center, theta, 1, self.rng)
            orders = self.chains.orders
            before = distance(orders, center)
            for row, other in enumerate(others):
                ratios[row] += np.exp(-theta * (distance(orders, other) - before))
        gains: FloatArray = np.log(ratios / self.draws) @ self.ballots.weights
        return gains

    def log_likelihood(self, center: IntArray, theta: float) -> tuple[float, float]:
        """Integrate the slope from theta 0, where all is known; return the value and its error."""
        nodes, shares = np.polynomial.legendre.leggauss(8)
        value, squares = float(self.ballots.weights @ self.ballots.log_uniform()), 0.0
        for node, share in zip(theta * (nodes + 1.0) / 2.0, theta * shares / 2.0, strict=True):
            found = self.given(center, node)
            mean = self.model(center, node).expected_distance()
            value += share * (self.ballots.total * mean - found.distance)
            squares += (share * found.error) ** 2
        return float(value), float(squares**0.5)


def moments_given(model: Mallows, levels: IntArray) -> Agreeing:
    """Return what the orders that agree with a ballot add up to; its levels are by item."""
    return model._agreement(levels[model.center])  # noqa: SLF001


def _batch_error(series: FloatArray) -> float:
    """Return the standard error of the mean of a chain, from means of batches."""
    batches = min(20, len(series))
    if batches < 2:
        return np.nan
    length = len(series) // batches
    means = series[-batches * length :].reshape(batches, length).mean(axis=1)
    return float(means.std(ddof=1) / batches**0.5)
