"""L-BFGS in variables of similar curvature, with an estimate of the gap to the minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize

from permdist.models.scaling import Scaling, inverse
from permdist.models.solvers.solution import UNCHANGED, Solution, ignore, one_thread
from permdist.models.solvers.total import as_total

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.models.solvers.solution import Note, Objective
    from permdist.models.solvers.total import Total

FLAT = 1e-13
PROBE = 1e-3  # how far to step, in units of spread, to see how an objective curves
RECENT = 10  # steps whose curvature tells how far the minimum may be
MOST_RESTARTS = 3
ROUNDED = 1e-5  # where rounding ends the search, this gap is still called a minimum


def lbfgs(
    objective: Total | Objective,
    *data: Any,
    scaling: Scaling | None = None,
    ptr: IntArray | None = None,
    tol: float = 1e-6,
    memory: int = 20,
    max_iter: int = 1000,
    origin: FloatArray | None = None,
    note: Note = ignore,
) -> Solution:
    """Minimize a smooth objective by L-BFGS, in variables of similar curvature.

    Parameters
    ----------
    objective : Total, or callable
        A sum over queries as a function of w; or a function of all scores.
    *data
        Behind a total: ``start, C``; behind a function of scores: ``X, start, C``. X are the
        features, shape (documents, features); `start` is where to start, shape (features,), or
        None for zeros; the larger C, the weaker the penalty, infinite for none and by default.
    scaling : Scaling, optional
        Units of the features, and factors of the penalty; all 1 by default.
    ptr : array of int, shape (queries + 1,), optional
        Where each query starts, to note the share of queries without a gradient; a total knows.
    tol : float
        When to stop: the gap between the value and the minimum, relative to what has been gained
        since the start, or to a thousandth of the value where that is more.
    memory : int
        Past steps that the curvature is estimated from.
    max_iter : int
    origin : array of float, shape (features,), optional
        From where on to count what has been gained; the start by default.
    note : callable, optional
        Called at every iteration with w, ``objective=``, ``gradient=``, its norm in scaled
        variables, ``gap=`` and, where queries are known, ``silent=``, the share of queries without
        a gradient; True stops.

    Returns
    -------
    Solution

    Notes
    -----
    Variables are scaled so that the penalty, and the objective along a random direction, have
    curvature 1. In these variables the gap is at most ``|gradient|^2 / (2 curvature)`` with the
    smallest curvature. That of the penalty is a lower bound where the objective is convex; where
    it is larger, the smallest curvature that the last steps have met is taken instead, so that
    the gap is an estimate.

    Examples
    --------
    >>> def squares(scores):
    ...     return (scores - 1.0) ** 2, 2.0 * (scores - 1.0)
    >>> lbfgs(squares, np.eye(2), None).w.round(6)
    array([1., 1.])
    """
    total, start, C = as_total(objective, data, ptr)
    smooth = _Smooth(total, C, scaling or Scaling.plain(total.width))
    begin = np.zeros(total.width) if start is None else start
    with one_thread():
        smooth.scale_at(begin)
        if origin is not None:
            smooth.first = max(smooth.first, smooth.raw(origin)[0])
        search = _Search(smooth, tol, note)
        u, message, left = begin * smooth.units, "", max_iter
        while left > 0:
            result = optimize.minimize(
                smooth,
                u,
                jac=True,
                method="L-BFGS-B",
                callback=search,
                options={"maxiter": left, "gtol": 0.0, "ftol": 0.0, "maxcor": memory},
            )
            message = str(result.message)
            if search.steps:  # of a line search that failed, nothing is kept
                u = search.point
            left = max_iter - search.steps
            # Rounding can end a line search: go on from there with a memory of nothing.
            if search.done or search.gives_up():
                break
        value, gradient = smooth(u)
    gap = search.gap_at(value, gradient)
    ended = left > 0 and gap <= max(tol, ROUNDED)
    converged = gap <= tol or ended or smooth.flat_start
    if smooth.flat_start:
        message = UNCHANGED
    elif converged:
        message = "the gap is closed"
    elif left <= 0:
        message = "max_iter"
    return Solution(u * smooth.factors, value, converged=converged, message=message, gap=gap)


class _Smooth:
    """An objective with its penalty as a function of scaled variables ``u = units * w``."""

    def __init__(self, total: Total, C: float, scaling: Scaling) -> None:
        self.total, self.scaling = total, scaling
        self.ridge = 2.0 / C * scaling.penalty * (scaling.spread > 0.0)
        self.flat, self.silent = False, 0.0
        self.last = np.zeros(0), np.inf, np.zeros(0)

    def raw(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient by the coefficients."""
        found = self.total(w)
        self.flat = found.steepest < FLAT
        self.silent = found.silent / max(1, self.total.n_queries)
        value = found.value + 0.5 * float(self.ridge @ w**2)
        return value, found.gradient + self.ridge * w

    def scale_at(self, w: FloatArray) -> None:
        """Choose the units by the curvature at w."""
        factors = self.scaling.factors
        signs = np.where(np.random.default_rng(0).random(len(w)) < 0.5, -1.0, 1.0)
        direction = signs * factors / np.sqrt(max(1, int(np.count_nonzero(factors))))
        self.first, gradient = self.raw(w)
        flat = self.flat
        _, further = self.raw(w + PROBE * direction)
        self.flat_start = flat and self.flat
        curvature = float((further - gradient - PROBE * self.ridge * direction) @ direction) / PROBE
        steepness = float(np.linalg.norm(gradient * factors))
        if not curvature > 1e-9 * steepness:
            curvature = steepness if steepness > 0.0 else 1.0
        self.units = np.sqrt(curvature * self.scaling.spread**2 + self.ridge)
        self.factors = inverse(self.units)
        self.last = w * self.units, self.first, gradient * self.factors
        # The penalty alone bends the objective by so much in every direction.
        bent = self.units > 0.0
        self.convexity = float((self.ridge[bent] / self.units[bent] ** 2).min(initial=1.0))

    def __call__(self, u: FloatArray) -> tuple[float, FloatArray]:
        if not np.array_equal(u, self.last[0]):
            value, gradient = self.raw(u * self.factors)
            self.last = np.array(u), value, gradient * self.factors
        return self.last[1:]


