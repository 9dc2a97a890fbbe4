"""Marginal likelihoods by bridge sampling, with their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special
from scipy.optimize import minimize_scalar

from permdist._check import as_rng, count, finite
from permdist._result import record_frame, record_html
from permdist.diagnostics.summary import diagnose
from permdist.posterior.linear import LinearPosterior
from permdist.posterior.smooth import Smooth

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, RandomState
    from permdist.posterior.problem import Problem
    from permdist.posterior.result import Posterior

    LogDensity = Callable[[FloatArray], float]

FEWEST = 50  # draws of all chains, on either side
MOST_STEPS, CLOSE = 1000, 1e-10
# Of the integral over the level of scores: its depth in log-density, and its nodes.
LEVEL_DEPTH, LEVEL_NODES = 40.0, 1001


@dataclass(frozen=True)
class Evidence:
    """The logarithm of a marginal likelihood.

    Attributes
    ----------
    log_evidence : float
    error : float
        Its standard error, which is the relative error of the marginal likelihood.
    draws : int
        The draws of the posterior that were used, besides those that the proposal was fitted to.
    n_iter : int
        Of the fixed-point iteration.
    """

    log_evidence: float
    error: float
    draws: int
    n_iter: int

    def __float__(self) -> float:
        return self.log_evidence

    def __str__(self) -> str:
        return f"{self.log_evidence:.4f} +- {self.error:.2g}"

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers as a data frame with one row."""
        return record_frame(self.__dict__)

    def _repr_html_(self) -> str:
        return record_html("Evidence", self.__dict__)


def bridge(posterior: Posterior, rng: RandomState) -> Evidence:
    """Return the evidence of a posterior; see `Posterior.log_evidence`.

    Parameters
    ----------
    posterior : Posterior
    rng : int, Generator or None
    """
    problem = posterior.problem
    found = FlatCoordinates(check_evidence(problem))
    draws = found.of_draws(posterior.flat).reshape(*posterior.draws.shape[:2], -1)
    return bridge_sampling(found.log_density, draws, rng=rng)


def check_evidence(problem: Problem) -> Smooth:
    """Return the problem; refuse one without a marginal likelihood that means something.

    Parameters
    ----------
    problem : Problem
    """
    if isinstance(problem, LinearPosterior):
        raise ValueError(
            f"evidence: the objective of {problem.family} is not a normalized likelihood; compare "
            "learners by the accuracy of their predictions (permdist compare, or loo())"
        )
    if not isinstance(problem, Smooth):
        raise ValueError(
            f"evidence: bridge sampling needs a log-density of unconstrained parameters, which "
            f"{problem.family} does not have; compare() compares models of any kind by their "
            "predictions"
        )
    try:
        problem.prior_draws(1, np.random.default_rng(0))
    except ValueError as error:
        raise ValueError(
            "evidence: with an improper prior there is no marginal likelihood; set a proper one "
            "for every parameter, such as prior=1.0, or with ties {'scores': Normal(0, 4), "
            "'log_ties': Normal(0, 4)}"
        ) from error
    return problem


class FlatCoordinates:
    """Orthonormal coordinates of the parameters, without the directions that are free.

    Parameters
    ----------
    problem : Smooth
    """

    def __init__(self, problem: Smooth) -> None:
        self._problem = problem
        free = problem.free
        self.basis = np.eye(problem.n_parameters)
        self._level = 0.0
        if free.shape[1]:
            self.basis = np.linalg.qr(np.hstack([free, self.basis]))[0][:, free.shape[1] :]
        if problem.has_levels:
            self._level = self._log_level(free[:, 0])

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return int(self.basis.shape[1])

    def of_draws(self, draws: FloatArray) -> FloatArray:
        """Return the coordinates of draws, shape (draws, size)."""
        problem: Any = self._problem
        if hasattr(problem, "parameters_of"):
            parameters = problem.parameters_of(draws)
        elif problem.n_parameters == problem.size and np.array_equal(
            problem.record(self.basis), self.basis
        ):
            parameters = draws
        else:
            raise ValueError(
                f"evidence: {problem.family} does not say which parameters belong to a draw; give "
                "it a method parameters_of(draws), or call bridge_sampling"
            )
        return np.asarray(parameters @ self.basis)

    def log_density(self, point: FloatArray) -> float:
        """Return the logarithm of prior times likelihood at coordinates (size,).

        Where the level of scores is drawn by itself, it is integrated out.
        """
        return self._problem.value(self.basis @ point) + self._level

    def to_draws(self, points: FloatArray) -> FloatArray:
        """Return the draws for coordinates (..., size), with a level of zero where it is free."""
        return self._problem.record(points @ self.basis.T)

    def _log_level(self, direction: FloatArray) -> float:
        """Integrate over the level of scores; the result is the same for all of them."""
        problem: Any = self._problem
        base = problem.projected(problem.mode.parameters[None])[0]
        value = problem.value(base)

        def gain(steps: FloatArray) -> FloatArray:
            draws = problem.record(base + np.outer(steps, direction))
            return np.asarray(problem.log_density(draws)) - value

        middle = float(minimize_scalar(lambda step: -gain(np.array([step]))[0]).x)
        top = gain(np.array([middle]))[0]
        ends = []
        for side in (-1.0, 1.0):
            width = 1e-6
            while gain(np.array([middle + side * width]))[0] > top - LEVEL_DEPTH and width < 1e6:
                width *= 2.0
            ends.append(middle + side * width)
        nodes = np.linspace(ends[0], ends[1], LEVEL_NODES)
        return float(special.logsumexp(gain(nodes)) + np.log(nodes[1] - nodes[0]))


