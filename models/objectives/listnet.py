"""ListNet: cross entropy of top-k probabilities under Plackett-Luce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist.models.batch import NO_CURVATURE, derivatives_in_threads, sums_in_threads
from permdist.models.objectives.base import Bound, BoundDerivatives, Objective
from permdist.models.objectives.softmax import softmax_losses
from permdist.models.rules import POSITIVE, OneOf, Whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch
    from permdist.models.rules import Rule


LARGEST = 2e9


@dataclass(frozen=True)
class ListNet(Objective):
    """Cross entropy between the top-k choices of two Plackett-Luce models.

    Convex; the curvature is the exact diagonal of second derivatives.

    Parameters
    ----------
    k : int
        How many places are chosen.
    target : {"softmax", "label", "gain"}
        Whether the labels' model chooses in proportion to ``exp(label / temperature)``, to the
        labels, or to the gains ``2^label - 1`` of NDCG.
    temperature : float

    References
    ----------
    Cao et al.: Learning to Rank: From Pairwise Approach to Listwise Approach.

    Examples
    --------
    >>> value, gradient = ListNet()([0.0, 0.0], [1, 0])
    >>> round(value, 4), gradient.round(4)
    (0.6931, array([-0.2311,  0.2311]))
    """

    alias: ClassVar[str] = "listnet"
    k: int = 1
    target: str = "softmax"
    temperature: float = 1.0

    rules: ClassVar[Mapping[str, Rule]] = {
        "k": Whole(),
        "target": OneOf(("softmax", "label", "gain")),
        "temperature": POSITIVE,
    }

    def settle(self, labels: IntArray, ptr: IntArray) -> Objective:
        """Refuse more choices than can be gone through; see `Objective.settle`."""
        self._cost(np.diff(ptr).astype(np.float64))
        return super().settle(labels, ptr)

    def _cost(self, sizes: FloatArray) -> FloatArray:
        """Return the number of choices of queries of these sizes."""
        with np.errstate(over="ignore"):
            cost: FloatArray = sizes ** np.minimum(self.k, sizes)
        if cost.sum() > LARGEST:
            raise ValueError(f"k: {cost.sum():.2g} choices at every step are too many, use fewer")
        return cost

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        fill, cost = self._work(batch), 10.0 * self._cost(batch.sizes)

        def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
            fill(first, last, scores, *out, NO_CURVATURE)

        return sums_in_threads(work, batch, cost, n_jobs)

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        if self.k == 1:
            targets = self._targets(batch)
            totals = np.add.reduceat(targets, batch.ptr[:-1])[batch.query_of]
            return softmax_losses(batch, targets / totals, n_jobs)
        cost = 10.0 * self._cost(batch.sizes)
        return derivatives_in_threads(self._work(batch), batch, cost, n_jobs)

    def _work(self, batch: Batch) -> Callable[..., None]:
        """Return the function that fills in what belongs to a range of queries."""
        targets = self._targets(batch)

        def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
            _cross_entropy(first, last, scores, targets, batch.ptr, self.k, *out)

        return work

    def _targets(self, batch: Batch) -> FloatArray:
        """Return what the labels' model chooses in proportion to."""
        targets = batch.labels.astype(float)
        if self.target == "softmax":
            highest = np.maximum.reduceat(targets, batch.ptr[:-1])
            targets = np.exp((targets - highest[batch.query_of]) / float(self.temperature))
        elif self.target == "gain":
            highest = np.maximum.reduceat(targets, batch.ptr[:-1])[batch.query_of]
            targets = np.exp2(targets - highest) - np.exp2(-highest)
        return targets


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
    curvature: FloatArray,
) -> None:
    """Add up ``-P log Q`` over choices of the next document, for all that may come before it.

    The curvature is filled in unless it is empty.
    """
    curved = len(curvature) > 0
    for q in range(first_query, last_query):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        s, wanted = scores[a : a + n], targets[a : a + n]
        largest = s[0]
        for i in range(1, n):
            largest = max(largest, s[i])
        odds, logs = np.empty(n), np.empty(n)
        for i in range(n):
            logs[i] = s[i] - largest
            odds[i] = np.exp(logs[i])
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
                        if curved:
                            part = share / total
                            curvature[a + i] += chance[level] * part * (1.0 - part)
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
