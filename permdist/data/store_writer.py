"""Write a store to a folder beside its place, then rename it.

The features of a block of queries are appended to ``X.npy``, and everything else about the block to
a journal, with its checksums. A conversion that was killed goes on behind the last block that is
whole in both. At the end the other arrays are written from the journal.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from permdist import __version__
from permdist._check import choice, count
from permdist._files import flush_folder, write_atomically
from permdist._journal import Journal, pack_record, unpack_record
from permdist._progress import progress_bar
from permdist.data.queries import Queries
from permdist.data.store import (
    CHECKSUMS,
    FORMAT,
    HEADER,
    VERSION,
    as_bytes,
    checksum_of,
    digest,
    is_store,
    open_store,
)
from permdist.data.store_sources import Block, Collections, Source, Task, TextFiles
from permdist.data.store_tables import (
    Columns,
    Frames,
    is_arrow,
    table_files,
    table_of,
    table_of_file,
    tabular,
)
from permdist.data.tables import column_names

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from types import TracebackType

    from numpy.typing import NDArray

HEAD = 128  # bytes of the header of a .npy file
DTYPES = ("float32", "float64")
NULLS = ("min", "zero", "error", "missing")
FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


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
    threads = n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)
    with StoreWriter(target, {"dtype": dtype, **reader.identity}, overwrite=overwrite) as writer:
        word, position = "Continuing" if len(writer.journal) else "Writing", None
        if reader.jumps:
            for facts in writer.resume():
                reader.note(facts)
                position = facts["position"]
        parts = _parts(reader.tasks(position), dtype, threads)
        first = True
        with (
            progress_bar(f"{word} {target.name[:30]}", reader.total, progress) as show,
            contextlib.closing(parts),
        ):
            for part, done in parts:
                if first and done:
                    written = writer.n_bytes + part.facts["bytes"]
                    writer.check_room(written * reader.total / done - writer.kept)
                first = False
                if part.facts["documents"]:
                    reader.note(part.facts)
                    writer.append(part)
                show(done)
        reader.end()
        writer.finish(reader.feature_names, reader.names)
    return open_store(target)


def _source(source: Any, columns: Columns, text: dict[str, Any]) -> Source:
    """Find out what the source is."""
    named = columns._replace(null=None)._asdict()  # type: ignore[arg-type]
    if isinstance(source, str | os.PathLike):
        source = [source]
    listed = isinstance(source, list | tuple) and len(source) > 0
    if listed and all(isinstance(one, str | os.PathLike) for one in source):
        files = table_files([Path(one) for one in source])
        if tabular(files):
            _check_absent(text, "only for text files")
            return Frames([table_of_file(file) for file in files], columns, files)
        _check_absent(named, "only for tables")
        return TextFiles(files, columns.null, **text)
    _check_absent(text, "only for text files")
    if is_arrow(source) or column_names(source) is not None:
        return Frames([table_of(source)], columns)
    _check_absent(named, "only for tables")
    if isinstance(source, tuple) and len(source) == 3 and not isinstance(source[0], Queries):
        source = Queries(*source, missing="allow" if columns.null == "missing" else "error")
    if isinstance(source, Queries):
        return Collections([source], float(source.n_documents))
    if not isinstance(source, Iterable) or hasattr(source, "dtype"):
        raise TypeError(
            "source: expected files, (X, y, qid), a data frame, Queries or an iterable of "
            f"Queries, got {type(source).__name__}"
        )
    return Collections(source)


def _check_absent(options: dict[str, Any], reason: str) -> None:
    for name, value in options.items():
        if value is not None and value is not False:
            raise ValueError(f"{name}: {reason}")


# ---- blocks as they are written ------------------------------------------------------------------


class Part(NamedTuple):
    """A block as it is written.

    Attributes
    ----------
    block : Block
    X : array of float
        The features, in the type of the store.
    facts : dict
        What is known of the block later; values of JSON.
    record : bytes
        The facts and all arrays but X, for the journal.
    """

    block: Block
    X: NDArray[Any]
    facts: dict[str, Any]
    record: bytes


def _parts(tasks: Generator[Task], dtype: str, threads: int) -> Generator[tuple[Part, float]]:
    """Yield the blocks, which threads make, in their order, and how much work is done with each.

    The first is made alone: it compiles, and tells how wide the others are.
    """
    waiting: deque[tuple[Future[Part], float]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for number, task in enumerate(tasks):
                waiting.append((pool.submit(_prepare, task, dtype), task.done))
                if number == 0 or len(waiting) > threads:
                    future, done = waiting.popleft()
                    yield future.result(), done
            while waiting:
                future, done = waiting.popleft()
                yield future.result(), done
        finally:
            tasks.close()
            for future, _ in waiting:
                future.cancel()


def _prepare(task: Task, dtype: str) -> Part:
    """Make a block, convert it to what is written, and compute its checksum; in any thread."""
    block = task.make()
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray(block.X, dtype=np.dtype(dtype).newbyteorder("<"))
    lowest, highest = (X.min(), X.max()) if X.size else (0.0, 0.0)
    missing = bool(np.isnan(lowest))
    if missing:
        lowest, highest = np.nanmin(X, initial=0.0), np.nanmax(X, initial=0.0)
    if np.isinf(lowest) or np.isinf(highest):
        row, column = np.argwhere(np.isinf(X))[0].tolist()
        if np.isinf(block.X[row, column]):
            raise ValueError(f"{block.place(row)}: expected finite numbers, got an infinite one")
        raise ValueError(
            f"{block.place(row)}: expected values that fit into {dtype}, got "
            f"{block.X[row, column]:g} for feature {column + 1}; dtype='float64', on the command "
            "line --dtype float64, has room for it"
        )
    arrays = {"y": block.y.astype("<i8"), "sizes": block.sizes.astype("<i8")}
    arrays["qids"] = _ids(block.qids)
    if block.doc_ids is not None:
        arrays["doc_ids"] = _ids(block.doc_ids.astype(str))
    facts = {
        "documents": len(block.y),
        "queries": len(block.sizes),
        "features": X.shape[1],
        "missing": missing,
        "types": {name: array.dtype.str for name, array in arrays.items()},
        "bytes": X.nbytes + 2 * sum(array.nbytes for array in arrays.values()),  # journal and store
        "X": digest(X),
        "source": block.source,
        "position": block.position,
        **block.facts,
    }
    return Part(block, X, facts, pack_record(facts, arrays))


def _ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Return ids as little-endian whole numbers or texts."""
    if ids.dtype.kind == "u" and ids.size and int(ids.max()) >= 2**63:
        ids = ids.astype(str)
    if ids.dtype.kind in "iu":
        return ids.astype("<i8")
    texts = ids.astype(str)
    return texts.astype(f"<U{max(1, texts.dtype.itemsize // 4)}")


