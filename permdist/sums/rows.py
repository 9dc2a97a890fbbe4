"""The good-bad pair model over sign vectors, for measures of positions: sums over rows.

The signs of different good documents are independent: how many bads stand above a good g is
Poisson-binomial, with chances ``sigmoid(-x)`` of ``x = 2 scale (s_g - s_b)``. Once the order of the
goods among themselves is fixed, the good at place j of it has rank ``j + i`` with i bads above,
so that a measure of positions is a sum over rows, each a function of one number i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._exp import exp_down
from permdist._kernels import kernel
from permdist._ragged import bounds, pack, pointers, rows_of
from permdist.measures import Composite

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure

    Work = Callable[[int, int], None]
    Spread = Callable[[Work, FloatArray], None]

CERTAIN = 40.0  # a chance of exp(-40) is lost beside 1, in double precision
TINY = 1e-17  # chances of counts that are left out
WIDE = 1e270  # steps so much smaller than others are as good as 0
STEEP = 300.0  # exponents of the tilt beyond which sums are kept as logarithms
TIED = 1e-10  # scores that differ by less, relative to the largest, are equal but for rounding


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
    """

    def __init__(
        self, labels: IntArray, ptr: IntArray, scale: FloatArray, measure: Measure
    ) -> None:
        self._scale = scale
        known: dict[Any, tuple[Steps, int, int]] = {}
        members, cuts, shares, n_thresholds, queries = [], [], [], [], []
        tables: list[FloatArray] = []
        ends: list[IntArray] = []
        size, n_ends = 0, 0
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
                known[key] = found, size, n_ends
                tables.append(found.table)
                ends.append(found.ends)
                size, n_ends = size + len(found.table), n_ends + len(found.ends)
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
        self._tables = pack(tables)[0] if tables else np.zeros(0)
        self._ends = pack(ends)[0]
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
        rows = self._weights, self._tables, self._place, self._ends, self._scale
        out = float(kappa), task, values, gradient
        arguments: tuple[Any, ...] = scores, *layout, *order, *rows, *out

        def work(first: int, last: int) -> None:
            _sum_queries(first, last, *arguments)

        spread(work, self._cost)
        return values, gradient

    def _sorted(self, scores: FloatArray) -> tuple[IntArray, IntArray]:
        goods = np.empty(self._goods_ptr[-1], np.int64)
        par = np.empty(len(goods), np.int64)
        layout = self._members, self._ptr, self._first, self._cuts, self._goods_ptr
        _sort_goods(scores, *layout, goods, par)
        return goods, par


# ---- kernels ------------------------------------------------------------------------------------

LOG_MEAN, MEAN, BEST = range(3)


@kernel
def _sort_goods(
    scores: FloatArray,
    members: IntArray,
    ptr: IntArray,
    first: IntArray,
    cuts: IntArray,
    goods_ptr: IntArray,
    goods: IntArray,
    par: IntArray,
) -> None:
    """Fill in the goods of every threshold by descending score, and where each tie starts."""
    for q in range(len(ptr) - 1):
        largest = 0.0
        for i in range(ptr[q], ptr[q + 1]):
            largest = max(largest, abs(scores[i]))
        for t in range(first[q], first[q + 1]):
            own = members[ptr[q] + cuts[t] : ptr[q + 1]]
            by_score = np.argsort(-scores[own], kind="mergesort")
            start = goods_ptr[t]
            for k in range(len(own)):
                goods[start + k] = own[by_score[k]]
                par[start + k] = start + k
                if k > 0:
                    gap = scores[goods[start + k - 1]] - scores[goods[start + k]]
                    if gap <= TIED * largest:
                        par[start + k] = par[start + k - 1]
            k = 0
            while k < len(own):  # members of a tie by number, so that equal orders are equal
                end = k + 1
                while end < len(own) and par[start + end] == par[start + k]:
                    end += 1
                if end - k > 1:
                    goods[start + k : start + end] = np.sort(goods[start + k : start + end])
                k = end


