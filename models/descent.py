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
from permdist.models.shared import Iterative, Penalized, Threaded, WarmStarted
from permdist.models.specs import SpecName

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch
    from permdist.models.history import Watch


class Task(NamedTuple):
    """What a solver is to minimize, where it starts, and where it notes its iterations."""

    bound: solvers.Objective
    features: FloatArray
    start: FloatArray | None
    watch: Watch


class Descent(Penalized, Iterative, WarmStarted, Threaded, Ranker):
    """A linear ranker that minimizes ``objective(X w) + |w|^2 / C``.

    A learner gives `build_objective`, and `_solve` if it is not minimized by L-BFGS; `history_`
    also has ``gradient``, its largest entry, or ``lower``, a lower bound of the minimum.
    """

    warns_if_flat: ClassVar[bool] = True
    advice: ClassVar[str] = "other features"  # where no step can be taken

    @abstractmethod
    def build_objective(self) -> Objective:
        """Return the objective with the learner's parameters."""

    def _start(self, features: FloatArray, batch: Batch) -> FloatArray | None:  # noqa: ARG002
        """Choose where to start from, if the user has not; zeros by default."""
        return None

    def _penalty(self) -> float:
        return float(self.C)

    def _tolerance(self) -> float:
        return float(self.tol)  # type: ignore[arg-type]

    def _batch(self, labels: IntArray, ptr: IntArray) -> Batch:
        return self.build_objective().batch(labels, ptr)

    def _learn(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray | None
    ) -> None:
        bound = self.build_objective().bind(batch, self.n_jobs)
        begin = self._start(features, batch) if start is None else start
        self._keep(self._solve(Task(bound, features, begin, watch)))

    def _keep(self, solution: solvers.Solution) -> None:
        self.coef_, self.converged_ = solution.w, solution.converged

    def _solve(self, task: Task) -> solvers.Solution:
        """Minimize the objective; smooth ones by L-BFGS."""
        return self._by_lbfgs(task)

    def _by_lbfgs(self, task: Task) -> solvers.Solution:
        watch = task.watch
        watch.first(np.zeros(task.features.shape[1]) if task.start is None else task.start)
        found = solvers.lbfgs(*task[:3], self._penalty(), **self._limits(watch))
        if self.warns_if_flat and found.message == solvers.UNCHANGED:
            self._warn(
                "the loss does not change with the scores; is the measure the same for all "
                "rankings of these queries?"
            )
        elif len(watch) == 0 and not found.converged:
            text = f"the optimizer could not take a step ({found.message}); try {self.advice}"
            self._warn(text)
        return found._replace(w=watch.best) if watch.stops_early else found

    def _by_planes(self, task: Task) -> solvers.Solution:
        watch = task.watch
        found = solvers.cutting_planes(*task[:3], self._penalty(), **self._limits(watch))
        early = watch.stops_early and watch.best is not None
        if not (found.converged or early):
            gap = (found.value - found.lower) / found.value
            self._warn(
                f"stopped with a duality gap of {gap:.2g} of the objective; use a smaller C, "
                "smaller features (normalize=True) or a larger max_iter"
            )
        return found._replace(w=watch.best) if early else found

    def _limits(self, watch: Watch) -> dict[str, Any]:
        """Return when a solver stops, and where it notes its iterations."""
        return {"tol": self._tolerance(), "max_iter": self.max_iter, "note": watch.linear}

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
        OneOf(("lbfgs", "cutting-planes")),
        "L-BFGS for smooth objectives, or cutting planes for convex ones that are not.",
        default="lbfgs",
    )

    def build_objective(self) -> Objective:
        """Return the objective with the learner's parameters."""
        return parse_objective(self.objective)

    def _solve(self, task: Task) -> solvers.Solution:
        return self._by_lbfgs(task) if self.solver == "lbfgs" else self._by_planes(task)
