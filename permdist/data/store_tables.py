"""Tables as sources of a store: data frames, Arrow tables, and Parquet, Arrow or CSV files.

A table has a row per document: a column of query ids, one of labels, perhaps one of document ids,
and features. It is read as data frames of some rows, of which blocks of whole queries are made.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._text import hint
from permdist.data.store_sources import BLOCK, Source, Task, block_of_rows, file_facts
from permdist.data.tables import differing_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from pandas import DataFrame

ARROW = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
CSV = (".csv", ".tsv")
USUAL = {
    "qid": ("qid", "query_id", "queryid", "query"),
    "label": ("label", "relevance", "grade", "rel", "y"),
    "doc_id": ("doc_id", "docid", "document_id"),
}


# ---- reading -------------------------------------------------------------------------------------


class Table(NamedTuple):
    """A table that is read as data frames.

    Attributes
    ----------
    name : str
    word : str
        What rows are called in messages, and `first` is the number of the first.
    first : int
    rows : float
        The number of rows; NaN if it is not known.
    frames : callable
        Returns data frames, from a row on.
    """

    name: str
    word: str
    first: int
    rows: float
    frames: Callable[[int], Iterator[DataFrame]]

    def place(self, start: int, row: int) -> str:
        """Return the place of a row that is counted from another one."""
        return f"{self.name}, {self.word} {self.first + start + row}"


def tabular(files: Sequence[Path]) -> bool:
    """Return whether files are tables, by their names; all of them must be of one kind."""
    kinds = [_kind(file) for file in files]
    for file, kind in zip(files, kinds, strict=True):
        if (kind == "") != (kinds[0] == ""):
            raise ValueError(f"{file}: expected a file of the same kind as {files[0]}")
    return kinds[0] != ""


def table_files(paths: Sequence[Path]) -> list[Path]:
    """Replace folders by the Parquet files in them, in the order of their names."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not inside:
            raise ValueError(f"{path}: expected a file, or a folder with .parquet files")
        found += inside
    return found


def is_arrow(value: Any) -> bool:
    """Return whether a value is a table, a reader or a dataset of pyarrow."""
    return type(value).__module__.split(".")[0] == "pyarrow"


def _kind(file: Path) -> str:
    suffixes = [suffix.lower() for suffix in file.suffixes[-2:]]
    if suffixes and suffixes[-1] in ARROW:
        return "arrow"
    return "csv" if any(suffix in CSV for suffix in suffixes) else ""


