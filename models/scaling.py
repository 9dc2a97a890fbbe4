"""Units of features: their spread within queries, which solvers and learners scale by."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


class Scaling(NamedTuple):
    """In which units solvers measure the coefficients.

    Attributes
    ----------
    spread : array of float, shape (features,)
        The size of each feature's differences; 0 for one that makes none, whose coefficient
        stays 0.
    penalty : array of float, shape (features,)
        Factors p of the penalty ``sum p w^2 / C``.

    Examples
    --------
    >>> Scaling.of(np.array([[0.0, 3e6], [1.0, 1e6]]), np.array([0, 2])).spread
    array([5.e-01, 1.e+06])
    """

    spread: FloatArray
    penalty: FloatArray

    @classmethod
    def of(cls, X: FloatArray, ptr: IntArray, *, standardize: bool = True) -> Scaling:
        """Measure features by their standard deviations within queries.

        Parameters
        ----------
        X : array of float, shape (documents, features)
        ptr : array of int, shape (queries + 1,)
            Where each query starts.
        standardize : bool
            Whether the penalty is that of standardized features, ``sum (spread w)^2 / C``, or
            that of the features as they are.
        """
        spread = spread_within(X, ptr)
        return cls(spread, spread**2 if standardize else np.ones(len(spread)))

    @classmethod
    def plain(cls, width: int) -> Scaling:
        """Take features as they are."""
        return cls(np.ones(width), np.ones(width))

    @property
    def factors(self) -> FloatArray:
        """What divides coefficients of standardized features: 1 over the spread, or 0."""
        return inverse(self.spread)


def inverse(values: FloatArray) -> FloatArray:
    """Return 1 over each value, and 0 for 0."""
    return np.divide(1.0, values, out=np.zeros(len(values)), where=values > 0.0)


def spread_within(X: FloatArray, ptr: IntArray) -> FloatArray:
    """Return the standard deviation of each feature within queries, shape (features,).

    It is 0 exactly where a feature is constant in every query, whatever its size.

    Parameters
    ----------
    X : array of float, shape (documents, features)
    ptr : array of int, shape (queries + 1,)
        Where each query starts.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0], [7.0, 0.1], [7.0, 0.1]])
    >>> spread_within(X, np.array([0, 2, 4]))
    array([0.70710678, 0.        ])
    """
    # Scaling by powers of two is exact, and keeps squares from overflowing.
    _, exponent = np.frexp(np.abs(X).max(axis=0, initial=0.0))
    unit = np.ldexp(1.0, -np.clip(exponent, -1000, 1000))
    return np.sqrt(_squares_within(X, ptr, unit) / max(1, len(X))) / unit


def canonical_order(X: FloatArray, labels: IntArray, ptr: IntArray) -> IntArray:
    """Return an order of the documents of each query that does not depend on that in the file.

    Documents are sorted by a fixed combination of their standardized features, then by label;
    those that agree in both are interchangeable.

    Parameters
    ----------
    X : array of float, shape (documents, features)
    labels : array of int, shape (documents,)
    ptr : array of int, shape (queries + 1,)

    Returns
    -------
    array of int, shape (documents,)
        Row numbers, query after query.
    """
    factors = inverse(spread_within(X, ptr))
    key = X @ (factors * np.random.default_rng(0).normal(size=len(factors)))
    query = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    return np.lexsort((labels, key, query))


@kernel
def _squares_within(X: FloatArray, ptr: IntArray, unit: FloatArray) -> FloatArray:
    """Sum the squared deviations from the means of queries, shape (features,).

    Differences from the first document come first: those of a constant feature are exactly 0.
    """
    width = X.shape[1]
    total, mean = np.zeros(width), np.zeros(width)
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        for k in range(width):
            mean[k] = 0.0
        for i in range(a, b):
            for k in range(width):
                mean[k] += (X[i, k] - X[a, k]) * unit[k] / (b - a)
        for i in range(a, b):
            for k in range(width):
                away = (X[i, k] - X[a, k]) * unit[k] - mean[k]
                total[k] += away * away
    return total
