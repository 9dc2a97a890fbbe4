"""FeatureRank and BLFeatureRank: boosting of feature rankings by rank addition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from permdist.models.attributes import LARGEST_WEIGHT, Attribute, Columns, Numbers
from permdist.models.base import Card, Ranker, Settings
from permdist.models.feature_ranks import CENTERS, CUTS, KINDS, Intervals, Scale, quasi_knn
from permdist.models.options import learned, option
from permdist.models.rules import MeasureName, OneOf, Whole, shown
from permdist.models.shared import Threaded

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure
    from permdist.models.batch import Batch
    from permdist.models.history import Watch

__all__ = ["BLFeatureRank", "FeatureRank"]
LARGEST = 1.0 - 1e-12
MOST_INTERVALS = 10_000

Chooser = Callable[[int, "FloatArray", "FloatArray"], tuple[float, float, dict[str, float]]]


@dataclass(frozen=True)
class Kind(Attribute):
    """One of the kinds of scores of ranks."""

    def read(self, name: str, value: Any, width: int) -> str:  # noqa: ARG002
        """Return the word."""
        if value not in KINDS:
            raise ValueError(f"{name}: expected one of {', '.join(KINDS)}, got {shown(value)}")
        return str(value)


class Run(NamedTuple):
    """One course of additions, with scores of one kind: what was added, and how good it became."""

    kind: str
    watch: Watch
    features: list[int]
    weights: list[float]
    carries: list[float]
    worth: float


class FeatureRank(Threaded, Ranker):
    """Adds rankings by single features, one after the other, each weighted by how good it is.

    A weak ranker per feature (quasi-KNN) turns values into ranks h. In turn, for every feature,
    ``weight = log(sum_q w_q (1 + E_q(h)) / sum_q w_q (1 - E_q(h))) / 2`` with Kendall's tau E; the
    combined ranking becomes the ranks of ``H + weight h``; and the queries' weights become
    ``w_q = exp(-E_q(H))``. `cycles` repeats the round over the features.

    The paper's algorithm to the letter is ``FeatureRank(cut="documents", scores="ranks",
    order="columns", cycles=1, keep="last")``; ``intervals=1`` is what it calls the linear way. The
    defaults differ where the paper's own choices fail: with its column order the first column has
    the weight 1 however bad it is, and with its ranks a step at the top of a long query counts as
    little as one in the middle.

    Attributes
    ----------
    history_ : dict of lists
        ``objective`` is ``sum_q exp(-E_q)`` of the combined ranking, as `predict` makes it from the
        training queries; ``train`` the mean of E; ``weight``.

    Notes
    -----
    A ranking depends on all documents of a query: `predict` needs `qid`, and its scores are the
    combined ranks or the normal quantiles that stand for them.

    The weight of a feature depends on its own tau only, not on what other features have already
    explained: `DiffRank` corrects for that, and is the better learner nearly everywhere.

    An addition costs about 60 ns per document. With ``scores="auto"``, 1,000 queries of 1,000
    documents with 50 features take about a minute of processor time, which is divided among
    `n_jobs` threads; one kind of scores and one cycle take a fifth of it.

    References
    ----------
    Wang et al.: Listwise Approaches Based on Feature's Ranking Discovery, Figures 1 and 2.
    Interval numbers ascend with relevance here, as its worked example needs.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(40, strict=True, rng=0)
    >>> learner = FeatureRank(cycles=2).fit(queries)
    >>> len(learner.history_["weight"]) == 2 * queries.n_features
    True
    """

    card: ClassVar[Card] = Card(
        paper="Wang et al.",
        optimizes="Kendall's tau",
        minimizes="sum exp(-tau), rank addition",
        cost="n log n per addition",
    )
    settings: ClassVar[Settings] = {
        "intervals": [8, 1],
        "cut": ["labels", "documents"],
        "cycles": [30],
        "early_stopping": [200],
    }
    measure_judges: ClassVar[bool] = True

    by_query: ClassVar[bool] = True

    fitted: ClassVar[tuple[str, ...]] = (
        "n_iter_",
        "history_",
        "converged_",
        "null_",
        "features_",
        "weights_",
        "carries_",
        "scored_by_",
        "centers_",
    )

    intervals: int = option(
        Whole(1, MOST_INTERVALS),
        "K of the quasi-KNN weak rankers, 10,000 at most; with 1, each feature ranks by its "
        "values, the linear way.",
        default=8,
    )
    cut: str = option(
        OneOf(CUTS),
        "What makes an interval: each label, as long as there are at most K; or, as in the "
        "paper, a K-th of a query's documents in the order of their labels, where documents of "
        "equal labels share their places.",
        default="labels",
    )
    center: str = option(
        OneOf(tuple(CENTERS)),
        "The center of an interval: the mean of all its values, or of the most relevant third "
        '(``"prior"``), the middle third or the least relevant third (``"posterior"``). It '
        "matters only for intervals with several labels.",
        default="normal",
    )
    scores: str = option(
        OneOf(("auto", *KINDS)),
        "What is added for a rank of 1 .. n: itself, as in the paper; the normal quantile of "
        "``(rank - 1/2) / n``, which tells the top of a long query apart; or the value of the "
        'feature at that rank, standardized within the query. With ``"auto"`` all three are '
        "tried for one cycle, and the one with the best training tau is used, or the one with "
        "the best measure on `eval_set` if there is `early_stopping`.",
        default="auto",
    )
    order: str = option(
        OneOf(("quality", "columns")),
        "Whether the features with the largest absolute tau on the training queries come first "
        "in every cycle, or, as in the paper, the first columns.",
        default="quality",
    )
    cycles: int = option(Whole(), "Rounds over all features.", default=3)
    keep: str = option(
        OneOf(("best", "last")),
        "The additions to keep: those up to the lowest objective on the training queries, or "
        "all of them. With `early_stopping` the measure on `eval_set` decides.",
        default="best",
    )
    measure: str | Measure = option(
        MeasureName(),
        "What `score` and early stopping look at; the weights always use Kendall's tau.",
        default="tau",
    )

    features_: list[int] = learned(Columns(), "The feature of each addition.")
    weights_: list[float] = learned(
        Numbers((None,), listed=True, largest=LARGEST_WEIGHT),
        "The weight of the feature's ranking in each addition.",
    )
    carries_: list[float] = learned(
        Numbers((None,), listed=True, largest=LARGEST_WEIGHT),
        "The weight of the combined ranking so far in each addition, 1 unless there is balance "
        "control.",
    )
    scored_by_: str = learned(Kind(), "The kind of `scores` that was used.")
    centers_: FloatArray = learned(
        Numbers(("width", None)),
        "The centers of each feature's intervals, those that some query fills.",
    )

    def _check_state(self, state: Mapping[str, Any]) -> None:
        rounds = len(state["features_"])
        for name in ("weights_", "carries_"):
            if len(state[name]) != rounds:
                raise ValueError(
                    f"{name}: expected {rounds} of them, as features_, got {len(state[name])}"
                )

    def _scores(self, features: FloatArray, ptr: IntArray) -> FloatArray:
        scale = Scale(self.scored_by_, ptr, self.n_jobs)
        used = np.unique(np.array(self.features_, dtype=np.int64))
        weak = Intervals(np.asarray(self.centers_)[used])
        h = dict(zip(used.tolist(), scale.weak(weak, features[:, used]), strict=True))
        combined = np.zeros(len(features))
        for k, weight, carry in zip(self.features_, self.weights_, self.carries_, strict=True):
            if weight != 0.0:
                combined, _ = scale.rank(carry * combined + weight * h[k])
        return combined

    def _learn(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray | None
    ) -> None:
        if start is not None:
            raise ValueError("warm_start_from: rankings are added here, not coefficients")
        weak = quasi_knn(
            features, batch.labels, batch.ptr, self.intervals, cut=self.cut, center=self.center
        )
        data = weak, features, batch
        if self.scores == "auto":
            tried = [self._run(kind, 1, *data, watch.again()) for kind in KINDS]
            best = max(tried, key=lambda run: run.worth)
            if self.cycles > 1:
                best = self._run(best.kind, self.cycles, *data, watch.again())
        else:
            best = self._run(self.scores, self.cycles, *data, watch.again())
        watch.adopt(best.watch)
        self.features_, self.weights_, self.carries_ = best.features, best.weights, best.carries
        self.centers_, self.scored_by_ = weak.centers, best.kind
        self.converged_ = True

    def _run(
        self,
        kind: str,
        cycles: int,
        weak: Intervals,
        features: FloatArray,
        batch: Batch,
        watch: Watch,
    ) -> Run:
        """Add up rankings with scores of one kind."""
        scale, held_out = Scale(kind, batch.ptr, self.n_jobs), watch.held_out
        h = scale.weak(weak, features)
        taus = np.array([scale.rank(row, batch)[1] for row in h])
        choose = self._chooser(h, taus, scale, batch)
        if held_out is not None:
            other = Scale(kind, held_out.ptr, self.n_jobs)
            held_out_h = other.weak(weak, held_out.X)
            held_out_ranks = np.zeros(len(held_out.X))
        combined, quality = np.zeros(len(features)), np.zeros(len(batch))
        columns, weights, carries = [], [], []
        visited = self._visited(taus)
        for number in range(cycles * len(h)):
            k = int(visited[number % len(h)])
            carry, weight, notes = choose(k, combined, quality)
            if weight != 0.0:
                combined, quality = scale.rank(carry * combined + weight * h[k], batch)
            columns.append(k)
            weights.append(float(weight))
            carries.append(float(carry))
            scores = None
            if held_out is not None:
                if weight != 0.0:
                    total = carry * held_out_ranks + weight * held_out_h[k]
                    held_out_ranks, _ = other.rank(total)
                scores = held_out_ranks
            objective, train = float(np.exp(-quality).sum()), float(quality.mean())
            notes = {"objective": objective, "train": train, "weight": weight, **notes}
            if watch.note(len(weights), scores, **notes):
                break
        kept = self._kept(watch)
        worth = self._worth(watch, watch.history["train"][kept - 1])
        return Run(kind, watch, columns[:kept], weights[:kept], carries[:kept], worth)

    def _visited(self, taus: FloatArray) -> IntArray:
        """Return the order in which features are added, given their taus in each query."""
        if self.order == "columns":
            return np.arange(len(taus))
        return np.argsort(-np.abs(taus.mean(axis=1)).round(12), kind="stable")

    def _kept(self, watch: Watch) -> int:
        """Return the number of additions to keep."""
        if watch.stops_early and watch.best is not None:
            return int(watch.best)
        objective = watch.history["objective"]
        return int(np.argmin(objective)) + 1 if self.keep == "best" else len(objective)

    @staticmethod
    def _worth(watch: Watch, train: float) -> float:
        """Return what scores are chosen by: validation if it decides, else `train`."""
        return max(watch.history["measure"]) if watch.stops_early else train

    def _chooser(
        self,
        h: FloatArray,  # noqa: ARG002
        taus: FloatArray,
        scale: Scale,  # noqa: ARG002
        batch: Batch,  # noqa: ARG002
    ) -> Chooser:
        """Return what finds the weights of the combined ranking and of the next feature's."""

        def choose(
            k: int,
            combined: FloatArray,  # noqa: ARG001
            quality: FloatArray,
        ) -> tuple[float, float, dict[str, float]]:
            return 1.0, atanh(_mean(taus[k], quality)), {}

        return choose


