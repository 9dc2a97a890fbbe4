"""Ragged arrays: rows of unequal length in one flat array, and where each row starts.

Row ``r`` of a flat array is ``flat[ptr[r]:ptr[r + 1]]``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from permdist._typing import IntArray

BLOCK = 2_000_000  # entries of a block of rows


def pointers(sizes: ArrayLike) -> IntArray:
    """Return where each row starts, and the total: shape (rows + 1,).

    Examples
    --------
    >>> pointers([2, 3, 1])
    array([0, 2, 5, 6])
    """
    sizes = np.asarray(sizes, dtype=np.int64)
    result = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=result[1:])
    return result


def bounds(ptr: IntArray) -> list[tuple[int, int]]:
    """Return the first entry of each row and the one after its last.

    Examples
    --------
    >>> bounds(pointers([2, 3]))
    [(0, 2), (2, 5)]
    """
    return list(pairwise(ptr.tolist()))


def row_blocks(length: int, width: int) -> list[tuple[int, int]]:
    """Cut rows of a table into ranges of about two million entries each; usually there is one.

    Examples
    --------
    >>> row_blocks(5, 10)
    [(0, 5)]
    >>> row_blocks(5, 1_000_000)
    [(0, 2), (2, 4), (4, 5)]
    """
    size = max(1, BLOCK // max(1, width))
    return [(start, min(start + size, length)) for start in range(0, length, size)]


def rows_of(ptr: IntArray) -> IntArray:
    """Return the row of each entry.

    Examples
    --------
    >>> rows_of(pointers([2, 1]))
    array([0, 0, 1])
    """
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def pack(parts: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], IntArray]:
    """Return the rows one after the other, and where each starts.

    Examples
    --------
    >>> pack([np.array([4, 5]), np.array([6])])
    (array([4, 5, 6]), array([0, 2, 3]))
    """
    flat = np.concatenate(parts) if len(parts) else np.zeros(0, dtype=np.int64)
    return flat, pointers([len(part) for part in parts])
