"""The tables of a report: cells, the sort order of columns, and HTML."""

from __future__ import annotations

import math
import re
from html import escape
from numbers import Integral, Real
from typing import TYPE_CHECKING, NamedTuple

from permdist._check import choice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# The marks that need a legend.
PLACES = ("first", "second", "third", "worse", "null", "reference")
MARKS = (*PLACES, "good", "bad")

_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?", re.IGNORECASE)
_MISSING = ("", "-", "\N{EN DASH}", "\N{EM DASH}", "nan")
_LONG = 32  # longer strings are broken into lines


class Cell(NamedTuple):
    """A cell of a table: its text, its value for sorting, and its mark.

    Parameters
    ----------
    text : str
    value : float, optional
        The value by which the column is sorted, if it cannot be read from the text
        (``"0.48 ± 0.01"``); NaN counts as missing.
    mark : str
        ``"first"``, ``"second"`` and ``"third"`` for the best of a column, ``"worse"``,
        ``"null"`` (a learner that learned nothing), ``"reference"``, ``"good"``, ``"bad"``, or an
        empty string.
    hint : str
        A tooltip, shown on hover or tap.

    Examples
    --------
    >>> Cell("0.48 ± 0.01", 0.4826, mark="first", hint="784 queries")
    Cell(text='0.48 ± 0.01', value=0.4826, mark='first', hint='784 queries')
    """

    text: str
    value: float | None = None
    mark: str = ""
    hint: str = ""


def table_html(
    head: Sequence[str],
    rows: Iterable[Sequence[str | float | Cell]],
    *,
    caption: str = "",
    sortable: bool = True,
) -> str:
    """Return the HTML of a table, with its caption above and a legend of its marks below."""
    if isinstance(head, str) or not head:
        raise ValueError(f"head: expected a sequence of names, got {head!r}")
    cells = [_row(number, row, len(head)) for number, row in enumerate(rows)]
    columns = [_Column(place, [row[place] for row in cells]) for place in range(len(head))]
    names = "".join(map(_Column.head, columns, head))
    lines = ("".join(map(_Column.data, columns, row)) for row in cells)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    used = {entry.mark for row in cells for entry in row}
    legend = "".join(f'<span class="mark {mark}">{mark}</span>' for mark in PLACES if mark in used)
    if any(entry.hint for row in cells for entry in row):
        legend += '<span class="hinted">Hover over a cell, or tap it, for details.</span>'
    longest = max(len(head[0]) + 2, *(len(row[0].text) for row in cells), 0)
    above = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    label = f' aria-label="{quoted(caption)}"' if caption else ""
    below = f'<div class="legend">{legend}</div>' if legend else ""
    click = " data-sortable" if sortable and len(cells) > 1 else ""
    return (
        f'<figure class="table">{above}<div class="scroll" role="group" tabindex="0"{label}>'
        f'<table{click} style="--names: {longest}ch"><thead><tr>{names}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
        f"{below}</figure>"
    )


def as_cell(name: str, entry: object) -> Cell:
    """Return a cell with a string or a number, or check a given cell."""
    if isinstance(entry, Cell):
        if entry.mark:
            choice("mark", entry.mark, MARKS)
        return entry
    if isinstance(entry, str):
        return Cell(entry)
    if isinstance(entry, bool) or not isinstance(entry, Real):
        raise TypeError(f"{name}: expected strings, numbers or Cells, got {type(entry).__name__}")
    number = float(entry)
    if isinstance(entry, Integral):
        return Cell(str(int(entry)), number)
    if math.isnan(number):
        return Cell("\N{EN DASH}", number)
    return Cell(f"{number:.0f}" if 1e4 <= abs(number) < 1e15 else f"{number:.4g}", number)


def quoted(text: str) -> str:
    """Escape a string for an HTML attribute."""
    return escape(text, quote=True).replace("\n", "&#10;")


class _Column:
    """A column: whether it contains numbers, and the HTML of its heading and cells."""

    def __init__(self, place: int, cells: Sequence[Cell]) -> None:
        keys = [key for key in map(_key, cells) if key is None or not math.isnan(key)]
        self.is_first = place == 0
        self.is_number = bool(keys) and None not in keys
        self.is_long = not self.is_number and any(len(cell.text) > _LONG for cell in cells)

    def head(self, name: str) -> str:
        """Return the HTML of the heading."""
        kind = ' data-kind="number"' if self.is_number else ""
        return f'<th scope="col"{self._classes()}{kind}>{escape(name)}</th>'

    def data(self, cell: Cell) -> str:
        """Return the HTML of a cell, with its sort value if the text cannot be read as it."""
        value = ""
        if self.is_number:
            key, read = _key(cell), float(cell.text) if _NUMBER.fullmatch(cell.text) else math.nan
            if key is not None and key != read and not (math.isnan(key) and math.isnan(read)):
                value = f' data-value="{repr(key).replace("inf", "Infinity")}"'
        hint = f' title="{quoted(cell.hint)}"' if cell.hint else ""
        return f"<td{self._classes(cell.mark)}{value}{hint}>{escape(cell.text)}</td>"

    def _classes(self, mark: str = "") -> str:
        names = ["word"] if not (self.is_first or self.is_number) else []
        names += ["long"] if self.is_long else []
        names += ["mark", mark] if mark else []
        return f' class="{" ".join(names)}"' if names else ""


def _row(number: int, row: Sequence[str | float | Cell], width: int) -> list[Cell]:
    """Check a row and convert its items to cells."""
    if isinstance(row, str | Cell):
        raise TypeError(f"rows: expected sequences of cells, got {row!r} as row {number}")
    if len(row) != width:
        raise ValueError(f"rows: expected {width} cells, got {len(row)} in row {number}")
    return [as_cell("rows", entry) for entry in row]


def _key(cell: Cell) -> float | None:
    """Return the sort value of a cell: NaN if it is missing, None for text."""
    if cell.value is not None:
        return float(cell.value)
    text = cell.text.strip().replace("\N{MINUS SIGN}", "-")
    if text.lower() in _MISSING:
        return math.nan
    text = text.removesuffix("%").rstrip()
    return float(text) if _NUMBER.fullmatch(text) else None
