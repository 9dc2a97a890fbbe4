"""The values in the columns of a table of battles, and the errors about them."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import frozen
from permdist._text import as_text, plural
from permdist.data.battle_columns import (
    BOTH_BAD,
    FIRST,
    TIE,
    Earlier,
    Roles,
    find_column,
    read_outcomes,
)
from permdist.data.battle_files import Places

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pandas import DataFrame, Series

    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.data.battle_files import Frame, Separated

POSITION = "position"
MISSING = "(missing)"
MOST_TOLD = 10  # rows that one error names
# A reason in a list of several.
LONG = re.compile(r"expected the winner .* or .*, a side \(.*\) or a tie, got ")
SHORT = "expected a competitor, a side or a tie as the winner, got "


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


def incomplete(frame: DataFrame, roles: Roles) -> tuple[BoolArray, Callable[[int], str]]:
    """Return which rows lack a competitor or the winner, and the reason of such a row."""
    columns = [c for c in (roles.first, roles.second, roles.winner) if c is not None]
    lacks = np.stack([frame[column].isna().to_numpy() for column in columns])
    bad: BoolArray = np.asarray(lacks.any(axis=0))
    return bad, lambda row: f"{columns[int(lacks[:, row].argmax())]} is missing"


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
    texts = [as_text(value) for value in values]
    if (codes < 0).any():
        texts.append(MISSING)
        codes = np.where(codes < 0, len(texts) - 1, codes)
    number = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return np.array([number[text] for text in texts], dtype=np.int64)[codes], list(number)


def clusters(column: Series) -> Any:
    """Return the label of each row's cluster; all that have none are one cluster."""
    codes, labels = coded(column)
    return frozen(np.array(labels, object)[codes])


def outcomes(
    frame: DataFrame,
    roles: Roles,
    names: tuple[str, ...],
    one: IntArray,
    two: IntArray,
    spellings: Mapping[str, str] | str | None,
    where: Places,
    earlier: Earlier | None = None,
) -> tuple[IntArray, Callable[[int], str]]:
    """Return who won each battle, -1 where that is unknown, and the reason of such a row."""
    if roles.winner is not None:
        codes, labels = coded(frame[roles.winner])
        sides = (roles.first, roles.second)
        return read_outcomes(codes, labels, one, two, names, sides, spellings, where, earlier)
    if roles.shares:
        shares = np.stack([numbers(frame, c, where) if c else 0 * one for c in roles.shares])
        bad = (np.sort(shares, axis=0) != [[0], [0], [1]]).any(axis=0)
        shown = ", ".join(filter(None, roles.shares))
        won = np.where(bad, -1, np.argmax(shares, axis=0))
        return won.astype(np.int64), lambda _: f"expected one 1 and zeros in the columns {shown}"
    if not roles.ties:
        return np.full(len(frame), FIRST, dtype=np.int64), str
    codes, labels = coded(frame[roles.ties])
    meaning = {"true": TIE, "1": TIE, "yes": TIE, "tie": TIE, "draw": TIE, "bothbad": BOTH_BAD}
    meaning |= dict.fromkeys(("false", "0", "no", "", MISSING), FIRST)
    meant = np.array([meaning.get(label.lower(), -1) for label in labels])[codes]
    return meant.astype(np.int64), lambda row: f"expected true or false, got {labels[codes[row]]!r}"


def numbers(frame: DataFrame, column: str, where: Places) -> FloatArray:
    """Return a column of finite numbers."""
    from pandas import to_numeric

    given = frame[column]
    values = to_numeric(given, errors="coerce").to_numpy(np.float64)

    def reason(row: int) -> str:
        return f"{column}: expected a finite number, got {str(given.iloc[row])[:40]!r}"

    refuse(~np.isfinite(values), where, reason)
    return values


def times(frame: DataFrame, column: str, where: Places) -> tuple[FloatArray, str]:
    """Return times and their unit, as `permdist.ballots.fading.read_times` reads them."""
    from permdist.ballots.fading import read_times

    values = frame[column]
    found, unit = read_times(values)
    what = "a date" if unit else "a finite number"
    refuse(
        ~np.isfinite(found),
        where,
        lambda row: f"{column}: expected {what}, got {str(values.iloc[row])[:40]!r}",
    )
    return found, unit


def features(
    frame: DataFrame, covariates: Sequence[tuple[str, ...]], where: Places
) -> tuple[FloatArray, FloatArray]:
    """Return the covariates of the first and of the second competitor, a column for each."""
    first, second = (np.zeros((len(frame), len(covariates))) for _ in range(2))
    for place, columns in enumerate(covariates):
        first[:, place] = numbers(frame, columns[0], where) if columns else 1.0
        if len(columns) == 2:
            second[:, place] = numbers(frame, columns[1], where)
    return frozen(first), frozen(second)


# ---- faults ------------------------------------------------------------------------------------


class NoRowsError(ValueError):
    """All rows of a table, or of one block of it, were left out; `counts` says how many."""

    def __init__(self, name: str, counts: dict[str, int]) -> None:
        if "invalid" in counts:
            super().__init__(f"{name}: no row is left; left out: {left_out(counts)}")
        else:
            super().__init__(f"{name}: every row lacks a competitor or the winner")
        self.counts = counts


