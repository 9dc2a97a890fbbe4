"""Reading mapped files before their pages are needed."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from permdist._typing import FloatArray

AHEAD = 16  # blocks; two megabytes each, where rows are not too long


class ReadAhead:
    """Tells the system which rows of an array come next, if they are mapped from a file.

    Left to itself it reads ahead in small pieces, which a fast disk spends its time waiting for.

    Parameters
    ----------
    X : array, shape (rows, columns)
    """

    def __init__(self, X: FloatArray) -> None:
        base: object = X
        while isinstance(base, np.ndarray):
            base = base.base
        mapped = isinstance(base, mmap.mmap) and hasattr(base, "madvise") and X.flags.c_contiguous
        self._map = base if isinstance(base, mmap.mmap) and mapped else None
        if self._map is not None:
            self._row = X.strides[0]
            self._start = X.ctypes.data - np.frombuffer(self._map, np.uint8).ctypes.data

    def __bool__(self) -> bool:
        return self._map is not None

    def __call__(self, first: int, last: int) -> None:
        """Ask for some rows, without waiting for them.

        Parameters
        ----------
        first, last : int
            The first row, and the one after the last.
        """
        if self._map is not None and last > first:
            begin = self._start + first * self._row
            begin -= begin % mmap.PAGESIZE
            end = self._start + last * self._row
            self._map.madvise(mmap.MADV_WILLNEED, begin, end - begin)
