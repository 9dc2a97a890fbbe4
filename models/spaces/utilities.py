"""Random utilities, Plackett-Luce or Gaussian, in place of the good-bad pair model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.distributions import GaussianScores, PlackettLuce
from permdist.models.spaces.base import Sums

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.measures import Measure
    from permdist.models.batch import Batch

UTILITIES: dict[str, Any] = {"plackett-luce": PlackettLuce, "gaussian": GaussianScores}


class UtilitySums(Sums):
    """Expected gains by quadrature; there is no sum over all rankings to tilt.

    Parameters
    ----------
    kind : {"plackett-luce", "gaussian"}
    """

    def __init__(
        self,
        batch: Batch,
        measure: Measure,
        n_jobs: int | None = None,
        *,
        kind: str = "plackett-luce",
    ) -> None:
        super().__init__(batch, measure, n_jobs)
        self._make = UTILITIES[kind]

    def log_sums(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002
        """Refuse: these sums belong to the good-bad pair model."""
        raise ValueError("distribution: only expected gains are defined for random utilities")

    def mean_gains(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Integrate over the utilities."""
        values, gradient = np.empty(len(self.batch)), np.empty(len(scores))

        def work(first: int, last: int) -> None:
            for q in range(first, last):
                a, b = self.batch.ptr[q], self.batch.ptr[q + 1]
                scale = self.batch.scale[q]
                model, label = self._make(scale * scores[a:b]), self.batch.labels[a:b]
                form = self.measure.positional(label)
                if form is None:
                    values[q] = model.expect(self.measure, label, method="exact")
                    gradient[a:b] = scale * model.expect_gradient(self.measure, label)
                else:
                    values[q], slopes = model.expected_sum(form)
                    gradient[a:b] = scale * slopes

        self._in_threads(work, np.diff(self.batch.ptr).astype(float) ** 2)
        return values, gradient
