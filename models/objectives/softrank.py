"""SoftRank: the expected measure when Gaussian noise is added to scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist.distributions import GaussianScores
from permdist.measures import Measure, parse
from permdist.models.batch import sums_in_threads
from permdist.models.objectives.base import Bound, Objective

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.models.batch import Batch


@dataclass(frozen=True)
class NoisyMeasure(Objective):
    """``1 - E[measure]`` under Gaussian noise on every score.

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

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        measure, noise = parse(self.measure), float(self.noise)
        forms = []
        for a, b in batch.bounds:
            form = measure.positional(batch.labels[a:b])
            if form is None and measure.defined(batch.labels[a:b]):
                raise ValueError(
                    f"measure: {measure.name!r} is no sum over positions; use ndcg, precision or "
                    "wta"
                )
            forms.append(form)

        def work(
            first: int, last: int, scores: FloatArray, values: FloatArray, gradient: FloatArray
        ) -> None:
            for q in range(first, last):
                form, (a, b) = forms[q], batch.bounds[q]
                if form is None:
                    continue
                if self.method == "exact":
                    value, slopes = GaussianScores(scores[a:b], noise).expected_sum(form)
                    values[q], gradient[a:b] = 1.0 - value, -slopes
                else:
                    counted = int(np.max(np.flatnonzero(form.weights), initial=-1)) + 1
                    weights = np.ascontiguousarray(form.weights[:counted])
                    value = _rank_binomial(scores[a:b], form.gains, weights, noise, gradient[a:b])
                    values[q] = 1.0 - form.offset - value

        return sums_in_threads(work, batch, 1000.0 * batch.sizes**2, n_jobs)


@kernel
def _rank_binomial(
    scores: FloatArray, gains: FloatArray, weights: FloatArray, noise: float, gradient: FloatArray
) -> float:
    """Return the expected sum of gains times weights by SoftRank's recursion.

    Its gradient is subtracted from `gradient`.

    For each document the chances of the first positions are built up one competitor at a time;
    going back through the same steps gives the derivative by each of them. O(n^2 cut).
    """
    n, cut = len(scores), len(weights)
    unit = 1.0 / (math.sqrt(2.0) * noise)
    stages, back = np.empty((n + 1, cut)), np.empty(cut)
    total = 0.0
    for j in range(n):
        if gains[j] == 0.0:
            continue
        stages[0] = 0.0
        stages[0, 0] = 1.0
        for i in range(n):
            if i == j:
                stages[i + 1] = stages[i]
                continue
            above = 0.5 * math.erfc(unit * (scores[j] - scores[i]) / math.sqrt(2.0))
            stages[i + 1, 0] = (1.0 - above) * stages[i, 0]
            for r in range(1, cut):
                stages[i + 1, r] = (1.0 - above) * stages[i, r] + above * stages[i, r - 1]
        for r in range(cut):
            total += gains[j] * weights[r] * stages[n, r]
            back[r] = gains[j] * weights[r]
        for i in range(n - 1, -1, -1):
            if i == j:
                continue
            d = unit * (scores[j] - scores[i])
            above = 0.5 * math.erfc(d / math.sqrt(2.0))
            slope = 0.0
            for r in range(cut):
                slope -= back[r] * stages[i, r]
                if r > 0:
                    slope += back[r] * stages[i, r - 1]
            for r in range(cut):
                after = back[r + 1] if r + 1 < cut else 0.0
                back[r] = (1.0 - above) * back[r] + above * after
            # The value rises with s_i where being above j is good for it; the loss falls.
            flow = slope * unit * math.exp(-0.5 * d * d) / math.sqrt(2.0 * math.pi)
            gradient[i] -= flow
            gradient[j] += flow
    return total
