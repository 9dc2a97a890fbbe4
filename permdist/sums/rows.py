"""The good-bad pair model over sign vectors, for measures of positions: sums over rows.

The signs of different good documents are independent: how many bads stand above a good g is
Poisson-binomial, with chances ``sigmoid(-x)`` of ``x = 2 scale (s_g - s_b)``. Once the order of the
goods among themselves is fixed, the good at place j of it has rank ``j + i`` with i bads above,
so that a measure of positions is a sum over rows, each a function of one number i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._ragged import bounds, pack, pointers, rows_of
from permdist.measures import Composite
from permdist.sums.row_kernels import BEST, LOG_MEAN, MEAN, sort_goods, sum_queries
from permdist.sums.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure

    Work = Callable[[int, int], None]
    Spread = Callable[[Work, FloatArray], None]


class Steps(NamedTuple):
    """A measure as a sum over rows: ``offset + sum share * table[start + (j - 1) stride + i]``.

    The sum is over thresholds, and for each over the documents at its level or above, in a fixed
    order j = 1, 2, ..., with i documents of lower levels above them.

    Attributes
    ----------
    thresholds : list of (int, float)
        The level from which documents count as good, and the share of each such row.
    table : array of float, shape (entries,)
    stride : int
    ends : array of int, shape (goods,)
        For each j the count from which the table no longer changes.
    offset : float
    """

    thresholds: list[tuple[int, float]]
    table: FloatArray
    stride: int
    ends: IntArray
    offset: float


def decompose(measure: Measure, values: IntArray, totals: IntArray) -> Steps | None:
    """Write a measure as a sum over rows; None where it is no such sum.

    A sum of gains over positions, such as NDCG, is split by thresholds: the gain of a grade is
    the sum of what each grade up to it adds, and to every threshold belongs a sum over binary
    labels. Other measures must be of binary relevance, or there must be two levels of which the
    lower one adds nothing.

    Parameters
    ----------
    measure : Measure
    values : array of int, shape (levels,)
        The different labels of a query, ascending.
    totals : array of int, shape (levels,)
        How many documents have each.
    """
    if not measure.additive:
        return None
    form = measure.positional(np.repeat(values, totals))
    if form is not None:
        gains = form.gains[np.cumsum(totals) - 1]
        shares = np.diff(gains)
        weights = np.ascontiguousarray(form.weights)
        changes = np.flatnonzero(np.diff(weights))
        end = int(changes[-1]) + 1 if len(changes) else 0
        ends = np.maximum(end - np.arange(len(weights)), 0)
        thresholds = [(c + 1, float(share)) for c, share in enumerate(shares) if share != 0.0]
        return Steps(thresholds, weights, 1, ends, form.offset + float(gains[0] * weights.sum()))
    if isinstance(measure, Composite):
        return _add_up(measure, values, totals)
    first = int(np.searchsorted(values, 1))
    if measure.binary and first == 0:  # whatever the order, all are good
        best = np.argsort(-np.repeat(values, totals), kind="stable")
        value = float(measure(best, np.repeat(values, totals)))
        return Steps([], np.zeros(1), 1, np.zeros(1, np.int64), value)
    if measure.binary:
        two = np.array([0, 1]), np.array([totals[:first].sum(), totals[first:].sum()])
    elif len(values) == 2:
        two, first = (values, totals), 1
    else:
        return None
    m, p = two[1].tolist()
    goods, bads = np.mgrid[0 : p + 1, 0 : m + 1]
    above = np.stack([bads, goods], axis=-1)
    if not measure.binary and np.any(measure.step(*two, 0, above[:, :-1])):
        return None
    table = np.asarray(measure.step(*two, 1, above[:-1]), dtype=float)
    return _of_table(first, table, measure.offset(*two))


def _of_table(threshold: int, table: FloatArray, offset: float) -> Steps:
    """Return the steps of a table of shape (goods, bads + 1)."""
    changed = np.diff(table, axis=1) != 0.0
    m = changed.shape[1]
    ends = np.where(changed.any(axis=1), m - np.argmax(changed[:, ::-1], axis=1), 0)
    return Steps([(threshold, 1.0)], table.ravel(), m + 1, ends, offset)


def _add_up(measure: Composite, values: IntArray, totals: IntArray) -> Steps | None:
    """Add up the tables of the parts, if all of them count as good from the same level on."""
    parts = [decompose(part, values, totals) for part in measure.parts]
    found = [part for part in parts if part is not None]
    thresholds = {level for part in found for level, _ in part.thresholds}
    if len(found) < len(parts) or len(thresholds) > 1:
        return None
    offset = sum(w * part.offset for w, part in zip(measure.weights, found, strict=True))
    if not thresholds:
        return found[0]._replace(offset=offset)
    level = thresholds.pop()
    goods, bads = np.mgrid[0 : int(totals[level:].sum()), 0 : int(totals[:level].sum()) + 1]
    table = np.zeros(goods.shape)
    for weight, part in zip(measure.weights, found, strict=True):
        for _, share in part.thresholds:
            table += weight * share * part.table[goods * part.stride + bads]
    return _of_table(level, table, offset)


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
        known: dict[Any, tuple[Steps, int, int]] = store.setdefault(("rows", measure), {})
        self._tables: Tables = store.setdefault(("row tables", measure), Tables())
        self._ends: Tables = store.setdefault(("row ends", measure), Tables())
        members, cuts, shares, n_thresholds, queries = [], [], [], [], []
        self._weights, cost = np.zeros(len(labels)), []
        for a, b in bounds(ptr):
            values, level, totals = np.unique(labels[a:b], return_inverse=True, return_counts=True)
            key = values.tobytes(), totals.tobytes()
            if key not in known:
                found = decompose(measure, values, totals)
                if found is None:
                    raise ValueError(
                        f"space: {measure.name!r} of the labels {values.tolist()} is no sum over "
                        "rows; use space='lattice' or 'interleavings'"
                    )
                places = self._tables.place(key, found.table), self._ends.place(key, found.ends)
                known[key] = found._replace(table=found.table[:0].copy()), *places
            steps, table_at, ends_at = known[key]
            members.append(a + np.argsort(labels[a:b], kind="stable"))
            first = np.concatenate([[0], np.cumsum(totals)])
            whole = np.zeros(len(values))
            work = 0.0
            for threshold, share in steps.thresholds:
                cuts.append(first[threshold])
                shares.append(share)
                whole[threshold:] += share
                bads, goods = float(first[threshold]), float(b - a - first[threshold])
                counts = min(bads, float(steps.ends[0]) + 1.0)
                work += goods * bads * (10.0 + counts)
            self._weights[a:b] = whole[level]
            n_thresholds.append(len(steps.thresholds))
            queries.append((table_at, steps.stride, ends_at, steps.offset))
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
        tables, ends = self._tables.flat, self._ends.flat
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
