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

    Over ``"rows"``, the default for measures that are sums over rows, it is smooth. The relevant
    documents are in the order of the start, and are sorted again by what was found, until their
    order stays; ``round`` in `history_` counts these rounds. AUC has a closed form over
    ``"pairs"``; other measures (ERR of graded labels) are summed over ``"interleavings"``, where
    the objective has kinks and the optimizer may have to stop short of a certified minimum.

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
    settings: ClassVar[Settings] = {"C": [1e-3, 0.01, 0.1, 1.0, 10.0, 1e3, 1e6]}

    default_space: ClassVar[str] = "interleavings"
    prefers_rows: ClassVar[bool] = True

    C: float = 1.0
    scale: bool = False

    def build_objective(self) -> objectives.ExpectedLoss:
        """Return the objective with the learner's parameters."""
        return objectives.ExpectedLoss(**self._options(), distribution=self.distribution)