@kernel
def _sum_queries(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    members: IntArray,
    ptr: IntArray,
    first: IntArray,
    cuts: IntArray,
    shares: FloatArray,
    goods_ptr: IntArray,
    goods: IntArray,
    par: IntArray,
    weights: FloatArray,
    tables: FloatArray,
    place: IntArray,
    all_ends: IntArray,
    scales: FloatArray,
    kappa: float,
    task: int,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Add up the rows of some queries: values (queries,) and gradient (documents,).

    Query q has the thresholds ``first[q]`` to ``first[q + 1]``: the bads of threshold t are
    ``members[ptr[q]:ptr[q] + cuts[t]]``, its goods ``goods[goods_ptr[t]:goods_ptr[t + 1]]`` in
    their order; those with the same number in par are on a par. weights (documents,) is the sum of
    the shares of a document's thresholds.
    """
    cells = np.empty(1024)
    for q in range(first_query, last_query):
        table_at, stride, ends_at = place[q, 0], place[q, 1], place[q, 2]
        factor = 2.0 * scales[q]
        for t in range(first[q], first[q + 1]):
            m = cuts[t]
            bads = members[ptr[q] : ptr[q] + m]
            bads = bads[np.argsort(scores[bads], kind="mergesort")]
            x_bads = factor * scores[bads]
            by_bads = np.zeros(m)
            chances, slopes = np.empty(m), np.empty(m)
            steps, heights = np.empty(m + 1), np.empty(m + 2)
            starts, stops = np.empty(m + 1, np.int64), np.empty(m + 1, np.int64)
            lows = np.empty(m + 1, np.int64)
            start, stop = goods_ptr[t], goods_ptr[t + 1]
            k = start
            while k < stop:
                last = k + 1
                while last < stop and par[last] == par[k]:
                    last += 1
                end = 0  # the steps do not change from this count on
                for j in range(k - start, last - start):
                    end = max(end, min(m, all_ends[ends_at + j]))
                for i in range(end + 1):
                    total = 0.0
                    for j in range(k - start, last - start):
                        total += tables[table_at + j * stride + i]
                    steps[i] = total / (last - k)
                for g in goods[k:last]:
                    if task == BEST or end == 0:
                        values[q] += 0.0 if task == LOG_MEAN else shares[t] * steps[0]
                        continue
                    value, low, high, cells = _sum_row(
                        factor * scores[g],
                        x_bads,
                        steps[: end + 1],
                        kappa * weights[g],
                        task,
                        (chances, slopes, heights),
                        (starts, stops, lows),
                        cells,
                    )
                    share = shares[t] / weights[g] if task == LOG_MEAN else shares[t]
                    values[q] += share * value
                    total = 0.0
                    for b in range(low, high):
                        total += slopes[b]
                        by_bads[b] += share * slopes[b]
                    gradient[g] += share * factor * total
                k = last
            for b in range(m):
                gradient[bads[b]] -= factor * by_bads[b]


@kernel(fuse=True)
def _sum_row(
    x: float,
    x_bads: FloatArray,
    steps: FloatArray,
    tilt: float,
    task: int,
    work: tuple[FloatArray, FloatArray, FloatArray],
    places: tuple[IntArray, IntArray, IntArray],
    cells: FloatArray,
) -> tuple[float, int, int, FloatArray]:
    """Return the mean of one row's step, or the log of that of exp(tilt (steps[0] - step)).

    x_bads (m,) ascends; steps (counts,) do not change beyond the last one. Also returns which
    bads can be above or below, whose derivatives by ``x - x_bad`` are filled into slopes, and the
    cells, which may have become more.
    """
    chances, slopes, heights = work
    m, end = len(x_bads), len(steps) - 1
    lowest, highest = 0.0, 0.0
    if task == LOG_MEAN:
        for i in range(end + 1):
            lowest = min(lowest, tilt * (steps[0] - steps[i]))
            highest = max(highest, tilt * (steps[0] - steps[i]))
        spread = highest - lowest
    else:  # small means are wanted to all their digits: their logarithm is taken
        least, most = np.abs(steps).min(), np.abs(steps).max()
        spread = np.log(most / least) if most < least * WIDE else np.log(WIDE)
    # Bads outside the window are above or below for certain, whatever the steps do.
    low = int(np.searchsorted(x_bads, x - (CERTAIN + spread)))
    high = int(np.searchsorted(x_bads, x + (CERTAIN + spread)))
    above = m - high
    top = min(high - low, end - above)
    if top <= 0:
        step = steps[min(above, end)]
        value = tilt * (steps[0] - step) if task == LOG_MEAN else step
        return value, low, low, cells
    _fill_chances(x, x_bads[low:high], chances[low:high])
    if task == LOG_MEAN:
        for i in range(top + 1):
            heights[i] = tilt * (steps[0] - steps[above + i]) - highest
        if spread > STEEP:
            if len(cells) < (high - low) * (top + 1):
                cells = np.empty((high - low) * (top + 1))
            value = _tilt_steeply(x, x_bads, low, high, top, heights, chances, slopes, cells)
            return value + highest, low, high, cells
        _exponentiate(heights[: top + 1])
    else:
        for i in range(top + 1):
            heights[i] = steps[above + i]
    tiny = TINY * np.exp(-spread)
    heights[top + 1] = heights[top]  # further bads above change nothing
    cells = _count(low, high, top, tiny, chances, places, cells)
    mean = _differentiate(low, high, chances, heights, places, cells, slopes)
    if task == LOG_MEAN:
        for b in range(low, high):
            slopes[b] /= mean
        mean = np.log(mean) + highest
    return mean, low, high, cells


@kernel(fuse=True)
def _exponentiate(values: FloatArray) -> None:
    """Replace values, which are not positive, by their exponentials."""
    for i in range(len(values)):
        values[i] = exp_down(values[i])


@kernel(fuse=True)
def _fill_chances(x: float, x_bads: FloatArray, chances: FloatArray) -> None:
    """Fill in the chances ``sigmoid(x_bad - x)`` of bads to be above."""
    for b in range(len(x_bads)):
        small = exp_down(-abs(x - x_bads[b]))
        over = 1.0 / (1.0 + small)
        chances[b] = over if x < x_bads[b] else small * over


@kernel(fuse=True)
def _count(
    low: int,
    high: int,
    top: int,
    tiny: float,
    chances: FloatArray,
    places: tuple[IntArray, IntArray, IntArray],
    cells: FloatArray,
) -> FloatArray:
    """Fill cells with the distribution of the number above, before each bad from low to high.

    Before bad b the counts from ``lows[b]`` on have the chances ``cells[starts[b]:stops[b]]``;
    those below tiny at both ends are left out, and counts from top on are one.
    """
    starts, stops, lows = places
    starts[low], stops[low], lows[low] = 0, 1, 0
    cells[0] = 1.0
    for b in range(low, high - 1):
        p = chances[b]
        q = 1.0 - p
        old, new = starts[b], stops[b]
        size = new - old
        if len(cells) < new + size + 1:
            more = np.empty(2 * (new + size + 1))
            more[:new] = cells[:new]
            cells = more
        before, after = cells[old:new], cells[new : new + size]
        after[0] = q * before[0]
        for i in range(size - 1):
            after[i + 1] = q * before[i + 1] + p * before[i]
        if lows[b] + size <= top:
            cells[new + size] = p * cells[new - 1]
            size += 1
        else:
            cells[new + size - 1] += p * cells[new - 1]
        shift = 0
        while size > 1 and cells[new + size - 1] < tiny:
            size -= 1
        while size > 1 and cells[new + shift] < tiny:
            shift += 1
            size -= 1
        starts[b + 1], stops[b + 1] = new + shift, new + shift + size
        lows[b + 1] = lows[b] + shift
    return cells


@kernel(fuse=True)
def _differentiate(
    low: int,
    high: int,
    chances: FloatArray,
    heights: FloatArray,
    places: tuple[IntArray, IntArray, IntArray],
    cells: FloatArray,
    slopes: FloatArray,
) -> float:
    """Go back from the last bad: return the mean of heights, fill in its derivatives."""
    starts, stops, lows = places
    for b in range(high - 1, low - 1, -1):
        p = chances[b]
        start, first = starts[b], lows[b]
        size = stops[b] - start
        chance, height = cells[start : start + size], heights[first : first + size + 1]
        # Four sums: one alone would wait for every addition.
        one, two, three, four = 0.0, 0.0, 0.0, 0.0
        for k in range(size // 4):
            i = 4 * k
            h0, h1, h2, h3 = height[i], height[i + 1], height[i + 2], height[i + 3]
            d0, d1, d2, d3 = h1 - h0, h2 - h1, h3 - h2, height[i + 4] - h3
            one += chance[i] * d0
            two += chance[i + 1] * d1
            three += chance[i + 2] * d2
            four += chance[i + 3] * d3
            height[i] = h0 + p * d0
            height[i + 1] = h1 + p * d1
            height[i + 2] = h2 + p * d2
            height[i + 3] = h3 + p * d3
        for i in range(4 * (size // 4), size):
            difference = height[i + 1] - height[i]
            one += chance[i] * difference
            height[i] += p * difference
        slopes[b] = -p * (1.0 - p) * ((one + two) + (three + four))
    return heights[0]


@kernel
def _tilt_steeply(
    x: float,
    x_bads: FloatArray,
    low: int,
    high: int,
    top: int,
    heights: FloatArray,
    chances: FloatArray,
    slopes: FloatArray,
    cells: FloatArray,
) -> float:
    """Return the log of the mean of exp(heights), in logarithms all the way.

    cells hold the tilted chance of each bad to be above, given how many there are before it.
    """
    for b in range(high - 1, low - 1, -1):
        logit = x_bads[b] - x
        log_q = -(max(logit, 0.0) + np.log1p(np.exp(-abs(logit))))
        at = (b - low) * (top + 1)
        for i in range(min(b - low, top) + 1):
            more = logit + (heights[i + 1] - heights[i] if i < top else 0.0)
            small = np.exp(-abs(more))
            cells[at + i] = (1.0 if more > 0.0 else small) / (1.0 + small)
            heights[i] += log_q + max(more, 0.0) + np.log1p(small)
    value = heights[0]
    heights[: top + 1] = 0.0
    heights[0] = 1.0  # now the tilted distribution of the number above
    for b in range(low, high):
        at, above = (b - low) * (top + 1), 0.0
        for i in range(min(b - low, top), -1, -1):
            moved = heights[i] * cells[at + i]
            above += moved
            if i < top:
                heights[i] -= moved
                heights[i + 1] += moved
        slopes[b] = chances[b] - above
    return value