# ---- the folder ----------------------------------------------------------------------------------


class StoreWriter:
    """Write a store to a temporary folder, then rename it.

    Parameters
    ----------
    path : Path
        Where the store shall be.
    identity : dict
        What the conversion depends on, as values of JSON; one of another identity is not continued.
    overwrite : bool
        Whether a store that is there already is replaced.

    Attributes
    ----------
    journal : Journal
        A record for each block that is there, perhaps from an earlier attempt.
    blocks : list of dict
        The facts of the blocks that belong to the store so far.
    n_bytes, kept : int
        What these blocks take, and what the blocks of earlier attempts take, in bytes.
    """

    def __init__(self, path: Path, identity: dict[str, Any], *, overwrite: bool = False) -> None:
        if path.name in ("", ".."):
            raise ValueError(f"{path}: expected the name of a folder to be made")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"{path.parent}: no such directory")
        if path.exists() or path.is_symlink():
            if not overwrite:
                raise FileExistsError(
                    f"{path}: exists already; overwrite=True, on the command line --overwrite, "
                    "replaces a store"
                )
            if not is_store(path) or path.is_symlink():
                raise FileExistsError(f"{path}: exists already, and is not a store: not replaced")
        self.path, self.folder = path, path.with_name(f".{path.name}.part")
        self.store = self.folder / "store"
        self.dtype = np.dtype(identity["dtype"]).newbyteorder("<")
        self.header = {"format": FORMAT, "version": VERSION, **identity}
        self.blocks: list[dict[str, Any]] = []
        self.n_bytes = self.kept = 0
        self._end = HEAD  # of the features of these blocks
        self._files = contextlib.ExitStack()
        self._began: dict[str, str] = {}  # the file in which each query began

    def __enter__(self) -> StoreWriter:
        self.folder.mkdir(exist_ok=True)
        try:
            journal = Journal(self.folder / "blocks", str(self.path))
        except ValueError as error:
            raise OSError(f"{self.path}: another process is writing this store") from error
        self.journal = self._files.enter_context(journal)
        try:
            self._recover()
        except Exception as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Keep what is there after an interruption, and nothing after an error."""
        with contextlib.suppress(OSError):
            self._files.close()
        if error is None or isinstance(error, Exception):
            shutil.rmtree(self.folder, ignore_errors=True)
        if isinstance(error, OSError) and error.errno is not None and error.errno in FULL:
            if error.filename == str(self.path):
                return
            text = f"{os.strerror(error.errno)}; nothing was written"
            raise OSError(error.errno, text, str(self.path)) from error

    def _recover(self) -> None:
        """Keep the blocks of an earlier attempt up to the first that is not whole."""
        file = self.store / "X.npy"
        wanted = json.loads(json.dumps(self.header))
        fresh = self.journal.header != wanted or not file.is_file()
        if fresh:
            shutil.rmtree(self.store, ignore_errors=True)
            self.store.mkdir()
        self._X: BinaryIO = open(file, "w+b" if fresh else "r+b")  # noqa: SIM115
        self._files.enter_context(self._X)
        if fresh:
            self.journal.begin(wanted)
        whole = 0
        self._X.seek(HEAD)
        for record in self.journal:
            facts, _ = unpack_record(record)
            if hashlib.sha256(self._X.read(self._size(facts))).hexdigest() != facts["X"]:
                break
            whole += 1
            self.kept += facts["bytes"]
        self.journal.keep(whole)
        self._earlier = iter(self.journal)

    def _size(self, facts: dict[str, Any]) -> int:
        """Return the bytes of the features of a block."""
        return int(facts["documents"] * facts["features"] * self.dtype.itemsize)

    def resume(self) -> Iterator[dict[str, Any]]:
        """Go on behind the blocks that are there, without a look at the source; yield the facts."""
        for record in self.journal:
            facts, arrays = unpack_record(record)
            self._began.update(dict.fromkeys(map(str, arrays["qids"].tolist()), facts["source"]))
            self._count(facts)
            yield facts

    def check_room(self, n_bytes: float) -> None:
        """Refuse to go on if the disk has no room for so many bytes."""
        free = shutil.disk_usage(self.folder).free
        if n_bytes > free:
            text = f"expected about {n_bytes:,.0f} bytes of free disk space, got {free:,}"
            raise OSError(errno.ENOSPC, text, str(self.path))

    def append(self, part: Part) -> None:
        """Append a block, unless it is there already from an earlier attempt."""
        number, block = len(self.blocks), part.block
        for query, qid in enumerate(map(str, block.qids.tolist())):
            if qid in self._began:
                before = self._began[qid]
                reason = "starts again after other queries; its documents must stand together"
                if before != block.source:
                    reason = f"is in {before} too; a query must not be split over two files"
                row = int(block.sizes[:query].sum())
                raise ValueError(f"{block.place(row)}: query {qid} {reason}")
            self._began[qid] = block.source
        if number == len(self.journal) or next(self._earlier) != part.record:
            if number < len(self.journal):
                self.journal.keep(number)
            self._X.seek(self._end)
            self._X.write(as_bytes(part.X))
            self._X.flush()
            self.journal.append(part.record)
        self._count(part.facts)

    def _count(self, facts: dict[str, Any]) -> None:
        self.blocks.append(facts)
        self.n_bytes += facts["bytes"]
        self._end += self._size(facts)

    # ---- the end ---------------------------------------------------------------------------------

    def finish(self, feature_names: tuple[str, ...] | None, sources: list[str]) -> None:
        """Complete the files of the store, and move it to its place.

        Parameters
        ----------
        feature_names : tuple of str or None
        sources : list of str
            Names of the files that the store was made from, for its header.
        """
        if not self.blocks:
            raise ValueError(f"{self.path}: expected at least one document, the source has none")
        self.journal.keep(len(self.blocks))
        self._X.truncate(self._end)
        for file in self.store.iterdir():
            if file.name != "X.npy":  # of an earlier attempt
                file.unlink()
        layout = self._layout()
        checksums = json.dumps({"pieces": self._write_arrays(layout)}, indent=1).encode()
        write_atomically(self.store / CHECKSUMS, [checksums])
        header: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "permdist": __version__,
            "sources": sources,
            "n_queries": layout["qids"][1][0],
            "n_documents": layout["X"][1][0],
            "n_features": layout["X"][1][1],
            "has_missing": any(facts["missing"] for facts in self.blocks),
            "feature_names": None if feature_names is None else list(feature_names),
            "arrays": {
                name: {
                    "dtype": dtype.str,
                    "shape": list(shape),
                    "bytes": HEAD + int(np.prod(shape)) * dtype.itemsize,
                }
                for name, (dtype, shape) in layout.items()
            },
            "checksums": hashlib.sha256(checksums).hexdigest(),
        }
        header["checksum"] = checksum_of(header)
        write_atomically(self.store / HEADER, [json.dumps(header, indent=2).encode() + b"\n"])
        self._publish()

    def _layout(self) -> dict[str, Any]:
        """Return types and shapes of the arrays; ids of all blocks get the same type."""
        n_documents, n_queries = (
            sum(facts[name] for facts in self.blocks) for name in ("documents", "queries")
        )
        width = max(facts["features"] for facts in self.blocks)
        whole = np.dtype("<i8")
        layout: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        layout["X"] = self.dtype, (n_documents, width)
        layout["y"] = whole, (n_documents,)
        layout["ptr"] = whole, (n_queries + 1,)
        for name, shape in (("qids", (n_queries,)), ("doc_ids", (n_documents,))):
            types = [facts["types"][name] for facts in self.blocks if name in facts["types"]]
            kinds = np.array([np.dtype(one).kind for one in types])
            if len(kinds) and (kinds == "i").all():
                layout[name] = whole, shape
            elif len(kinds):
                lengths = [20 if one == whole.str else np.dtype(one).itemsize // 4 for one in types]
                layout[name] = np.dtype(f"<U{max(lengths)}"), shape
        return layout

    def _write_arrays(self, layout: dict[str, Any]) -> list[dict[str, Any]]:
        """Write all arrays; return the checksums of the blocks.

        X is there already but for its head, unless there are blocks with fewer features.
        """
        width, last = layout["X"][1][1], 0
        wide = any(facts["features"] < width for facts in self.blocks)
        new = {name: kind for name, kind in layout.items() if name != "X" or wide}
        self.check_room(sum(float(np.prod(shape)) * one.itemsize for one, shape in new.values()))
        pieces = []
        with contextlib.ExitStack() as stack:
            files: dict[str, BinaryIO] = {}
            for name, (dtype, shape) in new.items():
                folder = self.folder if name == "X" else self.store
                files[name] = stack.enter_context(open(folder / f"{name}.npy", "wb"))
                files[name].write(npy_head(dtype.str, shape))
            files["ptr"].write(bytes(8))
            self._X.seek(HEAD)
            for record in self.journal:
                facts, arrays = unpack_record(record)
                arrays["ptr"] = last + np.cumsum(arrays["sizes"])
                last = int(arrays["ptr"][-1])
                if "doc_ids" in files and "doc_ids" not in arrays:
                    arrays["doc_ids"] = np.zeros(facts["documents"], "<U1")
                if wide:
                    narrow = np.frombuffer(self._X.read(self._size(facts)), self.dtype)
                    arrays["X"] = np.zeros((facts["documents"], width), self.dtype)
                    arrays["X"][:, : facts["features"]] = narrow.reshape(len(arrays["X"]), -1)
                sums = {"X": facts["X"]}
                for name, file in files.items():
                    rows = arrays[name].astype(new[name][0])
                    file.write(as_bytes(rows))
                    sums[name] = digest(rows)
                sizes = {name: facts[name] for name in ("documents", "queries")}
                pieces.append({**sizes, "sha256": sums})
            self._X.seek(0)
            self._X.write(npy_head(self.dtype.str, layout["X"][1]))
            for file in (*files.values(), self._X):
                file.flush()
                os.fsync(file.fileno())
        if wide:
            os.replace(self.folder / "X.npy", self.store / "X.npy")
        return pieces

    def _publish(self) -> None:
        """Move the folder to its place in one step."""
        flush_folder(str(self.store))
        aside = self.folder / "old"
        replaced = self.path.exists()
        if replaced:
            os.rename(self.path, aside)
        try:
            os.rename(self.store, self.path)
        except OSError:
            if replaced:
                os.rename(aside, self.path)
            raise
        flush_folder(str(self.path.parent))


def npy_head(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of a .npy file, always of the same length.

    Parameters
    ----------
    dtype : str
        Such as ``"<f4"``.
    shape : tuple of int

    Examples
    --------
    >>> len(npy_head("<f4", (3, 2)))
    128
    """
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    head = b"\x93NUMPY\x01\x00" + (HEAD - 10).to_bytes(2, "little")
    return head + text.ljust(HEAD - 11) + b"\n"
