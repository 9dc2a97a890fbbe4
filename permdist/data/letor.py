"""Reading and writing LETOR and SVMlight files.

A line is ``label qid:ID index:value ... # comment``; where it has no ``qid:ID``, the sizes of the
queries are read from a companion file. Numbers are scanned by a compiled kernel.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import choice, count
from permdist._files import read_bytes, read_number, write_atomically
from permdist._groups import RepeatedQueryError
from permdist._interrupts import patiently
from permdist._limits import need_memory
from permdist.data.companions import query_numbers, read_companion
from permdist.data.letor_scan import (
    BINARY,
    FAULTS,
    INDEX,
    NEWLINE,
    count_lines,
    scan_lines,
)
from permdist.data.queries import Queries

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from permdist._typing import FloatArray

MAX_FEATURES = 1_000_000
_FIRST_LINE = re.compile(rb"^[ \t\r]*[^\s#]+[ \t\r]*(qid:)?", re.MULTILINE)
_DOC_ID = re.compile(rb"docid\s*=\s*(\S+)")


def load_letor(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    null: str = "min",
    regroup: bool = False,
    query_file: str | os.PathLike[str] | None = None,
    zero_based: bool = False,
) -> Queries:
    r"""Read a LETOR or SVMlight ranking file, plain, ``.gz`` or ``.bz2``.

    Parameters
    ----------
    path : path
    n_features : int, optional
        The number of features, where the file may lack the last ones. Absent features are 0.
    null : {"min", "zero", "error", "missing"}
        A value written ``NULL`` becomes the lowest value of that feature in its query (as in
        LETOR's own conversion; 0 if all are NULL), becomes 0, is an error, or stays missing: NaN,
        for learners with the parameter `missing`. Only then may it also be written ``nan``.
    regroup : bool
        Gather queries whose lines do not stand together, instead of refusing the file.
    query_file : path, optional
        Where the lines have no query ids: the file with the number of documents of each query, in
        their order. By default the one beside `path`: ``train.txt.query`` or ``train.txt.group``
        for ``train.txt`` or ``train.txt.gz``, itself compressed or not. Its queries are numbered
        from 1. A companion of a file with query ids is not looked at, and may not be named.
    zero_based : bool
        Whether the first feature has number 0 in the file; by default 1, and a feature 0 is
        refused. This is never guessed: a file that happens to lack feature 0 would be read
        differently from the others. `save_letor` always writes from 1.

    Returns
    -------
    Queries
        With document ids where the comments have ``docid = ...``.

    Raises
    ------
    ValueError
        With the file, the line and the reason.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.txt"
    >>> _ = path.write_text("2 qid:1 1:0.5 2:1 # docid = A\n0 qid:1 1:0.25 2:0 # docid = B\n")
    >>> load_letor(path).doc_ids
    array(['A', 'B'], dtype='<U1')
    """
    choice("null", null, ("min", "zero", "error", "missing"))
    if n_features is not None:
        count("n_features", n_features)
    file = Path(path)
    raw = read_bytes(file)
    buffer = np.frombuffer(raw, dtype=np.uint8)
    lines, highest, slow, line, fault = patiently(len(raw), count_lines, buffer)
    if fault:
        raise _bad_line(file, line, fault, buffer)
    if lines == 0:
        raise ValueError(f"{file}: expected at least one document, the file has none")
    base = 0 if zero_based else 1
    width = max(highest + 1 - base, 0)
    if n_features is None and width > MAX_FEATURES:
        raise ValueError(
            f"{file}: expected feature numbers up to {MAX_FEATURES:,}, got {highest:,}; pass "
            "n_features if there are so many"
        )
    if n_features is not None and width > n_features:
        raise ValueError(f"{file}: expected {n_features} features, found feature number {highest}")
    width = width if n_features is None else n_features
    size = 9.0 * lines * width + 64.0 * lines + 32.0 * slow + 8.0 * width
    need_memory(f"{file}: a table of {lines:,} documents x {width:,} features", size)
    first_line = _FIRST_LINE.search(raw)
    with_ids = first_line is not None and first_line[1] is not None
    if with_ids and query_file is not None:
        raise ValueError(
            f"query_file: expected none, the lines of {file} have query ids of their own"
        )
    begin = 0 if first_line is None else first_line.start()
    line = raw.count(b"\n", 0, begin) + 1
    companion = None if with_ids else read_companion(file, query_file, line)
    table = np.zeros((lines, width))
    text = np.empty((lines, 4), dtype=np.int64)
    labels, numbers, line_of = (np.empty(lines, dtype=np.int64) for _ in range(3))
    late = np.empty((slow, 4), dtype=np.int64)
    into = table, labels, numbers, line_of, text, late
    line, fault, n_late, numeric = patiently(
        2.0 * len(raw), scan_lines, buffer, *into, with_ids, base, null == "missing"
    )
    if fault:
        raise _bad_line(file, line, fault, buffer, base)
    if n_late:
        # Long or exponential numbers: the kernel cannot round them correctly, Python can.
        late = late[:n_late]
        values = np.array([float(raw[low:high]) for low, high in late[:, 2:].tolist()])
        for row, _, low, high in late[~np.isfinite(values)][:1]:
            read_number(file, line_of[row], raw[low:high])
        table[late[:, 0], late[:, 1]] = values
    _check_last_line(file, buffer, table, text, line_of)
    qid: NDArray[Any] = numbers
    if companion is not None:
        qid = query_numbers(file, *companion, lines)
    elif not numeric:
        raw_ids = (buffer[low:high].tobytes() for low, high in text[:, :2])
        qid = np.array([raw_id.decode(errors="replace") for raw_id in raw_ids])
    missing = np.isnan(table)
    if missing.any():
        if null == "error":
            row = int(np.argmax(missing.any(axis=1)))
            raise ValueError(
                f"{file}, line {line_of[row]}: a feature is NULL; null='missing' keeps it so"
            )
        if null != "missing":
            table = _fill(table, missing, qid, null)
    try:
        return Queries(
            table,
            labels,
            qid,
            doc_ids=_doc_ids(buffer, text),
            regroup=regroup,
            missing="allow" if null == "missing" else "error",
        )
    except RepeatedQueryError as error:
        raise ValueError(
            f"{file}, line {line_of[error.again]}: query {error.qid} starts again after other "
            f"queries (it began in line {line_of[error.first]}); regroup=True gathers its lines, "
            "on the command line --regroup"
        ) from error


def save_letor(queries: Queries, path: str | os.PathLike[str]) -> None:
    """Write queries as a LETOR file; reading it back gives exactly the same numbers.

    Parameters
    ----------
    queries : Queries
        Query and document ids must be without blanks and ``#``; ids that are whole numbers are
        read back as such.
    path : path
        With query ids, whatever the queries were read from, and features numbered from 1.
        Compressed if it ends in ``.gz`` or ``.bz2``. Written beside its place and then moved
        there, so that an interrupted run leaves no half a file.
    """
    for name, ids in (("qid", queries.qids), ("doc_ids", queries.doc_ids)):
        for entry in () if ids is None or ids.dtype.kind in "iu" else ids.tolist():
            if not re.fullmatch(r"[^\s#\x00-\x1f]*", str(entry)) or (name == "qid" and not entry):
                raise ValueError(f"{name}: cannot be written to a LETOR file: {entry!r}")

    def lines() -> Iterator[str]:
        qid = queries.qid
        for row in range(queries.n_documents):
            values = " ".join(
                f"{number}:{value!r}" for number, value in enumerate(queries.X[row].tolist(), 1)
            )
            comment = "" if queries.doc_ids is None else f" #docid = {queries.doc_ids[row]}"
            yield f"{queries.y[row]} qid:{qid[row]} {values}{comment}\n"

    write_atomically(Path(path), (line.encode() for line in lines()))


def _bad_line(
    file: Path, line: int, fault: int, buffer: NDArray[np.uint8], base: int = 1
) -> ValueError:
    """Describe a fault that a kernel found."""
    start = 0 if line == 1 else int(np.flatnonzero(buffer == NEWLINE)[line - 2]) + 1
    text = buffer[start : start + 60].tobytes().split(b"\n")[0].decode(errors="replace")
    shown = "" if fault == BINARY else f": {text!r}"
    reason = FAULTS[fault]
    if fault == INDEX and base == 0:
        reason = "a feature number is below 0"
    elif fault == INDEX and re.search(r"\s0+:", text):
        shown += "; zero_based=True, on the command line --zero-based, counts features from 0"
    return ValueError(f"{file}, line {line}: {reason}{shown}")


def _check_last_line(
    file: Path,
    buffer: NDArray[np.uint8],
    table: FloatArray,
    text: NDArray[np.int64],
    line_of: NDArray[np.int64],
) -> None:
    """Refuse a file that ends in the middle of a line, where that can be detected."""
    inside = text[-1, 0] > int(np.flatnonzero(buffer == NEWLINE)[-1:].max(initial=-1))
    commented = text[-1, 2] >= 0
    if len(table) < 3 or not inside or commented:
        return
    given = text[:, 3]  # features on each line
    if (given[:-1] == table.shape[1]).all() and given[-1] < table.shape[1]:
        raise ValueError(
            f"{file}, line {line_of[-1]}: the file is truncated: its last line has "
            f"{given[-1]} of {table.shape[1]} features and no end"
        )


def _fill(
    table: FloatArray, missing: NDArray[np.bool_], qid: NDArray[Any], null: str
) -> FloatArray:
    """Replace NULL by 0, or by the lowest value in its query."""
    if null == "zero":
        return np.where(missing, 0.0, table)
    _, query = np.unique(qid, return_inverse=True)
    lowest = np.full((query.max() + 1, table.shape[1]), np.inf)
    np.minimum.at(lowest, query, np.where(missing, np.inf, table))
    lowest[np.isinf(lowest)] = 0.0
    return np.where(missing, lowest[query], table)


def _doc_ids(buffer: NDArray[np.uint8], text: NDArray[np.int64]) -> NDArray[Any] | None:
    """Read ``docid = ...`` from the comments; None if no line has one."""
    ends = np.flatnonzero(buffer == NEWLINE)
    if not (text[:, 2] >= 0).any():
        return None
    raw = buffer.tobytes()
    ids = []
    for start in text[:, 2].tolist():
        if start < 0:
            ids.append("")
            continue
        at = int(np.searchsorted(ends, start))
        match = _DOC_ID.search(raw, start, int(ends[at]) if at < len(ends) else len(raw))
        ids.append(match[1].decode(errors="replace") if match else "")
    return np.array(ids) if any(ids) else None
