"""Scores and measures of queries in stores, computed by the workers of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.measures import Evaluation, Measure, evaluate
from permdist.models.blocks import Table
from permdist.models.crew import Crew, n_parts, on_workers
from permdist.models.missing import need_values
from permdist.models.stores import open_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import FloatArray
    from permdist.models.scored import Scored


@dataclass(frozen=True)
class RangeRecipe:
    """A range of the queries of a store, as a fitted learner sees them.

    Parameters
    ----------
    path : str
    first, last : int
        Queries of the store.
    learner : Scored
        With its `filling_`.
    """

    path: str
    first: int
    last: int
    learner: Scored

    def make(self) -> Table:
        """Open the store, and make the table of the queries."""
        queries = open_part(self.path, self.first, self.last)
        need_values(self.learner.missing, queries, self.path)
        return Table(queries, filling=self.learner.filling, views=self.learner.views, n_jobs=1)


def _measured(table: Table, coef: FloatArray, measure: Measure) -> FloatArray:
    """Return a measure of each query of a table, ranked by a linear learner."""
    qid = np.repeat(np.arange(table.n_queries), np.diff(table.ptr))
    return evaluate(table.scores(coef), table.labels, qid, measure).table


def ranges(paths: Sequence[str], client: Any) -> list[tuple[str, int, int]]:
    """Cut the queries of stores into ranges, some for each thread of the cluster.

    Parameters
    ----------
    paths : sequence of str
    client : distributed.Client or None
    """
    numbers = on_workers(client, _n_queries, [(path,) for path in paths])
    share = max(1, -(-sum(numbers) // n_parts(client)))
    return [
        (path, first, min(first + share, number))
        for path, number in zip(paths, numbers, strict=True)
        for first in range(0, number, share)
    ]


def _n_queries(path: str) -> int:
    return open_part(path).n_queries


def columns_of_store(path: str) -> tuple[tuple[str, ...] | None, int]:
    """Return the names of the features of a store, if they have any, and their number.

    Parameters
    ----------
    path : str
    """
    queries = open_part(path)
    return queries.feature_names, queries.n_features


class HeldOutStores:
    """Validation data in stores, held by workers.

    Parameters
    ----------
    paths : sequence of str
    learner : Scored
        With its `filling_`.
    client : distributed.Client or None
    """

    def __init__(self, paths: Sequence[str], learner: Scored, client: Any) -> None:
        self._crew = Crew([RangeRecipe(*one, learner) for one in ranges(paths, client)], client)

    def mean(self, coef: FloatArray, measure: Measure) -> float:
        """Return the mean of a measure over all queries, ranked by a linear learner.

        Parameters
        ----------
        coef : array of float, shape (columns,)
        measure : Measure
        """
        table = np.concatenate(self._crew.ask(_measured, coef, measure))
        return float(Evaluation(np.arange(len(table)), (measure,), table).mean(measure))


def predict_stores(learner: Scored, paths: Sequence[str], client: Any) -> FloatArray:
    """Return the scores of all documents of stores, in their order.

    Parameters
    ----------
    learner : Scored
        Fitted.
    paths : sequence of str
    client : distributed.Client or None
    """
    calls = [(learner, *one) for one in ranges(paths, client)]
    return np.concatenate(on_workers(client, _predict, calls))


def evaluate_stores(
    learner: Scored, paths: Sequence[str], measures: Sequence[Measure], client: Any
) -> Evaluation:
    """Return measures of all queries of stores; scores stay where they are.

    Parameters
    ----------
    learner : Scored
        Fitted.
    paths : sequence of str
    measures : sequence of Measure
    client : distributed.Client or None
    """
    calls = [(learner, tuple(measures), *one) for one in ranges(paths, client)]
    found = on_workers(client, _evaluate, calls)
    qids = np.concatenate([one.qids for one in found])
    return Evaluation(qids, tuple(measures), np.concatenate([one.table for one in found]))


def _predict(learner: Scored, path: str, first: int, last: int) -> FloatArray:
    return learner.predict(open_part(path, first, last))


def _evaluate(
    learner: Scored, measures: tuple[Measure, ...], path: str, first: int, last: int
) -> Evaluation:
    queries = open_part(path, first, last)
    return evaluate(learner.predict(queries), queries.y, queries.qid, measures)
