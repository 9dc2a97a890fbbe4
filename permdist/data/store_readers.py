"""Tables that are read in batches of rows: data frames, Arrow, and Parquet, Arrow or CSV files."""

from __future__ import annotations

import contextlib
import itertools
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist.data.store_blocks import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

ARROW = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
CSV = (".csv", ".tsv")


class Batch(NamedTuple):
    """Some rows of a table.

    Attributes
    ----------
    names : list of str
        The columns.
    column : callable
        Returns the values of a column.
    rows : int
        The number of rows.
    """

    names: list[str]
    column: Callable[[str], NDArray[Any]]
    rows: int


class Table(NamedTuple):
    """A table that is read in batches.

    Attributes
    ----------
    name : str
    word : str
        What rows are called in messages, and `first` is the number of the first.
    first : int
    batches : callable
        Returns batches from a row on.
    rows : float
        The number of rows; NaN if it is not known.
    """

    name: str
    word: str
    first: int
    batches: Callable[[int], Iterator[Batch]]
    rows: float


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
    """Return the number of rows of a batch."""
    return max(1, BLOCK // (8 * max(1, width)))


def open_table(file: Path) -> Table:
    """Return the table that is in a file."""
    if _kind(file) == "csv":
        return Table(str(file), "line", 2, partial(_csv_batches, file), float("nan"))
    arrow = _pyarrow(str(file))
    if file.suffix.lower() in ARROW[:2]:
        with _told(file):
            rows = arrow.parquet.ParquetFile(file).metadata.num_rows
        return Table(str(file), "row", 0, partial(_parquet_batches, arrow, file), float(rows))
    return Table(str(file), "row", 0, partial(_ipc_batches, arrow, file), float("nan"))


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
        import pyarrow.dataset
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{what}: requires pyarrow; pip install pyarrow") from None
    return pyarrow


@contextlib.contextmanager
def _told(file: Path) -> Iterator[None]:
    """Add the name of a file to the errors of those who read it."""
    try:
        yield
    except (ValueError, OSError) as error:
        if str(file) in str(error):
            raise
        told = " ".join(str(error).split())[:200]
        raise ValueError(f"{file}: cannot be read ({told})") from error


def _csv_batches(file: Path, start: int) -> Iterator[Batch]:
    import pandas as pd

    separator = "\t" if ".tsv" in [suffix.lower() for suffix in file.suffixes] else ","
    with _told(file):
        names = list(pd.read_csv(file, sep=separator, nrows=0).columns)
        skipped, size = range(1, start + 1), _size(len(names))
        with pd.read_csv(file, sep=separator, chunksize=size, skiprows=skipped) as reader:
            for frame in reader:
                yield _frame_batch(frame)


def _frame_batch(frame: Any) -> Batch:
    names = [str(name) for name in frame.columns]
    return Batch(names, lambda name: _numbers(frame.iloc[:, names.index(name)]), len(frame))


def _numbers(column: Any) -> NDArray[Any]:
    """Return a column of a data frame as an array, with NaN for what is null in numbers."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biuf" and column.hasnans:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(column.to_numpy())


def table_of_frame(frame: Any) -> Table:
    """Return a data frame as a table."""

    def batches(start: int) -> Iterator[Batch]:
        size = _size(frame.shape[1])
        for first in range(start, len(frame), size):
            yield _frame_batch(frame.iloc[first : first + size])

    return Table("source", "row", 0, batches, float(len(frame)))


def _arrow_batch(batch: Any) -> Batch:
    names = [str(name) for name in batch.schema.names]
    return Batch(
        names,
        lambda name: np.asarray(batch.column(names.index(name)).to_numpy(zero_copy_only=False)),
        batch.num_rows,
    )


def _from_row(batches: Iterator[Any], skip: int) -> Iterator[Batch]:
    """Leave out the first rows, and cut batches that are too large."""
    for batch in batches:
        first, size = min(skip, batch.num_rows), _size(batch.num_columns)
        skip -= first
        for start in range(first, batch.num_rows, size):
            yield _arrow_batch(batch.slice(start, size))


def _parquet_batches(arrow: Any, file: Path, start: int) -> Iterator[Batch]:
    with _told(file):
        source = arrow.parquet.ParquetFile(file)
        sizes = [
            source.metadata.row_group(k).num_rows for k in range(source.metadata.num_row_groups)
        ]
        ends = list(itertools.accumulate(sizes))
        group = next((k for k, end in enumerate(ends) if end > start), len(ends))
        below = ends[group - 1] if group else 0
        size = _size(len(source.schema_arrow.names))
        # Each group by itself, so that batches are the same wherever the reading begins.
        groups = (source.iter_batches(size, row_groups=[k]) for k in range(group, len(ends)))
        yield from _from_row(itertools.chain.from_iterable(groups), start - below)


def _ipc_batches(arrow: Any, file: Path, start: int) -> Iterator[Batch]:
    with _told(file):
        batches = arrow.dataset.dataset(file, format="ipc").to_batches()
        yield from _from_row(batches, start)


def table_of_arrow(value: Any) -> Table:
    """Return a table, a reader or a dataset of pyarrow as a table."""
    rows = getattr(value, "num_rows", None)

    def batches(start: int) -> Iterator[Batch]:
        found = value.to_batches() if hasattr(value, "to_batches") else value
        return _from_row(found, start)

    return Table("source", "row", 0, batches, float("nan") if rows is None else float(rows))
