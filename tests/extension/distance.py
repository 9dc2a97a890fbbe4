"""Two distances: one from its definition alone, one that adds up over displacements."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from permdist.distances import DISTANCES, Displacement, Distance
from permdist.distances import register as register_distance


class TopWeighted(Distance):
    """Each pair in the wrong order costs 1 / (1 + rank in the center of the better item)."""

    name = "top-weighted"
    limits: ClassVar = {"distance_distribution": 0}  # distances are no whole numbers

    @classmethod
    def from_identity(cls, orders: Any) -> Any:
        """Return the distance of each order from 0, 1, ...."""
        inverted = np.triu(orders[:, :, None] > orders[:, None, :], 1)
        return (inverted / (1.0 + orders[:, None, :])).sum(axis=(1, 2))

    @classmethod
    def largest(cls, n: int) -> float:
        """Return the distance of the reverse: item i is below n - 1 - i worse ones."""
        return float(sum((n - 1 - i) / (i + 1) for i in range(n)))


class Lee(Displacement):
    """How far items move if the last place is next to the first."""

    name = "lee"

    @classmethod
    def cost(cls, moves: Any, n: int) -> Any:
        """Return the shorter way around."""
        return np.minimum(moves, n - moves)

    @classmethod
    def largest(cls, n: int) -> float:
        """Return the distance if all items are on the other side."""
        return n * (n // 2)


def register():
    """Let `Mallows` and `distance_matrix` find them by their names."""
    for kind in (TopWeighted, Lee):
        register_distance(kind)


def unregister():
    """Forget them."""
    for kind in (TopWeighted, Lee):
        DISTANCES.pop(kind.name)
