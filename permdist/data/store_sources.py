"""What stores are made from: blocks of whole queries, of text files and of queries in memory."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._files import MARK, check_size, reading
from permdist.data.letor import load_letor
from permdist.data.letor_text import (
    FIRST_LINE,
    Text,
    cut_short,
    document_ids,
    fill_nulls,
    read_piece,
)
from permdist.data.normalize import pieces_of
from permdist.data.queries import Queries

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from permdist._typing import FloatArray, IntArray

BLOCK = 2**24  # bytes of features that are written at a time
PIECE = 2**24  # bytes of text that are read at a time
_QUERY = re.compile(rb"[ \t\r]*[^\s#]+[ \t\r]+qid:([^\s#]+)")
_BLANK = re.compile(rb"[ \t\r]*(#|$)")


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
    facts : dict
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
    facts: dict[str, Any] = {}  # noqa: RUF012


def block_of_rows(
    X: FloatArray,
    y: IntArray,
    qid: NDArray[Any],
    doc_ids: NDArray[Any] | None,
    null: str,
    place: Callable[[int], str],
    **others: Any,
) -> Block:
    """Return the block of documents with a query id each; missing values are treated as NULL."""
    starts = np.flatnonzero(np.append(True, qid[1:] != qid[:-1])[: len(qid)])
    filled = fill_nulls(X, qid, null, place)
    sizes = np.diff(np.append(starts, len(qid)))
    return Block(filled, y, qid[starts], sizes, doc_ids, place, **others)


class Task(NamedTuple):
    """A function that makes a block, and how much of the source's work is done with it."""

    make: Callable[[], Block]
    done: float


