"""The convex bound: likelihood of the loss-augmented model."""

from __future__ import annotations

from typing import ClassVar

from permdist._check import FloatArray
from permdist.models.base import Card, Settings
from permdist.models.conditional import Conditional, Loss
from permdist.models.spaces import Batch


class ConvexLoss(Conditional):
    """The convex upper bound of likelihood plus expected loss.

    Minimises ``sum_q log sum_y exp(F(y) - F(best) + kappa loss(y)) + |w|^2 / C``: convex in every
    space. ``kappa=0`` is `MLE`; as kappa grows it becomes the structured hinge loss, to which it is
    an upper bound.

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
        optimises="any measure, by a convex bound",
        minimises="log sum_y exp(F(y) - F(best) + kappa loss(y))",
        cost="goods x bads",
    )
    settings: ClassVar[Settings] = {
        "C": [1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1],
        "kappa": [1.0, 30.0, 100.0],
        "scale": [False],
    }

    spaces = ("lattice", "interleavings", "restart", "pairs")

    def _prepare(self, batch: Batch) -> Loss:
        space = self._space(batch)

        def loss(scores: FloatArray) -> tuple[float, FloatArray]:
            values, gradient = space.log_sums(scores, float(self.kappa))
            return float(values.sum()), gradient

        return loss
