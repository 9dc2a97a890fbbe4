"""An objective: squared errors of the scores, within queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from permdist.objectives import Objective, register_objective


@dataclass(frozen=True)
class SquaredError(Objective):
    """``sum (s - shift - label)^2 / n`` of each query."""

    alias: ClassVar[str] = "squared-error"
    shift: float = 0.0

    def bind(self, batch, n_jobs=None):
        """Return the function of all scores."""
        sizes = batch.sizes[batch.query_of]

        def bound(scores):
            error = scores - self.shift - batch.labels
            return np.add.reduceat(error**2 / sizes, batch.ptr[:-1]), 2.0 * error / sizes

        return bound


def register():
    """Let learners find it by its name."""
    register_objective(SquaredError)
