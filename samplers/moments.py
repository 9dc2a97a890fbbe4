"""Running moments of a chain, in memory that does not grow with its length.

Draws are summed in blocks. There is room for a fixed number of blocks; when it is full, neighboring
blocks are merged in pairs. The standard errors of the overall means follow from the block means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import AnyIntArray, FloatArray, IntArray

BLOCKS = 512


@dataclass
class Moments:
    """Sums over the draws of one chain.

    Attributes
    ----------
    counts : array of int, shape (n, n)
        How often item i was at position r.
    blocks : array of float, shape (BLOCKS, n + 1)
        Sums of the items' positions and of the log-weight over each block.
    squares : array of float, shape (n + 1,)
        Sums of their squares over all draws.
    progress : array of int, shape (2,)
        The number of draws, and the number of draws per block.
    """

    counts: IntArray
    blocks: FloatArray
    squares: FloatArray
    progress: IntArray

    @classmethod
    def empty(cls, n_items: int) -> Moments:
        """Return moments of no draws."""
        return cls(
            np.zeros((n_items, n_items), dtype=np.int64),
            np.zeros((BLOCKS, n_items + 1)),
            np.zeros(n_items + 1),
            np.array([0, 1]),
        )

    def add(self, orders: AnyIntArray, values: FloatArray) -> None:
        """Add draws, orders (draws, n) and log-weights (draws,)."""
        _add(orders, values, self.counts, self.blocks, self.squares, self.progress)

    @property
    def n_draws(self) -> int:
        """The number of draws."""
        return int(self.progress[0])

    def block_means(self, length: int | None = None) -> FloatArray:
        """Return the means of the complete blocks, shape (blocks, n + 1).

        Blocks are merged to `length`, which must be a multiple of their own length.
        """
        draws, own = self.progress
        joined = 1 if length is None else length // int(own)
        full = int(draws // (own * joined))
        sums = self.blocks[: full * joined].reshape(full, joined, -1).sum(axis=1)
        return sums / (own * joined)

    def means(self) -> FloatArray:
        """Return the means of all draws, shape (n + 1,)."""
        return self.blocks.sum(axis=0) / max(1, self.n_draws)

    def variances(self) -> FloatArray:
        """Return the variances of single draws, shape (n + 1,)."""
        return np.maximum(self.squares / max(1, self.n_draws) - self.means() ** 2, 0.0)


@kernel
def _add(
    orders: AnyIntArray,
    values: FloatArray,
    counts: IntArray,
    blocks: FloatArray,
    squares: FloatArray,
    progress: IntArray,
) -> None:
    """Add draws to the sums; see `Moments` for the shapes."""
    n = orders.shape[1]
    for d in range(len(orders)):
        if progress[0] == len(blocks) * progress[1]:
            for b in range(len(blocks) // 2):
                blocks[b] = blocks[2 * b] + blocks[2 * b + 1]
            blocks[len(blocks) // 2 :] = 0.0
            progress[1] *= 2
        block = blocks[progress[0] // progress[1]]
        for k in range(n):
            item = orders[d, k]
            counts[item, k] += 1
            block[item] += k
            squares[item] += k * k
        block[n] += values[d]
        squares[n] += values[d] * values[d]
        progress[0] += 1
