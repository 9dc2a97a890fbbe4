"""Rounds of a pair likelihood whose pairs are weighed by what they do to the measure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist.models.batch import in_threads
from permdist.models.conditional import Conditional
from permdist.models.objectives.base import Objective
from permdist.models.options import option
from permdist.models.rules import Whole
from permdist.sums.exchanges import BatchExchanges

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.measures import Measure
    from permdist.models import solvers
    from permdist.models.batch import Batch
    from permdist.models.descent import Task
    from permdist.models.totals import SumOverBlocks

UNIFORM = 0.1  # the weight of every pair beside the mean weight of 1


class WeightedPairs:
    """The likelihood of good-bad pairs, each with a weight: convex for any weights.

    Its value for a query is ``sum W log(1 + exp(-2 scale (s_g - s_b)))`` over pairs. W is 1 until
    the first call of `weigh`.

    Parameters
    ----------
    batch : Batch
    measure : Measure
    n_jobs : int, optional
    """

    def __init__(self, batch: Batch, measure: Measure, n_jobs: int | None = None) -> None:
        self.batch, self.measure, self.n_jobs = batch, measure, n_jobs
        self.pairs = BatchExchanges(batch.labels, batch.ptr)
        self.weights = np.ones(int(self.pairs.n_pairs.sum()))
        self._rankings = 0

    def __call__(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the value of each query, and the gradient by all scores."""
        spread = partial(in_threads, n_jobs=self.n_jobs)
        return self.pairs.sums(scores, self.batch.scale, self.weights, spread)

    def changes(self, scores: FloatArray) -> FloatArray:
        """Return how much the measure changes if each pair is exchanged in this ranking."""
        return np.abs(self.pairs.changes(self.measure, scores))

    def sum_changes(self, scores: FloatArray) -> tuple[float, int]:
        """Return the sum of the changes, and the number of pairs."""
        changes = self.changes(scores)
        return float(changes.sum()), len(changes)

    def weigh(self, scores: FloatArray, mean: float | None = None) -> None:
        """Weigh each pair by how much the measure changes if it is exchanged in this ranking.

        A tenth of the mean change is added to every pair, and their mean is made 1. The weights
        are the means over all rankings so far: rankings by different weights would otherwise take
        turns.

        Parameters
        ----------
        scores : array of float, shape (documents,)
        mean : float, optional
            The mean change over all queries, where these are only some of them.
        """
        changes = self.changes(scores)
        mean = float(changes.mean()) if mean is None else mean
        new = (changes / mean + UNIFORM) / (1.0 + UNIFORM) if mean > 0.0 else np.ones(len(changes))
        self._rankings += 1
        share = 1.0 / self._rankings
        self.weights = (1.0 - share) * self.weights + share * new


@dataclass(frozen=True)
class Exchanges(Objective):
    """`WeightedPairs` as an objective: the likelihood of pairs until they are weighed."""

    measure: Measure
    scale: bool

    @property
    def scaled(self) -> bool:
        """Whether score differences are divided by the number of pairs of each query."""
        return self.scale

    def bind(self, batch: Batch, n_jobs: int | None = None) -> WeightedPairs:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        return WeightedPairs(batch, self.measure, n_jobs)


def weigh(total: SumOverBlocks, w: FloatArray) -> None:
    """Weigh the pairs of all blocks by the ranking of w."""
    found = total.over_blocks("asked", w, "sum_changes")
    mean = sum(one for one, _ in found) / max(1, sum(number for _, number in found))
    total.over_blocks("asked", w, "weigh", mean)


class Round(NamedTuple):
    """A solution, and the measure of its ranking."""

    measure: float
    solution: solvers.Solution


class Reweighted(Conditional):
    """A learner that can go on from its solution with weighted pairs."""

    reweight: int = option(
        Whole(0),
        "How often to weigh every pair by how much the measure changes if it is exchanged in the "
        "ranking found so far, and to minimize the weighted likelihood of pairs, which is convex, "
        "in its place. The round with the best measure is kept, the first solution among them: "
        "on `eval_set`, if there is any, or else on the training queries.",
        default=0,
    )

    def _solve(self, task: Task) -> solvers.Solution:
        first = super()._solve(task)
        return self._reweighted(task, first) if self.reweight else first

    def _reweighted(self, task: Task, first: solvers.Solution) -> solvers.Solution:
        weighted = self._total(Exchanges(self.judge, self.scale), task.table)
        rounds = [self._judged(task, first, 0)]
        for number in range(1, self.reweight + 1):
            last = rounds[-1].solution
            if task.watch.stopped or not last.converged:
                break
            if len(task.watch) >= self.max_iter:
                self._warn(
                    f"max_iter={self.max_iter} iterations ended after {number - 1} of "
                    f"reweight={self.reweight} rounds; use a larger max_iter"
                )
                break
            weigh(weighted, last.w)
            found = self._by_plain_lbfgs(task._replace(total=weighted, start=last.w))
            rounds.append(self._judged(task, found, number))
        return max(rounds, key=lambda one: one.measure).solution

    def _judged(self, task: Task, found: solvers.Solution, number: int) -> Round:
        """Measure a solution, and note its round and measure at its iterations."""
        training = float(np.nanmean(task.total.measured(found.w, self.judge)))
        history = task.watch.history
        for key, value in (("reweighted", float(number)), ("training", training)):
            entries = history.setdefault(key, [])
            entries.extend([value] * (len(task.watch) - len(entries)))
        if task.watch.held_out is None:
            return Round(training, found)
        return Round(task.watch.judge_linear(found.w), found)