def _size(width: int) -> int:
    """Return the number of rows of a block."""
    return max(1, BLOCK // (8 * max(1, width)))


def table_of_file(file: Path) -> Table:
    """Return the table that is in a file."""
    if _kind(file) == "csv":
        return Table(str(file), "line", 2, float("nan"), partial(_csv_frames, file))
    try:
        import pyarrow.dataset
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{file}: requires pyarrow; pip install pyarrow") from None
    if file.suffix.lower() in ARROW[:2]:
        with _naming(file):
            rows = pyarrow.parquet.ParquetFile(file).metadata.num_rows
        return Table(str(file), "row", 0, float(rows), partial(_parquet_frames, file))

    def frames(start: int) -> Iterator[DataFrame]:
        with _naming(file):
            batches = pyarrow.dataset.dataset(file, format="ipc").to_batches()
            yield from _arrow_frames(batches, start)

    return Table(str(file), "row", 0, float("nan"), frames)


def table_of(value: Any) -> Table:
    """Return a data frame, or a table, a reader or a dataset of pyarrow, as a table."""

    def frames(start: int) -> Iterator[DataFrame]:
        if is_arrow(value):
            batches = value.to_batches() if hasattr(value, "to_batches") else value
            yield from _arrow_frames(batches, start)
            return
        size = _size(value.shape[1])
        for first in range(start, len(value), size):
            yield value.iloc[first : first + size]

    rows = getattr(value, "num_rows", float("nan")) if is_arrow(value) else len(value)
    return Table("source", "row", 0, float(rows), frames)


@contextlib.contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Add the name of a file to the errors of those who read it."""
    try:
        yield
    except (ValueError, OSError) as error:
        if str(file) in str(error):
            raise
        told = " ".join(str(error).split())[:200]
        raise ValueError(f"{file}: cannot be read ({told})") from error


def _csv_frames(file: Path, start: int) -> Iterator[DataFrame]:
    import pandas as pd

    separator = "\t" if ".tsv" in [suffix.lower() for suffix in file.suffixes] else ","
    with _naming(file):
        size = _size(pd.read_csv(file, sep=separator, nrows=0).shape[1])
        skipped = range(1, start + 1)
        with pd.read_csv(file, sep=separator, chunksize=size, skiprows=skipped) as reader:
            yield from reader


def _parquet_frames(file: Path, start: int) -> Iterator[DataFrame]:
    from pyarrow import parquet

    with _naming(file):
        source = parquet.ParquetFile(file)
        groups = range(source.metadata.num_row_groups)
        ends = np.cumsum([source.metadata.row_group(k).num_rows for k in groups])
        first = int(np.searchsorted(ends, start, side="right"))
        size = _size(len(source.schema_arrow.names))
        batches = source.iter_batches(size, row_groups=list(groups[first:]))
        yield from _arrow_frames(batches, start - int(ends[first - 1] if first else 0))


def _arrow_frames(batches: Iterable[Any], skip: int) -> Iterator[DataFrame]:
    """Leave out the first rows, and cut batches that are too large."""
    for batch in batches:
        first, size = min(skip, batch.num_rows), _size(batch.num_columns)
        skip -= first
        for start in range(first, batch.num_rows, size):
            yield batch.slice(start, size).to_pandas(ignore_metadata=True, split_blocks=True)


# ---- columns -------------------------------------------------------------------------------------


class Columns(NamedTuple):
    """Which columns of a table are what, and what becomes of missing values.

    Attributes
    ----------
    qid, label, doc_id : str or None
        Their names; None for the usual ones.
    features : tuple of str or None
        None for all others.
    null : {"min", "zero", "error", "missing"}
        See `write_store`.
    """

    qid: str | None
    label: str | None
    doc_id: str | None
    features: tuple[str, ...] | None
    null: str

    def find(self, where: str, there: Sequence[str]) -> Columns:
        """Return the names in a table, all of them given.

        Parameters
        ----------
        where : str
            The table, for messages.
        there : sequence of str
            Its columns.
        """
        chosen: dict[str, Any] = {}
        for role, usual in USUAL.items():
            name = getattr(self, role)
            if name is not None and name not in there:
                raise ValueError(f"{where}: expected a column {name!r} ({role}){hint(name, there)}")
            likely = [one for one in there if one.lower() in usual]
            if name is None and likely:
                name = min(likely, key=lambda one: usual.index(one.lower()))
            if name is None and role != "doc_id":
                raise ValueError(
                    f"{where}: expected a column {usual[0]!r}, got {', '.join(there)[:200]}; name "
                    f"it with {role}=..., on the command line --{role.replace('_', '-')}"
                )
            chosen[role] = name
        features = self.features
        if features is None:
            features = tuple(one for one in there if one not in chosen.values())
        for one in features:
            if one not in there:
                raise ValueError(f"{where}: expected a column {one!r} (features){hint(one, there)}")
        if len(set(there)) < len(there):
            raise ValueError(f"{where}: expected columns of different names")
        return Columns(**chosen, features=features, null=self.null)


class _Rows(NamedTuple):
    """Some rows as arrays."""

    X: NDArray[Any]
    y: NDArray[Any]
    qid: NDArray[Any]
    doc_ids: NDArray[Any] | None

    def part(self, begin: int, end: int) -> _Rows:
        return _Rows(*(None if one is None else one[begin:end] for one in self))  # type: ignore[arg-type]

    def joined(self, others: _Rows) -> _Rows:
        """Return these rows and the others; ids that are texts in one are texts in both."""
        pairs = list(zip(self, others, strict=True))
        if "U" in {one.qid.dtype.kind for one in (self, others)}:
            pairs[2] = self.qid.astype(str), others.qid.astype(str)
        return _Rows(*(None if one[0] is None else np.concatenate(one) for one in pairs))  # type: ignore[arg-type]


def _rows(frame: DataFrame, columns: Columns, place: Callable[[int], str]) -> _Rows:
    """Convert the columns of a data frame, and check labels and ids."""
    features = [(name, _values(frame[name])) for name in columns.features or ()]
    for name, values in features:
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"{place(0)}: expected numbers in column {name!r}, got {values.dtype}; leave it "
                "out with features=..."
            )
    single = all(np.can_cast(values.dtype, np.float32) for _, values in features)
    X = np.empty((len(frame), len(features)), dtype=np.float32 if single else np.float64)
    for number, (_, values) in enumerate(features):
        X[:, number] = values
    ids = None
    if columns.doc_id is not None:
        given = _values(frame[columns.doc_id]).tolist()
        ids = np.array(["" if one is None or one != one else str(one) for one in given])
    qid = _query_ids(_values(frame[columns.qid]), place)
    return _Rows(X, _labels(_values(frame[columns.label]), place), qid, ids)


def _values(column: Any) -> NDArray[Any]:
    """Return a column of a data frame as an array, with NaN for what is null in numbers."""
    extension = not isinstance(column.dtype, np.dtype)
    if extension and getattr(column.dtype, "kind", "O") in "biuf" and column.hasnans:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column.to_numpy())


def _labels(values: NDArray[Any], place: Callable[[int], str]) -> NDArray[Any]:
    if values.dtype.kind not in "iuf":
        raise ValueError(f"{place(0)}: expected labels that are numbers, got {values.dtype}")
    wrong = ~((values == np.floor(values)) & (values >= 0) & (values < 2.0**53))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{place(row)}: expected a label that is a non-negative integer, got {values[row]}"
        )
    return values.astype(np.int64)


def _query_ids(values: NDArray[Any], place: Callable[[int], str]) -> NDArray[Any]:
    if values.dtype.kind in "iuU":
        return values
    if values.dtype.kind == "f":
        wrong = ~((values == np.floor(values)) & (np.abs(values) < 2.0**63))
    else:
        wrong = np.array([not isinstance(one, str | int) for one in values.tolist()])
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{place(row)}: expected a query id, a whole number or a text, got {values[row]}"
        )
    return values.astype(np.int64 if values.dtype.kind == "f" else str)


# ---- blocks --------------------------------------------------------------------------------------


class Frames(Source):
    """Tables, one after the other.

    Parameters
    ----------
    tables : list of Table
    columns : Columns
    files : sequence of Path
        The files of the tables, none for those in memory.
    """

    def __init__(self, tables: list[Table], columns: Columns, files: Sequence[Path] = ()) -> None:
        super().__init__([str(file) for file in files])
        self.tables, self.columns, self.jumps = tables, columns, len(files) > 0
        self.total = float(sum(table.rows for table in tables))
        facts = [file_facts(file) for file in files]
        self.identity = {"kind": "table", **columns._asdict(), "files": facts}
        self.found: list[str] | None = None
        self.size = 0  # rows of a block

    def tasks(self, position: dict[str, Any] | None) -> Generator[Task]:
        """Yield functions that make blocks of whole queries."""
        start = position or {"table": 0, "row": 0}
        below = 0.0
        for number, table in enumerate(self.tables):
            if number >= start["table"]:
                row = start["row"] if number == start["table"] else 0
                for rows in self._whole_queries(self._read(table, row)):
                    place = partial(table.place, row)
                    row += len(rows.y)
                    after = {"table": number, "row": row}
                    make = partial(block_of_rows, *rows, self.columns.null, place)
                    yield Task(partial(make, source=table.name, position=after), below + row)
            below += table.rows

    def _read(self, table: Table, row: int) -> Iterator[_Rows]:
        for frame in table.frames(row):
            there = [str(name) for name in frame.columns]
            self.size = _size(len(there))
            chosen = self.columns.find(table.name, there)
            names = [*filter(None, chosen[:3]), *(chosen.features or ())]
            if self.found is None:
                self.found, self.feature_names = names, chosen.features
            wrong = differing_columns(table.name, names, self.found, f"in {self.tables[0].name}")
            if wrong is not None:
                raise ValueError(wrong.partition("\n")[0])
            if len(frame):  # the columns of none have no types
                yield _rows(frame.set_axis(there, axis=1), chosen, partial(table.place, row))
            row += len(frame)

    def _whole_queries(self, parts: Iterator[_Rows]) -> Iterator[_Rows]:
        """Cut rows into whole queries; where a cut is depends on nothing but the one before."""
        held: _Rows | None = None
        for part in parts:
            held = part if held is None else held.joined(part)
            while len(held.y) > self.size:
                cuts = np.flatnonzero(held.qid[1:] != held.qid[:-1]) + 1
                if not len(cuts):
                    break
                cut = int(cuts[max(0, int(np.searchsorted(cuts, self.size, side="right")) - 1)])
                yield held.part(0, cut)
                held = held.part(cut, len(held.y))
        if held is not None and len(held.y):
            yield held
