"""SoftRank: the expected measure when Gaussian noise is added to scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist.models import objectives, solvers
from permdist.models.attributes import Numbers
from permdist.models.base import Card, Settings
from permdist.models.options import learned, option
from permdist.models.rules import SMALLEST, MeasureName, Number, OneOf
from permdist.models.starts import Piloted

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.measures import Measure


class SoftRank(Piloted):
    """Maximizes NDCG, or another measure of positions, in expectation over noise in the scores.

    Minimizes ``sum_q 1 - E[measure] + |w|^2 / C``, which is not convex; by quadrature to about
    1e-11. A query of n documents costs O(n k) for each of some 50 to 100 nodes with a cut-off at
    k, and O(n^2) for each of O(sqrt(n)) nodes without one: prefer a cut-off for long queries.

    Attributes
    ----------
    noise_ : float
        The standard deviation that goes with `coef_`.

    References
    ----------
    Taylor et al.: SoftRank: Optimising Non-Smooth Rank Metrics.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(15, n_documents=(5, 20), rng=0)
    >>> learner = SoftRank("ndcg@10").fit(queries)
    >>> learner.history_["objective"][-1] <= learner.history_["objective"][0]
    True
    """

    card: ClassVar[Card] = Card(
        paper="Taylor et al. 2008",
        optimizes="NDCG, precision",
        minimizes="1 - E[measure] under Gaussian noise",
        cost="n x cut-off x nodes",
    )
    settings: ClassVar[Settings] = {"C": [1.0, 10.0, 100.0, 1000.0]}

    measure: str | Measure = option(
        MeasureName(),
        "A sum over positions: NDCG, Precision or WTA. It is also what `score` and early "
        "stopping look at.",
        default="ndcg@10",
        kw_only=False,
    )
    noise: float | str = option(
        Number(SMALLEST, words=("learned",)),
        'The standard deviation of the noise on every score, or ``"learned"``. Only its ratio '
        "to the scores matters: to learn it, the length of w is left free, without the "
        "penalty, and both are divided by that length.",
        default=1.0,
    )
    method: str = option(
        OneOf(("exact", "softrank")),
        "Rank probabilities by quadrature, to about 1e-11; or by the recursion of the paper, which "
        "takes the events that others are above a document as independent.",
        default="exact",
    )
    C: float = 100.0
    max_iter: int = 200
    tol: float | None = 1e-5

    noise_: float = learned(
        Numbers((), 0.0, above=True), "The standard deviation that goes with `coef_`."
    )

    def build_objective(self) -> objectives.NoisyMeasure:
        """Return the objective with the learner's parameters."""
        noise = 1.0 if self.noise == "learned" else float(self.noise)
        return objectives.NoisyMeasure(self.judge, noise, self.method)

    def _unit(self) -> float:
        return self.build_objective().noise

    def _penalty(self) -> float:
        return np.inf if self.noise == "learned" else float(self.C)

    def _previous(self) -> FloatArray | None:
        before = super()._previous()
        # Where the last fit ended, in units of noise 1.
        return before / self.noise_ if self.noise == "learned" and before is not None else before

    def _keep(self, solution: solvers.Solution) -> None:
        super()._keep(solution)
        length = float(np.linalg.norm(self.coef_))
        if self.noise == "learned" and length > 0.0:
            self.coef_, self.noise_ = self.coef_ / length, 1.0 / length
        else:
            self.noise_ = 1.0 if self.noise == "learned" else float(self.noise)
