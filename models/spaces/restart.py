"""A fixed sample of rankings of each query, drawn by the restart sampler before anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._check import as_rng, count
from permdist._kernels import kernel
from permdist.models.spaces.base import Sums, best_slopes
from permdist.samplers import RestartSampler

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.measures import Measure
    from permdist.models.batch import Batch


class RestartSums(Sums):
    """The rankings of a restart sample, and the best one.

    Parameters
    ----------
    sampler : RestartSampler, optional
        By default one for the measure.
    sample_size : int
        Rankings of each query.
    rng : int, Generator or None
    """

    def __init__(
        self,
        batch: Batch,
        measure: Measure,
        n_jobs: int | None = None,
        *,
        sampler: RestartSampler | None = None,
        sample_size: int = 100,
        rng: RandomState = None,
    ) -> None:
        super().__init__(batch, measure, n_jobs)
        sampler = RestartSampler(measure) if sampler is None else sampler
        size, generator = count("sample_size", sample_size), as_rng(rng)
        self._size = size + 1
        parts, losses = [], []
        for q, (a, b) in enumerate(batch.bounds):
            label = batch.labels[a:b]
            best = np.argsort(-label, kind="stable")
            # The sampler flips pairs of a good and a bad item; the lowest grade counts as bad.
            drawn = sampler.sample(label - label.min(), size, generator).orders
            orders = np.concatenate([best[None], drawn])
            parts.append(batch.scale[q] * (exponents(orders, label) - best_slopes(label)))
            losses.append(1.0 - measure(orders, label))
        self._slopes = np.concatenate([part.ravel() for part in parts]) if parts else np.zeros(0)
        self._losses = np.array(losses).reshape(len(batch), self._size)

    def log_sums(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:
        """Sum over the sample."""
        return self._run(scores, kappa, of_mean=False)

    def mean_gains(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Average over the sample, weighted by ``exp F``."""
        return self._run(scores, 0.0, of_mean=True)

    def _run(
        self, scores: FloatArray, kappa: float, *, of_mean: bool
    ) -> tuple[FloatArray, FloatArray]:
        values, gradient = np.empty(len(self.batch)), np.zeros(len(scores))

        def work(first: int, last: int) -> None:
            inputs = scores, self.batch.ptr, self._slopes, self._losses
            sum_sample(first, last, *inputs, kappa, of_mean, values, gradient)

        self._in_threads(work, np.diff(self.batch.ptr).astype(float))
        return values, gradient


def exponents(orders: IntArray, labels: IntArray) -> FloatArray:
    """Give F's coefficients: items with other labels below less those above, as in the orders."""
    result = np.empty(orders.shape)
    label = labels[orders]
    position = np.arange(orders.shape[1])
    signed = np.zeros(orders.shape)
    for grade, total in zip(*np.unique(labels, return_counts=True), strict=True):
        mine = label == grade
        others_above = position - (np.cumsum(mine, axis=1) - mine)
        signed += np.where(mine, len(labels) - total - 2 * others_above, 0)
    np.put_along_axis(result, orders, signed, axis=1)
    return result


@kernel
def sum_sample(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    ptr: IntArray,
    slopes: FloatArray,
    losses: FloatArray,
    kappa: float,
    of_mean: bool,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Fill in values (queries,) and gradient (documents,) of some queries.

    slopes holds, query after query, a matrix (rankings, documents); losses (queries, rankings).
    """
    size = losses.shape[1]
    logits = np.empty(size)
    for q in range(first_query, last_query):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        for y in range(size):
            start = a * size + y * n
            total = 0.0
            for i in range(n):
                total += slopes[start + i] * scores[a + i]
            logits[y] = total + kappa * losses[q, y]
        largest = logits.max()
        total, mean = 0.0, 0.0
        for y in range(size):
            logits[y] = np.exp(logits[y] - largest)
            total += logits[y]
            mean += logits[y] * (1.0 - losses[q, y])
        mean /= total
        values[q] = mean if of_mean else largest + np.log(total)
        for y in range(size):
            chance = logits[y] / total
            if of_mean:
                chance *= (1.0 - losses[q, y]) - mean
            start = a * size + y * n
            for i in range(n):
                gradient[a + i] += chance * slopes[start + i]
