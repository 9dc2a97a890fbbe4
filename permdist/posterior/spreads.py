"""The spread parameter of Mallows' models: its density given all else, and slice sampling.

Given center and orders, theta has the density of its prior times ``exp(-theta D) / Z(theta)^N``,
with D the total distance. Slices are taken of the density of log(theta), so that no step size
depends on the unit of theta (Neal: Slice sampling, 2003, with stepping out).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from permdist._kernels import kernel
from permdist.distances import distance_named
from permdist.posterior.priors import Flat, Gamma

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray

# Items up to which the orders at each distance are counted once, so that log Z is a short sum.
MOST_COUNTED = {"footrule": 100, "spearman": 14, "ulam": 61}
LARGEST, SMALLEST = 1e4, 1e-290  # of theta
STEPS_OUT = 60  # of width 1 in log(theta), at most
SHRINKS = 400

KENDALL, CAYLEY, COUNTED = 0, 1, 2


@dataclass(frozen=True)
class Normalizer:
    """The logarithm of what normalizes all ballots, as a function of theta.

    Parameters
    ----------
    kind : int
        `KENDALL`, `CAYLEY` or `COUNTED`.
    coefs : array of float
        For the first two kinds how often the factor of each number of items that are left counts
        (index 0 is for 0 items); else the (negative) number of ballots, shape (1,).
    logs, distances : array of float
        The logarithm of the number of orders at each distance, for the last kind.
    """

    kind: int
    coefs: FloatArray
    logs: FloatArray
    distances: FloatArray

    def __call__(self, theta: float) -> float:
        """Return its value."""
        return float(log_norm(theta, self.kind, self.coefs, self.logs, self.distances))


@dataclass(frozen=True)
class SlowNormalizer:
    """The same where orders are too many to be counted: from the model itself.

    Parameters
    ----------
    n : int
    distance : str
    coef : float
        Minus the number of ballots.
    """

    n: int
    distance: str
    coef: float

    def __call__(self, theta: float) -> float:
        """Return its value."""
        if self.coef == 0.0:
            return 0.0
        return self.coef * distance_named(self.distance)(self.n, theta).log_partition


def normalizer(
    distance: str,
    n: int,
    total: float,
    buckets: FloatArray | None = None,
    missing: FloatArray | None = None,
) -> Normalizer | SlowNormalizer:
    """Return the normalizer of some rankings of n items.

    Parameters
    ----------
    distance : str
    n : int
    total : float
        The number of rankings.
    buckets : array of float, shape (n + 1,), optional
        For Kendall's distance how many buckets of each size they have: the sums over the orders
        of a bucket.
    missing : array of float, shape (n + 1,), optional
        For Cayley's distance the number of first places by how many items are below them: what is
        below has no factor.
    """
    none = np.zeros(0)
    if distance in ("kendall", "cayley"):
        coefs = np.full(n + 1, -total)
        if buckets is not None:
            coefs += np.cumsum(buckets[::-1])[::-1]
        if missing is not None:
            coefs += np.cumsum(missing[::-1])[::-1]
        coefs[:2] = 0.0
        return Normalizer(KENDALL if distance == "kendall" else CAYLEY, coefs, none, none)
    if n > MOST_COUNTED.get(distance, n):
        return SlowNormalizer(n, distance, -total)
    logs = _log_counts(distance, n)
    there = np.flatnonzero(np.isfinite(logs))
    return Normalizer(COUNTED, np.array([-total]), logs[there], there.astype(np.float64))


@lru_cache(maxsize=32)
def _log_counts(distance: str, n: int) -> FloatArray:
    """Return the logarithm of the number of orders at each distance."""
    if distance == "hamming":
        moved = np.arange(n + 1.0)
        log_derangements = np.full(n + 1, -np.inf)
        log_derangements[0] = 0.0
        exact = 1
        for d in range(1, n + 1):
            exact = d * exact + (-1) ** d
            if 1 < d < 25:
                log_derangements[d] = math.log(exact)
            elif d > 1:  # n! / e to more digits than a double has
                log_derangements[d] = math.lgamma(d + 1.0) - 1.0
        chosen = gammaln(n + 1.0) - gammaln(moved + 1.0) - gammaln(n - moved + 1.0)
        return chosen + log_derangements
    with np.errstate(divide="ignore"):
        return np.log(distance_named(distance)(n, 0.0).distribution()) + math.lgamma(n + 1.0)


@dataclass(frozen=True)
class ThetaStep:
    """A transition that keeps the density of theta given all else.

    Parameters
    ----------
    prior : Gamma, Flat, or an object with `log_density_of_values`
    normalizer : Normalizer or SlowNormalizer
    """

    prior: Any
    normalizer: Normalizer | SlowNormalizer

    def log_prior(self, theta: float) -> float:
        """Return the log-density of the prior at theta."""
        if isinstance(self.prior, Flat):
            return 0.0
        return float(self.prior.log_density_of_values(theta))

    def __call__(self, theta: float, cost: float, rng: np.random.Generator) -> float:
        """Return the next theta.

        Parameters
        ----------
        theta : float
        cost : float
            The total distance.
        rng : Generator
        """
        norm = self.normalizer
        prior = self.prior
        if isinstance(prior, Gamma | Flat) and isinstance(norm, Normalizer):
            shape, rate = (prior.shape, prior.rate) if isinstance(prior, Gamma) else (1.0, 0.0)
            inputs = norm.kind, norm.coefs, norm.logs, norm.distances
            return float(slice_theta(theta, cost, shape, rate, *inputs, rng))
        return _slice(theta, lambda value: norm(value) - value * cost + self.log_prior(value), rng)


def _slice(theta: float, log_density: Callable[[float], float], rng: np.random.Generator) -> float:
    """Make the step of `slice_theta` for any density."""

    def level(u: float) -> float:
        value = math.exp(u)
        return log_density(value) + u if SMALLEST < value < LARGEST else -math.inf

    here = math.log(theta)
    height = level(here) - rng.standard_exponential()
    low = here - rng.random()
    high = low + 1.0
    left = int(rng.random() * STEPS_OUT)
    right = STEPS_OUT - 1 - left
    while left > 0 and level(low) > height:
        low, left = low - 1.0, left - 1
    while right > 0 and level(high) > height:
        high, right = high + 1.0, right - 1
    for _ in range(SHRINKS):
        u = low + rng.random() * (high - low)
        if level(u) >= height:
            return math.exp(u)
        if u < here:
            low = u
        else:
            high = u
    return theta


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def log_norm(
    theta: float, kind: int, coefs: FloatArray, logs: FloatArray, distances: FloatArray
) -> float:
    """Return the value of a normalizer; logs and distances have shape (k,)."""
    total = 0.0
    if kind == 0:
        unit = -np.expm1(-theta)
        for left in range(2, len(coefs)):
            if coefs[left] != 0.0:
                total += coefs[left] * np.log(-np.expm1(-left * theta) / unit)
    elif kind == 1:
        ratio = np.exp(-theta)
        for left in range(2, len(coefs)):
            if coefs[left] != 0.0:
                total += coefs[left] * np.log1p((left - 1.0) * ratio)
    elif coefs[0] != 0.0:
        largest = -np.inf
        for d in range(len(logs)):
            largest = max(largest, logs[d] - theta * distances[d])
        for d in range(len(logs)):
            total += np.exp(logs[d] - theta * distances[d] - largest)
        total = coefs[0] * (np.log(total) + largest)
    return total


@kernel
def _level(
    u: float,
    cost: float,
    shape: float,
    rate: float,
    kind: int,
    coefs: FloatArray,
    logs: FloatArray,
    distances: FloatArray,
) -> float:
    """Return the log-density of u = log(theta), up to a constant."""
    theta = np.exp(u)
    if not 1e-290 < theta < 1e4:
        return -np.inf
    value = log_norm(theta, kind, coefs, logs, distances)
    return value + shape * u - (rate + cost) * theta


@kernel
def slice_theta(
    theta: float,
    cost: float,
    shape: float,
    rate: float,
    kind: int,
    coefs: FloatArray,
    logs: FloatArray,
    distances: FloatArray,
    rng: np.random.Generator,
) -> float:
    """Return the next theta by slice sampling of log(theta), with a gamma prior."""
    here = np.log(theta)
    height = _level(here, cost, shape, rate, kind, coefs, logs, distances)
    height -= rng.standard_exponential()
    low = here - rng.random()
    high = low + 1.0
    left = int(rng.random() * 60)
    right = 59 - left
    while left > 0 and _level(low, cost, shape, rate, kind, coefs, logs, distances) > height:
        low -= 1.0
        left -= 1
    while right > 0 and _level(high, cost, shape, rate, kind, coefs, logs, distances) > height:
        high += 1.0
        right -= 1
    for _ in range(400):
        u = low + rng.random() * (high - low)
        if _level(u, cost, shape, rate, kind, coefs, logs, distances) >= height:
            return np.exp(u)
        if u < here:
            low = u
        else:
            high = u
    return theta
