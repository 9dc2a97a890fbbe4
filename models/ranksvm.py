"""RankSVM: hinges on pairs of documents, counted instead of made."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from permdist.models import objectives, solvers
from permdist.models.base import Card, Settings
from permdist.models.descent import Descent
from permdist.models.options import option
from permdist.models.rules import Number, OneOf

if TYPE_CHECKING:
    from permdist.models.descent import Task


class RankSVM(Descent):
    """A linear ranking function with a margin between documents of different labels.

    Minimizes ``sum_q weight_q sum_pairs max(0, 1 - (s_i - s_j))^e + |w|^2 / C`` over all pairs
    with a higher label of i, by sorting: O(n log n) for a query of n documents. The paper's own
    objective is ``loss="hinge"`` with ``weights="pairs"``.

    Attributes
    ----------
    history_ : dict of lists
        ``objective``, and ``gradient`` or ``lower``, the lower bound of the minimum.

    References
    ----------
    Joachims: Optimizing Search Engines Using Clickthrough Data; it is a baseline of Xu et al.:
    Direct Optimization of Evaluation Measures in Learning to Rank.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> RankSVM(C=10.0).fit(queries).converged_
    True
    >>> hinge = RankSVM(loss="hinge", C=10.0).fit(queries)
    >>> hinge.history_["objective"][-1] <= 1.001 * hinge.history_["lower"][-1]
    True
    """

    card: ClassVar[Card] = Card(
        paper="Joachims 2002",
        optimizes="pairs in the right order",
        minimizes="hinges over pairs",
        cost="n log n",
    )
    settings: ClassVar[Settings] = {
        "C": [1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
    }
    measure_judges: ClassVar[bool] = True

    loss: str = option(
        OneOf(("squared_hinge", "hinge")),
        "e = 2, which is smooth and goes to L-BFGS; or e = 1, by cutting planes.",
        default="squared_hinge",
    )
    weights: str = option(
        OneOf(("queries", "pairs")),
        "What counts the same: every query, its hinges divided by the number of its pairs; or "
        "every pair, as in the paper, so that long queries count more and C must be smaller by "
        "the typical number of pairs.",
        default="queries",
    )
    C: float = 3.0
    max_iter: int = 1000
    tol: float | None = option(
        Number(0.0, 1.0, optional=True),
        "When to stop. Squared hinges: the estimated gap between the objective and its minimum, "
        "relative to what was gained since the start, 1e-6 by default. Hinges: the duality gap, "
        "relative to the objective, 1e-3 by default.",
        default=None,
    )

    def _tolerance(self) -> float:
        if self.tol is not None:
            return float(self.tol)
        return 1e-6 if self.loss == "squared_hinge" else 1e-3

    def build_objective(self) -> objectives.PairHinge:
        """Return the objective with the learner's parameters."""
        return objectives.PairHinge(self.loss == "squared_hinge", self.weights == "queries")

    def _solve(self, task: Task) -> solvers.Solution:
        return self._by_lbfgs(task) if self.loss == "squared_hinge" else self._by_planes(task)
