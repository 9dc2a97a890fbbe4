"""Training queries seen by blocks: consecutive queries, as doubles, in a buffer of the thread.

Whatever is added up over queries is added up block by block, in the order of the blocks, which
depend on the data only. So the result is the same on any number of threads, and nothing as large
as the features is ever made of them.
"""

from __future__ import annotations

import threading
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from permdist._check import frozen
from permdist._parallel import pointers
from permdist.data.missing import fill
from permdist.data.normalize import normalize_rows, pieces_of
from permdist.models.batch import map_blocks
from permdist.models.missing import Filling
from permdist.models.read_ahead import AHEAD, ReadAhead
from permdist.models.scaling import Moments, inverse, order_by, spread_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.data import Queries
    from permdist.models.checkpoints import Checkpoint
    from permdist.models.objectives.base import Objective
    from permdist.models.totals import SumOverBlocks

Result = TypeVar("Result")

BLOCK_DOCUMENTS = 16_384  # of a block, at most
BLOCK_ENTRIES = 1 << 19  # of a block, about; as doubles they fit into a processor's cache
SMALL = 1 << 25  # bytes; so little is made of the features once and kept
COLUMNS = 20  # one in so many columns is copied together with others
LARGEST_CODE = 1 << 15  # documents of a query whose doubled ranks 16 bits can hold


