"""Which rankings of a query are perfect, and which of the perfect and imperfect ones are worst.

A measure does not always tell all rankings apart that the labels do: one with a cut-off looks at
the first k places only, reciprocal rank at the first. Its perfect rankings are described by
*cuts*: a ranking is perfect if, at every cut t, its first t documents have the same labels as the
first t of the ranking by label, in any order. Average precision of p relevant documents has one
cut, at p; NDCG@k one at each of 1 .. k where labels differ around it; precision at k one at k.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist._parallel import pack
from permdist.measures import Measure, parse
from permdist.measures.placements import place_by_orders
from permdist.models.batch import Batch
from permdist.rankings.sorting import copy, members_by

if TYPE_CHECKING:
    from permdist._typing import BoolArray, FloatArray, IntArray

SAME = 1e-12
AT_ONCE = 2_000_000  # entries of the rankings that are measured at a time


class Permutations:
    """The perfect and the imperfect permutations of every query, by their extremes.

    Parameters
    ----------
    batch : Batch
        With labels as the measure sees them: 0 and 1 for a binary one.
    measure : Measure
    pairs : {"good-bad", "all"}
        F is the mean of ``+-(s_k - s_l)`` over pairs of different labels, or over all pairs.

    Attributes
    ----------
    ideal : array of float, shape (queries,)
        The largest value of the measure.
    """

    def __init__(self, batch: Batch, measure: Measure, pairs: str = "good-bad") -> None:
        self.batch, self.measure, self.all_pairs = batch, measure, pairs == "all"
        found = []
        for a, b in batch.bounds:
            values, totals = np.unique(batch.labels[a:b], return_counts=True)
            found.append(cuts_of(measure, tuple(values.tolist()), tuple(totals.tolist())))
        self.cuts, self.cuts_ptr = pack(found)
        # Documents of equal scores stand by label, the lower first, and then by row.
        self._by_label = np.lexsort((batch.labels, batch.query_of)) - batch.ptr[batch.query_of]
        self._best = np.lexsort((-batch.labels, batch.query_of)) - batch.ptr[batch.query_of]
        self.ideal = self.values(self._best)

    @property
    def teaching(self) -> BoolArray:
        """Whether each query has an imperfect permutation."""
        return np.diff(self.cuts_ptr) > 0

    def values(self, orders: IntArray) -> FloatArray:
        """Measure the order of each query, whose entries count from the start of the query."""
        return self.measure.values(place_by_orders(orders, self.batch.labels, self.batch.ptr))

    def most_violated(self, scores: FloatArray) -> tuple[IntArray, IntArray]:
        """Return the perfect order of smallest F and the imperfect one of largest F.

        Both are exact. In the former, every document stands as low as the cuts allow: documents
        between two cuts ascend by score, and of equal labels on both sides of a cut the lowest
        scores stand above it. The latter is the ranking by score or, where that is perfect, the
        cheapest exchange of two documents of different labels across a cut.
        """
        lowest, highest = np.empty_like(self._by_label), np.empty_like(self._by_label)
        _most_violated(
            scores,
            self.batch.levels,
            self._by_label,
            self.batch.ptr,
            self.cuts,
            self.cuts_ptr,
            self.all_pairs,
            lowest,
            highest,
        )
        return lowest, highest

    def weights(self, orders: IntArray) -> FloatArray:
        """Return the factor of each document's score in F of these orders, (documents,)."""
        batch = self.batch
        pairs = batch.sizes * (batch.sizes - 1.0) if self.all_pairs else batch.n_pairs
        return _weights(orders, batch.levels, batch.ptr, 1.0 / pairs, self.all_pairs)

    def agreement(self) -> FloatArray:
        """Return these factors for the pairs of different labels, all of them in order."""
        batch = self.batch
        return _weights(self._best, batch.levels, batch.ptr, 1.0 / batch.n_pairs, False)


