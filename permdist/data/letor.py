"""LETOR / SVMlight files: reading with exact errors, writing, the standard five folds.

A line is ``label qid:ID index:value ... # comment``. Numbers are scanned by a compiled kernel.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from permdist._check import FloatArray, choice, count
from permdist._files import read_bytes, write_atomically
from permdist._groups import RepeatedQueryError
from permdist.data.letor_scan import BINARY, FAULTS, NEWLINE, count_lines, scan_lines
from permdist.data.queries import Queries

MAX_FEATURES = 1_000_000
_DOC_ID = re.compile(rb"docid\s*=\s*(\S+)")
_PARTS = ("train", "vali", "test")
_ENDINGS = ("", ".gz", ".bz2")


class Fold(NamedTuple):
    """The three parts of one cross-validation fold."""

    train: Queries
    vali: Queries
    test: Queries


def load_letor(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    null: str = "min",
    regroup: bool = False,
) -> Queries:
    r"""Read a LETOR or SVMlight ranking file, plain, ``.gz`` or ``.bz2``.

    Parameters
    ----------
    path : path
    n_features : int, optional
        The number of features, where the file may lack the last ones. Absent features are 0.
    null : {"min", "zero", "error"}
        A value written ``NULL`` becomes the lowest value of that feature in its query (as in
        LETOR's own conversion; 0 if all are NULL), becomes 0, or is an error.
    regroup : bool
        Gather queries whose lines do not stand together, instead of refusing the file.

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
    choice("null", null, ("min", "zero", "error"))
    if n_features is not None:
        count("n_features", n_features)
    file = Path(path)
    buffer = np.frombuffer(read_bytes(file), dtype=np.uint8)
    lines, width, slow, line, fault = count_lines(buffer)
    if fault:
        raise _bad_line(file, line, fault, buffer)
    if lines == 0:
        raise ValueError(f"{file}: expected at least one document, the file has none")
    if width > MAX_FEATURES:
        raise ValueError(
            f"{file}: feature numbers up to {width:,} are beyond the limit of {MAX_FEATURES:,}"
        )
    if n_features is not None and width > n_features:
        raise ValueError(f"{file}: expected {n_features} features, found feature number {width}")
    table = np.zeros((lines, width if n_features is None else n_features))
    text = np.empty((lines, 4), dtype=np.int64)
    labels, numbers, line_of = (np.empty(lines, dtype=np.int64) for _ in range(3))
    late = np.empty((slow, 4), dtype=np.int64)
    line, fault, n_late, numeric = scan_lines(buffer, table, labels, numbers, line_of, text, late)
    if fault:
        raise _bad_line(file, line, fault, buffer)
    if n_late:
        # Long or exponential numbers: the kernel cannot round them correctly, Python can.
        raw, late = buffer.tobytes(), late[:n_late]
        values = np.array([float(raw[low:high]) for low, high in late[:, 2:].tolist()])
        for row, _, low, high in late[~np.isfinite(values)][:1]:
            _finite(file, line_of[row], raw[low:high])
        table[late[:, 0], late[:, 1]] = values
    _check_last_line(file, buffer, table, text, line_of)
    qid: NDArray[Any] = numbers
    if not numeric:
        raw_ids = (buffer[low:high].tobytes() for low, high in text[:, :2])
        qid = np.array([raw_id.decode(errors="replace") for raw_id in raw_ids])
    missing = np.isnan(table)
    if missing.any():
        if null == "error":
            row = int(np.argmax(missing.any(axis=1)))
            raise ValueError(f"{file}, line {line_of[row]}: a feature is NULL")
        table = _fill(table, missing, qid, null)
    try:
        return Queries(table, labels, qid, doc_ids=_doc_ids(buffer, text), regroup=regroup)
    except RepeatedQueryError as error:
        raise ValueError(
            f"{file}, line {line_of[error.again]}: query {error.qid} starts again after other "
            f"queries (it began in line {line_of[error.first]}); regroup=True gathers its lines"
        ) from error


def save_letor(queries: Queries, path: str | os.PathLike[str]) -> None:
    """Write queries as a LETOR file, so that reading it back gives the very same numbers.

    Parameters
    ----------
    queries : Queries
        Query and document ids must be without blanks and ``#``; ids that are whole numbers are
        read back as such.
    path : path
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


def load_letor_folds(directory: str | os.PathLike[str]) -> list[Fold]:
    """Read the cross-validation folds of a LETOR collection.

    Parameters
    ----------
    directory : path
        With ``Fold1/train.txt, Fold1/vali.txt, Fold1/test.txt`` and so on, or with the five parts
        ``S1.txt .. S5.txt`` of which LETOR makes them (Fold 1 trains on S1, S2 and S3, validates
        on S4 and tests on S5; Fold 2 starts at S2, and so on round). Compressed files will do.

    Returns
    -------
    list of Fold
        All parts have the same number of features.
    """
    root = Path(directory)
    if not root.is_dir():
        raise ValueError(f"{root}: expected a directory with the folds")
    trees = sorted(
        (entry for entry in root.iterdir() if re.fullmatch(r"Fold\d+", entry.name)),
        key=lambda entry: int(entry.name[4:]),
    )
    if trees:
        parts = [[load_letor(_find(tree, part)) for part in _PARTS] for tree in trees]
        width = max(part.n_features for fold in parts for part in fold)
        return [Fold(*(_widen(part, width) for part in fold)) for fold in parts]
    if not any((root / f"S1.txt{ending}").is_file() for ending in _ENDINGS):
        raise ValueError(f"{root}: expected Fold1, Fold2, ... or S1.txt to S5.txt")
    pieces = [load_letor(_find(root, f"S{number}")) for number in range(1, 6)]
    width = max(piece.n_features for piece in pieces)
    pieces = [_widen(piece, width) for piece in pieces]
    return [
        Fold(
            Queries.concatenate(pieces[(fold + step) % 5] for step in range(3)),
            pieces[(fold + 3) % 5],
            pieces[(fold + 4) % 5],
        )
        for fold in range(5)
    ]


def load_scores(path: str | os.PathLike[str], n_documents: int | None = None) -> FloatArray:
    """Read a file with one score a line, as LETOR's tools write them.

    Parameters
    ----------
    path : path
    n_documents : int, optional
        How many scores there should be.
    """
    file = Path(path)
    rows = read_bytes(file).splitlines()
    while rows and not rows[-1].strip():
        rows.pop()
    if not rows:
        raise ValueError(f"{file}: expected one score a line, the file has none")
    scores = np.array([_finite(file, number, row) for number, row in enumerate(rows, 1)])
    if n_documents is not None and len(scores) != n_documents:
        raise ValueError(
            f"{file}: expected {n_documents:,} scores, one for each document, got {len(scores):,}"
        )
    return scores


def _finite(file: Path, line: int, text: bytes) -> float:
    """Read one number, or say where it is not one."""
    try:
        value = float("nan") if b"_" in text else float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        shown = text.decode(errors="replace").strip()[:40]
        raise ValueError(f"{file}, line {line}: expected a finite number, got {shown!r}")
    return value


def _bad_line(file: Path, line: int, fault: int, buffer: NDArray[np.uint8]) -> ValueError:
    """Describe a fault that a kernel found."""
    start = 0 if line == 1 else int(np.flatnonzero(buffer == NEWLINE)[line - 2]) + 1
    text = buffer[start : start + 60].tobytes().split(b"\n")[0].decode(errors="replace")
    shown = "" if fault == BINARY else f": {text!r}"
    return ValueError(f"{file}, line {line}: {FAULTS[fault]}{shown}")


def _check_last_line(
    file: Path,
    buffer: NDArray[np.uint8],
    table: FloatArray,
    text: NDArray[np.int64],
    line_of: NDArray[np.int64],
) -> None:
    """Refuse a file that stops in the middle of a line, where that can be told."""
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


def _find(folder: Path, stem: str) -> Path:
    """Find a part of a collection, compressed or not."""
    for ending in _ENDINGS:
        if (folder / f"{stem}.txt{ending}").is_file():
            return folder / f"{stem}.txt{ending}"
    raise ValueError(f"{folder / stem}.txt: no such file (nor .gz or .bz2)")


def _widen(queries: Queries, n_features: int) -> Queries:
    """Add features that are 0 everywhere."""
    lacking = n_features - queries.n_features
    if lacking == 0:
        return queries
    X = np.pad(queries.X, ((0, 0), (0, lacking)))
    return Queries(X, queries.y, queries.qid, doc_ids=queries.doc_ids)
