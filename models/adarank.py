"""AdaRank: boosting of single features by the measure itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist.models.attributes import Columns, Numbers
from permdist.models.base import Card, Ranker, Settings
from permdist.models.options import learned, option
from permdist.models.rules import MeasureName, Number, OneOf, Whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from permdist._typing import FloatArray
    from permdist.measures import Measure
    from permdist.models.batch import Batch
    from permdist.models.history import Watch

LARGEST = 1.0 - 1e-12  # a feature that ranks everything perfectly would get an infinite weight


class AdaRank(Ranker):
    """Boosting on queries: each round adds the feature that ranks the hardest queries best.

    Minimizes the exponential type-one bound ``sum_q exp(-E_q)`` of any measure E in [0, 1]. In
    round t the feature with the largest weighted measure ``phi = sum_q P(q) E_q(feature)`` is
    added with weight ``alpha = log((1 + phi) / (1 - phi)) / 2``; then ``P(q)`` becomes proportional
    to ``exp(-E_q)`` under the model so far.

    Rankings by each feature are computed once: a round costs one product of the queries by
    features matrix of measures, and one evaluation of the model.

    Attributes
    ----------
    history_ : dict of lists
        ``objective`` is the bound; ``train`` the mean measure over queries with two labels;
        ``feature`` and ``alpha`` all that was added; ``phi`` and ``delta`` are the quantities of
        Theorem 4, and ``guarantee`` the lower bound on ``train`` that they give.

    Notes
    -----
    To the letter, the algorithm can choose one feature for ever: where the best feature is the
    only one so far, adding it again changes no ranking, so no weight changes. A feature that was
    not accepted, or changed nothing, is therefore passed over until another one was, or did.

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
        "accept": ["better", "all"],
        "directions": ["up", "both"],
        "early_stopping": [300],
    }

    by_column: ClassVar[bool] = True

    measure: str | Measure = option(
        MeasureName(), "Any measure with values from 0 to 1.", default="ap", kw_only=False
    )
    max_iter: int = option(Whole(), "The largest number of rounds.", default=500)
    tol: float = option(
        Number(0.0, 1.0),
        "By how much the measure on the training queries must rise to count as better.",
        default=1e-5,
    )
    accept: str = option(
        OneOf(("better", "all")),
        "Which additions stay: only those that make the measure on the training queries "
        "better, until none does; or all, as in the paper, until there was nothing better for "
        "`patience` rounds, and then the best model.",
        default="better",
    )
    patience: int = option(
        Whole(), "Rounds without a better model after which to stop.", default=50
    )
    directions: str = option(
        OneOf(("up", "both")),
        "Whether a feature always ranks large values first, or the better of both ways.",
        default="up",
    )

    features_: list[int] = learned(
        Columns(signed=True),
        "The feature of each round up to the model that is kept, numbered from 0; with "
        '``directions="both"``, -1 - number for one that ranks small values first.',
    )
    alphas_: list[float] = learned(Numbers((None,), 0.0, listed=True), "The weight of each round.")

    def check_parameters(self) -> None:
        """Check all parameters by their rules, and the range of the measure."""
        super().check_parameters()
        self._need_unit_range()

    def _check_state(self, state: Mapping[str, Any]) -> None:
        rounds, found = len(state["features_"]), len(state["alphas_"])
        if found != rounds:
            raise ValueError(f"alphas_: expected {rounds} of them, as features_, got {found}")

    def _learn(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray | None
    ) -> None:
        measure = self.judge

        def measured(scores: FloatArray) -> FloatArray:
            return batch.measured(measure, scores)

        columns = [np.ascontiguousarray(column) for column in features.T]
        table = np.array([measured(column) for column in columns])  # (features, queries)
        if self.directions == "both":
            table = np.concatenate([table, [measured(-column) for column in columns]])
        width = len(columns)
        # A feature that is constant in every query ranks nothing: ties would speak for it.
        starts = batch.ptr[:-1]
        useless = (
            np.maximum.reduceat(features, starts) == np.minimum.reduceat(features, starts)
        ).all(axis=0)
        useless = np.tile(useless, len(table) // width)
        coef = np.zeros(width) if start is None else np.array(start)
        scores = features @ coef
        current = np.zeros(len(batch)) if start is None else measured(scores)
        gap = float(np.exp(-current).mean())  # Theorem 4: no more than this is missing
        passed_over = useless.copy()
        chosen: list[int] = []
        alphas: list[float] = []
        best, best_at, kept = float(current.mean()), 0, np.array(coef)
        while len(chosen) < self.max_iter and not passed_over.all():
            weights = np.exp(-current)
            weights /= weights.sum()
            merit = table @ weights
            merit[passed_over] = -np.inf
            k = int(np.argmax(merit))
            if merit[k] <= 0.0:
                break
            phi = min(float(merit[k]), LARGEST)
            alpha = 0.5 * np.log((1.0 + phi) / (1.0 - phi)) * (1.0 if k < width else -1.0)
            trial = scores + alpha * columns[k % width]
            after = measured(trial)
            train = float(after.mean())
            passed_over[k] = True
            if self.accept == "better" and train <= best + self.tol:
                continue
            if not np.array_equal(after, current) or not chosen:
                passed_over = useless.copy()
            delta = float((after - current - abs(alpha) * table[k]).min())
            gap *= np.exp(-delta) * np.sqrt(1.0 - phi**2)
            scores, current = trial, after
            coef[k % width] += alpha
            chosen.append(k if k < width else -1 - k % width)
            alphas.append(abs(float(alpha)))
            if train > best + self.tol:
                best, best_at, kept = train, len(chosen), np.array(coef)
            stop = watch.linear(
                coef,
                objective=float(np.exp(-after).sum()),
                train=train,
                phi=phi,
                delta=delta,
                alpha=abs(alpha),
                feature=chosen[-1],
                guarantee=1.0 - gap,
            )
            if stop or len(chosen) - best_at >= self.patience:
                break
        if watch.stops_early and watch.best is not None:
            kept, best_at = watch.best, watch.best_at
        self.coef_ = kept
        self.features_, self.alphas_ = chosen[:best_at], alphas[:best_at]
        self.converged_ = len(chosen) < self.max_iter
