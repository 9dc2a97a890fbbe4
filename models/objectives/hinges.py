"""Hinges: over pairs of documents, and over whole rankings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist.measures import Measure, parse
from permdist.models.batch import sums_in_threads
from permdist.models.objectives.base import Bound, Objective
from permdist.models.spaces import StructuredHinge

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch


@dataclass(frozen=True)
class PairHinge(Objective):
    """``sum max(0, 1 - (s_i - s_j))^e`` over all pairs with a higher label of i, by sorting.

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

    @property
    def scaled(self) -> bool:
        """Whether sums are divided by the number of pairs of each query."""
        return self.scale

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        layout = batch.levels, batch.ptr, batch.scale, self.squared

        def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
            _pair_hinges(first, last, scores, *layout, *out)

        return sums_in_threads(work, batch, batch.sizes, n_jobs)


@dataclass(frozen=True)
class RankingHinge(Objective):
    """``max_y [1 - measure(y) - (F(best) - F(y))]``: the hinge of structural SVMs.

    The worst ranking of each query is found exactly, for any measure.

    Parameters
    ----------
    measure : Measure or str
    scale : bool
        Whether to divide score differences by the number of pairs of each query.

    References
    ----------
    Yue et al.: A Support Vector Method for Optimizing Average Precision.

    Examples
    --------
    >>> RankingHinge("ap")([9.0, 0.0], [1, 0])[0]
    0.0
    """

    alias: ClassVar[str] = "ranking-hinge"
    measure: Measure | str = "ap"
    scale: bool = True

    @property
    def scaled(self) -> bool:
        """Whether score differences are divided by the number of pairs of each query."""
        return self.scale

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        return StructuredHinge(batch, parse(self.measure), n_jobs)


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
) -> None:
    """Fill in values (queries,) and gradient (documents,): sums over pairs of different levels.

    Two sweeps over the documents by score: a document meets those of lower levels less than 1
    below it or anywhere above it, and those of higher levels less than 1 above it or below it.
    """
    for q in range(first_query, last_query):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        levels = level_of[a : a + n].max() + 1
        order = np.argsort(scores[a : a + n])
        middle = scores[a : a + n].mean()
        # Of the lower documents: numbers, scores and squares of those that still violate.
        number, sums, squares = np.zeros(levels), np.zeros(levels), np.zeros(levels)
        for i in range(n):
            score = scores[a + i] - middle
            number[level_of[a + i]] += 1
            sums[level_of[a + i]] += score
            squares[level_of[a + i]] += score * score
        value, passed = 0.0, 0
        for t in range(n):
            i = order[t]
            score, level = scores[a + i] - middle, level_of[a + i]
            while passed < n and scores[a + order[passed]] - middle <= score - 1.0:
                j = order[passed]
                other = scores[a + j] - middle
                number[level_of[a + j]] -= 1
                sums[level_of[a + j]] -= other
                squares[level_of[a + j]] -= other * other
                passed += 1
            slope, c = 0.0, 1.0 - score
            for lower in range(level):
                if squared:
                    value += number[lower] * c * c + 2.0 * c * sums[lower] + squares[lower]
                    slope -= 2.0 * (number[lower] * c + sums[lower])
                else:
                    value += number[lower] * c + sums[lower]
                    slope -= number[lower]
            gradient[a + i] = weights[q] * slope
        number[:], sums[:] = 0.0, 0.0
        entered = 0
        for t in range(n):
            j = order[t]
            score, level = scores[a + j] - middle, level_of[a + j]
            while entered < n and scores[a + order[entered]] - middle - 1.0 < score:
                i = order[entered]
                number[level_of[a + i]] += 1
                sums[level_of[a + i]] += scores[a + i] - middle
                entered += 1
            slope, c = 0.0, 1.0 + score
            for higher in range(level + 1, levels):
                slope += 2.0 * (number[higher] * c - sums[higher]) if squared else number[higher]
            gradient[a + j] += weights[q] * slope
        values[q] = weights[q] * value