def most_violated(
    scores: FloatArray, labels: IntArray, measure: Measure | str = "ndcg", pairs: str = "good-bad"
) -> tuple[IntArray, IntArray]:
    """Return the perfect permutation of smallest F and the imperfect one of largest F of a query.

    Examples
    --------
    >>> scores, labels = np.array([0.9, 0.5, 0.1]), np.array([1, 1, 0])
    >>> [order.tolist() for order in most_violated(scores, labels)]
    [[1, 0, 2], [0, 2, 1]]
    >>> [order.tolist() for order in most_violated(scores, labels, "rr")]  # the first place only
    [[1, 2, 0], [2, 0, 1]]
    """
    chosen, label = parse(measure), np.asarray(labels, dtype=np.int64)
    label = (label > 0).astype(np.int64) if chosen.binary else label
    batch = Batch.of(label, np.array([0, len(label)]))
    return Permutations(batch, chosen, pairs).most_violated(np.asarray(scores, dtype=np.float64))


@lru_cache(maxsize=4096)
def cuts_of(measure: Measure, values: tuple[int, ...], totals: tuple[int, ...]) -> IntArray:
    """Return the cuts of a measure for so many documents of each label, ascending.

    There is a cut at t if a ranking whose first t documents have other labels than those of the
    ranking by label cannot have the largest value. Cuts that follow from others are left out.

    Raises
    ------
    ValueError
        If the perfect rankings cannot be described by cuts.

    Examples
    --------
    >>> from permdist.measures import parse
    >>> [cuts_of(parse(name), (0, 1), (4, 2)).tolist() for name in ("ap", "rr", "p@3")]
    [[2], [1], [3]]
    """
    down = np.repeat(np.array(values)[::-1], np.array(totals)[::-1])
    n = len(down)
    ideal = float(measure(np.arange(n), down))
    changes = np.flatnonzero(np.diff(down)) + 1
    found = _matter(measure, down, changes, ideal)
    if not found.all():  # not all labels are told apart everywhere: try all positions
        last = min(n - 1, measure.cut_off)
        changes = np.arange(1, last + 1)
        found = _matter(measure, down, changes, ideal)
    every, cuts, before = changes[found].tolist(), [], 0
    for t, following in zip(every, [*every[1:], n][: len(every)], strict=True):
        if t == every[-1] or down[before] != down[following - 1]:
            cuts.append(t)
            before = t
    # Between two cuts any order should do, also the one that is upside down.
    blocks = [part[::-1] for part in np.split(np.arange(n), cuts)]
    if float(measure(np.concatenate(blocks), down)) < ideal - SAME:
        raise ValueError(
            f"measure: the perfect rankings of {measure.name!r} are not those that agree with the "
            "labels up to some places; use AP, NDCG, precision or RR, with or without a cut-off"
        )
    return np.array(cuts, dtype=np.int64)


