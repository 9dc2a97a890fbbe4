"""Newton's method for likelihoods of rankings, with a certificate of how exact the result is.

Such a likelihood depends on differences of scores only, and its second derivatives are those of
a network: minus them is a Laplacian, a matrix of non-negative conductances between items. It is
solved by eliminating items without a single subtraction, which keeps all digits however
different the conductances are, in a fixed order, which keeps all bits on any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from permdist._check import finite
from permdist._kernels import kernel
from permdist.inference.conjugate import descend

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray

MAX_TOL = 0.01
EPSILON = float(np.finfo(np.float64).eps)


class Equations(Protocol):
    """The second derivatives at some scores."""

    certain: bool  # whether the error of a solution is known, not guessed from its residual

    def solve(self, right: FloatArray, precision: float) -> FloatArray:
        """Return the solution with mean 0 for a right-hand side that adds up to 0."""
        ...

    def rounding(self) -> float:
        """Return how far rounding errors of the gradient can move any score."""
        ...


class PrecisionError(RuntimeError):
    """Rounding errors alone may move a score by more than is tolerated."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """Scores that add up to 0, the steps it took, a bound of their error, the last equations."""

    scores: FloatArray
    n_iter: int
    accuracy: float
    equations: Equations


def check_tol(tol: float) -> float:
    """Return the tolerance as a float, or say what is wrong with it."""
    value = float(finite("tol", tol, ndim=0))
    if not 0.0 < value <= MAX_TOL:
        raise ValueError(f"tol: expected a number above 0 and up to {MAX_TOL:g}, got {value:g}")
    return value


@np.errstate(all="ignore")
def minimize(
    objective: Callable[[FloatArray], tuple[Callable[[], float], FloatArray]],
    system: Callable[[FloatArray], Equations],
    start: FloatArray,
    max_iter: int,
    tol: float,
    reach: Callable[[FloatArray], float] = lambda _scores: 1.0,
    remedy: str = "raise tol or add regularization",
) -> Optimum:
    """Minimize a convex function of differences of scores.

    It ends when a Newton step moves no score by more than `tol`, and rounding errors cannot do
    so either; this last step is taken, too. The function is self-concordant: where no two
    scores move apart by more than its reach, a Newton step is sure to lead down, so that no step
    need be judged by a change of value too small to be seen.

    Parameters
    ----------
    objective : callable
        Returns the value, as a function that is called where it matters, and the gradient (n,),
        which is NaN where the scores are too far apart.
    system : callable
        Returns the equations of a Newton step at given scores.
    start : array of float, shape (n,)
    max_iter : int
    tol : float
    reach : callable
        Returns the reach at given scores: 1 where third derivatives are differences of scores
        times second ones at most, as they are for logarithms of sums of exponentials.
    remedy : str
        What to do where floats are not precise enough.

    Raises
    ------
    RuntimeError
        Where this cannot be reached, with the reason and what to do.
    """
    scores = start - start.mean()
    value, gradient = objective(scores)
    precision, rounding = 1e-2, np.inf
    for iteration in range(max_iter + 1):
        equations = system(scores)
        step = equations.solve(gradient, precision)
        largest = float(np.abs(step).max())
        if largest <= max(tol, 1e-3) and rounding == np.inf:
            rounding = equations.rounding()
        if not largest < np.inf or not (rounding <= tol or largest > max(tol, 1e-3)):
            raise PrecisionError(
                f"fit: rounding errors alone may move a score by {rounding:.1g}, more than the "
                f"{tol:g} tolerated: the ballots' weights differ too much, or the scores are "
                f"too far apart; {remedy}"
            )
        if largest <= tol and not equations.certain:
            step = equations.solve(gradient, 1e-8)
            largest = float(np.abs(step).max())
        if largest <= tol:
            scores = scores - step
            accuracy = largest + rounding + 2.0 * EPSILON * float(np.abs(scores).max())
            return Optimum(scores - scores.mean(), iteration, accuracy, equations)
        if iteration == max_iter:
            break
        precision = min(max(largest, 1e-3), 1e-2)
        size, slope = 1.0, float((gradient * step).sum())
        span = float(np.ptp(step)) / reach(scores)
        while True:
            trial = scores - size * step
            new_value, new_gradient = objective(trial)
            ahead = float((new_gradient * step).sum())
            safe = size * span <= 1.0
            # Still downhill at the end, or lower: the function is convex.
            if not np.isnan(ahead) and (
                safe or ahead >= 0.0 or new_value() <= value() - 1e-4 * size * slope
            ):
                break
            if safe:
                raise RuntimeError(
                    f"fit: scores that are {np.ptp(trial):.0f} apart cannot be told from "
                    "infinity; leave out items that nearly always win or lose, or add "
                    "regularization"
                )
            size = max(0.5 * size, min(1.0, 1.0 / span))
        scores, value, gradient = trial, new_value, new_gradient
    raise RuntimeError(
        f"fit: not converged after {max_iter} steps, the next one would move a score by "
        f"{largest:.1e}; raise max_iter or add regularization"
    )


class Network:
    """Laplacian equations by elimination.

    Parameters
    ----------
    conductances : array of float, shape (n, n)
        Symmetric and non-negative; the diagonal does not count.
    errors : callable
        Returns how far rounding may have moved each component of the gradient, shape (n,).
    """

    def __init__(self, conductances: FloatArray, errors: Callable[[], FloatArray]) -> None:
        weight = conductances.sum(axis=1) - np.diagonal(conductances)
        # The item that is tied most firmly to the others is the one that the others refer to.
        self.firm = int(weight.argmax())
        self.sequence = np.r_[np.delete(np.arange(len(weight)), self.firm), self.firm]
        self.factor = conductances[self.sequence][:, self.sequence]
        self.pivots = _eliminate(self.factor)
        self.errors, self.certain = errors, True

    def solve(self, right: FloatArray, precision: float = 0.0) -> FloatArray:
        """Return the solution with mean 0; `precision` does not matter here."""
        del precision
        result = self._relative(right)
        return result - result.mean()

    def rounding(self) -> float:
        """Return how far the gradient's errors can move any score."""
        return float(self._relative(self.errors()).max())

    def inverse(self) -> FloatArray:
        """Return the pseudo-inverse, shape (n, n)."""
        n = len(self.pivots)
        inverse = _invert(self.factor, self.pivots)
        result = np.empty((n, n))
        result[np.ix_(self.sequence, self.sequence)] = inverse
        level = result.mean(axis=0)
        result -= level
        result -= (level - level.mean())[:, None]
        return (result + result.T) / 2.0

    def _relative(self, right: FloatArray) -> FloatArray:
        """Return the solution with 0 for the last item eliminated."""
        result = np.empty(len(right))
        result[self.sequence] = _substitute(self.factor, self.pivots, right[self.sequence])
        return result


