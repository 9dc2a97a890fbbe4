"""The bootstrap of contests of two, in one compiled loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.inference.results import Fit

# Newton steps that resampled weights may need; what needs more is left to the general way.
MAX_STEPS = 12
SINGULAR = 1e-13


class Duels(NamedTuple):
    """Contests of two as arrays, one entry for each different result."""

    first: IntArray
    second: IntArray
    tied: BoolArray
    strength: float

    @classmethod
    def of(cls, fit: Fit) -> Duels | None:
        """Return the contests behind a fit; None where it is of anything else."""
        likelihood = fit.likelihood
        data = likelihood.ballots
        strength = getattr(fit.penalty, "strength", 0.0 if fit.penalty is None else None)
        general = (
            strength is None
            or likelihood.design is not None
            or likelihood.n_covariates
            or likelihood.offset.any()
            or likelihood.shift is not None
            or likelihood.tie_sizes not in ((), (2,))
            or (likelihood.importance != 1.0).any()
            or (np.diff(data.ptr) != 2).any()
            or (data.signs < 0).any()
        )
        if general:
            return None
        pairs = data.items.reshape(-1, 2)
        tied = data.sizes[data.stages[:-1]] == 2
        columns = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
        return cls(*columns, tied, float(strength or 0.0))

    def refit(
        self, start: FloatArray, n_items: int, weights: FloatArray, tol: float
    ) -> tuple[FloatArray, BoolArray]:
        """Return parameters for each row of weights (replicates, results), and which are good.

        The others need the general way.
        """
        return _refit(*self, weights, start, n_items, tol)


@kernel
def _refit(
    first: IntArray,
    second: IntArray,
    tied: BoolArray,
    strength: float,
    weights: FloatArray,
    start: FloatArray,
    n: int,
    tol: float,
) -> tuple[FloatArray, BoolArray]:
    """Repeat Newton's method from `start`: scores, and the logarithm of delta if there is one."""
    size = len(start)
    result, good = np.empty((len(weights), size)), np.zeros(len(weights), np.bool_)
    gradient, matrix = np.empty(size), np.empty((size, size))
    for replicate in range(len(weights)):
        at = result[replicate]
        for i in range(size):
            at[i] = start[i]
        for _ in range(MAX_STEPS):
            _derivatives(first, second, tied, weights[replicate], at, n, gradient, matrix)
            mean, scale = 0.0, 0.0
            for i in range(n):
                mean += at[i] / n
                scale += matrix[i, i] / n
            for i in range(n):
                gradient[i] -= strength * (at[i] - mean)
                matrix[i, i] += strength
                for j in range(n):
                    matrix[i, j] += scale / n  # nothing depends on the sum of the scores
            if not _solve(matrix, gradient):
                break
            level, largest = 0.0, 0.0
            for i in range(n):
                level += gradient[i] / n
            for i in range(size):
                if i < n:
                    gradient[i] -= level
                largest = max(largest, abs(gradient[i]))
                at[i] += gradient[i]
            if not largest < 3.0:
                break
            if largest <= tol:
                good[replicate] = True
                break
    return result, good


@kernel
def _derivatives(
    first: IntArray,
    second: IntArray,
    tied: BoolArray,
    weights: FloatArray,
    at: FloatArray,
    n: int,
    gradient: FloatArray,
    matrix: FloatArray,
) -> None:
    """Fill in the gradient and minus the second derivatives, the lower half of these."""
    size = len(at)
    delta = np.exp(at[n]) if size > n else 0.0
    for i in range(size):
        gradient[i] = 0.0
        for j in range(size):
            matrix[i, j] = 0.0
    for k in range(len(first)):
        weight = weights[k]
        if weight == 0.0:
            continue
        i, j = first[k], second[k]
        gap = at[i] - at[j]
        root = np.exp(-abs(gap) / 2.0)
        total = 1.0 + root * root + delta * root
        win, loss, both = 1.0 / total, root * root / total, delta * root / total
        if gap < 0.0:
            win, loss = loss, win
        slope = weight * ((0.5 if tied[k] else 1.0) - win - 0.5 * both)
        gradient[i] += slope
        gradient[j] -= slope
        held = weight * (win * loss + 0.25 * both * (win + loss))
        matrix[i, i] += held
        matrix[j, j] += held
        matrix[i, j] -= held
        matrix[j, i] -= held
        if size > n:
            gradient[n] += weight * ((1.0 if tied[k] else 0.0) - both)
            matrix[n, n] += weight * both * (1.0 - both)
            turn = 0.5 * weight * both * (loss - win)
            matrix[n, i] += turn
            matrix[n, j] -= turn


@kernel
def _solve(matrix: FloatArray, right: FloatArray) -> bool:
    """Solve by Cholesky's method, in place of the right-hand side; False if it is singular.

    Only the lower half of the matrix counts; it is overwritten.
    """
    size = len(right)
    for i in range(size):
        scale = matrix[i, i]
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i == j:
                if not total > SINGULAR * scale:
                    return False
                matrix[i, i] = np.sqrt(total)
            else:
                matrix[i, j] = total / matrix[j, j]
    for i in range(size):
        total = right[i]
        for k in range(i):
            total -= matrix[i, k] * right[k]
        right[i] = total / matrix[i, i]
    for i in range(size - 1, -1, -1):
        total = right[i]
        for k in range(i + 1, size):
            total -= matrix[k, i] * right[k]
        right[i] = total / matrix[i, i]
    return True
