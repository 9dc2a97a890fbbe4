"""LETOR and SVMlight text as a source of a store: pieces of files that hold whole queries."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import check_size
from permdist._files import MARK, reading
from permdist.data.letor import load_letor
from permdist.data.letor_text import (
    FIRST_LINE,
    Text,
    cut_short,
    document_ids,
    fill_nulls,
    read_piece,
)
from permdist.data.store_blocks import Block, Source, Task, blocks_of, file_facts

if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Iterator, Sequence

PIECE = 2**24  # bytes of text that are read at a time
_QUERY = re.compile(rb"[ \t\r]*[^\s#]+[ \t\r]+qid:([^\s#]+)")
_BLANK = re.compile(rb"[ \t\r]*(#|$)")


class TextFiles(Source):
    """Files of LETOR or SVMlight text, one after the other.

    Parameters
    ----------
    files : sequence of Path
    n_features : int or None
        The number of features; by default the highest number in the files, the same in each.
    null : {"min", "zero", "error", "missing"}
        See `load_letor`.
    zero_based : bool
        Whether the first feature has number 0.
    query_file : path or None
        The sizes of the queries of a single file whose lines have no query ids.
    """

    jumps = True

    def __init__(
        self,
        files: Sequence[Path],
        *,
        n_features: int | None,
        null: str,
        zero_based: bool,
        query_file: str | os.PathLike[str] | None,
    ) -> None:
        super().__init__([str(file) for file in files])
        if query_file is not None and len(files) > 1:
            raise ValueError(f"query_file: only for a single file, got {len(files)}")
        self.files, self.n_features, self.null = files, n_features, null
        self.zero_based, self.query_file = zero_based, query_file
        others = [] if query_file is None else [Path(query_file)]
        facts = [file_facts(file) for file in (*files, *others)]
        self.total = float(sum(size for _, size, _ in facts[: len(files)]))
        options = {"n_features": n_features, "null": null, "zero_based": zero_based}
        self.identity = {"kind": "text", "files": facts, **options}
        self.width = n_features  # of what was read so far
        self.documents = dict.fromkeys(self.names, 0)
        self.used = dict.fromkeys(self.names, 0)
        self.full = dict.fromkeys(self.names, True)
        self.numbered = dict.fromkeys(self.names, 0)  # queries that have no ids of their own

    def tasks(self, _position: dict[str, Any] | None) -> Generator[Task]:
        """Yield functions that read one piece each; several may run at the same time."""
        start = _position or {"file": 0, "offset": 0, "line": 1, "read": 0}
        below = sum(file.stat().st_size for file in self.files[: start["file"]])
        for number in range(start["file"], len(self.files)):
            file = self.files[number]
            own: dict[str, Any] = {"offset": 0, "line": 1, "read": 0}
            own = start if number == start["file"] else own
            yield from self._file_tasks(number, own, float(below))
            below += file.stat().st_size

    def _file_tasks(self, number: int, start: dict[str, Any], below: float) -> Iterator[Task]:
        file, ended, with_ids, carry = self.files[number], False, None, b""
        offset, line = start["offset"], start["line"]
        with reading(file) as (source, disk):
            if offset:
                source.seek(offset)
                with_ids = True
                # What was read beyond the last piece, so that the next ones are cut alike.
                carry = source.read(max(0, start.get("read", 0) - offset))
            while not ended:
                read = source.read(PIECE)
                ended = not read
                buffer = carry + read
                if offset == 0 and buffer.startswith(MARK):
                    buffer, offset = buffer.removeprefix(MARK), len(MARK)
                if with_ids is None:
                    first = FIRST_LINE.search(buffer)
                    with_ids = first is None or first[1] is not None
                    if not with_ids:
                        yield from self._without_ids(number, below, start.get("skip", 0))
                        return
                    if self.query_file is not None:
                        raise ValueError(
                            f"query_file: expected none, the lines of {file} have query ids of "
                            "their own"
                        )
                cut = len(buffer) if ended else last_query(buffer)
                piece, carry = buffer[:cut], buffer[cut:]
                if not piece:
                    check_size(f"{file}: a query of {len(carry):,} bytes or more", len(carry))
                    continue
                offset += len(piece)
                text = Text(file, piece, True, 0 if self.zero_based else 1, self._nan, line)
                line += piece.count(b"\n")
                after = {"file": number, "offset": offset, "line": line, "read": source.tell()}
                yield Task(partial(self._read, text, after, ended), below + disk.tell())

    @property
    def _nan(self) -> bool:
        return self.null == "missing"

    def _read(self, text: Text, position: dict[str, Any], ended: bool) -> Block:
        """Read one piece; the width of those before it says how wide it probably is."""
        lines = read_piece(text, self.width, self.n_features)
        line_of, file = lines.line_of, text.file

        def place(row: int) -> str:
            return f"{file}, line {line_of[row]}"

        qid = lines.qid if lines.qid is not None else np.zeros(0, np.int64)
        starts = np.flatnonzero(np.append(True, qid[1:] != qid[:-1])[: len(qid)])
        broken = cut_short(text.raw, lines, True, 3) if ended and len(qid) else None
        facts = {
            "used": lines.used,
            "full": bool((lines.places[:, 3] == lines.used).all()),
            "broken": broken,
        }
        return Block(
            fill_nulls(lines.X, qid, self.null, place),
            lines.labels,
            qid[starts],
            np.diff(np.append(starts, len(qid))),
            document_ids(text.raw, lines),
            place,
            str(file),
            position,
            facts,
        )

    def _without_ids(self, number: int, below: float, skip: int) -> Iterator[Task]:
        """Read a file whose queries are told by a companion: as a whole."""
        file = self.files[number]
        queries = load_letor(
            file,
            n_features=self.n_features,
            null=self.null,
            zero_based=self.zero_based,
            query_file=self.query_file,
        )
        facts: dict[str, Any] = {"used": queries.n_features, "full": False, "broken": None}
        facts["numbered"] = queries.n_queries
        before = sum(self.numbered[name] for name in self.names[:number])
        self.numbered[str(file)] = queries.n_queries
        size = file.stat().st_size
        for place, (block, share) in enumerate(blocks_of(queries, str(file)), 1):
            if place <= skip:
                continue
            after = {"file": number, "offset": 0, "line": 1, "skip": place}
            if share == 1.0:
                after = {"file": number + 1, "offset": 0, "line": 1}
            block = block._replace(qids=block.qids + before, position=after, facts=facts)
            yield Task(partial(_same, block), below + share * size)

    def note(self, entry: dict[str, Any]) -> None:
        """Take notice of a block, in their order; refuse a file that is cut off."""
        name, facts = entry["source"], entry["facts"]
        self.documents[name] += entry["documents"]
        self.used[name] = max(self.used[name], facts["used"])
        if facts["broken"] and self.full[name] and self.documents[name] >= 3:
            raise ValueError(f"{name}, {facts['broken']}")
        self.full[name] &= facts["full"] and facts["used"] == self.used[name]
        self.numbered[name] = facts.get("numbered", 0)
        if self.n_features is None:
            self.width = max(self.width or 0, entry["features"])

    def end(self) -> None:
        """Check what is known when all has been read: no file is empty, all are of one width."""
        first = self.names[0]
        for name in self.names:
            if not self.documents[name]:
                raise ValueError(f"{name}: expected at least one document, the file has none")
            if self.n_features is None and self.used[name] != self.used[first]:
                raise ValueError(
                    f"{name}: expected {self.used[first]} features as in {first}, got "
                    f"{self.used[name]}; pass n_features, on the command line --features, if "
                    "features that are absent are 0"
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


def _same(block: Block) -> Block:
    return block
