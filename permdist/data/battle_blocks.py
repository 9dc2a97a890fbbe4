"""Battles read block by block, so that a file of any length can be rated."""

from __future__ import annotations

import csv
import io
import itertools
from collections import Counter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from permdist._check import choice, count, frozen
from permdist._files import reading
from permdist.data.battle_columns import FIRST, TIE, Earlier, find_column
from permdist.data.battle_files import (
    EXCESS,
    Frame,
    Separated,
    lines_of,
    places_of,
    readable,
    record_of,
)
from permdist.data.battle_values import NoRowsError
from permdist.data.battles import BattleOptions, Battles, battles_in

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pandas import DataFrame


class BattleBlocks:
    """Battles in blocks, as `read_battles` reads them: iterating gives `Battles`, again and again.

    `fit` of a distribution and `permdist.rating.rate` take it as it is.
    """

    yields_blocks = True

    def __init__(self, source: Any, block: int, options: BattleOptions) -> None:
        self.source, self.block, self._options = source, block, options
        self._dropped: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"BattleBlocks({_name(self.source)}, {self.block:,} rows at a time)"

    def __iter__(self) -> Iterator[Battles]:
        options, earlier = self._options, Earlier()

        def wanted(columns: Sequence[str], source: str) -> list[str]:
            roles = options.roles(columns, source)
            found = [roles.first, roles.second, roles.winner, roles.ties, *roles.shares]
            if options.weight is not None:
                found.append(find_column(columns, options.weight, "weight", source))
            return list(dict.fromkeys(filter(None, found)))

        dropped: Counter[str] = Counter()
        some = False
        for table in _tables(self.source, self.block, wanted):
            try:
                battles = battles_in(table, options, earlier)
            except NoRowsError as error:  # others may be left in other blocks
                dropped.update(error.counts)
                continue
            dropped.update(battles.dropped)
            some = True
            yield battles
        if dropped and not some:
            raise NoRowsError(_name(self.source), dict(dropped))
        self._dropped = dict(dropped)

    def merged(self) -> Battles:
        """Return the different battles, with their weights added up; see `Battles.merged`."""
        from permdist.ballots.blocks import merge_blocks

        ballots = merge_blocks(self)
        pairs = ballots.items.reshape(-1, 2)
        outcome = np.where(ballots.sizes == 2, TIE, FIRST)
        return Battles(
            ballots.names,
            frozen(pairs[:, 0].copy()),
            frozen(pairs[:, 1].copy()),
            frozen(outcome.astype(np.int64)),
            ballots.weights,
            source=_name(self.source),
            dropped=self._dropped,
            unit_weights=ballots.unit_weights,
        ).merged()


def read_battles(
    source: str | os.PathLike[str] | Iterable[DataFrame],
    *,
    block: int = 1_000_000,
    first: str | None = None,
    second: str | None = None,
    winner: str | None = None,
    loser: str | None = None,
    ties: str | None = None,
    weight: str | None = None,
    missing: str = "error",
    invalid: str = "error",
    spellings: Mapping[str, str] | str | None = None,
) -> BattleBlocks:
    r"""Read battles in blocks, with memory for one block at a time.

    Columns and spellings are those of `load_battles`, which reads a table as a whole. What needs
    the whole is not done here: clusters, times, covariates, slices, and the check for rows that
    repeat others. A spelling of the winner whose meaning depends on other rows (a competitor
    that is called "a", say) is refused as soon as a later block would change it.

    Parameters
    ----------
    source : path or iterable of data frames
        A file ``.csv``, ``.tsv`` or ``.jsonl``, plain, ``.gz`` or ``.bz2``; a file ``.parquet``,
        which takes the package pyarrow; or data frames, one for each block.
    block : int
        Rows of a block.
    first, second, winner, loser, ties, weight, missing, invalid, spellings
        As in `load_battles`.

    Returns
    -------
    BattleBlocks
        Nothing is read before it is iterated over.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from permdist import PlackettLuce
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "battles.csv"
    >>> _ = path.write_text("model_a,model_b,winner\nx,y,model_a\ny,z,b\nz,x,b\nx,y,b\nz,y,b\n")
    >>> blocks = read_battles(path, block=2)
    >>> [len(block) for block in blocks]
    [2, 2, 1]
    >>> PlackettLuce.fit(blocks, prior=0.1).scores.argmax()
    np.int64(0)
    >>> blocks.merged()
    Battles(5 of 3 competitors)
    """
    choice("missing", missing, ("error", "drop"))
    choice("invalid", invalid, ("error", "drop"))
    sides = (first, second, winner, loser, ties)
    options = BattleOptions(*sides, weight, missing, invalid, spellings)
    return BattleBlocks(source, count("block", block), options)


# ---- blocks of tables --------------------------------------------------------------------------


def _name(source: Any) -> str:
    try:
        return str(Path(source))
    except TypeError:
        return "battles"


