"""A report: a single self-contained HTML file with text, numbers, tables and pictures.

Its tables are in ``table.py``, its style sheet and its script in ``page.py``.
"""

from __future__ import annotations

import base64
import io
import platform
import re
from dataclasses import dataclass, field
from html import escape
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from permdist import __version__
from permdist._check import choice
from permdist._files import write_atomically
from permdist.report.page import POLICY, SCRIPT, STYLE
from permdist.report.table import Cell, as_cell, quoted, table_html

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Cell", "Report", "versions"]

LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "arviz", "matplotlib", "hypothesis")
LAST_SECTION = "How this was made"


@dataclass
class Report:
    """A single self-contained HTML file with sections of text, tables and pictures.

    The page has a table of contents, a light and a dark theme, sortable tables and pictures that
    can be enlarged; without JavaScript it is complete, but static. Equal input produces equal
    bytes. Content that is added before the first section follows the summary.

    Parameters
    ----------
    title : str
    summary : str
        One or two sentences under the title.

    Examples
    --------
    >>> report = Report("A small report", "Nothing much.")
    >>> report.facts({"numbers": 2, "largest": "two"})
    >>> report.section("Numbers", "Two of them.")
    >>> report.table(["name", "value"], [["one", 1], ["two", Cell("2", mark="first")]])
    >>> "<td>one</td><td>1</td>" in report.html()
    True
    """

    title: str
    summary: str
    _parts: list[str] = field(default_factory=list, repr=False)
    _anchors: dict[str, str] = field(default_factory=dict, repr=False)
    _provenance: dict[str, str] | None = field(default=None, repr=False)

    def section(self, title: str, text: str = "") -> None:
        """Start a section, listed in the table of contents.

        Examples
        --------
        >>> report = Report("Twice", "")
        >>> report.section("The same")
        >>> report.section("The same")
        >>> 'id="the-same"' in report.html(), 'id="the-same-2"' in report.html()
        (True, True)
        """
        anchor = _new_anchor(title, self._anchors)
        self._anchors[anchor] = title
        self._parts.append(_heading(anchor, title))
        if text:
            self.text(text)

    def text(self, paragraph: str) -> None:
        """Add a paragraph.

        Examples
        --------
        >>> report = Report("Words", "")
        >>> report.text("1 < 2")
        >>> "<p>1 &lt; 2</p>" in report.html()
        True
        """
        self._parts.append(f"<p>{escape(paragraph)}</p>")

    def note(self, text: str, kind: str = "info") -> None:
        """Add a highlighted remark.

        Parameters
        ----------
        text : str
        kind : {"info", "warning"}

        Examples
        --------
        >>> report = Report("Remarks", "")
        >>> report.note("Two chains disagree.", "warning")
        >>> report.note("All is well.", "fine")
        Traceback (most recent call last):
        ...
        ValueError: kind: expected one of info, warning, got 'fine'
        """
        choice("kind", kind, ("info", "warning"))
        label = "Note" if kind == "info" else "Warning"
        self._parts.append(
            f'<div class="note {kind}" role="note"><strong>{label}</strong> {escape(text)}</div>'
        )

    def facts(self, facts: Mapping[str, str | float]) -> None:
        """Add a row of tiles with a number or a few words each.

        Examples
        --------
        >>> report = Report("Tiles", "")
        >>> report.facts({"queries": 784, "best MAP": 0.48412})
        >>> "<dt>best MAP</dt><dd>0.4841</dd>" in report.html()
        True
        """
        tiles = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(as_cell('facts', value).text)}</dd></div>"
            for name, value in facts.items()
        )
        self._parts.append(f'<dl class="facts">{tiles}</dl>')

    def table(
        self,
        head: Sequence[str],
        rows: Iterable[Sequence[str | float | Cell]],
        *,
        caption: str = "",
        sortable: bool = True,
    ) -> None:
        """Add a table.

        Columns of numbers and missing values are sorted as numbers, others as text. A legend below
        the table explains the marks.

        Parameters
        ----------
        head : sequence of str
        rows : iterable of rows
            Rows of strings, numbers and `Cell` objects. Numbers are shown with four significant
            digits and sorted by their full precision.
        caption : str
            Shown above the table.
        sortable : bool
            Whether a click on a column heading sorts by it, numbers in descending order.

        Examples
        --------
        >>> report = Report("Learners", "")
        >>> best = Cell("0.48", 0.4826, mark="first", hint="784 queries")
        >>> report.table(["learner", "MAP"], [["ConvexLoss", best], ["SVMMap", 0.47353]])
        >>> report.table(["learner", "MAP"], [["MLE"]])
        Traceback (most recent call last):
        ...
        ValueError: rows: expected 2 cells, got 1 in row 0
        """
        self._parts.append(table_html(head, rows, caption=caption, sortable=sortable))

    def preformatted(self, text: str) -> None:
        """Add preformatted text.

        Examples
        --------
        >>> report = Report("As it is", "")
        >>> report.preformatted("a  b")
        >>> ">a  b</pre>" in report.html()
        True
        """
        self._parts.append(f'<pre tabindex="0">{escape(text)}</pre>')

    def picture(self, figure: Figure | Axes, description: str, caption: str | None = None) -> None:
        """Add a picture, embedded in the file.

        Parameters
        ----------
        figure : matplotlib Figure, or Axes of one
        description : str
            The alternative text.
        caption : str, optional
            Shown below the picture; by default the description.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> report = Report("Pictures", "")
        >>> report.picture(Figure(figsize=(2, 1)), "Nothing", caption="An empty figure.")
        >>> 'alt="Nothing" width="192" height="96"' in report.html()
        True
        """
        drawn: Any = figure if hasattr(figure, "savefig") else getattr(figure, "figure", None)
        if not hasattr(drawn, "savefig"):
            raise TypeError(f"figure: expected a matplotlib Figure, got {type(figure).__name__}")
        buffer = io.BytesIO()
        # Two dots per CSS pixel: sharp on high-resolution screens and when enlarged.
        drawn.savefig(buffer, format="png", dpi=192, metadata={"Software": None})
        image = buffer.getvalue()
        width, height = (int.from_bytes(image[at : at + 4], "big") // 2 for at in (16, 20))
        shown = description if caption is None else caption
        self._parts.append(
            f'<figure class="picture"><div class="frame"><img alt="{quoted(description)}" '
            f'width="{width}" height="{height}" '
            f'src="data:image/png;base64,{base64.b64encode(image).decode()}"></div>'
            f"<figcaption>{escape(shown)}</figcaption></figure>"
        )

    def provenance(self, facts: Mapping[str, str | float]) -> None:
        """Add facts to the last section of the report, which describes how it was made.

        The versions of all libraries on which the numbers may depend are added to it.

        Parameters
        ----------
        facts : mapping of str to str or number
            For example the command and the seed.

        Examples
        --------
        >>> report = Report("Reproducible", "")
        >>> report.provenance({"seed": 7, "command": "permdist demo --seed 7"})
        >>> "<dt>seed</dt><dd>7</dd>" in report.html()
        True
        """
        self._provenance = (self._provenance or {}) | {
            name: as_cell("facts", value).text for name, value in facts.items()
        }

    def html(self) -> str:
        """Return the page.

        Examples
        --------
        >>> Report("Empty", "Nothing yet.").html().startswith("<!doctype html>")
        True
        """
        parts, anchors = list(self._parts), dict(self._anchors)
        if self._provenance is None:
            parts.append(f"<footer>{escape(versions())}</footer>")
        else:
            anchor = _new_anchor(LAST_SECTION, anchors)
            anchors[anchor] = LAST_SECTION
            facts = self._provenance | {"versions": versions()}
            listed = "\n".join(
                f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items()
            )
            parts += [_heading(anchor, LAST_SECTION), f'<dl class="provenance">{listed}</dl>']
        title = escape(self.title)
        contents = _contents(anchors)
        return "\n".join(
            (
                '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
                f"<title>{title}</title>",
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                '<meta name="color-scheme" content="light dark">',
                f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
                '<link rel="icon" href="data:,">',
                f"<style>{STYLE}</style>",
                f'<script id="behavior">{SCRIPT}</script></head>',
                f'<body><div class="page{" listed" if contents else ""}">',
                f"<header><h1>{title}</h1>",
                f'<p class="summary">{escape(self.summary)}</p>' if self.summary else "",
                '<button type="button" class="theme" hidden></button></header>',
                contents,
                "<main>",
                *parts,
                "</main></div></body></html>\n",
            )
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, completely or not at all.

        Raises
        ------
        OSError
            If the file cannot be written; the message names it.

        Examples
        --------
        >>> Report("Lost", "").save("no/such/folder/report.html")
        Traceback (most recent call last):
        ...
        FileNotFoundError: no/such/folder/report.html: cannot be written (no/such/folder: no such
        directory)
        """
        target = Path(path)
        try:
            write_atomically(target, [self.html().encode()])
        except OSError as error:
            reason = error.strerror or error
            raise type(error)(f"{target}: cannot be written ({reason})") from error


def versions() -> str:
    """Return the versions of all libraries on which the numbers may depend.

    Examples
    --------
    >>> versions()
    'permdist ... on Python ...; numpy ...'
    """
    found = [f"{name} {metadata.version(name)}" for name in LIBRARIES]
    return f"permdist {__version__} on Python {platform.python_version()}; {', '.join(found)}"


def _new_anchor(title: str, taken: Iterable[str]) -> str:
    """Return a unique anchor for a title."""
    stem = re.sub(r"\W+", "-", title.lower()).strip("-_") or "section"
    used = set(taken)
    names = (stem if number == 1 else f"{stem}-{number}" for number in range(1, len(used) + 2))
    return next(name for name in names if name not in used)


def _heading(anchor: str, title: str) -> str:
    label = quoted(f"Link to the section {title}")
    return f'<h2 id="{anchor}">{escape(title)}<a href="#{anchor}" aria-label="{label}"></a></h2>'


def _contents(anchors: Mapping[str, str]) -> str:
    """Return the table of contents; empty for a single section."""
    if len(anchors) < 2:
        return ""
    items = "\n".join(
        f'<li><a href="#{anchor}">{escape(title)}</a></li>' for anchor, title in anchors.items()
    )
    return (
        '<nav aria-label="Contents"><details><summary>Contents</summary>'
        f"<ol>{items}</ol></details></nav>"
    )
