"""DiffRank: boosting of feature rankings by differences of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist.models.base import Card
from permdist.models.batch import in_threads
from permdist.models.feature_rank import FeatureRank, Run, atanh
from permdist.models.feature_ranks import Intervals, Scale, ascending
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
        scale = Scale(self.scored_by_, ptr, self.n_jobs)
        totals = np.bincount(self.features_, self.weights_, minlength=features.shape[1])
        used = np.flatnonzero(totals)
        weak = Intervals(np.asarray(self.centers_)[used])
        return totals[used] @ scale.unit(scale.weak(weak, features[:, used]))

    def _run(
        self,
        kind: str,
        cycles: int,
        weak: Intervals,
        features: FloatArray,
        batch: Batch,
        watch: Watch,
    ) -> Run:
        scale, held_out = Scale(kind, batch.ptr, self.n_jobs), watch.held_out
        h = scale.weak(weak, features)
        visited = self._visited(np.array([scale.rank(row, batch)[1] for row in h]))
        scale.unit(h)
        if held_out is not None:
            other = Scale(kind, held_out.ptr, self.n_jobs)
            held_out_h = other.unit(other.weak(weak, held_out.X))
        held_out_scores = np.zeros(0 if held_out is None else len(held_out.X))
        differences = Differences(batch, self.prec, self.n_jobs)
        combined = np.zeros(len(features))
        first, potential, _ = differences(combined)
        if first == 0.0:
            raise ValueError("prec: no query has a pair that counts")
        before, columns, weights = first, [], []
        for number in range(cycles * len(h)):
            k = int(visited[number % len(h)])
            weight = atanh(float(potential @ h[k]))
            combined = combined + weight * h[k]
            loss, potential, wrong = differences(combined)
            columns.append(k)
            weights.append(weight)
            if held_out is not None:
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
        kept = self._kept(watch)
        worth = self._worth(watch, -watch.history["error"][kept - 1])
        return Run(kind, watch, columns[:kept], weights[:kept], [1.0] * kept, worth)


class Differences:
    """The exponential loss over pairs of documents, of which none is ever made.

    Parameters
    ----------
    batch : Batch
    prec : int, optional
        Only pairs whose upper document is among the best so many of its query count. Documents
        with equal labels share their places: each counts with its share of those that do.
    n_jobs : int, optional
    """

    def __init__(self, batch: Batch, prec: int | None, n_jobs: int | None) -> None:
        order = np.lexsort((-batch.labels, batch.query_of))
        places = np.arange(len(order)) - batch.ptr[:-1][batch.query_of]
        counted = np.ones(len(order)) if prec is None else (places < prec).astype(float)
        starts = np.flatnonzero(
            np.r_[True, (np.diff(batch.labels[order]) != 0) | (np.diff(batch.query_of) != 0)]
        )
        sizes = np.diff(np.append(starts, len(order)))
        share = np.repeat(np.add.reduceat(counted, starts) / sizes, sizes)
        self._layout = np.array(batch.labels), order, share, np.array(batch.ptr)
        self._cost, self._n_jobs = 80.0 * batch.sizes, n_jobs

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray, float]:
        """Sum ``exp(-(H_i - H_j))`` over pairs with a higher label of i.

        Returns
        -------
        loss : float
        potential : array of float, shape (documents,)
            Every document's share in r, relative to the loss.
        wrong : float
            The number of pairs in the wrong order.
        """
        potential = np.empty(len(scores))
        totals, wrong = np.empty((2, len(self._cost)))
        where = *self._layout, potential, totals, wrong
        in_threads(lambda a, b: _differences(a, b, scores, *where), self._cost, self._n_jobs)
        loss = float(totals.sum())
        if loss > 0.0:
            potential /= loss
        return loss, potential, float(wrong.sum())


@kernel(depends=(ascending,))
def _differences(
    first: int,
    last: int,
    scores: FloatArray,
    labels: IntArray,
    order: IntArray,
    share: FloatArray,
    ptr: IntArray,
    potential: FloatArray,
    totals: FloatArray,
    wrong: FloatArray,
) -> None:
    """Fill in the sums of some of the queries.

    `order` has each query's documents from the highest label down, and `share` how much each of
    them counts as the upper one of a pair.
    """
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        lowest, highest = scores[a], scores[a]
        for i in range(a + 1, b):
            lowest, highest = min(lowest, scores[i]), max(highest, scores[i])
        middle = 0.5 * (highest + lowest)
        # From the top down: the sum of exp(-H) over those above with a higher label.
        above, t, total = 0.0, a, 0.0
        for place in range(a, b):
            while labels[order[t]] > labels[order[place]]:
                above += share[t] * np.exp(middle - scores[order[t]])
                t += 1
            part = above * np.exp(scores[order[place]] - middle)
            potential[order[place]] = -part
            total += part
        totals[q] = total
        below, t = 0.0, b - 1
        for place in range(b - 1, a - 1, -1):
            while labels[order[t]] < labels[order[place]]:
                below += np.exp(scores[order[t]] - middle)
                t -= 1
            potential[order[place]] += share[place] * below * np.exp(middle - scores[order[place]])
        wrong[q] = _wrong_pairs(scores, labels, order[a:b], share[a:b])


@kernel(depends=(ascending,))
def _wrong_pairs(scores: FloatArray, labels: IntArray, order: IntArray, share: FloatArray) -> float:
    """Count pairs whose upper document scores lower than the other, each with its share.

    O(n log n): documents from the lowest label up enter a tree of counts by score.
    """
    n = len(order)
    picked = np.empty(n)
    for t in range(n):
        picked[t] = scores[order[t]]
    by_score = ascending(picked)
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
        if share[i] > 0.0 and entered > 0.0:
            node, not_above = rank[i], 0.0
            while node > 0:
                not_above += tree[node]
                node -= node & -node
            wrong += share[i] * (entered - not_above)
    return wrong
