"""Smooth versions of measures, maximized: ApproxAP, ApproxNDCG and their like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from permdist._check import as_rng
from permdist._typing import FloatArray
from permdist.measures import NDCG, RR, Measure
from permdist.models.base import Card, Settings
from permdist.models.history import Watch
from permdist.models.listwise import Listwise, Work
from permdist.models.rules import POSITIVE, OneOf, Rule, Whole
from permdist.models.smooth_positions import (
    SIGMOIDS,
    WINDOWS,
    code_of,
    smooth_positions,
    sum_measures,
)
from permdist.models.spaces import Batch

__all__ = ["Approx", "ApproxAP", "ApproxNDCG", "smooth_positions"]


SMOOTH: Settings = {"C": [0.03, 0.1, 1.0, 10.0, 100.0], "alpha": [1.0, 10.0, 100.0]}


class Approx(Listwise):
    """Maximizes a measure whose positions are smoothed.

    A position is ``1 + sum_j sigmoid(alpha (s_j - s_i))``; "among the first k" and "above" become
    sigmoids of positions with the factor beta. Minimizes ``sum_q 1 - measure + |w|^2 / C``, which
    is not convex.

    Parameters
    ----------
    measure : Measure or str
        AP or RR; NDCG or Precision, with a cut-off or without; or Kendall's tau. It is also what
        `score` and early stopping look at.
    alpha, beta : float
        How steep the sigmoids of scores and of positions are.
    sigmoid : {"logistic", "tanh", "erf", "arctan"}
    optimizer : {"lbfgs", "stochastic"}
        L-BFGS on all queries; or steps along the gradient of one query after the other, in a new
        order each time, as in Algorithm 1 of the paper.
    learning_rate : float
        The size of such steps.
    annealing : int
        Go to alpha in so many stages, each four times as steep as the one before.
    random_state : int, optional
        The seed of the order of queries.
    C : float
        The larger, the weaker the regularization; ``numpy.inf`` for none.
    normalize : bool, str or sequence of str
        How to scale every feature within its query, as in `MLE`.
    max_iter, tol : int, float
        When the optimizer stops: iterations (or passes over the queries), and the largest entry of
        the gradient.
    early_stopping : int, optional
        Stop after so many iterations without a better measure on `eval_set`, and keep the best.
        The stochastic optimizer keeps the best of all its models whenever there is an `eval_set`.
    warm_start : bool
        Whether `fit` starts from the coefficients of the last one.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.
    verbose : bool

    References
    ----------
    Qin et al.: A General Approximation Framework for Direct Optimization of Information Retrieval
    Measures, equations (20) to (22) and Algorithm 1.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> learner = Approx("rr").fit(queries)
    >>> learner.history_["objective"][-1] < learner.history_["objective"][0]
    True
    """

    card: ClassVar[Card] = Card(
        paper="Qin, Liu and Li 2008",
        optimizes="AP, NDCG, precision, RR, tau",
        minimizes="1 - measure at smooth positions",
        cost="windows of n^2",
    )
    settings: ClassVar[Settings] = {**SMOOTH, "measure": ["ndcg@10"], "beta": [1.0]}
    rules: ClassVar[Mapping[str, Rule]] = {
        "alpha": POSITIVE,
        "beta": POSITIVE,
        "sigmoid": OneOf(tuple(SIGMOIDS)),
        "optimizer": OneOf(("lbfgs", "stochastic")),
        "learning_rate": POSITIVE,
        "annealing": Whole(1, 100),
    }

    def __init__(
        self,
        measure: str | Measure = "ndcg",
        *,
        alpha: float = 10.0,
        beta: float = 10.0,
        sigmoid: str = "logistic",
        optimizer: str = "lbfgs",
        learning_rate: float = 0.01,
        annealing: int = 1,
        random_state: int | None = 0,
        C: float = 100.0,
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
        self.alpha = alpha
        self.beta = beta
        self.sigmoid = sigmoid
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.annealing = annealing
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.annealing > 1 and self.optimizer == "stochastic":
            raise ValueError("annealing: only with optimizer='lbfgs'")
        code_of(self._measure())

    def _work(self, batch: Batch, alpha: float) -> Work:
        measure = self._measure()
        kind = SIGMOIDS.index(self.sigmoid)
        gains = (batch.labels > 0).astype(float)
        units = np.add.reduceat(gains, batch.ptr[:-1])
        log2 = True
        if isinstance(measure, NDCG):
            measure.check_grades(batch.labels)
            gains, log2 = measure.gains(batch.labels), measure.discount == "log2"
            units = np.empty(len(batch))
            for q, (a, b) in enumerate(batch.bounds):
                ordered = np.sort(gains[a:b])[::-1]
                units[q] = float(ordered @ measure.discounts(b - a))
                if measure.short == "zero" and b - a < measure._cut and measure.k is not None:
                    gains[a:b] = 0.0  # such a query counts nothing
        elif not measure.name.startswith("ap"):
            units = np.full(len(batch), 1.0 if isinstance(measure, RR) else float(measure._cut))
        units = np.where(units > 0.0, units, 1.0)
        cut = float(measure._cut)
        slopes = alpha, float(self.beta)
        shape = kind, WINDOWS[kind]
        code = code_of(measure)

        def work(
            first: int, last: int, scores: FloatArray, values: FloatArray, gradient: FloatArray
        ) -> None:
            layout = gains, batch.levels, batch.ptr, units
            sum_measures(
                first, last, scores, *layout, *slopes, *shape, code, cut, log2, values, gradient
            )

        return work

    def _kernel(self, batch: Batch) -> tuple[Work, FloatArray]:
        return self._work(batch, float(self.alpha)), 5.0 * np.diff(batch.ptr).astype(float) ** 2

    def _learn(self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray) -> None:
        if self.optimizer == "stochastic":
            self._learn_by_steps(features, batch, watch, start)
            return
        final = float(self.alpha)
        cost = self._kernel(batch)[1]
        for stage in range(int(self.annealing) - 1, -1, -1):
            work = self._work(batch, final / 4.0**stage)
            self._optimize(self._sum(batch, work, cost), features, watch, start)
            start = self.coef_

    def _learn_by_steps(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray
    ) -> None:
        """Follow Algorithm 1: all models are judged, and the best one is kept."""
        rng = as_rng(self.random_state)
        work = self._work(batch, float(self.alpha))
        parts = [np.ascontiguousarray(features[a:b]) for a, b in batch.bounds]
        w, scores = np.array(start), np.zeros(len(features))
        values, gradient = np.zeros(len(batch)), np.zeros(len(features))
        shrink = 2.0 * self.learning_rate / (float(self.C) * len(batch))
        for _ in range(self.max_iter):
            for q in rng.permutation(len(batch)).tolist():
                a, b = batch.ptr[q], batch.ptr[q + 1]
                scores[a:b] = parts[q] @ w
                work(q, q + 1, scores, values, gradient)
                w = (w - self.learning_rate * (gradient[a:b] @ parts[q])) / (1.0 + shrink)
            scores[:] = features @ w
            work(0, len(batch), scores, values, gradient)
            objective = float(values.sum()) + float(w @ w) / float(self.C)
            held_out = None if watch.held_out is None else watch.held_out.X @ w
            if watch.note(np.array(w), held_out, objective=objective):
                break
        self.coef_ = w if watch.best is None else watch.best
        self.converged_ = False


class ApproxNDCG(Approx):
    """`Approx` for NDCG, without a cut-off unless the measure has one.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> 0.4 < ApproxNDCG().fit(queries).score(queries) < 1.0
    True
    """

    card: ClassVar[Card] = Approx.card._replace(optimizes="NDCG")
    settings: ClassVar[Settings] = SMOOTH


class ApproxAP(Approx):
    """`Approx` for average precision.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> 0.4 < ApproxAP().fit(queries).score(queries) < 1.0
    True
    """

    card: ClassVar[Card] = Approx.card._replace(optimizes="AP")
    settings: ClassVar[Settings] = SMOOTH

    def __init__(
        self,
        measure: str | Measure = "ap",
        *,
        alpha: float = 10.0,
        beta: float = 10.0,
        sigmoid: str = "logistic",
        optimizer: str = "lbfgs",
        learning_rate: float = 0.01,
        annealing: int = 1,
        random_state: int | None = 0,
        C: float = 100.0,
        normalize: bool | str | Sequence[str] = False,
        max_iter: int = 100,
        tol: float = 1e-5,
        early_stopping: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            measure,
            alpha=alpha,
            beta=beta,
            sigmoid=sigmoid,
            optimizer=optimizer,
            learning_rate=learning_rate,
            annealing=annealing,
            random_state=random_state,
            C=C,
            normalize=normalize,
            max_iter=max_iter,
            tol=tol,
            early_stopping=early_stopping,
            warm_start=warm_start,
            n_jobs=n_jobs,
            verbose=verbose,
        )
