"""`Description`: a summary of a collection, made in one pass over its documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._parallel import bounds
from permdist._result import Result, block, record_frame, table
from permdist._text import aligned
from permdist.data.normalize import pieces_of

if TYPE_CHECKING:
    import pandas as pd

    from permdist._typing import BoolArray
    from permdist.data.queries import Queries

PIECE = 2**20  # features that are looked at together


def describe(queries: Queries) -> Description:
    """Summarize a collection piece by piece; one on disk is never in memory as a whole.

    Parameters
    ----------
    queries : Queries
    """
    grade, number = np.unique(queries.y, return_counts=True)
    sizes = queries.sizes
    lowest = np.full(queries.n_features, np.inf)
    highest = np.full(queries.n_features, -np.inf)
    missing = conflicting = 0
    for first, last in pieces_of(queries.ptr, PIECE // max(1, queries.n_features)):
        X = queries.X[queries.ptr[first] : queries.ptr[last]]
        lowest = np.minimum(lowest, X.min(axis=0))
        highest = np.maximum(highest, X.max(axis=0))
        missing += int(np.isnan(X).sum()) if queries.has_missing else 0
        conflicting += int(clashes(queries, "features", first, last).sum())
    return Description(
        n_queries=queries.n_queries,
        n_documents=queries.n_documents,
        n_features=queries.n_features,
        label_counts=dict(zip(grade.tolist(), number.tolist(), strict=True)),
        documents_per_query=(int(sizes.min()), float(np.median(sizes)), int(sizes.max())),
        queries_without_relevant=int((queries.n_relevant == 0).sum()),
        constant_features=tuple((np.flatnonzero(lowest == highest) + 1).tolist()),
        conflicting_documents=conflicting,
        has_doc_ids=queries.doc_ids is not None,
        missing_values=missing,
    )


def clashes(queries: Queries, by: str, first: int = 0, last: int | None = None) -> BoolArray:
    """Mark the documents that have a twin with another label in their query.

    Parameters
    ----------
    queries : Queries
    by : {"features", "ids"}
        What makes documents twins: equal features or equal document ids.
    first, last : int
        The range of queries to look at; by default all.

    Returns
    -------
    array of bool, shape (documents of these queries,)
    """
    ptr = queries.ptr[first : queries.n_queries + 1 if last is None else last + 1]
    clash = np.zeros(ptr[-1] - ptr[0], dtype=bool)
    for low, high in bounds(ptr):
        labels = queries.y[low:high]
        if labels.min() == labels.max():
            continue
        keys: list[Any]
        if by == "features":  # as bytes; adding 0 makes the two zeros alike
            keys = [row.tobytes() for row in queries.X[low:high] + 0.0]
        else:
            keys = queries.doc_ids[low:high].tolist()  # type: ignore[index]
        numbers: dict[Any, int] = {}
        twin = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
        if len(twin) == twin.max() + 1:
            continue
        lowest = np.full(len(twin), np.iinfo(np.int64).max)
        highest = np.zeros(len(twin), np.int64)
        np.minimum.at(lowest, twin, labels)
        np.maximum.at(highest, twin, labels)
        clash[low - ptr[0] : high - ptr[0]] = lowest[twin] != highest[twin]
    return clash


@dataclass(frozen=True)
class Description(Result):
    """A summary of a collection of queries; prints as a short table.

    Features are numbered from 1 here, as in the files.
    """

    n_queries: int
    n_documents: int
    n_features: int
    label_counts: dict[int, int]
    documents_per_query: tuple[int, float, int]
    queries_without_relevant: int
    constant_features: tuple[int, ...]
    conflicting_documents: int
    has_doc_ids: bool
    missing_values: int = 0

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers as a data frame with one row.

        Returns
        -------
        DataFrame
            With a column for each field that is a number, ``fewest_documents``,
            ``median_documents`` and ``most_documents`` per query, ``constant_features`` (how many),
            and ``label_0``, ``label_1``, ...: the documents with each label.
        """
        names = ("fewest_documents", "median_documents", "most_documents")
        labels = {f"label_{label}": number for label, number in self.label_counts.items()}
        sizes = dict(zip(names, self.documents_per_query, strict=True))
        more = {"constant_features": len(self.constant_features)}
        return record_frame({**vars(self), **sizes, **more, **labels})

    def _repr_html_(self) -> str:
        return block("Description", table(("", ""), self._rows().items()))

    def __str__(self) -> str:
        return aligned(self._rows())

    def _rows(self) -> dict[str, str]:
        low, middle, high = self.documents_per_query
        labels = "  ".join(f"{label}:{number}" for label, number in self.label_counts.items())
        constant = ", ".join(map(str, self.constant_features)) or "none"
        rows = {
            "queries": f"{self.n_queries:,}",
            "documents": f"{self.n_documents:,}  (per query: {low} to {high}, median {middle:g})",
            "features": f"{self.n_features:,}",
            "labels": labels,
            "queries without a relevant document": f"{self.queries_without_relevant:,}",
            "constant features": constant,
            "equal features, different labels": f"{self.conflicting_documents:,} documents",
            "document ids": "yes" if self.has_doc_ids else "no",
        }
        if self.missing_values:
            rows["missing values"] = f"{self.missing_values:,}"
        return rows
