"""ListMLE: the Plackett-Luce likelihood of the labels' own order."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from permdist.models import objectives
from permdist.models.base import Card, Settings
from permdist.models.descent import Descent
from permdist.models.options import option
from permdist.models.rules import OneOf
from permdist.models.shared import Seeded

if TYPE_CHECKING:
    from permdist.measures import Measure


class ListMLE(Seeded, Descent):
    """Maximum likelihood of the best ranking under Plackett-Luce; convex.

    The loss of a query is ``sum_i [log sum_{j not above i} exp s_j - s_i]`` over its documents from
    the highest label down. Those of the lowest label are left out of the outer sum: they come last
    in any order, which has probability 1.

    References
    ----------
    Xia et al.: Listwise Approach to Learning to Rank: Theory and Algorithm.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> ListMLE().fit(queries).converged_
    True
    """

    card: ClassVar[Card] = Card(
        paper="Xia et al. 2008",
        optimizes="likelihood of the labels' order",
        minimizes="-log Pr(labels' order), Plackett-Luce",
        cost="n",
    )
    settings: ClassVar[Settings] = {
        "C": [1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 1.0, 10.0, 100.0]
    }
    measure_judges: ClassVar[bool] = True

    ties: str = option(
        OneOf(("together", "random", "index")),
        'Documents with the same label. ``"together"``: each is compared with all others of '
        "its label and below, as Breslow does for tied times; the order inside a label then "
        "does not matter, and documents of the lowest label are only what others are compared "
        'with. ``"random"``: in an order drawn once; ``"index"``: as they stand.',
        default="together",
    )
    C: float = 1.0
    measure: str | Measure = "ndcg@10"

    def _draws_by_document(self) -> bool:
        return self.ties == "random"

    def build_objective(self) -> objectives.ListMLE:
        """Return the objective with the learner's parameters."""
        return objectives.ListMLE(self.ties, self.random_state)
