"""The convex bound: likelihood of the loss-augmented model."""

from __future__ import annotations

from typing import ClassVar

from permdist.models import objectives
from permdist.models.base import Card, Settings
from permdist.models.conditional import Conditional, LossWeighted


class ConvexLoss(LossWeighted, Conditional):
    """The convex upper bound of likelihood plus expected loss.

    Minimizes ``sum_q log sum_y exp(F(y) - F(best) + kappa loss(y)) + |w|^2 / C``: convex in every
    space. ``kappa=0`` is `MLE`. Over interleavings, the log-sum L of a query is never below
    ``max_y [F(y) - F(best) + kappa loss(y)]``. As kappa grows, ``L / kappa`` at ``w = kappa w'``
    comes to this structured hinge loss at ``w'`` (for kappa 1), if ``C`` grows like kappa as well;
    at a fixed ``w`` it does not.

    Over ``"lattice"``, the default, the sum over interleavings is exact for each of four random
    orders of the goods and of the bads. Results depend a little on these orders, that is on their
    number and on `random_state`; the mean of the sums is an unbiased estimate, and its log is
    biased low. Over ``"interleavings"`` nothing is drawn.

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
    """

    card: ClassVar[Card] = Card(
        paper="Dubey et al. 2009",
        optimizes="any measure, by a convex bound",
        minimizes="log sum_y exp(F(y) - F(best) + kappa loss(y))",
        cost="goods x bads",
    )
    settings: ClassVar[Settings] = {
        "C": [1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1],
        "kappa": [1.0, 30.0, 100.0],
        "scale": [False],
    }

    default_space: ClassVar[str] = "lattice"

    def build_objective(self) -> objectives.ConvexLoss:
        """Return the objective with the learner's parameters."""
        return objectives.ConvexLoss(**self._options(), kappa=self.kappa)
