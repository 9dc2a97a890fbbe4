"""Plain-text output: aligned columns, tables, plurals, and suggestions for misspelled names."""

from __future__ import annotations

import difflib
import io
import re
import textwrap
from numbers import Integral, Real
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

# Control characters, marks that change the direction of text, and bytes that are no text.
_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_FORMULA = re.compile(r"[=+\-@\t\r]")
_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)


def visible(text: str, keep: str = "\n") -> str:
    r"""Show control characters, which may do something to a terminal, as escapes.

    All text that is printed or written to LaTeX and CSV files passes here.

    Parameters
    ----------
    text : str
    keep : str
        Control characters that stay.

    Examples
    --------
    >>> print(visible("tea\x1b]0;\x07"))
    tea\x1b]0;\x07
    """
    if text.isprintable():
        return text
    return _UNSEEN.sub(
        lambda one: one[0] if one[0] in keep else one[0].encode("unicode_escape").decode(), text
    )


def csv_text(frame: pd.DataFrame, *, index: bool = False) -> str:
    """Return a data frame as CSV in which no text is taken for a formula by a spreadsheet.

    Examples
    --------
    >>> import pandas as pd
    >>> print(csv_text(pd.DataFrame({"name": ["tea", "=1+2", "-5"], "score": [1, 2, -3]})), end="")
    name,score
    tea,1
    '=1+2,2
    -5,-3
    """

    def cell(value: object) -> object:
        if not isinstance(value, str):
            return value
        told = visible(value, keep="")
        return f"'{told}" if _FORMULA.match(told) and not _PLAIN.fullmatch(told) else told

    shown = frame.map(cell).rename(columns=cell)
    text: str = (shown.rename(index=cell) if index else shown).to_csv(
        index=index, lineterminator="\n"
    )
    return text


def aligned(rows: Mapping[str, str]) -> str:
    """Format names and values in two columns."""
    rows = {visible(name, keep=""): visible(value) for name, value in rows.items()}
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


def hint(word: object, options: Iterable[str]) -> str:
    """Return a suggestion for a misspelled word, if an option is close enough."""
    near = difflib.get_close_matches(str(word), list(options), n=1, cutoff=0.65)
    return f"; did you mean {near[0]!r}?" if near else ""


def plural(number: int, word: str, words: str = "") -> str:
    """Format a number with its noun: ``1 query``, ``2 queries``."""
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def as_text(value: object) -> str:
    """Return a label as text, without blanks around it; whole numbers have no decimal point."""
    if isinstance(value, Real) and not isinstance(value, Integral) and float(value).is_integer():
        value = int(float(value))
    return str(value).strip()


def wrapped(text: str, width: int | None) -> str:
    """Wrap a text to a width; None leaves it on one line."""
    return text if width is None else textwrap.fill(text, width, break_long_words=False)


def text_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: Sequence[str] = (),
    width: int | None = None,
) -> str:
    """Format a table; the first column and those named in `left` are left-aligned.

    With a width, long entries are wrapped to fit.
    """
    head, rows = list(map(visible, head)), [list(map(visible, row)) for row in rows]
    if width is None and not any("\n" in cell for row in (head, *rows) for cell in row):
        return _one_line_each(head, rows, left)
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="none")
    for place, heading in enumerate(head):
        to_left = place == 0 or heading in left
        table.add_column(heading, justify="left" if to_left else "right", no_wrap=width is None)
    for row in rows:
        table.add_row(*row)
    out = io.StringIO()
    console = Console(file=out, width=width or 10_000, color_system=None, markup=False)
    console.print(table, highlight=False)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


def _one_line_each(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str]) -> str:
    """Format a table of cells of one line each; much faster than by rich, for many rows."""
    from rich.cells import cell_len

    columns = []
    for place, heading in enumerate(head):
        cells = [heading, *(row[place] for row in rows)]
        lengths = [cell_len(cell) for cell in cells]
        width, to_left = max(lengths), place == 0 or heading in left
        padding = [" " * (width - length) for length in lengths]
        columns.append([c + p if to_left else p + c for c, p in zip(cells, padding, strict=True)])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def to_tex(text: str) -> str:
    """Escape a string for LaTeX."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {"|": r"\textbar{}", "<": r"\textless{}", ">": r"\textgreater{}"}
    special |= {letter: f"\\{letter}" for letter in "&%$#_{}"}
    return "".join(special.get(letter, letter) for letter in visible(text, keep=""))
