"""Companion files: the number of documents per query, for SVMlight files without query ids."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from permdist._files import read_bytes

if TYPE_CHECKING:
    import os

    from permdist._typing import IntArray

SUFFIXES = (".query", ".group")
COMPRESSED = ("", ".gz", ".bz2")


def companions(file: Path) -> list[Path]:
    """List possible companions: ``train.txt.query`` or ``.group`` for ``train.txt.gz``."""
    bare = file.with_suffix("") if file.suffix in COMPRESSED else file
    stems = [bare] if bare == file else [bare, file]
    return [
        stem.with_name(stem.name + suffix + packed)
        for stem in stems
        for suffix in SUFFIXES
        for packed in COMPRESSED
    ]


def read_companion(
    file: Path, given: str | os.PathLike[str] | None, line: int
) -> tuple[Path, IntArray]:
    """Find and read the number of documents per query of a file, in the order of the file.

    Parameters
    ----------
    file : Path
        The file of documents.
    given : path, optional
        The companion; by default the one beside the file.
    line : int
        The first line that has no query id.

    Returns
    -------
    Path, array of int, shape (queries,)
    """
    if given is not None:
        return Path(given), _counts(Path(given))
    found = [place for place in companions(file) if place.is_file()]
    if len(found) > 1:
        names = ", ".join(place.name for place in found)
        raise ValueError(
            f"{file}: expected one companion with the sizes of the queries, got {names}; name one "
            "with query_file=..., on the command line --query-file"
        )
    if not found:
        names = " or ".join(place.name for place in companions(file)[:6:3])
        raise ValueError(
            f"{file}, line {line}: expected qid:ID after the label, got none, and there is no "
            f"companion {names} beside it; name the file with the number of documents of each "
            "query with query_file=..., on the command line --query-file"
        )
    return found[0], _counts(found[0])


def query_numbers(file: Path, companion: Path, sizes: IntArray, n_documents: int) -> IntArray:
    """Return the query of each document, numbered from 1."""
    total = int(sizes.sum())
    if total != n_documents:
        raise ValueError(
            f"{companion}: expected sizes of queries that add up to the {n_documents:,} documents "
            f"of {file}, got {total:,}"
        )
    return np.repeat(np.arange(1, len(sizes) + 1), sizes)


def _counts(path: Path) -> IntArray:
    raw = read_bytes(path)
    counts = []
    for number, line in enumerate(raw.split(b"\n"), 1):
        for text in line.split():
            if not (text.isdigit() and len(text) <= 15 and int(text) > 0):
                shown = text[:40].decode(errors="replace")
                raise ValueError(
                    f"{path}, line {number}: expected the number of documents of a query, "
                    f"got {shown!r}"
                )
            counts.append(int(text))
    if not counts:
        raise ValueError(f"{path}: expected the number of documents of each query, got none")
    return np.array(counts, dtype=np.int64)
