"""Binary preference: relevant documents against judged ones that are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.measures.gmap import GeometricMean
from permdist.measures.judged import JudgedQueries, RunArrays, RunMeasure, tie_end

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


class BPref(RunMeasure):
    """How often relevant documents stand above those judged not relevant.

    Each of the R relevant documents earns 1 less the share of judged bad documents above it,
    ``min(bads above, R) / min(all judged bads, R)``; one not retrieved earns nothing. Documents
    without judgement play no part.

    References
    ----------
    Buckley and Voorhees: Retrieval evaluation with incomplete information (2004), as trec_eval
    computes it.

    Examples
    --------
    >>> from permdist import measures
    >>> from permdist.data import Qrels, Run
    >>> qrels = Qrels.from_dict({"q": {"a": 1, "b": 1, "c": 0, "d": 0}})
    >>> run = Run.from_dict({"q": {"a": 4, "new": 3, "c": 2, "b": 1}})
    >>> measures.evaluate_run(run, qrels, "bpref").mean("bpref")  # (1 + 1 - 1/2) / 2
    0.75
    """

    aliases = ("bpref",)

    def _on_run(self, judged: JudgedQueries) -> FloatArray:
        return _bpref(judged.arrays, judged.level, self.ties == "average", judged.relevant)


class GMBPref(GeometricMean, BPref):
    """Binary preference with a geometric mean over queries, as `GMAP`: ``gm_bpref``."""

    aliases = ("gm_bpref",)


@kernel
def _bpref(arrays: RunArrays, level: int, share: bool, relevant: IntArray) -> FloatArray:
    """Sum what the relevant documents earn, over their number.

    In a tie with m judged bads, 0 to m of them are equally likely above a relevant document.
    """
    ptr, keys, judgement, rest_ptr, rest = arrays
    out = np.zeros(len(ptr) - 1)
    for q in range(len(ptr) - 1):
        all_bads = 0
        for i in range(ptr[q], ptr[q + 1]):
            all_bads += 0 <= judgement[i] < level
        for i in range(rest_ptr[q], rest_ptr[q + 1]):
            all_bads += rest[i] < level
        least = max(min(all_bads, relevant[q]), 1)
        bads = 0
        i = ptr[q]
        while i < ptr[q + 1]:
            end = tie_end(keys, i, ptr[q + 1], share)
            good, bad = 0, 0
            for t in range(i, end):
                good += judgement[t] >= level
                bad += 0 <= judgement[t] < level
            if good:
                earned = 0.0
                for above in range(bads, bads + bad + 1 if share else bads + 1):
                    earned += 1.0 - min(above, relevant[q]) / least
                out[q] += good * earned / (bad + 1 if share else 1)
            bads += bad
            i = end
        out[q] /= relevant[q]
    return out
