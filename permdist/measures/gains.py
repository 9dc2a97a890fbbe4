"""Trec_eval's experimental measures of gain: G, and NDCG averaged along the ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist.measures.judged import JudgedQueries, RunMeasure
from permdist.rankings.sorting import sort

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


class _Gains(RunMeasure):
    """A measure of gains along a run, without an average over ties."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ties == "average":
            raise ValueError(f"ties: {self.aliases[0]} has no average over ties; expected 'index'")

    def _empty(self, judged: JudgedQueries) -> IntArray:
        return np.diff(judged.placements(1, "index").ptr) == 0

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        ptr, _, judgement, rest_ptr, rest = judged.arrays
        return _along(ptr, judgement, rest_ptr, rest, judged.placements(1, "index").ptr, self._kind)

    _kind: ClassVar[int]


class G(_Gains):
    """Gain over the logarithm of what the best order would have gained more: ``G``.

    The document at rank r adds ``gain / log2(2 + ideal(r) - actual(r))``, where `ideal` is what
    the best r documents gain (each at least 1) and `actual` what the first r of the run do; the
    sum is divided by the gain of all relevant documents. Gains are labels; ties by index only.
    """

    aliases = ("g",)
    _kind = 0


class NDCGRel(_Gains):
    """NDCG at the rank of each relevant document, averaged over them: ``ndcg_rel``.

    A relevant document that is not retrieved counts by the DCG of the whole run over the ideal.
    Gains are labels; ties by index only.
    """

    aliases = ("ndcg_rel",)
    _kind = 1


class RNDCG(_Gains):
    """NDCG where the grades of the best order change, averaged over these ranks: ``Rndcg``.

    With 5 documents of grade 2 and 3 of grade 1, the mean of NDCG at 5, at 8 and, where more
    than 9 were retrieved, at the end of the run, as in trec_eval. Gains are labels; ties by
    index only.
    """

    aliases = ("rndcg",)
    _kind = 2

    def _empty(self, judged: JudgedQueries) -> IntArray:
        return judged.relevant == 0


@kernel
def _along(
    ptr: IntArray,
    judgement: IntArray,
    rest_ptr: IntArray,
    rest: IntArray,
    relevant: IntArray,
    kind: int,
) -> FloatArray:
    """Walk down each run beside its best order; kind 0 is G, 1 is ndcg_rel, 2 is Rndcg."""
    out = np.zeros(len(ptr) - 1)
    for q in range(len(ptr) - 1):
        best = np.empty(relevant[q + 1] - relevant[q], np.int64)
        entry = 0
        for i in range(ptr[q], ptr[q + 1]):
            if judgement[i] > 0:
                best[entry] = judgement[i]
                entry += 1
        for i in range(rest_ptr[q], rest_ptr[q + 1]):
            if rest[i] > 0:
                best[entry] = rest[i]
                entry += 1
        sort(best)
        best = best[::-1]
        retrieved, p = ptr[q + 1] - ptr[q], len(best)
        if p == 0:
            continue
        if kind == 0:
            gained, cost, total, whole = 0.0, 0.0, 0.0, 0.0
            for gain in best:
                whole += gain
            for r in range(retrieved):
                gain = max(judgement[ptr[q] + r], 0)
                gained += gain
                cost += best[r] if r < p else 1
                if gain:
                    total += gain / np.log2(2.0 + cost - gained)
            out[q] = total / whole
            continue
        total, dcg, ideal, points = 0.0, 0.0, 0.0, 0
        for r in range(max(retrieved, p)):
            # What the first r documents gained, and how much the best r would.
            if kind == 2 and 0 < r <= p and (r == p or best[r] != best[r - 1]):
                total += dcg / ideal
                points += 1
            gain = max(judgement[ptr[q] + r], 0) if r < retrieved else 0
            if gain:
                dcg += gain / np.log2(r + 2.0)
            if r < p:
                ideal += best[r] / np.log2(r + 2.0)
            if kind == 1 and gain:
                total += dcg / ideal
                points += 1
        if kind == 1:
            out[q] = (total + (p - points) * dcg / ideal) / p
        elif retrieved == p + 1:  # trec_eval looks at the end of the run from p + 2 on
            out[q] = total / points
        else:
            out[q] = (total + dcg / ideal) / (points + 1)
    return out
