"""What `rate` takes besides battles and ballots: files, and tables that nobody has loaded yet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from permdist.ballots import Ballots
from permdist.data import load_battles, load_preflib
from permdist.data.battle_columns import find_roles
from permdist.data.battle_files import SUFFIXES, is_table
from permdist.data.preflib import FILE_TYPES

REMEDY = (
    "a table of battles is read by permdist.data.load_battles(data, first=COLUMN, second=COLUMN, "
    "winner=COLUMN)"
)


def loaded(data: Any) -> Any:
    """Return battles or preferences from a file, battles from a table of them.

    Parameters
    ----------
    data : object
        What is neither is returned as it is. A data frame is a table of battles if its columns
        have usual names for it, as in `permdist.data.load_battles`.

    Examples
    --------
    >>> loaded({"model_a": ["x"], "model_b": ["y"], "winner": ["a"]})
    Battles(1 of 2 competitors)
    >>> loaded([[0, 1], [1, 0]])
    [[0, 1], [1, 0]]
    """
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        if any(suffix[1:] in FILE_TYPES for suffix in path.suffixes):
            return load_preflib(path)
        if is_table(path):
            return load_battles(path)
        kinds = ", ".join((*SUFFIXES, *(f".{kind}" for kind in FILE_TYPES)))
        raise ValueError(f"data: expected battles, ballots or a file {kinds}, got {str(data)!r}")
    if isinstance(data, dict) or (hasattr(data, "iloc") and _has_roles(data)):
        return load_battles(data)
    return data


def ballots_of(data: Any) -> Ballots:
    """Return ballots; an error about a data frame says how to read battles.

    Parameters
    ----------
    data : object
        What `Ballots.of` takes.
    """
    try:
        return Ballots.of(data)
    except (ValueError, TypeError) as error:
        if hasattr(data, "iloc"):
            error.args = (f"{error}; {REMEDY}", *error.args[1:])
        raise


def _has_roles(frame: Any) -> bool:
    """Check whether the columns of a data frame have usual names for battles."""
    none = dict.fromkeys(("first", "second", "winner", "loser", "ties"))
    try:
        find_roles([str(column) for column in frame.columns], **none, source="data")
    except ValueError:
        return False
    return True
