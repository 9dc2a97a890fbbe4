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
from permdist._files import read_bytes, write_atomically
from permdist.data.companions import query_numbers, read_companion
from permdist.data.letor_text import (
    FIRST_LINE,
    Text,
    count_text,
    cut_short,
    document_ids,
    fill_nulls,
    read_text,
)
from permdist.data.queries import Queries
from permdist.data.tables import RepeatedQueryError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import NDArray


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
    first_line = FIRST_LINE.search(raw)
    with_ids = first_line is not None and first_line[1] is not None
    text = Text(file, raw, with_ids, 0 if zero_based else 1, null == "missing")
    lines, width, slow = count_text(text, n_features)
    if lines == 0:
        raise ValueError(f"{file}: expected at least one document, the file has none")
    if with_ids and query_file is not None:
        raise ValueError(
            f"query_file: expected none, the lines of {file} have query ids of their own"
        )
    begin = 0 if first_line is None else first_line.start()
    line = raw.count(b"\n", 0, begin) + 1
    companion = None if with_ids else read_companion(file, query_file, line)
    found = read_text(text, lines, width, slow)
    broken = cut_short(raw, found, True, lines)
    if broken is not None:
        raise ValueError(f"{file}, {broken}")
    qid: NDArray[Any] | None = found.qid
    if companion is not None:
        qid = query_numbers(file, *companion, lines)
    line_of = found.line_of
    ids = np.zeros(lines) if qid is None else qid
    table = fill_nulls(found.X, ids, null, lambda row: f"{file}, line {line_of[row]}")
    try:
        return Queries(
            table,
            found.labels,
            qid,
            doc_ids=document_ids(raw, found),
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
