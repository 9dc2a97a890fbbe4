"""Smooth versions of measures, maximized: ApproxAP, ApproxNDCG and their like."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from permdist._check import as_rng
from permdist.models import objectives, solvers
from permdist.models.base import Card, Settings
from permdist.models.options import option
from permdist.models.rules import POSITIVE, MeasureName, OneOf, Whole
from permdist.models.shared import Seeded
from permdist.models.smooth_positions import SIGMOIDS, code_of, smooth_positions
from permdist.models.starts import Piloted

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.measures import Measure
    from permdist.models.blocks import Table
    from permdist.models.history import Watch

__all__ = ["Approx", "ApproxAP", "ApproxNDCG", "smooth_positions"]

# alpha and C act through alpha^2 C alone.
SMOOTH: Settings = {"C": [0.03, 0.3, 3.0, 30.0, 300.0]}


class Approx(Seeded, Piloted):
    """Maximizes a measure whose positions are smoothed.

    A position is ``1 + sum_j sigmoid(alpha (s_j - s_i))``; "among the first k" and "above" become
    sigmoids of positions with the factor beta. Minimizes ``sum_q 1 - measure + |w|^2 / C``, which
    is not convex. A query costs O(n) for each of its documents with a gain: few relevant ones
    among 1,000 take milliseconds, but where half of them have a gain, a million documents take
    some seconds per iteration.

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
        cost="goods x n, windowed",
    )
    settings: ClassVar[Settings] = {**SMOOTH, "measure": ["ndcg@10"], "beta": [1.0, 10.0]}

    measure: str | Measure = option(
        MeasureName(),
        "AP or RR; NDCG or Precision, with a cut-off or without; or Kendall's tau. It is also "
        "what `score` and early stopping look at.",
        default="ndcg",
        kw_only=False,
    )
    alpha: float = option(
        POSITIVE,
        "How steep the sigmoids of scores are. It acts together with C, through alpha^2 C.",
        default=10.0,
    )
    beta: float = option(POSITIVE, "How steep the sigmoids of positions are.", default=10.0)
    sigmoid: str = option(
        OneOf(SIGMOIDS), "The shape of the sigmoids of scores.", default="logistic"
    )
    optimizer: str = option(
        OneOf(("lbfgs", "stochastic")),
        "L-BFGS on all queries; or steps along the gradient of one query after the other, in "
        "a new order in each pass, as in Algorithm 1 of the paper.",
        default="lbfgs",
    )
    learning_rate: float = option(POSITIVE, "The size of such steps.", default=0.01)
    keep: str = option(
        OneOf(("best", "last")),
        "Which model to keep where there is an `eval_set`: of the models after each iteration, "
        "`max_iter` at most, the one with the highest measure there, as in section 6.3 of the "
        "paper; or the last one, unless `early_stopping` says otherwise.",
        default="best",
    )
    annealing: int = option(
        Whole(1, 100),
        "Go to alpha in so many stages, each four times as steep as the last.",
        default=1,
    )
    C: float = 3.0
    max_iter: int = 200
    tol: float | None = 1e-5

    def check_parameters(self) -> None:
        """Check all parameters by their rules, and whether they go together."""
        super().check_parameters()
        if self.annealing > 1 and self.optimizer == "stochastic":
            raise ValueError("annealing: only with optimizer='lbfgs'")
        code_of(self.judge)

    def why_whole(self) -> str:
        """Say why all data must be in one pass; see `Ranker.why_whole`."""
        if self.optimizer == "stochastic":
            return "optimizer='stochastic' takes a step after each query, in a random order"
        return super().why_whole()

    def build_objective(self) -> objectives.SmoothMeasure:
        """Return the objective with the learner's parameters."""
        return objectives.SmoothMeasure(self.judge, self.alpha, self.beta, self.sigmoid)

    def _unit(self) -> float:
        return 1.0 / float(self.alpha)

    def _learn_by_blocks(self, table: Table, watch: Watch, start: FloatArray | None) -> None:
        objective = self.build_objective()
        start = self._start(table) if start is None else start
        if self.optimizer == "stochastic":
            found = solvers.stochastic(
                objective.work(objective.batch(table.labels, table.ptr)),
                table,
                start,
                self.C,
                ptr=table.ptr,
                rng=as_rng(self.random_state),
                scaling=self._units(table),
                learning_rate=self.learning_rate,
                max_iter=self.max_iter,
                note=watch.linear,
            )
            self._keep(self._chosen(found, watch))
            if watch.held_out is None:
                self._warn(
                    f"max_iter={self.max_iter} passes of stochastic steps end without a "
                    "certificate; pass an eval_set, by which the best of them is kept, or use "
                    "optimizer='lbfgs'"
                )
            return
        for stage in range(int(self.annealing) - 1, -1, -1):
            softer = replace(objective, alpha=float(self.alpha) / 4.0**stage)
            found = self._by_lbfgs(self._task(softer, table, start, watch))
            start = found.w
        self._keep(self._chosen(found, watch))

    def _chosen(self, found: solvers.Solution, watch: Watch) -> solvers.Solution:
        """Choose among the models of all iterations, if there is anything to choose by."""
        choose = self.keep == "best" and watch.best is not None and watch.best.any()
        return found._replace(w=watch.keep_best()) if choose else found


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
    settings: ClassVar[Settings] = {**SMOOTH, "beta": [1.0, 10.0, 100.0]}

    measure: str | Measure = "ap"
