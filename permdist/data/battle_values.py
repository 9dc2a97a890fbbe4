"""The values in the columns of a table of battles, and the errors about them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import frozen
from permdist._text import plural
from permdist.data.battle_columns import (
    BOTH_BAD,
    FIRST,
    TIE,
    Earlier,
    Roles,
    find_column,
    read_outcomes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pandas import DataFrame, Series

    from permdist._typing import BoolArray, FloatArray, IntArray

POSITION = "position"
MISSING = "(missing)"


# ---- columns -----------------------------------------------------------------------------------


def covariate(columns: Sequence[str], name: str, source: str) -> tuple[str, ...]:
    """Return the column of a covariate, its two columns, or none for the position."""
    known = {column.strip().casefold(): column for column in columns[::-1]}
    for ends in (("",), ("_a", "_b"), ("_1", "_2"), ("_first", "_second")):
        found = tuple(known.get(f"{name}{end}".casefold(), "") for end in ends)
        if all(found):
            return found
    if name == POSITION:
        return ()
    find_column(columns, name, "covariates", f"{source}: no pair {name}_a, {name}_b either")
    raise AssertionError  # the line above has found the column, or raised


def complete(
    frame: DataFrame, roles: Roles, where: Callable[[int], str], missing: str
) -> BoolArray:
    """Return which rows have both competitors and a winner; refuse the others unless dropped."""
    complete = np.ones(len(frame), dtype=np.bool_)
    for column in (roles.first, roles.second, roles.winner):
        if column is None:
            continue
        bad = frame[column].isna().to_numpy()
        if missing == "error":
            text = f"{column} is missing; missing='drop' leaves such rows out"
            refuse(bad, where, lambda _, text=text: text)  # type: ignore[misc]
        complete &= ~bad
    if not complete.any():
        raise ValueError("battles: every row lacks a competitor or the winner")
    return complete


def items_of(frame: DataFrame, roles: Roles) -> tuple[tuple[str, ...], IntArray, IntArray]:
    """Return the sorted names of the competitors, and the two of each row."""
    (one, left), (two, right) = coded(frame[roles.first]), coded(frame[roles.second])
    used = {left[code] for code in np.unique(one)} | {right[code] for code in np.unique(two)}
    names = tuple(sorted(used))
    number = {name: item for item, name in enumerate(names)}
    places = [np.array([number.get(name, -1) for name in side]) for side in (left, right)]
    return names, places[0][one], places[1][two]


def coded(column: Series) -> tuple[IntArray, list[str]]:
    """Return the number of each row's text, and the texts; a missing entry has a text, too."""
    from pandas import CategoricalDtype

    if isinstance(column.dtype, CategoricalDtype):
        codes, values = column.cat.codes.to_numpy(), list(column.cat.categories)
    else:
        codes, unique = column.factorize(use_na_sentinel=True)
        values = list(unique)
    texts = [_as_text(value) for value in values]
    if (codes < 0).any():
        texts.append(MISSING)
        codes = np.where(codes < 0, len(texts) - 1, codes)
    number = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return np.array([number[text] for text in texts], dtype=np.int64)[codes], list(number)


def clusters(column: Series) -> IntArray:
    """Return the number of each row's cluster; all that have none are one cluster."""
    codes, _ = column.factorize(use_na_sentinel=False)
    return frozen(codes.astype(np.int64))


