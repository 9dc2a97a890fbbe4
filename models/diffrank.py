"""DiffRank: boosting of feature rankings by differences of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist.models.base import Card
from permdist.models.feature_rank import LARGEST, FeatureRank
from permdist.models.feature_ranks import Intervals
from permdist.models.options import option
from permdist.models.rules import Whole

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch
    from permdist.models.history import Watch


class DiffRank(FeatureRank):
    """Adds weighted rankings by single features, as scores, and keeps the differences.

    Pairs (i above j in truth) have the distribution ``D proportional to exp(-(H_i - H_j) / U_q)``,
    where U_q is the largest difference of ranks, n - 1. Feature after feature,
    ``r = sum D (h_i - h_j) / U_q`` gives the weight ``log((1 + r) / (1 - r)) / 2``. The share of
    pairs in the wrong order never exceeds the product of the normalizers Z of D, round by round.

    D factorizes, as in `RankBoost`: a round costs O(documents), not O(pairs).

    Attributes
    ----------
    history_ : dict of lists
        ``objective`` is the exponential loss, relative to that of H = 0, which is the product of
        all Z; ``error`` the share of pairs in the wrong order, which it bounds (Lemma 3); ``z``.

    References
    ----------
    Wang et al.: Listwise Approaches Based on Feature's Ranking Discovery, Figure 4 and Lemmas 3
    and 4.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(40, strict=True, rng=0)
    >>> history = DiffRank().fit(queries).history_
    >>> all(e <= b for e, b in zip(history["error"], history["objective"], strict=True))
    True
    """

    card: ClassVar[Card] = Card(
        paper="Wang et al.",
        optimizes="pairs in the right order",
        minimizes="sum exp(-(H_i - H_j) / U)",
        cost="n log n per addition",
    )

    prec: int | None = option(
        Whole(optional=True),
        "Only pairs whose upper document is among the best `prec` of its query count; all by "
        "default.",
        default=None,
        kw_only=False,
    )

    def _scores(self, features: FloatArray, ptr: IntArray) -> FloatArray:
        h = Intervals(np.asarray(self.centers_)).ranks(features, ptr)
        return self._totals(self.weights_, len(h)) @ h

    @staticmethod
    def _totals(weights: list[float], width: int) -> FloatArray:
        """Add up the weights of each feature over the cycles."""
        padded = np.zeros(-(-len(weights) // width) * width)
        padded[: len(weights)] = weights
        return padded.reshape(-1, width).sum(axis=0)

    def _learn(
        self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray | None
    ) -> None:
        centers, h, held_out_h = self._weak_rankings(features, batch, watch, start)
        held_out_scores = np.zeros(held_out_h.shape[1])
        order = np.lexsort((-batch.labels, batch.query_of))
        prec = len(features) if self.prec is None else min(int(self.prec), len(features))
        unit = 1.0 / np.maximum(1.0, np.diff(batch.ptr) - 1.0)[batch.query_of]
        layout = batch.labels, order, batch.ptr, prec
        combined = np.zeros(len(features))
        first, potential, _ = _differences(combined, *layout)
        if first == 0.0:
            raise ValueError("prec: no query has a pair that counts")
        before, weights = first, []
        for number in range(self.cycles * len(h)):
            k = number % len(h)
            step = h[k] * unit
            r = float(np.clip(potential @ step, -LARGEST, LARGEST))
            weight = 0.5 * np.log((1.0 + r) / (1.0 - r))
            combined = combined + weight * step
            loss, potential, wrong = _differences(combined, *layout)
            weights.append(float(weight))
            held_out_scores = held_out_scores + weight * held_out_h[k]
            stop = watch.note(
                len(weights),
                held_out_scores,
                objective=loss / first,
                error=wrong / first,
                z=loss / before,
                weight=weight,
            )
            before = loss
            if stop or not loss > 0.0:  # all pairs are as far apart as doubles can tell
                break
        if watch.stops_early and watch.best is not None:
            weights = weights[: watch.best]
        self.weights_, self.centers_ = weights, centers
        self.converged_ = True


@kernel
def _differences(
    scores: FloatArray, labels: IntArray, order: IntArray, ptr: IntArray, prec: int
) -> tuple[float, FloatArray, float]:
    """Sum exp(-(H_i - H_j)) over pairs with a higher label of i, one of the best `prec`.

    Also give every document's share in r, relative to the loss, and the number of pairs in the
    wrong order. `order` has each query's documents from the highest label down.
    """
    out = np.zeros(len(scores))
    total, wrong = 0.0, 0.0
    for q in range(len(ptr) - 1):
        a, b = ptr[q], ptr[q + 1]
        middle = 0.5 * (scores[a:b].max() + scores[a:b].min())
        # From the top down: the sum of exp(-H) over those above with a higher label.
        above, t = 0.0, a
        for place in range(a, b):
            while labels[order[t]] > labels[order[place]]:
                if t - a < prec:
                    above += np.exp(middle - scores[order[t]])
                t += 1
            out[order[place]] -= above * np.exp(scores[order[place]] - middle)
            total += above * np.exp(scores[order[place]] - middle)
        below, t = 0.0, b - 1
        for place in range(b - 1, a - 1, -1):
            while labels[order[t]] < labels[order[place]]:
                below += np.exp(scores[order[t]] - middle)
                t -= 1
            if place - a < prec:
                out[order[place]] += below * np.exp(middle - scores[order[place]])
        wrong += _wrong_pairs(scores, labels, order[a:b], prec)
    return total, out / total if total > 0.0 else out, wrong


@kernel
def _wrong_pairs(scores: FloatArray, labels: IntArray, order: IntArray, prec: int) -> float:
    """Count pairs whose upper document scores lower than the other, among the best `prec`.

    O(n log n): documents from the lowest label up enter a tree of counts by score.
    """
    n = len(order)
    by_score = np.argsort(scores[order])
    rank = np.empty(n, np.int64)
    place, last = 0, np.nan
    for t in range(n):
        if t == 0 or scores[order[by_score[t]]] != last:
            place = t
        last = scores[order[by_score[t]]]
        rank[by_score[t]] = place + 1
    tree = np.zeros(n + 1)
    wrong, entered, t = 0.0, 0.0, n - 1
    for i in range(n - 1, -1, -1):
        while labels[order[t]] < labels[order[i]]:
            node = rank[t]
            while node <= n:
                tree[node] += 1.0
                node += node & -node
            entered += 1.0
            t -= 1
        if i < prec:
            node, not_above = rank[i], 0.0
            while node > 0:
                not_above += tree[node]
                node -= node & -node
            wrong += entered - not_above
    return wrong
