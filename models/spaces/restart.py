"""A fixed sample of rankings of each query, drawn by the restart sampler before anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._check import as_rng
from permdist._kernels import kernel
from permdist.models.rules import Number, Seed, Whole
from permdist.models.spaces.base import Space, Sums, best_slopes, need_draws, register_space
from permdist.samplers import RestartSampler

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.measures import Measure
    from permdist.models.batch import Batch

    Jobs = int | None


class RestartSums(Sums):
    """The rankings of a restart sample, and the best one.

    Parameters
    ----------
    sampler : RestartSampler
    size : int
        Rankings of each query.
    rng : int, Generator or None
    """

    def __init__(
        self,
        batch: Batch,
        measure: Measure,
        n_jobs: Jobs,
        sampler: Any,
        size: int,
        rng: RandomState,
    ) -> None:
        super().__init__(batch, measure, n_jobs)
        generator = as_rng(rng)
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


@register_space
@dataclass(frozen=True)
class Restart(Space):
    """A fixed sample of rankings, drawn by a `permdist.samplers.RestartSampler`, and the best one.

    Parameters
    ----------
    sample_size : int
        Rankings of each query.
    rungs, skew, walk, stride : int, float, int, int
        The restart states, which of them are favored, the rankings of each walk and the flips
        between two of them, as in `RestartSampler`.
    sampler : RestartSampler, optional
        One of your own in place of that; it has no text form.
    random_state : int, optional
        The seed of the sample; the learner's own by default.

    Examples
    --------
    >>> Restart(sample_size=30).name
    'restart[sample_size=30]'
    """

    alias: ClassVar[str] = "restart"
    draws: ClassVar[bool] = True
    sample_size: int = 100
    rungs: int = 11
    skew: float = -10.0
    walk: int = 10
    stride: int = 1
    sampler: RestartSampler | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        Whole().check("sample_size", self.sample_size)
        Whole(2).check("rungs", self.rungs)
        Number().check("skew", self.skew)
        Whole().check("walk", self.walk)
        Whole().check("stride", self.stride)
        Seed().check("random_state", self.random_state)
        if not isinstance(self.sampler, RestartSampler | None):
            raise TypeError(f"sampler: expected a RestartSampler, got {self.sampler!r:.100}")

    def _sums(self, batch: Batch, measure: Measure, n_jobs: Jobs, rng: RandomState) -> Sums:
        need_draws("sample_size", self.sample_size, batch)
        walks = {name: getattr(self, name) for name in ("rungs", "skew", "walk", "stride")}
        sampler = RestartSampler(measure, **walks) if self.sampler is None else self.sampler
        return RestartSums(batch, measure, n_jobs, sampler, self.sample_size, rng)


def exponents(orders: IntArray, labels: IntArray) -> FloatArray:
    """Return F's coefficients: items with other labels below less those above, as in the orders."""
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
