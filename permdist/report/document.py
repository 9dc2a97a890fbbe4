"""A report: one self-contained HTML file of texts, numbers, tables and pictures.

Its tables live in ``table.py``, its look and its script in ``page.py``.
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
    """Sections of text, tables and pictures, saved as one HTML file that needs no network.

    The page lists its sections, follows the reader's light or dark theme, sorts its tables and
    enlarges its pictures; without JavaScript it shows all the same. Equal input gives equal bytes.
    What is added before the first section stands under the summary.

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
        """Start a section, with a place in the table of contents.

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
        """Add a remark that stands out.

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
        """Add a row of tiles, a number or a few words on each.

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

        A column whose entries are all numbers, or missing, is sorted as numbers; any other as text.
        Marks are explained under the table by their names.

        Parameters
        ----------
        head : sequence of str
        rows : iterable of rows
            Of texts, numbers and `Cell` objects. Numbers are shown with four significant digits and
            sorted by all of them.
        caption : str
            Above the table.
        sortable : bool
            Whether a click on the name of a column sorts by it, numbers from the largest.

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
        """Add text as it stands.

        Examples
        --------
        >>> report = Report("As it is", "")
        >>> report.preformatted("a  b")
        >>> ">a  b</pre>" in report.html()
        True
        """
        self._parts.append(f'<pre tabindex="0">{escape(text)}</pre>')

    def picture(self, figure: Figure | Axes, description: str, caption: str | None = None) -> None:
        """Add a picture, inside the file.

        Parameters
        ----------
        figure : matplotlib Figure, or Axes of one
        description : str
            For those who cannot see the picture.
        caption : str, optional
            Below the picture; the description by default.

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
        # Two dots for each pixel of the page: sharp on fine screens and when enlarged.
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
        """Say how the report was made: its last section, whenever this is called.

        The versions of all libraries that numbers may depend on are added. Facts of several calls
        are put together.

        Parameters
        ----------
        facts : mapping of str to str or number
            Seeds, the command, the machine.

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
        """Give the whole page.

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
        """Write the page, all or nothing.

        Raises
        ------
        OSError
            Of the kind that the system gave, naming the file.

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
    """Name the versions of everything that numbers may depend on.

    Examples
    --------
    >>> versions()
    'permdist ... on Python ...; numpy ...'
    """
    found = [f"{name} {metadata.version(name)}" for name in LIBRARIES]
    return f"permdist {__version__} on Python {platform.python_version()}; {', '.join(found)}"


def _new_anchor(title: str, taken: Iterable[str]) -> str:
    """Make an address inside the page from a title, unlike those that are taken."""
    stem = re.sub(r"\W+", "-", title.lower()).strip("-_") or "section"
    used = set(taken)
    names = (stem if number == 1 else f"{stem}-{number}" for number in range(1, len(used) + 2))
    return next(name for name in names if name not in used)


def _heading(anchor: str, title: str) -> str:
    label = quoted(f"Link to the section {title}")
    return f'<h2 id="{anchor}">{escape(title)}<a href="#{anchor}" aria-label="{label}"></a></h2>'


def _contents(anchors: Mapping[str, str]) -> str:
    """List the sections, if there is a choice."""
    if len(anchors) < 2:
        return ""
    items = "\n".join(
        f'<li><a href="#{anchor}">{escape(title)}</a></li>' for anchor, title in anchors.items()
    )
    return (
        '<nav aria-label="Contents"><details><summary>Contents</summary>'
        f"<ol>{items}</ol></details></nav>"
    )
