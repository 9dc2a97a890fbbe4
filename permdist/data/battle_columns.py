"""The columns of a table of battles: which is which, and how the winner is spelled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from permdist._check import choice
from permdist._text import hint, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from permdist._typing import BoolArray, IntArray

FIRST, SECOND, TIE, BOTH_BAD = range(4)
OUTCOMES = ("first", "second", "tie", "both bad")

# Two columns that name the sides, in the order in which they are looked for.
SIDES = [
    (f"{stem}_{one}", f"{stem}_{two}")
    for one, two in (("a", "b"), ("1", "2"))
    for stem in ("model", "player", "team", "item", "system", "option", "name")
] + [
    *((f"{stem}1", f"{stem}2") for stem in ("model", "player", "team", "item")),
    ("left", "right"),
    ("first", "second"),
    ("white", "black"),
    ("home", "away"),
    ("a", "b"),
    ("x", "y"),
]
WINNERS = ("winner", "outcome", "result", "vote", "preference", "choice", "label", "verdict")
TIES = ("tie", "ties", "tied", "is_tie", "draw", "is_draw")
IDS = ("battle_id", "match_id", "game_id", "vote_id", "question_id", "conversation_id", "id")

_STEMS = ("", "model", "player", "team", "item", "system", "option", "assistant", "response")
_WORDS = {
    **{f"{stem}{side}": FIRST for stem in _STEMS for side in ("a", "1")},
    **{f"{stem}{side}": SECOND for stem in _STEMS for side in ("b", "2")},
    **dict.fromkeys(("left", "first", "true", "win", "1-0"), FIRST),
    **dict.fromkeys(("right", "second", "0", "-1", "false", "loss", "0-1"), SECOND),
    **dict.fromkeys(("tie", "tied", "draw", "both", "equal", "same", "0.5", "1/2-1/2"), TIE),
    **dict.fromkeys(("tiebothgood", "bothgood", "½-½", "c"), TIE),
    **dict.fromkeys(("tiebothbad", "bothbad", "both-bad", "neither"), BOTH_BAD),
}
_CODES = ("0", "1", "2")
_UNWRITTEN = str.maketrans("", "", " _()[]")


class Roles(NamedTuple):
    """The columns of a table of battles, by their role.

    `winner` is None where `first` always won but for `ties`, or where `shares` says who won: three
    columns of 0 and 1 for the first, the second and ties.
    """

    first: str
    second: str
    winner: str | None
    ties: str | None
    shares: tuple[str, ...] = ()


def find_roles(
    columns: Sequence[str],
    *,
    first: str | None,
    second: str | None,
    winner: str | None,
    loser: str | None,
    ties: str | None,
    source: str,
) -> Roles:
    """Say which column is which, from what was asked for and from the names in common use."""
    known = _Known(columns, source)
    if loser is not None and (first is not None or second is not None):
        raise ValueError("loser: pass winner and loser, or first, second and winner, not both")
    if (first is None) != (second is None):
        raise ValueError("first, second: pass both columns or none of them")
    asked = None if ties is None else known.find(ties, "ties")
    sides = None
    if first is not None and second is not None:
        sides = (known.find(first, "first"), known.find(second, "second"))
    elif loser is None:
        sides = next((pair for pair in SIDES if all(map(known.has, pair))), None)
        sides = sides and (known.any(sides[:1]), known.any(sides[1:]))
    if sides is None:
        if loser is None and not known.has("loser"):
            known.refuse("model_a and model_b, or winner and loser", "first, second and winner")
        one = known.find(winner or "winner", "winner")
        two = known.find(loser or "loser", "loser")
        return Roles(one, two, None, asked or known.any(TIES, (one, two)))
    if winner is not None:
        return Roles(*sides, known.find(winner, "winner"), asked)
    shares = [f"winner_{side.casefold()}" for side in sides]
    if all(map(known.has, shares)):
        columns_of = tuple(known.any((one,)) for one in (*shares, "winner_tie"))
        return Roles(*sides, None, None, columns_of)
    found = known.any(WINNERS, sides)
    if not found:
        known.refuse("a winner", "winner")
    return Roles(*sides, found, asked)


class _Known:
    """The columns that a table has, found whatever their case."""

    def __init__(self, columns: Sequence[str], source: str) -> None:
        self.columns, self.source = [str(column) for column in columns], source
        self.by_name = {column.strip().casefold(): column for column in self.columns[::-1]}

    def has(self, name: str) -> bool:
        return name.casefold() in self.by_name

    def any(self, names: Sequence[str], but: Sequence[str] = ()) -> str:
        """Return the first of several columns that is there; empty if none is."""
        found = (self.by_name.get(name.casefold(), "") for name in names)
        return next((column for column in found if column and column not in but), "")

    def find(self, name: str, role: str) -> str:
        """Return the column of this name, or raise an error that lists what there is."""
        return find_column(self.columns, name, role, self.source)

    def refuse(self, what: str, arguments: str) -> None:
        raise ValueError(
            f"{self.source}: expected columns for {what}, got {listed(self.columns)}; "
            f"name them by {arguments}"
        )


def find_column(columns: Sequence[str], name: str, role: str, source: str) -> str:
    """Return the column of this name, in any case, or raise an error that lists what there is."""
    if name in columns:
        return name
    same = [column for column in columns if column.strip().casefold() == name.strip().casefold()]
    if same:
        return same[0]
    raise ValueError(
        f"{source}: {role}: there is no column {name!r}{hint(name, columns)}; the columns are "
        f"{listed(columns)}"
    )


def listed(names: Sequence[str], most: int = 20) -> str:
    """Join names with commas, and count those beyond the first twenty."""
    rest = f" and {len(names) - most:,} more" if len(names) > most else ""
    return visible(", ".join(names[:most]) or "none") + rest


def read_outcomes(
    codes: IntArray,
    labels: Sequence[str],
    first: IntArray,
    second: IntArray,
    names: Sequence[str],
    sides: tuple[str, str],
    spellings: Mapping[str, str] | str | None,
    where: Callable[[int], str],
    earlier: Earlier | None = None,
) -> tuple[IntArray, Callable[[int], str]]:
    """Return who won each battle, from the winner as it is spelled; -1 where that is unknown.

    The second of the results returns the reason of such a row.

    Parameters
    ----------
    codes : array of int, shape (rows,)
        The entry of `labels` that each row has.
    labels : sequence of str
        The different spellings.
    first, second : arrays of int, shape (rows,)
        The items of each row.
    names : sequence of str
        The names of the items.
    sides : (str, str)
        The names of the two columns, which are spellings, too.
    spellings : mapping, "names", "sides" or None
        The meaning of other spellings, or what all of them are besides ties.
    where : callable
        Returns the place of a row, for errors.
    earlier : Earlier, optional
        How the blocks of the table before this one spelled the winner.
    """
    used = np.unique(codes)  # rows that were left out say nothing about the spelling
    labels, codes = [labels[code] for code in used], np.searchsorted(used, codes)
    own = _own_words(spellings)
    words = _words_for(labels, sides, own)
    together = [*labels, *sorted(earlier.labels if earlier is not None else ())]
    if earlier is not None:
        before = _words_for(together[len(labels) :], sides, own)
        words = _words_for(together, sides, own)
        turned = [key for key in map(_key, earlier.labels) if words.get(key) != before.get(key)]
        if turned:
            earlier.refuse(where, turned[0])
    number = {name: item for item, name in enumerate(names)}
    named = np.array(
        [-1 if _key(label) in own else number.get(label, -1) for label in labels], dtype=np.int64
    )[codes]
    meant = np.array([words.get(_key(label), -1) for label in labels], dtype=np.int64)[codes]
    by_name = np.where(named == first, FIRST, np.where(named == second, SECOND, -1))
    if spellings == "names":
        meant = np.where(meant < TIE, -1, meant)
    elif spellings == "sides":
        by_name = np.full_like(meant, -1)
    # A model may be called "a" or "1": names count where they explain every row.
    unknown = (by_name < 0) & (meant < 0)
    names_first = bool(((by_name >= 0) | (meant >= TIE) | unknown).all())
    unclear = (by_name >= 0) & (meant >= 0) & (meant < TIE) & (by_name != meant)
    if unknown.any() or not names_first:
        _check_codes(together, words)
    elif unclear.any() and all(_key(label) in words for label in together):
        _check_numbers(labels, codes, unclear, where)
    if earlier is not None:
        unclear_label = labels[codes[int(np.argmax(unclear))]] if unclear.any() else ""
        names_first = earlier.go_on(labels, names_first, unclear_label, where)
    if not names_first:
        by_name, meant = meant, by_name
    outcome = np.where(by_name >= 0, by_name, meant)
    # A suggestion is spelled as in the table, if it is there.
    seen = [label for label in labels if label in number or _key(label) in words]
    seen += [*sides, *(f"{stem}_{side}" for stem in _STEMS if stem for side in "ab12")]
    there = {_key(label) for label in seen}
    seen += [word for word in words if word not in there]

    def reason(row: int) -> str:
        one, two, got = names[first[row]], names[second[row]], labels[codes[row]]
        if got in number:
            return f"the winner {got!r} is neither {one!r} nor {two!r}"
        near = hint(got[:80], [one, two, *seen])
        return (
            f"expected the winner {one!r} or {two!r}, a side (model_a, b, left, 1 ...) or a tie, "
            f"got {got[:80]!r}{near}"
        )

    return outcome.astype(np.int64), reason


@dataclass
class Earlier:
    """How the blocks of a table so far spelled the winner; what they said must stay true.

    Attributes
    ----------
    labels : set of str
        The spellings.
    names_first : bool
        Whether names explain every row.
    unclear : str
        A spelling that was read as a name and could be a side; empty if there was none.
    """

    labels: set[str] = field(default_factory=set)
    names_first: bool = True
    unclear: str = ""

    def go_on(
        self,
        labels: Sequence[str],
        names_first: bool,
        unclear: str,
        where: Callable[[int], str],
    ) -> bool:
        """Take note of a block; return whether names count before sides."""
        self.labels.update(labels)
        if self.names_first and not names_first and self.unclear:
            self.refuse(where, self.unclear)
        self.names_first = self.names_first and names_first
        self.unclear = self.unclear or (unclear if self.names_first else "")
        return self.names_first

    def refuse(self, where: Callable[[int], str], label: str) -> NoReturn:
        """Say that a spelling has another meaning from some block on."""
        raise ValueError(
            f"{where(0)}, or soon after: the winner {label!r} means something else from here on "
            "than in the blocks before; read the table as a whole (load_battles), or pass spellings"
        )


def _own_words(spellings: Mapping[str, str] | str | None) -> dict[str, int]:
    """Return the meaning of the spellings that were given one by one."""
    if spellings is None:
        return {}
    if isinstance(spellings, str):
        choice("spellings", spellings, ("names", "sides"))
        return {}
    return {
        _key(word): OUTCOMES.index(choice("spellings", meaning, OUTCOMES))
        for word, meaning in spellings.items()
    }


def _words_for(
    labels: Sequence[str], sides: tuple[str, str], own: dict[str, int]
) -> dict[str, int]:
    """Return the meaning of every word; 0 is the second side unless -1 is, which makes it a tie.

    Where there are 0 and 2, these numbers are no words.
    """
    words = _WORDS | {_key(sides[0]): FIRST, _key(sides[1]): SECOND}
    keys = set(map(_key, labels))
    if "-1" in keys:
        words["0"] = TIE
    if {"0", "2"} <= keys:
        for code in _CODES:
            words.pop(code, None)
    return words | own


def _check_codes(labels: Sequence[str], words: Mapping[str, int]) -> None:
    """Refuse winners that are spelled 0, 1 and 2, if all others are words."""
    keys = set(map(_key, labels))
    if {"0", "2"} <= keys - set(words) <= set(_CODES):
        raise ValueError(
            "winner: 0, 1 and 2 have no common meaning; pass for example "
            "spellings={'0': 'tie', '1': 'first', '2': 'second'}"
        )


def _check_numbers(
    labels: Sequence[str], codes: IntArray, unclear: BoolArray, where: Callable[[int], str]
) -> None:
    """Refuse numbers that may be sides as well as names, if the two disagree in a row."""
    for row in np.flatnonzero(unclear)[:1].tolist():
        label = labels[codes[row]]
        if _key(label) in _CODES:
            raise ValueError(
                f"{where(row)}: the winner {label!r} may be a competitor's name or a side (1 for "
                "the first, 0 or 2 for the second); pass spellings='names' or spellings='sides'"
            )


def _key(label: str) -> str:
    """Return a spelling without case, blanks, brackets and underscores; 1.0 is 1."""
    text = label.casefold().translate(_UNWRITTEN)
    return text[:-2] if text in ("1.0", "0.0", "2.0", "-1.0") else text
