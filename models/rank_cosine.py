"""RankCosine: the angle between scores and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist.models import objectives
from permdist.models.base import Card
from permdist.models.descent import Descent
from permdist.models.objectives.base import Bound, Objective
from permdist.models.scaling import Scaling

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.measures import Measure
    from permdist.models.batch import Batch
    from permdist.models.blocks import Table


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

    def _start(self, table: Table) -> FloatArray:
        factors = self._units(table).factors
        start = -factors * self._total(_Alignment(), table)(np.zeros(table.width)).gradient
        size = float(np.abs(start).max())
        return factors * (start / size if size > 0.0 else start)

    def _units(self, table: Table) -> Scaling:
        """Measure features by their root mean squares: the angle looks at levels, too."""
        spread = table.root_mean_squares()
        return Scaling(spread, spread**2 if self.standardize else np.ones(len(spread)))


@dataclass(frozen=True)
class _Alignment(Objective):
    """Minus the inner product of the scores with labels of length 1."""

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:  # noqa: ARG002
        norms = np.sqrt(np.add.reduceat(batch.labels.astype(float) ** 2, batch.ptr[:-1]))
        target = batch.labels / norms[batch.query_of]

        def bound(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
            return -np.add.reduceat(target * scores, batch.ptr[:-1]), -target

        return bound
