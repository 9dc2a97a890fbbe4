"""Cutting planes: the minimum of a convex risk and the square of w, with a certificate.

Every plane is a lower bound of the risk that touches it somewhere; the largest of them is
minimized by a small quadratic program, whose value is a lower bound of the minimum.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from permdist._typing import FloatArray
from permdist.models.descent import Descent, Loss, few_threads
from permdist.models.history import Watch

IDLE = 30  # a plane that carried no weight so many times goes
SHORTEST = 0.05
NOTHING = 1e-12  # a value that is so small beside the risk at 0 is no different from 0
STEEP = 1e4  # a square of slopes that is larger beside the heights may be lost to rounding
STALLED = 10  # programs in a row that were not solved and brought nothing
WASTE = 2e9  # elementary operations of programs that were not solved; some seconds
MAX_STEPS = 100  # an interior point method that works takes far fewer

Risk = Callable[[FloatArray], tuple[float, FloatArray]]
Note = Callable[[FloatArray, float, float], bool]


class Minimum(NamedTuple):
    """What cutting planes came to.

    Attributes
    ----------
    w : array of float
    value : float
        ``risk(w) + |w|^2 / C``.
    lower : float
        No w has a smaller value than this.
    converged : bool
        Whether the two are as close as was asked for.
    planes : int
    """

    w: FloatArray
    value: float
    lower: float
    converged: bool
    planes: int


def minimize(
    risk: Risk,
    start: FloatArray,
    C: float,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    note: Note | None = None,
) -> Minimum:
    """Minimize ``risk(w) + |w|^2 / C`` for a convex risk that is never negative.

    Parameters
    ----------
    risk : callable
        Takes w; returns the risk and a subgradient.
    start : array of float, shape (features,)
    C : float
        Finite.
    tol : float
        The largest difference between the value and its lower bound, relative to the value.
    max_iter : int
    note : callable, optional
        Called with the best w so far, its value and the lower bound; True stops.

    Returns
    -------
    Minimum

    Notes
    -----
    Where slopes are so steep, or C so large, that the square of w is lost to rounding beside the
    risk, quadratic programs are not solved to their tolerance. Where that brings the search to
    a halt, C is taken ten times smaller. The value and its lower bound are those of the C that was
    asked for, so that such a minimum is not called converged unless it is.
    """
    if not np.isfinite(C):
        raise ValueError("C: expected a finite number, cutting planes need the square of w")
    slopes = np.zeros((1, len(start)))  # a risk is never below 0: the first plane
    heights, idle = np.zeros(1), np.zeros(1, dtype=np.int64)
    gram = np.zeros((1, 1))
    best, best_value, lower, converged = np.array(start), np.inf, 0.0, False
    point, step, improved = np.array(start), 1.0, False
    used, stalled, narrowest, wasted = C, 0, np.inf, 0.0
    for _ in range(max_iter):
        value, slope = risk(point)
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
        while (stalled == STALLED or weights is None) and 0.5 * used * gram.max() > STEEP * highest:
            used, stalled = 0.1 * used, 0
            weights, solved = _dual(0.5 * used * gram, heights)
        if weights is None:
            warnings.warn(
                "the quadratic program of the cutting planes was not solved; the best "
                f"coefficients so far are off by {best_value - lower:.3g} at most",
                ConvergenceWarning,
                stacklevel=2,
            )
            break
        direction = weights @ slopes
        lower = max(lower, float(weights @ heights - 0.25 * C * direction @ direction))
        # The minimum over the planes can be far away from where they touch: stay near the best.
        point = best + step * (-0.5 * used * direction - best)
        if note is not None and note(best, best_value, lower):
            break
        if best_value - lower <= max(tol * best_value, NOTHING * highest):
            converged = True
            break
        if wasted > WASTE:
            break
        idle = np.where(weights > 1e-6 * weights.max(), 0, idle + 1)
        kept = idle < IDLE
        slopes, heights, idle = slopes[kept], heights[kept], idle[kept]
        gram = gram[np.ix_(kept, kept)]
    return Minimum(best, best_value, lower, converged, len(heights))


def learn_by_planes(
    learner: Descent, loss: Loss, features: FloatArray, watch: Watch, start: FloatArray
) -> None:
    """Minimize a loss that is convex but not smooth; set `coef_` and `converged_`."""
    held_out = watch.held_out

    def risk(w: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = loss(features @ w)
        return value, features.T @ gradient

    def note(w: FloatArray, value: float, lower: float) -> bool:
        scores = None if held_out is None else held_out.X @ w
        return watch.note(np.array(w), scores, objective=value, lower=lower)

    params = learner.get_params(deep=False)
    with few_threads(features.size):
        found = minimize(
            risk,
            start,
            float(params["C"]),
            tol=learner._tolerance(),
            max_iter=params["max_iter"],
            note=note,
        )
    early = watch.stops_early and watch.best is not None
    learner.coef_ = watch.best if early else found.w
    learner.converged_ = found.converged
    if not (found.converged or early):
        gap = (found.value - found.lower) / found.value
        warnings.warn(
            f"{type(learner).__name__}: stopped with a duality gap of {gap:.2g} of the objective; "
            "use a smaller C, smaller features (normalize=True) or a larger max_iter",
            ConvergenceWarning,
            stacklevel=5,
        )


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
