"""Inferred average precision, for pools of which only a sample was judged."""

from __future__ import annotations

from math import lgamma
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.measures.judged import JudgedQueries, RunArrays, RunMeasure, tie_end

if TYPE_CHECKING:
    from permdist._typing import FloatArray

EPSILON = 1e-5


class InfAP(RunMeasure):
    """Average precision, estimated where only a sample of the pool was judged.

    The precision at a relevant document is inferred: documents above it that were in the pool
    are relevant in the proportion of those judged, documents outside the pool are not. A negative
    grade says that a document was in the pool but not judged.

    References
    ----------
    Yilmaz and Aslam: Estimating average precision with incomplete and imperfect judgments
    (2006), as trec_eval computes it.

    Examples
    --------
    >>> from permdist import measures
    >>> from permdist.data import Qrels, Run
    >>> qrels = Qrels.from_dict({"q": {"a": 1, "b": -1, "c": 1, "d": 0}})
    >>> run = Run.from_dict({"q": {"a": 4, "b": 3, "d": 2, "c": 1}})
    >>> round(measures.evaluate_run(run, qrels, "infap").mean("infap"), 4)
    0.8125
    """

    aliases = ("infap",)

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        values = _infap(judged.arrays, judged.level, self.ties == "average")
        return values / np.maximum(judged.relevant, 1)


@kernel
def _precision(position: int, pool: float, goods: float, bads_and_goods: float) -> float:
    """Infer the precision at a relevant document from what is above it."""
    inferred = (goods + EPSILON) / (bads_and_goods + 2.0 * EPSILON)
    return (1.0 + pool * inferred) / (position + 1.0)


@kernel
def _infap(arrays: RunArrays, level: int, share: bool) -> FloatArray:
    """Sum the inferred precisions at the relevant documents, in expectation over ties.

    Take one relevant document of a tie of g: t = 0 .. g-1 of the others are equally likely above
    it, of which s are judged with a hypergeometric chance. Given t and s, the number of relevant
    ones among the s and that of unjudged ones in the pool among the t - s are independent, and
    only their means matter.
    """
    ptr, keys, judgement, _, _ = arrays
    out = np.zeros(len(ptr) - 1)
    for q in range(len(ptr) - 1):
        good, bad, pool = 0, 0, 0  # above: relevant, judged bad, in the pool but not judged
        i = ptr[q]
        while i < ptr[q + 1]:
            end = tie_end(keys, i, ptr[q + 1], share)
            goods, bads, pools = 0, 0, 0
            for t in range(i, end):
                goods += judgement[t] >= level
                bads += 0 <= judgement[t] < level
                pools += judgement[t] == -2
            n, g = i - ptr[q], end - i
            if goods and g == 1:
                out[q] += _precision(n, good + bad + pool, good, good + bad)
            elif goods:
                others = goods - 1 + bads  # judged, besides the document looked at
                rest_of_tie = g - 1 - others
                among_judged = (goods - 1) / others if others else 0.0
                among_rest = pools / rest_of_tie if rest_of_tie else 0.0
                total = 0.0
                for t in range(g):
                    weight, value = 0.0, 0.0
                    for s in range(max(0, t - rest_of_tie), min(t, others) + 1):
                        chance = np.exp(
                            _log_choose(others, s)
                            + _log_choose(rest_of_tie, t - s)
                            - _log_choose(g - 1, t)
                        )
                        weight += chance
                        value += chance * _precision(
                            n + t,
                            good + bad + pool + s + (t - s) * among_rest,
                            good + s * among_judged,
                            good + bad + s,
                        )
                    total += value / weight
                out[q] += goods * total / g
            good, bad, pool = good + goods, bad + bads, pool + pools
            i = end
    return out


@kernel
def _log_choose(n: int, k: int) -> float:
    """Logarithm of the binomial coefficient."""
    return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)
