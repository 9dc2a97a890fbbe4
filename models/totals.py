"""Objectives over the blocks of a table, as functions of the coefficients."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.models.batch import map_blocks, n_threads
from permdist.models.solvers.total import Evaluation, Total, add_parts, part_of
from permdist.models.spaces.base import reach
from permdist.models.spaces.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from permdist._typing import FloatArray
    from permdist.measures import Measure
    from permdist.models.batch import Batch
    from permdist.models.blocks import Table
    from permdist.models.objectives.base import Bound, Objective


# What the objective of a block can be asked without changing it; see `Block.asked`.
READERS = frozenset(["effective", "sum_changes"])


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

    def asked(self, w: FloatArray | None, name: str, *args: Any) -> Any:
        """Call a method of the objective, with the scores as its first argument unless w is None.

        Of objectives that are made of sums over a space, that of the sums.
        """
        scores = () if w is None else (self.scores(w),)
        return getattr(self._holder, name)(*scores, *args)

    def adapts(self) -> bool:
        """Return whether the space may sort or draw again later."""
        return bool(self._holder.adapts)

    def report(self, w: FloatArray) -> tuple[Sample | None, int]:
        """Report on what was drawn, if anything was; return the number of queries as well."""
        return self._holder.report(self.scores(w)), len(self.batch)

    @property
    def _holder(self) -> Any:
        return getattr(self.bound, "sums", self.bound)


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
        if any(self.over_blocks("asked", w, "redraw")):
            return True
        grown = any(self.over_blocks("asked", None, "grow"))
        return grown and any(self.over_blocks("asked", w, "redraw"))

    def reach(self, start: FloatArray, w: FloatArray) -> float:
        """Halve the way from a start to w until half of what was drawn is effective."""

        def effective(share: float) -> FloatArray:
            here = (1.0 - share) * start + share * w
            return np.concatenate(self.over_blocks("asked", here, "effective"))

        return reach(effective)

    def report(self, w: FloatArray) -> Sample | None:
        """Report how well what was drawn stands for all rankings; None where nothing is drawn."""
        return Sample.join(self.over_blocks("report", w))


class BlockTotal(SumOverBlocks):
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
    (65.4..., 0)
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

    def over_blocks(self, name: str, *args: Any) -> list[Any]:
        """Call a method of every block, by threads."""

        def work(at: int) -> Any:
            return getattr(self.blocks[at], name)(*args)

        return map_blocks(work, len(self.blocks), self._outer)
