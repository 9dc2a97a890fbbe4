"""The convex bound: likelihood of the loss-augmented model."""

from __future__ import annotations

from typing import ClassVar

from permdist.models import objectives
from permdist.models.base import Card, Settings
from permdist.models.conditional import LossWeighted
from permdist.models.reweighting import Reweighted


class ConvexLoss(LossWeighted, Reweighted):
    """The convex upper bound of likelihood plus expected loss.

    Minimizes ``sum_q log sum_y exp(F(y) - F(best) + kappa loss(y)) + |w|^2 / C``: convex in every
    space. ``kappa=0`` is `MLE` over the same space. Over interleavings, the log-sum L of a query is
    never below ``max_y [F(y) - F(best) + kappa loss(y)]``. As kappa grows, ``L / kappa`` at
    ``w = kappa w'`` comes to this structured hinge loss at ``w'`` (for kappa 1), if ``C`` grows
    like kappa as well; at a fixed ``w`` it does not.

    Over ``"rows"``, the default for measures that are sums over rows (AP, NDCG, precision, RR and
    others), the sum is over all sign vectors of good-bad pairs, exact and smooth. The relevant
    documents are in the order of a pilot, the likelihood over pairs; they are sorted again by what
    was found, until their order stays, and ``round`` in `history_` counts these rounds. AUC has a
    closed form over ``"pairs"``. Of other measures (ERR of graded labels) the sum is over
    ``"interleavings"``.

    The loss inside the sum hardly moves its minimum. With `reweight`, rounds follow in which every
    pair is weighed by what it does to the measure: by the absolute change if its documents are
    exchanged in the ranking found so far, averaged over the rankings of all rounds, plus a tenth
    of the mean. Each round minimizes ``sum W log(1 + exp(-2 (s_g - s_b))) + |w|^2 / C``, which is
    convex. In `history_`, ``reweighted`` numbers the rounds, from 0 for the bound itself, and
    ``training`` has the measure of the training queries at the end of each.

    References
    ----------
    Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, equation (14).

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(100, rng=0)
    >>> learner = ConvexLoss("ap", C=10.0).fit(queries)
    >>> round(learner.score(queries), 2)
    0.5...
    >>> reweighted = ConvexLoss("ndcg@10", reweight=3).fit(queries)
    >>> sorted(set(reweighted.history_["reweighted"]))
    [0.0, 1.0, 2.0, 3.0]
    """

    card: ClassVar[Card] = Card(
        paper="Dubey et al. 2009",
        optimizes="any measure, by a convex bound",
        minimizes="log sum_y exp(F(y) - F(best) + kappa loss(y))",
        cost="goods x bads",
    )
    settings: ClassVar[Settings] = {
        "C": [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0],
        "reweight": [0, 3],
    }

    default_space: ClassVar[str] = "interleavings"
    prefers_rows: ClassVar[bool] = True

    C: float = 1e-3
    scale: bool = False

    def build_objective(self) -> objectives.ConvexLoss:
        """Return the objective with the learner's parameters."""
        return objectives.ConvexLoss(**self._options(), kappa=self.kappa)
