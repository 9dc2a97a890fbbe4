"""RankCosine: the angle between scores and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist._typing import FloatArray, IntArray
from permdist.measures import Measure
from permdist.models.base import Card
from permdist.models.listwise import Listwise, Work
from permdist.models.spaces import Batch


class RankCosine(Listwise):
    """Brings the scores of each query into line with its labels.

    The loss of a query is ``(1 - cos(y, s)) / 2`` with the labels y and scores s as vectors: from
    0 to 1 for every query, whatever its length. It is not convex. Where all scores are 0 the angle
    is undefined, and the optimizer starts from the sum of label-weighted features instead.

    The angle does not depend on the length of w, so there is no penalty: C is infinite. A finite
    one would only pull w towards 0.

    Notes
    -----
    All other parameters are those of `ListMLE`, which has ties and a seed besides.

    References
    ----------
    Qin et al.: Query-level Loss Functions for Information Retrieval; it is a baseline of Wang et
    al.: Listwise Approaches Based on Feature's Ranking Discovery.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> learner = RankCosine().fit(queries)
    >>> 0.0 < learner.history_["objective"][-1] < 60.0
    True
    """

    card: ClassVar[Card] = Card(
        paper="Qin, Zhang et al. 2008",
        optimizes="agreement with labels",
        minimizes="(1 - cos(labels, scores)) / 2",
        cost="n",
    )
    measure_judges: ClassVar[bool] = True

    def __init__(
        self,
        *,
        C: float = np.inf,
        measure: str | Measure = "ndcg@10",
        normalize: bool | str | Sequence[str] = False,
        max_iter: int = 200,
        tol: float = 1e-5,
        early_stopping: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            C=C,
            measure=measure,
            normalize=normalize,
            max_iter=max_iter,
            tol=tol,
            early_stopping=early_stopping,
            warm_start=warm_start,
            n_jobs=n_jobs,
            verbose=verbose,
        )

    warns_if_flat: ClassVar[bool] = False  # the start may be the optimum

    def _start(self, features: FloatArray, batch: Batch) -> FloatArray:
        norms = np.sqrt(np.add.reduceat(batch.labels.astype(float) ** 2, batch.ptr[:-1]))
        start = features.T @ (batch.labels / norms[batch.query_of])
        size = float(np.abs(start).max())
        return start / size if size > 0.0 else start

    def _kernel(self, batch: Batch) -> tuple[Work, FloatArray]:
        labels, ptr = batch.labels.astype(float), batch.ptr

        def work(
            first: int, last: int, scores: FloatArray, values: FloatArray, gradient: FloatArray
        ) -> None:
            _cosines(first, last, scores, labels, ptr, values, gradient)

        return work, np.diff(ptr).astype(float)


@kernel
def _cosines(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    labels: FloatArray,
    ptr: IntArray,
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
