"""RankCosine: the angle between scores and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist.models import objectives
from permdist.models.base import Card
from permdist.models.descent import Descent
from permdist.models.scaling import Scaling, inverse

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure
    from permdist.models.batch import Batch


class RankCosine(Descent):
    """Brings the scores of each query into line with its labels.

    The loss of a query is ``(1 - cos(y, s)) / 2`` with the labels y and scores s as vectors: from
    0 to 1 for every query, whatever its length. It is not convex. Where all scores are 0 the angle
    is undefined, and the optimizer starts from the sum of label-weighted features instead.

    The angle does not depend on the length of w, so there is no penalty: C is infinite. A finite
    one would only pull w towards 0.

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
    warns_if_flat: ClassVar[bool] = False  # the start may be the optimum

    C: float = np.inf
    measure: str | Measure = "ndcg@10"

    def build_objective(self) -> objectives.Cosine:
        """Return the objective with the learner's parameters."""
        return objectives.Cosine()

    def _start(self, features: FloatArray, batch: Batch) -> FloatArray:
        norms = np.sqrt(np.add.reduceat(batch.labels.astype(float) ** 2, batch.ptr[:-1]))
        factors = self._scaling(features, batch.ptr).factors
        start = factors * (features.T @ (batch.labels / norms[batch.query_of]))
        size = float(np.abs(start).max())
        return factors * (start / size if size > 0.0 else start)

    def _scaling(self, features: FloatArray, ptr: IntArray) -> Scaling:  # noqa: ARG002
        """Measure features by their root mean squares: the angle looks at levels, too."""
        largest = np.abs(features).max(axis=0)
        shares = features * inverse(largest)
        spread = largest * np.sqrt(np.einsum("ij,ij->j", shares, shares) / len(features))
        return Scaling(spread, spread**2 if self.standardize else np.ones(len(spread)))
