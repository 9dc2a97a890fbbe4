"""Tables from CSV, TSV and JSON files, with the line of every row for errors."""

from __future__ import annotations

import contextlib
import csv
import io
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from permdist._files import parse_json, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pandas import DataFrame

    from permdist._typing import IntArray

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson")
EXCESS = "too much in a line"


def is_table(path: Path) -> bool:
    """Return whether a file is a table, by its name."""
    return any(suffix.lower() in SUFFIXES for suffix in path.suffixes[-2:])


class Frame:
    """Rows in memory as a source of columns.

    Parameters
    ----------
    frame : DataFrame
    name : str
        What the table is called in errors.
    places : callable, optional
        Returns the places of several rows, in ascending order; by default they are counted from 0.
    fields : int, optional
        The number of fields of a line, where not all columns were read.
    """

    def __init__(
        self,
        frame: DataFrame,
        name: str = "battles",
        places: Callable[[Sequence[int]], list[str]] | None = None,
        fields: int | None = None,
    ) -> None:
        self.frame, self.name = frame, name
        self.columns = [name for name in map(str, frame.columns) if name != EXCESS]
        self.fields = len(self.columns) if fields is None else fields
        self.places = places or places_of(name, "row", 0)

    def read(self, columns: Sequence[str], _words: Sequence[str]) -> DataFrame:
        """Return some columns, and the one that tells of too much in a line."""
        found = self.frame.iloc[:, [self.columns.index(column) for column in columns]]
        found = found.reset_index(drop=True)
        found.columns = list(columns)
        if EXCESS in self.frame:
            found[EXCESS] = self.frame[EXCESS].to_numpy()
        return found


def places_of(
    name: str, word: str, start: int | Sequence[int]
) -> Callable[[Sequence[int]], list[str]]:
    """Return a function that returns the places of rows: counted from a number, or listed."""
    if isinstance(start, int):
        return lambda rows: [f"{name}, {word} {start + row}" for row in rows]
    return lambda rows: [f"{name}, {word} {start[row]}" for row in rows]


def read_records(path: Path) -> Frame:
    """Return the table in a file of JSON objects: one list of them, or one object per line."""
    from pandas import DataFrame

    name, text = str(path), text_of(path)
    places = places_of(name, "record", 1)
    if text.lstrip().startswith("["):
        try:
            records = parse_json(text)
        except ValueError as error:
            raise ValueError(f"{path}: expected a list of JSON objects ({error})") from None
    else:
        lines = text.splitlines()
        numbers = [number for number, line in enumerate(lines, 1) if line.strip()]
        records = [record_of(path, number, lines[number - 1]) for number in numbers]
        places = places_of(name, "line", numbers)
    if not all(isinstance(record, dict) for record in records):
        raise ValueError(f"{path}: expected JSON objects with one entry per column")
    return Frame(DataFrame.from_records(records), name, places)


@dataclass(frozen=True)
class Separated:
    """A file of separated values with a header."""

    path: Path

    @property
    def name(self) -> str:
        """The name of the file."""
        return str(self.path)

    @cached_property
    def text(self) -> bytes:
        """The contents, in UTF-8."""
        return text_of(self.path).encode()

    @cached_property
    def _parts(self) -> tuple[bytes, bytes]:
        """The header and the rest."""
        head, _, rest = self.text.lstrip(b"\r\n").partition(b"\n")
        if not head.strip():
            raise ValueError(f"{self.name}: the file is empty")
        return head.rstrip(b"\r"), rest

    @cached_property
    def separator(self) -> str:
        """The separator that the header has most of."""
        return max(",\t;|", key=self._parts[0].decode().count)

    @cached_property
    def columns(self) -> list[str]:
        """The names in the header."""
        return [str(column) for column in self._read(b"").columns[:-1]]

    @property
    def fields(self) -> int:
        """The number of fields of a line."""
        return len(self.columns)

    def read(self, columns: Sequence[str], words: Sequence[str]) -> DataFrame:
        """Return some columns; `words` are those that hold no numbers."""
        kinds: Any = dict.fromkeys(words, "category")
        # One more column holds what is too much in a line, which pandas would drop.
        return self._read(self._parts[1], usecols=[*columns, EXCESS], dtype=kinds)

    def places(self, rows: Sequence[int]) -> list[str]:
        """Return where several rows begin, in ascending order; texts may span several lines."""
        lines = csv.reader(io.StringIO(self.text.decode(), newline=""), delimiter=self.separator)
        csv.field_size_limit(max(csv.field_size_limit(), len(self.text)))
        return [f"{self.name}, line {line}" for line in lines_of(lines, rows)]

    def _read(self, rest: bytes, **options: Any) -> DataFrame:
        from pandas import read_csv

        source = io.BytesIO(self._parts[0] + f"{self.separator}{EXCESS}\n".encode() + rest)
        with readable(self.name):
            return read_csv(
                source, sep=self.separator, index_col=False, low_memory=False, **options
            )


class Places:
    """The places of the rows of a table, or of those that were kept, for errors.

    Parameters
    ----------
    table : Frame or Separated
    kept : array of int, shape (rows,), optional
        The rows of the table that are left; all by default.
    """

    def __init__(self, table: Frame | Separated, kept: IntArray | None = None) -> None:
        self.table, self.kept = table, kept

    def __call__(self, row: int) -> str:
        """Return the place of a row."""
        return self.many([row])[0]

    def many(self, rows: Sequence[int]) -> list[str]:
        """Return the places of several rows, in ascending order."""
        kept = self.kept
        return self.table.places([int(row if kept is None else kept[row]) for row in rows])


@contextlib.contextmanager
def readable(name: str) -> Iterator[None]:
    """Say of what cannot be read as a table that it cannot."""
    from pandas.errors import ParserError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    except (ParserError, Warning) as error:
        message = " ".join(str(error).split())
        raise ValueError(f"{name}: cannot be read as a table ({message})") from None


def open_table(source: Any) -> Frame | Separated:
    """Return the source of columns for a file, a data frame, or a mapping of columns."""
    from pandas import DataFrame

    if isinstance(source, DataFrame):
        return Frame(source)
    if isinstance(source, dict):
        return Frame(DataFrame(source))
    try:
        path = Path(source)
    except TypeError:
        raise TypeError(
            f"source: expected a file name or a data frame, got {type(source).__name__}"
        ) from None
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if any(suffix in suffixes for suffix in (".json", ".jsonl", ".ndjson")):
        return read_records(path)
    return Separated(path)


def text_of(path: Path) -> str:
    """Return the text of a file."""
    raw = read_bytes(path)
    if b"\0" in raw:
        raise ValueError(f"{path}: binary data: this is not a text file")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def record_of(path: Path, number: int, line: str) -> Any:
    """Return what a line of JSON says."""
    try:
        return parse_json(line)
    except ValueError as error:
        raise ValueError(f"{path}, line {number}: expected a JSON object ({error})") from None


def lines_of(lines: Any, rows: Sequence[int]) -> list[int]:
    """Return the lines where rows begin, of a `csv.reader` at the head; -1 is the head's row.

    The rows are in ascending order.
    """
    found: list[int] = []
    seen, before = -2, 0
    for fields in lines:
        seen += bool(fields)
        while len(found) < len(rows) and bool(fields) and rows[len(found)] == seen:
            found.append(before + 1)
        if len(found) == len(rows):
            return found
        before = lines.line_num
    return found + [before + 1] * (len(rows) - len(found))
