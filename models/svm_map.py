"""Structural SVMs: the hinge over whole rankings, for AP, NDCG, AUC and any additive measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from permdist.models import objectives, solvers
from permdist.models.base import Card, Settings
from permdist.models.descent import Descent
from permdist.models.objectives.hinges import LARGEST_WEIGHT
from permdist.models.options import option
from permdist.models.rules import SMALLEST, MeasureName, Number, OneOf
from permdist.models.shared import Graded, PairScaled
from permdist.sums.thresholds import GRADES

if TYPE_CHECKING:
    from permdist.measures import Measure
    from permdist.models.descent import Task


class SVMMap(PairScaled, Graded, Descent):
    """The structural SVM for average precision.

    Minimizes ``sum_q max_y [loss(y) - (F(best) - F(y))] + |w|^2 / C`` with
    ``loss(y) = 1 - AP(y) + auc_weight (1 - AUC(y))`` and ``F(y) = 1/pairs sum y_gb (s_g - s_b)``,
    a type-two bound of ``sum_q 1 - AP``. The worst ranking of each query is found exactly, by a
    longest path over interleavings of both classes in O(goods x bads); cutting planes then close
    the duality gap.

    ``auc_weight=0`` is the papers' objective. It is of no use for measures with a cut-off, such as
    ``"ndcg@10"``, on long and noisy queries, whatever C is: its minimum is at w = 0. No other F
    and no other rescaling of margins or slacks helps. Any convex bound of ``1 - measure@k`` that
    treats the relevant documents alike is at least 1, its value at w = 0 if it is tight there,
    wherever their mean score is below that of the k-th best other document: exchange the relevant
    documents in all ways, and the mean of these scores has nothing relevant among the first k. So
    the bound must not be tight at w = 0. With a share of pairs in the loss it is not: the ranking
    with all relevant documents last is the only worst one there, and the objective falls wherever
    relevant documents score higher than others on average. The larger `auc_weight`, the closer
    the learner is to `RankSVM` with hinges.

    Attributes
    ----------
    history_ : dict of lists
        ``objective`` and ``lower``: the minimum lies between them.

    References
    ----------
    Yue et al.: A Support Vector Method for Optimizing Average Precision; Xu et al.: Direct
    Optimization of Evaluation Measures in Learning to Rank, section 5.3.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> learner = SVMMap(C=10.0).fit(queries)
    >>> learner.converged_, learner.history_["lower"][-1] <= learner.history_["objective"][-1]
    (True, True)
    """

    card: ClassVar[Card] = Card(
        paper="Yue et al. 2007",
        optimizes="AP, or any measure",
        minimizes="max_y [loss(y) - (F(best) - F(y))]",
        cost="goods x bads",
    )
    settings: ClassVar[Settings] = {
        "C": [1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
    }

    measure: str | Measure = option(
        MeasureName(),
        "Any measure: the search is exact for all of them.",
        default="ap",
        kw_only=False,
    )
    auc_weight: float = option(
        Number(0.0, LARGEST_WEIGHT),
        "The weight of ``1 - AUC``, the share of pairs in the wrong order, beside ``1 - measure`` "
        "in the loss; 0 is the papers' loss.",
        default=0.1,
    )
    grades: str = option(
        OneOf(GRADES),
        'With ``graded=True``, queries of more than two labels: ``"thresholds"`` adds up one '
        "hinge per threshold between labels, over documents above and below it, which is still a "
        "bound of ``1 - NDCG``, or of 1 less the mean of any other measure over the thresholds; "
        '``"levels"`` searches all interleavings of all labels at once, which is refused beyond '
        '50 million cells; ``"auto"`` does so up to 2 million.',
        default="thresholds",
    )
    C: float = option(
        Number(SMALLEST, infinite=True),
        "The larger, the weaker the regularization. In the form ``|w|^2 / 2 + C' / m sum "
        "hinges`` of the papers, C' is ``m C / 2`` for m queries. With `standardize`, w are the "
        "coefficients of standardized features.",
        default=0.3,
    )
    max_iter: int = 1000
    tol: float = option(
        Number(0.0, 1.0), "When to stop: the duality gap relative to the objective.", default=1e-3
    )

    def build_objective(self) -> objectives.RankingHinge:
        """Return the objective with the learner's parameters."""
        return objectives.RankingHinge(self.judge, self.scale, self.auc_weight, self.grades)

    def _solve(self, task: Task) -> solvers.Solution:
        return self._by_planes(task)


class SVMNDCG(SVMMap):
    """The structural SVM for NDCG: `SVMMap` with another measure.

    ``graded=True`` lets NDCG see the grades: ``1 - NDCG`` is a weighted mean of the same loss at
    every threshold between labels, and the hinges of these are added up with its weights.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> SVMNDCG(C=10.0).fit(queries).converged_
    True
    """

    card: ClassVar[Card] = SVMMap.card._replace(paper="Chakrabarti et al. 2008", optimizes="NDCG")

    measure: str | Measure = "ndcg@10"
