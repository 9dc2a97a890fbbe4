"""Measures at smooth positions, which change with the scores little by little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist.measures import NDCG, RR, Measure, parse
from permdist.models.batch import derivatives_in_threads, sums_in_threads
from permdist.models.objectives.base import Bound, BoundDerivatives, Objective
from permdist.models.rules import POSITIVE, MeasureName, OneOf
from permdist.models.smooth_derivatives import measure_derivatives
from permdist.models.smooth_positions import SIGMOIDS, WINDOWS, code_of, sum_measures

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from permdist._typing import FloatArray
    from permdist.models.batch import Batch
    from permdist.models.rules import Rule


@dataclass(frozen=True)
class SmoothMeasure(Objective):
    """``1 - measure`` at the positions ``1 + sum_j sigmoid(alpha (s_j - s_i))``.

    The curvature adds up ``|slope by position| alpha^2 sigmoid'`` over the positions that a score
    moves: the second derivatives of the positions, all with the same sign.

    Parameters
    ----------
    measure : Measure or str
        AP or RR; NDCG or Precision, with a cut-off or without; or Kendall's tau.
    alpha, beta : float
        How steep the sigmoids of scores and of positions are.
    sigmoid : {"logistic", "tanh", "erf", "arctan"}

    References
    ----------
    Qin et al.: A General Approximation Framework for Direct Optimization of Information Retrieval
    Measures, equations (20) to (22).

    Examples
    --------
    >>> round(SmoothMeasure("ndcg", alpha=100.0)([0.9, 0.1], [1, 0])[0], 6)
    0.0
    """

    alias: ClassVar[str] = "smooth"
    measure: Measure | str = "ndcg"
    alpha: float = 10.0
    beta: float = 10.0
    sigmoid: str = "logistic"

    rules: ClassVar[Mapping[str, Rule]] = {
        "measure": MeasureName(),
        "alpha": POSITIVE,
        "beta": POSITIVE,
        "sigmoid": OneOf(SIGMOIDS),
    }

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        return sums_in_threads(self.work(batch), batch, 5.0 * batch.sizes**2, n_jobs)

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        form = self._form(batch)

        def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
            measure_derivatives(first, last, scores, *form, *out)

        return derivatives_in_threads(work, batch, 5.0 * batch.sizes**2, n_jobs)

    def work(self, batch: Batch) -> Callable[..., Any]:
        """Return the function that fills in values and gradients of a range of queries."""
        form = self._form(batch)

        def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
            sum_measures(first, last, scores, *form, *out)

        return work

    def _form(self, batch: Batch) -> tuple[Any, ...]:
        """Return what the kernels are told of the queries and the measure."""
        measure = parse(self.measure)
        code = code_of(measure)
        kind = SIGMOIDS.index(self.sigmoid)
        gains = (batch.labels > 0).astype(float)
        units = np.add.reduceat(gains, batch.ptr[:-1])
        log2 = True
        if isinstance(measure, NDCG):
            measure.check_grades(batch.labels)
            gains, log2 = measure.gains(batch.labels), measure.discount == "log2"
            units = np.empty(len(batch))
            for q, (a, b) in enumerate(batch.bounds):
                ordered = np.sort(gains[a:b])[::-1]
                units[q] = float(ordered @ measure.discounts(b - a))
                if measure.short == "zero" and b - a < measure.cut_off and measure.k is not None:
                    gains[a:b] = 0.0  # such a query counts nothing
        elif not measure.name.startswith("ap"):
            units = np.full(len(batch), 1.0 if isinstance(measure, RR) else float(measure.cut_off))
        units = np.where(units > 0.0, units, 1.0)
        layout = gains, batch.levels, batch.ptr, units
        slopes = float(self.alpha), float(self.beta), kind, WINDOWS[kind]
        return *layout, *slopes, code, float(measure.cut_off), log2
