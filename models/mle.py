"""Maximum likelihood of the best rankings."""

from __future__ import annotations

from typing import ClassVar

from permdist.models import objectives
from permdist.models.base import Card, Settings
from permdist.models.conditional import Conditional


class MLE(Conditional):
    """Maximum likelihood under the good-bad pair model: L1.

    Minimizes ``sum_q log sum_y exp(F(y) - F(best)) + |w|^2 / C``, which is convex. Over pairs, the
    default, it is logistic regression on the differences of good and bad documents. `measure`
    plays no part in the objective, but for restart samples, which it shapes; nor does `kappa`.

    References
    ----------
    Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, equation (10).

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(100, rng=0)
    >>> learner = MLE(C=10.0).fit(queries)
    >>> learner.coef_.shape, learner.converged_
    ((25,), True)
    >>> round(learner.score(queries), 2)
    0.5...
    """

    card: ClassVar[Card] = Card(
        paper="Dubey et al. 2009",
        optimizes="likelihood of the best ranking",
        minimizes="log sum_y exp(F(y) - F(best))",
        cost="pairs of a query, windowed",
    )
    settings: ClassVar[Settings] = {
        "C": [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0]
    }
    measure_judges: ClassVar[bool] = True

    C: float = 1e-3
    scale: bool = False
    graded: bool = True

    def build_objective(self) -> objectives.Likelihood:
        """Return the objective with the learner's parameters."""
        return objectives.Likelihood(**self._options())
