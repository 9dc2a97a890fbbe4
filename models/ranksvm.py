"""RankSVM: hinges on pairs of documents, counted instead of made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist._typing import FloatArray, IntArray
from permdist.measures import Measure
from permdist.models.base import Card, Settings
from permdist.models.descent import Descent, Loss
from permdist.models.history import Watch
from permdist.models.planes import learn_by_planes
from permdist.models.rules import USUAL, Number, OneOf, Rule
from permdist.models.spaces import Batch
from permdist.models.spaces.base import spread


class RankSVM(Descent):
    """A linear ranking function with a margin between documents of different labels.

    Minimizes ``sum_q weight_q sum_pairs max(0, 1 - (s_i - s_j))^e + |w|^2 / C`` over all pairs
    with a higher label of i, by sorting: O(n log n) for a query of n documents.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge"}
        e = 2, which is smooth and goes to L-BFGS (`tol` bounds the gradient); or e = 1, by cutting
        planes (`tol` bounds the duality gap, relative to the objective).
    C : float
        The larger, the weaker the regularization.
    scale : bool
        Whether the weight of a query is 1 over its number of pairs, or 1.
    measure : Measure or str
        What `score` and early stopping look at; it plays no part in the objective.
    normalize : bool, str or sequence of str
        How to scale every feature within its query, as in `MLE`.
    max_iter, tol : int, float
        When to stop; the default of `tol` is 1e-5 for the gradient and 1e-3 for the gap.
    early_stopping : int, optional
        Stop after so many iterations without a better measure on `eval_set`, and keep the best.
    warm_start : bool
        Whether `fit` starts from the coefficients of the last one.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.
    verbose : bool

    Attributes
    ----------
    history_ : dict of lists
        ``objective``, and ``gradient`` or ``lower``, the lower bound of the minimum.

    References
    ----------
    Joachims: Optimizing Search Engines Using Clickthrough Data; it is a baseline of Xu et al.:
    Direct Optimization of Evaluation Measures in Learning to Rank.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> RankSVM(C=10.0).fit(queries).converged_
    True
    >>> hinge = RankSVM(loss="hinge", C=10.0).fit(queries)
    >>> hinge.history_["objective"][-1] <= 1.001 * hinge.history_["lower"][-1]
    True
    """

    card: ClassVar[Card] = Card(
        paper="Joachims 2002",
        optimizes="pairs in the right order",
        minimizes="hinges over pairs",
        cost="n log n",
    )
    settings: ClassVar[Settings] = {"C": [3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]}
    measure_judges: ClassVar[bool] = True

    rules: ClassVar[Mapping[str, Rule]] = {
        **USUAL,
        "loss": OneOf(("squared_hinge", "hinge")),
        "tol": Number(0.0, 1.0, optional=True),
    }

    def __init__(
        self,
        *,
        loss: str = "squared_hinge",
        C: float = 1.0,
        scale: bool = True,
        measure: str | Measure = "ap",
        normalize: bool | str | Sequence[str] = False,
        max_iter: int = 1000,
        tol: float | None = None,
        early_stopping: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.C = C
        self.scale = scale
        self.measure = measure
        self.normalize = normalize
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _tolerance(self) -> float:
        if self.tol is not None:
            return float(self.tol)
        return 1e-5 if self.loss == "squared_hinge" else 1e-3

    def _prepare(self, batch: Batch) -> Loss:
        cost = np.diff(batch.ptr).astype(float)
        squared = self.loss == "squared_hinge"

        def loss(scores: FloatArray) -> tuple[float, FloatArray]:
            values, gradient = np.empty(len(batch)), np.empty(len(scores))

            def work(first: int, last: int) -> None:
                layout = batch.levels, batch.ptr, batch.scale
                _pair_hinges(first, last, scores, *layout, squared, values, gradient)

            spread(work, cost, self.n_jobs)
            return float(values.sum()), gradient

        return loss

    def _learn(self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray) -> None:
        if self.loss == "squared_hinge":
            super()._learn(features, batch, watch, start)
        else:
            learn_by_planes(self, self._prepare(batch), features, watch, start)


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
