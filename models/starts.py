"""Where learners start whose objective is flat at 0: from a pilot, of a length that suits them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from permdist.models.descent import Descent
from permdist.models.objectives import Likelihood, ListNet
from permdist.models.options import option
from permdist.models.rules import OneOf

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray
    from permdist.models.blocks import Table
    from permdist.models.objectives import Objective

# Made when they are used: an objective looks its measure up, and that loads plug-ins.
PILOTS: dict[str, Callable[[], Objective]] = {
    "listnet": partial(ListNet, target="label"),
    "pairs": Likelihood,
}
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

    def _start(self, table: Table) -> FloatArray | None:
        """Minimize a convex objective, and choose the length of w by the learner's own."""
        if self.start == "zeros":
            return None
        pilot = self._pilot(PILOTS[self.start](), table, WEAK)
        total = self._total(self.build_objective(), table)
        spread = total.spread(pilot)
        if not spread > 0.0:
            return None
        length = float(self._units(table).penalty @ pilot**2) / self._penalty()
        factors = np.array(LENGTHS) * self._unit() / spread
        values = total.along(pilot, factors.tolist()) + factors**2 * length
        return pilot * factors[int(np.argmin(values))]