class Products:
    """Laplacian equations by conjugate gradients, for many items or a matrix that is dear.

    Parameters
    ----------
    product : callable
        Multiplies the matrix with a vector.
    roughly : callable
        Solves equations that are much like these.
    errors : array of float, shape (n,)
        How far rounding may have moved each component of the gradient.
    firm : int
        An item that is tied firmly to the others.
    neglected : float
        An error of a score that need not be mended, where `roughly` tells errors well.
    blur : float
        The relative error of products, with respect to `roughly`.
    """

    def __init__(
        self,
        product: Callable[[FloatArray], FloatArray],
        roughly: Callable[[FloatArray], FloatArray],
        errors: FloatArray,
        firm: int,
        neglected: float = 0.0,
        blur: float = 0.0,
    ) -> None:
        self.product, self.roughly, self.errors, self.firm = product, roughly, errors, firm
        self.neglected, self.certain, self.blur = neglected, neglected > 0.0, blur

    def solve(self, right: FloatArray, precision: float) -> FloatArray:
        """Return the solution with mean 0.

        What remains is roughly below `precision` of it, or within the errors of the gradient.
        """
        return self._descend(right, precision)[0]

    def rounding(self) -> float:
        """Return how far the gradient's errors can move any score."""
        large = self.errors * 1e12  # well above what is taken for rounding
        if self.certain:
            return 2.0 * float(np.ptp(self.solve(large, 0.1))) / 1e12
        # Ties that are weaker than the products' errors, relative to the firm ones, are not
        # seen; what remains of a solution may be as much larger as they are weaker.
        anything = np.random.default_rng(0).normal(size=len(large)) * large
        weakest = self._descend(anything, 1e-10)[1]
        moved = 2.0 * float(np.ptp(self.solve(large, 0.1 * weakest))) / 1e12
        return max(moved, EPSILON / weakest) if self.blur < 1e-3 * weakest else np.inf

    def _descend(self, right: FloatArray, precision: float) -> tuple[FloatArray, float]:
        """Return the solution and the least eigenvalue met on the way, relative to `roughly`."""
        balanced = right.copy()
        balanced[self.firm] -= right.sum()  # rounding, which the weaker ones must not bear

        def is_done(result: FloatArray, residual: FloatArray, remains: FloatArray) -> bool:
            small = max(precision * float(np.abs(result).max()), self.neglected)
            return bool(np.abs(remains).max() <= small or (np.abs(residual) <= self.errors).all())

        found = descend(self.product, self.roughly, balanced, is_done, 10 * len(right))
        return found.solution - found.solution.mean(), found.least


