"""Rounds of boosting over listed weak rankers, as sums over the queries of a table.

The table may be cut into parts that workers hold. A part remembers the scores of its documents
after the last round; it is told all rounds with every question, so that another one can take over.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist.models.batch import Batch
from permdist.models.solvers import linear_scores

if TYPE_CHECKING:
    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.measures import Measure
    from permdist.models.blocks import Table

Steps = tuple[tuple[int, float], ...]  # the number and the weight of what each round has added


@dataclass(frozen=True)
class Listed:
    """Finitely many weak rankers: features, upside down or not.

    Parameters
    ----------
    feature : array of int, shape (rankers,)
    factor : array of float, shape (rankers,)
        Scores are the feature times it.
    usable : array of bool, shape (rankers,)
        False for those that rank nothing.
    """

    feature: IntArray
    factor: FloatArray
    usable: BoolArray

    def __len__(self) -> int:
        return len(self.feature)

    def scores(
        self, key: int, X: FloatArray, rows: IntArray | None = None, alpha: float = 1.0
    ) -> FloatArray:
        """Return the scores that a ranker gives to documents, times a weight.

        Parameters
        ----------
        key : int
        X : array of float, shape (documents, features)
        rows : array of int, optional
            The documents; all by default.
        alpha : float
            The weight.
        """
        column = X[:, self.feature[key]] if rows is None else X[rows, self.feature[key]]
        return np.multiply(column, alpha * self.factor[key], dtype=np.float64)


class Sums(NamedTuple):
    """Sums over all queries under the model so far.

    Attributes
    ----------
    measure : float
        Of the measures E.
    bound : float
        Of exp(-E).
    by_ranker : array of float, shape (rankers,)
        Of exp(-E) times the measure of each weak ranker.
    """

    measure: float
    bound: float
    by_ranker: FloatArray


class Attempt(NamedTuple):
    """The model with one more weak ranker.

    Attributes
    ----------
    measure, bound : float
        As in `Sums`.
    delta : float
        The smallest difference between what a query has gained and the weight times the weak
        ranker's own measure of it.
    changed : bool
        Whether the measure of any query is another one.
    """

    measure: float
    bound: float
    delta: float
    changed: bool


class Held(NamedTuple):
    """What a part remembers: scores of documents and measures of queries after some rounds."""

    steps: Steps
    scores: FloatArray
    values: FloatArray


@dataclass(frozen=True)
class Rounds:
    """Questions about rounds of boosting, to the parts of a table.

    Parameters
    ----------
    rankers : Listed
    measure : Measure
    start : array of float, shape (columns,), or None
        The coefficients of a linear model that the rounds add to.
    """

    rankers: Listed
    measure: Measure
    start: FloatArray | None = None

    def sums(self, table: Any, steps: Steps) -> Sums:
        """Return the sums over all queries, after some rounds."""
        rows = np.add.reduce(np.array(table.ask(partial(self._sums, steps))))
        return Sums(float(rows[0]), float(rows[1]), rows[2:])

    def attempt(self, table: Any, steps: Steps, key: int, alpha: float) -> Attempt:
        """Add one more weak ranker."""
        rows = np.array(table.ask(partial(self._attempt, steps, key, alpha)))
        measure, bound = np.add.reduce(rows[:, :2])
        delta, changed = rows[:, 2].min(), rows[:, 3].any()
        return Attempt(float(measure), float(bound), float(delta), bool(changed))

    # ---- what a part does ----------------------------------------------------------------------

    def _sums(self, steps: Steps, table: Table) -> list[FloatArray]:
        """Return a row for each block: `Sums`, one after the other."""
        part = self._part(table)
        values = part.held(steps).values
        weights = np.exp(-values)
        by_ranker = [part.measures[:, a:b] @ weights[a:b] for a, b in pairwise(table.cuts)]
        totals = (np.add.reduceat(one, table.cuts[:-1]) for one in (values, weights))
        return list(np.column_stack([*totals, by_ranker]))

    def _attempt(self, steps: Steps, key: int, alpha: float, table: Table) -> list[FloatArray]:
        """Return a row for each block: `Attempt`."""
        part = self._part(table)
        before = part.held(steps).values
        after = part.held((*steps, (key, alpha))).values
        gained = after - before - alpha * part.measures[key]
        starts = table.cuts[:-1]
        totals = (np.add.reduceat(one, starts) for one in (after, np.exp(-after)))
        delta = np.minimum.reduceat(gained, starts)
        changed = np.logical_or.reduceat(after != before, starts)
        return list(np.column_stack([*totals, delta, changed]))

    def _part(self, table: Table) -> _Part:
        if "rounds" not in table.notes:  # a fit has a table of its own
            table.notes["rounds"] = _Part(self, table)
        part: _Part = table.notes["rounds"]
        return part


class _Part:
    """What is kept of the blocks of one table: the measures of all weak rankers, and two states."""

    def __init__(self, rounds: Rounds, table: Table) -> None:
        self._rounds, self.n_jobs = rounds, table.n_jobs
        self._batch = Batch.of(table.labels, table.ptr)
        self._X, self._rows = table.columns()
        rankers = rounds.rankers
        self.measures = np.zeros((len(rankers), len(self._batch)))
        for key in np.flatnonzero(rankers.usable):
            self.measures[key] = self._measured(self._scores(int(key)))
        self._held: list[Held] = []

    def held(self, steps: Steps) -> Held:
        """Return the state after some rounds, from the last one or the one before it."""
        for one in self._held:
            if one.steps == steps:
                return one
        known = next((one for one in self._held if one.steps == steps[:-1]), None)
        if known is None:
            known = self._begin()
            for k in range(len(steps) - 1):
                known = self._after(known, steps[: k + 1], measured=False)
        found = self._after(known, steps) if steps else known
        self._held = [one for one in self._held if one.steps == steps[:-1]] + [found]
        return found

    def _begin(self) -> Held:
        if self._rounds.start is None:
            return Held((), np.zeros(len(self._batch.labels)), np.zeros(len(self._batch)))
        X = self._X if self._rows is None else self._X[self._rows]
        scores = linear_scores(X, self._rounds.start)
        return Held((), scores, self._measured(scores))

    def _after(self, known: Held, steps: Steps, *, measured: bool = True) -> Held:
        key, alpha = steps[-1]
        scores = self._scores(key, alpha)
        scores += known.scores
        return Held(steps, scores, self._measured(scores) if measured else known.values)

    def _scores(self, key: int, alpha: float = 1.0) -> FloatArray:
        return self._rounds.rankers.scores(key, self._X, self._rows, alpha)

    def _measured(self, scores: FloatArray) -> FloatArray:
        return self._batch.measured(self._rounds.measure, scores, self.n_jobs)
