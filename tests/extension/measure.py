"""A measure with a float option: the share of relevant items, discounted by their positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from permdist.measures import Measure
from permdist.measures.base import count_above


@dataclass(frozen=True, repr=False)
class Discounted(Measure):
    """The mean over relevant items of ``1 / position^power``."""

    power: float = 0.5

    aliases: ClassVar[tuple[str, ...]] = ("discounted",)
    binary: ClassVar[bool] = True

    def _values(self, placed):
        worth = (1.0 + placed.start) ** -self.power
        starts = placed.ptr[:-1]
        counts = np.maximum(np.diff(placed.ptr), 1)
        sums = np.array([worth[a:b].sum() for a, b in zip(starts, placed.ptr[1:], strict=True)])
        return sums / counts

    def step(self, labels, totals, level, above):
        """Return what an item adds that is placed after the items above."""
        _, _, position = count_above(above, labels)
        worth = (1.0 + position) ** -self.power / np.sum(totals[labels > 0])
        return (labels[level] > 0) * worth
