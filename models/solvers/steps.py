"""Stochastic steps: the gradient of one query after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.models.scaling import inverse
from permdist.models.solvers.solution import Solution, ignore

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray
    from permdist.models.scaling import Scaling
    from permdist.models.solvers.solution import Note


def stochastic(
    objective: Callable[[int, int, FloatArray, FloatArray, FloatArray], Any],
    X: FloatArray,
    start: FloatArray | None,
    C: float,
    *,
    ptr: IntArray,
    rng: np.random.Generator,
    scaling: Scaling | None = None,
    learning_rate: float = 0.01,
    max_iter: int = 100,
    note: Note = ignore,
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
    scaling : Scaling, optional
        Units of the features, and factors of the penalty; all 1 by default.
    learning_rate : float
        The size of steps, in the variables whose squares are the penalty.
    max_iter : int
        Passes over the queries.
    note : callable, optional
        Called after each pass with w and ``objective=``; True stops.

    Returns
    -------
    Solution
        Never called converged.
    """
    n, width = len(ptr) - 1, X.shape[1]
    roots = np.ones(width)
    if scaling is not None:
        roots = np.sqrt(scaling.penalty) * (scaling.spread > 0.0)
    factors = inverse(roots)
    parts = [X[ptr[q] : ptr[q + 1]] * factors for q in range(n)]
    z = np.zeros(width) if start is None else roots * start
    scores, values, gradient = np.zeros(len(X)), np.zeros(n), np.zeros(len(X))
    shrink, value = 2.0 * learning_rate / (float(C) * n), np.nan
    for _ in range(max_iter):
        for q in rng.permutation(n).tolist():
            a, b = ptr[q], ptr[q + 1]
            scores[a:b] = parts[q] @ z
            objective(q, q + 1, scores, values, gradient)
            z = (z - learning_rate * (gradient[a:b] @ parts[q])) / (1.0 + shrink)
        scores[:] = X @ (factors * z)
        objective(0, n, scores, values, gradient)
        value = float(values.sum()) + float(z @ z) / float(C)
        if note(factors * z, objective=value):
            break
    return Solution(factors * z, value, message="max_iter")
