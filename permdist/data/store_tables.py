"""Tables as sources of a store: data frames, Arrow tables, and Parquet, Arrow or CSV files.

A table has a row per document: a column of query ids, one of labels, perhaps one of document ids,
and features. It is read in batches of rows, of which blocks of whole queries are made.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._text import hint
from permdist.data.letor_text import fill_nulls
from permdist.data.store_blocks import Block, Source, Task, file_facts
from permdist.data.store_readers import (
    Batch,
    Table,
    is_arrow,
    open_table,
    table_of_arrow,
    table_of_frame,
)
from permdist.data.tables import differing_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

USUAL = {
    "qid": ("qid", "query_id", "queryid", "query"),
    "label": ("label", "relevance", "grade", "rel", "y"),
    "doc_id": ("doc_id", "docid", "document_id"),
}


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

    def names(self) -> dict[str, Any]:
        """Return what names columns."""
        found = self._asdict()
        del found["null"]
        return found

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
        taken = set(chosen.values())
        features = self.features
        if features is None:
            features = tuple(one for one in there if one not in taken)
        for one in features:
            if one not in there:
                raise ValueError(f"{where}: expected a column {one!r} (features){hint(one, there)}")
        if len(set(there)) < len(there):
            raise ValueError(f"{where}: expected columns of different names")
        return Columns(**chosen, features=features, null=self.null)


class Frames(Source):
    """Tables, one after the other.

    Parameters
    ----------
    tables : list of Table
    columns : Columns
    """

    def __init__(self, tables: list[Table], columns: Columns) -> None:
        super().__init__([table.name for table in tables])
        self.tables, self.columns = tables, columns
        self.total = float(sum(table.rows for table in tables))
        self.identity = {"kind": "table", **columns._asdict()}
        self.found: list[str] | None = None

    @classmethod
    def of_files(cls, files: Sequence[Path], columns: Columns) -> Frames:
        """Return the source for files."""
        facts = [file_facts(file) for file in files]
        result = cls([open_table(file) for file in files], columns)
        result.identity["files"] = facts
        result.jumps = True
        return result

    @classmethod
    def of_table(cls, value: Any, columns: Columns) -> Frames:
        """Return the source for a data frame or something of pyarrow."""
        result = cls([table_of_arrow(value) if is_arrow(value) else table_of_frame(value)], columns)
        result.names = []
        return result

    def tasks(self, _position: dict[str, Any] | None) -> Generator[Task]:
        """Yield functions that make blocks of whole queries."""
        start = _position or {"table": 0, "row": 0, "read": 0}
        below = sum(table.rows for table in self.tables[: start["table"]])
        for number in range(start["table"], len(self.tables)):
            table = self.tables[number]
            first = read = 0
            if number == start["table"]:
                first, read = start["row"], start.get("read", start["row"])
            batches = chain(self._between(table, first, read), self._read(table, read))
            for raw, row, read in _whole_queries(batches, first):
                after = {"table": number, "row": row + len(raw.y), "read": read}
                place = partial(_place, table, row)
                make = partial(_block, raw, place, table.name, after, self.columns.null)
                yield Task(make, below + row + len(raw.y))
            below += table.rows

    def _between(self, table: Table, row: int, end: int) -> Iterator[_Rows]:
        """Read what was read beyond the last block, so that the next ones are cut alike."""
        batches = self._read(table, row)
        while row < end:
            rows = next(batches)
            yield rows.slice(0, end - row)
            row += len(rows.y)

    def _read(self, table: Table, row: int) -> Iterator[_Rows]:
        for batch in table.batches(row):
            chosen = self.columns.find(table.name, batch.names)
            names = [*filter(None, (chosen.qid, chosen.label, chosen.doc_id))]
            names += chosen.features or ()
            if self.found is None:
                self.found, self.feature_names = names, chosen.features
            wrong = differing_columns(table.name, names, self.found, f"in {self.tables[0].name}")
            if wrong is not None:
                raise ValueError(wrong.partition("\n")[0])
            yield _rows(batch, chosen, partial(_place, table, row))
            row += batch.rows


def _place(table: Table, start: int, row: int) -> str:
    return f"{table.name}, {table.word} {table.first + start + row}"


class _Rows(NamedTuple):
    """Some rows as arrays."""

    X: NDArray[Any]
    y: NDArray[Any]
    qid: NDArray[Any]
    doc_ids: NDArray[Any] | None

    def slice(self, begin: int, end: int) -> _Rows:
        ids = None if self.doc_ids is None else self.doc_ids[begin:end]
        return _Rows(self.X[begin:end], self.y[begin:end], self.qid[begin:end], ids)


def _rows(batch: Batch, columns: Columns, place: Callable[[int], str]) -> _Rows:
    """Convert the columns of a batch, and check labels and ids."""
    features = [(name, batch.column(name)) for name in columns.features or ()]
    for name, values in features:
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"{place(0)}: expected numbers in column {name!r}, got {values.dtype}; leave it "
                "out with features=..."
            )
    single = all(np.can_cast(values.dtype, np.float32) for _, values in features)
    X = np.empty((batch.rows, len(features)), dtype=np.float32 if single else np.float64)
    for number, (_, values) in enumerate(features):
        X[:, number] = values
    ids = None
    if columns.doc_id is not None:
        given = batch.column(columns.doc_id).tolist()
        ids = np.array(["" if one is None or one != one else str(one) for one in given])
    qid = _query_ids(batch.column(str(columns.qid)), place)
    return _Rows(X, _labels(batch.column(str(columns.label)), place), qid, ids)


def _labels(values: NDArray[Any], place: Callable[[int], str]) -> NDArray[Any]:
    if values.dtype.kind not in "iuf":
        raise ValueError(f"{place(0)}: expected labels that are numbers, got {values.dtype}")
    if values.dtype.kind == "f":
        wrong = ~((values == np.floor(values)) & (values >= 0) & (values < 2.0**53))
    else:
        wrong = (values < 0) | (values > 2**53)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{place(row)}: expected a label that is a non-negative integer, got {values[row]}"
        )
    return values.astype(np.int64)


def _query_ids(values: NDArray[Any], place: Callable[[int], str]) -> NDArray[Any]:
    if values.dtype.kind == "f":
        wrong = ~((values == np.floor(values)) & (np.abs(values) < 2.0**63))
    elif values.dtype.kind in "iuU":
        return values
    else:
        wrong = np.array([not isinstance(one, str | int) for one in values.tolist()])
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{place(row)}: expected a query id, a whole number or a text, got {values[row]}"
        )
    return values.astype(np.int64 if values.dtype.kind == "f" else str)


def _whole_queries(batches: Iterator[_Rows], row: int) -> Iterator[tuple[_Rows, int, int]]:
    """Yield rows of whole queries, the number of the first row, and how many rows were read."""
    carry: _Rows | None = None
    read = row
    for batch in batches:
        if not len(batch.y):
            continue
        read += len(batch.y)
        if carry is not None:
            batch = _join(carry, batch)
        same = batch.qid == batch.qid[-1]
        cut = 0 if same.all() else len(same) - int(np.argmin(same[::-1]))
        if cut:
            yield batch.slice(0, cut), row, read
            row += cut
        carry = batch.slice(cut, len(same))
    if carry is not None:
        yield carry, row, read


def _join(first: _Rows, second: _Rows) -> _Rows:
    kinds = {first.qid.dtype.kind, second.qid.dtype.kind}
    qids = [one.qid.astype(str) if "U" in kinds else one.qid for one in (first, second)]
    ids = None
    if first.doc_ids is not None and second.doc_ids is not None:
        ids = np.concatenate([first.doc_ids, second.doc_ids])
    X = np.concatenate([first.X, second.X])
    return _Rows(X, np.concatenate([first.y, second.y]), np.concatenate(qids), ids)


def _block(
    rows: _Rows, place: Callable[[int], str], name: str, after: dict[str, Any], null: str
) -> Block:
    """Make a block; values that are missing are treated as NULL in text is."""
    infinite = np.isinf(rows.X)
    if infinite.any():
        row = int(np.argmax(infinite.any(axis=1)))
        raise ValueError(f"{place(row)}: expected finite numbers, got an infinite one")
    starts = np.flatnonzero(np.append(True, rows.qid[1:] != rows.qid[:-1]))
    return Block(
        fill_nulls(rows.X, rows.qid, null, place),
        rows.y,
        rows.qid[starts],
        np.diff(np.append(starts, len(rows.qid))),
        rows.doc_ids,
        place,
        name,
        after,
    )
