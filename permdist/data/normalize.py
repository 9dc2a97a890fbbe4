"""Features scaled within queries, one range of queries at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist._parallel import bounds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from permdist._typing import FloatArray, IntArray

NORMALIZATIONS = ("minmax", "zscore", "rank", "raw")
HUGE = 1e150  # larger values are scaled down first: their differences would overflow


def pieces_of(ptr: IntArray, most: int) -> Iterator[tuple[int, int]]:
    """Cut queries into ranges of at most so many documents, but at least one query each.

    Yields
    ------
    (int, int)
        The first query of a range and the one after its last.

    Examples
    --------
    >>> list(pieces_of(np.array([0, 5, 7, 8]), 4))
    [(0, 1), (1, 3)]
    """
    first, last = 0, len(ptr) - 1
    while first < last:
        end = int(np.searchsorted(ptr, ptr[first] + most, side="right")) - 1
        end = min(max(end, first + 1), last)
        yield first, end
        first = end


def normalize_rows(X: FloatArray, ptr: IntArray, method: str, out: FloatArray) -> FloatArray:
    """Scale every feature within each query; see `permdist.data.Queries.normalize`.

    Parameters
    ----------
    X : array of float, shape (documents, features)
    ptr : array of int, shape (queries + 1,)
        From 0 to the number of documents.
    method : {"minmax", "zscore", "rank", "raw"}
    out : array of float64, shape (documents, features)
        Is filled; it may be X itself.

    Returns
    -------
    array
        `out`.
    """
    if method == "rank":
        return _ranks(X, ptr, out)
    if out is not X:
        np.copyto(out, X)
    if method != "raw":
        # Scaling down by a power of two is exact.
        if max(out.max(initial=0.0), -out.min(initial=0.0)) > HUGE:
            out *= 2.0**-600
        _scale(out, ptr, method == "zscore")
    return out


def _ranks(X: FloatArray, ptr: IntArray, out: FloatArray) -> FloatArray:
    """Turn features into ranks within queries, from 0 to 1; constant ones into 0."""
    from scipy.stats import rankdata  # slow to import, and rarely wanted

    for a, b in bounds(ptr):
        constant = (X[a:b] == X[a]).all(axis=0)
        out[a:b] = (rankdata(X[a:b], axis=0) - 1.0) / max(1, b - a - 1)
        out[a:b, constant] = 0.0
    return out


@kernel
def _scale(X: FloatArray, ptr: IntArray, standard: bool) -> None:
    """Scale features of shape (documents, features) in place: to 0 to 1, then to deviation 1."""
    width = X.shape[1]
    low, spread = np.empty(width), np.empty(width)
    center, deviation = np.empty(width), np.empty(width)
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        for k in range(width):
            low[k] = spread[k] = X[a, k]
        for i in range(a + 1, b):
            for k in range(width):
                low[k] = min(low[k], X[i, k])
                spread[k] = max(spread[k], X[i, k])
        for k in range(width):
            spread[k] -= low[k]
            if spread[k] == 0.0:
                spread[k] = 1.0
            center[k] = deviation[k] = 0.0
        for i in range(a, b):
            for k in range(width):
                X[i, k] = (X[i, k] - low[k]) / spread[k]
                center[k] += X[i, k]
        if not standard:
            continue
        for k in range(width):
            center[k] /= b - a
        for i in range(a, b):
            for k in range(width):
                X[i, k] -= center[k]
                deviation[k] += X[i, k] * X[i, k]
        for k in range(width):
            # A constant feature is 0 everywhere.
            deviation[k] = np.sqrt(deviation[k] / (b - a)) if deviation[k] > 0.0 else 1.0
        for i in range(a, b):
            for k in range(width):
                X[i, k] /= deviation[k]
