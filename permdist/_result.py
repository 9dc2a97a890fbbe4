"""Results: a table, and how notebooks show it, with facts and small pictures, as HTML.

Colors are those of the page around, so that light and dark themes both work. There are no scripts,
and all text is escaped.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd


LONGEST = 300  # characters of a cell

STYLE = (
    ".permdist{max-width:100%;overflow-x:auto;line-height:1.4;color:inherit}"
    ".permdist p{margin:.3em 0}"
    ".permdist .f{display:flex;flex-wrap:wrap;gap:.1em 1.4em}"
    ".permdist .f span span{opacity:.7}"
    ".permdist table{border-collapse:collapse;margin:.3em 0;border:0;color:inherit;"
    "background:none;font-size:inherit;font-variant-numeric:tabular-nums}"
    ".permdist caption{text-align:left;opacity:.7;padding:.2em 0}"
    ".permdist th,.permdist td{padding:.15em .45em;border:0;text-align:right;white-space:nowrap;"
    "vertical-align:middle}"
    ".permdist th{font-weight:600;border-bottom:1px solid rgba(128,128,128,.6)}"
    ".permdist td{border-bottom:1px solid rgba(128,128,128,.2)}"
    ".permdist table th.l,.permdist table td.l{text-align:left}"
    ".permdist table td.w{white-space:normal;min-width:12em;max-width:32em;overflow-wrap:anywhere}"
    ".permdist svg{display:block}"
)
_NUMBER = re.compile(r"[-+]?[\d.,]+(e[-+]?\d+)?%?|-?inf|nan", re.IGNORECASE)


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


class Result:
    """What a function found: a table, which notebooks show with a caption.

    A subclass provides `to_frame` and may provide `caption`, `_facts`, `_cells` and `_remarks`.
    """

    _most_rows: ClassVar[int] = 30

    @property
    def caption(self) -> str:
        """What is shown, in one line."""
        return type(self).__name__

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a data frame."""
        raise NotImplementedError(f"{type(self).__name__} has no table")  # subclasses give one

    def _facts(self) -> Mapping[str, Any]:
        """Return numbers to be shown above the table."""
        return {}

    def _cells(self, most: int | None = None) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Return headings and rows as people read them, so many rows at most."""
        return frame_cells(self.to_frame(), most)

    def _remarks(self) -> Sequence[str]:
        """Return sentences to be shown below the table."""
        return ()

    def _repr_html_(self) -> str:
        most = self._most_rows
        head, rows = self._cells(most + 1)
        parts = [facts(self._facts()), table(head, rows[:most]) if rows else ""]
        if len(rows) > most:
            parts.append(note(f"The first {most} rows; all of them are in to_frame()."))
        return block(self.caption, *parts, *map(note, self._remarks()))


def block(title: str, *parts: str) -> str:
    """Return a notebook's output: a title and what is below it.

    Parameters
    ----------
    title : str
    *parts : str
        HTML, from the functions of this module; empty ones are left out.

    Examples
    --------
    >>> block("1 < 2", note("It is.")).endswith(
    ...     "<p><strong>1 &lt; 2</strong></p><p>It is.</p></div>"
    ... )
    True
    """
    head = f"<p><strong>{escape(title)}</strong></p>"
    return f'<div class="permdist"><style>{STYLE}</style>{head}{"".join(parts)}</div>'


def record_frame(values: Mapping[str, Any]) -> pd.DataFrame:
    """Return numbers and texts as a data frame with one row; arrays and such are left out.

    Examples
    --------
    >>> record_frame({"z": 2.0, "draws": np.zeros(3)}).to_dict("records")
    [{'z': 2.0}]
    """
    import pandas as pd

    plain = (str, bool, int, float, np.generic)
    return pd.DataFrame([{k: v for k, v in values.items() if v is None or isinstance(v, plain)}])


def record_html(title: str, values: Mapping[str, Any]) -> str:
    """Return numbers and texts side by side; arrays and such are left out."""
    kept = record_frame(values).iloc[0].to_dict() if values else {}
    return block(title, facts({str(key).replace("_", " "): value for key, value in kept.items()}))


def note(text: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(text)}</p>"


def facts(values: Mapping[str, Any]) -> str:
    """Return names and values side by side, on as many lines as they need.

    Examples
    --------
    >>> facts({"items": 1200, "theta": 0.5})
    '<p class="f"><span><span>items</span> 1,200</span><span><span>theta</span> 0.5</span></p>'
    >>> facts({})
    ''
    """
    tiles = "".join(
        f"<span><span>{escape(name)}</span> {_escaped(value)}</span>"
        for name, value in values.items()
    )
    return f'<p class="f">{tiles}</p>' if tiles else ""


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """Return a table; columns of numbers are aligned to the right.

    Parameters
    ----------
    head : sequence of str
    rows : iterable of rows
        Of texts, numbers and `Html`.
    caption : str
        Shown above the table.

    Examples
    --------
    >>> table(["name", "n"], [["<b>", 3]]).partition("<tbody>")[2]
    '<tr><td class="l">&lt;b&gt;</td><td>3</td></tr></tbody></table>'
    """
    cells = [[shown(value) for value in row] for row in rows]
    kinds = [_alignment([row[k] for row in cells]) for k in range(len(head))]

    def line(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{kind}>{_escaped(cell)}</{tag}>" for cell, kind in zip(row, kinds, strict=True)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in cells)
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{line('th', head)}</tr></thead><tbody>{body}</tbody></table>"


def frame_cells(frame: pd.DataFrame, most: int | None = None) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the rows of a data frame as texts, its index first if it has a name.

    Examples
    --------
    >>> import pandas as pd
    >>> frame_cells(pd.DataFrame({"n": [1000]}, index=pd.Index(["tea"], name="item")))
    (['item', 'n'], [['tea', '1,000']])
    """
    some = frame.iloc[:most]
    if any(name is not None for name in some.index.names):
        some = some.reset_index()
    rows = [[shown(value) for value in row] for row in some.itertuples(index=False, name=None)]
    return [str(column) for column in some.columns], rows


def shown(value: Any) -> str:
    """Return a value as people read it: four significant digits, nothing for NaN.

    Examples
    --------
    >>> [shown(value) for value in (1234, 0.123456, float("nan"), None, True, "tea")]
    ['1,234', '0.1235', '', '', 'yes', 'tea']
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        number = float(value)
        if number != number:
            return ""
        size = abs(number)
        whole = size < 1e15 and number == int(number)
        return f"{number:,.0f}" if 1e4 <= size < 1e9 or whole else f"{number:.4g}"
    return str(value)


def _escaped(value: Any) -> str:
    if isinstance(value, Html):
        return value
    text = shown(value)
    return escape(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def _alignment(cells: Sequence[str]) -> str:
    """Return the class of a column's cells: numbers, short texts, or texts that are wrapped."""
    texts = [cell for cell in cells if not isinstance(cell, Html) and cell]
    if texts and all(_NUMBER.fullmatch(cell) for cell in texts):
        return ""
    return ' class="l w"' if any(len(cell) > 40 for cell in texts) else ' class="l"'
