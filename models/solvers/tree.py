"""Sums over blocks along a fixed binary tree, so that whoever holds some blocks can begin.

Floating-point sums depend on the order in which they are made. Here it is that of a binary tree
over the numbers of the blocks: 0 and 1 are added up, 2 and 3, then these two sums, and so on. A
process that holds consecutive blocks adds up every complete branch among them and sends these few
rows instead of all; the result has the same bits however the blocks are shared out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from permdist._typing import FloatArray

STEEPEST = 1  # the entry of a row of which the largest counts, not the sum


class Branch(NamedTuple):
    """The sum over the blocks from ``number * 2**level`` up to ``(number + 1) * 2**level``.

    Attributes
    ----------
    level : int
    number : int
    row : array of float
    """

    level: int
    number: int
    row: FloatArray


def fold(rows: FloatArray, first: int = 0) -> list[Branch]:
    """Add up rows of consecutive blocks as far as other blocks are not needed for it.

    Parameters
    ----------
    rows : array of float, shape (blocks, entries)
        As in `permdist.models.solvers.add_parts`.
    first : int
        The number of the first block.

    Returns
    -------
    list of Branch
        At most two of each level.

    Examples
    --------
    >>> [branch[:2] for branch in fold(np.zeros((6, 4)), first=3)]
    [(0, 3), (0, 8), (2, 1)]
    """
    branches, level = [], 0
    while len(rows):
        if first % 2:
            branches.append(Branch(level, first, rows[0]))
            rows, first = rows[1:], first + 1
        if len(rows) % 2:
            branches.append(Branch(level, first + len(rows) - 1, rows[-1]))
            rows = rows[:-1]
        rows, first, level = _added(rows[0::2], rows[1::2]), first // 2, level + 1
    return branches


def join(branches: Iterable[Branch]) -> FloatArray:
    """Add up branches that together stand for all blocks from 0 on, each once.

    Parameters
    ----------
    branches : iterable of Branch
        In any order.

    Returns
    -------
    array of float, shape (entries,)

    Examples
    --------
    >>> rows = np.arange(20.0).reshape(5, 4)
    >>> join(fold(rows[:3]) + fold(rows[3:], first=3))
    array([40., 17., 50., 55.])
    """
    waiting = sorted(branches, key=lambda branch: branch.level)
    level = 0
    rows: dict[int, FloatArray] = {}
    while waiting or len(rows) > 1:
        while waiting and waiting[0].level == level:
            branch = waiting.pop(0)
            rows[branch.number] = branch.row
        above = {}
        for number, row in rows.items():
            if number % 2 == 0:
                # Behind the last block there is nothing to add.
                other = rows.get(number + 1)
                above[number // 2] = row if other is None else _added(row, other)
        rows, level = above, level + 1
    return next(iter(rows.values()))


def _added(left: FloatArray, right: FloatArray) -> FloatArray:
    total = left + right
    total[..., STEEPEST] = np.maximum(left[..., STEEPEST], right[..., STEEPEST])
    return total
