"""RankCosine: the angle between scores and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist.models.batch import sums_in_threads
from permdist.models.objectives.base import Bound, BoundDerivatives, Objective

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch


@dataclass(frozen=True)
class Cosine(Objective):
    """``(1 - cos(labels, scores)) / 2``, from 0 to 1 for every query.

    With ``v = s / |s|``, the curvature is ``(1 - v_i^2) / (2 |s|^2)``, the Gauss-Newton diagonal of
    ``|v - labels / |labels||^2 / 4``. A query whose scores are all 0 has no slope: start elsewhere.

    References
    ----------
    Qin et al.: Query-level Loss Functions for Information Retrieval.

    Examples
    --------
    >>> round(Cosine()([2.0, 1.0], [2, 1])[0], 6)
    0.0
    """

    alias: ClassVar[str] = "cosine"

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        labels = batch.labels.astype(float)

        def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
            _cosines(first, last, scores, batch.ptr, labels, *out)

        return sums_in_threads(work, batch, batch.sizes, n_jobs)

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        bound = self.bind(batch, n_jobs)

        def derivatives(scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            values, gradient = bound(scores)
            squares = np.add.reduceat(scores * scores, batch.ptr[:-1])
            inverse = np.divide(0.5, squares, out=np.zeros(len(batch)), where=squares > 0.0)
            inverse = inverse[batch.query_of]
            return values, gradient, inverse * (1.0 - 2.0 * inverse * scores * scores)

        return derivatives


@kernel
def _cosines(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    ptr: IntArray,
    labels: FloatArray,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Fill in values and gradient; a query whose scores are all 0 counts 1/2, without a slope."""
    for q in range(first_query, last_query):
        a, b = ptr[q], ptr[q + 1]
        dot, own, other = 0.0, 0.0, 0.0
        for i in range(a, b):
            dot += scores[i] * labels[i]
            own += scores[i] * scores[i]
            other += labels[i] * labels[i]
        if own <= 0.0:
            values[q] = 0.5
            for i in range(a, b):
                gradient[i] = 0.0
            continue
        norm = np.sqrt(own * other)
        values[q] = 0.5 * (1.0 - dot / norm)
        for i in range(a, b):
            gradient[i] = -0.5 * (labels[i] / norm - dot / norm * scores[i] / own)
