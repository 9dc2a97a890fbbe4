"""RankBoost: boosting on pairs, without ever making a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist._parallel import pack
from permdist.models.attributes import Columns, Numbers, Table
from permdist.models.base import Card, Ranker, Settings
from permdist.models.batch import Batch, in_threads
from permdist.models.blocks import columns_of
from permdist.models.options import learned, option
from permdist.models.rules import Flag, OneOf, Whole
from permdist.models.shared import Threaded
from permdist.models.solvers import column_sums, linear_scores

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.models.history import Watch

LARGEST = 1.0 - 1e-12
SMALLEST = 1e-13  # an r below this is rounding


class RankBoost(Threaded, Ranker):
    """Boosting on pairs of documents with different labels.

    Each round gives every pair (lower i, higher j) the weight ``D(i, j) proportional to
    exp(H(i) - H(j))`` under the model H so far, and adds ``alpha h`` for the weak ranker h in
    [0, 1] with the largest ``|r|``, where ``r = sum D(i, j) (h(j) - h(i))`` and
    ``alpha = log((1 + r) / (1 - r)) / 2``. The exponential loss over all pairs falls by the factor
    ``sqrt(1 - r^2)`` or more.

    D factorizes, so r is a sum over documents, ``r = sum_i potential(i) h(i)``: a round costs
    O(documents x features), however many pairs there are.

    Attributes
    ----------
    coef_ : array of float, shape (features,)
        For raw features.
    history_ : dict of lists
        ``objective`` is the exponential loss, relative to that of H = 0; ``r``; ``bound`` is the
        product of all ``sqrt(1 - r^2)``, which it never exceeds.

    References
    ----------
    Freund et al.: An Efficient Boosting Algorithm for Combining Preferences; it is a baseline of
    Xu et al.: Direct Optimization of Evaluation Measures in Learning to Rank.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> learner = RankBoost(max_iter=30).fit(queries)
    >>> len(learner.stumps_["alpha"]), learner.history_["objective"][-1] < 1.0
    (30, True)
    """

    card: ClassVar[Card] = Card(
        paper="Freund et al. 2003",
        optimizes="pairs in the right order",
        minimizes="sum exp(H(i) - H(j)), boosting",
        cost="n x features per round",
    )
    settings: ClassVar[Settings] = {
        "weak": ["threshold", "feature"],
        "early_stopping": [300],
    }
    measure_judges: ClassVar[bool] = True

    alternatives: ClassVar[tuple[str, ...]] = ("coef_", "stumps_")

    weak: str = option(
        OneOf(("threshold", "feature")),
        "Weak rankers: ``1 if x > threshold else 0``; or a feature itself, brought to the "
        "range from 0 to 1 on the training documents, which makes the model linear.",
        default="threshold",
    )
    max_iter: int = option(Whole(), "The number of rounds.", default=300)
    thresholds: int | None = option(
        Whole(optional=True),
        "So many quantiles of each feature as thresholds, where it takes more values than "
        "that; None for all values. Up to 255 are fastest.",
        default=255,
    )
    scale: bool = option(
        Flag(),
        "Whether all queries have the same share of the first D, or all pairs.",
        default=False,
    )

    stumps_: dict[str, list[float]] = learned(
        Table(
            feature=Columns(),
            threshold=Numbers((None,), listed=True),
            alpha=Numbers((None,), listed=True),
        ),
        "``feature``, ``threshold`` and ``alpha`` of each round, for thresholds; such a model "
        "is no linear one and has no `coef_`.",
    )

    def _batch(self, labels: IntArray, ptr: IntArray) -> Batch:
        return Batch.of(labels, ptr, scale=self.scale)

    def _scores(self, features: FloatArray, ptr: IntArray) -> FloatArray:  # noqa: ARG002
        if hasattr(self, "coef_"):
            return features @ self.coef_
        return _add_stumps(features, self.stumps_, 0, np.zeros(len(features)))

    def why_whole(self) -> str:
        """Say why all data must be in one array; see `Ranker.why_whole`."""
        return (
            "a round searches the values of each feature over all documents in sorted order, "
            "which is no sum over queries"
        )

    def _learn(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray | None
    ) -> None:
        for name in ("coef_", "stumps_"):
            self.__dict__.pop(name, None)
        potentials = Potentials(batch)
        if self.weak == "feature":
            self._learn_features(features, potentials, watch, start)
        elif start is not None:
            raise ValueError("warm_start_from: only weak='feature' makes a linear model")
        else:
            self._learn_stumps(features, potentials, watch)

    def _learn_features(
        self, features: FloatArray, potentials: Potentials, watch: Watch, start: FloatArray | None
    ) -> None:
        width = features.max(axis=0).astype(np.float64) - features.min(axis=0)
        if not np.isfinite(width).all():
            raise ValueError("X: a feature spans more than a double can hold; scale it down")
        unit = np.where(width > 0.0, width, np.inf)
        coef, bound = np.zeros(len(unit)) if start is None else np.array(start), 1.0
        scores = linear_scores(features, coef)
        loss, potential = potentials(scores)
        first = loss
        for _ in range(self.max_iter):
            # Potentials add up to 0: where a feature starts makes no difference.
            r_of = column_sums(features, potential) / unit
            k = int(np.argmax(np.abs(r_of)))
            r = float(np.clip(r_of[k], -LARGEST, LARGEST))
            if abs(r) < SMALLEST:
                break
            alpha = 0.5 * np.log((1.0 + r) / (1.0 - r)) / unit[k]
            coef[k] += alpha
            scores = scores + alpha * features[:, k]
            loss, potential = potentials(scores)
            bound *= np.sqrt(1.0 - r * r)
            if watch.linear(coef, objective=loss / first, r=r, bound=bound):
                break
            if not loss > 0.0:  # every pair is so far apart that nothing is left to gain
                break
        early = watch.stops_early and watch.best is not None
        self.coef_ = watch.keep_best() if early else coef
        self.converged_ = len(watch) < self.max_iter

    def _learn_stumps(self, features: FloatArray, potentials: Potentials, watch: Watch) -> None:
        bins, values, ptr = _bins(features, self.thresholds)
        stumps: dict[str, list[float]] = {"feature": [], "threshold": [], "alpha": []}
        scores, bound = np.zeros(len(features)), 1.0
        held_out = watch.held_out
        held_out_scores = None if held_out is None else np.zeros(len(held_out.X))
        first, potential = potentials(scores)
        for number in range(self.max_iter):
            k, cut, best = self._best_stump(bins, ptr, potential)
            r = float(np.clip(best, -LARGEST, LARGEST))
            if abs(r) < SMALLEST:
                break
            alpha = 0.5 * np.log((1.0 + r) / (1.0 - r))
            _step(bins[k], cut, alpha, scores)
            loss, potential = potentials(scores)
            bound *= np.sqrt(1.0 - r * r)
            stumps["feature"].append(int(k))
            stumps["threshold"].append(float(values[ptr[k] + cut]))
            stumps["alpha"].append(float(alpha))
            if held_out is not None and held_out_scores is not None:
                held_out_scores = _add_stumps(held_out.X, stumps, number, held_out_scores)
            if watch.note(number + 1, held_out_scores, objective=loss / first, r=r, bound=bound):
                break
            if not loss > 0.0:
                break
        if watch.stops_early and watch.best is not None:
            stumps = {name: entries[: watch.best] for name, entries in stumps.items()}
        self.stumps_ = stumps
        self.converged_ = len(watch) < self.max_iter

    def _best_stump(
        self, bins: Any, ptr: IntArray, potential: FloatArray
    ) -> tuple[int, int, float]:
        """Find the feature and the threshold with the largest sum of potentials above it."""
        cuts, sums = np.zeros(len(bins), dtype=np.int64), np.zeros(len(bins))

        def work(first: int, last: int) -> None:
            _best_cuts(first, last, bins, ptr, potential, cuts, sums)

        in_threads(work, np.full(len(bins), float(len(potential))), self.n_jobs)
        k = int(np.argmax(np.abs(sums)))
        return k, int(cuts[k]), float(sums[k])


class Potentials:
    """The exponential loss over pairs, and what each document adds to r.

    Parameters
    ----------
    batch : Batch
        Its `scale` gives the weight of each query's pairs.
    """

    def __init__(self, batch: Batch) -> None:
        self._layout = batch.levels, batch.ptr, batch.scale

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss ``sum exp(H(i) - H(j))`` and potentials, which are relative to it."""
        return _potentials(scores, *self._layout)


