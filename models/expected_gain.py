"""Expected gain, with restarts of the optimizer against its local optima."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._check import as_rng
from permdist.models import objectives, solvers
from permdist.models.attributes import Numbers
from permdist.models.base import Card, Settings
from permdist.models.conditional import Conditional
from permdist.models.options import learned, option
from permdist.models.rules import OneOf, Whole
from permdist.models.spaces.utilities import UTILITIES

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.models.descent import Task
    from permdist.models.history import Watch
    from permdist.models.spaces import Sample


class ExpectedGain(Conditional):
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
        "C": [1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.1, 1.0, 10.0, 1e3, 1e6],
    }

    default_space: ClassVar[str] = "interleavings"

    C: float = 1e-3
    scale: bool = False

    distribution: str = option(
        OneOf(("good-bad", *UTILITIES)),
        "Under which the expectation is taken; exactly for all of them, but for restart samples.",
        default="good-bad",
    )
    n_starts: int = option(
        Whole(),
        "How often the optimizer starts: from the likelihood over pairs, then near it.",
        default=1,
    )

    restarts_: list[float] = learned(
        Numbers((None,), listed=True), "The objective that each start came to."
    )

    def build_objective(self) -> objectives.ExpectedGain:
        """Return the objective with the learner's parameters."""
        return objectives.ExpectedGain(**self._options(), distribution=self.distribution)

    def _starts_from_pairs(self) -> bool:
        return True  # whatever the space: far from any good ranking the gain is flat

    def _solve(self, task: Task) -> solvers.Solution:
        runs: dict[int, tuple[Watch, Sample | None]] = {}
        watch = task.watch

        def solve(begin: FloatArray) -> solvers.Solution:
            run = watch.again()
            found = self._by_lbfgs(task._replace(start=begin, watch=run))
            runs[id(found.w)] = run, self.sample_
            return found

        def merit(found: solvers.Solution) -> float:
            if watch.stops_early and watch.held_out is not None:
                return -watch.judge(watch.held_out.X @ found.w)
            return found.value

        rng = as_rng(self.random_state)
        begin = np.zeros(task.features.shape[1]) if task.start is None else task.start
        best = solvers.multistart(
            solve, begin, self.n_starts, rng, units=task.scaling.factors, merit=merit
        )
        adopted, self.sample_ = runs[id(best.w)]
        watch.adopt(adopted)
        self.restarts_ = list(best.starts)
        return best
