"""Conjugate gradients for symmetric equations, with the least eigenvalue met on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import linalg

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray

TINY = float(np.finfo(np.float64).tiny)


class Descent(NamedTuple):
    """What conjugate gradients have found.

    Attributes
    ----------
    solution : array of float, shape (n,)
        NaN where they have not come to an end.
    residual : array of float, shape (n,)
        What the equations still lack.
    least : float
        The least eigenvalue met, relative to the equations that are much like these.
    steps : int
    """

    solution: FloatArray
    residual: FloatArray
    least: float
    steps: int


def descend(
    product: Callable[[FloatArray], FloatArray],
    roughly: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    is_done: Callable[[FloatArray, FloatArray, FloatArray], bool],
    max_iter: int,
) -> Descent:
    """Solve symmetric, positive semidefinite equations.

    Parameters
    ----------
    product : callable
        Multiplies the matrix with a vector.
    roughly : callable
        Solves equations that are much like these (a preconditioner).
    right : array of float, shape (n,)
        Within the range of the matrix.
    is_done : callable
        Says when to stop, from the solution so far, the residual, and `roughly` of the residual.
    max_iter : int

    Examples
    --------
    >>> matrix = np.array([[2.0, -1.0], [-1.0, 2.0]])
    >>> found = descend(
    ...     lambda x: matrix @ x,
    ...     lambda x: x / 2.0,
    ...     np.array([1.0, 0.0]),
    ...     lambda solution, residual, remains: bool(np.abs(residual).max() < 1e-12),
    ...     10,
    ... )
    >>> found.solution.round(3), found.steps, round(found.least, 3)
    (array([0.667, 0.333]), 2, 0.5)
    """
    residual, result = right.copy(), np.zeros(len(right))
    remains = roughly(residual)
    direction, energy = remains.copy(), float((residual * remains).sum())
    lengths: list[float] = []
    ratios: list[float] = []
    for step in range(max_iter):
        if is_done(result, residual, remains):
            return Descent(result, residual, _least(lengths, ratios), step)
        image = product(direction)
        curvature = float((direction * image).sum())
        if not 0.0 < curvature < np.inf:
            break
        length = energy / curvature
        result += length * direction
        residual -= length * image
        remains = roughly(residual)
        before, energy = energy, float((residual * remains).sum())
        lengths.append(length)
        ratios.append(energy / before)
        direction = remains + ratios[-1] * direction
    return Descent(np.full(len(right), np.nan), residual, TINY, len(lengths))


def _least(lengths: list[float], ratios: list[float]) -> float:
    """Return the least eigenvalue that conjugate gradients have met, from their coefficients."""
    if not lengths:
        return 1.0
    inverse, ratio = 1.0 / np.array(lengths), np.array(ratios)
    diagonal, beside = inverse.copy(), np.sqrt(ratio[:-1]) * inverse[:-1]
    diagonal[1:] += ratio[:-1] * inverse[:-1]
    values = linalg.eigh_tridiagonal(diagonal, beside, True, "i", (0, 0))
    return max(float(values[0]), TINY)