def _as_text(value: Any) -> str:
    """Return a name without blanks around it; whole numbers have no decimal point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value).strip()


def outcomes(
    frame: DataFrame,
    roles: Roles,
    names: tuple[str, ...],
    one: IntArray,
    two: IntArray,
    spellings: Mapping[str, str] | None,
    where: Callable[[int], str],
    earlier: Earlier | None = None,
) -> IntArray:
    """Return who won each battle."""
    if roles.winner is not None:
        codes, labels = coded(frame[roles.winner])
        sides = (roles.first, roles.second)
        return read_outcomes(codes, labels, one, two, names, sides, spellings, where, earlier)
    if roles.shares:
        shares = np.stack([numbers(frame, c, where) if c else 0 * one for c in roles.shares])
        bad = (np.sort(shares, axis=0) != [[0], [0], [1]]).any(axis=0)
        shown = ", ".join(filter(None, roles.shares))
        refuse(bad, where, lambda _: f"expected one 1 and zeros in the columns {shown}")
        return np.argmax(shares, axis=0).astype(np.int64)
    if not roles.ties:
        return np.full(len(frame), FIRST, dtype=np.int64)
    codes, labels = coded(frame[roles.ties])
    meaning = {"true": TIE, "1": TIE, "yes": TIE, "tie": TIE, "draw": TIE, "bothbad": BOTH_BAD}
    meaning |= dict.fromkeys(("false", "0", "no", "", MISSING), FIRST)
    meant = np.array([meaning.get(label.lower(), -1) for label in labels])[codes]
    refuse(meant < 0, where, lambda row: f"expected true or false, got {labels[codes[row]]!r}")
    return meant.astype(np.int64)


def numbers(frame: DataFrame, column: str, where: Callable[[int], str]) -> FloatArray:
    """Return a column of finite numbers."""
    from pandas import to_numeric

    given = frame[column]
    values = to_numeric(given, errors="coerce").to_numpy(np.float64)

    def reason(row: int) -> str:
        return f"{column}: expected a finite number, got {str(given.iloc[row])[:40]!r}"

    refuse(~np.isfinite(values), where, reason)
    return values


def times(frame: DataFrame, column: str, where: Callable[[int], str]) -> FloatArray:
    """Return times: numbers as they are, dates in days."""
    from pandas import Timedelta, Timestamp, to_datetime, to_numeric

    values = frame[column]
    kind = values.dtype.kind
    if kind in "iuf" or (kind != "M" and to_numeric(values, errors="coerce").notna().all()):
        return numbers(frame, column, where)
    dates = to_datetime(values, errors="coerce", utc=True, format="ISO8601")
    if dates.isna().any():
        dates = to_datetime(values, errors="coerce", utc=True, format="mixed")
    bad = dates.isna().to_numpy()
    refuse(bad, where, lambda row: f"{column}: expected a date, got {values.iloc[row]!r}")
    days = (dates - Timestamp(0, tz="UTC")) / Timedelta(days=1)
    return days.to_numpy(np.float64)


def features(
    frame: DataFrame, covariates: Sequence[tuple[str, ...]], where: Callable[[int], str]
) -> tuple[FloatArray, FloatArray]:
    """Return the covariates of the first and of the second competitor, a column for each."""
    first, second = (np.zeros((len(frame), len(covariates))) for _ in range(2))
    for place, columns in enumerate(covariates):
        first[:, place] = numbers(frame, columns[0], where) if columns else 1.0
        if len(columns) == 2:
            second[:, place] = numbers(frame, columns[1], where)
    return frozen(first), frozen(second)


# ---- faults ------------------------------------------------------------------------------------


def refuse(bad: BoolArray, where: Callable[[int], str], reason: Callable[[int], str]) -> None:
    """Raise an error about the first row that is bad, if there is one."""
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"{where(row)}: {reason(row)}")


def refuse_nested(frame: DataFrame, where: Callable[[int], str]) -> None:
    """Refuse lists and objects, which JSON has, where texts and numbers are expected."""
    for column in frame.columns:
        given = frame[column]
        if given.dtype == object:
            nested = np.array([isinstance(value, list | dict) for value in given], dtype=np.bool_)
            text = f"{column}: expected a text or a number, got a list or an object"
            refuse(nested, where, lambda _, text=text: text)  # type: ignore[misc]


def check_repeats(
    table: Any,
    identity: Series,
    one: IntArray,
    two: IntArray,
    outcome: IntArray,
    roles: Roles,
    kept: IntArray,
) -> None:
    """Refuse rows that repeat others with another winner; warn of those with the same one."""
    from pandas import DataFrame

    rows = np.flatnonzero(identity.duplicated(keep=False) & identity.notna())
    keys = DataFrame({"id": identity.iloc[rows].to_numpy(), "one": one[rows], "two": two[rows]})
    rows = rows[keys.duplicated(keep=False).to_numpy()]
    if not rows.size:
        return
    result = {roles.winner, roles.ties, *roles.shares}
    others = [column for column in table.columns if column not in result]
    whole = table.read(others, others).iloc[kept[rows]].astype(str)
    group = whole.groupby(others, sort=False, dropna=False).ngroup().to_numpy()
    first_of = {int(number): rows[at] for at, number in list(enumerate(group))[::-1]}
    start = np.array([first_of[int(number)] for number in group])
    differs = outcome[rows] != outcome[start]
    if differs.any():
        at = int(np.argmax(differs))
        place, before = table.where(int(kept[rows[at]])), table.where(int(kept[start[at]]))
        same = before.removeprefix(f"{table.name}, ")
        raise ValueError(f"{place}: the same battle as {same}, with another winner")
    repeats = start != rows
    if repeats.any():
        place = table.where(int(kept[rows[int(np.argmax(repeats))]]))
        warnings.warn(
            f"{place}: repeats an earlier row, as {plural(int(repeats.sum()), 'row')} do in all; "
            "each of them counts",
            stacklevel=3,
        )
