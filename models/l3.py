"""Likelihood and expected loss together."""

from __future__ import annotations

from typing import ClassVar

from permdist.models import objectives
from permdist.models.base import Card, Settings
from permdist.models.conditional import Conditional, LossWeighted
from permdist.models.objectives.conditional import KAPPA_UNITS
from permdist.models.options import option
from permdist.models.rules import OneOf


class L3(LossWeighted, Conditional):
    """Likelihood plus expected loss: L3 = L1 + kappa L2.

    Minimizes ``sum_q log sum_y exp(F(y) - F(best)) + kappa E[loss] + |w|^2 / C``, with the
    expectation under ``exp F``. The second part is not convex. `ConvexLoss` is a convex upper
    bound of it for the same `kappa`.

    The first part is a sum over the pairs of a query, the second at most `kappa`. For it to matter,
    `kappa` must be of the order of their number, which ``kappa_units="pairs"`` multiplies it by:
    then a `kappa` of 1 to 10 gives both parts a say, in short and in long queries.
    `permdist.models.kappa_path` fits a path over it.

    References
    ----------
    Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, equation (12).

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(100, rng=0)
    >>> round(L3("ndcg@10", C=10.0).fit(queries).score(queries), 2)
    0.5...
    """

    card: ClassVar[Card] = Card(
        paper="Dubey et al. 2009",
        optimizes="likelihood and expected loss",
        minimizes="-log Pr(best) + kappa E[1 - measure]",
        cost="goods x bads",
    )
    settings: ClassVar[Settings] = {
        "C": [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0],
        "kappa": [1.0, 100.0, 1e4],
    }

    default_space: ClassVar[str] = "interleavings"
    prefers_rows: ClassVar[bool] = True

    C: float = 1e-3
    scale: bool = False

    kappa_units: str = option(
        OneOf(KAPPA_UNITS),
        "Whether `kappa` is the weight of the loss of a query, or of each of its pairs of "
        "different labels, so that it is multiplied by their number.",
        default="queries",
    )

    def build_objective(self) -> objectives.LikelihoodAndLoss:
        """Return the objective with the learner's parameters."""
        return objectives.LikelihoodAndLoss(
            **self._options(), kappa=self.kappa, kappa_units=self.kappa_units
        )
