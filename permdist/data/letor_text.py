"""The text of LETOR files as arrays: for a whole file, or for a piece of one that holds queries."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._files import check_size
from permdist.data.letor_scan import (
    BINARY,
    FAULTS,
    INDEX,
    NEWLINE,
    count_lines,
    scan_lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from permdist._typing import FloatArray, IntArray

MAX_FEATURES = 1_000_000
FIRST_LINE = re.compile(rb"^[ \t\r]*[^\s#]+[ \t\r]*(qid:)?", re.MULTILINE)
_DOC_ID = re.compile(rb"docid\s*=\s*(\S+)")
_LATE = 4096  # values left to Python in a text that was not counted before


class Text(NamedTuple):
    """Some text of a file, and how to read it.

    Attributes
    ----------
    file : Path
        For messages.
    raw : bytes
    with_ids : bool
        Whether lines have query ids.
    base : int
        The number of the first feature, 0 or 1.
    nan : bool
        Whether values may be written nan.
    line : int
        The number of the first line in the file.
    """

    file: Path
    raw: bytes
    with_ids: bool = True
    base: int = 1
    nan: bool = False
    line: int = 1


class Lines(NamedTuple):
    """What the lines say, one entry per document.

    Attributes
    ----------
    X : array of float, shape (documents, features)
        NaN where a value is NULL.
    labels : array of int
    qid : array or None
        Whole numbers if all query ids are such, otherwise texts; None if the lines have none.
    line_of : array of int
        The number of the line in the file.
    places : array of int, shape (documents, 4)
        See `scan_lines`.
    used : int
        The number of columns up to the last one that any line has.
    """

    X: FloatArray
    labels: IntArray
    qid: NDArray[Any] | None
    line_of: IntArray
    places: IntArray
    used: int


def count_text(text: Text, n_features: int | None) -> tuple[int, int, int]:
    """Count documents, features and values that need slow reading, and check the features.

    Parameters
    ----------
    text : Text
    n_features : int or None
        The number of features if it is known.

    Returns
    -------
    int, int, int
        The number of features is `n_features` or follows from the highest number in the text.
    """
    file, buffer = text.file, np.frombuffer(text.raw, dtype=np.uint8)
    lines, highest, slow, line, fault = count_lines(buffer)
    if fault:
        raise bad_line(text, line, fault)
    width = max(highest + 1 - text.base, 0)
    if n_features is None and width > MAX_FEATURES:
        raise ValueError(
            f"{file}: expected feature numbers up to {MAX_FEATURES:,}, got {highest:,}; pass "
            "n_features if there are so many"
        )
    if n_features is not None and width > n_features:
        raise ValueError(f"{file}: expected {n_features} features, found feature number {highest}")
    width = width if n_features is None else n_features
    size = 9.0 * lines * width + 64.0 * lines + 32.0 * slow + 8.0 * width
    check_size(f"{file}: a table of {lines:,} documents x {width:,} features", size)
    return lines, width, slow


def read_text(text: Text, lines: int, width: int, slow: int) -> Lines:
    """Read text whose documents and features have been counted.

    Parameters
    ----------
    text : Text
    lines, width, slow : int
        What `count_text` returned.
    """
    found, line, fault = _scan(text, lines, width, slow)
    if fault:
        raise bad_line(text, line, fault)
    return found


def read_piece(text: Text, width: int | None, n_features: int | None) -> Lines:
    """Read text that has not been counted: once if it is as wide as expected, otherwise twice.

    Parameters
    ----------
    text : Text
    width : int or None
        The number of features that is expected; the table may become wider.
    n_features : int or None
        The number of features if it is known for certain.
    """
    if width is not None:
        lines = text.raw.count(b"\n") + 1
        found, _, fault = _scan(text, lines, width, _LATE)
        if not fault:
            return found
    lines, least, slow = count_text(text, n_features)
    return read_text(text, lines, max(least, width or 0), slow)


def _scan(text: Text, lines: int, width: int, slow: int) -> tuple[Lines, int, int]:
    """Fill arrays of this size; also return the line of a fault and its kind, 0 for none."""
    buffer = np.frombuffer(text.raw, dtype=np.uint8)
    X: FloatArray = np.zeros((lines, width))
    places: IntArray = np.empty((lines, 4), dtype=np.int64)
    labels, numbers, line_of = (np.empty(lines, dtype=np.int64) for _ in range(3))
    late = np.empty((slow, 4), dtype=np.int64)
    into = X, labels, numbers, line_of, places, late
    how = text.with_ids, text.base, text.nan
    rows, line, fault, n_late, numeric, used = scan_lines(buffer, *into, *how)
    X, labels, numbers = X[:rows], labels[:rows], numbers[:rows]
    line_of, places = line_of[:rows], places[:rows]
    line_of += text.line - 1
    if n_late and not fault:
        # Long or exponential numbers: the kernel cannot round them correctly, Python can.
        late = late[:n_late]
        values = np.array([float(text.raw[low:high]) for low, high in late[:, 2:].tolist()])
        for row, _, low, high in late[~np.isfinite(values)][:1]:
            read_number(text.file, line_of[row], text.raw[low:high])
        X[late[:, 0], late[:, 1]] = values
    qid: NDArray[Any] | None = numbers if text.with_ids else None
    if text.with_ids and not numeric and not fault:
        raw_ids = (text.raw[low:high] for low, high in places[:, :2].tolist())
        qid = np.array([raw_id.decode(errors="replace") for raw_id in raw_ids])
    return Lines(X, labels, qid, line_of, places, used), line, fault


def bad_line(text: Text, line: int, fault: int) -> ValueError:
    """Describe a fault that a kernel found in a line, which is counted from the text's first."""
    start = 0
    for _ in range(line - 1):
        start = text.raw.index(b"\n", start) + 1
    quoted = text.raw[start : start + 60].split(b"\n")[0].decode(errors="replace")
    shown = "" if fault == BINARY else f": {quoted!r}"
    reason = FAULTS[fault]
    if fault == INDEX and text.base == 0:
        reason = "a feature number is below 0"
    elif fault == INDEX and re.search(r"\s0+:", quoted):
        shown += "; zero_based=True, on the command line --zero-based, counts features from 0"
    return ValueError(f"{text.file}, line {line + text.line - 1}: {reason}{shown}")