def _matter(measure: Measure, down: IntArray, places: IntArray, ideal: float) -> BoolArray:
    """Check at which places the smallest exchange of labels across them costs something.

    The lowest label above that has a lower one below is exchanged for the highest of these.
    """
    n, t = len(down), places
    below = np.searchsorted(-down, -down, side="right")  # the first document of a lower label
    above = np.searchsorted(-down, -down, side="left") - 1  # the last one of a higher label
    joins = np.maximum(below[t - 1], t)
    leaves = np.where(joins < n, t - 1, above[t - 1])
    joins = np.where(joins < n, joins, t)
    found = np.zeros(len(t), dtype=bool)
    for part in np.array_split(np.flatnonzero(leaves >= 0), 1 + len(t) * n // AT_ONCE):
        if not len(part):
            continue
        at, i, j = t[part, None], leaves[part, None], joins[part, None]
        k = np.arange(n)[None, :]
        orders = np.where((k >= i) & (k < at - 1), k + 1, np.where((k > at) & (k <= j), k - 1, k))
        orders = np.where(k == at - 1, j, np.where(k == at, i, orders))
        found[part] = measure(orders, down) < ideal - SAME
    return found


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def _most_violated(
    scores: FloatArray,
    levels: IntArray,
    by_label: IntArray,
    ptr: IntArray,
    cuts: IntArray,
    cuts_ptr: IntArray,
    all_pairs: bool,
    lowest: IntArray,
    highest: IntArray,
) -> None:
    """Fill in the two orders of every query; entries count from the start of the query."""
    for q in range(len(ptr) - 1):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        score, level = scores[a : a + n], levels[a : a + n]
        first, cut = by_label[a : a + n], cuts[cuts_ptr[q] : cuts_ptr[q + 1]]
        start = np.zeros(level.max() + 2, np.int64)  # where a level begins in the ranking by label
        for one in level:
            start[one] += 1
        for one in range(len(start) - 2, -1, -1):
            start[one] += start[one + 1]
        start = start[1:]
        # Perfect: every document takes the next place of its label, and joins the block there.
        filled = np.zeros(len(cut) + 1, np.int64)
        copy(cut, filled[1:])
        taken = start.copy()
        up = members_by(1.0, score, first)
        for i in up:
            block = np.searchsorted(cut, taken[level[i]], side="right")
            taken[level[i]] += 1
            lowest[a + filled[block]] = i
            filled[block] += 1
        down = members_by(-1.0, score, first)
        copy(down, highest[a : a + n])
        if _is_perfect(down, level, cut, start):
            _exchange(down, score, level, cut, all_pairs, highest[a : a + n])


@kernel
def _is_perfect(order: IntArray, level: IntArray, cut: IntArray, start: IntArray) -> bool:
    """Check whether the labels of the first documents are right at every cut."""
    found = np.zeros(len(start), np.int64)
    size = np.zeros(len(start), np.int64)
    for one in level:
        size[one] += 1
    k = 0
    for t in cut:
        while k < t:
            found[level[order[k]]] += 1
            k += 1
        for one in range(len(start)):
            if found[one] != max(0, min(size[one], t - start[one])):
                return False
    return True


@kernel
def _exchange(
    down: IntArray,
    score: FloatArray,
    level: IntArray,
    cut: IntArray,
    all_pairs: bool,
    out: IntArray,
) -> None:
    """Make the ranking by score imperfect where that lowers F least.

    Document i comes from above a cut and j from below it: i then stands below all above the cut,
    and j above all below it, and every pair that changes sides costs the difference of its scores.
    """
    n, classes = len(down), level.max() + 1
    best, best_t, best_i, best_j = np.inf, 0, -1, -1
    leave, join = np.zeros(classes), np.zeros(classes)
    who_leaves, who_joins = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    for t in cut:
        leave[:] = np.inf
        join[:] = np.inf
        open_classes = classes
        for k in range(t - 1, -1, -1):  # the lowest of each label above the cut
            one = level[down[k]]
            if leave[one] == np.inf:
                leave[one], who_leaves[one] = 0.0, k
                for d in range(k + 1, t):
                    if all_pairs or level[down[d]] != one:
                        leave[one] += score[down[k]] - score[down[d]]
                open_classes -= 1
                if open_classes == 0:
                    break
        open_classes = classes
        for k in range(t, n):  # the highest of each label below it
            one = level[down[k]]
            if join[one] == np.inf:
                join[one], who_joins[one] = 0.0, k
                for d in range(t, k):
                    if all_pairs or level[down[d]] != one:
                        join[one] += score[down[d]] - score[down[k]]
                open_classes -= 1
                if open_classes == 0:
                    break
        for g in range(classes):
            for h in range(classes):
                if g == h or leave[g] == np.inf or join[h] == np.inf:
                    continue
                i, j = who_leaves[g], who_joins[h]
                cost = leave[g] + join[h] + score[down[i]] - score[down[j]]
                if cost < best:
                    best, best_t, best_i, best_j = cost, t, i, j
    if best_i < 0:
        return
    k = 0
    for d in range(best_t):
        if d != best_i:
            out[k] = down[d]
            k += 1
    out[k], out[k + 1] = down[best_j], down[best_i]
    k += 2
    for d in range(best_t, n):
        if d != best_j:
            out[k] = down[d]
            k += 1


@kernel
def _weights(
    orders: IntArray, levels: IntArray, ptr: IntArray, units: FloatArray, all_pairs: bool
) -> FloatArray:
    """Count, for each document, those below it less those above it that make a pair with it."""
    out = np.empty(len(orders))
    for q in range(len(ptr) - 1):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        total = np.zeros(levels[a : a + n].max() + 1, np.int64)
        for one in levels[a : a + n]:
            total[one] += 1
        above = np.zeros(len(total), np.int64)
        for k in range(n):
            i = a + orders[a + k]
            one = levels[i]
            if all_pairs:
                out[i] = units[q] * (n - 1.0 - 2.0 * k)
            else:
                out[i] = units[q] * (n - total[one] - 2.0 * (k - above[one]))
            above[one] += 1
    return out
