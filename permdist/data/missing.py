"""Missing values (NaN) of features, filled within queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

FILLS = ("zero", "mean")


def has_missing(X: FloatArray) -> bool:
    """Check for NaN, without a mask of the whole table."""
    return bool(X.size and np.isnan(X.min()))


def fill(X: FloatArray, ptr: IntArray, method: str) -> FloatArray:
    """Replace NaN by 0, or by the mean of the values that the query has of the feature.

    Parameters
    ----------
    X : array of float, shape (documents, features)
    ptr : array of int, shape (queries + 1,)
    method : {"zero", "mean"}
        A feature without any value in a query is 0 there.

    Examples
    --------
    >>> fill(np.array([[1.0], [np.nan], [2.0], [np.nan]]), np.array([0, 3, 4]), "mean").ravel()
    array([1. , 1.5, 2. , 0. ])
    """
    missing = np.isnan(X)
    if method == "zero":
        return np.where(missing, 0.0, X)
    starts, sizes = ptr[:-1], np.diff(ptr)
    number = sizes[:, None] - np.add.reduceat(missing.astype(np.int64), starts, axis=0)
    # Divided before they are added: sums of huge values would overflow.
    shares = np.where(missing, 0.0, X) / np.repeat(np.maximum(number, 1), sizes, axis=0)
    mean = np.add.reduceat(shares, starts, axis=0)
    # Rounding must not take the mean of equal values away from them.
    mean = np.clip(mean, np.fmin.reduceat(X, starts), np.fmax.reduceat(X, starts))
    return np.where(missing, np.repeat(np.where(number > 0, mean, 0.0), sizes, axis=0), X)