class Source:
    """What a store is made from.

    Parameters
    ----------
    names : list of str
        The files, for the header of the store.

    Attributes
    ----------
    jumps : bool
        Whether `tasks` can go on at the position of a block. Otherwise it begins again, and blocks
        that are there already are compared with it.
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

    def tasks(self, position: dict[str, Any] | None) -> Generator[Task]:
        """Yield functions that make one block each; several may run at the same time."""
        raise NotImplementedError

    def note(self, facts: dict[str, Any]) -> None:
        """Take notice of what was written of a block, in their order."""

    def end(self) -> None:
        """Check what can be checked when all has been read."""


def file_facts(file: Path) -> tuple[str, int, int]:
    """Return the name, the size and the time of a file, by which a change of it is noticed."""
    if not file.exists():
        raise FileNotFoundError(f"{file}: no such file")
    found = file.stat()
    return str(file.resolve()), found.st_size, found.st_mtime_ns


# ---- queries in memory ---------------------------------------------------------------------------


class Collections(Source):
    """Collections of queries in memory, one after the other.

    Parameters
    ----------
    parts : iterable of Queries
    total : float
        The number of documents; NaN if it is not known.
    """

    def __init__(self, parts: Iterable[Any], total: float = float("nan")) -> None:
        super().__init__([])
        self.parts, self.total = parts, total
        self.identity = {"kind": "queries"}

    def tasks(self, position: dict[str, Any] | None) -> Generator[Task]:  # noqa: ARG002
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
            for block, share in _blocks_of(part, f"source[{number}]"):
                yield Task(block._replace, done + share * part.n_documents)
            done += part.n_documents


def _blocks_of(queries: Queries, source: str) -> Iterator[tuple[Block, float]]:
    """Cut a collection into blocks, with the share of its documents up to each."""
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


# ---- text ----------------------------------------------------------------------------------------


class TextFiles(Source):
    """Files of LETOR or SVMlight text, one after the other.

    Parameters
    ----------
    files : sequence of Path
    null : {"min", "zero", "error", "missing"}
        See `load_letor`.
    n_features : int or None
        The number of features; by default the highest number in the files, the same in each.
    zero_based : bool
        Whether the first feature has number 0.
    query_file : path or None
        The sizes of the queries of a single file whose lines have no query ids.
    """

    jumps = True

    def __init__(
        self,
        files: Sequence[Path],
        null: str,
        *,
        n_features: int | None,
        zero_based: bool,
        query_file: str | os.PathLike[str] | None,
    ) -> None:
        super().__init__([str(file) for file in files])
        if query_file is not None and len(files) > 1:
            raise ValueError(f"query_file: only for a single file, got {len(files)}")
        self.files, self.query_file = files, query_file
        self.options: dict[str, Any] = {
            "n_features": n_features,
            "null": null,
            "zero_based": zero_based,
        }
        others = [] if query_file is None else [Path(query_file)]
        facts = [file_facts(file) for file in (*files, *others)]
        self.total = float(sum(size for _, size, _ in facts[: len(files)]))
        self.identity = {"kind": "text", "files": facts, **self.options}
        self.n_features, self.null, self.zero_based = n_features, null, zero_based
        self.width = n_features  # of what was read so far
        self.read = {  # of each file; "numbered" are queries that have no ids of their own
            name: {"documents": 0, "used": 0, "full": True, "numbered": 0} for name in self.names
        }

    def tasks(self, position: dict[str, Any] | None) -> Generator[Task]:
        """Yield functions that read one piece each; several may run at the same time."""
        start = position or {"file": 0, "offset": 0, "line": 1}
        below = 0.0
        for number, file in enumerate(self.files):
            if number >= start["file"]:
                yield from self._pieces(number, start, below)
                start = {"file": number + 1, "offset": 0, "line": 1}
            below += file.stat().st_size

    def _pieces(self, number: int, start: dict[str, Any], below: float) -> Iterator[Task]:
        """Cut a file into pieces; where one ends depends on nothing but on where it begins."""
        file, offset, line = self.files[number], start["offset"], start["line"]
        with reading(file) as (source, disk):
            source.seek(offset)
            buffer = b"" if offset else source.read(len(MARK))
            if buffer == MARK:
                buffer, offset = b"", len(MARK)
            size, ended, known = PIECE, False, start["offset"] > 0
            while buffer or not ended:
                wanted = max(0, size - len(buffer))
                read = source.read(wanted)
                ended = ended or len(read) < wanted
                buffer += read
                if not known:
                    first = FIRST_LINE.search(buffer)
                    if first is not None and first[1] is None:
                        yield from self._without_ids(number, below, start.get("skip", 0))
                        return
                    if self.query_file is not None:
                        raise ValueError(
                            f"query_file: expected none, the lines of {file} have query ids of "
                            "their own"
                        )
                    known = True
                last = ended and len(buffer) <= size
                cut = len(buffer) if last else last_query(buffer[:size])
                if not cut:
                    check_size(f"{file}: a query of {len(buffer):,} bytes or more", len(buffer))
                    size += PIECE
                    continue
                piece, buffer, size = buffer[:cut], buffer[cut:], PIECE
                text = Text(
                    file, piece, True, 0 if self.zero_based else 1, self.null == "missing", line
                )
                offset += cut
                line += piece.count(b"\n")
                after = {"file": number, "offset": offset, "line": line}
                yield Task(partial(self._read, text, after, last), below + disk.tell())

    def _read(self, text: Text, position: dict[str, Any], last: bool) -> Block:
        """Read one piece; the width of those before it says how wide it probably is."""
        lines = read_piece(text, self.width, self.n_features)
        line_of, file = lines.line_of, text.file
        qid = lines.qid if lines.qid is not None else np.zeros(0, np.int64)
        facts = {
            "used": lines.used,
            "full": bool((lines.places[:, 3] == lines.used).all()),
            "broken": cut_short(text.raw, lines, True, 3) if last and len(qid) else None,
            "numbered": 0,
        }
        return block_of_rows(
            lines.X,
            lines.labels,
            qid,
            document_ids(text.raw, lines),
            self.null,
            lambda row: f"{file}, line {line_of[row]}",
            source=str(file),
            position=position,
            facts=facts,
        )

    def _without_ids(self, number: int, below: float, skip: int) -> Iterator[Task]:
        """Read a file whose queries are told by a companion: as a whole."""
        file = self.files[number]
        queries = load_letor(file, query_file=self.query_file, **self.options)
        facts = {"used": queries.n_features, "full": False, "broken": None}
        facts["numbered"] = self.read[str(file)]["numbered"] = queries.n_queries
        before = sum(self.read[name]["numbered"] for name in self.names[:number])
        size = file.stat().st_size
        for count, (block, share) in enumerate(_blocks_of(queries, str(file)), 1):
            if count > skip:
                after = {"file": number, "offset": 0, "line": 1, "skip": count}
                block = block._replace(qids=block.qids + before, position=after, facts=facts)
                yield Task(block._replace, below + share * size)

    def note(self, facts: dict[str, Any]) -> None:
        """Take notice of a block, in their order; refuse a file that is cut off."""
        name, own = facts["source"], self.read[facts["source"]]
        own["documents"] += facts["documents"]
        own["used"] = max(own["used"], facts["used"])
        if facts["broken"] and own["full"] and own["documents"] >= 3:
            raise ValueError(f"{name}, {facts['broken']}")
        own["full"] = own["full"] and facts["full"] and facts["used"] == own["used"]
        own["numbered"] = facts["numbered"]
        if self.n_features is None:
            self.width = max(self.width or 0, facts["features"])

    def end(self) -> None:
        """Check what is known when all has been read: no file is empty, all are of one width."""
        first = self.names[0]
        expected = self.read[first]["used"]
        for name, own in self.read.items():
            if not own["documents"]:
                raise ValueError(f"{name}: expected at least one document, the file has none")
            if self.n_features is None and own["used"] != expected:
                raise ValueError(
                    f"{name}: expected {expected} features as in {first}, got {own['used']}; pass "
                    "n_features, on the command line --features, if features that are absent are 0"
                )


def last_query(text: bytes) -> int:
    r"""Return where the last query of a text begins; 0 if there is one query only.

    The last line may be cut off and is not looked at. A line that is no document begins a query of
    its own: reading it will say what is wrong.

    Examples
    --------
    >>> last_query(b"1 qid:1 1:3\n0 qid:2 1:1\n0 qid:2 1:2\n1 qid")
    12
    """
    end = text.rfind(b"\n") + 1
    last: bytes | None = None
    while end > 0:
        start = text.rfind(b"\n", 0, end - 1) + 1
        match = _QUERY.match(text, start, end)
        if match is None and not _BLANK.match(text[start : end - 1]):
            return start
        if match is not None:
            if last is not None and match[1] != last:
                return end
            last = match[1]
        end = start
    return 0
