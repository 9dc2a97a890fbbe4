"""Many measures over many queries: per-query values, means and a table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._check import as_rng, choice, finite, grades, integers
from permdist._parallel import bounds
from permdist._result import Result
from permdist._text import plural, text_table
from permdist._typing import FloatArray, IntArray
from permdist.data.tables import Groups, check_same_rows, group_queries
from permdist.measures.base import Measure
from permdist.measures.placements import Placements, place_by_orders, place_by_scores
from permdist.measures.registry import parse
from permdist.rankings import check_orders

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from permdist._typing import RandomState

DEFAULT = ("map", "ndcg@10")
TIES = ("index", "average")
RANDOM_ORDERS = 200  # drawn where a measure has no exact average over ties


@dataclass(frozen=True, eq=False)
class Evaluation(Result, Mapping[str, FloatArray]):
    """Values of several measures on several queries.

    A mapping from a measure's name to its values, one per query. Printed, it is a table of
    means with their standard errors over queries.

    Attributes
    ----------
    qids : array, shape (queries,)
        The query ids, in the order in which they first appear.
    measures : tuple of Measure
    table : array of float, shape (queries, measures)
        NaN where a measure with ``empty="skip"`` leaves a query out.
    """

    qids: NDArray[Any]
    measures: tuple[Measure, ...]
    table: FloatArray
    _most_rows: ClassVar[int] = 100

    def __getitem__(self, name: str) -> FloatArray:
        return self.table[:, self._column(name)]

    def __iter__(self) -> Iterator[str]:
        return (measure.name for measure in self.measures)

    def __len__(self) -> int:
        return len(self.measures)

    def mean(self, name: str | Measure | None = None) -> Any:
        """Return the mean over queries: of one measure, or a dictionary of all.

        A geometric mean for measures that are defined by it, such as `GMAP`, and a sum for those
        that count.
        """
        if name is None:
            return {measure: self.mean(measure) for measure in self}
        used = self._used(name)
        measure = self.measures[self._column(name)]
        return measure.average(used) if used.size else float("nan")

    def standard_error(self, name: str | Measure | None = None) -> Any:
        """Return the standard error of the mean over queries; NaN with fewer than two."""
        if name is None:
            return {measure: self.standard_error(measure) for measure in self}
        used = self._used(name)
        measure = self.measures[self._column(name)]
        return measure.average_error(used) if used.size > 1 else float("nan")

    def n_queries(self, name: str | Measure) -> int:
        """Count the queries that the mean of a measure is taken over."""
        return int(self._used(name).size)

    def to_frame(self) -> pd.DataFrame:
        """Return the per-query values as a pandas DataFrame, indexed by query id."""
        import pandas as pd

        return pd.DataFrame(self.table, index=pd.Index(self.qids, name="qid"), columns=list(self))

    @property
    def caption(self) -> str:
        """What was evaluated, in one line."""
        return f"{plural(len(self.qids), 'query', 'queries')}"

    def _cells(self, most: int | None = None) -> tuple[Sequence[str], list[list[str]]]:
        rows = [
            [name, f"{mean:.4f}", f"{self.standard_error(name):.4f}", f"{self.n_queries(name):,}"]
            for name, mean in self.mean().items()
        ]
        return ("measure", "mean", "std.err.", "queries"), rows[:most]

    def _remarks(self) -> Sequence[str]:
        return ["The values of every query: to_frame()."]

    def __str__(self) -> str:
        return text_table(*self._cells())

    def __repr__(self) -> str:
        means = ", ".join(f"{name}={mean:.4f}" for name, mean in self.mean().items())
        return f"Evaluation({len(self.qids)} queries: {means})"

    def _column(self, name: str | Measure) -> int:
        names = list(self)
        if str(name) in names:
            return names.index(str(name))
        with contextlib.suppress(TypeError, ValueError):  # no such measure
            number = find_measure(self.measures, parse(name))
            if number is not None:
                return number
        raise KeyError(f"{name!r} was not evaluated; there are {', '.join(names)}")

    def _used(self, name: str | Measure) -> FloatArray:
        number = self._column(name)
        column = self.table[:, number]
        return column[~np.isnan(column)] if self.measures[number].empty == "skip" else column


def evaluate(
    scores: ArrayLike,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
    *,
    ties: str | None = None,
    regroup: bool = False,
) -> Evaluation:
    """Evaluate a scoring of documents, query by query.

    Parameters
    ----------
    scores : array of float, shape (documents,)
        Higher is better.
    y : array of int, shape (documents,)
        Relevance labels.
    qid : array, shape (documents,), optional
        The query of each document; the documents of a query must be contiguous. Without it all
        documents are one query, if there are no more than 1,000 of them.
    measures : name or Measure, or several of them
    ties : {"index", "average"}, optional
        The rule for equal scores in all measures: the document that comes first in the input, or
        the mean over all ways to break the ties. By default the rule of each measure.
    regroup : bool
        Gather the documents of queries that are not contiguous, instead of refusing them.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> result = evaluate([3.0, 1.0, 2.0, 0.5, 0.4], [1, 1, 0, 0, 1], [7, 7, 7, 9, 9],
    ...                   ["map", "ndcg@2", "p@1"])
    >>> print(result)
    measure    mean  std.err.  queries
    ap       0.6667    0.1667        2
    ndcg@2   0.6220    0.0089        2
    p@1      0.5000    0.5000        2
    >>> result["ap"]
    array([0.83333333, 0.5       ])
    >>> evaluate([1.0, 1.0], [0, 1], ties="average").mean("map")
    0.75
    """
    check_same_rows(scores=scores, y=y, qid=qid)
    score, label = finite("scores", scores, ndim=1), grades("y", y)
    groups = _aligned(label, qid, regroup, scores=len(score))
    if groups.order is not None:
        score, label = score[groups.order], label[groups.order]
    placed: dict[str, Placements] = {}

    def place(rule: str) -> Placements:
        if rule not in placed:
            placed[rule] = place_by_scores(score, label, groups.ptr, rule)
        return placed[rule]

    chosen = several(measures, ties)
    return Evaluation(
        groups.qids, chosen, _table([m.values(place(m.ties)) for m in chosen], groups)
    )


def evaluate_orders(
    orders: ArrayLike,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
) -> Evaluation:
    """Evaluate given orders, query by query.

    Parameters
    ----------
    orders : array of int, shape (documents,)
        The orders of all queries, one after the other. Each counts its documents from 0.
    y, qid, measures
        As in `evaluate`; the documents of a query must be contiguous.

    Examples
    --------
    >>> evaluate_orders([1, 0, 2, 0, 1], [1, 1, 0, 0, 1], [7, 7, 7, 9, 9], "map")["ap"]
    array([1. , 0.5])
    """
    order = integers("orders", orders, what="item numbers")
    if order.ndim != 1:
        raise ValueError(f"orders: expected 1 dimension(s), got shape {order.shape}")
    label = grades("y", y)
    groups = _aligned(label, qid, regroup=False, orders=len(order))
    for q, (low, high) in enumerate(bounds(groups.ptr)):
        check_orders(order[low:high], name=f"orders of query {groups.qids[q]}")
    placed = place_by_orders(order, label, groups.ptr)
    chosen = several(measures)
    return Evaluation(groups.qids, chosen, _table([m.values(placed) for m in chosen], groups))


def evaluate_random(
    y: ArrayLike,
    qid: ArrayLike | None = None,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
    *,
    rng: RandomState = 0,
) -> Evaluation:
    """Return the expectation of measures under a uniformly random order, query by query.

    The expectation is exact for every measure with an average over ties. Measures without one,
    such as `ElevenPoint`, are averaged over 200 random orders of each query.

    Parameters
    ----------
    y, qid, measures
        As in `evaluate`; the documents of a query must be contiguous.
    rng : int, numpy.random.Generator or None
        For the random orders.

    Examples
    --------
    >>> evaluate_random([1, 0, 0, 1], [7, 7, 9, 9], ["map", "p@1"]).table
    array([[0.75, 0.5 ],
           [0.75, 0.5 ]])
    """
    label = grades("y", y)
    groups = _aligned(label, qid, regroup=False)
    tied = place_by_scores(np.zeros(len(label)), label, groups.ptr, "average")
    chosen, columns = several(measures), []
    for measure in chosen:
        if _has_average(measure):
            columns.append(replace(measure, ties="average").values(tied))
            continue
        generator, total = as_rng(rng), np.zeros(len(groups.qids))
        for _ in range(RANDOM_ORDERS):
            scores = generator.random(len(label))
            total += measure.values(place_by_scores(scores, label, groups.ptr, "index"))
        columns.append(total / RANDOM_ORDERS)
    return Evaluation(groups.qids, chosen, _table(columns, groups))


def _has_average(measure: Measure) -> bool:
    try:
        replace(measure, ties="average")
    except ValueError:
        return False
    return True


def _aligned(label: IntArray, qid: ArrayLike | None, regroup: bool, **lengths: int) -> Groups:
    """Check that all inputs have one entry per document, and split them into queries."""
    if label.ndim != 1:
        raise ValueError(f"y: expected 1 dimension(s), got shape {label.shape}")
    for name, length in lengths.items():
        if length != len(label):
            raise ValueError(f"{name}: expected {len(label)} entries as in y, got {length}")
    return group_queries(qid, len(label), regroup=regroup)


def find_measure(measures: Sequence[Measure], wanted: Measure) -> int | None:
    """Return the number of a measure; one by the default rule for ties may find another rule's."""
    if wanted in measures:
        return list(measures).index(wanted)
    plain = [replace(measure, ties=TIES[0]) for measure in measures]
    return plain.index(wanted) if wanted in plain else None


def several(
    measures: str | Measure | Iterable[str | Measure], ties: str | None = None
) -> tuple[Measure, ...]:
    """Parse one or several measures, without duplicates; `ties` replaces their rule for ties."""
    given = [measures] if isinstance(measures, str | Measure) else list(measures)
    if not given:
        raise ValueError("measures: expected at least one measure, got none")
    parsed = [parse(measure) for measure in given]
    if ties is not None:
        choice("ties", ties, TIES)
        parsed = [replace(measure, ties=ties) for measure in parsed]
    return tuple(dict.fromkeys(parsed))


def _table(columns: list[FloatArray], groups: Groups) -> FloatArray:
    return np.stack(columns, axis=1).reshape(len(groups.qids), len(columns))
