"""Graded queries as sums of problems of two classes, one per threshold between their labels.

The lattice of all grades grows with the product of their sizes; a problem of two classes has goods
x bads cells, and a query with L labels has L - 1 of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._parallel import bounds, pack, pointers
from permdist.measures import NDCG
from permdist.sums.batch import BatchInterleavings, refuse_cells
from permdist.sums.shape import cells_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure
    from permdist.sums.batch import Spread

GRADES = ("auto", "levels", "thresholds")
AFFORDABLE = 2_000_000  # cells of all levels at every step; some hundredths of a second


def interleave(
    labels: IntArray,
    ptr: IntArray,
    scale: FloatArray,
    measure: Measure,
    *,
    grades: str = "auto",
    shared: dict[Any, Any] | None = None,
) -> BatchInterleavings | BatchThresholds:
    """Return the interleavings of the classes of every query of a batch.

    Parameters
    ----------
    labels, ptr, scale, measure
        As in `BatchInterleavings`.
    grades : {"auto", "levels", "thresholds"}
        Queries of more than two labels: all interleavings of all of them, `BatchInterleavings`,
        which is refused beyond 50 million cells; the sum over thresholds, `BatchThresholds`; or
        the latter for all queries where the former has more than 2 million cells in all. Queries
        of two labels are the same in both, but for the weight of a query of NDCG whose lowest
        label has a gain.
    shared : dict, optional
        As in `BatchInterleavings`.
    """
    grades = choose_grades(labels, ptr, grades=grades)
    kind = BatchInterleavings if grades == "levels" else BatchThresholds
    return kind(labels, ptr, scale, measure, shared=shared)


def choose_grades(labels: IntArray, ptr: IntArray, *, grades: str = "auto") -> str:
    """Return ``"levels"`` or ``"thresholds"``: `grades` itself, or what it means for all queries.

    More than 50 million cells of all levels are refused.

    Parameters
    ----------
    labels, ptr
        As in `BatchInterleavings`.
    grades : {"auto", "levels", "thresholds"}
    """
    if grades == "thresholds":
        return grades
    totals = [np.unique(labels[a:b], return_counts=True)[1] for a, b in bounds(ptr)]
    cells = np.array([cells_of(total) if len(total) > 2 else 0.0 for total in totals])
    if grades == "auto":
        return "levels" if cells.sum() <= AFFORDABLE else "thresholds"
    refuse_cells(cells, totals)
    return grades


class BatchThresholds:
    """The interleavings of the classes above and below every threshold of every query of a batch.

    Threshold t of a query splits its documents into those with at least the t-th of its labels and
    the others. The sums of `BatchInterleavings` over both classes are added up over t with the
    weights of `threshold_weights`. F_t of a threshold is as large as that of the whole query: its
    factor is that of the query, times the query's pairs over those of the threshold.

    Parameters
    ----------
    labels, ptr, scale, measure, shared
        As in `BatchInterleavings`.

    Attributes
    ----------
    offsets : array of float, shape (queries,)
        The constant to which each measure's steps add.
    """

    def __init__(
        self,
        labels: IntArray,
        ptr: IntArray,
        scale: FloatArray,
        measure: Measure,
        *,
        shared: dict[Any, Any] | None = None,
    ) -> None:
        rows, above, weights, factors, counts = [], [], [], [], []
        for (a, b), factor in zip(bounds(ptr), scale.tolist(), strict=True):
            values, totals = np.unique(labels[a:b], return_counts=True)
            higher = np.cumsum(totals[::-1])[::-1][1:]  # at least at each threshold
            pairs = higher * (b - a - higher)
            whole = ((b - a) ** 2 - (totals**2).sum()) / 2.0
            factors.append(factor * whole / pairs)
            weights.append(threshold_weights(measure, values, totals))
            counts.append(len(higher))
            for value in values[1:]:
                rows.append(np.arange(a, b))
                above.append((labels[a:b] >= value).astype(np.int64))
        self._rows, inner = pack(rows)
        self._weights = np.concatenate(weights)
        self._by_row = np.repeat(self._weights, np.diff(inner))
        self._first = pointers(counts)[:-1]
        self._parts = BatchInterleavings(
            np.concatenate(above),
            inner,
            np.concatenate(factors),
            measure,
            shared=shared,
        )
        self.offsets = 1.0 - self._add(1.0 - self._parts.offsets)

    def log_sums(
        self, scores: FloatArray, weight: float, spread: Spread
    ) -> tuple[FloatArray, FloatArray]:
        """Add up ``log sum_y exp(F_t(y) + weight * (measure_t(y) - offset_t))`` over t."""
        return self._sum(lambda inner: self._parts.log_sums(inner, weight, spread), scores)

    def means(self, scores: FloatArray, spread: Spread) -> tuple[FloatArray, FloatArray]:
        """Add up the means of the measures, less their offsets, each under its own ``exp F_t``."""
        return self._sum(lambda inner: self._parts.means(inner, spread), scores)

    def best(
        self, scores: FloatArray, weight: float, spread: Spread
    ) -> tuple[FloatArray, FloatArray]:
        """Add up the largest ``F_t(y) + weight * (measure_t(y) - offset_t)``."""
        return self._sum(lambda inner: self._parts.best(inner, weight, spread), scores)

    def _sum(
        self, part: Callable[[FloatArray], tuple[FloatArray, FloatArray]], scores: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        values, gradient = part(scores[self._rows])
        by_score = np.bincount(self._rows, self._by_row * gradient, len(scores))
        return self._add(values), by_score.astype(np.float64, copy=False)

    def _add(self, values: FloatArray) -> FloatArray:
        """Add up weighted values of thresholds, query by query."""
        return np.add.reduceat(self._weights * values, self._first)


def threshold_weights(measure: Measure, labels: IntArray, totals: IntArray) -> FloatArray:
    """Return the weight of each threshold between the labels of a query, shape (levels - 1,).

    NDCG is linear in the gains, and the best order is the best at every threshold at once. So
    ``1 - NDCG = sum_t weight_t (1 - NDCG_t)``, exactly, where NDCG_t takes documents from the t-th
    label on as relevant, and ``weight_t = (gain_t - gain_(t-1)) ideal_t / ideal``. Any other
    measure is replaced by its mean over all thresholds.

    Parameters
    ----------
    measure : Measure
    labels : array of int, shape (levels,)
        The different labels, ascending.
    totals : array of int, shape (levels,)

    Examples
    --------
    >>> from permdist.measures import AP
    >>> threshold_weights(NDCG(1), np.array([0, 1, 2]), np.array([5, 2, 1])).round(3)
    array([0.333, 0.667])
    >>> threshold_weights(AP(), np.array([0, 1, 2]), np.array([5, 2, 1]))
    array([0.5, 0.5])
    """
    measure = getattr(measure, "measure", measure)  # of a measure with something added
    if not isinstance(measure, NDCG):
        return np.full(len(labels) - 1, 1.0 / (len(labels) - 1))
    gains = measure.gains(labels)
    reached = np.cumsum(measure.discounts(int(totals.sum())))
    higher = np.cumsum(totals[::-1])[::-1]
    parts = np.diff(gains, prepend=0.0) * reached[higher - 1]
    return parts[1:] / parts.sum()
