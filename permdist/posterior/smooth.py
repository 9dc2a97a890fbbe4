"""Smooth posteriors: the mode and its curvature by Newton's method, then chains on ellipses."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from permdist.inference.fit import NoEstimateError, check_connected
from permdist.posterior import ellipse
from permdist.posterior.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray
    from permdist.ballots import Ballots

    Derivatives = Callable[[FloatArray], tuple[float, FloatArray, FloatArray]]

# Chains start at draws from the Gaussian that are wider by this factor.
SPREAD = 2.0
# Draws that are discarded at most: a chain forgets its start in about ten.
TUNE = 100
# Newton's method ends when a step is worth less than this in log-density, twice over, and leaves
# the curvature as it was: towards a maximum at infinity both vanish. It takes this many tries.
TOLERANCE, TRIES = 1e-10, 5
# The least pivot, relative to the diagonal, that is not rounding.
SINGULAR = 1e-12
# The largest change of a parameter in one step, and the largest parameter.
LONGEST, FARTHEST = 5.0, 1e6


class ImproperPosteriorError(ValueError):
    """A posterior that cannot be normalized, or whose log-density has no curvature somewhere."""


@dataclass(frozen=True, eq=False)
class Mode:
    """The maximum of a log-density.

    Parameters
    ----------
    parameters : array of float, shape (p,)
    value : float
    curvature : array of float, shape (p, p)
        Minus the second derivatives.
    gap : float
        How far below the maximum the value is at most, in the quadratic that Newton's method
        sees: half the square of its decrement.
    n_iter : int
    """

    parameters: FloatArray
    value: float
    curvature: FloatArray
    gap: float
    n_iter: int


class Smooth(Problem):
    """A posterior with two derivatives, for elliptical slice sampling.

    Subclasses say what the logarithm of prior times likelihood is; they need to be log-concave,
    or nearly so around the mode.
    """

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """The number p of parameters that chains move in."""

    @abstractmethod
    def value(self, parameters: FloatArray) -> float:
        """Return the logarithm of prior times likelihood; NaN or -inf where it is 0."""

    @abstractmethod
    def derivatives(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the value, the gradient (p,) and minus the second derivatives (p, p)."""

    @abstractmethod
    def record(self, parameters: FloatArray) -> FloatArray:
        """Return the draws for parameters (..., p), shape (..., size)."""

    @property
    def free(self) -> FloatArray:
        """An orthonormal basis (p, r) of the directions in which the value never changes."""
        return np.zeros((self.n_parameters, 0))

    def hold(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return a log-density of free directions, its gradient, minus its second derivatives.

        It keeps chains from drifting away, and makes no difference to draws.
        """
        free, scale = self.free, self._scale_of_free
        away = parameters @ free
        value = -0.5 * scale * float(away @ away)
        return value, -scale * (free @ away), scale * (free @ free.T)

    @cached_property
    def _scale_of_free(self) -> float:
        diagonal = np.diagonal(self.derivatives(self.first_guess)[2])
        within = diagonal[(self.free != 0.0).any(axis=1)]
        return max(float(within.mean()), 1e-6) if len(within) else 1.0

    @property
    def first_guess(self) -> FloatArray:
        """Parameters to begin the search for the mode with."""
        return np.zeros(self.n_parameters)

    @cached_property
    def mode(self) -> Mode:
        """The most probable parameters."""
        return find_mode(self._held_derivatives, self.first_guess)

    @cached_property
    def reference(self) -> ellipse.Reference:
        """The Gaussian that chains move around."""
        mode = self.mode
        found = ellipse.reference(self._held, mode.parameters, mode.curvature)
        return ellipse.refined(found, self._pilot) if self.makes_pilots else found

    @property
    def makes_pilots(self) -> bool:
        """Whether some transitions are made to find a better Gaussian where that at the mode fails.

        They are the same in every run: the Gaussian is a property of the posterior.
        """
        return False

    def _pilot(
        self, found: ellipse.Reference, size: int, every: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return parameters after each of some transitions, and coordinates x if asked to."""
        rng, p = np.random.default_rng(0), self.n_parameters
        state = ellipse.start(self._held, found, rng, 1.0)
        thetas, values, nothing = np.empty((size, p)), np.empty(size), np.empty(0)
        xs = np.empty((size if every else 0, p))
        if not every:
            self._advance(found, state, thetas, values, nothing, rng)
        for step in range(len(xs)):
            here = slice(step, step + 1)
            state = self._advance(found, state, thetas[here], values[here], nothing, rng)
            xs[step] = found.center + state[p : 2 * p]
        return thetas, xs

    def default_tune(self, draws: int) -> int:
        """Return how many draws a chain discards at its beginning unless told otherwise."""
        return min(draws, TUNE)

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Return the state of a chain at a start that is spread wider than the posterior."""
        return ellipse.start(self._held, self.reference, rng, SPREAD)

    def advance(
        self,
        state: FloatArray,
        draws: FloatArray,
        log_density: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Make one transition per row of `draws`, and return the state after the last."""
        thetas = np.empty((len(draws), self.n_parameters))
        uniforms = np.empty(len(draws) if self.has_levels else 0)
        new = self._advance(self.reference, state, thetas, log_density, uniforms, rng)
        found = self.projected(thetas)
        if self.has_levels:
            log_density += self.add_levels(found, uniforms)
        draws[:] = self.record(found)
        return new

    def _advance(
        self,
        found: ellipse.Reference,
        state: FloatArray,
        thetas: FloatArray,
        values: FloatArray,
        uniforms: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Make a transition per row of `thetas`; as `ellipse.advance`, with `value` as values."""
        new = ellipse.advance(self._held, found, state, thetas, values, uniforms, rng)
        if self.free.shape[1]:
            values -= [self.hold(theta)[0] for theta in thetas]
        return new

    @property
    def has_levels(self) -> bool:
        """Whether `add_levels` draws what free directions leave open."""
        return False

    def add_levels(self, parameters: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Draw the parts of parameters (steps, p) in free directions, in place.

        Parameters
        ----------
        parameters : array of float, shape (steps, p)
        uniforms : array of float, shape (steps,)

        Returns
        -------
        array of float, shape (steps,)
            What to add to the log-densities.
        """
        del parameters
        return np.zeros(len(uniforms))

    def coordinates(self, draws: FloatArray) -> FloatArray:
        """Return draws (..., size) in coordinates without restrictions, (..., r).

        They are those of a density: lengths are the same as those of the parameters that the
        priors are densities of, also where scores add up to 0.
        """
        result: FloatArray = self.parameters_of(draws) @ self._basis
        return result

    def log_density(self, coordinates: FloatArray) -> FloatArray:
        """Return the logarithm of prior times likelihood at such coordinates (m, r), shape (m,)."""
        parameters = np.asarray(coordinates, dtype=np.float64) @ self._basis.T
        return np.array([self.log_density_at(theta) for theta in parameters])

    def parameters_of(self, draws: FloatArray) -> FloatArray:
        """Return the parameters that the priors are densities of, for draws (..., size)."""
        return draws

    def log_density_at(self, parameters: FloatArray) -> float:
        """Return the logarithm of prior times likelihood of these parameters (p,)."""
        return self.value(parameters)

    @cached_property
    def _basis(self) -> FloatArray:
        """An orthonormal basis (p, r) of the space that draws fill."""
        free = self.free
        if self.has_levels or not free.shape[1]:
            return np.eye(self.n_parameters)
        full, _ = np.linalg.qr(free, mode="complete")
        return full[:, free.shape[1] :]

    def projected(self, parameters: FloatArray) -> FloatArray:
        """Return parameters (..., p) without their parts in free directions."""
        if not self.free.shape[1]:
            return parameters
        return parameters - ellipse.times(ellipse.times(parameters, self.free), self._free_rows)

    @cached_property
    def _free_rows(self) -> FloatArray:
        return np.ascontiguousarray(self.free.T)

    def _held(self, parameters: FloatArray) -> float:
        """Return the value, with the density of free directions; -inf for NaN."""
        value = self.value(parameters)
        if self.free.shape[1]:
            value += self.hold(parameters)[0]
        return value if value < np.inf else -np.inf

    def _held_derivatives(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        found = self.derivatives(parameters)
        return added(found, self.hold(parameters)) if self.free.shape[1] else found


def added(
    first: tuple[float, FloatArray, FloatArray], second: tuple[float, FloatArray, FloatArray]
) -> tuple[float, FloatArray, FloatArray]:
    """Return the sums of values, gradients and second derivatives."""
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]


def find_mode(derivatives: Derivatives, start: FloatArray, max_iter: int = 200) -> Mode:
    """Maximize a log-density by Newton's method.

    Parameters
    ----------
    derivatives : callable
        Returns the value, the gradient (p,) and minus the second derivatives (p, p).
    start : array of float, shape (p,)
    max_iter : int

    Raises
    ------
    ImproperPosteriorError
        Where the log-density has no maximum with a curvature in all directions.
    """
    parameters = np.array(start, dtype=np.float64)
    value, gradient, curvature = derivatives(parameters)
    tries = 0
    for iteration in range(max_iter):
        step = _newton_step(curvature, gradient)
        slope = float(gradient @ step)
        if slope <= TOLERANCE:
            parameters = parameters + step
            value, gradient, curvature = derivatives(parameters)
            following = _newton_step(curvature, gradient)
            if 0.5 * slope <= float(step @ curvature @ step) <= 2.0 * slope:
                rest = max(float(gradient @ following), 0.0)
                return Mode(parameters, value, curvature, 0.5 * rest, iteration + 1)
            tries += 1
            if tries == TRIES:
                raise ImproperPosteriorError(_no_mode("it keeps growing, and becomes flat"))
            continue
        size = min(1.0, LONGEST / float(np.abs(step).max()))
        while True:
            trial = parameters + size * step
            new = derivatives(trial)
            near = slope <= 1e-9 * (1.0 + abs(value))  # a gain that rounding hides
            if np.isfinite(new[0]) and (near or new[0] >= value + 1e-4 * size * slope):
                break
            size *= 0.5
            if size < 1e-12:
                raise ImproperPosteriorError(_no_mode("it cannot be increased, nor is it flat"))
        parameters, (value, gradient, curvature) = trial, new
        if np.abs(parameters).max() > FARTHEST:
            break
    raise ImproperPosteriorError(_no_mode("it keeps growing far away from its start"))


def _newton_step(curvature: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solve for the step, in units in which the diagonal is 1."""
    diagonal = np.diagonal(curvature)
    if not np.isfinite(curvature).all() or not (diagonal > 0.0).all():
        raise ImproperPosteriorError(_no_mode("its curvature is not positive"))
    scale = 1.0 / np.sqrt(diagonal)
    try:
        factor = np.linalg.cholesky(curvature * scale[:, None] * scale)
    except np.linalg.LinAlgError as error:
        raise ImproperPosteriorError(_no_mode("it is flat in some direction")) from error
    if float(np.diagonal(factor).min()) ** 2 < SINGULAR:
        raise ImproperPosteriorError(_no_mode("it is flat in some direction"))
    solution: FloatArray = scale * linalg.cho_solve((factor, True), scale * gradient)
    return solution


def explain_disconnected(ballots: Ballots, remedy: str) -> None:
    """Raise an error that names the items for which scores without a prior have no maximum.

    Parameters
    ----------
    ballots : Ballots
        Nothing happens if wins and ties connect all items.
    remedy : str
    """
    try:
        check_connected(ballots)
    except NoEstimateError as error:
        reason = str(error).partition("exists, ")[2].partition("; ")[0]
        raise ImproperPosteriorError(
            f"prior: the posterior is improper without one: {reason}; {remedy}, or leave these "
            "items out (Ballots.without)"
        ) from error


def _no_mode(reason: str) -> str:
    return (
        f"prior: the posterior is improper, or too flat to find its mode: {reason}; set a proper "
        "prior such as permdist.posterior.Normal(0, 4), or a stronger one"
    )
