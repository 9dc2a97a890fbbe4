"""Fits whose data lie in stores and are held by the workers of a cluster.

A worker opens the stores itself and holds some of the blocks of queries. It is sent coefficients,
one kilobyte or so, and returns sums over its blocks; features never travel. Blocks depend on the
data only and are added up along a fixed tree, so the result has the same bits on any number of
workers, and as a fit in one process.
"""

from __future__ import annotations

import itertools
import uuid
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._parallel import pointers
from permdist.models.blocks import squares_of_block
from permdist.models.crew import Crew, n_parts, on_workers
from permdist.models.objectives.base import Objective
from permdist.models.objectives.conditional import Conditional
from permdist.models.scaling import Moments, spread_of
from permdist.models.shares import Call, Cut, Order, Share, ShareRecipe, cut, settle
from permdist.models.solvers.growing import Blocks
from permdist.models.solvers.total import Total, evaluation_of
from permdist.models.solvers.tree import join
from permdist.models.spaces import Space, parse_space
from permdist.models.totals import SumOverBlocks, changes_objective

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from permdist._typing import FloatArray, IntArray
    from permdist.models.base import Ranker
    from permdist.models.blocks import Table
    from permdist.models.checkpoints import Checkpoint
    from permdist.models.solvers.total import Evaluation


class ClusterTotal(SumOverBlocks, Blocks):
    """An objective over blocks that workers hold.

    Parameters
    ----------
    objective : Objective
        Settled; see `permdist.objectives.Objective.settle`.
    table : ClusterTable
    """

    def __init__(self, objective: Objective, table: ClusterTable) -> None:
        self.crew, self.width, self._cuts = table.crew, table.width, table.cuts
        self.n_queries, self.n_documents = table.n_queries, table.n_documents
        self._order = Order(uuid.uuid4().hex, objective)
        self._said: list[Call] = []

    def __len__(self) -> int:
        return len(self._cuts)

    def some(self, numbers: Sequence[int]) -> SomeOfCluster:
        """Return the sum over some of the blocks, by their numbers."""
        return SomeOfCluster(self, numbers)

    def over_blocks(self, name: str, *args: Any) -> list[Any]:
        """Call a method of every block, by the workers; see `SumOverBlocks.over_blocks`."""
        call: Call | None = (name, *args)
        if changes_objective(name, args):
            self._said.append((name, *args))
            call = None
        found = self.crew.ask(Share.answer, self._order, self._said, call)
        return list(itertools.chain.from_iterable(found))

    def __call__(self, w: FloatArray) -> Evaluation:
        """Return the value at the coefficients w, and its gradient."""
        return self.evaluate(w, None)

    def evaluate(self, w: FloatArray, chosen: IntArray | None) -> Evaluation:
        """Return value and gradient of the sum over all blocks, or over some of them.

        Parameters
        ----------
        w : array of float, shape (columns,)
        chosen : array of int or None
            The numbers of the blocks, in ascending order.
        """
        found = self.crew.ask(Share.sums, self._order, self._said, w, chosen)
        return evaluation_of(join(itertools.chain.from_iterable(found)))

    def sizes(self, numbers: Sequence[int]) -> tuple[int, int]:
        """Return the number of queries and of documents of some blocks."""
        cuts = [self._cuts[number] for number in numbers]
        return sum(one.kept for one in cuts), sum(one.documents for one in cuts)


class SomeOfCluster(Total):
    """The sum over some of the blocks that workers hold.

    Parameters
    ----------
    whole : ClusterTotal
    numbers : sequence of int
        Of the blocks, in ascending order.
    """

    def __init__(self, whole: ClusterTotal, numbers: Sequence[int]) -> None:
        self._whole, self._numbers = whole, np.array(numbers, dtype=np.int64)
        self.width = whole.width
        self.n_queries, self.n_documents = whole.sizes(numbers)

    def __call__(self, w: FloatArray) -> Evaluation:
        """Return the value at the coefficients w, and its gradient."""
        return self._whole.evaluate(w, self._numbers)


