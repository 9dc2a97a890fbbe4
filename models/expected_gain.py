"""Expected gain, with restarts of the optimizer against its local optima."""

from __future__ import annotations

from typing import ClassVar

from permdist.models import objectives
from permdist.models.base import Card, Settings
from permdist.models.conditional import Expected


class ExpectedGain(Expected):
    """Maximizes the sum over queries of the log of the expected gain.

    The objective is ``-sum_q log E[measure] + |w|^2 / C``. It is not convex: the optimizer starts
    from the maximum likelihood estimate over pairs and, with `n_starts`, also from random points
    near it; `restarts_` says what each start came to.

    Over ``"rows"`` it is smooth and cheap, but there chances of cut-off measures in long queries
    are tiny, and such queries outweigh the others: ``"interleavings"`` is the default.

    References
    ----------
    Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, equations (6) to (8).

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> learner = ExpectedGain("auc", space="pairs", n_starts=3).fit(queries)
    >>> len(learner.restarts_)
    3
    """

    card: ClassVar[Card] = Card(
        paper="Dubey et al. 2009",
        optimizes="any measure, in expectation",
        minimizes="-log E[measure]",
        cost="goods x bads",
    )
    settings: ClassVar[Settings] = {
        "C": [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.1, 1.0, 10.0, 1e3, 1e6],
    }

    default_space: ClassVar[str] = "interleavings"

    C: float = 1e-3
    scale: bool = False

    def build_objective(self) -> objectives.ExpectedGain:
        """Return the objective with the learner's parameters."""
        return objectives.ExpectedGain(**self._options(), distribution=self.distribution)
