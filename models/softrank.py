"""SoftRank: the expected measure when Gaussian noise is added to scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist._typing import FloatArray
from permdist.distributions import GaussianScores
from permdist.measures import Measure
from permdist.models.attributes import Attribute, Numbers
from permdist.models.base import Card, Ranker, Settings
from permdist.models.history import Watch
from permdist.models.listwise import Listwise, Work
from permdist.models.rules import SMALLEST, Number, OneOf, Rule
from permdist.models.spaces import Batch


class SoftRank(Listwise):
    """Maximizes NDCG, or another measure of positions, in expectation over noise in the scores.

    Minimizes ``sum_q 1 - E[measure] + |w|^2 / C``, which is not convex.

    Parameters
    ----------
    measure : Measure or str
        A sum over positions: NDCG, Precision or WTA.
    noise : float or "learned"
        The standard deviation of the noise on every score. Only its ratio to the scores matters:
        to learn it, the length of w is left free, without the penalty, and both are divided by
        that length.
    method : {"exact", "softrank"}
        Rank probabilities by quadrature; or by the recursion of the paper, which takes the events
        that others are above a document as independent.
    C : float
        The larger, the weaker the regularization; ``numpy.inf`` for none.
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

    Attributes
    ----------
    noise_ : float
        The standard deviation that goes with `coef_`.

    References
    ----------
    Taylor et al.: SoftRank: Optimising Non-Smooth Rank Metrics.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(15, n_documents=(5, 20), rng=0)
    >>> learner = SoftRank("ndcg@10", max_iter=15).fit(queries)
    >>> learner.history_["objective"][-1] <= learner.history_["objective"][0]
    True
    """

    card: ClassVar[Card] = Card(
        paper="Taylor et al. 2008",
        optimizes="NDCG, precision",
        minimizes="1 - E[measure] under Gaussian noise",
        cost="n^2 x nodes",
    )
    settings: ClassVar[Settings] = {
        "C": [10.0, 100.0, 1000.0],
        "method": ["softrank"],
    }

    fitted: ClassVar[tuple[str, ...]] = (*Ranker.fitted, "noise_")
    rules: ClassVar[Mapping[str, Rule]] = {
        "noise": Number(SMALLEST, words=("learned",)),
        "method": OneOf(("exact", "softrank")),
    }
    attributes: ClassVar[Mapping[str, Attribute]] = {"noise_": Numbers((), 0.0, above=True)}
    noise_: float

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        *,
        noise: float | str = 1.0,
        method: str = "exact",
        C: float = 1000.0,
        normalize: bool | str | Sequence[str] = False,
        max_iter: int = 100,
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
        self.noise = noise
        self.method = method

    def _kernel(self, batch: Batch) -> tuple[Work, FloatArray]:
        measure, ptr = self._measure(), batch.ptr
        noise = 1.0 if self.noise == "learned" else float(self.noise)
        forms = []
        for a, b in batch.bounds:
            form = measure.positional(batch.labels[a:b])
            if form is None and measure.defined(batch.labels[a:b]):
                raise ValueError(
                    f"measure: {measure.name!r} is no sum over positions; use ndcg, precision or "
                    "wta"
                )
            forms.append(form)

        def exact(
            first: int, last: int, scores: FloatArray, values: FloatArray, gradient: FloatArray
        ) -> None:
            for q in range(first, last):
                form = forms[q]
                if form is None:
                    continue
                a, b = ptr[q], ptr[q + 1]
                value, slopes = GaussianScores(scores[a:b], noise).expected_sum(form)
                values[q], gradient[a:b] = 1.0 - value, -slopes

        def recursion(
            first: int, last: int, scores: FloatArray, values: FloatArray, gradient: FloatArray
        ) -> None:
            for q in range(first, last):
                form = forms[q]
                if form is None:
                    continue
                a, b = ptr[q], ptr[q + 1]
                counted = int(np.max(np.flatnonzero(form.weights), initial=-1)) + 1
                weights = np.ascontiguousarray(form.weights[:counted])
                value = _rank_binomial(scores[a:b], form.gains, weights, noise, gradient[a:b])
                values[q] = 1.0 - form.offset - value

        sizes = np.diff(ptr).astype(float)
        return (exact if self.method == "exact" else recursion), 1000.0 * sizes**2

    def _learn(self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray) -> None:
        penalty = self.C
        learned = self.noise == "learned" and start.any()
        if learned and np.array_equal(start, getattr(self, "coef_", ())):
            start = start / self.noise_  # where the last fit ended, in units of noise 1
        try:
            if self.noise == "learned":
                self.C = np.inf
            super()._learn(features, batch, watch, start)
        finally:
            self.C = penalty
        length = float(np.linalg.norm(self.coef_))
        if self.noise == "learned" and length > 0.0:
            self.coef_, self.noise_ = self.coef_ / length, 1.0 / length
        else:
            self.noise_ = 1.0 if self.noise == "learned" else float(self.noise)


@kernel
def _rank_binomial(
    scores: FloatArray, gains: FloatArray, weights: FloatArray, noise: float, gradient: FloatArray
) -> float:
    """Give the expected sum of gains times weights by SoftRank's recursion; subtract its gradient.

    For each document the chances of the first positions are built up one competitor at a time;
    going back through the same steps gives the derivative by each of them. O(n^2 cut).
    """
    n, cut = len(scores), len(weights)
    unit = 1.0 / (math.sqrt(2.0) * noise)
    stages, back = np.empty((n + 1, cut)), np.empty(cut)
    total = 0.0
    for j in range(n):
        if gains[j] == 0.0:
            continue
        stages[0] = 0.0
        stages[0, 0] = 1.0
        for i in range(n):
            if i == j:
                stages[i + 1] = stages[i]
                continue
            above = 0.5 * math.erfc(unit * (scores[j] - scores[i]) / math.sqrt(2.0))
            stages[i + 1, 0] = (1.0 - above) * stages[i, 0]
            for r in range(1, cut):
                stages[i + 1, r] = (1.0 - above) * stages[i, r] + above * stages[i, r - 1]
        for r in range(cut):
            total += gains[j] * weights[r] * stages[n, r]
            back[r] = gains[j] * weights[r]
        for i in range(n - 1, -1, -1):
            if i == j:
                continue
            d = unit * (scores[j] - scores[i])
            above = 0.5 * math.erfc(d / math.sqrt(2.0))
            slope = 0.0
            for r in range(cut):
                slope -= back[r] * stages[i, r]
                if r > 0:
                    slope += back[r] * stages[i, r - 1]
            for r in range(cut):
                after = back[r + 1] if r + 1 < cut else 0.0
                back[r] = (1.0 - above) * back[r] + above * after
            # The value rises with s_i where being above j is good for it; the loss falls.
            flow = slope * unit * math.exp(-0.5 * d * d) / math.sqrt(2.0 * math.pi)
            gradient[i] -= flow
            gradient[j] += flow
    return total