# ---- kernels: conductances (n, n), of which the part above the diagonal counts -----------------


@kernel
def _eliminate(matrix: FloatArray) -> FloatArray:
    """Eliminate all items but the last, in place; return the pivots (n,), the last one 0.

    Row k is completed with what the items before it hand on, four of them at a time.
    """
    n = len(matrix)
    pivots = np.zeros(n)
    shares = np.empty(4)
    for k in range(n):
        row = matrix[k]
        p = 0
        while p + 4 <= k:
            for q in range(4):
                shares[q] = matrix[p + q, k] / pivots[p + q]
            a, b, c, d = shares
            one, two, three, four = matrix[p], matrix[p + 1], matrix[p + 2], matrix[p + 3]
            for j in range(k + 1, n):
                row[j] += (a * one[j] + b * two[j]) + (c * three[j] + d * four[j])
            p += 4
        while p < k:
            share = matrix[p, k] / pivots[p]
            for j in range(k + 1, n):
                row[j] += share * matrix[p, j]
            p += 1
        total = 0.0
        for j in range(k + 1, n):
            total += row[j]
        pivots[k] = total
    return pivots


@kernel
def _substitute(matrix: FloatArray, pivots: FloatArray, right: FloatArray) -> FloatArray:
    """Solve for a right-hand side (n,), with 0 for the last item."""
    n = len(right)
    result = right.copy()
    for k in range(n - 1):
        share = result[k] / pivots[k]
        for j in range(k + 1, n):
            result[j] += share * matrix[k, j]
        result[k] = share
    result[n - 1] = 0.0
    for k in range(n - 2, -1, -1):
        total = 0.0
        for j in range(k + 1, n):
            total += matrix[k, j] * result[j]
        result[k] += total / pivots[k]
    return result


@kernel
def _invert(matrix: FloatArray, pivots: FloatArray) -> FloatArray:
    """Invert with the last item at 0, from the last row up, shape (n, n)."""
    n = len(pivots)
    result = np.zeros((n, n))
    for k in range(n - 2, -1, -1):
        row = result[k]
        p = k + 1
        while p + 4 <= n - 1:
            a, b = matrix[k, p] / pivots[k], matrix[k, p + 1] / pivots[k]
            c, d = matrix[k, p + 2] / pivots[k], matrix[k, p + 3] / pivots[k]
            one, two, three, four = result[p], result[p + 1], result[p + 2], result[p + 3]
            for j in range(k + 1, n):
                row[j] += (a * one[j] + b * two[j]) + (c * three[j] + d * four[j])
            p += 4
        while p < n - 1:
            share = matrix[k, p] / pivots[k]
            for j in range(k + 1, n):
                row[j] += share * result[p, j]
            p += 1
        total = 1.0
        for j in range(k + 1, n):
            total += matrix[k, j] * row[j]
            result[j, k] = row[j]
        row[k] = total / pivots[k]
    return result