class BLFeatureRank(FeatureRank):
    """FeatureRank with balance control: a feature is added only where it helps.

    Of the ranking h by the feature, the combined ranking H, and a preview of their sum, ``beta H +
    (1 - beta) h`` with ``beta = E(H) / (E(H) + E(h))``, the one with the largest tau is added to H.
    Where that is H itself nothing changes. A preview adds up to ``(1 + beta weight) H + (1 - beta)
    weight h``, as in the proof of Lemma 2; these two weights are what `predict` uses.

    Attributes
    ----------
    history_ : dict of lists
        As in `FeatureRank`. With ``balance="queries"`` also ``controlled``: the mean tau of the
        ranking that the labels of each query have steered, which no prediction can reach.

    Notes
    -----
    The paper selects the best ranking in every single query. This needs the labels, which are not
    known in prediction. With ``balance="queries"`` training does so, and the weights in prediction
    are the means over the training queries of those in Lemma 2's proof. By default, one choice is
    made for all queries, by their mean tau, so that training and prediction are the same.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(40, strict=True, rng=0)
    >>> steady = BLFeatureRank(cycles=2).fit(queries).history_["train"]
    >>> len(steady) == 2 * queries.n_features
    True
    """

    balance: str = option(
        OneOf(("collection", "queries")),
        "Whether the best ranking is selected once for all queries, or, as in the paper, in "
        "every query by its labels.",
        default="collection",
    )

    def _chooser(self, h: FloatArray, taus: FloatArray, scale: Scale, batch: Batch) -> Chooser:
        if self.balance == "collection":
            return _collection_chooser(h, taus, scale, batch)
        return _query_chooser(h, taus, scale, batch)


