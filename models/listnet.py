"""ListNet: cross entropy of top-k probabilities under Plackett-Luce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist._typing import FloatArray, IntArray
from permdist.measures import Measure
from permdist.models.base import Card, Settings
from permdist.models.listwise import Listwise, Work
from permdist.models.rules import POSITIVE, OneOf, Rule, Whole
from permdist.models.spaces import Batch

LARGEST = 2e9


class ListNet(Listwise):
    """Cross entropy between the top-k choices of two Plackett-Luce models.

    One has the labels as scores, the other those of the ranking function. With ``k=1`` the loss
    of a query is ``-sum_i softmax(y)_i log softmax(s)_i``, which is convex; with larger k, choices
    go on among the documents that remain, and a query of n documents costs O(n^k).

    Parameters
    ----------
    k : int
        How many places are chosen.
    target : {"softmax", "label"}
        The labels' model: documents are chosen in proportion to ``exp(label / temperature)``, as
        in the paper, or to their labels, so that bad ones never are.
    temperature : float
        Labels are divided by it.

    Notes
    -----
    All other parameters are those of `ListMLE`, which has ties and a seed besides.

    References
    ----------
    Cao et al.: Learning to Rank: From Pairwise Approach to Listwise Approach.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> ListNet().fit(queries).converged_
    True
    """

    card: ClassVar[Card] = Card(
        paper="Cao et al. 2007",
        optimizes="choices of the top k",
        minimizes="cross entropy of Plackett-Luce models",
        cost="n^k",
    )
    settings: ClassVar[Settings] = {
        "C": [1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0],
        "target": ["softmax", "label"],
    }
    measure_judges: ClassVar[bool] = True
    rules: ClassVar[Mapping[str, Rule]] = {
        "k": Whole(),
        "target": OneOf(("softmax", "label")),
        "temperature": POSITIVE,
    }

    def __init__(
        self,
        k: int = 1,
        *,
        target: str = "softmax",
        temperature: float = 1.0,
        C: float = 100.0,
        measure: str | Measure = "ndcg@10",
        normalize: bool | str | Sequence[str] = False,
        max_iter: int = 200,
        tol: float = 1e-5,
        early_stopping: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            C=C,
            measure=measure,
            normalize=normalize,
            max_iter=max_iter,
            tol=tol,
            early_stopping=early_stopping,
            warm_start=warm_start,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.k = k
        self.target = target
        self.temperature = temperature

    def _kernel(self, batch: Batch) -> tuple[Work, FloatArray]:
        targets = batch.labels.astype(float)
        if self.target == "softmax":
            highest = np.maximum.reduceat(targets, batch.ptr[:-1])
            targets = np.exp((targets - highest[batch.query_of]) / float(self.temperature))
        k, ptr = self.k, batch.ptr
        sizes = np.diff(ptr).astype(float)
        with np.errstate(over="ignore"):
            cost = sizes ** np.minimum(k, sizes)
        if cost.sum() > LARGEST:
            raise ValueError(f"k: {cost.sum():.2g} choices at every step are too many, use fewer")

        def work(
            first: int, last: int, scores: FloatArray, values: FloatArray, gradient: FloatArray
        ) -> None:
            _cross_entropy(first, last, scores, targets, ptr, k, values, gradient)

        return work, 10.0 * cost


@kernel
def _cross_entropy(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    targets: FloatArray,
    ptr: IntArray,
    k: int,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Add up ``-P log Q`` over choices of the next document, for all that may come before it."""
    for q in range(first_query, last_query):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        s, wanted = scores[a : a + n], targets[a : a + n]
        odds = np.exp(s - s.max())
        logs = s - s.max()
        depth = min(k, n)
        taken = np.zeros(n, np.bool_)
        path = np.full(depth + 1, -1)
        chance = np.ones(depth + 1)
        level = 0
        value = 0.0
        while level >= 0:
            if path[level] == -1:
                # A new prefix: the choice among the documents that remain.
                total, target_total, mean = 0.0, 0.0, 0.0
                for i in range(n):
                    if not taken[i]:
                        total += odds[i]
                        target_total += wanted[i]
                        mean += wanted[i] * logs[i]
                if target_total <= 0.0:  # nothing is left that the target would choose
                    level -= 1
                    continue
                peak = 0.0
                if total < 1e-200:  # all that remain are far below those that are taken
                    peak, total = -np.inf, 0.0
                    for i in range(n):
                        if not taken[i]:
                            peak = max(peak, logs[i])
                    for i in range(n):
                        if not taken[i]:
                            total += np.exp(logs[i] - peak)
                value += chance[level] * (peak + np.log(total) - mean / target_total)
                for i in range(n):
                    if not taken[i]:
                        share = np.exp(logs[i] - peak) if peak < 0.0 else odds[i]
                        share = share / total - wanted[i] / target_total
                        gradient[a + i] += chance[level] * share
            else:
                taken[path[level]] = False
            following = path[level] + 1
            while following < n and (taken[following] or wanted[following] <= 0.0):
                following += 1
            if level + 1 >= depth or following >= n:
                level -= 1
                continue
            path[level] = following
            left = 0.0
            for i in range(n):
                if not taken[i]:
                    left += wanted[i]
            taken[following] = True
            chance[level + 1] = chance[level] * wanted[following] / left
            level += 1
            path[level] = -1
        values[q] = value
