"""`write_store`: a collection from files, arrays or blocks to a store on disk."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from permdist._check import choice, count
from permdist._progress import progress_bar
from permdist.data.queries import Queries
from permdist.data.store import open_store
from permdist.data.store_blocks import Block, Part, Source, Task, blocks_of, prepare, stored_bytes
from permdist.data.store_draft import Draft
from permdist.data.store_readers import is_arrow, table_files, tabular
from permdist.data.store_tables import Columns, Frames
from permdist.data.store_text import TextFiles
from permdist.data.tables import column_names

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

DTYPES = ("float32", "float64")
NULLS = ("min", "zero", "error", "missing")


def write_store(
    source: Any,
    path: str | os.PathLike[str],
    *,
    dtype: str = "float32",
    n_features: int | None = None,
    null: str = "min",
    zero_based: bool = False,
    query_file: str | os.PathLike[str] | None = None,
    qid: str | None = None,
    label: str | None = None,
    doc_id: str | None = None,
    features: Sequence[str] | None = None,
    overwrite: bool = False,
    n_jobs: int = -1,
    progress: bool | Callable[[float, float], object] = False,
) -> Queries:
    r"""Write a collection to a folder from which `open_store` opens it in milliseconds.

    The source is streamed: a collection may be much larger than the memory. The store is made in
    a hidden folder ``.NAME.part`` next to its place and moved there when it is complete. A
    conversion that was killed or interrupted goes on where it was when it is started again; one
    that ends with an error leaves nothing.

    Parameters
    ----------
    source : path, paths, arrays, data frame, Arrow table, Queries or iterable of Queries
        Files of LETOR or SVMlight text, plain, ``.gz`` or ``.bz2``; tables in Parquet, Arrow IPC
        (``.arrow``, ``.feather``; both need pyarrow: ``pip install pyarrow``) or CSV
        files; several files are read in their order. Or a tuple of arrays ``(X, y, qid)``; a data
        frame of pandas; a table, a record batch reader or a dataset of pyarrow; `Queries`; or an
        iterable of `Queries`, of which only one at a time needs to be in memory. The documents of
        each query must stand together.
    path : path
        The folder to be made.
    dtype : {"float32", "float64"}
        The type of the features in the store. Values are rounded to it; those that do not fit are
        refused.
    n_features : int, optional
        The number of features of text files, where they may lack the last ones. Absent features
        are 0.
    null : {"min", "zero", "error", "missing"}
        What becomes of values written ``NULL`` in text, and of those that are missing in tables.
        See `load_letor`.
    zero_based : bool
        Whether the first feature of text files has number 0.
    query_file : path, optional
        The file with the sizes of the queries, for one text file without query ids. See
        `load_letor`. Such a file is read as a whole.
    qid, label, doc_id : str, optional
        The columns of a table that have the query ids, the labels and the document ids; by default
        those with the usual names (``qid`` or ``query_id``, ``label`` or ``relevance``, ``doc_id``
        and others). Document ids are optional.
    features : sequence of str, optional
        The columns of a table that are features; by default all others.
    overwrite : bool
        Whether to replace a store that is there already. Anything else is never replaced.
    n_jobs : int
        Number of threads that read text; -1 uses one per core.
    progress : bool or callable
        Whether to show a progress bar on the terminal, or a function that is called with the work
        done and the total, in bytes or documents; the total is NaN where it is not known.

    Returns
    -------
    Queries
        The store, opened.

    Raises
    ------
    ValueError
        With the file, the line or row, and the reason.
    OSError
        Where the disk has no room; this is checked before and during the conversion.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> text = "2 qid:1 1:0.5 2:1\n0 qid:1 1:0.25 2:0\n1 qid:2 1:3 2:4\n"
    >>> _ = (folder / "small.txt").write_text(text)
    >>> write_store(folder / "small.txt", folder / "small.store")
    Queries(2 queries, 3 documents, 2 features)
    """
    choice("dtype", dtype, DTYPES)
    choice("null", null, NULLS)
    if n_features is not None:
        count("n_features", n_features)
    if count("n_jobs", n_jobs, minimum=-1024) == 0:
        raise ValueError("n_jobs: expected a number of threads or -1, got 0")
    columns = Columns(qid, label, doc_id, None if features is None else tuple(features), null)
    text = {"n_features": n_features, "zero_based": zero_based, "query_file": query_file}
    reader = _source(source, columns, text)
    target = Path(path)
    identity = {"dtype": dtype, **reader.identity}
    with Draft(target, identity, overwrite=overwrite) as draft:
        _convert(draft, reader, dtype, n_jobs, progress)
    return open_store(target)


def _source(source: Any, columns: Columns, text: dict[str, Any]) -> Source:
    """Find out what the source is."""
    if isinstance(source, str | os.PathLike):
        source = [source]
    listed = isinstance(source, list | tuple) and len(source) > 0
    if listed and all(isinstance(one, str | os.PathLike) for one in source):
        files = table_files([Path(one) for one in source])
        if tabular(files):
            _refuse(text, "only for text files")
            return Frames.of_files(files, columns)
        _refuse(columns.names(), "only for tables")
        return TextFiles(files, null=columns.null, **text)
    _refuse(text, "only for text files")
    if is_arrow(source) or column_names(source) is not None:
        return Frames.of_table(source, columns)
    _refuse(columns.names(), "only for tables")
    if isinstance(source, Queries):
        return Collections([source], float(source.n_documents))
    if isinstance(source, tuple) and len(source) == 3 and not isinstance(source[0], Queries):
        X, y, ids = source
        missing = "allow" if columns.null == "missing" else "error"
        whole = Queries(X, y, ids, missing=missing)
        return Collections([whole], float(whole.n_documents))
    if not isinstance(source, Iterable) or hasattr(source, "dtype"):
        raise TypeError(
            "source: expected files, (X, y, qid), a data frame, Queries or an iterable of "
            f"Queries, got {type(source).__name__}"
        )
    return Collections(source, math.nan)


def _refuse(options: dict[str, Any], reason: str) -> None:
    for name, value in options.items():
        if value is not None and value is not False:
            raise ValueError(f"{name}: {reason}")


class Collections(Source):
    """Collections of queries in memory, one after the other.

    Parameters
    ----------
    parts : iterable of Queries
    total : float
        The number of documents; NaN if it is not known.
    """

    def __init__(self, parts: Iterable[Any], total: float) -> None:
        super().__init__([])
        self.parts, self.total = parts, total
        self.identity = {"kind": "queries"}

    def tasks(self, _position: dict[str, Any] | None) -> Generator[Task]:
        """Yield the blocks of all collections; they are in memory already."""
        done, width = 0, None
        for number, part in enumerate(self.parts):
            if not isinstance(part, Queries):
                raise TypeError(
                    f"source: expected Queries, got {type(part).__name__} at index {number}"
                )
            if width is None:
                width, self.feature_names = part.n_features, part.feature_names
            if part.n_features != width:
                raise ValueError(
                    f"source: expected {width} features as at index 0, got {part.n_features} at "
                    f"index {number}"
                )
            if part.feature_names != self.feature_names:
                raise ValueError(f"source: the features at index {number} have other names")
            for block, share in blocks_of(part, f"source[{number}]"):
                yield Task(partial(_given, block), done + share * part.n_documents)
            done += part.n_documents


def _given(block: Block) -> Block:
    return block


def _convert(
    draft: Draft,
    source: Source,
    dtype: str,
    n_jobs: int,
    progress: bool | Callable[[float, float], object],
) -> None:
    """Append all blocks of the source to the draft, and complete it."""
    position = None
    if source.jumps:
        position = draft.position
        for entry in draft.entries:
            source.note(entry)
        draft.skip()
    threads = n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)
    name = draft.path.name[:30]
    text = f"Continuing {name}" if draft.entries else f"Writing {name}"
    before: float | None = None
    with progress_bar(text, source.total, progress) as show, ThreadPoolExecutor(threads) as pool:
        waiting: deque[tuple[Future[Part], float]] = deque()

        def take() -> None:
            future, done = waiting.popleft()
            part = future.result()
            if part.entry["documents"]:
                source.note(part.entry)
                draft.add(part)
            show(done)

        tasks = source.tasks(position)
        try:
            for task in tasks:
                waiting.append((pool.submit(_run, task, dtype), task.done))
                if before is None:  # alone: it compiles, and tells how wide the others are
                    before = _check_room(draft, waiting[0][0].result(), task.done, source)
                    take()
                elif len(waiting) > threads:
                    take()
            while waiting:
                take()
        finally:
            tasks.close()
            for future, _ in waiting:
                future.cancel()
        source.end()
        draft.finish(source.feature_names, source.names)


def _run(task: Task, dtype: str) -> Part:
    return prepare(task.make(), dtype)


def _check_room(draft: Draft, part: Part, done: float, source: Source) -> float:
    """Estimate from the first block what all will take, and refuse a disk without room for it."""
    rate = sum(stored_bytes(name, part.entry) for name in part.arrays)
    if draft.entries:  # of an earlier attempt: they say more, and have their room
        written = sum(
            stored_bytes(name, entry) for entry in draft.entries for name in entry["types"]
        )
        draft.need_room(rate + written * (source.total / done - 1.0) if done else rate)
    elif done and not math.isnan(source.total):
        draft.need_room(rate * source.total / done)
    return done