def block_documents(width: int) -> int:
    """Return how many documents a block has, at most, unless a query has more.

    Examples
    --------
    >>> block_documents(46), block_documents(136), block_documents(100_000)
    (11397, 3855, 64)
    """
    return min(BLOCK_DOCUMENTS, max(64, BLOCK_ENTRIES // max(1, width)))


def columns_of(X: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """Go through the columns of X, each as contiguous doubles that are good until the next.

    A few of them are copied at a time, so that rows in C order are not read once per column.

    Yields
    ------
    number : int
    column : array of float64, shape (documents,)
    """
    together = max(1, X.shape[1] // COLUMNS) if X.flags.c_contiguous else 1
    for first in range(0, X.shape[1], together):
        part = np.array(X[:, first : first + together].T, order="C")
        for number, column in enumerate(part, start=first):
            yield number, np.asarray(column, dtype=np.float64)


class Table:
    """Queries by blocks: those that are kept, with missing values filled and features scaled.

    Parameters
    ----------
    queries : Queries
    filling : Filling
        What to do with missing values.
    views : tuple of str
        The versions of the features that stand side by side; see `Queries.normalize`.
    labels : array of int, shape (documents,), optional
        In place of those of the queries.
    keep : array of bool, shape (queries,), optional
        The queries to keep; all by default.
    canonical : bool
        Whether to put the documents of each query into an order that does not depend on that in
        the file.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.
    moments : list of Moments, optional
        Those of all blocks, where they are known.
    first : int
        The number of the first query that is kept, where these are a part of all.

    Attributes
    ----------
    labels : array of int, shape (documents,)
        Of the documents of the queries that are kept.
    ptr : array of int, shape (queries + 1,)
        Where each query starts among these documents.
    cuts : list of int
        The first query of each block, and the number of queries.
    width : int
        The number of columns.
    first : int
        As given.
    checkpoint : Checkpoint or None
        The file that evaluations are kept in.
    order : array of int, shape (documents,), or None
        The canonical order of the documents, query after query.
    notes : dict
        What functions that `ask` is given keep for their next call.
    """

    def __init__(
        self,
        queries: Queries,
        *,
        filling: Filling | None = None,
        views: tuple[str, ...] = ("raw",),
        labels: IntArray | None = None,
        keep: BoolArray | None = None,
        canonical: bool = False,
        n_jobs: int | None = None,
        moments: list[Moments] | None = None,
        first: int = 0,
    ) -> None:
        self.queries, self.views, self.n_jobs = queries, views, n_jobs
        self.first = first
        self.checkpoint: Checkpoint | None = None
        self.notes: dict[str, Any] = {}
        self.X: FloatArray = np.asarray(queries.X)  # without the overhead of a memory map
        self.filling = filling or Filling()
        self.labels = queries.y if labels is None else labels
        self.ptr, self._starts = queries.ptr, queries.ptr[:-1]
        if keep is not None and not keep.all():
            sizes = queries.sizes
            self.labels = self.labels[np.repeat(keep, sizes)]
            self.ptr, self._starts = pointers(sizes[keep]), self._starts[keep]
        self.width = queries.n_features * len(views) + len(self.filling.indicators)
        ranges = list(pieces_of(self.ptr, block_documents(self.width)))
        self.cuts = [0, *(last for _, last in ranges)]
        self.order: IntArray | None = None
        self._own = threading.local()
        self._ahead = ReadAhead(self.X)
        self._coming: tuple[Sequence[int], dict[int, int]] = ((), {})
        self._small = 8 * self.n_documents * self.width <= SMALL
        self._kept: dict[int, FloatArray] = {}
        self._codes = self._rank_codes() if "rank" in views else None
        if moments is not None:
            self.moments = moments
        if canonical:
            self._sort()

    def __len__(self) -> int:
        return len(self.cuts) - 1

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.ptr) - 1

    @property
    def n_documents(self) -> int:
        """The number of documents."""
        return int(self.ptr[-1])

    def rows(self, number: int) -> slice:
        """Return the documents of a block, among those that are kept."""
        return self._rows(*self.cuts[number : number + 2])

    def pointers(self, number: int) -> IntArray:
        """Return where each query of a block starts, counted from the block's first document."""
        first, last = self.cuts[number : number + 2]
        return self.ptr[first : last + 1] - self.ptr[first]

    def block(self, number: int) -> FloatArray:
        """Return the features of a block as read-only doubles, shape (documents, columns).

        The array is good until the same thread asks for another block.
        """
        if number in self._kept:
            return self._kept[number]
        if self._ahead:
            self._read_ahead(number)
        made = self._features(*self.cuts[number : number + 2])
        if self._small and not np.may_share_memory(made, self.X):
            made = self._kept[number] = frozen(made.copy())
        return made

    def query(self, number: int) -> FloatArray:
        """Return the features of a query; see `block`."""
        return self._features(number, number + 1)

    def each(
        self, function: Callable[[Table, int], Result], n_jobs: int | None = None
    ) -> list[Result]:
        """Call a function of the table and the number of a block, for all blocks, by threads.

        Parameters
        ----------
        function : callable
        n_jobs : int, optional
            Threads, all processors by default.
        """
        return self.map(lambda number: function(self, number), range(len(self)), n_jobs)

    def map(
        self, work: Callable[[int], Result], numbers: Sequence[int], n_jobs: int | None
    ) -> list[Result]:
        """Call a function of the number of a block, by threads, and read ahead.

        Parameters
        ----------
        work : callable
        numbers : sequence of int
            Of the blocks.
        n_jobs : int, optional
            Threads, all processors by default.
        """
        self._coming = numbers, {number: at for at, number in enumerate(numbers)}
        return map_blocks(lambda at: work(numbers[at]), len(numbers), n_jobs)

    def ask(self, function: Callable[[Table], list[Result]]) -> list[Result]:
        """Call a function of the table that returns something for each block.

        Parameters
        ----------
        function : callable
        """
        return function(self)

    def total(self, objective: Objective, n_jobs: int | None = None) -> SumOverBlocks:
        """Return an objective as a function of the coefficients.

        Parameters
        ----------
        objective : Objective
        n_jobs : int, optional
            Threads, all processors by default; the result does not depend on it.
        """
        from permdist.models.totals import BlockTotal

        return BlockTotal(objective, self, n_jobs)

    def scores(self, w: FloatArray) -> FloatArray:
        """Return ``X @ w`` of all documents."""
        scores = np.empty(self.n_documents)

        def work(number: int) -> None:
            np.matmul(self.block(number), w, out=scores[self.rows(number)])

        self.map(work, range(len(self)), self.n_jobs)
        return scores

    def whole(self, *, by_column: bool = False) -> FloatArray:
        """Return all features in one array, X itself where it is what is wanted.

        Parameters
        ----------
        by_column : bool
            Whether columns are to be contiguous.

        Returns
        -------
        array of float, shape (documents, columns)
            Of float32 where X is and nothing is computed, else of float64.
        """
        order: Literal["C", "F"] = "F" if by_column else "C"
        if self._plain and self.order is None and len(self._starts) == self.queries.n_queries:
            return frozen(np.asarray(self.X, order=order))
        kind: Any = self.X.dtype if self._plain else np.float64
        found = np.empty((self.n_documents, self.width), dtype=kind, order=order)
        for number in range(len(self)):
            found[self.rows(number)] = self.block(number)
        return frozen(found)

    def columns(self) -> tuple[FloatArray, IntArray | None]:
        """Return an array with all columns, and which of its rows are the documents.

        Returns
        -------
        features : array of float, shape (rows, columns)
            X itself where nothing is computed.
        rows : array of int, shape (documents,), or None
            None for all of them.
        """
        if not self._plain or self.order is not None:
            return self.whole(), None
        if len(self._starts) == self.queries.n_queries:
            return self.X, None
        runs = self._runs(0, self.n_queries)
        return self.X, np.concatenate([np.arange(a, b) for a, b in runs])

    @cached_property
    def moments(self) -> list[Moments]:
        """What the spread of the columns is made of, of each block."""
        return self.map(self.block_moments, range(len(self)), self.n_jobs)

    def block_moments(self, number: int, *, centered: bool = True) -> Moments:
        """Return what the spread of the columns of a block is made of."""
        return Moments.of(self.block(number), self.pointers(number), centered=centered)

    @property
    def spread(self) -> FloatArray:
        """The standard deviation of each column within queries."""
        return spread_of(self.moments)

    def root_mean_squares(self) -> FloatArray:
        """Return the root of the mean square of each column."""
        return spread_of(self.each(squares_of_block, self.n_jobs))

    @property
    def largest(self) -> float:
        """The largest size of an entry."""
        return max(float(part.largest.max(initial=0.0)) for part in self.moments)

    # ---- inside --------------------------------------------------------------------------------

    @cached_property
    def _plain(self) -> bool:
        """Whether blocks are rows of X, but for their type and order in memory."""
        filled = self.filling.method != "error" and self.queries.has_missing
        return self.views == ("raw",) and not filled and not self.filling.indicators

    @property
    def _as_it_is(self) -> bool:
        good = self.X.dtype == np.float64 and self.X.flags.c_contiguous
        return good and self.order is None

    def _rows(self, first: int, last: int) -> slice:
        return slice(int(self.ptr[first]), int(self.ptr[last]))

    def _features(self, first: int, last: int) -> FloatArray:
        """Return the features of some consecutive queries."""
        if self._plain and self._as_it_is:
            runs = list(self._runs(first, last))
            if len(runs) == 1:
                return frozen(self.X[slice(*runs[0])])
        raw = self._raw(first, last)
        made = raw if self._plain else self._made(first, last, raw)
        if self.order is not None:
            out = self._buffer("sorted", len(raw), self.width)
            order = self.order[self._rows(first, last)] - self.ptr[first]
            made = np.take(made, order, axis=0, out=out, mode="clip")
        return frozen(made)

    def _runs(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Return the ranges of rows of X that some consecutive queries consist of."""
        starts = self._starts[first:last]
        ends = starts + np.diff(self.ptr[first : last + 1])
        new = np.flatnonzero(starts[1:] != ends[:-1]) + 1
        for a, b in pairwise([0, *new.tolist(), len(starts)]):
            yield int(starts[a]), int(ends[b - 1])

    def _buffer(self, name: str, rows: int, columns: int) -> FloatArray:
        """Return an array of this thread, which the next call with the same name overwrites."""
        found: FloatArray | None = getattr(self._own, name, None)
        if found is None or len(found) < rows:
            found = np.empty((max(rows, min(block_documents(columns), self.n_documents)), columns))
            setattr(self._own, name, found)
        return found[:rows]

    def _raw(self, first: int, last: int) -> FloatArray:
        """Return rows of X, as doubles in a buffer."""
        own = self._rows(first, last)
        raw = self._buffer("raw", own.stop - own.start, self.X.shape[1])
        at = 0
        for a, b in self._runs(first, last):
            np.copyto(raw[at : at + b - a], self.X[a:b])
            at += b - a
        return raw

    def _read_ahead(self, number: int) -> None:
        """Ask for the features of blocks that come some time after this one."""
        numbers, places = self._coming
        at = places.get(number, 0)
        for one in numbers[1 : AHEAD + 1] if at == 0 else numbers[at + AHEAD : at + AHEAD + 1]:
            for rows in self._runs(*self.cuts[one : one + 2]):
                self._ahead(*rows)

    def _fill(self, raw: FloatArray, ptr: IntArray) -> None:
        """Replace missing values of a block in place."""
        if self.filling.method != "error" and self.queries.has_missing:
            raw[:] = fill(raw, ptr, self.filling.method)

    def _made(self, first: int, last: int, raw: FloatArray) -> FloatArray:
        """Fill missing values, scale, and put the indicators behind all other columns."""
        ptr, width = self.ptr[first : last + 1] - self.ptr[first], raw.shape[1]
        codes = None if self._codes is None else self._codes[self._rows(first, last)]
        marks = np.isnan(raw[:, list(self.filling.indicators)])
        self._fill(raw, ptr)
        if len(self.views) == 1 and not self.filling.indicators:
            return _scaled(raw, ptr, self.views[0], codes, raw)
        made = self._buffer("made", len(raw), self.width)
        for at, view in enumerate(self.views):
            columns = slice(at * width, (at + 1) * width)
            one = raw if view == "raw" else self._buffer("view", len(raw), width)
            made[:, columns] = _scaled(raw, ptr, view, codes, one)
        made[:, len(self.views) * width :] = marks
        return made

    def _rank_codes(self) -> NDArray[Any]:
        """Return twice the rank of each feature in its query, in 16 bits where that is enough.

        To rank anew at every pass over the data would take far longer than all the rest.
        """
        longest = int(np.diff(self.ptr).max())
        small = np.uint16 if longest <= LARGEST_CODE else np.uint32  # twice a rank, exactly
        codes = np.empty((self.n_documents, self.X.shape[1]), dtype=small)

        def work(number: int) -> None:
            ptr, raw = self.pointers(number), self._raw(*self.cuts[number : number + 2])
            self._fill(raw, ptr)
            sizes = np.diff(ptr)
            ranks = normalize_rows(raw, ptr, "rank", np.empty(raw.shape))
            ranks *= np.repeat(2.0 * np.maximum(1, sizes - 1), sizes)[:, None]
            codes[self.rows(number)] = np.rint(ranks)

        map_blocks(work, len(self), self.n_jobs)
        return codes

    def _sort(self) -> None:
        """Put documents into their canonical order."""
        factors = inverse(self.spread)

        def work(number: int) -> IntArray:
            inputs = self.labels[self.rows(number)], self.pointers(number), factors
            return order_by(self.block(number), *inputs)

        orders = map_blocks(work, len(self), self.n_jobs)
        self._kept.clear()
        labels = [self.labels[self.rows(k)][order] for k, order in enumerate(orders)]
        at = [self.rows(number).start for number in range(len(self))]
        every = [order + start for order, start in zip(orders, at, strict=True)]
        self.labels, self.order = np.concatenate(labels), np.concatenate(every)


def _scaled(
    raw: FloatArray, ptr: IntArray, view: str, codes: NDArray[Any] | None, out: FloatArray
) -> FloatArray:
    """Scale features within queries, or make them of doubled ranks, into `out`."""
    if view != "rank" or codes is None:
        return normalize_rows(raw, ptr, view, out)
    sizes = np.diff(ptr)
    np.multiply(codes, 0.5, out=out)
    out /= np.repeat(np.maximum(1, sizes - 1), sizes)[:, None]
    return out


def squares_of_block(table: Table, number: int) -> Moments:
    """Return what the root of the mean square of each column is made of, of a block."""
    return table.block_moments(number, centered=False)
