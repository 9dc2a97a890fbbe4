"""A store in the making: a folder beside its place, with a journal, that is moved there whole.

Blocks of documents are appended to files, and each is entered into the journal with its checksums.
A conversion that was killed goes on behind the last block whose bytes are all there.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from permdist import __version__
from permdist._files import parse_json, write_atomically
from permdist._parallel import pointers
from permdist.data.store import (
    CHECKSUMS,
    FORMAT,
    HEADER,
    VERSION,
    as_bytes,
    checksum_of,
    digest,
    is_store,
)
from permdist.data.store_blocks import HEAD, Part, npy_head, stored_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import NDArray

_RAW = ("X", "y", "sizes", "qids", "doc_ids")
FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


class Draft:
    """The folder in which a store is written until it is complete.

    Parameters
    ----------
    path : Path
        Where the store shall be.
    identity : dict
        What the conversion depends on, as values of JSON; one of another identity is not continued.
    overwrite : bool
        Whether a store that is there already is replaced.
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
        self.path = path
        self.identity = identity
        self.folder = path.with_name(f".{path.name}.part")
        self.files: dict[str, BinaryIO] = {}
        self.entries: list[dict[str, Any]] = []
        self.next = 0  # the number of the next block; below the number of entries while replaying
        self.began: dict[str, int] = {}  # the block in which each query began

    def __enter__(self) -> Draft:
        self.folder.mkdir(exist_ok=True)
        self.journal = open(self.folder / "journal", "a+b")
        self._lock()
        try:
            self._read_journal()
            for name in _RAW:
                self.files[name] = open(self._file(name), "r+b")
            self._keep_whole_blocks()
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
        if isinstance(error, Exception):
            self.discard()
        else:
            self.close()
        if isinstance(error, OSError) and error.errno is not None and error.errno in FULL:
            if error.filename == str(self.path):
                return
            text = f"{os.strerror(error.errno)}; nothing was written"
            raise OSError(error.errno, text, str(self.path)) from error

    @property
    def n_documents(self) -> int:
        """The number of documents that have been written."""
        return sum(entry["documents"] for entry in self.entries)

    @property
    def position(self) -> dict[str, Any] | None:
        """Where the source goes on; None at its beginning, or where it does not know."""
        return self.entries[-1]["position"] if self.entries else None

    def skip(self) -> None:
        """Go on behind the blocks that are there, without comparing them with the source."""
        self.next = len(self.entries)

    def need_room(self, n_bytes: float) -> None:
        """Refuse to go on if the disk has no room for so many bytes."""
        free = shutil.disk_usage(self.folder).free
        if n_bytes > free:
            text = f"expected about {n_bytes:,.0f} bytes of free disk space, got {free:,}"
            raise OSError(errno.ENOSPC, text, str(self.path))

    def add(self, part: Part) -> None:
        """Append a block, unless it is there already from an earlier attempt."""
        if self.next < len(self.entries):
            if self.entries[self.next]["sha256"] == part.entry["sha256"]:
                self.next += 1
                return
            self._cut(self.next)
        self._check_queries(part)
        for name, array in part.arrays.items():
            self.files[name].write(as_bytes(array))
        for file in self.files.values():
            file.flush()
        self.journal.write(json.dumps(part.entry).encode() + b"\n")
        self.journal.flush()
        self.entries.append(part.entry)
        self.next += 1

    def finish(self, feature_names: tuple[str, ...] | None, sources: list[str]) -> None:
        """Complete the files of the store, and move it to its place.

        Parameters
        ----------
        feature_names : tuple of str or None
        sources : list of str
            Names of the files that the store was made from, for its header.
        """
        self._cut(self.next)
        if not self.entries:
            raise ValueError(f"{self.path}: expected at least one document, the source has none")
        store = self.folder / "store"
        for file in store.iterdir():
            if file.name not in ("X.npy", "y.npy"):  # of an earlier attempt
                file.unlink()
        width = max(entry["features"] for entry in self.entries)
        dtype = self.entries[0]["types"]["X"]
        arrays = {"X": (dtype, (self.n_documents, width)), "y": ("<i8", (self.n_documents,))}
        sums = [{name: entry["sha256"][name] for name in arrays} for entry in self.entries]
        wide = any(entry["features"] < width for entry in self.entries)
        if wide:
            self.need_room(float(np.dtype(dtype).itemsize) * self.n_documents * width)
            self._rewrite("X", *arrays["X"], sums, lambda rows: _widen(rows, width))
        self._write_ids(arrays, sums)
        self._write_pointers(arrays, sums)
        self._write_header(store, arrays, sums, feature_names, sources)
        for name, (kind, shape) in list(arrays.items())[:2]:
            self.files[name].seek(0)
            self.files[name].write(npy_head(kind, shape))
            self.files[name].close()
        if wide:
            os.replace(self.folder / "X.npy", store / "X.npy")
        self._publish(store)

    # ---- the journal ---------------------------------------------------------------------------

    def _file(self, name: str) -> Path:
        """Return where the bytes of the blocks are collected."""
        return self.folder / (f"store/{name}.npy" if name in ("X", "y") else name)

    def _lock(self) -> None:
        """Refuse a folder in which another process is writing; it ends with that process."""
        try:
            import fcntl
        except ImportError:  # not on this system: two conversions to one place are not noticed
            return
        try:
            fcntl.flock(self.journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.journal.close()
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            raise OSError(f"{self.path}: another process is writing this store") from None

    def _read_journal(self) -> None:
        """Read what an earlier attempt has done, or begin anew."""
        wanted = json.loads(json.dumps({"format": FORMAT, "version": VERSION, **self.identity}))
        self.journal.seek(0)
        lines = self.journal.read().split(b"\n")[:-1]  # what follows the last newline was cut off
        with contextlib.suppress(ValueError):
            if lines and parse_json(lines[0]) == wanted:
                for line in lines[1:]:
                    self.entries.append(parse_json(line))
        if not self.entries or not all(self._file(name).is_file() for name in _RAW):
            self.entries = []
            shutil.rmtree(self.folder / "store", ignore_errors=True)
            (self.folder / "store").mkdir()
            self.journal.truncate(0)
            self.journal.write(json.dumps(wanted).encode() + b"\n")
            self.journal.flush()
            for name in _RAW:
                with open(self._file(name), "wb") as file:
                    file.write(bytes(HEAD if name in ("X", "y") else 0))

    def _keep_whole_blocks(self) -> None:
        """Keep the blocks up to the first whose bytes are not those of the journal."""
        whole = len(self.entries)
        for name in _RAW:
            for number, rows in self._blocks(name):
                if number >= whole:
                    break
                if digest(rows) != self.entries[number]["sha256"].get(name, digest(rows)):
                    whole = number
                    break
        self._cut(whole)
        for number, rows in self._blocks("qids"):
            self.began.update(dict.fromkeys(map(str, rows.tolist()), number))

    def _cut(self, number: int) -> None:
        """Forget the blocks from this one on."""
        if number < len(self.entries):
            self.began = {qid: block for qid, block in self.began.items() if block < number}
            del self.entries[number:]
            self.journal.seek(0)
            kept = self.journal.read().split(b"\n")[: number + 1]
            self.journal.truncate(0)
            self.journal.write(b"\n".join(kept) + b"\n")
            self.journal.flush()
        for name, file in self.files.items():
            file.truncate(self._size(name))
            file.seek(0, os.SEEK_END)

    def _size(self, name: str) -> int:
        """Return the bytes that the blocks take in a file."""
        head = HEAD if name in ("X", "y") else 0
        return head + sum(stored_bytes(name, entry) for entry in self.entries)

    def _blocks(self, name: str) -> Iterator[tuple[int, NDArray[Any]]]:
        """Read what the blocks have in a file; short where the file is."""
        with open(self._file(name), "rb") as file:
            file.seek(HEAD if name in ("X", "y") else 0)
            for number, entry in enumerate(self.entries):
                if name not in entry["types"]:
                    continue
                raw = file.read(stored_bytes(name, entry))
                dtype = np.dtype(entry["types"][name])
                rows = np.frombuffer(raw[: len(raw) // dtype.itemsize * dtype.itemsize], dtype)
                if name == "X" and rows.size == entry["documents"] * entry["features"]:
                    rows = rows.reshape(entry["documents"], entry["features"])
                yield number, rows

    def _check_queries(self, part: Part) -> None:
        """Refuse a query that began in an earlier block, or that begins twice in this one."""
        block, number = part.block, len(self.entries)
        starts, known = pointers(block.sizes), len(self.began)
        for query, qid in enumerate(map(str, block.qids.tolist())):
            before = self.began.setdefault(qid, number)
            if len(self.began) == known + query + 1:
                continue
            source = block.source if before == number else self.entries[before]["source"]
            if source != block.source:
                reason = f"is in {source} too; a query must not be split over two files"
            else:
                reason = "starts again after other queries; its documents must stand together"
            raise ValueError(f"{block.place(int(starts[query]))}: query {qid} {reason}")

    # ---- the files of the store ----------------------------------------------------------------

    def _write_ids(self, arrays: dict[str, Any], sums: list[dict[str, str]]) -> None:
        """Write ids of queries and documents, in one type for all blocks."""
        kinds = {np.dtype(entry["types"]["qids"]).kind for entry in self.entries}
        dtype = "<i8" if kinds == {"i"} else self._text_type("qids")
        shape = (sum(entry["queries"] for entry in self.entries),)
        arrays["qids"] = (dtype, shape)
        self._rewrite("qids", dtype, shape, sums, lambda rows: rows.astype(dtype))
        if any("doc_ids" in entry["types"] for entry in self.entries):
            text = self._text_type("doc_ids")
            self.need_room(float(np.dtype(text).itemsize) * self.n_documents)
            shape = (self.n_documents,)
            arrays["doc_ids"] = (text, shape)
            self._rewrite("doc_ids", text, shape, sums, lambda rows: rows.astype(text))

    def _text_type(self, name: str) -> str:
        """Return the type of text that the ids of all blocks fit into."""
        types = [np.dtype(entry["types"].get(name, "<U1")) for entry in self.entries]
        return f"<U{max(20 if one.kind == 'i' else one.itemsize // 4 for one in types)}"

    def _write_pointers(self, arrays: dict[str, Any], sums: list[dict[str, str]]) -> None:
        """Write where queries start."""
        ptr = pointers(np.concatenate([rows for _, rows in self._blocks("sizes")])).astype("<i8")
        arrays["ptr"] = ("<i8", ptr.shape)
        with open(self.folder / "store/ptr.npy", "wb") as file:
            file.write(npy_head("<i8", ptr.shape))
            file.write(as_bytes(ptr))
        query = 0
        for entry, own in zip(self.entries, sums, strict=True):
            own["ptr"] = digest(ptr[query + 1 : query + entry["queries"] + 1])
            query += entry["queries"]

    def _rewrite(
        self,
        name: str,
        dtype: str,
        shape: tuple[int, ...],
        sums: list[dict[str, str]],
        change: Callable[[NDArray[Any]], NDArray[Any]],
    ) -> None:
        """Write an array of the store from the blocks of a file, in another type or width."""
        place = self.folder if name == "X" else self.folder / "store"  # X.npy is still needed
        with open(place / f"{name}.npy", "wb") as file:
            file.write(npy_head(dtype, shape))
            blocks = self._blocks(name)
            for entry, own in zip(self.entries, sums, strict=True):
                if name in entry["types"]:
                    rows = change(next(blocks)[1])
                else:  # no document of this block has an id
                    rows = np.zeros(entry["documents"], dtype=dtype)
                own[name] = digest(rows)
                file.write(as_bytes(rows))

    def _write_header(
        self,
        store: Path,
        arrays: dict[str, Any],
        sums: list[dict[str, str]],
        feature_names: tuple[str, ...] | None,
        sources: list[str],
    ) -> None:
        pieces = [
            {"documents": entry["documents"], "queries": entry["queries"], "sha256": sums[number]}
            for number, entry in enumerate(self.entries)
        ]
        checksums = json.dumps({"pieces": pieces}, indent=1).encode()
        write_atomically(store / CHECKSUMS, [checksums])
        header: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "permdist": __version__,
            "sources": sources,
            "n_queries": arrays["qids"][1][0],
            "n_documents": self.n_documents,
            "n_features": arrays["X"][1][1],
            "has_missing": any(entry["missing"] for entry in self.entries),
            "feature_names": None if feature_names is None else list(feature_names),
            "arrays": {
                name: {
                    "dtype": dtype,
                    "shape": list(shape),
                    "bytes": HEAD + int(np.prod(shape)) * np.dtype(dtype).itemsize,
                }
                for name, (dtype, shape) in arrays.items()
            },
            "checksums": hashlib.sha256(checksums).hexdigest(),
        }
        header["checksum"] = checksum_of(header)
        write_atomically(store / HEADER, [json.dumps(header, indent=2).encode() + b"\n"])

    def _publish(self, store: Path) -> None:
        """Flush all files to disk, and move the folder to its place in one step."""
        for file in (*store.iterdir(), store):
            _flush(file)
        aside = None
        if self.path.exists():
            aside = self.folder / "old"
            os.rename(self.path, aside)
        try:
            os.rename(store, self.path)
        except OSError:
            if aside is not None:
                os.rename(aside, self.path)
            raise
        _flush(self.path.parent)
        self.discard()

    def discard(self) -> None:
        """Remove the folder and all that is in it."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        """Close the files; what is there is kept for the next attempt."""
        for file in (*self.files.values(), self.journal):
            with contextlib.suppress(OSError):
                file.close()


def _widen(rows: NDArray[Any], width: int) -> NDArray[Any]:
    """Add features that are 0."""
    result = np.zeros((len(rows), width), dtype=rows.dtype)
    result[:, : rows.shape[1]] = rows
    return result


def _flush(path: Path) -> None:
    """Flush a file or a folder to disk, where the system can."""
    with contextlib.suppress(PermissionError, IsADirectoryError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
