"""The good-bad pair model over sign vectors, for measures of positions: sums over rows.

The signs of different good documents are independent: how many bads stand above a good g is
Poisson-binomial, with chances ``sigmoid(-x)`` of ``x = 2 scale (s_g - s_b)``. Once the order of the
goods among themselves is fixed, the good at place j of it has rank ``j + i`` with i bads above,
so that a measure of positions is a sum over rows, each a function of one number i.

The chance of i bads above g is in proportion to ``e_i exp(-i x_g)``, where e_i, the sum over sets
of i bads of ``exp(sum x_b)``, is the same for all goods. So goods whose scores are near share one
distribution, which is tilted for each, and one way back to the derivatives by the bads. Of two
labels the norm of that chance is the likelihood over pairs, which then takes no pass of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._parallel import bounds, pack, pointers, rows_of
from permdist.sums.row_kernels import BEST, LOG_MEAN, LOG_SUM, MEAN, sort_goods, sum_queries
from permdist.sums.row_tables import StepTables

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure

    Work = Callable[[int, int], None]
    Spread = Callable[[Work, FloatArray], None]


class BatchRows:
    """A measure as a sum over rows, for every query of a batch.

    Parameters
    ----------
    labels : array of int, shape (documents,)
        Of contiguous queries; each has at least two different ones.
    ptr : array of int, shape (queries + 1,)
    scale : array of float, shape (queries,)
        The factor of score differences in each query.
    measure : Measure
        One for which `decompose` has an answer.
    shared : dict, optional
        Keeps the tables of the measure, for several batches.

    Attributes
    ----------
    offsets : array of float, shape (queries,)
        What the measure is where all steps are 0.
    whole : bool
        Whether the rows of each query are made of all its pairs of different labels, each once.
    """

    def __init__(
        self,
        labels: IntArray,
        ptr: IntArray,
        scale: FloatArray,
        measure: Measure,
        shared: dict[Any, Any] | None = None,
    ) -> None:
        self._scale = scale
        store = {} if shared is None else shared
        self._tables: StepTables = store.setdefault(("rows", measure), StepTables(measure))
        given = labels
        if measure.binary:
            labels = np.minimum(labels, 1)
        self.whole = np.array_equal(labels, given)
        members, cuts, shares, n_thresholds, queries = [], [], [], [], []
        self._weights, cost = np.zeros(len(labels)), []
        for a, b in bounds(ptr):
            values, level, totals = np.unique(labels[a:b], return_inverse=True, return_counts=True)
            steps = self._tables.layout(values, totals)
            if steps is None:
                raise ValueError(
                    f"space: {measure.name!r} of the labels {values.tolist()} is no sum over "
                    "rows; use space='interleavings' or 'orders'"
                )
            self.whole &= len(steps.thresholds) == 1 == len(values) - 1
            members.append(a + np.argsort(labels[a:b], kind="stable"))
            first = np.concatenate([[0], np.cumsum(totals)])
            whole = np.zeros(len(values))
            work = 0.0
            for threshold, share in steps.thresholds:
                cuts.append(first[threshold])
                shares.append(share)
                whole[threshold:] += share
                bads, goods = float(first[threshold]), float(b - a - first[threshold])
                together, alone = 0.5 * bads, goods * min(bads, steps.end + 1.0)
                work += bads * (4.0 * goods + min(together, alone))
            self._weights[a:b] = whole[level]
            n_thresholds.append(len(steps.thresholds))
            queries.append((*steps.place, steps.offset))
            cost.append(work + 100.0 * (b - a))
        self._cost = np.array(cost)
        self.offsets = np.array([query[3] for query in queries])
        self._members, self._ptr = pack(members)[0], ptr
        self._cuts, self._shares = np.array(cuts, dtype=np.int64), np.array(shares)
        self._first = pointers(n_thresholds)
        place = np.array([query[:3] for query in queries], dtype=np.int64).reshape(-1, 3)
        of_query = rows_of(self._first)
        lengths = np.diff(ptr)[of_query] - self._cuts
        self._goods_ptr = pointers(lengths)
        self._place = place
        self._order: tuple[IntArray, IntArray] | None = None
        self._best: FloatArray | None = None

    def sort(self, scores: FloatArray) -> bool:
        """Fix the order of the goods: that of these scores, equal ones on a par.

        Goods on a par share the mean of their places' steps. Until then goods are sorted anew by
        the scores of every call.

        Returns
        -------
        bool
            Whether the order is another one than before.
        """
        new, old = self._sorted(scores), self._order
        self._order, self._best = new, None
        return old is None or not all(map(np.array_equal, new, old))

    @property
    def sorted(self) -> bool:
        """Whether the order of the goods is fixed."""
        return self._order is not None

    def best(self, scores: FloatArray) -> FloatArray:
        """Return the value of each query where all pairs are in the right order."""
        if self._best is None or self._order is None:
            everything = len(self._scale)
            self._best = self._run(scores, 0.0, BEST, lambda work, _: work(0, everything))[0]
        return self._best + self.offsets

    def log_means(
        self, scores: FloatArray, kappa: float, spread: Spread
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sum over rows of ``log E exp(kappa (best step - step))``, with derivatives.

        A document that is above several thresholds has a row for each; their logs are averaged,
        each with the whole gain of the document, by the shares of the thresholds in it.
        """
        return self._run(scores, kappa, LOG_MEAN, spread)

    def log_sums(
        self, scores: FloatArray, kappa: float, spread: Spread
    ) -> tuple[FloatArray, FloatArray]:
        """Return `log_means` and the logs of all pairs, relative to the best; if `whole` only."""
        return self._run(scores, kappa, LOG_SUM, spread)

    def means(self, scores: FloatArray, spread: Spread) -> tuple[FloatArray, FloatArray]:
        """Return the mean of the measure, and its derivatives."""
        values, gradient = self._run(scores, 0.0, MEAN, spread)
        return values + self.offsets, gradient

    def _run(
        self, scores: FloatArray, kappa: float, task: int, spread: Spread
    ) -> tuple[FloatArray, FloatArray]:
        values, gradient = np.zeros(len(self._scale)), np.zeros(len(scores))
        order = self._sorted(scores) if self._order is None else self._order
        layout = self._members, self._ptr, self._first, self._cuts, self._shares, self._goods_ptr
        tables, ends = self._tables.steps.flat, self._tables.ends.flat
        rows = self._weights, tables, self._place, ends, self._scale
        out = float(kappa), task, values, gradient
        arguments: tuple[Any, ...] = scores, *layout, *order, *rows, *out

        def work(first: int, last: int) -> None:
            sum_queries(first, last, *arguments)

        spread(work, self._cost)
        return values, gradient

    def _sorted(self, scores: FloatArray) -> tuple[IntArray, IntArray]:
        goods = np.empty(self._goods_ptr[-1], np.int64)
        par = np.empty(len(goods), np.int64)
        layout = self._members, self._ptr, self._first, self._cuts, self._goods_ptr
        sort_goods(scores, *layout, goods, par)
        return goods, par