def _mean(taus: FloatArray, quality: FloatArray) -> float:
    """Return the mean tau over queries, those counting most whose combined ranking is bad."""
    share = np.exp(-quality)
    return float(share @ taus / share.sum())


def atanh(mean: float) -> float:
    """Return the weight ``log((1 + mean) / (1 - mean)) / 2`` of equations (11) and (18)."""
    return float(np.arctanh(np.clip(mean, -LARGEST, LARGEST)))


def _collection_chooser(h: FloatArray, taus: FloatArray, scale: Scale, batch: Batch) -> Chooser:
    """Select the best of a feature, the combined ranking and a preview by their mean taus."""

    def choose(
        k: int, combined: FloatArray, quality: FloatArray
    ) -> tuple[float, float, dict[str, float]]:
        own, so_far = _mean(taus[k], quality), _mean(quality, quality)
        sign, own = float(np.sign(own)), abs(own)
        if not so_far > 0.0:
            return 1.0, sign * atanh(own), {}
        beta = so_far / (so_far + own)
        _, previewed = scale.rank(beta * combined + (1.0 - beta) * sign * h[k], batch)
        preview = _mean(previewed, quality)
        if max(own, preview) <= so_far:
            return 1.0, 0.0, {}
        if own >= preview:
            return 1.0, sign * atanh(own), {}
        weight = atanh(preview)
        return 1.0 + beta * weight, sign * (1.0 - beta) * weight, {}

    return choose


