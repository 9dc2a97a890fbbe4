"""Expected loss."""

from __future__ import annotations

from typing import ClassVar

from permdist.models import objectives
from permdist.models.base import Card, Settings
from permdist.models.conditional import Expected


class L2(Expected):
    """Expected loss alone: L2.

    Minimizes ``sum_q E[loss] + |w|^2 / C``, with the expectation under ``exp F``. It is not convex:
    the optimizer starts from the maximum likelihood estimate over pairs and, with `n_starts`, also
    from random points near it; `restarts_` says what each start came to.

    A query adds at most 1 to the objective, however long it is and however badly it is ranked:
    queries that no linear model can rank well are given up, for the sake of others. `C` is
    therefore larger than that of learners that add up pairs.

    Over ``"rows"`` it is smooth, but there chances of cut-off measures in long queries are tiny,
    and strong penalties leave no gradient at all: ``"interleavings"`` is the default. There the
    objective has kinks, and at a large `C` the optimizer may stop short of a certified minimum.

    References
    ----------
    Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, equations (4) and (11).

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(100, rng=0)
    >>> round(L2("ndcg@10").fit(queries).score(queries), 2)
    0.5...
    """

    card: ClassVar[Card] = Card(
        paper="Dubey et al. 2009",
        optimizes="any measure, in expectation",
        minimizes="E[1 - measure]",
        cost="goods x bads",
    )
    settings: ClassVar[Settings] = {
        "C": [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 1e3, 1e6]
    }

    default_space: ClassVar[str] = "interleavings"

    C: float = 0.01
    scale: bool = False

    def build_objective(self) -> objectives.ExpectedLoss:
        """Return the objective with the learner's parameters."""
        return objectives.ExpectedLoss(**self._options(), distribution=self.distribution)
