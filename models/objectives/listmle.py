"""ListMLE: the Plackett-Luce likelihood of the labels' own order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist.models.batch import NO_CURVATURE, derivatives_in_threads, sums_in_threads
from permdist.models.objectives.base import Bound, BoundDerivatives, Objective
from permdist.models.objectives.softmax import exponentials
from permdist.models.rules import OneOf, Seed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.models.batch import Batch
    from permdist.models.rules import Rule


FAINT = 1e-130  # the least worth, beside the largest, whose square can be divided by


@dataclass(frozen=True)
class ListMLE(Objective):
    """Minus the log-likelihood of the labels' order under Plackett-Luce.

    Convex; the curvature is the exact diagonal of second derivatives.

    Parameters
    ----------
    ties : {"together", "random", "index"}
        Documents with the same label: each compared with all others of its label and below, but
        for those of the lowest, whose order is unknown; in an order drawn once; or as they stand.
    random_state : int, Generator or None
        For ``ties="random"``.

    References
    ----------
    Xia et al.: Listwise Approach to Learning to Rank: Theory and Algorithm.

    Examples
    --------
    >>> value, gradient = ListMLE()([0.0, 0.0], [1, 0])
    >>> round(value, 4), gradient.round(4)
    (0.6931, array([-0.5,  0.5]))
    """

    alias: ClassVar[str] = "listmle"
    ties: str = "together"
    random_state: RandomState = 0

    rules: ClassVar[Mapping[str, Rule]] = {
        "ties": OneOf(("together", "random", "index")),
        "random_state": Seed(),
    }

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        order, start, stop = self._layout(batch)

        def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
            values, gradient = out
            parts = order, start, stop, batch.ptr
            _likelihood(first, last, scores, *parts, values, gradient, NO_CURVATURE)

        return sums_in_threads(work, batch, 10.0 * batch.sizes, n_jobs)

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        order, start, stop = self._layout(batch)

        def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
            _by_worths(first, last, scores, order, start, stop, batch.ptr, *out)

        return derivatives_in_threads(work, batch, 10.0 * batch.sizes, n_jobs)

    def _layout(self, batch: Batch) -> tuple[IntArray, IntArray, IntArray]:
        """Return the documents from the top down, where each one's comparisons start, and the end.

        The latter is that of the stages of each query.
        """
        n = len(batch.labels)
        keys = np.arange(n, dtype=float)
        if self.ties == "random":
            pairs = zip(batch.streams(self.random_state), np.diff(batch.ptr).tolist(), strict=True)
            keys = np.concatenate([stream.random(size) for stream, size in pairs])
        order = np.lexsort((keys, -batch.labels, batch.query_of))
        # Where the documents start that a document is compared with: itself, or its label's first.
        start = np.arange(n)
        if self.ties == "together":
            label, query = batch.labels[order], batch.query_of
            new = np.r_[True, (np.diff(label) != 0) | (np.diff(query) != 0)]
            start = np.maximum.accumulate(np.where(new, start, 0))
        stop = batch.ptr[1:].copy()
        if self.ties == "together":
            # Nothing is known of the order of the last: whatever it is, they come last.
            lowest = np.minimum.reduceat(batch.labels, batch.ptr[:-1])[batch.query_of]
            stop -= np.add.reduceat((batch.labels == lowest).astype(np.int64), batch.ptr[:-1])
        return order, start, stop


@kernel
def _by_worths(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    order: IntArray,
    start: IntArray,
    stop: IntArray,
    ptr: IntArray,
    values: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
) -> None:
    """Fill in what `_likelihood` does, without logarithms where scores are not far apart."""
    begin, end = ptr[first_query], ptr[last_query]
    logs, worths, tails = np.empty(end - begin), np.empty(end - begin), np.empty(end - begin)
    for q in range(first_query, last_query):
        high = scores[ptr[q]]
        for i in range(ptr[q], ptr[q + 1]):
            high = scores[i] if scores[i] > high else high
        for t in range(ptr[q], ptr[q + 1]):
            logs[t - begin] = scores[order[t]] - high
    exponentials(logs, worths)
    for q in range(first_query, last_query):
        a, b = ptr[q] - begin, ptr[q + 1] - begin
        running, least = 0.0, 1.0
        for t in range(b - 1, a - 1, -1):
            running += worths[t]
            tails[t] = running
            least = worths[t] if worths[t] < least else least
        if least < FAINT:
            parts = order, start, stop, ptr
            _likelihood(q, q + 1, scores, *parts, values, gradient, curvature)
            continue
        value, product = 0.0, 1.0
        # Sums over stages so far of 1 / tail and of its square: a document is in these.
        inverse, squares, t = 0.0, 0.0, a
        while t < b:
            # All documents whose comparisons start here, which stand together.
            after = t + 1
            while after < b and start[after + begin] <= t + begin:
                after += 1
            if t + begin < stop[q]:
                share, count = 1.0 / tails[t], float(after - t)
                inverse += count * share
                squares += count * share * share
                taken = 1.0
            else:
                taken = 0.0
            for i in range(t, after):
                if taken > 0.0:
                    value -= logs[i]
                    product *= tails[t]
                    if product < 1e-140 or product > 1e140:
                        value += np.log(product)
                        product = 1.0
                chance = worths[i] * inverse
                gradient[order[i + begin]] = chance - taken
                curvature[order[i + begin]] = chance - worths[i] * worths[i] * squares
            t = after
        values[q] = value + np.log(product)


@kernel
def _likelihood(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    order: IntArray,
    start: IntArray,
    stop: IntArray,
    ptr: IntArray,
    values: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
) -> None:
    """Fill in values, gradient and, unless it is empty, curvature; order is from the top down."""
    curved = len(curvature) > 0
    for q in range(first_query, last_query):
        a, b = ptr[q], ptr[q + 1]
        tails = np.empty(b - a)  # log of the sum from here to the end
        running = -np.inf
        for t in range(b - 1, a - 1, -1):
            s = scores[order[t]]
            high, low = max(running, s), min(running, s)
            running = high + np.log1p(np.exp(low - high))
            tails[t - a] = running
        value, shares = 0.0, np.zeros(b - a)
        for t in range(a, stop[q]):
            value += tails[start[t] - a] - scores[order[t]]
            shares[start[t] - a] += 1.0
        values[q] = value
        # A document is in all sums that start at it or before it.
        weight = -np.inf  # log of sum over starts of count / sum
        squares = -np.inf  # the same of count / sum^2
        for t in range(a, b):
            if shares[t - a] > 0.0:
                new = np.log(shares[t - a]) - tails[t - a]
                high, low = max(weight, new), min(weight, new)
                weight = high + np.log1p(np.exp(low - high))
                if curved:
                    new -= tails[t - a]
                    high, low = max(squares, new), min(squares, new)
                    squares = high + np.log1p(np.exp(low - high))
            if curved:
                s = scores[order[t]]
                curvature[order[t]] = np.exp(s + weight) - np.exp(2.0 * s + squares)
            gradient[order[t]] = np.exp(scores[order[t]] + weight)
            if t < stop[q]:
                gradient[order[t]] -= 1.0
