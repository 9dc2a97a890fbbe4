"""ListNet: cross entropy of top-k probabilities under Plackett-Luce."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from permdist.models import objectives
from permdist.models.base import Card, Settings
from permdist.models.descent import Descent
from permdist.models.options import option
from permdist.models.rules import POSITIVE, OneOf, Whole

if TYPE_CHECKING:
    from permdist.measures import Measure


class ListNet(Descent):
    """Cross entropy between the top-k choices of two Plackett-Luce models.

    One has the labels as scores, the other those of the ranking function. With ``k=1`` the loss
    of a query is ``-sum_i softmax(y)_i log softmax(s)_i``, which is convex; with larger k, choices
    go on among the documents that remain, and a query of n documents costs O(n^k).

    References
    ----------
    Cao et al.: Learning to Rank: From Pairwise Approach to Listwise Approach.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> ListNet().fit(queries).converged_
    True
    """

    card: ClassVar[Card] = Card(
        paper="Cao et al. 2007",
        optimizes="choices of the top k",
        minimizes="cross entropy of Plackett-Luce models",
        cost="n^k",
    )
    settings: ClassVar[Settings] = {
        "C": [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e6],
        "target": ["softmax", "gain"],
    }
    measure_judges: ClassVar[bool] = True

    k: int = option(Whole(), "How many places are chosen.", default=1, kw_only=False)
    target: str = option(
        OneOf(("softmax", "label", "gain")),
        "The labels' model: documents are chosen in proportion to ``exp(label / "
        "temperature)``, as in the paper; or to their labels, or to the gains ``2^label - 1`` of "
        "NDCG, so that bad ones never are.",
        default="gain",
    )
    temperature: float = option(POSITIVE, "Labels are divided by it.", default=1.0)
    C: float = 0.3
    measure: str | Measure = "ndcg@10"

    def build_objective(self) -> objectives.ListNet:
        """Return the objective with the learner's parameters."""
        return objectives.ListNet(self.k, self.target, self.temperature)
