"""ListMLE: the Plackett-Luce likelihood of the labels' own order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from permdist._check import as_rng
from permdist._kernels import kernel
from permdist._typing import FloatArray, IntArray
from permdist.measures import Measure
from permdist.models.base import Card, Settings
from permdist.models.listwise import Listwise, Work
from permdist.models.rules import OneOf, Rule
from permdist.models.spaces import Batch


class ListMLE(Listwise):
    """Maximum likelihood of the best ranking under Plackett-Luce; convex.

    The loss of a query is ``sum_i [log sum_{j not above i} exp s_j - s_i]`` over its documents from
    the highest label down.

    Parameters
    ----------
    ties : {"together", "random", "index"}
        Documents with the same label. ``"together"``: each is compared with all others of its label
        and below, as Breslow does for tied times; the order inside a label then does not matter.
        ``"random"``: in an order drawn once; ``"index"``: as they stand.
    random_state : int, optional
        The seed of that order.
    C : float
        The larger, the weaker the regularization ``|w|^2 / C``; ``numpy.inf`` for none.
    measure : Measure or str
        What `score` and early stopping look at; it plays no part in the objective.
    normalize : bool, str or sequence of str
        How to scale every feature within its query, as in `MLE`.
    max_iter, tol : int, float
        When the optimizer stops: iterations, and the largest entry of the gradient.
    early_stopping : int, optional
        Stop after so many iterations without a better measure on `eval_set`, and keep the best.
    warm_start : bool
        Whether `fit` starts from the coefficients of the last one.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.
    verbose : bool

    References
    ----------
    Xia et al.: Listwise Approach to Learning to Rank: Theory and Algorithm.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> ListMLE().fit(queries).converged_
    True
    """

    card: ClassVar[Card] = Card(
        paper="Xia et al. 2008",
        optimizes="likelihood of the labels' order",
        minimizes="-log Pr(labels' order), Plackett-Luce",
        cost="n",
    )
    settings: ClassVar[Settings] = {"C": [1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0]}
    measure_judges: ClassVar[bool] = True
    rules: ClassVar[Mapping[str, Rule]] = {"ties": OneOf(("together", "random", "index"))}

    def __init__(
        self,
        *,
        ties: str = "together",
        random_state: int | None = 0,
        C: float = 100.0,
        measure: str | Measure = "ndcg@10",
        normalize: bool | str | Sequence[str] = False,
        max_iter: int = 200,
        tol: float = 1e-5,
        early_stopping: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            C=C,
            measure=measure,
            normalize=normalize,
            max_iter=max_iter,
            tol=tol,
            early_stopping=early_stopping,
            warm_start=warm_start,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.ties = ties
        self.random_state = random_state

    def _kernel(self, batch: Batch) -> tuple[Work, FloatArray]:
        n, ptr = len(batch.labels), batch.ptr
        keys = np.arange(n, dtype=float)
        if self.ties == "random":
            keys = as_rng(self.random_state).random(n)
        order = np.lexsort((keys, -batch.labels, batch.query_of))
        # Where the documents start that a document is compared with: itself, or its label's first.
        start = np.arange(n)
        if self.ties == "together":
            label, query = batch.labels[order], batch.query_of
            new = np.r_[True, (np.diff(label) != 0) | (np.diff(query) != 0)]
            start = np.maximum.accumulate(np.where(new, start, 0))

        def work(
            first: int, last: int, scores: FloatArray, values: FloatArray, gradient: FloatArray
        ) -> None:
            _likelihood(first, last, scores, order, start, ptr, values, gradient)

        return work, 10.0 * np.diff(ptr).astype(float)


@kernel
def _likelihood(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    order: IntArray,
    start: IntArray,
    ptr: IntArray,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Fill in values and gradient; order is from the top down, inside each query."""
    for q in range(first_query, last_query):
        a, b = ptr[q], ptr[q + 1]
        tails = np.empty(b - a)  # log of the sum from here to the end
        running = -np.inf
        for t in range(b - 1, a - 1, -1):
            s = scores[order[t]]
            high, low = max(running, s), min(running, s)
            running = high + np.log1p(np.exp(low - high))
            tails[t - a] = running
        value, shares = 0.0, np.zeros(b - a)
        for t in range(a, b):
            value += tails[start[t] - a] - scores[order[t]]
            shares[start[t] - a] += 1.0
        values[q] = value
        # A document is in all sums that start at it or before it.
        weight = -np.inf  # log of sum over starts of count / sum
        for t in range(a, b):
            if shares[t - a] > 0.0:
                new = np.log(shares[t - a]) - tails[t - a]
                high, low = max(weight, new), min(weight, new)
                weight = high + np.log1p(np.exp(low - high))
            gradient[order[t]] = np.exp(scores[order[t]] + weight) - 1.0
