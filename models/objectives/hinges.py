"""Hinges: over pairs of documents, and over whole rankings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist.measures import Measure, parse
from permdist.models.batch import NO_CURVATURE, derivatives_in_threads, sums_in_threads
from permdist.models.objectives.base import Bound, BoundDerivatives, Objective
from permdist.models.rules import Flag, MeasureName, Number, OneOf
from permdist.models.spaces import StructuredHinge
from permdist.rankings.sorting import ascending
from permdist.sums.thresholds import GRADES, choose_grades

if TYPE_CHECKING:
    from collections.abc import Mapping

    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch
    from permdist.models.rules import Rule

LARGEST_WEIGHT = 1e6  # of AUC; beside larger ones a measure is lost to rounding


@dataclass(frozen=True)
class PairHinge(Objective):
    """``sum max(0, 1 - (s_i - s_j))^e`` over all pairs with a higher label of i, by sorting.

    Convex. The curvature is twice the number of pairs of a document with less than the margin, by
    the number of pairs if `scale`; it is exact if `squared`.

    Parameters
    ----------
    squared : bool
        Whether e is 2, which is smooth, or 1.
    scale : bool
        Whether to divide the sum of a query by its number of pairs.

    References
    ----------
    Joachims: Optimizing Search Engines Using Clickthrough Data.

    Examples
    --------
    >>> value, gradient = PairHinge(scale=False)([0.5, 0.0], [1, 0])
    >>> value, gradient
    (0.25, array([-1.,  1.]))
    """

    alias: ClassVar[str] = "pair-hinge"
    squared: bool = True
    scale: bool = True

    rules: ClassVar[Mapping[str, Rule]] = {"squared": Flag(), "scale": Flag()}

    @property
    def scaled(self) -> bool:
        """Whether sums are divided by the number of pairs of each query."""
        return self.scale

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        layout = batch.levels, batch.ptr, batch.scale, self.squared

        def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
            values, gradient = out
            _pair_hinges(first, last, scores, *layout, values, gradient, NO_CURVATURE)

        return sums_in_threads(work, batch, batch.sizes, n_jobs)

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        layout = batch.levels, batch.ptr, batch.scale, self.squared

        def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
            _pair_hinges(first, last, scores, *layout, *out)

        return derivatives_in_threads(work, batch, 100.0 * batch.sizes, n_jobs)


@dataclass(frozen=True)
class RankingHinge(Objective):
    """``max_y [loss(y) - (F(best) - F(y))]``: the hinge of structural SVMs.

    The loss is ``1 - measure(y) + auc_weight * (1 - AUC(y))``. The worst ranking of each query is
    found exactly, for any measure. Convex, with kinks: there is no curvature to speak of, and the
    one of `Objective.bind_derivatives` stands in for it.

    Parameters
    ----------
    measure : Measure or str
    scale : bool
        Whether to divide score differences by the number of pairs of each query.
    auc_weight : float
        The weight of the share of pairs in the wrong order; 0 is the papers' hinge. Without it, a
        measure with a cut-off has no slope at equal scores where queries are long.
    grades : {"thresholds", "levels", "auto"}
        Queries of more than two labels: add up one hinge per threshold between labels; search all
        interleavings of all labels at once; or do so where this takes at most 2 million cells.

    References
    ----------
    Yue et al.: A Support Vector Method for Optimizing Average Precision.

    Examples
    --------
    >>> RankingHinge("ap")([9.0, 0.0], [1, 0])[0]
    0.0
    >>> RankingHinge("ap", auc_weight=0.5)([0.0, 0.0], [1, 0])[0]  # 1 - 1/2, and a wrong pair
    1.0
    """

    alias: ClassVar[str] = "ranking-hinge"
    measure: Measure | str = "ap"
    scale: bool = True
    auc_weight: float = 0.0
    grades: str = "thresholds"

    rules: ClassVar[Mapping[str, Rule]] = {
        "measure": MeasureName(),
        "scale": Flag(),
        "auc_weight": Number(0.0, LARGEST_WEIGHT),
        "grades": OneOf(GRADES),
    }

    @property
    def scaled(self) -> bool:
        """Whether score differences are divided by the number of pairs of each query."""
        return self.scale

    def settle(self, labels: IntArray, ptr: IntArray) -> Objective:
        """Decide about queries of more than two labels by all of them; see `Objective.settle`."""
        return replace(self, grades=choose_grades(labels, ptr, grades=self.grades))

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        weight, grades = self.auc_weight, self.grades
        measure = parse(self.measure)
        return StructuredHinge(batch, measure, n_jobs, auc_weight=weight, grades=grades)


@kernel
def _pair_hinges(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    level_of: IntArray,
    ptr: IntArray,
    weights: FloatArray,
    squared: bool,
    values: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
) -> None:
    """Fill in values (queries,) and gradient (documents,): sums over pairs of different levels.

    The curvature (documents,) counts violated pairs, twice; it may be empty.

    From the highest score down, a document meets those of lower levels that are less than 1 below
    it or anywhere above it; from the lowest score up, those of higher levels that are less than 1
    above it or below it. Both sets only grow along the way, and so do the margins missing to each
    of their members: nothing is ever subtracted, no digits are lost.
    """
    for q in range(first_query, last_query):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        levels = 0
        for i in range(a, a + n):
            levels = max(levels, level_of[i] + 1)
        order = ascending(scores[a : a + n])
        values[q] = 0.0
        for sign in (-1.0, 1.0):
            # Of each level: the number of violating documents, their missing margins and squares.
            number, sums, squares = np.zeros(levels), np.zeros(levels), np.zeros(levels)
            value, entered, last = 0.0, 0, 0.0
            for t in range(n):
                i = a + order[t if sign > 0.0 else n - 1 - t]
                if t > 0:
                    step = sign * (scores[i] - last)
                    for c in range(levels):
                        squares[c] += step * (2.0 * sums[c] + step * number[c])
                        sums[c] += step * number[c]
                last = scores[i]
                while entered < n:
                    j = a + order[entered if sign > 0.0 else n - 1 - entered]
                    missing = 1.0 + sign * (last - scores[j])
                    if missing <= 0.0:
                        break
                    number[level_of[j]] += 1.0
                    sums[level_of[j]] += missing
                    squares[level_of[j]] += missing * missing
                    entered += 1
                slope, violated, level = 0.0, 0.0, level_of[i]
                start, end = (level + 1, levels) if sign > 0.0 else (0, level)
                for c in range(start, end):
                    slope += 2.0 * sums[c] if squared else number[c]
                    value += squares[c] if squared else sums[c]
                    violated += number[c]
                if len(curvature) > 0:
                    curvature[i] += 2.0 * weights[q] * violated
                gradient[i] = sign * weights[q] * slope + (gradient[i] if sign > 0.0 else 0.0)
            if sign < 0.0:
                values[q] = weights[q] * value
