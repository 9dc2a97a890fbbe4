"""Random utilities, Plackett-Luce or Gaussian, in place of the good-bad pair model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.distributions import GaussianScores, PlackettLuce
from permdist.measures.positional import positional_batch
from permdist.models.spaces.base import Sums
from permdist.sums.positions import RandomNoise

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
        self._noise = RandomNoise(gaussian=kind == "gaussian")
        self._form = positional_batch(measure, batch.labels, batch.ptr)
        self._scale = None if (batch.scale == 1.0).all() else batch.scale[batch.query_of]

    def log_sums(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002
        """Refuse: these sums belong to the good-bad pair model."""
        raise ValueError("distribution: only expected gains are defined for random utilities")

    def mean_gains(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Integrate over the utilities."""
        form, ptr = self._form, self.batch.ptr
        scaled = scores if self._scale is None else self._scale * scores
        layout = ptr, form.gains, form.weights, form.weight_ptr
        values, gradient = self._noise.expected_sums(scaled, *layout, self.n_jobs)
        values += form.offsets

        def work(first: int, last: int) -> None:
            for q in (np.flatnonzero(~form.known[first:last]) + first).tolist():
                a, b = ptr[q], ptr[q + 1]
                model, label = self._make(scaled[a:b]), self.batch.labels[a:b]
                values[q] = model.expect(self.measure, label, method="exact")
                gradient[a:b] = model.expect_gradient(self.measure, label)

        self._in_threads(work, np.where(form.known, 0.0, np.diff(ptr).astype(float) ** 2))
        if self._scale is not None:
            gradient *= self._scale
        return values, gradient
