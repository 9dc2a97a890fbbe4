"""Objectives over the blocks of a table, as functions of the coefficients."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.models.batch import map_blocks, n_threads
from permdist.models.solvers.growing import Blocks
from permdist.models.solvers.total import Evaluation, Total, add_parts, part_of
from permdist.models.spaces.base import Sums, reach
from permdist.models.spaces.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from permdist._typing import FloatArray
    from permdist.measures import Measure
    from permdist.models.batch import Batch
    from permdist.models.blocks import Table
    from permdist.models.objectives.base import Bound, Objective


MUTATORS = frozenset(["redraw", "grow"])  # methods of blocks that change their objective
READERS = frozenset(["sum_changes"])  # what an objective can be asked without changing it


class Block:
    """An objective on the queries of one block.

    Its methods are what a `SumOverBlocks` asks every block for. All of them take coefficients and
    return little, so that blocks may be anywhere.

    Parameters
    ----------
    table : Table
    number : int
        Of the block.
    batch : Batch
        Its queries.
    bound : callable
        The objective, ready for them.
    """

    def __init__(self, table: Table, number: int, batch: Batch, bound: Bound) -> None:
        self.table, self.number, self.batch, self.bound = table, number, batch, bound

    def scores(self, w: FloatArray) -> FloatArray:
        """Return the scores of the documents."""
        return self.table.block(self.number) @ w

    def part(self, w: FloatArray) -> FloatArray:
        """Return value, steepest slope, number of silent queries and gradient in one row."""
        X = self.table.block(self.number)
        values, by_scores = self.bound(X @ w)
        return np.concatenate([part_of(values, by_scores, self.batch.ptr), by_scores @ X])

    def along(self, w: FloatArray, factors: Sequence[float]) -> list[float]:
        """Return the values at multiples of w."""
        scores = self.scores(w)
        return [float(self.bound(factor * scores)[0].sum()) for factor in factors]

    def squares(self, w: FloatArray) -> float:
        """Return the sum of the squared differences of scores from the means of their queries."""
        scores = self.scores(w)
        means = np.add.reduceat(scores, self.batch.ptr[:-1]) / self.batch.sizes
        return float(np.sum((scores - means[self.batch.query_of]) ** 2))

    def measured(self, w: FloatArray, measure: Measure) -> FloatArray:
        """Return a measure of the ranking of each query."""
        return self.batch.measured(measure, self.scores(w))

    def asked(self, w: FloatArray, name: str, *args: Any) -> Any:
        """Call a method of the objective, with the scores as its first argument."""
        return getattr(self.bound, name)(self.scores(w), *args)

    def redraw(self, w: FloatArray) -> bool:
        """Let the space sort or draw by the scores; return whether that changes anything."""
        return self._does("resort", "redraw") and self._holder.redraw(self.scores(w))

    def grow(self) -> bool:
        """Let the space draw more from now on; return whether that is more than before."""
        return bool(self._holder.grow())

    def adapts(self) -> bool:
        """Return whether the space may sort or draw again later."""
        return bool(self._holder.adapts)

    def effective(self, w: FloatArray) -> FloatArray:
        """Return the share of draws that are effective, of queries for which any were drawn."""
        return self._holder.effective(self.scores(w)) if self._does("effective") else np.zeros(0)

    def report(self, w: FloatArray) -> tuple[Sample | None, int]:
        """Report on what was drawn, if anything was; return the number of queries as well."""
        found = self._holder.report(self.scores(w)) if self._does("report") else None
        return found, len(self.batch)

    @property
    def _holder(self) -> Any:
        return getattr(self.bound, "sums", self.bound)

    def _does(self, *names: str) -> bool:
        """Check whether the space has such methods of its own, so that scores are of any use."""
        kind = type(self._holder)
        return any(getattr(kind, name) is not getattr(Sums, name) for name in names)


def changes_objective(name: str, args: Sequence[Any]) -> bool:
    """Return whether a call of a method of `Block` may change the objective.

    Parameters
    ----------
    name : str
    args : sequence
    """
    return name in MUTATORS or (name == "asked" and args[1] not in READERS)


class SumOverBlocks(Total):
    """A sum over the queries of several blocks, wherever these are.

    A subclass gives `over_blocks`.
    """

    @abstractmethod
    def over_blocks(self, name: str, *args: Any) -> list[Any]:
        """Call a method of every `Block`; return the results in the order of the blocks."""

    def parts(self, w: FloatArray) -> FloatArray:
        """Return one row per block, shape (blocks, 3 + features); see `add_parts`."""
        return np.array(self.over_blocks("part", w))

    def __call__(self, w: FloatArray) -> Evaluation:
        """Return the value at the coefficients w, and its gradient."""
        return add_parts(self.parts(w))

    def along(self, w: FloatArray, factors: Sequence[float]) -> FloatArray:
        """Return the values at multiples of w, in one pass over the features."""
        return np.add.reduce(self.over_blocks("along", w, list(factors)))

    def spread(self, w: FloatArray) -> float:
        """Return the standard deviation of the scores within queries."""
        return float(np.sqrt(sum(self.over_blocks("squares", w)) / self.n_documents))

    def measured(self, w: FloatArray, measure: Measure) -> FloatArray:
        """Return a measure of the ranking of each query."""
        return np.concatenate(self.over_blocks("measured", w, measure))

    # ---- spaces that sort or draw by scores; see `permdist.models.spaces.Sums` -----------------

    @property
    def adapts(self) -> bool:
        """Whether `resort` may change anything later, even if it does not at first."""
        return any(self.over_blocks("adapts"))

    def resort(self, w: FloatArray) -> bool:
        """Fix whatever the space sorts or draws by scores; return whether that changes anything."""
        if any(self.over_blocks("redraw", w)):
            return True
        return any(self.over_blocks("grow")) and any(self.over_blocks("redraw", w))

    def reach(self, start: FloatArray, w: FloatArray) -> float:
        """Halve the way from a start to w until half of what was drawn is effective."""

        def effective(share: float) -> FloatArray:
            here = (1.0 - share) * start + share * w
            return np.concatenate(self.over_blocks("effective", here))

        return reach(effective)

    def report(self, w: FloatArray) -> Sample | None:
        """Report how well what was drawn stands for all rankings; None where nothing is drawn."""
        return Sample.join(self.over_blocks("report", w))


class BlockTotal(SumOverBlocks, Blocks):
    """An objective over the blocks of a table on this machine, by threads.

    Parameters
    ----------
    objective : Objective
    table : Table
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.
    blocks : range, optional
        Some of the blocks, of which `parts` then returns the rows; all by default.
    bind : callable, optional
        Takes a batch and a number of threads and returns the objective, ready for it; that of
        `objective` by default.

    Examples
    --------
    >>> from permdist import data
    >>> from permdist.models.blocks import Table
    >>> from permdist.objectives import ListNet
    >>> total = BlockTotal(ListNet(), Table(data.make_letor(20, rng=0)))
    >>> found = total(np.zeros(total.width))
    >>> round(found.value, 4), found.silent
    (58.9344, 3)
    """

    def __init__(
        self,
        objective: Objective,
        table: Table,
        n_jobs: int | None = None,
        *,
        blocks: range | None = None,
        bind: Callable[[Batch, int | None], Bound] | None = None,
    ) -> None:
        self.objective, self.table, self.n_jobs = objective, table, n_jobs
        self.width, self.n_queries = table.width, table.n_queries
        self.n_documents = table.n_documents
        self._numbers = range(len(table)) if blocks is None else blocks
        # Threads work on several blocks at a time, or on the queries of the only one.
        self._outer = n_threads(n_jobs) if len(self._numbers) > 1 else 1
        inner = 1 if self._outer > 1 else n_jobs
        shared: dict[Any, Any] = {}
        make = bind or objective.settle(table.labels, table.ptr).bind

        def block(at: int) -> Block:
            number = self._numbers[at]
            batch = objective.batch(table.labels[table.rows(number)], table.pointers(number))
            first = table.first + table.cuts[number]
            batch = replace(batch, first=first, shared=shared)
            return Block(table, number, batch, make(batch, inner))

        self.blocks = map_blocks(block, len(self._numbers), 1)

    def __len__(self) -> int:
        return len(self.blocks)

    def some(self, numbers: Sequence[int]) -> BlockTotal:
        """Return the sum over some of the blocks, by their numbers."""
        part = copy(self)
        part.blocks = [self.blocks[number] for number in numbers]
        part.n_queries = sum(len(block.batch) for block in part.blocks)
        part.n_documents = sum(len(block.batch.labels) for block in part.blocks)
        return part

    def over_blocks(self, name: str, *args: Any) -> list[Any]:
        """Call a method of every block, by threads."""
        by_number = {block.number: block for block in self.blocks}

        def work(number: int) -> Any:
            return getattr(by_number[number], name)(*args)

        return self.table.map(work, list(by_number), self._outer)
