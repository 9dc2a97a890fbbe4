"""The page: one HTML file with its style, its scripts and its data inside."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from permdist.explorer.answers import answer
from permdist.explorer.families import FAMILIES, MOST_ITEMS
from permdist.explorer.settings import LARGEST_LABEL, LARGEST_SCORE, LONGEST_NAME
from permdist.report.page import SCRIPT, STYLE

if TYPE_CHECKING:
    from permdist.explorer.sources import Source


def page(source: Source, *, live: bool = False) -> str:
    """Return the page, complete in one file.

    Parameters
    ----------
    source : Source
        The setting to start from.
    live : bool
        Whether a server answers, for every distribution. Otherwise the file is to be shared: it has
        the answer to its setting inside, and computes what is simple by itself (Plackett-Luce,
        Gaussian scores and Mallows' model with Kendall's distance).

    Examples
    --------
    >>> from permdist.explorer import Source
    >>> page(Source())[:15]
    '<!doctype html>'
    """
    data: dict[str, Any] = {
        "live": live,
        "setting": source.setting,
        "answer": answer(source.setting),
        "queries": list(source.queries) if live else [],
        "query": source.query,
        "families": [
            {"name": one.name, "title": one.title, "about": one.about, "most": one.most}
            for one in FAMILIES.values()
        ],
        "limits": {
            "items": MOST_ITEMS,
            "label": LARGEST_LABEL,
            "score": LARGEST_SCORE,
            "name": LONGEST_NAME,
        },
    }
    scripts = [SCRIPT, *(_part(name) for name in ("port.js", "drawing.js", "page.js"))]
    filled = {
        "TITLE": escape(source.title),
        "ABOUT": escape(source.about),
        "POLICY": _policy(scripts, live),
        "STYLE": STYLE + _part("page.css"),
        "DATA": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        "SCRIPTS": "".join(f"<script>{script}</script>\n" for script in scripts),
    }
    # Split once, so that nothing inside a part is taken for a place to fill.
    pieces = _part("page.html").split("%%")
    return "".join(filled[piece] if number % 2 else piece for number, piece in enumerate(pieces))


@functools.cache
def _part(name: str) -> str:
    return (files("permdist.explorer") / name).read_text(encoding="utf-8")


def _policy(scripts: list[str], live: bool) -> str:
    """Allow these scripts and, if there is a server, requests to it; and nothing else."""
    hashes = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts)
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    connect = "connect-src 'self'; " if live else ""
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; {connect}"
        f"script-src {allowed}; base-uri 'none'; form-action 'none'"
    )
