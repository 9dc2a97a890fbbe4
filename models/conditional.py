"""What the learners of the good-bad pair model share: their parameters, and where they start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._check import as_rng
from permdist.measures import AUC
from permdist.models import solvers
from permdist.models.attributes import Numbers
from permdist.models.descent import Descent
from permdist.models.objectives import Likelihood
from permdist.models.options import Declared, learned, option
from permdist.models.rules import MeasureName, Number, OneOf, Whole
from permdist.models.shared import Graded, PairScaled, Seeded
from permdist.models.spaces import SPACES, Interleavings, Pairs, Rows, Sample, Space, parse_space
from permdist.models.spaces.sample import SampleReport
from permdist.models.spaces.utilities import UTILITIES
from permdist.models.specs import SpecName

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.measures import Measure
    from permdist.models.blocks import Table
    from permdist.models.descent import Task
    from permdist.models.history import Watch

STAYS = 1e-6  # a change of the objective, relative to it, that calls for no other round


class Conditional(PairScaled, Graded, Seeded, Descent):
    """A learner of the conditional model ``Pr(y) proportional to exp F(y)`` of each query."""

    default_space: ClassVar[str] = "pairs"
    prefers_rows: ClassVar[bool] = False  # by default, for measures that are sums over rows
    advice: ClassVar[str] = "space='orders', or other features"

    measure: str | Measure = option(
        MeasureName(),
        "The gain; the loss is 1 less it. It is also what `score` and early stopping look at.",
        default="ap",
        kw_only=False,
    )
    space: str | Space | None = option(
        SpecName(SPACES, optional=True),
        "The rankings that are summed over, with their options, as an object of "
        '`permdist.models.spaces` or as text: ``"pairs"``, all sign vectors of good-bad pairs '
        '(AUC only, or no measure at all); ``"rows"``, the same with the relevant documents in a '
        'fixed order, for measures of positions; ``"interleavings"`` of the classes, each sorted '
        'by score; ``"orders"``, all orders, with class orders drawn from a pilot for longer '
        'queries; ``"valid-signs"``, the distinct sign vectors that orders have; '
        '``"restart[sample_size=100]"``, a fixed sample. The default depends on the learner and '
        "the measure.",
        default=None,
    )

    sample_: Sample | None = learned(
        SampleReport(),
        "Of spaces that draw: the effective sample size of each query, and how much was covered.",
    )

    def _options(self) -> dict[str, Any]:
        """Return the parameters that all objectives of conditional models have."""
        return {
            "measure": self.judge,
            "space": self._space(),
            "scale": self.scale,
            "random_state": self.random_state,
        }

    def _space(self) -> Space:
        if self.space is not None:
            return parse_space(self.space)
        if self.prefers_rows and isinstance(self.judge, AUC):
            return Pairs()  # in closed form
        if self.prefers_rows and Rows.supports(self.judge, graded=self.graded):
            return Rows()
        return parse_space(self.default_space)

    def _starts_from_pairs(self) -> bool:
        return self._space().kinked

    def _start(self, table: Table) -> FloatArray | None:
        """Start from the likelihood over pairs where w = 0 is a kink: sorted classes all tie."""
        if not self._starts_from_pairs():
            return None
        return self._pilot(Likelihood(scale=self.scale), table, self._penalty())

    def _draws_by_document(self) -> bool:
        return self._space().draws

    def _by_lbfgs(self, task: Task) -> solvers.Solution:
        """Minimize; where the space sorts or draws by scores, do so again and go on."""
        total, watch = task.total, task.watch
        begin = np.zeros(total.width) if task.start is None else task.start
        if not total.resort(begin) and not total.adapts:
            found = self._by_plain_lbfgs(task)
            if self._space().kinked:
                found = self._unless_zero(task, found)
            self.sample_ = total.report(found.w)
            return found
        rounds = getattr(self._space(), "rounds", 1)
        found = solvers.Solution(begin, np.inf)
        for number in range(1, rounds + 1):
            before = len(watch)
            found = self._by_plain_lbfgs(task._replace(start=begin))
            watch.history.setdefault("round", []).extend([float(number)] * (len(watch) - before))
            share = total.reach(begin, found.w)
            if number == rounds or not found.converged or len(watch) >= self.max_iter:
                found = self._far(found, share)
                break
            begin = found.w if share == 1.0 else begin + share * (found.w - begin)
            value = total(begin).value
            if not total.resort(begin):
                break
            change = abs(total(begin).value - value)
            if share == 1.0 and change <= STAYS * abs(value):
                break
        self.sample_ = total.report(found.w)
        return found

    def _by_plain_lbfgs(self, task: Task) -> solvers.Solution:
        """Minimize without sorting anything again."""
        return super()._by_lbfgs(task)

    def _unless_zero(self, task: Task, found: solvers.Solution) -> solvers.Solution:
        """Return w = 0 where nothing is gained over it; at a kink there, L-BFGS ends close by."""
        zero = task.total(np.zeros(task.total.width)).value
        flat = found.message == solvers.UNCHANGED  # which has been said
        if flat or task.watch.stopped or found.value < zero - STAYS * abs(zero):
            return found
        return found._replace(w=np.zeros_like(found.w), value=zero)

    def _why_flat(self) -> str:
        if not isinstance(self._space(), Interleavings):
            return super()._why_flat()
        return (
            f"{super()._why_flat()} Over interleavings the minimum is at w = 0 where the signal is "
            "weak: use space='rows' or 'orders'"
        )

    def _far(self, found: solvers.Solution, share: float) -> solvers.Solution:
        """Warn if the last round went farther than what was drawn for it can be relied on."""
        if share == 1.0 or not found.converged:
            return found
        self._warn(
            "the rankings that were drawn have not settled; use more rounds or draws of the space, "
            "or a smaller C"
        )
        return found._replace(converged=False)

    def _limits(self, task: Task) -> dict[str, Any]:
        return super()._limits(task) | {"max_iter": self.max_iter - len(task.watch)}


class LossWeighted(Declared):
    """A learner with a weight of the loss beside the likelihood."""

    kappa: float = option(Number(0.0), "The weight of the loss beside the likelihood.", default=1.0)


class Expected(Conditional):
    """A learner of an expectation of the measure, which is not convex in w."""

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

    def _why_flat(self) -> str:
        # Under other distributions than the good-bad model, spaces play no part.
        summed = self.distribution == "good-bad"
        return super()._why_flat() if summed else super(Conditional, self)._why_flat()

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
                return -watch.judge_linear(found.w)
            return found.value

        rng = as_rng(self.random_state)
        begin = np.zeros(task.total.width) if task.start is None else task.start
        best = solvers.multistart(
            solve, begin, self.n_starts, rng, units=task.scaling.factors, merit=merit
        )
        adopted, self.sample_ = runs[id(best.w)]
        watch.adopt(adopted)
        self.restarts_ = list(best.starts)
        return best