class ClusterTable:
    """The training queries of stores, seen by blocks that workers hold.

    It has what learners ask of a `permdist.models.blocks.Table`.

    Parameters
    ----------
    paths : sequence of str
        The folders of the stores.
    learner : Ranker
        With its `filling_`; what else it has learned does not matter.
    client : distributed.Client or None
        Without it everything happens in this process.
    width : int
        The number of columns.

    Attributes
    ----------
    width : int
        As given.
    checkpoint : Checkpoint or None
        The file that evaluations are kept in.
    n_queries, n_documents : int
        That are learned from.
    cuts : list of Cut
        The blocks of all stores.
    crew : Crew
        Of the parts.
    """

    def __init__(self, paths: Sequence[str], learner: Ranker, client: Any, width: int) -> None:
        self._paths, self._learner, self._client = paths, learner, client
        self.width = width
        self.checkpoint: Checkpoint | None = None
        found = on_workers(client, cut, [(path, learner, self.width) for path in paths])
        blocks = [(path, one) for path, cuts in zip(paths, found, strict=True) for one in cuts]
        if not blocks:
            raise ValueError(
                "y: no query has documents of different labels, there is nothing to learn from"
            )
        self.cuts = [one for _, one in blocks]
        self.n_queries = sum(one.kept for _, one in blocks)
        self.n_documents = sum(one.documents for _, one in blocks)
        recipes = self._recipes(blocks)
        self.crew = Crew(recipes, client)
        parts = self.crew.ask(Share.moments)
        self.moments = Moments.join(list(itertools.chain.from_iterable(parts)))
        if learner.draws_by_document:
            self.crew = Crew([replace(one, moments=self.moments) for one in recipes], client)

    def _recipes(self, blocks: list[tuple[str, Cut]]) -> list[ShareRecipe]:
        """Cut the blocks of all stores into ranges of about the same size, none of two stores."""
        starts = np.linspace(0, len(blocks), n_parts(self._client) + 1).astype(int).tolist()
        new = {k for k in range(1, len(blocks)) if blocks[k][0] != blocks[k - 1][0]}
        edges = sorted({*starts, *new})
        kept = pointers([one.kept for _, one in blocks])
        jobs = 1 if self._client is not None else getattr(self._learner, "n_jobs", 1)
        return [
            ShareRecipe(
                blocks[a][0],
                blocks[a][1].first,
                blocks[b - 1][1].last,
                a,
                int(kept[a]),
                self._learner,
                jobs,
            )
            for a, b in itertools.pairwise(edges)
        ]

    @cached_property
    def spread(self) -> FloatArray:
        """The standard deviation of each column within queries."""
        return spread_of([self.moments])

    @property
    def largest(self) -> float:
        """The largest size of an entry."""
        return float(self.moments.largest.max(initial=0.0))

    def root_mean_squares(self) -> FloatArray:
        """Return the root of the mean square of each column."""
        return spread_of(self.each(squares_of_block))

    def each(
        self,
        function: Callable[[Table, int], Any],
        n_jobs: int | None = None,  # noqa: ARG002
    ) -> list[Any]:
        """Call a function of a table and the number of a block, for all blocks.

        Parameters
        ----------
        function : callable
            Of a module, or a method of something small.
        n_jobs : int, optional
            Not used: each thread of a worker has parts of its own.
        """
        return list(itertools.chain.from_iterable(self.crew.ask(Share.each, function)))

    def ask(self, function: Callable[[Table], list[Any]]) -> list[Any]:
        """Call a function of the table of each part that returns something for each block.

        Parameters
        ----------
        function : callable
            Of a module, or a method of something small.
        """
        return list(itertools.chain.from_iterable(self.crew.ask(Share.ask, function)))

    def total(self, objective: Objective, n_jobs: int | None) -> ClusterTotal:  # noqa: ARG002
        """Return an objective as a function of the coefficients.

        Parameters
        ----------
        objective : Objective
        n_jobs : int, optional
            Not used: each thread of a worker has parts of its own.
        """
        if _decides(objective):
            call = self._paths, self._learner, objective
            objective = on_workers(self._client, settle, [call])[0]
        return ClusterTotal(objective, self)


def _decides(objective: Objective) -> bool:
    """Return whether `settle` needs to look at the labels."""
    if isinstance(objective, Conditional):
        return type(parse_space(objective.space)).settle is not Space.settle
    return type(objective).settle is not Objective.settle
