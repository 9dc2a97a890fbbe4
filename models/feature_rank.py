"""FeatureRank and BLFeatureRank: boosting of feature rankings by rank addition."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._deprecation import warn_renamed
from permdist.measures import KendallTau, Measure
from permdist.models.attributes import Numbers
from permdist.models.base import Card, Ranker, Settings
from permdist.models.feature_ranks import Intervals, quasi_knn, rank_within
from permdist.models.options import learned, option
from permdist.models.rules import MeasureName, Whole

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch
    from permdist.models.history import Watch

__all__ = ["BLFeatureRank", "FeatureRank"]
LARGEST = 1.0 - 1e-12
MOST_INTERVALS = 10_000


class FeatureRank(Ranker):
    """Adds rankings by single features, one after the other, each weighted by how good it is.

    A weak ranker per feature (quasi-KNN) turns values into ranks h. In turn, for every feature,
    ``weight = log(sum_q w_q (1 + E_q(h)) / sum_q w_q (1 - E_q(h))) / 2`` with Kendall's tau E; the
    combined ranking becomes the ranks of ``H + weight h``; and the queries' weights become
    ``w_q = exp(-E_q(H))``. `cycles` repeats the round over the features.

    Attributes
    ----------
    history_ : dict of lists
        ``objective`` is ``sum_q exp(-E_q)``; ``train`` the mean of E along training, which under
        balance control is better than what `predict` can do without labels.

    Notes
    -----
    A ranking depends on all documents of a query: `predict` needs `qid`, and its scores are the
    combined ranks.

    References
    ----------
    Wang et al.: Listwise Approaches Based on Feature's Ranking Discovery, Figures 1 and 2.
    Interval numbers ascend with relevance here, as its worked example needs.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(40, strict=True, rng=0)
    >>> learner = FeatureRank().fit(queries)
    >>> len(learner.weights_) == queries.n_features
    True
    """

    card: ClassVar[Card] = Card(
        paper="Wang et al.",
        optimizes="Kendall's tau",
        minimizes="sum exp(-tau), rank addition",
        cost="n log n per addition",
    )
    settings: ClassVar[Settings] = {"cycles": [3], "early_stopping": [200]}
    measure_judges: ClassVar[bool] = True

    by_query: ClassVar[bool] = True
    balanced: ClassVar[bool] = False  # whether what is added is looked at before

    fitted: ClassVar[tuple[str, ...]] = (
        "n_iter_",
        "history_",
        "converged_",
        "null_",
        "weights_",
        "centers_",
    )

    intervals: int = option(
        Whole(1, MOST_INTERVALS), "K of the quasi-KNN weak rankers; 10,000 at most.", default=8
    )
    cycles: int = option(Whole(), "Rounds over all features.", default=1)
    measure: str | Measure = option(
        MeasureName(),
        "What `score` and early stopping look at; the weights always use Kendall's tau.",
        default="tau",
    )

    weights_: list[float] = learned(
        Numbers((None,), listed=True),
        "One per addition, feature after feature, cycle after cycle.",
    )
    centers_: FloatArray = learned(
        Numbers(("width", None)),
        "The centers of each feature's intervals, those that some query fills.",
    )

    @property
    def centres_(self) -> FloatArray:
        """Old name of `centers_`."""
        warn_renamed("FeatureRank", "centres_", "centers_")
        return self.centers_

    def _scores(self, features: FloatArray, ptr: IntArray) -> FloatArray:
        h = Intervals(np.asarray(self.centers_)).ranks(features, ptr)
        combined = np.zeros(len(features))
        for number, weight in enumerate(self.weights_):
            rank_within(combined + weight * h[number % len(h)], ptr, combined)
        return combined

    def _weak_rankings(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the centers, and the rankings of training and validation data by each feature."""
        if start is not None:
            raise ValueError("warm_start_from: rankings are added here, not coefficients")
        centers = quasi_knn(features, batch.labels, batch.ptr, self.intervals).centers
        weak, held_out = Intervals(centers), watch.held_out
        judged = np.zeros((len(centers), 0))
        if held_out is not None:
            judged = weak.ranks(held_out.X, held_out.ptr)
        return centers, weak.ranks(features, batch.ptr), judged

    def _learn(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray | None
    ) -> None:
        centers, h, held_out_h = self._weak_rankings(features, batch, watch, start)
        held_out, held_out_ranks = watch.held_out, np.zeros(held_out_h.shape[1])
        measure = KendallTau(ties="average")

        def taus(ranks: FloatArray) -> FloatArray:
            return batch.measured(measure, ranks)

        combined = np.zeros(len(features))
        quality = np.zeros(len(batch))
        weights: list[float] = []
        for number in range(self.cycles * len(h)):
            k = number % len(h)
            added = h[k]
            if weights and self.balanced:
                added = _balance(h[k], combined, quality, taus, batch)
            share = np.exp(-quality)
            mean = float(np.clip(share @ taus(added) / share.sum(), -LARGEST, LARGEST))
            weight = 0.5 * np.log((1.0 + mean) / (1.0 - mean))
            rank_within(combined + weight * added, batch.ptr, combined)
            quality = taus(combined)
            weights.append(float(weight))
            scores = None
            if held_out is not None:
                rank_within(held_out_ranks + weight * held_out_h[k], held_out.ptr, held_out_ranks)
                scores = held_out_ranks
            stop = watch.note(
                len(weights),
                scores,
                objective=float(np.exp(-quality).sum()),
                train=float(quality.mean()),
                weight=weight,
            )
            if stop:
                break
        if watch.stops_early and watch.best is not None:
            weights = weights[: watch.best]
        self.weights_, self.centers_ = weights, centers
        self.converged_ = True


class BLFeatureRank(FeatureRank):
    """FeatureRank with balance control: what is added never makes a query's ranking much worse.

    In each query, the best of four rankings by Kendall's tau is added: that of the feature, two
    previews of its sum with the combined ranking, and the combined ranking itself.

    Notes
    -----
    Which of the four is best is known only where labels are: the control shapes the weights, in
    training. Prediction adds the features' own rankings with these weights.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(40, strict=True, rng=0)
    >>> learner = BLFeatureRank(cycles=2).fit(queries)
    >>> len(learner.weights_) == 2 * queries.n_features
    True
    """

    balanced: ClassVar[bool] = True


def _balance(
    h: FloatArray, combined: FloatArray, quality: FloatArray, taus: Any, batch: Batch
) -> FloatArray:
    """Return the best of four rankings per query: two previews of the sum, and its parts."""
    own = taus(h)
    query = batch.query_of
    # Equation (14) and the one after it; beta is left out where the two taus cancel.
    total = own + quality
    beta = np.where(np.abs(total) > 1e-12, quality / np.where(total == 0.0, 1.0, total), 0.5)
    first, second = np.empty(len(h)), np.empty(len(h))
    rank_within(quality[query] * combined + own[query] * h, batch.ptr, first)
    rank_within(beta[query] * combined + (1.0 - beta[query]) * h, batch.ptr, second)
    candidates = np.array([h, first, second, combined])
    values = np.array([own, taus(first), taus(second), quality])
    best = values.argmax(axis=0)
    result = np.empty(len(h))
    for q, (a, b) in enumerate(pairwise(batch.ptr)):
        result[a:b] = candidates[best[q], a:b]
    return result
