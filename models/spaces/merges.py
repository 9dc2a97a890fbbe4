"""Interleavings of the classes, each in a fixed order: sorted by score, or drawn beforehand."""

from __future__ import annotations

import numpy as np

from permdist._check import FloatArray, IntArray, RandomState, as_rng, count
from permdist._kernels import kernel
from permdist.distributions import GoodBad
from permdist.distributions.lattice import Lattice, Shape, interleave
from permdist.distributions.merges import (
    _backward,
    _backward_mean,
    _forward,
    _means,
    diagonal_steps,
)
from permdist.measures import Measure
from permdist.models.spaces.base import Batch, Space, best_slopes


class Interleavings(Space):
    """All ways to merge the classes, each sorted by score.

    ``log_sums`` is convex in the scores: for every pattern of labels, sorting inside the classes
    gives the largest F, so the sum is over maxima of linear functions. It has kinks where scores
    of a class tie.
    """

    n_orders = 0  # sorted anew for every call

    def __init__(self, batch: Batch, measure: Measure, threads: int | None = None) -> None:
        super().__init__(batch, measure, threads)
        self._binary = np.flatnonzero(batch.is_binary)
        self._graded = np.flatnonzero(~batch.is_binary)
        self._arrangements = np.zeros(0, dtype=np.int64)
        goods, bads, tables, at, offsets = [], [], [], [], []
        where: dict[tuple[int, ...], int] = {}
        size = 0
        for q in self._binary:
            a, b = batch.ptr[q], batch.ptr[q + 1]
            (low, high), (m, p) = np.unique(batch.labels[a:b], return_counts=True)
            key = (int(low), int(high), int(m), int(p))
            if key not in where:
                table = diagonal_steps(measure, key[:2], key[2:])
                where[key] = size
                tables.append(table.ravel())
                size += table.size
            at.append(where[key])
            offsets.append(measure.offset(np.array(key[:2]), np.array(key[2:])))
            goods.append(a + np.flatnonzero(batch.labels[a:b] == high))
            bads.append(a + np.flatnonzero(batch.labels[a:b] == low))
        self._goods, self._good_ptr = _packed(goods)
        self._bads, self._bad_ptr = _packed(bads)
        self._tables = np.concatenate(tables) if tables else np.zeros(0)
        self._at = np.array(at, dtype=np.int64)
        self._offsets = np.array(offsets)
        p, m = np.diff(self._good_ptr), np.diff(self._bad_ptr)
        self._cost = (p + 1.0) * (m + 1.0) + 20.0 * (p + m)

    def log_sums(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:
        """Sum over all interleavings."""
        values, gradient = np.empty(len(self.batch)), np.zeros(len(scores))
        found = np.empty(len(self._binary))
        self._run(scores, -kappa, False, found, gradient)
        values[self._binary] = found + kappa * (1.0 - self._offsets)
        for q in self._graded.tolist():
            values[q] = self._graded_log_sum(q, scores, kappa, gradient)
        return values, gradient

    def mean_gains(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Average over all interleavings."""
        values, gradient = np.empty(len(self.batch)), np.zeros(len(scores))
        found = np.empty(len(self._binary))
        self._run(scores, 0.0, True, found, gradient)
        values[self._binary] = found + self._offsets
        for q in self._graded.tolist():
            values[q] = self._graded_mean(q, scores, gradient)
        return values, gradient

    def _run(
        self,
        scores: FloatArray,
        weight: float,
        of_mean: bool,
        values: FloatArray,
        gradient: FloatArray,
    ) -> None:
        if not len(self._binary):
            return
        scale = self.batch.scale[self._binary]
        layout = self._goods, self._good_ptr, self._bads, self._bad_ptr, self._arrangements

        def work(first: int, last: int) -> None:
            tables = self._tables, self._at
            _sum_merges(
                first,
                last,
                scores,
                *layout,
                self.n_orders,
                scale,
                *tables,
                weight,
                of_mean,
                values,
                gradient,
            )

        self._spread(work, self._cost)

    # ---- more than two grades: the general lattice ---------------------------------------------

    def _shapes(self, q: int, model: GoodBad) -> list[Shape]:
        return [model._shape]

    def _graded_log_sum(
        self, q: int, scores: FloatArray, kappa: float, gradient: FloatArray
    ) -> float:
        model, best = self._model(q, scores, kappa)
        a, b = self.batch.ptr[q], self.batch.ptr[q + 1]
        logs, slopes = [], []
        for shape in self._shapes(q, model):
            lattice = Lattice(shape, model._step_weights(shape))
            logs.append(lattice.log_partition + model._constant)
            slopes.append(model._walk(lattice.flows, shape, gather=True))
        chances = np.exp(logs - np.max(logs))
        gradient[a:b] = chances @ np.array(slopes) / chances.sum() - best
        return float(np.max(logs) + np.log(chances.mean()) - best @ scores[a:b])

    def _graded_mean(self, q: int, scores: FloatArray, gradient: FloatArray) -> float:
        model, _ = self._model(q, scores, 0.0)
        a, b = self.batch.ptr[q], self.batch.ptr[q + 1]
        label = self.batch.labels[a:b]
        logs, means, slopes, mean_slopes = [], [], [], []
        for shape in self._shapes(q, model):
            lattice = Lattice(shape, model._step_weights(shape))
            steps = shape.steps_of(self.measure, label)
            logs.append(lattice.log_partition)
            means.append(lattice.expect(steps))
            slopes.append(model._walk(lattice.flows, shape, gather=True))
            mean_slopes.append(model._walk(lattice.expect_gradient(steps), shape, gather=True))
        chances = np.exp(logs - np.max(logs))
        chances /= chances.sum()
        mean = float(chances @ np.array(means))
        surplus = chances * (np.array(means) - mean)
        gradient[a:b] = chances @ np.array(mean_slopes) + surplus @ np.array(slopes)
        return mean + self.measure.offset(*np.unique(label, return_counts=True))

    def _model(self, q: int, scores: FloatArray, kappa: float) -> tuple[GoodBad, FloatArray]:
        """Make the model of a query, and the derivatives of F at its best ranking."""
        a, b = self.batch.ptr[q], self.batch.ptr[q + 1]
        label, scale = self.batch.labels[a:b], float(self.batch.scale[q])
        options = {"space": "interleavings", "scale": scale, "tilt": self.measure, "kappa": kappa}
        model = GoodBad(scores[a:b], label, **options)  # type: ignore[arg-type]
        return model, scale * best_slopes(label)


class Lattices(Interleavings):
    """All ways to merge the classes, for several fixed orders of each class, and their mean.

    The orders are drawn once. ``log_sums`` is smooth, convex, and the mean of the sums is an
    unbiased estimate of the mean over all orders.

    Parameters
    ----------
    orders : int
        How many.
    rng : int, Generator or None
    """

    def __init__(
        self,
        batch: Batch,
        measure: Measure,
        threads: int | None = None,
        *,
        orders: int = 4,
        rng: RandomState = None,
    ) -> None:
        super().__init__(batch, measure, threads)
        self.n_orders = count("orders", orders)
        generator = as_rng(rng)
        parts: list[IntArray] = []
        self._classes: dict[int, list[Shape]] = {}
        for q in range(len(batch)):
            a, b = batch.ptr[q], batch.ptr[q + 1]
            label = batch.labels[a:b]
            members = [a + np.flatnonzero(label == grade) for grade in np.unique(label)]
            drawn = [[generator.permutation(c) for c in members] for _ in range(self.n_orders)]
            if len(members) == 2:
                parts += [np.concatenate([goods, bads]) for bads, goods in drawn]
            else:
                self._classes[q] = [interleave([c - a for c in one]) for one in drawn]
        self._arrangements = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        self._cost *= self.n_orders

    def _shapes(self, q: int, model: GoodBad) -> list[Shape]:
        return self._classes[q]


def _packed(parts: list[IntArray]) -> tuple[IntArray, IntArray]:
    """Put arrays behind each other, and say where each starts."""
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return (np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)), starts


# ---- kernels ------------------------------------------------------------------------------------


@kernel(fuse=True)
def _sum_merges(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    goods: IntArray,
    good_ptr: IntArray,
    bads: IntArray,
    bad_ptr: IntArray,
    arrangements: IntArray,
    n_orders: int,
    scales: FloatArray,
    tables: FloatArray,
    table_at: IntArray,
    weight: float,
    of_mean: bool,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Fill in values (queries,) and gradient (documents,) of some queries.

    n_orders is 0 where the classes are to be sorted by score; otherwise arrangements holds, for
    each query and each of its orders, the goods and then the bads.
    """
    orders = max(1, n_orders)
    for q in range(first_query, last_query):
        good, bad = goods[good_ptr[q] : good_ptr[q + 1]], bads[bad_ptr[q] : bad_ptr[q + 1]]
        p, m, scale = len(good), len(bad), scales[q]
        n, cells = p + m, (p + 1) * (m + 1)
        first = np.empty(n + 2, np.int64)
        first[0] = 0
        for t in range(n + 1):
            first[t + 1] = first[t] + min(p, t) - max(0, t - m) + 1
        steps = tables[table_at[q] : table_at[q] + 2 * cells].reshape(2, cells)
        shares = np.empty((2, cells))
        above, sums = np.zeros(p + 1), np.zeros(m + 1)
        who = np.empty((orders, n), np.int64)
        logs, means = np.empty(orders), np.zeros(orders)
        slopes, mean_slopes = np.empty((orders, n)), np.zeros((orders, n))
        for k in range(orders):
            if n_orders == 0:
                who[0, :p] = good[np.argsort(-scores[good], kind="mergesort")]
                who[0, p:] = bad[np.argsort(-scores[bad], kind="mergesort")]
            else:
                start = (good_ptr[q] + bad_ptr[q]) * orders + k * n
                who[k] = arrangements[start : start + n]
            for j in range(p):
                above[j + 1] = scale * scores[who[k, j]]
            for i in range(m):
                sums[m - i - 1] = sums[m - i] + scale * scores[who[k, p + i]]
            logs[k] = _forward(above, sums, steps, weight, first, shares)
            passed, after = _backward(shares, first, p, m)
            _slopes(passed, after, scale, slopes[k])
            if of_mean:
                along = _means(shares, steps, first, p, m)
                means[k] = along[-1]
                passed, after = _backward_mean(shares, steps, along, first, p, m)
                _slopes(passed, after, scale, mean_slopes[k])
        largest = logs.max()
        chances = np.exp(logs - largest)
        total = chances.sum()
        chances /= total
        mean = (chances * means).sum()
        values[q] = mean if of_mean else largest + np.log(total / orders)
        for k in range(orders):
            for i in range(n):
                if of_mean:
                    more = mean_slopes[k, i] + (means[k] - mean) * slopes[k, i]
                else:
                    more = slopes[k, i]
                gradient[who[k, i]] += chances[k] * more


@kernel
def _slopes(passed: FloatArray, after: FloatArray, scale: float, out: FloatArray) -> None:
    """Turn bads above each good, and goods placed after i bads, into derivatives by scores."""
    p, m = len(passed), len(after) - 1
    for j in range(p):
        out[j] = -2.0 * scale * passed[j]
    running = 0.0
    for i in range(m - 1, -1, -1):
        running += after[i + 1]
        out[p + i] = 2.0 * scale * running