def _bins(features: FloatArray, thresholds: int | None) -> tuple[Any, FloatArray, IntArray]:
    """Count the thresholds that each value exceeds.

    Returns
    -------
    bins : array of int, shape (features, documents)
        How many of the feature's thresholds lie below the value.
    values : array of float
        All thresholds, feature after feature, ascending: midway between two values.
    ptr : array of int, shape (features + 1,)
    """
    parts = [_cuts(column, thresholds) for _, column in columns_of(features)]
    values, ptr = pack(parts)
    kind = np.uint8 if max(len(cuts) for cuts in parts) <= 255 else np.int32
    bins = np.empty(features.shape[::-1], dtype=kind)
    for k, column in columns_of(features):
        bins[k] = np.searchsorted(parts[k], column, side="left")
    return bins, values, ptr


def _cuts(column: FloatArray, thresholds: int | None) -> FloatArray:
    """Return the thresholds of a feature, ascending."""
    distinct = np.unique(column)
    if thresholds is not None and len(distinct) > thresholds + 1:
        places = np.linspace(0.0, 1.0, thresholds + 2)[1:-1]
        low = np.unique(np.quantile(column, places, method="lower"))
        after = np.searchsorted(distinct, low, side="right")
        return 0.5 * (low + distinct[np.minimum(after, len(distinct) - 1)])[after < len(distinct)]
    cuts = 0.5 * (distinct[:-1] + distinct[1:])
    return np.where(cuts < distinct[1:], cuts, distinct[:-1])


