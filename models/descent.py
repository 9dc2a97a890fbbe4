"""Linear learners: an objective, a solver, and the square of w."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from permdist.models import solvers
from permdist.models.base import Ranker
from permdist.models.objectives.base import OBJECTIVES, Objective, parse_objective
from permdist.models.options import option
from permdist.models.rules import OneOf
from permdist.models.scaling import Scaling
from permdist.models.shared import (
    InBlocks,
    Iterative,
    Penalized,
    Standardized,
    Threaded,
    WarmStarted,
)
from permdist.models.solvers.growing import Blocks
from permdist.models.specs import SpecName

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch
    from permdist.models.blocks import Table
    from permdist.models.history import Watch
    from permdist.models.totals import SumOverBlocks


class Task(NamedTuple):
    """What a solver is to minimize, where it starts, and where it notes its iterations.

    Attributes
    ----------
    total : SumOverBlocks
        The objective as a function of the coefficients.
    start : array of float, shape (features,), or None
    watch : Watch
    scaling : Scaling
        The units of the features, and the factors of the penalty.
    table : Table
        The queries.
    """

    total: SumOverBlocks
    start: FloatArray | None
    watch: Watch
    scaling: Scaling
    table: Table


class Descent(Penalized, Iterative, Standardized, WarmStarted, Threaded, InBlocks, Ranker):
    """A linear ranker that minimizes ``objective(X w) + |w|^2 / C``.

    A learner gives `build_objective`, and `_solve` if it is not minimized by L-BFGS. `history_`
    also has ``gradient``, its norm in scaled variables, ``gap``, the estimated distance to the
    minimum relative to what was gained, and ``silent``, the share of queries whose gradient
    vanishes; or ``lower``, a lower bound of the minimum.
    """

    scales_itself: ClassVar[bool] = True
    warns_if_flat: ClassVar[bool] = True
    advice: ClassVar[str] = "other features"  # where no step can be taken

    solver: str = option(
        OneOf(("auto", "lbfgs", "growing")),
        "How smooth objectives are minimized: by L-BFGS on all queries; by L-BFGS on few of them, "
        "then on more, then on all, in directions learned on the few, which takes far fewer passes "
        "over large data whose features are correlated; or, by default, in the latter way where "
        "there are many queries and nothing to start from. The certificate is the same.",
        default="auto",
    )

    @abstractmethod
    def build_objective(self) -> Objective:
        """Return the objective with the learner's parameters."""

    def _start(self, table: Table) -> FloatArray | None:  # noqa: ARG002
        """Choose where to start from, if the user has not; zeros by default."""
        return None

    def _penalty(self) -> float:
        return float(self.C)

    def _tolerance(self) -> float:
        return float(self.tol)  # type: ignore[arg-type]

    def _batch(self, labels: IntArray, ptr: IntArray) -> Batch:
        return self.build_objective().batch(labels, ptr)

    def _learn_by_blocks(self, table: Table, watch: Watch, start: FloatArray | None) -> None:
        begin = self._start(table) if start is None else start
        self._keep(self._solve(self._task(self.build_objective(), table, begin, watch)))

    def _total(self, objective: Objective, table: Table) -> SumOverBlocks:
        """Make an objective a function of the coefficients."""
        total = table.total(objective, self.n_jobs)
        return total if table.checkpoint is None else table.checkpoint.recorded(total, objective)

    def _task(
        self, objective: Objective, table: Table, start: FloatArray | None, watch: Watch
    ) -> Task:
        """Make an objective ready to be minimized."""
        return Task(self._total(objective, table), start, watch, self._units(table), table)

    def _units(self, table: Table) -> Scaling:
        """Measure features by their spread; the penalty does so with `standardize`."""
        spread = table.spread
        return Scaling(spread, spread**2 if self.standardize else np.ones(len(spread)))

    def _pilot(self, objective: Objective, table: Table, C: float, tol: float = 1e-4) -> FloatArray:
        """Return a rough minimum of another objective, to start from."""
        total = self._total(objective, table)
        options = {"scaling": self._units(table), "tol": tol, "max_iter": 100}
        return self._minimize(total, None, C, **options).w

    def _minimize(
        self, total: SumOverBlocks, start: FloatArray | None, C: float, **limits: Any
    ) -> solvers.Solution:
        """Minimize a smooth objective by the solver that was asked for."""
        grows = self.solver == "growing" or (self.solver == "auto" and start is None)
        if grows and isinstance(total, Blocks):
            rng = np.random.default_rng(0)  # which queries are the few makes little difference
            return solvers.growing(total, start, C, rng=rng, **limits)
        return solvers.lbfgs(total, start, C, **limits)

    def _keep(self, solution: solvers.Solution) -> None:
        self.coef_, self.converged_ = solution.w, solution.converged

    def _solve(self, task: Task) -> solvers.Solution:
        """Minimize the objective; smooth ones by L-BFGS."""
        return self._by_lbfgs(task)

    def _by_lbfgs(self, task: Task) -> solvers.Solution:
        watch = task.watch
        watch.first(np.zeros(task.total.width) if task.start is None else task.start)
        found = self._minimize(task.total, task.start, self._penalty(), **self._limits(task))
        if self.warns_if_flat and found.message == solvers.UNCHANGED:
            self._warn(
                "the loss does not change with the scores; is the measure the same for all "
                "rankings of these queries?"
            )
        elif not (found.converged or watch.stopped):
            self._warn(self._remedy(found, len(watch)))
        return found._replace(w=watch.keep_best()) if watch.stops_early else found

    def _remedy(self, found: solvers.Solution, steps: int) -> str:
        """Say why a fit has not converged, and what to do."""
        if steps == 0:
            return f"the optimizer could not take a step; try {self.advice}"
        gap = f"an estimated gap of {found.gap:.2g} of what was gained"
        if found.message == "max_iter":
            return (
                f"max_iter={self.max_iter} iterations ended with {gap}; use a larger max_iter, a "
                "smaller C or a larger tol"
            )
        return (
            f"the optimizer could not improve further, with {gap}; use a smaller C, a larger tol "
            f"or {self.advice}"
        )

    def _by_planes(self, task: Task) -> solvers.Solution:
        watch = task.watch
        inputs = task.total, task.start, self._penalty()
        found = solvers.cutting_planes(*inputs, **self._limits(task))
        early = watch.stops_early and watch.best is not None
        if not (found.converged or early):
            self._warn(
                f"stopped with a duality gap of {found.gap:.2g} of the objective; use a smaller C, "
                "standardize=True, a larger max_iter or a larger tol"
            )
        return found._replace(w=watch.keep_best()) if early else found

    def _limits(self, task: Task) -> dict[str, Any]:
        """Return the units of a solver, when it stops, and where it notes its iterations."""
        task.watch.expect(self._tolerance(), self.max_iter - len(task.watch))
        return {
            "scaling": task.scaling,
            "tol": self._tolerance(),
            "max_iter": self.max_iter,
            "note": task.watch.linear,
        }

    def _warn(self, text: str) -> None:
        warnings.warn(f"{type(self).__name__}: {text}", ConvergenceWarning, stacklevel=3)


class LinearRanker(Descent):
    """A linear learner of any objective, such as one of your own.

    Minimizes ``sum_q objective(scores of q, labels of q) + |w|^2 / C``.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> LinearRanker("listnet[target=label]", C=10.0).fit(queries).converged_
    True
    """

    listed: ClassVar[bool] = False
    measure_judges: ClassVar[bool] = True

    objective: str | Objective = option(
        SpecName(OBJECTIVES),
        "One of `permdist.objectives`, or its text form.",
        default="listnet",
        kw_only=False,
    )
    solver: str = option(
        OneOf(("auto", "lbfgs", "growing", "cutting-planes")),
        "Cutting planes for convex objectives that are not smooth. For smooth ones L-BFGS, on all "
        "queries or on growing sets of them, or whichever of both suits their number.",
        default="auto",
    )

    def build_objective(self) -> Objective:
        """Return the objective with the learner's parameters."""
        return parse_objective(self.objective)

    def _solve(self, task: Task) -> solvers.Solution:
        return self._by_planes(task) if self.solver == "cutting-planes" else self._by_lbfgs(task)
