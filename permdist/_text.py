"""Plain text for people: aligned names and values, and names that were nearly right."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable, Mapping


def aligned(rows: Mapping[str, str]) -> str:
    """Write names and values in two columns."""
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


def hint(word: object, options: Iterable[str]) -> str:
    """Suggest the option that a mistyped word is nearest to, if one is near."""
    near = difflib.get_close_matches(str(word), list(options), n=1, cutoff=0.65)
    return f"; did you mean {near[0]!r}?" if near else ""


def plural(number: int, word: str, words: str = "") -> str:
    """Write a number with its word: ``1 query``, ``2 queries``."""
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def wrapped(text: str, width: int | None) -> str:
    """Fill lines of a width, or leave a text in one line."""
    return text if width is None else textwrap.fill(text, width, break_long_words=False)
