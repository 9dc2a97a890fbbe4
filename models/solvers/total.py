"""What solvers minimize: a sum over queries as a function of the coefficients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import pieces
from permdist.models.solvers.tree import fold, join

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.models.solvers.solution import Objective

SILENT = 1e-9  # a gradient so small, for scores in units of their spread, moves nothing
HEAD = 3  # numbers of a part before its gradient


class Evaluation(NamedTuple):
    """An objective at some coefficients, without the penalty.

    Attributes
    ----------
    value : float
    gradient : array of float, shape (features,)
    steepest : float
        The largest derivative by a score.
    silent : int
        The number of queries whose gradient vanishes.
    """

    value: float
    gradient: FloatArray
    steepest: float
    silent: int


def part_of(values: FloatArray, by_scores: FloatArray, ptr: IntArray | None) -> list[float]:
    """Return the numbers of a part before its gradient: value, steepest slope, silent queries."""
    size = np.abs(by_scores)
    silent = 0
    if ptr is not None and len(size):
        silent = int(np.count_nonzero(np.maximum.reduceat(size, ptr[:-1]) <= SILENT))
    return [float(values.sum()), float(size.max(initial=0.0)), float(silent)]


def add_parts(rows: FloatArray) -> Evaluation:
    """Add up the parts of an evaluation along a fixed tree, whoever has computed them.

    Parameters
    ----------
    rows : array of float, shape (blocks, 3 + features)
        Of each block of queries its value, its steepest slope, the number of its silent queries
        and its gradient.

    Examples
    --------
    >>> add_parts(np.array([[1.0, 0.2, 0.0, 5.0], [2.0, 0.1, 1.0, 7.0]]))
    Evaluation(value=3.0, gradient=array([12.]), steepest=0.2, silent=1)
    """
    return evaluation_of(join(fold(rows)))


def evaluation_of(row: FloatArray) -> Evaluation:
    """Return the evaluation whose numbers stand in one row, the sum of all parts."""
    return Evaluation(float(row[0]), np.array(row[HEAD:]), float(row[1]), int(row[2]))


class Total(ABC):
    """A sum over queries as a function of the coefficients, with its gradient.

    Attributes
    ----------
    width : int
        The number of coefficients.
    n_queries, n_documents : int
    """

    width: int
    n_queries: int
    n_documents: int

    @abstractmethod
    def __call__(self, w: FloatArray) -> Evaluation:
        """Return the value at the coefficients w, and its gradient."""


class ScoreTotal(Total):
    """An objective of all scores, and the features that they are made of.

    Parameters
    ----------
    objective : callable
        Takes all scores, shape (documents,); returns the values of the queries and the gradient of
        their sum by the scores.
    X : array of float, shape (documents, features)
    ptr : array of int, shape (queries + 1,), optional
        Where each query starts, to count the queries without a gradient.
    """

    def __init__(self, objective: Objective, X: FloatArray, ptr: IntArray | None = None) -> None:
        self.objective, self.X, self.ptr = objective, X, ptr
        self.n_documents, self.width = X.shape
        self.n_queries = 0 if ptr is None else len(ptr) - 1

    def __call__(self, w: FloatArray) -> Evaluation:
        """Return the value at the coefficients w, and its gradient."""
        values, by_scores = self.objective(linear_scores(self.X, w))
        head = part_of(values, by_scores, self.ptr)
        return Evaluation(head[0], column_sums(self.X, by_scores), head[1], int(head[2]))


def linear_scores(X: FloatArray, w: FloatArray) -> FloatArray:
    """Return ``X @ w`` in double precision, without a copy of X.

    Examples
    --------
    >>> linear_scores(np.eye(2, dtype=np.float32), np.array([0.1, 0.2]))
    array([0.1, 0.2])
    """
    scores = np.empty(len(X))
    for start, part in pieces(X):
        np.matmul(part, w, out=scores[start : start + len(part)])
    return scores


def column_sums(X: FloatArray, weights: FloatArray) -> FloatArray:
    """Return ``weights @ X`` in double precision, without a copy of X.

    Examples
    --------
    >>> column_sums(np.eye(2, dtype=np.float32), np.array([0.1, 0.2]))
    array([0.1, 0.2])
    """
    sums = np.zeros(X.shape[1])
    for start, part in pieces(X):
        sums += weights[start : start + len(part)] @ part
    return sums


def as_total(
    objective: Any, data: tuple[Any, ...], ptr: IntArray | None
) -> tuple[Total, FloatArray | None, float]:
    """Read what a solver was called with: a total, start and C; or an objective, X, start and C.

    Returns
    -------
    total : Total
    start : array of float, shape (features,), or None
    C : float
        Infinite where it is not given.
    """
    if isinstance(objective, Total):
        total, rest = objective, data
    elif data:
        total, rest = ScoreTotal(objective, data[0], ptr), data[1:]
    else:
        raise TypeError("X: expected the features, an objective is a function of scores")
    if not 1 <= len(rest) <= 2:
        raise TypeError("expected a start and C behind the total, or behind the objective and X")
    start, C = rest if len(rest) == 2 else (rest[0], np.inf)
    return total, None if start is None else np.asarray(start, dtype=np.float64), float(C)
