"""What a worker holds of the stores of a fit: some blocks of queries, and objectives on them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._parallel import pointers
from permdist.data.normalize import pieces_of
from permdist.models.blocks import block_documents
from permdist.models.checkpoints import fingerprint
from permdist.models.missing import need_values
from permdist.models.solvers.solution import one_thread
from permdist.models.solvers.tree import fold
from permdist.models.stores import open_part
from permdist.models.totals import BlockTotal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from permdist._typing import FloatArray, IntArray
    from permdist.models.base import Ranker
    from permdist.models.blocks import Table
    from permdist.models.objectives.base import Objective
    from permdist.models.scaling import Moments
    from permdist.models.solvers.tree import Branch

Call = tuple[Any, ...]  # the name of a method, and its arguments
KEPT = 3  # objectives that a worker keeps ready for its blocks


class Facts(NamedTuple):
    """What is known of a store without its features.

    Attributes
    ----------
    n_features : int
    feature_names : tuple of str or None
    indicators : tuple of int
        Features with missing values, where the learner wants to know them.
    """

    n_features: int
    feature_names: tuple[str, ...] | None
    indicators: tuple[int, ...]


class Cut(NamedTuple):
    """A block: the queries of a store from `first` up to `last`, of which some are kept."""

    first: int
    last: int
    kept: int
    documents: int


def look_at(path: str, learner: Ranker) -> Facts:
    """Open a store, and return what a fit must know of it before it begins.

    Parameters
    ----------
    path : str
    learner : Ranker
    """
    queries = open_part(path)
    need_values(learner.missing, queries, path)
    indicators = learner.new_filling(queries).indicators
    return Facts(queries.n_features, queries.feature_names, indicators)


def store_fingerprint(path: str) -> dict[str, Any]:
    """Return the `fingerprint` of a store.

    Parameters
    ----------
    path : str
    """
    return fingerprint(open_part(path))


def cut(path: str, learner: Ranker, width: int) -> list[Cut]:
    """Return the blocks of a store, as a learner sees them.

    Parameters
    ----------
    path : str
    learner : Ranker
    width : int
        The number of columns.
    """
    queries = open_part(path)
    _, useful = learner.lessons(queries)
    numbers, sizes = np.flatnonzero(useful), queries.sizes[useful]
    ptr = pointers(sizes)
    return [
        Cut(int(numbers[a]), int(numbers[b - 1]) + 1, b - a, int(ptr[b] - ptr[a]))
        for a, b in pieces_of(ptr, block_documents(width))
    ]


def settle(paths: Sequence[str], learner: Ranker, objective: Objective) -> Objective:
    """Let an objective decide what depends on all queries.

    Parameters
    ----------
    paths : sequence of str
    learner : Ranker
    objective : Objective
    """
    labels, sizes = [], []
    for queries in map(open_part, paths):
        seen, useful = learner.lessons(queries)
        labels.append(seen[np.repeat(useful, queries.sizes)])
        sizes.append(queries.sizes[useful])
    return objective.settle(np.concatenate(labels), pointers(np.concatenate(sizes)))


@dataclass(frozen=True)
class ShareRecipe:
    """Which blocks of a store a worker holds, and how a learner sees them.

    Parameters
    ----------
    path : str
    first, last : int
        Queries of the store.
    block : int
        The number of the first block, among those of all stores.
    query : int
        The number of the first query that is kept, among those of all stores.
    learner : Ranker
        Not fitted, but for its `filling_`.
    n_jobs : int, optional
        Threads.
    moments : Moments, optional
        Of all stores, where documents are to be put into their canonical order.
    """

    path: str
    first: int
    last: int
    block: int
    query: int
    learner: Ranker
    n_jobs: int | None = 1
    moments: Moments | None = None

    def make(self) -> Share:
        """Open the store, and make the table of the blocks."""
        queries = open_part(self.path, self.first, self.last)
        table = self.learner.training_table(
            queries,
            first=self.query,
            n_jobs=self.n_jobs,
            canonical=self.moments is not None,
            moments=None if self.moments is None else [self.moments],
        )
        return Share(table, self.block)


class Order(NamedTuple):
    """An objective that workers are to evaluate, and a name for it."""

    key: str
    objective: Objective


class Share:
    """The blocks that a worker holds, and objectives on them.

    Parameters
    ----------
    table : Table
    block : int
        The number of the first block.
    """

    def __init__(self, table: Table, block: int) -> None:
        self.table, self.block = table, block
        self._ready: dict[str, tuple[BlockTotal, list[Any]]] = {}
        self._lock = threading.Lock()

    def each(self, function: Callable[[Table, int], Any]) -> list[Any]:
        """Call a function of the table and the number of a block, for all blocks.

        Parameters
        ----------
        function : callable
        """
        with one_thread():
            return self.table.each(function, self.table.n_jobs)

    def ask(self, function: Callable[[Table], list[Any]]) -> list[Any]:
        """Call a function of the table, which may keep notes there.

        Parameters
        ----------
        function : callable
        """
        with self._lock, one_thread():
            return function(self.table)

    def moments(self) -> list[Moments]:
        """Return what the spread of the columns is made of."""
        with one_thread():
            return self.table.moments

    def answer(self, order: Order, said: list[Call], call: Call | None) -> Any:
        """Call a method of all blocks of an objective.

        Parameters
        ----------
        order : Order
        said : list of Call
            All calls so far that change the objective; those that these blocks have not heard yet,
            because they were held elsewhere, are made first.
        call : Call or None
            The method; None for the answer to the last call of `said`.
        """
        with self._lock, one_thread():
            total, answers = self._ready_for(order, said)
            return answers[len(said) - 1] if call is None else total.over_blocks(*call)

    def sums(
        self, order: Order, said: list[Call], w: FloatArray, chosen: IntArray | None
    ) -> list[Branch]:
        """Return the sums over the blocks, or over some of them, as far as they go.

        Parameters
        ----------
        order, said
            As in `answer`.
        w : array of float, shape (columns,)
        chosen : array of int or None
            The numbers of the blocks, of those of all stores, that are added up; all by default.
        """
        with self._lock, one_thread():
            total, _ = self._ready_for(order, said)
            if chosen is None:
                return fold(total.parts(w), self.block)
            first, last = np.searchsorted(chosen, [self.block, self.block + len(total)])
            if first == last:
                return []
            some = total.some((chosen[first:last] - self.block).tolist())
            return fold(some.parts(w), int(first))

    def _ready_for(self, order: Order, said: list[Call]) -> tuple[BlockTotal, list[Any]]:
        total, answers = self._total(order)
        for call in said[len(answers) :]:
            answers.append(total.over_blocks(*call))
        return total, answers

    def _total(self, order: Order) -> tuple[BlockTotal, list[Any]]:
        found = self._ready.pop(order.key, None)
        if found is None:
            objective, jobs = order.objective, self.table.n_jobs
            found = BlockTotal(objective, self.table, jobs, bind=objective.bind), []
        self._ready[order.key] = found  # the last one used comes last
        for key in list(self._ready)[:-KEPT]:
            del self._ready[key]
        return found
