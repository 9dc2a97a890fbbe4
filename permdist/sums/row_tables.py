"""Measures as sums over rows, and tables of their steps that many queries share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist.measures import Composite
from permdist.sums.tables import Tables

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure

EQUAL = 1e-13  # tables that differ by less, relative to each entry, are equal but for rounding


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

    @property
    def grid(self) -> FloatArray:
        """The table with a row for each j, or one row where only ``j + i`` counts."""
        return self.table.reshape(-1, self.stride) if self.stride > 1 else self.table[None]


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


# ---- tables that many queries share --------------------------------------------------------------


class Layout(NamedTuple):
    """The steps of a query, with its tables placed among those of all queries.

    Attributes
    ----------
    thresholds : list of (int, float)
        As in `Steps`.
    place : tuple of int
        Where the table starts, its stride, and where the ends start.
    end : int
        The largest of the ends.
    offset : float
    """

    thresholds: list[tuple[int, float]]
    place: tuple[int, int, int]
    end: int
    offset: float


class StepTables:
    """The tables of a measure for queries with all kinds of labels, each kept once.

    Most tables are multiples of a part of that for more documents: AP is ``1 / p`` times a table
    that depends on neither the number of goods nor that of bads. Such tables are kept for numbers
    that are powers of two, and queries have their factors.

    Parameters
    ----------
    measure : Measure

    Examples
    --------
    >>> from permdist.measures import AP
    >>> tables = StepTables(AP())
    >>> small, large = (tables.layout(np.array([0, 1]), np.array([m, 3])) for m in (50, 60))
    >>> small.place[0] == large.place[0], len(tables.steps.flat)
    (True, 260)
    """

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.steps, self.ends = Tables(), Tables()
        self._layouts: dict[Any, Layout | None] = {}
        self._larger: dict[Any, Steps | None] = {}

    def layout(self, values: IntArray, totals: IntArray) -> Layout | None:
        """Return the steps of queries with these labels; None where the measure is no such sum.

        Parameters
        ----------
        values, totals : array of int, shape (levels,)
            As for `decompose`.
        """
        key = values.tobytes(), totals.tobytes()
        if key not in self._layouts:
            found = decompose(self.measure, values, totals)
            self._layouts[key] = None if found is None else self._placed(found, values, totals)
        return self._layouts[key]

    def _placed(self, own: Steps, values: IntArray, totals: IntArray) -> Layout:
        found = self._shared(own, values, totals)
        if found is None:
            key = own.table.tobytes()
            found = self.steps.place(key, own.table), own.stride, 1.0
        start, stride, factor = found
        thresholds = [(level, share * factor) for level, share in own.thresholds]
        place = start, stride, self.ends.place(own.ends.tobytes(), own.ends)
        return Layout(thresholds, place, int(own.ends.max(initial=0)), own.offset)

    def _shared(
        self, own: Steps, values: IntArray, totals: IntArray
    ) -> tuple[int, int, float] | None:
        """Return where a larger table starts, its stride, and the factor; None if there is none."""
        if not own.thresholds:
            return None
        if own.stride == 1:
            more = _power_of_two(int(totals.sum()))
            labels, counts = values, np.array([more - totals[1:].sum(), *totals[1:]])
            key: Any = more
        else:
            level, numbers = own.thresholds[0][0], (own.stride - 1, len(own.grid))
            labels, counts = values[level - 1 : level + 1], np.array([*map(_power_of_two, numbers)])
            key = labels.tobytes(), counts.tobytes()
        if key not in self._larger:
            self._larger[key] = decompose(self.measure, labels, counts)
        larger = self._larger[key]
        if larger is None or (larger.stride == 1) != (own.stride == 1):
            return None
        rows, columns = own.grid.shape
        part = larger.grid[:rows, :columns]
        if own.table[0] == 0.0 or part[0, 0] == 0.0:
            return None
        factor = float(own.table[0] / part[0, 0])
        if not np.allclose(own.grid, factor * part, rtol=EQUAL, atol=0.0):
            return None
        return self.steps.place(larger.table.tobytes(), larger.table), larger.stride, factor


def _power_of_two(number: int) -> int:
    """Return the smallest power of two that is not below a number."""
    return 1 << max(0, number - 1).bit_length()