def bridge_sampling(
    log_density: LogDensity,
    draws: ArrayLike,
    *,
    size: int | None = None,
    rng: RandomState = 0,
) -> Evidence:
    """Estimate the integral of a density from draws, by bridge sampling.

    A normal distribution is fitted to the first half of each chain. The estimate compares the
    second halves with as many draws from it, by the optimal bridge of Meng and Wong; the density
    is first averaged with its mirror image, so that skewness does no harm (Warp-III of Meng and
    Schilling).

    Parameters
    ----------
    log_density : callable
        The logarithm of the density at a point (k,), with all constants; -inf or NaN where it
        is 0.
    draws : array of float, shape (chain, draw, k) or (draw, k)
    size : int, optional
        The number of draws from the normal distribution; by default as many as of the posterior.
    rng : int, Generator or None

    Returns
    -------
    Evidence

    References
    ----------
    Meng and Wong, Simulating ratios of normalizing constants via a simple identity, Statistica
    Sinica 6 (1996), 831-860; Meng and Schilling, Warp bridge sampling, Journal of Computational
    and Graphical Statistics 11 (2002), 552-586. The error is that of Fruehwirth-Schnatter,
    Econometrics Journal 7 (2004), 143-167.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = bridge_sampling(lambda x: -0.5 * float(x @ x), rng.normal(size=(4, 500, 2)))
    >>> bool(abs(found.log_evidence - np.log(2.0 * np.pi)) < 0.01)
    True
    """
    table = finite("draws", draws)
    table = table[None] if table.ndim == 2 else table
    if table.ndim != 3 or not table.shape[2]:
        raise ValueError(f"draws: expected shape (chain, draw, k), got {table.shape}")
    generator, k = as_rng(rng), table.shape[2]
    half = table.shape[1] // 2
    fitted = table[:, :half].reshape(-1, k)
    used = table[:, half:]
    if len(fitted) < max(FEWEST, 2 * k):
        raise ValueError(
            f"draws: expected at least {2 * max(FEWEST, 2 * k)} of all chains together for "
            f"{k} parameters, got {table.shape[0] * table.shape[1]}"
        )
    center = fitted.mean(axis=0)
    root = np.linalg.cholesky(np.cov(fitted.T).reshape(k, k))
    log_volume = float(np.log(np.diagonal(root)).sum())
    n_used = used.shape[0] * used.shape[1]
    n_drawn = n_used if size is None else count("size", size, minimum=FEWEST)

    def mirrored(points: FloatArray) -> FloatArray:
        """Return the log-density at standardized points, averaged with its mirror image."""
        values = np.empty((2, len(points)))
        for row, moved in enumerate((points @ root.T, -points @ root.T)):
            values[row] = [log_density(center + step) for step in moved]
        values[~(values < np.inf)] = -np.inf
        return np.logaddexp(values[0], values[1]) - np.log(2.0) + log_volume

    standard = np.linalg.solve(root, (used.reshape(-1, k) - center).T).T
    drawn = generator.standard_normal((n_drawn, k))
    constant = 0.5 * k * np.log(2.0 * np.pi)
    # Logarithms of the ratio of both densities, at the draws of the one and of the other.
    ours = mirrored(standard) + 0.5 * (standard**2).sum(axis=1) + constant
    theirs = mirrored(drawn) + 0.5 * (drawn**2).sum(axis=1) + constant
    if not np.isfinite(ours).all():
        raise ValueError("draws: the log-density is not finite at some of them")
    effective = np.nan_to_num(diagnose(ours.reshape(*used.shape[:2], 1))["ess_bulk"], nan=n_used)
    share = float(min(effective[0], n_used))
    log_s1, log_s2 = np.log(share / (share + n_drawn)), np.log(n_drawn / (share + n_drawn))
    value = float(np.median(ours))
    steps = 0
    for steps in range(1, MOST_STEPS + 1):  # noqa: B007
        top = special.logsumexp(theirs - np.logaddexp(log_s1 + theirs, log_s2 + value))
        bottom = special.logsumexp(-np.logaddexp(log_s1 + ours, log_s2 + value))
        new = float(top - np.log(n_drawn) - bottom + np.log(n_used))
        done = abs(new - value) < CLOSE * (1.0 + abs(new))
        value = new
        if done:
            break
    first = np.exp(theirs - value - np.logaddexp(log_s1 + theirs - value, log_s2))
    second = np.exp(-np.logaddexp(log_s1 + ours - value, log_s2))
    tail = diagnose(second.reshape(*used.shape[:2], 1))["mcse"]
    relative = float(np.nan_to_num(tail[0])) / second.mean()
    error = np.sqrt(first.var() / first.mean() ** 2 / n_drawn + relative**2)
    return Evidence(value, float(error), n_used, steps)