def _query_chooser(h: FloatArray, taus: FloatArray, scale: Scale, batch: Batch) -> Chooser:
    """Select the best ranking in each query, as its labels say, and return the mean weights.

    The ranking that the labels steer is added up here, beside the one that prediction makes.
    """
    query = batch.query_of
    steered, quality = np.zeros(h.shape[1]), np.zeros(len(batch))

    def choose(
        k: int,
        combined: FloatArray,  # noqa: ARG001
        predicted: FloatArray,  # noqa: ARG001
    ) -> tuple[float, float, dict[str, float]]:
        nonlocal steered, quality
        own = taus[k]
        if steered.any():
            # Equation (14) and the one after it, which is (14) over a number of either sign.
            total = np.abs(quality) + np.abs(own)
            beta = np.where(total > 0.0, quality, 0.5) / np.where(total > 0.0, total, 1.0)
            rest = np.where(total > 0.0, own, 0.5) / np.where(total > 0.0, total, 1.0)
            sign = np.where(beta + rest < 0.0, -1.0, 1.0)
            first, first_tau = scale.rank(beta[query] * steered + rest[query] * h[k], batch)
            second, second_tau = scale.rank(
                sign[query] * (beta[query] * steered + rest[query] * h[k]), batch
            )
            found = np.array([own, first_tau, second_tau, quality])
            best = found.argmax(axis=0)
            added = np.choose(best[query], [h[k], first, second, steered])
            weight = atanh(_mean(found.max(axis=0), quality))
            carry = 1.0 + weight * np.choose(
                best, [0.0 * beta, beta, sign * beta, 1.0 + 0.0 * beta]
            )
            share = weight * np.choose(best, [1.0 + 0.0 * rest, rest, sign * rest, 0.0 * rest])
        else:
            added, weight = h[k], atanh(_mean(own, quality))
            carry, share = np.ones(1), np.array([weight])
        steered, quality = scale.rank(steered + weight * added, batch)
        return float(carry.mean()), float(share.mean()), {"controlled": float(quality.mean())}

    return choose