def cut_short(raw: bytes, lines: Lines, full: bool, n_documents: int) -> str | None:
    """Return what is wrong if a file ends in the middle of a line, where that can be detected.

    Parameters
    ----------
    raw : bytes
        The end of the file.
    lines : Lines
        What was read from it.
    full : bool
        Whether all lines of the file before it have as many features.
    n_documents : int
        The number of documents of the whole file.
    """
    inside = lines.places[-1, 0] > raw.rfind(b"\n")
    commented = lines.places[-1, 2] >= 0
    if n_documents < 3 or not inside or commented or not full:
        return None
    given, width = lines.places[:, 3], lines.X.shape[1]
    if (given[:-1] == width).all() and given[-1] < width:
        return (
            f"line {lines.line_of[-1]}: the file is truncated: its last line has {given[-1]} of "
            f"{width} features and no end"
        )
    return None


def fill_nulls(
    table: FloatArray, qid: NDArray[Any], null: str, place: Callable[[int], str]
) -> FloatArray:
    """Replace NULL, which is NaN here, by 0 or by the lowest value in its query, or refuse it.

    Parameters
    ----------
    table : array of float, shape (documents, features)
    qid : array, shape (documents,)
    null : {"min", "zero", "error", "missing"}
        See `load_letor`.
    place : callable
        Returns the place of a document, for messages.
    """
    if null == "missing" or not (table.size and np.isnan(table.min())):
        return table
    missing = np.isnan(table)
    if null == "error":
        row = int(np.argmax(missing.any(axis=1)))
        raise ValueError(f"{place(row)}: a feature is NULL; null='missing' keeps it so")
    if null == "zero":
        return np.where(missing, 0.0, table)
    _, query = np.unique(qid, return_inverse=True)
    lowest = np.full((query.max() + 1, table.shape[1]), np.inf, dtype=table.dtype)
    np.minimum.at(lowest, query, np.where(missing, np.inf, table))
    lowest[np.isinf(lowest)] = 0.0
    return np.where(missing, lowest[query], table)


def document_ids(raw: bytes, lines: Lines) -> NDArray[Any] | None:
    """Read ``docid = ...`` from the comments; None if no line has one."""
    starts = lines.places[:, 2]
    if not (starts >= 0).any():
        return None
    ends = np.append(np.flatnonzero(np.frombuffer(raw, dtype=np.uint8) == NEWLINE), len(raw))
    stops = ends[np.searchsorted(ends, starts)]
    ids = []
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        match = _DOC_ID.search(raw, start, stop) if start >= 0 else None
        ids.append(match[1].decode(errors="replace") if match else "")
    return np.array(ids) if any(ids) else None


def read_number(file: Path, line: int, text: bytes) -> float:
    """Read one number, or raise an error that names the line."""
    try:
        value = float("nan") if b"_" in text else float(text)
    except ValueError:
        value = float("nan")
    if not math.isfinite(value):
        shown = text.decode(errors="replace").strip()[:40]
        raise ValueError(f"{file}, line {line}: expected a finite number, got {shown!r}")
    return value
