"""Cutting planes: convex objectives, smooth or not, with a lower bound of the minimum."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from permdist.models.scaling import inverse
from permdist.models.solvers.solution import Solution, ignore, one_thread
from permdist.models.solvers.total import as_total

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.models.scaling import Scaling
    from permdist.models.solvers.solution import Note, Objective
    from permdist.models.solvers.total import Total

IDLE = 30  # a plane that carried no weight so many times goes
SHORTEST = 0.05
NOTHING = 1e-12  # a value that is so small beside the risk at 0 is no different from 0
STEEP = 1e4  # a square of slopes that is larger beside the heights may be lost to rounding
STALLED = 10  # programs in a row that were not solved and brought nothing
WASTE = 2e9  # elementary operations of programs that were not solved; some seconds
WIDE = 500  # features; a program in more of them takes too long
MAX_STEPS = 100  # an interior point method that works takes far fewer


def cutting_planes(
    objective: Total | Objective,
    *data: Any,
    scaling: Scaling | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    note: Note = ignore,
) -> Solution:
    """Minimize a convex objective that is never negative, smooth or not, with a certificate.

    Every plane is a lower bound of the objective that touches it somewhere; the largest of them is
    minimized by a small quadratic program, whose value is a lower bound of the minimum.

    Parameters
    ----------
    objective : Total, or callable
        A sum over queries as a function of w; or a function of all scores. Its gradient may be any
        subgradient.
    *data
        Behind a total: ``start, C``; behind a function of scores: ``X, start, C``. X are the
        features, shape (documents, features); `start` is where to start, shape (features,), or
        None for zeros; C is finite, the larger, the weaker the penalty.
    scaling : Scaling, optional
        Units of the features, and factors of the penalty; all 1 by default.
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
    total, start, C = as_total(objective, data, None)
    if not np.isfinite(C):
        raise ValueError("C: expected a finite number, cutting planes need the square of w")
    width = total.width
    # In variables z = roots * w the penalty is a plain square.
    roots = np.ones(width)
    if scaling is not None:
        roots = np.sqrt(scaling.penalty) * (scaling.spread > 0.0)
    factors = inverse(roots)
    slopes = np.zeros((1, width))  # the objective is never below 0: the first plane
    heights, idle = np.zeros(1), np.zeros(1, dtype=np.int64)
    gram = np.zeros((1, 1))
    best = np.zeros(width) if start is None else roots * start
    best_value, lower, converged, message = np.inf, 0.0, False, "max_iter"
    point, step, improved = np.array(best), 1.0, False
    used, stalled, narrowest, wasted = C, 0, np.inf, 0.0
    with one_thread():
        for _ in range(max_iter):
            value, gradient = total(factors * point)[:2]
            slope = factors * gradient
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
            weights, solved, target = _program(slopes, gram, heights, used)
            highest = float(np.abs(heights).max())
            gap = best_value - lower
            wasted += 0.0 if solved else MAX_STEPS * float(len(heights)) ** 3
            stalled = 0 if solved or gap < 0.99 * narrowest else stalled + 1
            narrowest = min(narrowest, gap)
            while (stalled == STALLED or weights is None) and (
                0.5 * used * gram.max() > STEEP * highest
            ):
                used, stalled = 0.1 * used, 0
                weights, solved, target = _program(slopes, gram, heights, used)
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
            point = best + step * (target - best)
            if note(factors * best, objective=best_value, lower=lower):
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
    gap = (best_value - lower) / max(abs(best_value), 1e-300)
    return Solution(factors * best, best_value, lower, converged, message, gap=gap)


def _program(
    slopes: FloatArray, gram: FloatArray, heights: FloatArray, C: float
) -> tuple[FloatArray | None, bool, FloatArray]:
    """Minimize ``max(slopes @ z + heights) + |z|^2 / C``.

    Returns the weights of the planes, None where there are none to speak of, whether they are good
    to the tolerance, and z. Where squares of slopes would be lost to rounding, as with features in
    raw units and a penalty in the same, the program is solved in z.
    """
    steep = 0.5 * C * gram.max() > STEEP * float(np.abs(heights).max())
    if steep and slopes.shape[1] <= WIDE:
        weights, solved, z = _primal(slopes, heights, C)
        if weights is not None:
            return weights, solved, z
    weights, solved = _dual(0.5 * C * gram, heights)
    z = np.zeros(slopes.shape[1]) if weights is None else -0.5 * C * (weights @ slopes)
    return weights, solved, z


def _primal(
    slopes: FloatArray, heights: FloatArray, C: float
) -> tuple[FloatArray | None, bool, FloatArray]:
    """Do as `_program`, in the entries of z, each in a unit of its own."""
    import piqp

    n, width = slopes.shape
    height = max(float(np.abs(heights).max()), 1e-300)
    steepest = np.abs(slopes).max(axis=0)
    units = height * inverse(steepest)  # entries without a slope stay at 0
    free = np.full(width + 1, np.inf)
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = 1e-11
    solver.settings.eps_rel = 1e-11
    solver.settings.max_iter = MAX_STEPS
    solver.setup(
        np.diag(np.append(2.0 / (C * height) * units**2 + (steepest == 0.0), 0.0)),
        np.append(np.zeros(width), 1.0),
        None,
        None,
        np.column_stack([slopes * units / height, -np.ones(n)]),
        np.full(n, -np.inf),
        -heights / height,
        -free,
        free,
    )
    solved = solver.solve() == piqp.PIQP_SOLVED
    found = np.maximum(np.asarray(solver.result.z_u), 0.0)
    total = float(found.sum())
    z = units * np.asarray(solver.result.x)[:width]
    if not (solved or 0.99 < total < 1.01):
        return None, False, z
    return found / total, solved, z


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
