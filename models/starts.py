"""Where learners start whose objective is flat at 0: from a pilot, of a length that suits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist.models.descent import Descent
from permdist.models.objectives import Likelihood, ListNet
from permdist.models.options import option
from permdist.models.rules import OneOf

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.models.batch import Batch
    from permdist.models.objectives import Objective

PILOTS: dict[str, Objective] = {"listnet": ListNet(target="label"), "pairs": Likelihood()}
WEAK = 100.0  # the C of a pilot
# Standard deviations of the scores within queries, in units of the objective.
LENGTHS = tuple(4.0**power for power in range(-2, 5))


class Piloted(Descent):
    """A learner that starts from the minimum of another, convex objective.

    At w = 0 all documents tie: in a query of 100 they share position 50, far from a cut-off at
    10, whose smooth version has no gradient there.
    """

    start: str = option(
        OneOf((*PILOTS, "zeros")),
        "Where to start, unless from another fit: from the minimum of `ListNet`, or of the "
        "likelihood of good-bad pairs, multiplied by the number of a grid for which the "
        "learner's own objective is lowest; or from zeros, as in the paper. From zeros, measures "
        "with a cut-off have no gradient in queries of 100 documents.",
        default="listnet",
    )

    def _unit(self) -> float:
        """Return the difference of scores that the objective begins to tell apart."""
        return 1.0

    def _start(self, features: FloatArray, batch: Batch) -> FloatArray | None:
        """Minimize a convex objective, and choose the length of w by the learner's own."""
        if self.start == "zeros":
            return None
        pilot = self._pilot(PILOTS[self.start], features, batch, WEAK)
        scores = features @ pilot
        means = np.add.reduceat(scores, batch.ptr[:-1]) / batch.sizes
        spread = float(np.sqrt(np.mean((scores - means[batch.query_of]) ** 2)))
        if not spread > 0.0:
            return None
        bound = self.build_objective().bind(batch, self.n_jobs)
        scaling = self._scaling(features, batch.ptr)
        length = float(scaling.penalty @ pilot**2) / self._penalty()

        def value(factor: float) -> float:
            return float(bound(factor * scores)[0].sum()) + factor**2 * length

        return pilot * min((one * self._unit() / spread for one in LENGTHS), key=value)
