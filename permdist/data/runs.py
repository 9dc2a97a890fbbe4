"""Scores of documents in files: one a line as LETOR's tools have them, or runs as TREC's do."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from permdist._check import FloatArray, finite
from permdist._files import read_bytes, read_number, write_atomically
from permdist.data.queries import Queries


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
    scores = np.array([read_number(file, number, row) for number, row in enumerate(rows, 1)])
    if n_documents is not None and len(scores) != n_documents:
        raise ValueError(
            f"{file}: expected {n_documents:,} scores, one for each document, got {len(scores):,}"
        )
    return scores


def save_scores(scores: ArrayLike, path: str | os.PathLike[str]) -> None:
    """Write one score a line; reading them back gives the same numbers.

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
    """Write scores, one a line."""
    return [f"{value!r}\n" for value in finite("scores", scores, ndim=1).tolist()]


def save_run(
    queries: Queries, scores: ArrayLike, path: str | os.PathLike[str], *, name: str = "permdist"
) -> None:
    """Write a TREC run: ``qid Q0 document rank score name``, each query's best document first.

    Parameters
    ----------
    queries : Queries
        Documents without ids are called by their number in the query, from 1.
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
    """Write the lines of a TREC run; parameters as in `save_run`."""
    values = finite("scores", scores, ndim=1)
    if len(values) != queries.n_documents:
        raise ValueError(f"scores: expected {queries.n_documents:,}, got {len(values):,}")
    if not name or any(letter.isspace() for letter in name):
        raise ValueError(f"name: expected a word without blanks, got {name!r}")
    lines = []
    for qid in queries.qids.tolist():
        _need_word("query", str(qid))
    for qid, (a, b) in zip(queries.qids.tolist(), pairwise(queries.ptr.tolist()), strict=True):
        ids = _document_ids(queries, a, b)
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


def load_run(path: str | os.PathLike[str], queries: Queries) -> FloatArray:
    """Read a TREC run as scores of the documents of a collection.

    The score decides, not the rank, as in trec_eval. Documents that the run leaves out come last
    in their query, in their own order. A document or query that the collection does not have, or
    one that comes twice, is an error.

    Parameters
    ----------
    path : path
    queries : Queries
        Documents without ids are called by their number in the query, from 1.

    Returns
    -------
    array of float, shape (documents,)
    """
    file = Path(path)
    places = {
        (str(qid), name): a + i
        for qid, (a, b) in zip(queries.qids.tolist(), pairwise(queries.ptr.tolist()), strict=True)
        for i, name in enumerate(_document_ids(queries, a, b))
    }
    if len(places) < queries.n_documents:
        raise ValueError("queries: a document's id comes twice in a query, a run cannot tell them")
    known = set(map(str, queries.qids.tolist()))
    scores = np.full(queries.n_documents, np.nan)
    for number, row in enumerate(read_bytes(file).splitlines(), 1):
        fields = row.split()
        if not fields:
            continue
        if len(fields) != 6:
            raise ValueError(
                f"{file}, line {number}: expected 'qid Q0 document rank score name', "
                f"got {len(fields)} fields"
            )
        qid, document = fields[0].decode(errors="replace"), fields[2].decode(errors="replace")
        place = places.get((qid, document))
        if place is None:
            what = f"document {document!r} of query {qid}" if qid in known else f"query {qid!r}"
            raise ValueError(f"{file}, line {number}: {what} is not in the collection")
        if not np.isnan(scores[place]):
            raise ValueError(
                f"{file}, line {number}: document {document!r} of query {qid} comes twice"
            )
        scores[place] = read_number(file, number, fields[4])
    if np.isnan(scores).all():
        raise ValueError(f"{file}: expected 'qid Q0 document rank score name', the file has none")
    for a, b in pairwise(queries.ptr):
        found = scores[a:b]
        lowest = np.nanmin(found) if not np.isnan(found).all() else 0.0
        found[np.isnan(found)] = max(np.nextafter(lowest, -np.inf), -np.finfo(float).max)
    return scores


def is_run(path: str | os.PathLike[str]) -> bool:
    """Tell a TREC run (six fields a line) from a file of scores (one)."""
    rows = (row.split() for row in read_bytes(Path(path)).splitlines())
    return len(next((fields for fields in rows if fields), [])) == 6


def _need_word(what: str, text: str) -> None:
    if not text or any(letter.isspace() for letter in text):
        raise ValueError(f"queries: a run needs ids without blanks, got {what} {text!r}")


def _document_ids(queries: Queries, a: int, b: int) -> list[str]:
    if queries.doc_ids is None:
        return [str(number) for number in range(1, b - a + 1)]
    return [str(name) for name in queries.doc_ids[a:b].tolist()]