def _add_stumps(
    features: FloatArray, stumps: dict[str, list[float]], first: int, scores: FloatArray
) -> FloatArray:
    """Add the stumps from number `first` on to scores."""
    rounds = zip(*(stumps[name][first:] for name in ("feature", "threshold", "alpha")), strict=True)
    total = np.array(scores)
    for k, threshold, alpha in rounds:
        # As a double: between two values of float32 there may be no third.
        total += alpha * (features[:, int(k)] > np.float64(threshold))
    return total


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def _potentials(
    scores: FloatArray, level_of: IntArray, ptr: IntArray, scales: FloatArray
) -> tuple[float, FloatArray]:
    """Sum exp(H(i) - H(j)) over pairs of lower i and higher j, and split it among documents.

    A document's entry is its share as the higher one of pairs less that as the lower one, over
    the total loss. Every query's scores are taken relative to their middle, so that no
    exponential overflows before the loss itself does.
    """
    out = np.zeros(len(scores))
    total = 0.0
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        lowest, highest, top = scores[a], scores[a], level_of[a]
        for i in range(a + 1, b):
            lowest, highest = min(lowest, scores[i]), max(highest, scores[i])
            top = max(top, level_of[i])
        middle, levels = 0.5 * (highest + lowest), top + 1
        up, down = np.empty(b - a), np.empty(b - a)
        for i in range(b - a):
            up[i], down[i] = np.exp(scores[a + i] - middle), np.exp(middle - scores[a + i])
        # Sums over each level of exp(H), for its documents as lower ones, and of exp(-H).
        lower, higher = np.zeros(levels + 1), np.zeros(levels + 1)
        for i in range(b - a):
            lower[level_of[a + i] + 1] += up[i]
            higher[level_of[a + i]] += down[i]
        for level in range(levels):
            lower[level + 1] += lower[level]
        for level in range(levels - 1, -1, -1):
            higher[level] += higher[level + 1]
        for i in range(b - a):
            label = level_of[a + i]
            as_higher = down[i] * lower[label]
            as_lower = up[i] * higher[label + 1]
            total += scales[q] * as_higher
            out[a + i] = scales[q] * (as_higher - as_lower)
    if total > 0.0:
        for i in range(len(out)):
            out[i] /= total
    return total, out


@kernel
def _best_cuts(
    first: int,
    last: int,
    bins: IntArray,
    ptr: IntArray,
    potential: FloatArray,
    cuts: IntArray,
    best: FloatArray,
) -> None:
    """Find the threshold of each feature with the largest sum of potentials above it."""
    for k in range(first, last):
        number = ptr[k + 1] - ptr[k]
        # Two sums in turn: where many documents share a bin, one addition waits for the last.
        sums, others = np.zeros(number + 1), np.zeros(number + 1)
        for i in range(0, len(potential) - 1, 2):
            sums[bins[k, i]] += potential[i]
            others[bins[k, i + 1]] += potential[i + 1]
        if len(potential) % 2:
            sums[bins[k, len(potential) - 1]] += potential[-1]
        for c in range(number + 1):
            sums[c] += others[c]
        above = 0.0
        best[k] = 0.0
        for c in range(number - 1, -1, -1):
            above += sums[c + 1]
            if abs(above) > abs(best[k]):
                best[k], cuts[k] = above, c


@kernel
def _step(bins: IntArray, cut: int, alpha: float, scores: FloatArray) -> None:
    """Add alpha to the scores of the documents above a threshold."""
    for i in range(len(scores)):
        if bins[i] > cut:
            scores[i] += alpha
