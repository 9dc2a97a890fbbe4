"""Data frames of any library, and their column names."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

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
