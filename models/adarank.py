"""AdaRank: boosting on queries by the measure itself."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from permdist.models.attributes import Columns, Numbers
from permdist.models.base import Card, Ranker, Settings
from permdist.models.batch import with_shared_ties
from permdist.models.options import learned, option
from permdist.models.rules import MeasureName, Number, OneOf, Whole
from permdist.models.shared import InBlocks, Standardized, Threaded
from permdist.models.solvers import linear_scores
from permdist.models.weak import Features, Own, Pool, Rankers, WeakRankers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure
    from permdist.models import blocks
    from permdist.models.history import Watch

LARGEST = 1.0 - 1e-12  # a weak ranker that ranks all perfectly would get an infinite weight


class AdaRank(Standardized, Threaded, InBlocks, Ranker):
    """Boosting on queries: each round adds the weak ranker that ranks the hardest queries best.

    Minimizes the exponential type-one bound ``sum_q exp(-E_q)`` of any measure E in [0, 1]. In
    round t the weak ranker h with the largest weighted measure ``phi = sum_q P(q) E_q(h)`` is
    added with weight ``alpha = log((1 + phi) / (1 - phi)) / 2``; then ``P(q)`` becomes proportional
    to ``exp(-E_q)`` under the model so far. Ties count by their mean over all ways to break them.

    Attributes
    ----------
    history_ : dict of lists
        ``objective`` is the bound; ``train`` the mean measure over queries with two labels, ties
        averaged; ``feature`` (for features only) and ``alpha`` all that was added; ``phi`` and
        ``delta`` are the quantities of Theorem 4, and ``guarantee`` the lower bound on ``train``
        that they give.

    Notes
    -----
    **To the letter** (``accept="literal"``) there are `max_iter` rounds, and the last model is
    returned. The algorithm can then choose one weak ranker for ever: where the best one is the only
    one so far, adding it again changes no ranking, so no weight changes. It also accepts what makes
    the measure worse. By default an addition must make the measure on the training queries better:
    a weak ranker that does not is passed over, and where none does, all are tried again with half
    the weight, `halvings` times. ``standardize=False`` adds up features in their own units, as the
    paper does; weak rankers are divided by their spread within queries otherwise.

    **Weak rankers of your own.** `weak` may be any object with a method ``choose(X, y, qid,
    weights)``, called in every round with the training data (queries numbered from 0) and the
    distribution ``P`` over queries, shape (queries,). It returns an object with a method
    ``predict(X)`` that scores documents. Such a model cannot be saved.

    References
    ----------
    Xu et al.: Direct Optimization of Evaluation Measures in Learning to Rank, Figure 6 and
    Theorem 4.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> learner = AdaRank("ap").fit(queries)
    >>> bool(learner.history_["train"][-1] >= learner.history_["guarantee"][-1])
    True
    """

    card: ClassVar[Card] = Card(
        paper="Xu and Li 2007",
        optimizes="any measure in [0, 1]",
        minimizes="sum exp(-measure), boosting",
        cost="n log n per round",
    )
    settings: ClassVar[Settings] = {
        "weak": ["signed", "features"],
        "accept": ["better", "all"],
        "early_stopping": [300],
    }

    scales_itself: ClassVar[bool] = True
    alternatives: ClassVar[tuple[str, ...]] = ("coef_", "rankers_")

    measure: str | Measure = option(
        MeasureName(), "Any measure with values from 0 to 1.", default="ap", kw_only=False
    )
    weak: Any = option(
        WeakRankers(),
        "Weak rankers: ``'features'``, single features that rank large values first; "
        "``'signed'``, features that rank large or small values first; or an object of your own, "
        "see the notes.",
        default="signed",
    )
    max_iter: int = option(Whole(), "The largest number of rounds.", default=500)
    tol: float = option(
        Number(0.0, 1.0),
        "By how much the measure on the training queries must rise to count as better.",
        default=1e-5,
    )
    accept: str = option(
        OneOf(("better", "all", "literal")),
        "Which additions stay: only those that make the measure on the training queries "
        "better, until none does; all, until there was nothing better for `patience` rounds, and "
        "then the best model; or all, for `max_iter` rounds, and the last model, which is the "
        "algorithm to the letter.",
        default="better",
    )
    halvings: int = option(
        Whole(0, 50),
        "How often to halve the weights where no weak ranker makes the measure better, before the "
        'fit ends; for ``accept="better"``.',
        default=3,
    )
    patience: int = option(
        Whole(),
        'Rounds without a better model after which to stop, for ``accept="all"``.',
        default=50,
    )
    features_: list[int] = learned(
        Columns(signed=True),
        "The feature of each round up to the model that is kept, numbered from 0, or -1 - number "
        "for one that ranks small values first; empty for other weak rankers.",
    )
    alphas_: list[float] = learned(
        Numbers((None,), 0.0, listed=True),
        "The weight of each round; of your own weak rankers, divided by the spread of their "
        "scores.",
    )
    rankers_: list[Any] = learned(
        Rankers(), "The weak rankers of each round, where they are your own; there is no `coef_`."
    )

    def check_parameters(self) -> None:
        """Check all parameters by their rules, and the range of the measure."""
        super().check_parameters()
        self._need_unit_range()

    def _check_state(self, state: Mapping[str, Any]) -> None:
        rounds, expected = len(state["features_"]), len(state["alphas_"])
        if rounds not in (0, expected):
            raise ValueError(f"alphas_: expected {rounds} of them, as features_, got {expected}")

    def _scores(self, features: FloatArray, ptr: IntArray) -> FloatArray:  # noqa: ARG002
        if hasattr(self, "coef_"):
            return features @ self.coef_
        total = np.zeros(len(features))
        for ranker, alpha in zip(self.rankers_, self.alphas_, strict=True):
            total += alpha * ranker.predict(features)
        return total

    def why_whole(self) -> str:
        """Say why all data must be in one array; see `Ranker.why_whole`."""
        if isinstance(self.weak, str):
            return ""
        return "its weak rankers learn from all features in one array; use weak='signed'"

    def _pool(self, table: blocks.Table, start: FloatArray | None) -> Pool:
        weak, measure = self.weak, with_shared_ties(self.judge)
        if isinstance(weak, str):
            options = {"standardized": self.standardize, "signed": weak == "signed"}
            return Features(table, measure, start, **options)
        if start is not None:
            raise ValueError(
                "warm_start_from: only weak='features' and weak='signed' make a linear model"
            )
        features, batch = self._whole(table)

        def measured(scores: FloatArray) -> FloatArray:
            return batch.measured(measure, scores, self.n_jobs)

        return Own(weak, features, measured, batch, scaled=self.standardize)

    def _learn_by_blocks(self, table: blocks.Table, watch: Watch, start: FloatArray | None) -> None:
        for name in self.alternatives:
            self.__dict__.pop(name, None)
        pool, n_queries = self._pool(table, start), table.n_queries
        first = np.zeros(table.width) if start is None else np.array(start)
        held_out = None if pool.linear else watch.held_out
        judged = None if held_out is None else linear_scores(held_out.X, first)
        total, bound = pool.begin()
        gap = bound / n_queries  # Theorem 4: no more than this is missing
        keys: list[Any] = []
        alphas: list[float] = []
        best, kept, step, changed = total / n_queries, 0, 1.0, True
        smallest = 0.5**self.halvings if self.accept == "better" else 1.0
        while len(keys) < self.max_iter:
            offer = pool.best()
            phi = 0.0 if offer is None else min(offer.phi, LARGEST)
            if offer is None or phi <= 0.0:
                if step <= smallest:
                    break
                step *= 0.5
                pool.reset()
                continue
            alpha = 0.5 * step * float(np.log((1.0 + phi) / (1.0 - phi)))
            trial = pool.attempt(offer.key, alpha)
            train, changed = trial.measure / n_queries, trial.changed
            better = train > best + self.tol
            if self.accept != "literal":
                pool.pass_over(offer.key)
                if self.accept == "better" and not better:
                    continue
                if changed or not keys:
                    pool.reset()
            gap *= float(np.exp(-trial.delta) * (np.cosh(alpha) - phi * np.sinh(alpha)))
            pool.accept()
            keys.append(offer.key)
            alphas.append(alpha)
            if better:
                best, kept = train, len(keys)
            notes = {"train": train, "phi": phi, "delta": trial.delta, "alpha": alpha}
            if isinstance(pool, Features):
                notes["feature"] = pool.column(offer.key)
            notes = {"objective": trial.bound, **notes, "guarantee": 1.0 - gap}
            if pool.linear:
                stop = watch.linear(pool.model(keys, alphas, first)["coef_"], **notes)
            else:
                if held_out is not None and judged is not None:
                    judged = judged + alpha * pool.predict(offer.key, held_out)
                stop = watch.note(len(keys), judged, **notes)
            if stop or (self.accept == "all" and len(keys) - kept >= self.patience):
                break
        if watch.stops_early:
            watch.keep_best()
            kept = watch.best_at
        elif self.accept == "literal":
            kept = len(keys)
        self.features_, self.alphas_ = [], alphas[:kept]
        for name, value in pool.model(keys[:kept], alphas[:kept], first).items():
            setattr(self, name, value)
        self.converged_ = not changed if self.accept == "literal" else len(keys) < self.max_iter
        if not watch.stops_early:  # validation has chosen the round
            self._warn_of_the_end(kept, perfect=best >= 1.0 - self.tol)

    def _warn_of_the_end(self, kept: int, *, perfect: bool) -> None:
        """Say so where the fit ended too early, or has not ended."""
        if not self.converged_:
            text = f"the measure still changes at max_iter={self.max_iter}; use a larger max_iter"
        elif kept == 1 and self.n_features_in_ > 1 and not perfect:
            text = (
                f"could not improve {self.judge.name!r} on the training queries after one round, "
                "the model is a single weak ranker; try weak='signed', "
                "accept='all', or another measure"
            )
        else:
            return
        warnings.warn(f"AdaRank: {text}", ConvergenceWarning, stacklevel=5)