class _Search:
    """Follows L-BFGS: when to stop, and what to note."""

    def __init__(self, smooth: _Smooth, tol: float, note: Note) -> None:
        self.smooth, self.tol, self.note = smooth, tol, note
        self.steps, self.done = 0, False
        self.point, self.value = np.zeros(0), np.inf
        self._curvatures: list[float] = []
        self._before: tuple[FloatArray, FloatArray] | None = None
        self._restarts, self._lowest = 0, np.inf

    def gap_at(self, value: float, gradient: FloatArray) -> float:
        """Return how far the value may be from the minimum, relative to what was gained."""
        bent = max(self.smooth.convexity, min(self._curvatures[-RECENT:], default=1.0))
        first = self.smooth.first
        gained = min(max(first - value, 1e-3 * abs(value)), abs(value))
        size = max(gained, 1e-6 * abs(first), 1e-300)
        return float(gradient @ gradient) / (2.0 * bent * size)

    def __call__(self, intermediate_result: Any) -> None:
        """Note one iteration of scipy's L-BFGS-B; raise StopIteration to stop."""
        u = intermediate_result.x
        value, gradient = self.smooth(u)
        if self._before is not None:
            step, change = u - self._before[0], gradient - self._before[1]
            length = float(step @ step)
            if length > 0.0:
                self._curvatures.append(max(float(step @ change) / length, 1e-300))
        self._before = np.array(u), np.array(gradient)
        self.point, self.value = self._before[0], value
        self.steps += 1
        gap = self.gap_at(value, gradient)
        values = {"objective": value, "gradient": float(np.linalg.norm(gradient)), "gap": gap}
        if self.smooth.total.n_queries:
            values["silent"] = self.smooth.silent
        stop = self.note(u * self.smooth.factors, **values)
        if stop or (gap <= self.tol and len(self._curvatures) > 0):
            self.done = True
            raise StopIteration

    def gives_up(self) -> bool:
        """Return whether another start is of no use: the last one gained nothing, or too many."""
        gained = self.steps > 0 and not self._lowest - self.value <= 1e-12 * abs(self.value)
        self._lowest, self._before = min(self._lowest, self.value), None
        self._restarts += 1
        return not gained or self._restarts > MOST_RESTARTS
