"""An objective as boosters use it: gradient and curvature, prepared once per data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import grades
from permdist._parallel import pointers, rows_of
from permdist.adapters.groups import query_weights, sizes_of
from permdist.models.objectives import parse_objective
from permdist.models.rules import Flag, Number

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray
    from permdist.models.objectives import Objective

KEPT = 16  # data sets that are kept ready: those of a cross-validation, and more


class Ready(NamedTuple):
    """A data set that an objective is ready for, and what its derivatives are multiplied by."""

    labels: FloatArray
    sizes: IntArray
    weights: FloatArray | None
    derive: Callable[[FloatArray], Any]
    factor: float


class GroupedLoss:
    """An objective on documents whose queries are given by their sizes.

    Parameters
    ----------
    objective : Objective or str
    unit : bool
        Whether to multiply gradient and curvature by the number that makes the mean curvature of
        a document 1 where all scores are 0. It depends on the objective and the data alone, so
        that training can be continued. Steps are the same, but parameters that are compared with
        sums of curvature (``min_child_weight``, ``min_sum_hessian_in_leaf``, ``lambda_l2``) then
        count documents, whatever the objective.
    floor : float
        The smallest curvature of a document, relative to the mean over all of them: where a loss
        is nearly flat or not convex, it keeps steps from becoming too long.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.
    """

    def __init__(
        self,
        objective: Objective | str,
        *,
        unit: bool = True,
        floor: float = 0.1,
        n_jobs: int | None = None,
    ) -> None:
        Flag().check("unit", unit)
        Number(0.0, 1e6).check("floor", floor)
        self.objective: Objective = parse_objective(objective)
        self.unit, self.floor, self.n_jobs = unit, float(floor), n_jobs
        self._ready: list[Ready] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.objective.name!r})"

    def __getstate__(self) -> dict[str, Any]:
        # What is ready for data cannot be copied, and is soon made again.
        return {**self.__dict__, "_ready": []}

    def derivatives(
        self, scores: FloatArray, labels: Any, group: Any, weights: Any = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the curvature at all scores, as doubles.

        Parameters
        ----------
        scores, labels : arrays, shape (documents,)
        group : array of int, shape (queries,)
            How many documents each query has.
        weights : array of float, shape (queries,) or (documents,), optional
        """
        ready = self._find(labels, group, weights)
        found = ready.derive(np.asarray(scores, dtype=np.float64))
        curvature, mean = found.curvature, _mean_of_positive(found.curvature)
        if self.floor and mean > 0.0:
            curvature = np.where(curvature > 0.0, np.maximum(curvature, self.floor * mean), 0.0)
        return ready.factor * found.gradient, ready.factor * curvature

    def _find(self, labels: Any, group: Any, weights: Any) -> Ready:
        """Return the objective ready for a data set, which is known by what it holds."""
        labels = np.asarray(labels)
        for ready in self._ready:
            if _same(ready, labels, group, weights):
                return ready
        sizes = sizes_of("group", group, len(labels))
        each = query_weights("weight", weights, sizes)
        derive = self.objective.prepare(
            grades("label", labels), rows_of(pointers(sizes)), weights=each, n_jobs=self.n_jobs
        )
        kept = None if weights is None else np.array(weights)
        mean = _mean_of_positive(derive(np.zeros(len(labels))).curvature) if self.unit else 0.0
        factor = 1.0 / mean if mean > 0.0 else 1.0
        ready = Ready(np.array(labels), np.array(group), kept, derive, factor)
        self._ready = [ready, *self._ready[: KEPT - 1]]
        return ready


def _mean_of_positive(curvature: FloatArray) -> float:
    """Return the mean curvature of the documents of queries that teach something."""
    return float(curvature.sum()) / max(1, int((curvature > 0.0).sum()))


def _same(ready: Ready, labels: Any, group: Any, weights: Any) -> bool:
    """Return whether data are those that an objective is ready for."""
    if (ready.weights is None) != (weights is None):
        return False
    pairs = [(ready.labels, labels), (ready.sizes, group), (ready.weights, weights)]
    return all(one is None or np.array_equal(one, other) for one, other in pairs)
