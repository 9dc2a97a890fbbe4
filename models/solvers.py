"""Solvers: how ``objective(X w) + |w|^2 / C`` is minimized over w.

Each takes an objective (a function of all scores that returns the values of the queries and the
gradient by the scores), the features, a start and C, and returns a `Solution`. None of them knows
of learners.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from permdist._typing import FloatArray, IntArray

FLAT = 1e-13
UNCHANGED = "the objective does not change with the scores"
SMALL = 5_000_000  # entries of a matrix whose products gain nothing from several threads
IDLE = 30  # a plane that carried no weight so many times goes
SHORTEST = 0.05
NOTHING = 1e-12  # a value that is so small beside the risk at 0 is no different from 0
STEEP = 1e4  # a square of slopes that is larger beside the heights may be lost to rounding
STALLED = 10  # programs in a row that were not solved and brought nothing
WASTE = 2e9  # elementary operations of programs that were not solved; some seconds
MAX_STEPS = 100  # an interior point method that works takes far fewer

Objective = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
Note = Callable[..., bool]


class Solution(NamedTuple):
    """What a solver came to.

    Attributes
    ----------
    w : array of float, shape (features,)
    value : float
        ``objective(X w) + |w|^2 / C``.
    lower : float
        No w has a smaller value than this; minus infinity where nothing is known.
    converged : bool
        Whether the solver stopped because nothing was left to gain.
    message : str
        Why it stopped.
    starts : tuple of float
        What each start came to, where there were several.
    """

    w: FloatArray
    value: float
    lower: float = -np.inf
    converged: bool = False
    message: str = ""
    starts: tuple[float, ...] = ()


def _ignore(w: FloatArray, **values: float) -> bool:  # noqa: ARG001
    return False


def lbfgs(
    objective: Objective,
    X: FloatArray,
    start: FloatArray | None,
    C: float = np.inf,
    *,
    tol: float = 1e-5,
    gain: float = 1e-12,
    memory: int = 20,
    max_iter: int = 200,
    note: Note = _ignore,
) -> Solution:
    """Minimize a smooth objective by L-BFGS.

    Parameters
    ----------
    objective : callable
    X : array of float, shape (documents, features)
    start : array of float, shape (features,), or None
        Where to start; from zeros by default.
    C : float
        The larger, the weaker the penalty; infinite for none.
    tol : float
        The largest entry of the gradient, relative to that at the start where this is below 1.
    gain : float
        Stop where an iteration gains no more than this, relative to the value.
    memory : int
        Past steps that the curvature is estimated from.
    max_iter : int
    note : callable, optional
        Called at every iteration with w, ``objective=`` and ``gradient=``, its largest entry; True
        stops.

    Returns
    -------
    Solution

    Examples
    --------
    >>> def squares(scores):
    ...     return (scores - 1.0) ** 2, 2.0 * (scores - 1.0)
    >>> lbfgs(squares, np.eye(2), None).w.round(6)
    array([1., 1.])
    """
    seen: dict[bytes, tuple[float, float]] = {}

    def whole(w: FloatArray) -> tuple[float, FloatArray]:
        values, by_scores = objective(X @ w)
        value = float(values.sum()) + float(w @ w) / C
        gradient = X.T @ by_scores + 2.0 / C * w
        seen.clear()
        seen[w.tobytes()] = (value, float(np.abs(gradient).max()))
        return value, gradient

    def told(w: FloatArray) -> None:
        value, steepest = seen.get(w.tobytes()) or (np.nan, np.nan)
        if note(w, objective=value, gradient=steepest):
            raise StopIteration

    begin = np.zeros(X.shape[1]) if start is None else start
    by_scores = objective(X @ begin)[1]
    # The tolerance is relative to the first gradient, where features are small.
    steepest = float(np.abs(X.T @ by_scores + 2.0 / C * begin).max())
    with few_threads(X.size):
        result = optimize.minimize(
            whole,
            begin,
            jac=True,
            method="L-BFGS-B",
            callback=told,
            options={
                "maxiter": max_iter,
                "gtol": tol * min(1.0, steepest),
                "ftol": gain,
                "maxcor": memory,
            },
        )
    converged = bool(result.success) or steepest < FLAT
    flat = float(np.abs(by_scores).max()) < FLAT
    message = UNCHANGED if flat else str(result.message)
    return Solution(np.array(result.x), float(result.fun), converged=converged, message=message)


def cutting_planes(
    objective: Objective,
    X: FloatArray,
    start: FloatArray | None,
    C: float,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    note: Note = _ignore,
) -> Solution:
    """Minimize a convex objective that is never negative, smooth or not, with a certificate.

    Every plane is a lower bound of the objective that touches it somewhere; the largest of them is
    minimized by a small quadratic program, whose value is a lower bound of the minimum.

    Parameters
    ----------
    objective : callable
        Its gradient may be any subgradient.
    X : array of float, shape (documents, features)
    start : array of float, shape (features,), or None
    C : float
        Finite.
    tol : float
        The largest difference between the value and its lower bound, relative to the value.
    max_iter : int
    note : callable, optional
        Called at every iteration with the best w so far, ``objective=`` and ``lower=``; True stops.

    Returns
    -------
    Solution

    Notes
    -----
    Where slopes are so steep, or C so large, that the square of w is lost to rounding beside the
    objective, quadratic programs are not solved to their tolerance. Where that brings the search
    to a halt, C is taken ten times smaller. The value and its lower bound are those of the C that
    was asked for, so that such a minimum is not called converged unless it is.
    """
    if not np.isfinite(C):
        raise ValueError("C: expected a finite number, cutting planes need the square of w")
    width = X.shape[1]
    slopes = np.zeros((1, width))  # the objective is never below 0: the first plane
    heights, idle = np.zeros(1), np.zeros(1, dtype=np.int64)
    gram = np.zeros((1, 1))
    best = np.zeros(width) if start is None else np.array(start)
    best_value, lower, converged, message = np.inf, 0.0, False, "max_iter"
    point, step, improved = np.array(best), 1.0, False
    used, stalled, narrowest, wasted = C, 0, np.inf, 0.0
    with few_threads(X.size):
        for _ in range(max_iter):
            values, by_scores = objective(X @ point)
            value, slope = float(values.sum()), X.T @ by_scores
            whole = value + float(point @ point) / C
            if whole < best_value:
                improved, step = np.isfinite(best_value), min(1.0, 2.0 * step)
                best, best_value = point, whole
            else:
                # Before anything has improved, the first steps may be too long by any factor.
                step = max(SHORTEST, 0.5 * step) if improved else 0.1 * step
            products = slopes @ slope
            gram = np.block([[gram, products[:, None]], [products[None, :], slope @ slope]])
            slopes = np.concatenate([slopes, slope[None, :]])
            heights = np.append(heights, value - slope @ point)
            idle = np.append(idle, 0)
            weights, solved = _dual(0.5 * used * gram, heights)
            highest = float(np.abs(heights).max())
            gap = best_value - lower
            wasted += 0.0 if solved else MAX_STEPS * float(len(heights)) ** 3
            stalled = 0 if solved or gap < 0.99 * narrowest else stalled + 1
            narrowest = min(narrowest, gap)
            while (stalled == STALLED or weights is None) and (
                0.5 * used * gram.max() > STEEP * highest
            ):
                used, stalled = 0.1 * used, 0
                weights, solved = _dual(0.5 * used * gram, heights)
            if weights is None:
                message = "a quadratic program was not solved"
                warnings.warn(
                    "the quadratic program of the cutting planes was not solved; the best "
                    f"coefficients so far are off by {best_value - lower:.3g} at most",
                    ConvergenceWarning,
                    stacklevel=2,
                )
                break
            direction = weights @ slopes
            lower = max(lower, float(weights @ heights - 0.25 * C * direction @ direction))
            # The minimum over the planes can be far from where they touch: stay near the best.
            point = best + step * (-0.5 * used * direction - best)
            if note(best, objective=best_value, lower=lower):
                message = "stopped"
                break
            if best_value - lower <= max(tol * best_value, NOTHING * highest):
                converged, message = True, "the duality gap is closed"
                break
            if wasted > WASTE:
                message = "quadratic programs were not solved"
                break
            idle = np.where(weights > 1e-6 * weights.max(), 0, idle + 1)
            kept = idle < IDLE
            slopes, heights, idle = slopes[kept], heights[kept], idle[kept]
            gram = gram[np.ix_(kept, kept)]
    return Solution(best, best_value, lower, converged, message)


def stochastic(
    objective: Callable[[int, int, FloatArray, FloatArray, FloatArray], Any],
    X: FloatArray,
    start: FloatArray | None,
    C: float,
    *,
    ptr: IntArray,
    rng: np.random.Generator,
    learning_rate: float = 0.01,
    max_iter: int = 100,
    note: Note = _ignore,
) -> Solution:
    """Follow the gradient of one query after the other, in a new order in each pass.

    Parameters
    ----------
    objective : callable
        Called with the first query, the one after the last, all scores, and arrays that it fills:
        values of shape (queries,) and a gradient of shape (documents,).
    X : array of float, shape (documents, features)
    start : array of float, shape (features,), or None
    C : float
    ptr : array of int, shape (queries + 1,)
        Where each query starts.
    rng : numpy.random.Generator
    learning_rate : float
        The size of steps.
    max_iter : int
        Passes over the queries.
    note : callable, optional
        Called after each pass with w and ``objective=``; True stops.

    Returns
    -------
    Solution
        Never called converged.
    """
    n = len(ptr) - 1
    parts = [np.ascontiguousarray(X[ptr[q] : ptr[q + 1]]) for q in range(n)]
    w = np.zeros(X.shape[1]) if start is None else np.array(start)
    scores, values, gradient = np.zeros(len(X)), np.zeros(n), np.zeros(len(X))
    shrink, value = 2.0 * learning_rate / (float(C) * n), np.nan
    for _ in range(max_iter):
        for q in rng.permutation(n).tolist():
            a, b = ptr[q], ptr[q + 1]
            scores[a:b] = parts[q] @ w
            objective(q, q + 1, scores, values, gradient)
            w = (w - learning_rate * (gradient[a:b] @ parts[q])) / (1.0 + shrink)
        scores[:] = X @ w
        objective(0, n, scores, values, gradient)
        value = float(values.sum()) + float(w @ w) / float(C)
        if note(w, objective=value):
            break
    return Solution(w, value, message="max_iter")


def multistart(
    solve: Callable[[FloatArray], Solution],
    start: FloatArray,
    n_starts: int,
    rng: np.random.Generator,
    *,
    merit: Callable[[Solution], float] = lambda solution: solution.value,
) -> Solution:
    """Solve from a start and from points near it, and return the solution of the least merit.

    Parameters
    ----------
    solve : callable
        Takes a start, returns a `Solution`.
    start : array of float, shape (features,)
    n_starts : int
    rng : numpy.random.Generator
        Of the points near the start.
    merit : callable, optional
        What to choose by; the value by default.

    Returns
    -------
    Solution
        With the values of all starts in `starts`.
    """
    found: list[Solution] = []
    for number in range(n_starts):
        spread = 0.0 if number == 0 else 0.5 * max(1.0, float(np.abs(start).max()))
        found.append(solve(start + spread * rng.normal(size=len(start))))
    best = min(range(n_starts), key=[merit(one) for one in found].__getitem__)
    return found[best]._replace(starts=tuple(one.value for one in found))


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def few_threads(size: int) -> AbstractContextManager[Any]:
    """Keep linear algebra on one thread where matrices are small.

    The many small products of an optimizer gain nothing from more, and wait for threads that
    other work keeps busy.
    """
    return _libraries().limit(limits=1, user_api="blas") if size < SMALL else nullcontext()


def _dual(hessian: FloatArray, heights: FloatArray) -> tuple[FloatArray | None, bool]:
    """Maximize ``heights @ a - a @ hessian @ a / 2`` over weights a that add up to 1.

    Returns the weights, None where there are none to speak of, and whether they are good to the
    tolerance.
    """
    import piqp

    n = len(heights)
    # What is to be told apart are the heights: they decide the size of the numbers.
    unit = max(float(np.abs(heights).max()), 1e-300)
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = 1e-10
    solver.settings.eps_rel = 1e-10
    solver.settings.max_iter = MAX_STEPS
    solver.setup(
        hessian / unit,
        -heights / unit,
        np.ones((1, n)),
        np.ones(1),
        None,
        None,
        None,
        np.zeros(n),
        np.full(n, np.inf),
    )
    solved = solver.solve() == piqp.PIQP_SOLVED
    found = np.maximum(np.asarray(solver.result.x), 0.0)
    total = float(found.sum())
    if not (solved or 0.99 < total < 1.01):
        return None, False
    return found / total, solved