class Faults:
    """Rows of a table that cannot be used: those that lack something, and invalid ones.

    Parameters
    ----------
    table : Frame or Separated
    policies : dict
        For each kind, "error" or "drop".
    """

    def __init__(self, table: Frame | Separated, policies: dict[str, str]) -> None:
        self._table, self._policies = table, policies
        self._found: list[tuple[str, IntArray, IntArray, Callable[[int], str]]] = []

    def sieve(
        self, kind: str, bad: BoolArray, kept: IntArray, reason: Callable[[int], str]
    ) -> BoolArray:
        """Take note of the bad ones among the kept rows of the table; return which are good."""
        rows = np.flatnonzero(bad)
        if rows.size:
            self._found.append((kind, kept[rows], rows, reason))
            if rows.size == len(kept):
                self.settle()
                raise NoRowsError(self._table.name, self.counts())
        return ~bad

    def counts(self) -> dict[str, int]:
        """Return how many rows of each kind there are."""
        kinds = dict.fromkeys(kind for kind, *_ in self._found)
        return {k: sum(len(rows) for kind, rows, *_ in self._found if kind == k) for k in kinds}

    def settle(self) -> None:
        """Refuse the rows of the kinds that are errors, all at once."""
        refused = [part for part in self._found if self._policies[part[0]] == "error"]
        if not refused:
            return
        rows = np.concatenate([part[1] for part in refused])
        first = np.argsort(rows, kind="stable")[:MOST_TOLD]
        ends = np.cumsum([len(part[1]) for part in refused])
        reasons = []
        for place in first.tolist():
            which = int(np.searchsorted(ends, place, side="right"))
            _, own, numbers, reason = refused[which]
            reasons.append(reason(int(numbers[place - ends[which] + len(own)])))
        kinds = list(dict.fromkeys(part[0] for part in refused))
        if len(kinds) == 2:
            remedy = (
                "missing='drop' leaves out rows without a competitor or a winner, invalid='drop' "
                "the others"
            )
        else:
            remedy = f"{kinds[0]}='drop' leaves such rows out"
        raise ValueError(told(Places(self._table), rows[first], reasons, len(rows), remedy))


def left_out(counts: Mapping[str, int]) -> str:
    """Say how many rows were left out."""
    lacking, invalid = counts.get("missing", 0), counts.get("invalid", 0)
    parts = [f"{plural(lacking, 'row')} without a competitor or a winner"] if lacking else []
    return ", ".join(parts + ([plural(invalid, "invalid row")] if invalid else []))


def told(
    where: Places, rows: Sequence[int] | IntArray, reasons: list[str], total: int, remedy: str = ""
) -> str:
    """Return an error about rows, the first of them in ascending order, with their places."""
    places = where.many([int(row) for row in rows])
    if total == 1:
        told_so = f"{places[0]}: {reasons[0]}"
        between = " " if told_so.endswith("?") else "; "
        return f"{told_so}{between}{remedy}" if remedy else told_so
    name = where.table.name
    by_reason: dict[str, list[str]] = {}
    for place, reason in zip(places, reasons, strict=True):
        by_reason.setdefault(LONG.sub(SHORT, reason), []).append(place.removeprefix(f"{name}, "))
    listed = "; ".join(f"{_joined(same)}: {reason}" for reason, same in by_reason.items())
    rest = f"; and {total - len(places):,} more" if total > len(places) else ""
    how = f" ({remedy})" if remedy else ""
    return f"{name}: {total:,} rows cannot be used{how}: {listed}{rest}"


def _joined(places: list[str]) -> str:
    """Join places: ``lines 3, 5``."""
    if len(places) == 1:
        return places[0]
    word, _, first = places[0].rpartition(" ")
    return f"{word}s {', '.join([first, *(place.rpartition(' ')[2] for place in places[1:])])}"


def refuse(bad: BoolArray, where: Places, reason: Callable[[int], str]) -> None:
    """Raise an error about the rows that are bad, if there are any."""
    if bad.any():
        rows = np.flatnonzero(bad)
        first = rows[:MOST_TOLD].tolist()
        raise ValueError(told(where, first, [reason(row) for row in first], len(rows)))


def refuse_nested(frame: DataFrame, where: Places) -> None:
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
    where = Places(table, kept)
    differs = outcome[rows] != outcome[start]
    if differs.any():
        at = np.flatnonzero(differs)
        bad = rows[at[:MOST_TOLD]]
        reasons = []
        for place in at[:MOST_TOLD].tolist():
            same = where(int(start[place])).removeprefix(f"{table.name}, ")
            reasons.append(f"the same battle as {same}, with another winner")
        raise ValueError(told(where, bad, reasons, len(at)))
    repeats = start != rows
    if repeats.any():
        place = where(int(rows[int(np.argmax(repeats))]))
        warnings.warn(
            f"{place}: repeats an earlier row, as {plural(int(repeats.sum()), 'row')} do in all; "
            "each of them counts",
            stacklevel=3,
        )
