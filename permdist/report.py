"""A report: one self-contained HTML file of texts, tables and pictures."""

from __future__ import annotations

import base64
import html
import io
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from permdist import __version__
from permdist._files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "arviz", "matplotlib", "hypothesis")

_STYLE = """
:root { color-scheme: light dark;
  --ink: #1d1d1f; --ground: #fff; --line: #d0d0d7; --soft: #6e6e73; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececf0; --ground: #18181b; --line: #3f3f46; --soft: #a1a1aa; }
}
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--ground);
  max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { line-height: 1.2; margin-bottom: 0.2em; }
h2 { margin-top: 2.2em; border-top: 1px solid var(--line); padding-top: 0.9em; }
img { max-width: 100%; height: auto; background: #fff; border-radius: 6px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25em 0.8em; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; white-space: nowrap; }
pre { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; padding: 0.8em 1em; }
footer { margin-top: 3em; color: var(--soft); font-size: 0.85em; }
"""


@dataclass
class Report:
    """Sections of text, tables and pictures, saved as one HTML file that needs no network.

    Parameters
    ----------
    title : str
    summary : str
        One or two sentences under the title.

    Examples
    --------
    >>> report = Report("A small report", "Nothing much.")
    >>> report.section("Numbers", "Two of them.")
    >>> report.table(["name", "value"], [["one", "1"], ["two", "2"]])
    >>> "<td>two</td><td>2</td>" in report.html()
    True
    """

    title: str
    summary: str
    _parts: list[str] = field(default_factory=list, repr=False)

    def section(self, title: str, text: str = "") -> None:
        """Start a section."""
        self._parts.append(f"<h2>{html.escape(title)}</h2>")
        if text:
            self._parts.append(f"<p>{html.escape(text)}</p>")

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Add a table of texts."""
        cells = "".join(f"<th>{html.escape(name)}</th>" for name in head)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        self._parts.append(
            f'<div class="scroll"><table><thead><tr>{cells}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>"
        )

    def preformatted(self, text: str) -> None:
        """Add text as it stands."""
        self._parts.append(f"<pre>{html.escape(text)}</pre>")

    def picture(self, figure: Figure, description: str) -> None:
        """Add a picture, inside the file; the description is for those who cannot see it."""
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=130)
        data = base64.b64encode(buffer.getvalue()).decode()
        alt = html.escape(description, quote=True)
        self._parts.append(f'<p><img alt="{alt}" src="data:image/png;base64,{data}"></p>')

    def html(self) -> str:
        """Give the whole page."""
        title = html.escape(self.title)
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
            f"<p>{html.escape(self.summary)}</p>{''.join(self._parts)}"
            f"<footer>{html.escape(versions())}</footer></body></html>\n"
        )

    def save(self, path: Path) -> None:
        """Write the page, all or nothing."""
        write_atomically(path, [self.html().encode()])


def versions() -> str:
    """Name the versions of everything that numbers may depend on."""
    found = [f"{name} {metadata.version(name)}" for name in LIBRARIES]
    return f"permdist {__version__} on Python {platform.python_version()}; {', '.join(found)}"
