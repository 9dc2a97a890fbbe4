"""Blocks of whole queries, and the bytes that a store keeps of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist.data.normalize import pieces_of
from permdist.data.store import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from permdist._typing import FloatArray, IntArray
    from permdist.data.queries import Queries

HEAD = 128  # bytes of the header of a .npy file
BLOCK = 2**24  # bytes of features that are written at a time


class Block(NamedTuple):
    """Whole queries, to be appended to a store.

    Attributes
    ----------
    X : array of float, shape (documents, features)
    y : array of int, shape (documents,)
    qids : array, shape (queries,)
        Whole numbers or texts.
    sizes : array of int, shape (queries,)
    doc_ids : array of str or None
    place : callable
        Returns the place of a document in the source, for messages.
    source : str
        The file that the block comes from, for messages.
    position : dict, optional
        Where the source goes on behind the block; values of JSON.
    facts : dict, optional
        What else the source wants to know of the block later; values of JSON.
    """

    X: FloatArray
    y: IntArray
    qids: NDArray[Any]
    sizes: IntArray
    doc_ids: NDArray[Any] | None
    place: Callable[[int], str]
    source: str
    position: dict[str, Any] | None = None
    facts: dict[str, Any] | None = None


class Task(NamedTuple):
    """A function that makes a block, and how much of the source's work is done with it."""

    make: Callable[[], Block]
    done: float


class Source(ABC):
    """What a store is made from.

    Parameters
    ----------
    names : list of str
        The files, for the header of the store.

    Attributes
    ----------
    jumps : bool
        Whether `tasks` can go on at the position of a block. Otherwise it begins again, and blocks
        that are there already are recognized by their checksums.
    identity : dict
        What makes another attempt the same conversion; values of JSON.
    total : float
        The amount of work, in the unit of `Task.done`; NaN if it is not known.
    feature_names : tuple of str or None
        Known when the first block is.
    """

    jumps = False

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.identity: dict[str, Any] = {}
        self.total = float("nan")
        self.feature_names: tuple[str, ...] | None = None

    @abstractmethod
    def tasks(self, _position: dict[str, Any] | None) -> Generator[Task]:
        """Yield functions that make one block each; several may run at the same time."""

    def note(self, entry: dict[str, Any]) -> None:  # noqa: B027
        """Take notice of a block's entry in the journal, in their order."""

    def end(self) -> None:  # noqa: B027
        """Check what can be checked when all has been read."""


class Part(NamedTuple):
    """A block as it is written: arrays in their final types, and its entry in the journal."""

    block: Block
    arrays: dict[str, NDArray[Any]]
    entry: dict[str, Any]


def prepare(block: Block, dtype: str) -> Part:
    """Convert a block to what is written, and compute its checksums; safe in any thread.

    Parameters
    ----------
    block : Block
    dtype : {"float32", "float64"}
        The type of the features.
    """
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray(block.X, dtype=np.dtype(dtype).newbyteorder("<"))
    lowest, highest = (X.min(), X.max()) if X.size else (0.0, 0.0)
    missing = bool(np.isnan(lowest))
    if missing:
        lowest, highest = np.nanmin(X, initial=0.0), np.nanmax(X, initial=0.0)
    if np.isinf(lowest) or np.isinf(highest):
        row, column = np.argwhere(np.isinf(X))[0].tolist()
        raise ValueError(
            f"{block.place(row)}: expected values that fit into {dtype}, got "
            f"{block.X[row, column]:g} for feature {column + 1}; dtype='float64', on the command "
            "line --dtype float64, has room for it"
        )
    arrays: dict[str, NDArray[Any]] = {
        "X": X,
        "y": np.ascontiguousarray(block.y, dtype="<i8"),
        "sizes": np.ascontiguousarray(block.sizes, dtype="<i8"),
        "qids": _ids(block.qids),
    }
    if block.doc_ids is not None:
        arrays["doc_ids"] = _ids(block.doc_ids.astype(str))
    entry = {
        "documents": len(block.y),
        "queries": len(block.sizes),
        "features": X.shape[1],
        "missing": missing,
        "types": {name: array.dtype.str for name, array in arrays.items()},
        "sha256": {name: digest(array) for name, array in arrays.items()},
        "source": block.source,
        "position": block.position,
        "facts": block.facts,
    }
    return Part(block, arrays, entry)


def _ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Return ids as little-endian whole numbers or texts."""
    if ids.dtype.kind == "u" and ids.size and int(ids.max()) >= 2**63:
        ids = ids.astype(str)
    if ids.dtype.kind in "iu":
        return np.ascontiguousarray(ids, dtype="<i8")
    texts = ids.astype(str)
    return np.ascontiguousarray(texts, dtype=f"<U{max(1, texts.dtype.itemsize // 4)}")


def blocks_of(queries: Queries, source: str) -> Iterator[tuple[Block, float]]:
    """Cut a collection into blocks, with the share of its documents up to each.

    Parameters
    ----------
    queries : Queries
    source : str
        What it is called in messages.
    """
    rows = max(1, BLOCK // (4 * max(1, queries.n_features)))
    for first, last in pieces_of(queries.ptr, rows):
        begin, end = int(queries.ptr[first]), int(queries.ptr[last])
        block = Block(
            queries.X[begin:end],
            queries.y[begin:end],
            queries.qids[first:last],
            np.diff(queries.ptr[first : last + 1]),
            None if queries.doc_ids is None else queries.doc_ids[begin:end],
            lambda row, begin=begin: f"{source}, document {begin + row}",  # type: ignore[misc]
            source,
        )
        yield block, end / queries.n_documents


def file_facts(file: Path) -> tuple[str, int, int]:
    """Return the name, the size and the time of a file, by which a change of it is noticed."""
    if not file.exists():
        raise FileNotFoundError(f"{file}: no such file")
    found = file.stat()
    return str(file.resolve()), found.st_size, found.st_mtime_ns


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


def stored_bytes(name: str, entry: dict[str, Any]) -> int:
    """Return the bytes that a block takes in a file.

    Parameters
    ----------
    name : str
        The name of the array.
    entry : dict
        The block's entry in the journal.
    """
    if name not in entry["types"]:
        return 0
    number = entry["queries" if name in ("sizes", "qids") else "documents"]
    width = entry["features"] if name == "X" else 1
    return int(number * width * np.dtype(entry["types"][name]).itemsize)
