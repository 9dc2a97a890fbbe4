"""Stochastic steps: the gradient of one query after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from permdist.models.scaling import inverse
from permdist.models.solvers.solution import Solution, ignore
from permdist.models.solvers.total import linear_scores

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray
    from permdist.models.scaling import Scaling
    from permdist.models.solvers.solution import Note


def stochastic(
    objective: Callable[[int, int, FloatArray, FloatArray, FloatArray], Any],
    X: Rows | FloatArray,
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
    X : array of float, shape (documents, features), or Table
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
    n = len(ptr) - 1
    table: Rows = _Array(X, ptr) if isinstance(X, np.ndarray) else X
    roots = np.ones(table.width)
    if scaling is not None:
        roots = np.sqrt(scaling.penalty) * (scaling.spread > 0.0)
    factors = inverse(roots)
    z = np.zeros(table.width) if start is None else roots * start
    scores, values, gradient = np.zeros(int(ptr[-1])), np.zeros(n), np.zeros(int(ptr[-1]))
    shrink, value = 2.0 * learning_rate / (float(C) * n), np.nan
    for _ in range(max_iter):
        for q in rng.permutation(n).tolist():
            a, b = ptr[q], ptr[q + 1]
            part = table.query(q)
            scores[a:b] = part @ (factors * z)
            objective(q, q + 1, scores, values, gradient)
            slope = factors * (gradient[a:b] @ part)
            z = (z - learning_rate * slope) / (1.0 + shrink)
        scores[:] = table.scores(factors * z)
        objective(0, n, scores, values, gradient)
        value = float(values.sum()) + float(z @ z) / float(C)
        if note(factors * z, objective=value):
            break
    return Solution(factors * z, value, message="max_iter")


class Rows(Protocol):
    """Features by queries."""

    width: int

    def query(self, number: int) -> FloatArray:
        """Return the features of a query, shape (documents, features)."""

    def scores(self, w: FloatArray) -> FloatArray:
        """Return the scores of all documents."""


class _Array:
    """An array of features by queries."""

    def __init__(self, X: FloatArray, ptr: IntArray) -> None:
        self.X, self.ptr, self.width = X, ptr, X.shape[1]

    def query(self, number: int) -> FloatArray:
        return self.X[self.ptr[number] : self.ptr[number + 1]]

    def scores(self, w: FloatArray) -> FloatArray:
        return linear_scores(self.X, w)
