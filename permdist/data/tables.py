"""Data as they are given: frames of any library, their columns and rows, and the query ids."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import check_masks
from permdist._parallel import pointers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from permdist._typing import IntArray

LISTED = 5  # names that a message lists


def as_frame(name: str, values: Any) -> Any:
    """Return a table of another library as a pandas data frame; anything else as it is.

    Tables of polars, pyarrow, duckdb and others are read through the Arrow PyCapsule interface,
    which needs pyarrow, or through the data frame interchange protocol. One that has neither but
    names its columns and is an array to numpy is returned as it is.
    """
    if isinstance(values, np.ndarray) or hasattr(values, "iloc"):
        return values
    if hasattr(values, "__arrow_c_stream__"):
        try:
            import pyarrow as pa
        except ImportError:
            pass
        else:
            try:
                return pa.table(values).to_pandas()
            except (TypeError, ValueError):  # a column, not a table
                return values
    if hasattr(values, "__dataframe__"):
        from pandas.api.interchange import from_dataframe

        with warnings.catch_warnings():  # deprecated, but all that some libraries have
            warnings.simplefilter("ignore")
            return from_dataframe(values)
    if hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__array__"):
        raise TypeError(f"{name}: to read {_kind(values)}, install pyarrow (pip install pyarrow)")
    return values


def _kind(values: Any) -> str:
    kind = type(values)
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def check_no_texts(name: str, values: Any) -> None:
    """Refuse a data frame with a column of texts, categories or dates, and name the column."""
    if not hasattr(values, "iloc") or not hasattr(values, "columns"):
        return
    for number, dtype in enumerate(values.dtypes):
        column = values.columns[number]
        if getattr(dtype, "name", "") == "category":
            raise TypeError(
                f"{name}: expected numbers, column {column!r} is categorical; encode it as "
                "numbers (pandas.get_dummies) or leave it out"
            )
        kind = getattr(dtype, "kind", "O")
        if kind in "mM" or (kind == "O" and _has_texts(values.iloc[:, number])):
            raise TypeError(
                f"{name}: expected numbers, got texts or dates in column {column!r}; convert them "
                "first, or leave it out"
            )


def _has_texts(column: Any) -> bool:
    entries = np.asarray(column, dtype=object)
    return any(isinstance(entry, str | bytes) for entry in entries.flat)


def column_names(values: Any) -> tuple[str, ...] | None:
    """Return the column names of a data frame; None where there are none, or they are numbers.

    Names that are partly texts and partly something else are refused, as by scikit-learn.
    """
    columns = getattr(values, "columns", None)
    if columns is None or not hasattr(values, "shape"):
        return None
    names = list(columns)
    texts = sum(isinstance(name, str) for name in names)
    if texts == 0:
        return None
    if texts < len(names):
        kinds = ", ".join(sorted({type(name).__name__ for name in names}))
        raise TypeError(
            f"X: expected column names that are all texts, got {kinds}; Feature names are only "
            "supported if all input features have string names (X.columns.astype(str))"
        )
    return tuple(str(name) for name in names)


def differing_columns(
    what: str, got: Iterable[str], wanted: Iterable[str], where: str = "passed during fit"
) -> str | None:
    """Return what is wrong with column names: the first that differs, and why; or None."""
    found, expected = list(got), list(wanted)
    if found == expected:
        return None
    place = next(
        (k for k, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b),
        min(len(found), len(expected)),
    )
    here = repr(found[place]) if place < len(found) else "missing"
    there = repr(expected[place]) if place < len(expected) else "none"
    text = (
        f"{what}: column {place + 1} is {here}, expected {there}. The feature names should match "
        f"those that were {where}.\n"
    )
    unseen, missing = sorted(set(found) - set(expected)), sorted(set(expected) - set(found))
    if unseen:
        text += "Feature names unseen at fit time:\n" + listed_names(unseen)
    if missing:
        text += "Feature names seen at fit time, yet now missing:\n" + listed_names(missing)
    if not unseen and not missing:
        text += "Feature names must be in the same order as they were in fit.\n"
    return text


def listed_names(names: list[str]) -> str:
    """Return a list of names for a message, one per line; a long one is cut short."""
    lines = [f"- {name}\n" for name in names[:LISTED]]
    return "".join([*lines, "- ...\n"] if len(names) > LISTED else lines)


def check_same_rows(**named: Any) -> None:
    """Refuse pandas objects whose indexes have the same labels in another order.

    Rows are taken as they come, so that such an index is nearly always a mistake. What is not of
    pandas has no index, and indexes with other labels say nothing about each other.
    """
    indexes = {
        name: values.index
        for name, values in named.items()
        if hasattr(values, "iloc") and hasattr(getattr(values, "index", None), "equals")
    }
    first = next(iter(indexes), "")
    for name, index in indexes.items():
        wanted = indexes[first]
        if index is wanted or len(index) != len(wanted) or index.equals(wanted):
            continue
        if index.isin(wanted).all() and Counter(index) == Counter(wanted):
            align = f".loc[{first}.index], or " if wanted.is_unique and first.isidentifier() else ""
            raise ValueError(
                f"{name}: expected rows in the order of {first}, got an index with the same labels "
                "in another order, but rows are taken as they come: pass "
                f"{align}.to_numpy() if they correspond as they stand"
            )


# ---- queries -----------------------------------------------------------------------------------

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
    check_masks("qid", qid)
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
