"""Files of scores: one per line as LETOR's tools write them, or TREC runs; judgements."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from permdist._check import finite
from permdist._files import read_bytes, write_atomically
from permdist._parallel import bounds
from permdist.data.letor_text import read_number
from permdist.data.trec import Names, Qrels, Run, document_names, slice_names
from permdist.data.trec_scan import count_rows, read_numbers, scan_columns

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.data.letor_scan import Bytes
    from permdist.data.queries import Queries

Path_ = str | os.PathLike[str]
NUMPY = b"\x93NUMPY"  # the first bytes of what numpy.save writes
RUN_LINE = "'qid Q0 document rank score name'"
QRELS_LINE = "'qid 0 document grade'"


def load_scores(path: str | os.PathLike[str], n_documents: int | None = None) -> FloatArray:
    """Read a file with one score per line, as LETOR's tools write them, or one of `numpy.save`.

    Parameters
    ----------
    path : path
        An array of numpy is known by its first bytes, whatever the file is called.
    n_documents : int, optional
        The expected number of scores.
    """
    file = Path(path)
    raw = read_bytes(file)
    scores = _read_array(file, raw) if raw.startswith(NUMPY) else _read_lines(file, raw)
    if n_documents is not None and len(scores) != n_documents:
        raise ValueError(
            f"{file}: expected {n_documents:,} scores, one for each document, got {len(scores):,}"
        )
    return scores


def _read_lines(file: Path, raw: bytes) -> FloatArray:
    rows = raw.splitlines()
    while rows and not rows[-1].strip():
        rows.pop()
    if not rows:
        raise ValueError(f"{file}: expected one score per line, the file has none")
    return np.array([read_number(file, number, row) for number, row in enumerate(rows, 1)])


def _read_array(file: Path, raw: bytes) -> FloatArray:
    """Read what `numpy.save` has written; nothing in it is run."""
    try:
        found = np.load(io.BytesIO(raw), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        reason = str(error).splitlines()[0][:200]
        raise ValueError(f"{file}: expected an array of numbers: {reason}") from error
    return finite(str(file), found, ndim=1)


def save_scores(scores: ArrayLike, path: str | os.PathLike[str]) -> None:
    """Write one score per line; reading them back gives the same numbers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_scores([0.1, 2.0], pathlib.Path(folder) / "scores.txt")
    ...     load_scores(pathlib.Path(folder) / "scores.txt")
    array([0.1, 2. ])
    """
    write_atomically(Path(path), (line.encode() for line in score_lines(scores)))


def score_lines(scores: ArrayLike) -> list[str]:
    """Return scores as lines."""
    return [f"{value!r}\n" for value in finite("scores", scores, ndim=1).tolist()]


def save_run(
    queries: Queries, scores: ArrayLike, path: str | os.PathLike[str], *, name: str = "permdist"
) -> None:
    """Write a TREC run: ``qid Q0 document rank score name``, each query's best document first.

    Parameters
    ----------
    queries : Queries
        Documents without ids are identified by their number in the query, from 1.
    scores : array of float, shape (documents,)
        Equal scores keep the order of the documents.
    path : path
    name : str
        Of the run, without blanks.

    Examples
    --------
    >>> from permdist.data import Queries
    >>> import pathlib, tempfile
    >>> queries = Queries([[1.0], [2.0]], [0, 1], [7, 7])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_run(queries, [0.5, 0.9], pathlib.Path(folder) / "run.txt", name="mine")
    ...     print((pathlib.Path(folder) / "run.txt").read_text(), end="")
    7 Q0 2 1 0.9 mine
    7 Q0 1 2 0.5 mine
    """
    write_atomically(Path(path), (line.encode() for line in run_lines(queries, scores, name)))


def run_lines(queries: Queries, scores: ArrayLike, name: str = "permdist") -> list[str]:
    """Return the lines of a TREC run; parameters as in `save_run`."""
    values = finite("scores", scores, ndim=1)
    if len(values) != queries.n_documents:
        raise ValueError(f"scores: expected {queries.n_documents:,}, got {len(values):,}")
    if not name or any(letter.isspace() for letter in name):
        raise ValueError(f"name: expected a word without blanks, got {name!r}")
    lines = []
    for qid in queries.qids.tolist():
        _need_word("query", str(qid))
    names = document_names(queries)
    for qid, (a, b) in zip(queries.qids.tolist(), bounds(queries.ptr), strict=True):
        ids = names[a:b]
        for document in ids:
            _need_word("document", document)
        if len(set(ids)) < len(ids):
            raise ValueError(f"queries: a document's id comes twice in query {qid}")
        order = np.argsort(-values[a:b], kind="stable").tolist()
        shown = values[a:b].tolist()
        lines += [
            f"{qid} Q0 {ids[i]} {rank} {shown[i]!r} {name}\n" for rank, i in enumerate(order, 1)
        ]
    return lines


@overload
def load_run(path: Path_, queries: None = None, *, precision: str = "single") -> Run: ...
@overload
def load_run(path: Path_, queries: Queries, *, precision: str = "single") -> FloatArray: ...
def load_run(
    path: Path_, queries: Queries | None = None, *, precision: str = "single"
) -> Run | FloatArray:
    r"""Read a TREC run: lines of ``qid Q0 document rank score name``.

    The score decides, not the rank, as in trec_eval. A document that comes twice in a query is an
    error.

    Parameters
    ----------
    path : path
        Plain, ``.gz`` or ``.bz2``.
    queries : Queries, optional
        Return scores of the documents of this collection instead. Documents that the run leaves
        out come last in their query, in their own order; a document or query that the collection
        does not have is an error. Documents without ids are called by their number in the query,
        from 1. To *evaluate* a run, read it without this.
    precision : {"single", "double"}
        Which scores tie, see `Run`.

    Returns
    -------
    Run, or array of float, shape (documents,)

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.txt"
    >>> _ = path.write_text("7 Q0 a 1 0.5 mine\n7 Q0 b 2 0.9 mine\n")
    >>> load_run(path).documents("7")
    ['b', 'a']
    """
    file = Path(path)
    query_names, documents, text, places, line_of = _scan(file, 6, (0, 2, 4), RUN_LINE)
    scores = np.empty(len(line_of))
    start, stop = (np.ascontiguousarray(places[:, column]) for column in (4, 5))
    if read_numbers(text, start, stop, scores):
        # Long or exponential numbers: the kernel cannot round them correctly, Python can.
        for row in np.flatnonzero(np.isnan(scores)).tolist():
            raw = text[start[row] : stop[row]].tobytes()
            scores[row] = read_number(file, int(line_of[row]), raw)
    if queries is not None:
        return _scores_of(file, queries, query_names, documents, scores, line_of)
    return Run.of_names(
        query_names, documents, scores, precision, lambda row: f"{file}, line {line_of[row]}"
    )


def load_qrels(path: Path_) -> Qrels:
    r"""Read relevance judgements: lines of ``qid 0 document grade``.

    Parameters
    ----------
    path : path
        Plain, ``.gz`` or ``.bz2``. Grades are whole numbers; a negative one says that the
        document was in the pool but not judged. A document judged twice is an error.

    Returns
    -------
    Qrels

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "qrels.txt"
    >>> _ = path.write_text("7 0 a 1\n7 0 b 0\n")
    >>> load_qrels(path)
    Qrels(1 query, 2 judgements)
    """
    file = Path(path)
    query_names, documents, text, places, line_of = _scan(file, 4, (0, 2, 3), QRELS_LINE)
    values = np.empty(len(line_of))
    start, stop = (np.ascontiguousarray(places[:, column]) for column in (4, 5))
    read_numbers(text, start, stop, values)
    bad = ~(np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) <= 2.0**53))
    if bad.any():
        row = int(np.argmax(bad))
        shown = text[start[row] : stop[row]].tobytes().decode(errors="replace")[:40]
        raise ValueError(
            f"{file}, line {line_of[row]}: expected a grade, a whole number, got {shown!r}"
        )
    grades = values.astype(np.int64)
    return Qrels.of_names(
        query_names, documents, grades, lambda row: f"{file}, line {line_of[row]}"
    )


def file_kind(path: Path_) -> str:
    """Return what a file is by its first line: "scores", "run", "qrels", "letor" or "unknown"."""
    raw = read_bytes(Path(path))
    if raw.startswith(NUMPY):
        return "scores"
    start = len(raw) - len(raw.lstrip())
    end = raw.find(b"\n", start)
    fields = raw[start : end if end >= 0 else len(raw)].split()
    if len(fields) == 1:
        return "scores"
    if len(fields) > 1 and (fields[1].startswith(b"qid:") or b":" in fields[-1]):
        return "letor"
    if len(fields) == 6:
        return "run"
    if len(fields) == 4 and re.fullmatch(rb"[+-]?[0-9]+", fields[3]):
        return "qrels"
    return "unknown"


def is_run(path: Path_) -> bool:
    """Return whether a file is a TREC run (six fields per line)."""
    return file_kind(path) == "run"


def _scan(
    file: Path, width: int, columns: tuple[int, int, int], expected: str
) -> tuple[Names, Names, Bytes, IntArray, IntArray]:
    """Find the columns of a file: queries, documents, and where the third wanted one stands."""
    text = np.frombuffer(read_bytes(file), dtype=np.uint8)
    rows, line = count_rows(text)
    if line:
        raise ValueError(f"{file}, line {line}: binary data: this is not a text file")
    if rows == 0:
        raise ValueError(f"{file}: expected {expected}, the file has none")
    places, line_of = np.empty((rows, 6), np.int64), np.empty(rows, np.int64)
    line, fields = scan_columns(text, width, np.array(columns), places, line_of)
    if line:
        raise ValueError(f"{file}, line {line}: expected {expected}, got {fields} fields")
    names = [slice_names(text, places[:, c], places[:, c + 1]) for c in (0, 2)]
    return names[0], names[1], text, places, line_of


def _scores_of(
    file: Path,
    queries: Queries,
    query_names: Names,
    documents: Names,
    values: FloatArray,
    line_of: IntArray,
) -> FloatArray:
    """Bring the scores of a run to the documents of a collection."""
    qid, ids = [str(one) for one in queries.qid.tolist()], document_names(queries)
    places = {pair: row for row, pair in enumerate(zip(qid, ids, strict=True))}
    if len(places) < queries.n_documents:
        raise ValueError("queries: a document's id comes twice in a query, a run cannot tell them")
    known = set(qid)
    scores = np.full(queries.n_documents, np.nan)
    rows = range(len(values))
    pairs = zip(query_names.strings(rows), documents.strings(rows), strict=True)
    for row, (query, document) in enumerate(pairs):
        place = places.get((query, document))
        where = f"{file}, line {line_of[row]}"
        if place is None:
            what = (
                f"document {document!r} of query {query}" if query in known else f"query {query!r}"
            )
            raise ValueError(f"{where}: {what} is not in the collection")
        if not np.isnan(scores[place]):
            raise ValueError(f"{where}: document {document!r} of query {query} comes twice")
        scores[place] = values[row]
    for a, b in bounds(queries.ptr):
        found = scores[a:b]
        lowest = np.nanmin(found) if not np.isnan(found).all() else 0.0
        found[np.isnan(found)] = max(np.nextafter(lowest, -np.inf), -np.finfo(float).max)
    return scores


def _need_word(what: str, text: str) -> None:
    if not text or any(letter.isspace() for letter in text):
        raise ValueError(f"queries: a run needs ids without blanks, got {what} {text!r}")
