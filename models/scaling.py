"""Units of features: their spread within queries, which solvers and learners scale by."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._check import PIECE, frozen
from permdist._kernels import kernel
from permdist._parallel import rows_of
from permdist.data.normalize import pieces_of

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    parts = []
    for first, last in pieces_of(ptr, PIECE // max(1, X.shape[1])):
        a, b = ptr[first], ptr[last]
        rows = np.asarray(X[a:b], dtype=np.float64, order="C")
        parts.append(Moments.of(rows, ptr[first : last + 1] - a))
    return spread_of(parts)


class Moments(NamedTuple):
    """What the spread of features is made of, for some of the queries.

    Attributes
    ----------
    largest : array of float, shape (features,)
        The largest size of each feature.
    squares : array of float, shape (features,)
        The sum of its squares, in units of the power of two above `largest`.
    number : int
        The number of documents.
    """

    largest: FloatArray
    squares: FloatArray
    number: int

    @classmethod
    def of(cls, X: FloatArray, ptr: IntArray, *, centered: bool = True) -> Moments:
        """Sum squares of the features, or of their differences from the means of queries.

        Parameters
        ----------
        X : array of float64, shape (documents, features), in C order
        ptr : array of int, shape (queries + 1,)
        centered : bool
            Whether to subtract the means of the queries.
        """
        largest = np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0))
        # Scaling by powers of two is exact, and keeps squares from overflowing.
        unit = np.ldexp(1.0, -_exponent(largest))
        if centered:
            return cls(largest, _squares_within(frozen(X), frozen(ptr), unit), len(X))
        scaled = X * unit
        return cls(largest, np.einsum("ij,ij->j", scaled, scaled), len(X))

    @classmethod
    def join(cls, parts: Sequence[Moments]) -> Moments:
        """Add up the moments of several parts, in their order."""
        exponents = [_exponent(part.largest) for part in parts]
        top = np.maximum.reduce(exponents)
        squares = np.zeros(len(top))
        for part, exponent in zip(parts, exponents, strict=True):
            squares += np.ldexp(part.squares, 2 * (exponent - top))
        largest = np.maximum.reduce([part.largest for part in parts])
        return cls(largest, squares, sum(part.number for part in parts))


def spread_of(parts: Sequence[Moments]) -> FloatArray:
    """Return the root of the mean square of each feature over all parts, shape (features,)."""
    total = Moments.join(parts)
    return np.ldexp(np.sqrt(total.squares / max(1, total.number)), _exponent(total.largest))


def _exponent(largest: FloatArray) -> IntArray:
    return np.clip(np.frexp(largest)[1], -1000, 1000).astype(np.int64)


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
    return order_by(X, labels, ptr, inverse(spread_within(X, ptr)))


def order_by(X: FloatArray, labels: IntArray, ptr: IntArray, factors: FloatArray) -> IntArray:
    """Do as `canonical_order`, with features multiplied by `factors`."""
    key = X @ (factors * np.random.default_rng(0).normal(size=len(factors)))
    return np.lexsort((labels, key, rows_of(ptr)))


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
