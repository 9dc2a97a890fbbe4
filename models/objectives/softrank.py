"""SoftRank: the expected measure when Gaussian noise is added to scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._parallel import pointers
from permdist.measures import Measure, parse
from permdist.models.batch import sums_in_threads
from permdist.models.objectives.base import Bound, BoundDerivatives, Objective
from permdist.models.objectives.curvature import by_gradient
from permdist.models.rules import POSITIVE, MeasureName, OneOf
from permdist.sums.gaussian_positions import expected_sums, independent_sums

if TYPE_CHECKING:
    from collections.abc import Mapping

    from permdist._typing import FloatArray
    from permdist.models.batch import Batch
    from permdist.models.rules import Rule


@dataclass(frozen=True)
class NoisyMeasure(Objective):
    """``1 - E[measure]`` under Gaussian noise on every score.

    The curvature is ``(|slope| + mean |slope| of the query) / noise``: Newton steps are at most as
    long as the noise.

    Parameters
    ----------
    measure : Measure or str
        A sum over positions: NDCG, Precision or WTA.
    noise : float
        The standard deviation.
    method : {"exact", "softrank"}
        Rank probabilities by quadrature; or by the recursion of the paper, which takes the events
        that others are above a document as independent.

    References
    ----------
    Taylor et al.: SoftRank: Optimising Non-Smooth Rank Metrics.

    Examples
    --------
    >>> from permdist import GaussianScores
    >>> value, _ = NoisyMeasure("ndcg")([0.5, 0.1, 0.3], [2, 0, 1])
    >>> abs(1.0 - value - GaussianScores([0.5, 0.1, 0.3]).expect("ndcg", [2, 0, 1])) < 1e-12
    True
    """

    alias: ClassVar[str] = "noisy"
    measure: Measure | str = "ndcg@10"
    noise: float = 1.0
    method: str = "exact"

    rules: ClassVar[Mapping[str, Rule]] = {
        "measure": MeasureName(),
        "noise": POSITIVE,
        "method": OneOf(("exact", "softrank")),
    }

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        measure, noise = parse(self.measure), float(self.noise)
        gains, offsets = np.zeros(len(batch.labels)), np.ones(len(batch))
        weights: list[FloatArray] = []
        for q, (a, b) in enumerate(batch.bounds):
            form = measure.positional(batch.labels[a:b])
            if form is None and measure.defined(batch.labels[a:b]):
                raise ValueError(
                    f"measure: {measure.name!r} is no sum over positions; use ndcg, precision or "
                    "wta"
                )
            if form is not None:
                gains[a:b], offsets[q] = form.gains, form.offset
                counted = int(np.max(np.flatnonzero(form.weights), initial=-1)) + 1
            weights.append(np.zeros(0) if form is None else form.weights[:counted])
        counts = np.array([len(part) for part in weights])
        layout = batch.ptr, gains, np.concatenate(weights), pointers(counts), noise
        sums = expected_sums if self.method == "exact" else independent_sums

        def work(
            first: int, last: int, scores: FloatArray, values: FloatArray, gradient: FloatArray
        ) -> None:
            sums(first, last, scores, *layout, values, gradient)
            values[first:last] = 1.0 - offsets[first:last] - values[first:last]
            rows = slice(batch.ptr[first], batch.ptr[last])
            gradient[rows] *= -1.0

        return sums_in_threads(work, batch, 200.0 * batch.sizes * counts, n_jobs)

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        bound, unit = self.bind(batch, n_jobs), 1.0 / float(self.noise)

        def derivatives(scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            values, gradient = bound(scores)
            return values, gradient, unit * by_gradient(gradient, batch.ptr)

        return derivatives
