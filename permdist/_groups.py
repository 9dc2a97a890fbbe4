"""Queries inside flat arrays: where each one starts and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._ragged import pointers
from permdist._tables import refuse_masks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from permdist._typing import IntArray

LARGEST_WITHOUT_IDS = 1000


class Groups(NamedTuple):
    """The queries of flat arrays: query q owns documents ``ptr[q]:ptr[q + 1]``.

    Attributes
    ----------
    qids : array, shape (queries,)
        In the order of first appearance.
    ptr : array of int, shape (queries + 1,)
    order : array of int or None
        The permutation that gathers the documents of each query; None if they are contiguous.
    """

    qids: NDArray[Any]
    ptr: IntArray
    order: IntArray | None


class RepeatedQueryError(ValueError):
    """A query that starts again after other queries: its id, and the two places it starts at."""

    def __init__(self, qid: Any, first: int, again: int) -> None:
        self.qid, self.first, self.again = qid, first, again
        super().__init__(
            f"qid: query {qid} starts again at index {again}, after other queries; the "
            "documents of a query must stand together (regroup=True gathers them)"
        )


def group_queries(qid: ArrayLike | None, n_documents: int, *, regroup: bool = False) -> Groups:
    """Split documents into queries; without ids they are one query.

    More than 1,000 documents without ids are refused: the ids were probably forgotten.
    """
    if n_documents == 0:
        raise ValueError("y: expected at least one document, got none")
    if qid is None:
        if n_documents > LARGEST_WITHOUT_IDS:
            raise ValueError(
                f"qid: expected the query of each document, got none for {n_documents:,} "
                f"documents, more than the {LARGEST_WITHOUT_IDS:,} that are taken as one query "
                "without it; pass qid, or qid=numpy.zeros(len(y)) if they are one query"
            )
        return Groups(np.zeros(1, np.int64), np.array([0, n_documents]), None)
    refuse_masks("qid", qid)
    ids = np.asarray(qid)
    if ids.shape != (n_documents,):
        is_sizes = ids.ndim == 1 and ids.dtype.kind in "iu" and int(ids.sum()) == n_documents
        remedy = (
            "; these look like the numbers of documents per query: pass "
            "qid=numpy.repeat(numpy.arange(len(sizes)), sizes)"
        )
        raise ValueError(
            f"qid: expected {n_documents} entries as in y, got shape {ids.shape}"
            f"{remedy if is_sizes else ''}"
        )
    if ids.dtype.kind == "f":
        wrong = ~(np.isfinite(ids) & (ids == np.floor(ids)) & (np.abs(ids) < 2.0**63))
        if wrong.any():
            bad = int(np.argmax(wrong))
            raise ValueError(f"qid: expected whole numbers or names, got {ids[bad]} at index {bad}")
        ids = ids.astype(np.int64)
    if ids.dtype.kind in "OT":  # pandas columns of names
        found_types = {type(entry) for entry in ids.tolist()}
        if found_types not in ({str}, {int}):
            names = ", ".join(sorted(one.__name__ for one in found_types))
            raise TypeError(f"qid: expected whole numbers or names, got {names}")
        ids = np.array(ids.tolist())
    if ids.dtype.kind not in "iuUS":
        raise TypeError(f"qid: expected whole numbers or names, got dtype {ids.dtype}")
    starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
    found = ids[starts]
    _, first, number = np.unique(found, return_index=True, return_inverse=True)
    if len(first) == len(found):
        return Groups(found, np.append(starts, n_documents), None)
    if not regroup:
        again = int(np.flatnonzero(first[number] != np.arange(len(found)))[0])
        raise RepeatedQueryError(
            found[again], int(starts[first[number[again]]]), int(starts[again])
        )
    # Number the queries by first appearance, then sort the documents stably by that number.
    appearance = np.argsort(np.argsort(first))
    of_document = np.repeat(appearance[number], np.diff(np.append(starts, n_documents)))
    sizes = np.bincount(of_document)
    return Groups(found[np.sort(first)], pointers(sizes), np.argsort(of_document, kind="stable"))
