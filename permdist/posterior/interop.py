"""Log-densities with gradients for JAX, and so for NumPyro and BlackJAX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.posterior.luce import LucePosterior
from permdist.posterior.smooth import Smooth

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray
    from permdist.posterior.problem import Problem

    ValueAndGradient = Callable[[FloatArray], tuple[float, FloatArray]]


def to_jax(problem: Problem, *, prior: bool = True) -> Callable[[Any], Any]:
    """Return the log-density of a posterior as a function for JAX, with its gradient.

    The function takes an array of parameters and returns a scalar. It can be jitted and
    differentiated once, in reverse mode, and goes into ``numpyro.factor`` or a BlackJAX kernel;
    it is computed on the processor by the compiled code of this library. Switch JAX to 64 bits
    (``jax.config.update("jax_enable_x64", True)``), or values are rounded to seven digits.

    Parameters
    ----------
    problem : Problem
        A smooth one, as from `problem_of`: of `PlackettLuce`, `DavidsonLuce` or `GaussianScores`,
        or of a learner.
    prior : bool
        Whether the prior is part of it. Without it, it is the log-likelihood, for models with
        priors of their own; known for `PlackettLuce` and `DavidsonLuce`. A prior of scores
        relative to their mean says nothing about the mean; a density of the mean is then added,
        which makes no difference to scores relative to their mean.

    Returns
    -------
    callable

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> from permdist.posterior import problem_of
    >>> problem = problem_of(PlackettLuce, [[0, 1, 2], [1, 0, 2]], prior=1.0)
    >>> log_density = to_jax(problem)  # doctest: +SKIP
    >>> jax.grad(log_density)(jax.numpy.zeros(3))  # doctest: +SKIP
    Array([ 0.5      ,  0.5      , -1.       ], dtype=float64)
    """
    try:
        import jax
    except ImportError as error:
        raise ImportError("to_jax: needs JAX; pip install jax") from error

    both = value_and_gradient(problem, prior)

    def computed(theta: Any) -> tuple[Any, Any]:
        array = np.asarray(theta)
        value, gradient = both(array.astype(np.float64))
        return np.asarray(value, dtype=array.dtype), gradient.astype(array.dtype)

    def called(theta: Any) -> Any:
        theta = jax.numpy.asarray(theta, dtype=float)
        shape: Any = jax.ShapeDtypeStruct
        shapes = shape((), theta.dtype), shape(theta.shape, theta.dtype)
        return jax.pure_callback(computed, shapes, theta, vmap_method="sequential")

    @jax.custom_vjp  # type: ignore[untyped-decorator, unused-ignore]
    def log_density(theta: Any) -> Any:
        return called(theta)[0]

    def backward(gradient: Any, outer: Any) -> tuple[Any]:
        return (outer * gradient,)

    log_density.defvjp(called, backward)
    found: Callable[[Any], Any] = log_density
    return found


def value_and_gradient(problem: Problem, prior: bool = True) -> ValueAndGradient:
    """Return a function that computes a log-density and its gradient.

    Parameters
    ----------
    problem : Problem
    prior : bool
        Whether the prior is part of it.
    """
    if not isinstance(problem, Smooth):
        raise TypeError(
            f"problem: expected a smooth one, such as that of PlackettLuce, got "
            f"{type(problem).__name__} ({problem.family})"
        )
    n = problem.n_parameters
    if isinstance(problem, LucePosterior):
        found = _luce(problem, prior)
    elif not prior:
        raise ValueError(
            f"prior: the log-likelihood by itself is known for PlackettLuce and DavidsonLuce, not "
            f"for {problem.family}; use prior=True"
        )
    else:
        found = _smooth(problem)

    def checked(theta: FloatArray) -> tuple[float, FloatArray]:
        if theta.shape != (n,):
            raise ValueError(f"expected {n} parameters of {problem.family}, got {theta.shape}")
        if not np.isfinite(theta).all():  # where a sampler has diverged
            return -np.inf, np.zeros(n)
        return found(theta)

    return checked


def _luce(problem: LucePosterior, prior: bool) -> ValueAndGradient:
    """Return the log-density by kernels, and its gradient without second derivatives."""
    likelihood = problem.likelihood
    lengths = {
        "scores": problem.n_scores,
        "covariates": len(problem.covariate_names),
        "log_ties": len(problem.sizes),
    }

    def found(theta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = 0.0, np.zeros(len(theta))
        if likelihood is not None:
            weights = likelihood.ballots.weights
            each = likelihood.log_likelihoods(theta)
            value = float(each @ (weights * likelihood.importance))
            rows = likelihood.slopes(theta)
            gradient = likelihood.pulled(np.asarray(rows.T @ weights))
        if not prior:
            return value, gradient
        begin = 0
        for name, length in lengths.items():
            if length:
                part = slice(begin, begin + length)
                more, slope, _ = problem.priors[name].derivatives(theta[part])
                value, begin = value + more, begin + length
                gradient[part] += slope
        return _kept(problem, theta, value, gradient)

    return found


def _smooth(problem: Smooth) -> ValueAndGradient:
    """Return the log-density of any smooth posterior, and its gradient."""
    given: Any = problem
    relative = given.prior.relative(problem.n_parameters) if problem.has_levels else None

    def found(theta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient, _ = problem.derivatives(theta)
        if relative is not None:  # chains know the prior of scores without their level only
            for prior, sign in ((relative, -1.0), (given.prior, 1.0)):
                more, slope, _ = prior.derivatives(theta)
                value, gradient = value + sign * more, gradient + sign * slope
        return _kept(problem, theta, value, gradient)

    return found


def _kept(
    problem: Smooth, theta: FloatArray, value: float, gradient: FloatArray
) -> tuple[float, FloatArray]:
    """Keep chains of others from drifting away in directions of which nothing is known."""
    if not problem.free.shape[1] or problem.has_levels:
        return value, gradient
    more, slope, _ = problem.hold(theta)
    return value + more, gradient + slope
