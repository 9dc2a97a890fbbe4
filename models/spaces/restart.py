"""A fixed sample of rankings of each query, drawn by the restart sampler before anything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from permdist._check import finite
from permdist._kernels import kernel
from permdist.models.rules import Flag, Number, Seed, Whole
from permdist.models.spaces.base import Space, Sums, best_slopes, register_space
from permdist.models.spaces.sample import Sample
from permdist.samplers import RestartSampler
from permdist.sums.subsets import Subsets

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.measures import Measure
    from permdist.models.batch import Batch

    Jobs = int | None

SAMPLER_OPTIONS = ("rungs", "skew", "walk", "stride", "distinct", "warm_up")
COUNTED = 12  # documents of a query whose sign vectors are summed for the report


class RestartSums(Sums):
    """The rankings of a restart sample, and the best one.

    Parameters
    ----------
    sampler : RestartSampler
    size : int
        Rankings of each query.
    rng : int, Generator or None
    with_best : bool
        Whether the best ranking is always one of them.
    """

    def __init__(
        self,
        batch: Batch,
        measure: Measure,
        n_jobs: Jobs,
        sampler: Any,
        size: int,
        rng: RandomState,
        *,
        with_best: bool = True,
    ) -> None:
        super().__init__(batch, measure, n_jobs)
        streams = batch.streams(rng)
        self._size = size + with_best
        parts, losses = [], []
        for q, (a, b) in enumerate(batch.bounds):
            label = batch.labels[a:b]
            best = np.argsort(-label, kind="stable")
            # The sampler flips pairs of a good and a bad item; the lowest grade counts as bad.
            drawn = sampler.sample(label - label.min(), size, streams[q]).orders
            orders = np.concatenate([best[None], drawn]) if with_best else drawn
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

    def report(self, scores: FloatArray) -> Sample:
        """Report how many rankings carry the sums, how many differ, and what they cover.

        The slopes of F tell sign vectors apart: they are the numbers of documents of other labels
        above each document.
        """
        shape = len(self.batch)
        effective, distinct, mass = np.empty(shape), np.empty(shape), np.full(shape, np.nan)
        for q, (a, b) in enumerate(self.batch.bounds):
            rows = self._slopes[a * self._size : b * self._size].reshape(self._size, b - a)
            logits = rows @ scores[a:b]
            chances = np.exp(logits - logits.max())
            effective[q] = chances.sum() ** 2 / (chances**2).sum()
            found = np.unique((rows / self.batch.scale[q]).round(), axis=0, return_index=True)[1]
            distinct[q] = len(found) / self._size
            if b - a <= COUNTED:
                scaled = 2.0 * self.batch.scale[q] * scores[a:b]
                whole = Subsets(scaled, self.batch.labels[a:b], distinct=True)
                mass[q] = np.exp(logsumexp(logits[found]) - whole.log_sum)
        return Sample(self._size, 1, effective, np.full(shape, np.nan), distinct, mass)


@register_space
@dataclass(frozen=True)
class Restart(Space):
    """A fixed sample of rankings, drawn by a `permdist.samplers.RestartSampler`, and the best one.

    `sample_` of a learner says how many sign vectors of the sample are different and, of queries of
    up to 12 documents, which share of the probability of all valid ones they have.

    Parameters
    ----------
    sample_size : int
        Rankings of each query.
    rungs, skew, walk, stride : int, float, int, int
        The restart states, which of them are favored, the rankings of each walk and the flips
        between two of them, as in `RestartSampler`.
    chances : str or sequence of float, optional
        How likely each restart state is, from the best to the worst, in place of `skew`:
        ``rungs=2, chances="9:1"``, or ``(9, 1)``.
    distinct : bool
        Whether restart states that coincide count once.
    warm_up : int
        The number of flips before the first ranking of a walk.
    best : bool
        Whether the best ranking is always in the sample, besides.
    sampler : RestartSampler, optional
        One of your own in place of the options above it; it has no text form.
    random_state : int, optional
        The seed of the sample; the learner's own by default.

    Examples
    --------
    >>> Restart(sample_size=30, rungs=2, chances=(9, 1)).name
    'restart[sample_size=30,rungs=2,chances=9:1]'
    """

    alias: ClassVar[str] = "restart"
    draws: ClassVar[bool] = True
    sample_size: int = 100
    rungs: int = 11
    skew: float = -10.0
    walk: int = 10
    stride: int = 1
    chances: str | None = None
    distinct: bool = False
    warm_up: int = 0
    best: bool = True
    sampler: RestartSampler | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        Whole().check("sample_size", self.sample_size)
        Whole(2).check("rungs", self.rungs)
        Number().check("skew", self.skew)
        Whole().check("walk", self.walk)
        Whole().check("stride", self.stride)
        Flag().check("distinct", self.distinct)
        Whole(0).check("warm_up", self.warm_up)
        Flag().check("best", self.best)
        if self.chances is not None:
            object.__setattr__(self, "chances", _ratio(self.chances))
            RestartSampler("ap", rungs=self.rungs, chances=_numbers(self.chances))
        Seed().check("random_state", self.random_state)
        if not isinstance(self.sampler, RestartSampler | None):
            raise TypeError(f"sampler: expected a RestartSampler, got {self.sampler!r:.100}")

    def _sums(self, batch: Batch, measure: Measure, n_jobs: Jobs, rng: RandomState) -> Sums:
        sampler = self.sampler
        if sampler is None:
            options = {name: getattr(self, name) for name in SAMPLER_OPTIONS}
            chances = None if self.chances is None else _numbers(self.chances)
            sampler = RestartSampler(measure, **options, chances=chances)
        inputs = sampler, self.sample_size, rng
        return RestartSums(batch, measure, n_jobs, *inputs, with_best=self.best)


def _ratio(chances: Any) -> str:
    """Write chances as text, as in 9:1."""
    if isinstance(chances, str):
        _numbers(chances)
        return chances.strip()
    return ":".join(f"{float(chance):.15g}" for chance in finite("chances", chances, ndim=1))


def _numbers(chances: str) -> list[float]:
    try:
        return [float(part) for part in chances.split(":")]
    except ValueError:
        raise ValueError(f"chances: expected numbers as in '9:1', got {chances!r:.100}") from None


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
