"""Where learners start whose objective is flat at 0: a pilot, as long as suits them."""

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

    In queries of 100 documents and more a smooth cut-off is far from all documents that tie at
    w = 0, and its gradient vanishes there.
    """

    start: str = option(
        OneOf((*PILOTS, "zeros")),
        "Where to start, unless from another fit: from the minimum of ListNet, or of the "
        "likelihood of good-bad pairs, multiplied by the number of a grid that suits the "
        "learner's own objective best; or from zeros.",
        default="listnet",
    )

    def _unit(self) -> float:
        """Return the difference of scores that the objective begins to distinguish."""
        return 1.0

    def _start(self, features: FloatArray, batch: Batch) -> FloatArray | None:
        """Choose the length of a pilot by the learner's own objective."""
        if self.start == "zeros":
            return None
        pilot = self._pilot(PILOTS[self.start], features, batch, WEAK)
        scores = features @ pilot
        means = np.add.reduceat(scores, batch.ptr[:-1]) / batch.sizes
        spread = float(np.sqrt(np.mean((scores - means[batch.query_of]) ** 2)))
        if not spread > 0.0:
            return None
        bound, ridge = self.build_objective().bind(batch, self.n_jobs), self._scaling(features, batch.ptr).penalty
        best, lowest = pilot, np.inf
        for length in LENGTHS:
            factor = length * self._unit() / spread
            value = float(bound(factor * scores)[0].sum())
            value += factor**2 * float(ridge @ pilot**2) / self._penalty()
            if value < lowest:
                best, lowest = factor * pilot, value
        return best
