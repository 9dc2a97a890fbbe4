"""All orders, or all valid sign vectors: exactly for short queries, by drawn class orders beyond.

Every order is an order of each class and an interleaving of these. For longer queries class orders
are drawn from the model at a pilot's scores and kept; the sum over all interleavings of each is
exact, and their sums are averaged relative to those at the pilot's scores: the Monte Carlo
likelihood of Geyer and Thompson (1992), a log-sum of exponentials of linear functions still.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._parallel import pack, pointers, rows_of
from permdist.models.batch import Batch
from permdist.models.rules import Seed, Whole
from permdist.models.spaces.base import Space, Sums, register_space
from permdist.models.spaces.sample import Sample
from permdist.samplers.class_orders import Model, move_particles, start_particles
from permdist.sums.batch import BatchInterleavings
from permdist.sums.interleavings import tabulate
from permdist.sums.shape import level_steps
from permdist.sums.subsets import (
    MOST_ITEMS,
    MOST_SIGNED,
    backward,
    forward,
    layout,
    steps_of,
)

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.measures import Measure

    Jobs = int | None
    Pair = tuple[FloatArray, FloatArray]

FEW = 16  # class orders of the first rounds


class OrderSums(Sums):
    """Sums over all orders or all valid sign vectors of each query, relative to the best.

    Each of the equally good best orders, as many as the product of the factorials of the classes,
    is 1 in the sum over orders, and the sum is divided by their number; among sign vectors one is
    the best.

    Parameters
    ----------
    exact : int
        Queries of so many documents are summed exactly.
    orders : int
        Class orders of each longer query.
    distinct : bool
        Whether to sum over valid sign vectors.
    rng : int, Generator or None
    """

    def __init__(
        self,
        batch: Batch,
        measure: Measure,
        n_jobs: Jobs,
        *,
        exact: int,
        orders: int,
        distinct: bool,
        rng: RandomState,
    ) -> None:
        super().__init__(batch, measure, n_jobs)
        self._short = batch.sizes <= exact
        rows = self._short[batch.query_of]
        self._parts: list[tuple[IntArray, IntArray, _Exact | _Drawn]] = []
        if self._short.any():
            part = _Exact(_part(batch, self._short), measure, distinct)
            self._parts.append((np.flatnonzero(self._short), np.flatnonzero(rows), part))
        self._drawn: _Drawn | None = None
        self._size, self._kappa = orders, 0.0
        if not self._short.all():
            every = batch.streams(rng)
            streams = [every[q] for q in np.flatnonzero(~self._short)]
            self._inputs = _part(batch, ~self._short), measure, distinct, streams
            self._drawn = _Drawn(FEW if orders > FEW else orders, *self._inputs)
            queries, documents = np.flatnonzero(~self._short), np.flatnonzero(~rows)
            self._parts.append((queries, documents, self._drawn))

    @property
    def adapts(self) -> bool:
        """Whether there is anything to draw again."""
        return self._drawn is not None

    def log_sums(self, scores: FloatArray, kappa: float) -> Pair:
        """Sum over all."""
        self._kappa = float(kappa)
        self._ready(scores)
        return self._gather(scores, "log_sums", -kappa, kappa)

    def mean_gains(self, scores: FloatArray) -> Pair:
        """Average over all."""
        self._ready(scores)
        return self._gather(scores, "means", 0.0, 0.0)

    def _gather(self, scores: FloatArray, name: str, weight: float, kappa: float) -> Pair:
        values, gradient = np.empty(len(self.batch)), np.empty(len(scores))
        for queries, documents, part in self._parts:
            found = part.sums(name, scores[documents], weight, self._in_threads)
            offsets = part.offsets if name == "means" else kappa * (1.0 - part.offsets)
            values[queries] = found[0] + offsets
            gradient[documents] = found[1]
        return values, gradient

    def _ready(self, scores: FloatArray) -> None:
        """Draw at the first scores that are asked about, unless a learner has chosen others."""
        if self._drawn is not None and not self._drawn.rounds:
            self.grow()
            self.resort(scores)

    def grow(self) -> bool:
        """Replace the few class orders of the first rounds by all; return whether they were few."""
        if self._drawn is None or self._drawn.size == self._size:
            return False
        rounds = self._drawn.rounds
        self._drawn = _Drawn(self._size, *self._inputs)
        self._drawn.earlier = rounds
        self._parts[-1] = (*self._parts[-1][:2], self._drawn)
        return True

    def redraw(self, scores: FloatArray) -> bool:
        """Draw class orders at these scores, of queries with few effective ones left."""
        if self._drawn is None:
            return False
        return self._drawn.draw(scores[self._parts[-1][1]], -self._kappa, self._in_threads)

    def resort(self, scores: FloatArray) -> bool:
        """Draw class orders at these scores, of queries with few effective ones left.

        The first rounds, which lead from the pilot to where the minimum is, have few class orders.
        """
        return self.redraw(scores) or (self.grow() and self.redraw(scores))

    def effective(self, scores: FloatArray) -> FloatArray:
        """Return the share of effective class orders of the longer queries."""
        if self._drawn is None:
            return np.zeros(0)
        inner = scores[self._parts[-1][1]]
        found = self._drawn.weigh(inner, -self._kappa, self._in_threads)[0]
        return found / self._drawn.size

    def report(self, scores: FloatArray) -> Sample | None:
        """Report the effective sample size at these scores."""
        if self._drawn is None:
            return None
        self._ready(scores)
        effective = np.full(len(self.batch), float(self._drawn.size))
        error = np.zeros(len(self.batch))
        inner = scores[self._parts[-1][1]]
        found = self._drawn.weigh(inner, -self._kappa, self._in_threads)
        effective[~self._short], error[~self._short] = found
        distinct = np.ones(len(self.batch))
        distinct[~self._short] = self._drawn.distinct()
        nothing = np.full(len(self.batch), np.nan)
        rounds = self._drawn.earlier + self._drawn.rounds
        return Sample(self._drawn.size, rounds, effective, error, distinct, nothing)


def _part(batch: Batch, which: Any) -> Batch:
    """Return a batch of some of the queries."""
    ptr = pointers(np.diff(batch.ptr)[which])
    return Batch(batch.labels[which[batch.query_of]], ptr, batch.scale[which])


def _class_sizes(batch: Batch) -> list[IntArray]:
    return [np.unique(batch.labels[a:b], return_counts=True)[1] for a, b in batch.bounds]


def _log_orders(sizes: IntArray) -> float:
    """Return the log of the number of orders of the classes."""
    return sum(lgamma(size + 1.0) for size in sizes.tolist())


class _Exact:
    """Short queries: the program over subsets."""

    def __init__(self, batch: Batch, measure: Measure, distinct: bool) -> None:
        self._batch, self._distinct = batch, distinct
        labels = [batch.labels[a:b] for a, b in batch.bounds]
        self._layouts = [(*layout(label), steps_of(measure, label)) for label in labels]
        self.offsets = _offsets(measure, labels)
        self._best = np.array([_log_orders(total) for total in _class_sizes(batch)])
        self._cost = 10.0 * batch.sizes * 2.0**batch.sizes

    def sums(self, name: str, scores: FloatArray, weight: float, spread: Any) -> Pair:
        values, gradient = np.empty(len(self._batch)), np.empty(len(scores))
        of_mean = name == "means"

        def work(first: int, last: int) -> None:
            for q in range(first, last):
                a, b = self._batch.ptr[q], self._batch.ptr[q + 1]
                *form, steps = self._layouts[q]
                factor = 2.0 * self._batch.scale[q]
                tilts, options = weight * steps, (self._distinct, of_mean)
                inputs: Any = factor * scores[a:b], *form, steps, tilts, *options
                tops, table, dots = forward(*inputs)
                every: Any = *inputs, tops, table, dots
                slopes = backward(*every)
                total = table[-1].sum()
                values[q] = dots[-1].sum() / total if of_mean else tops[-1] + np.log(total)
                gradient[a:b] = factor * slopes[of_mean]

        spread(work, self._cost)
        if not (of_mean or self._distinct):
            values -= self._best
        return values, gradient


class _Drawn:
    """Longer queries: class orders that are drawn, and all interleavings of each."""

    def __init__(
        self,
        size: int,
        batch: Batch,
        measure: Measure,
        distinct: bool,
        streams: list[np.random.Generator],
    ) -> None:
        self._batch, self.size = batch, size
        labels = [batch.labels[a:b] for a, b in batch.bounds]
        if distinct and (batch.n_levels > 2).any():
            longest = int(batch.sizes[batch.n_levels > 2].max())
            raise ValueError(
                f"space: sums over the valid sign vectors of {longest} documents are drawn for two "
                f"labels only, and exact up to {MOST_SIGNED} documents; use graded=False"
            )
        self._sums = BatchInterleavings(
            batch.labels, batch.ptr, batch.scale, measure, size, distinct=distinct
        )
        self._models = []
        for label in labels:
            values, totals = np.unique(label, return_counts=True)
            key = tuple(values.tolist()), tuple(totals.tolist())
            steps = level_steps(measure, *key) if distinct else tabulate(measure, values, totals)
            self._models.append(Model(totals, steps, distinct))
        self.offsets = self._sums.offsets
        best = [_log_orders(total) for total in _class_sizes(batch)]
        self._best = np.array(best) if distinct else np.zeros(len(batch))
        self._rngs = streams  # one per query, whatever the threads
        self._particles: list[Any] = [
            start_particles(*pair)
            for pair in zip(self._models, [size] * len(batch), self._rngs, strict=True)
        ]
        self._cost = 2000.0 * size * np.array([np.prod(m.sizes + 1.0) for m in self._models])
        self.rounds = self.earlier = 0

    def sums(self, name: str, scores: FloatArray, weight: float, spread: Any) -> Pair:
        if name == "means":
            return self._sums.means(scores, spread)
        values, gradient = self._sums.log_sums(scores, weight, spread)
        return values + self._constants, gradient

    @property
    def _constants(self) -> FloatArray:
        return self._best + np.array([found.log_mean for found in self._particles])

    def weigh(self, scores: FloatArray, weight: float, spread: Any) -> Pair:
        """Return the effective sample size and the standard error of the log-sum of each query."""
        logs = self._sums.logs(scores, weight, spread)
        ratios = np.exp(logs - logs.max(axis=1, keepdims=True))
        effective = ratios.sum(axis=1) ** 2 / (ratios**2).sum(axis=1)
        variance = np.array([found.variance for found in self._particles])
        return effective, np.sqrt(variance + (self.size / effective - 1.0) / self.size)

    def distinct(self) -> FloatArray:
        """Return the share of different class orders."""
        return np.array([len(np.unique(p.orders, axis=0)) / self.size for p in self._particles])

    def draw(self, scores: FloatArray, weight: float, spread: Any) -> bool:
        """Draw where the effective sample size is below half; return whether any is."""
        few = np.ones(len(self._batch), dtype=bool)
        if self.rounds:
            few = self.weigh(scores, weight, spread)[0] < 0.5 * self.size
        if not few.any():
            return False
        scaled = 2.0 * self._batch.scale[rows_of(self._batch.ptr)] * scores
        scaled = scaled[self._sums.members]

        def work(first: int, last: int) -> None:
            for q in range(first, last):
                if few[q]:
                    a, b = self._batch.ptr[q], self._batch.ptr[q + 1]
                    inputs = self._particles[q], self._models[q], scaled[a:b], weight
                    self._particles[q] = move_particles(*inputs, self._rngs[q])

        spread(work, np.where(few, self._cost, 1.0))
        starts = self._batch.ptr[:-1]
        orders = [
            self._sums.members[a + found.orders].ravel()
            for a, found in zip(starts, self._particles, strict=True)
        ]
        bases = np.array([found.logs for found in self._particles])
        self._sums.fix_orders(pack(orders)[0], bases)
        self.rounds += 1
        return True


def _offsets(measure: Measure, labels: list[IntArray]) -> FloatArray:
    return np.array([measure.offset(*np.unique(label, return_counts=True)) for label in labels])


class _Piloted(Space):
    """What both spaces share: their options, and that learners start from a pilot."""

    kinked: ClassVar[bool] = True  # as where a learner starts is where class orders are drawn
    draws: ClassVar[bool] = True
    _distinct: ClassVar[bool]
    _most: ClassVar[int]

    exact: int
    orders: int
    rounds: int
    random_state: int | None

    def __post_init__(self) -> None:
        Whole(0, self._most).check("exact", self.exact)
        Whole(2).check("orders", self.orders)
        Whole().check("rounds", self.rounds)
        Seed().check("random_state", self.random_state)

    def _sums(self, batch: Batch, measure: Measure, n_jobs: Jobs, rng: RandomState) -> Sums:
        options: dict[str, Any] = {"exact": self.exact, "orders": self.orders}
        return OrderSums(batch, measure, n_jobs, **options, distinct=self._distinct, rng=rng)


@register_space
@dataclass(frozen=True)
class Orders(_Piloted):
    """All orders: exactly for short queries, with drawn class orders for longer ones.

    Class orders are drawn from the model at the scores of a pilot, the likelihood over pairs, and
    kept while a learner solves; where fewer than half of them are effective at what it has found,
    it draws them again there and goes on. All interleavings of each are summed exactly. `sample_`
    of the learner has the effective sample sizes.

    Parameters
    ----------
    exact : int
        The number of documents, 21 at most, up to which a query is summed exactly, over all subsets
        of its documents; every document more doubles the time.
    orders : int
        How many orders of each class of longer queries.
    rounds : int
        How often a learner draws and solves, at most.
    random_state : int, optional
        The seed of the orders; the learner's own by default.

    Examples
    --------
    >>> Orders(orders=64).name
    'orders[orders=64]'
    """

    alias: ClassVar[str] = "orders"
    _distinct: ClassVar[bool] = False
    _most: ClassVar[int] = MOST_ITEMS
    exact: int = 10
    orders: int = 256
    rounds: int = 20
    random_state: int | None = None


@register_space
@dataclass(frozen=True)
class ValidSigns(_Piloted):
    """All sign vectors of good-bad pairs that some order has, each counted once.

    `Orders` counts a sign vector as often as there are orders with these signs: the product of the
    factorials of the sizes of its blocks, runs of documents of the same label. Short queries are
    summed exactly, of any labels. For longer ones, of two labels, class orders are drawn as in
    `Orders`, and every interleaving is divided by that product; this takes a time of goods x bads
    x documents for each.

    Parameters
    ----------
    exact : int
        The number of documents, 18 at most, up to which a query is summed exactly, over all subsets
        of its documents; every document more doubles the time.
    orders, rounds, random_state
        As in `Orders`.

    References
    ----------
    Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, section 4.

    Examples
    --------
    >>> ValidSigns(exact=14).name
    'valid-signs[exact=14]'
    """

    alias: ClassVar[str] = "valid-signs"
    _distinct: ClassVar[bool] = True
    _most: ClassVar[int] = MOST_SIGNED
    exact: int = 10
    orders: int = 32
    rounds: int = 20
    random_state: int | None = None