def _tables(source: Any, size: int, wanted: Any) -> Iterator[Frame]:
    """Yield the blocks of a source, with the wanted columns."""
    try:
        path = Path(source)
    except TypeError:
        yield from _frames(source)
        return
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if ".parquet" in suffixes:
        yield from _parquet(path, size, wanted)
    elif ".jsonl" in suffixes or ".ndjson" in suffixes:
        yield from _records(path, size)
    elif ".json" in suffixes:
        raise ValueError(f"{path}: a list in JSON is read as a whole (load_battles); or use .jsonl")
    else:
        yield from _separated(path, size, wanted)


def _frames(source: Any) -> Iterator[Frame]:
    start = 0
    for frame in source:
        if not hasattr(frame, "iloc"):
            raise TypeError(
                f"source: expected a file name or data frames, got {type(frame).__name__}"
            )
        yield Frame(frame, places=places_of("battles", "row", start))
        start += len(frame)


class _Header(Separated):
    """The header of a file that is read in blocks; the rest is not looked at."""

    @property
    def text(self) -> bytes:
        with reading(self.path) as (source, _):
            head = next((line for line in source if line.strip(b"\xef\xbb\xbf\r\n ")), b"")
        return _decoded(self.path, head).encode()

    def places(self, rows: Sequence[int]) -> list[str]:
        """Return the places of several rows, in ascending order."""
        with reading(self.path) as (source, _):
            text = io.TextIOWrapper(source, "utf-8-sig", newline="")
            lines = csv.reader(text, delimiter=self.separator)
            return [f"{self.name}, line {line}" for line in lines_of(lines, rows)]


def _separated(path: Path, size: int, wanted: Any) -> Iterator[Frame]:
    from pandas import read_csv

    head = _Header(path)
    columns = wanted(head.columns, head.name)
    with reading(path) as (source, _):
        # One more column holds what is too much in a line, which pandas would drop.
        while not (line := source.readline()).strip(b"\xef\xbb\xbf\r\n "):
            pass
        first = _decoded(path, line).rstrip("\r\n") + f"{head.separator}{EXCESS}\n"
        with readable(head.name):
            blocks = read_csv(
                io.BufferedReader(_Joined(first.encode(), source)),
                sep=head.separator,
                index_col=False,
                usecols=[*columns, EXCESS],
                # Names are texts in every block, whether they look like numbers there or not.
                dtype=dict.fromkeys(columns, str),
                chunksize=size,
            )
        start = 0
        while True:
            try:
                with readable(head.name):
                    frame = next(blocks, None)
            except UnicodeDecodeError:
                raise _not_utf8(path) from None
            if frame is None:
                return

            def places(rows: Sequence[int], start: int = start) -> list[str]:
                return head.places([start + row for row in rows])

            yield Frame(frame.reset_index(drop=True), head.name, places, len(head.columns))
            start += len(frame)


class _Joined(io.RawIOBase):
    """Some bytes, and what is left of a file after them."""

    def __init__(self, first: bytes, rest: IO[bytes]) -> None:
        super().__init__()
        self._first, self._rest = first, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._first[: len(buffer)] or self._rest.read(len(buffer))
        self._first = self._first[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)


def _records(path: Path, size: int) -> Iterator[Frame]:
    from pandas import DataFrame

    with reading(path) as (source, _):
        lines = ((number, line) for number, line in enumerate(source, 1) if line.strip())
        while block := list(itertools.islice(lines, size)):
            numbers = [number for number, _ in block]
            records = [record_of(path, number, _decoded(path, line)) for number, line in block]
            for number, record in zip(numbers, records, strict=True):
                if not isinstance(record, dict):
                    raise ValueError(f"{path}, line {number}: expected a JSON object")
            places = places_of(str(path), "line", numbers)
            yield Frame(DataFrame.from_records(records), str(path), places)


def _parquet(path: Path, size: int, wanted: Any) -> Iterator[Frame]:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError:
        raise ImportError(f"{path}: install pyarrow to read Parquet files") from None
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        with parquet.ParquetFile(path) as file:
            columns = wanted([str(name) for name in file.schema_arrow.names], str(path))
            start = 0
            for batch in file.iter_batches(batch_size=size, columns=columns):
                places = places_of(str(path), "row", start)
                yield Frame(batch.to_pandas(), str(path), places)
                start += batch.num_rows
    except ArrowInvalid as error:
        raise ValueError(f"{path}: cannot be read as a Parquet file ({error})") from None


def _decoded(path: Path, line: bytes) -> str:
    if b"\0" in line:
        raise ValueError(f"{path}: binary data: this is not a text file")
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _not_utf8(path) from None


def _not_utf8(path: Path) -> ValueError:
    return ValueError(f"{path}: expected UTF-8; load_battles reads other encodings, as a whole")
