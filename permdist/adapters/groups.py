"""What boosters hand over, checked: the number of documents of each query, and its weight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import finite
from permdist._parallel import pointers

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


def sizes_of(name: str, group: Any, n_documents: int) -> IntArray:
    """Return the number of documents of each query; refuse those that do not add up.

    Examples
    --------
    >>> sizes_of("group", [2, 2], 5)
    Traceback (most recent call last):
    ValueError: group: expected sizes of queries that add up to 5 documents, got 2 sizes, sum 4
    """
    if group is None or np.size(group) == 0:
        raise ValueError(
            f"{name}: expected the number of documents of each query, got none; pass it with the "
            "data, documents of a query side by side"
        )
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iuf" or not (sizes == np.floor(sizes)).all():
        raise TypeError(
            f"{name}: expected whole numbers in one dimension, got shape {sizes.shape} of "
            f"{sizes.dtype}"
        )
    if (sizes < 1).any():
        first = int(np.argmax(sizes < 1))
        raise ValueError(
            f"{name}: expected at least one document per query, got {sizes[first]:g} at index "
            f"{first}"
        )
    total = int(sizes.sum())
    if total != n_documents:
        raise ValueError(
            f"{name}: expected sizes of queries that add up to {n_documents:,} documents, got "
            f"{len(sizes):,} sizes, sum {total:,}"
        )
    return sizes.astype(np.int64)


def query_weights(name: str, weights: Any, sizes: IntArray) -> FloatArray | None:
    """Return one weight per query; weights of documents must be those of their queries.

    Examples
    --------
    >>> query_weights("weight", [2.0, 2.0, 1.0], np.array([2, 1]))
    array([2., 1.])
    """
    if weights is None or np.size(weights) == 0:
        return None
    found = finite(name, weights, ndim=1)
    if (found < 0.0).any():
        first = int(np.argmax(found < 0.0))
        raise ValueError(f"{name}: expected weights of at least 0, got {found[first]:g} at {first}")
    if len(found) == len(sizes):
        return found
    if len(found) != sizes.sum():
        raise ValueError(
            f"{name}: expected one weight per query ({len(sizes):,}) or per document "
            f"({int(sizes.sum()):,}), got {len(found):,}"
        )
    ptr = pointers(sizes)
    low, high = (one.reduceat(found, ptr[:-1]) for one in (np.minimum, np.maximum))
    if (low != high).any():
        query = int(np.argmax(low != high))
        raise ValueError(
            f"{name}: expected one weight for all documents of a query, got {low[query]:g} and "
            f"{high[query]:g} in query {query}; numpy.repeat(weights, group) makes such an array"
        )
    return low
