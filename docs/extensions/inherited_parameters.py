"""Parameters and attributes that a class has from its bases, added to its page.

Most learners share their parameters, which are described once, on a common base.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from numpydoc.docscrape import NumpyDocString, Parameter

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at docstrings before numpydoc does."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", complete, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def complete(
    _app: Sphinx, what: str, _name: str, obj: Any, _options: Any, lines: list[str]
) -> None:
    """Add what the docstrings of bases say and that of the class does not."""
    if what == "class" and inspect.isclass(obj) and lines:
        lines[:] = completed(obj, lines)


def completed(kind: type, lines: list[str]) -> list[str]:
    """Return a class's docstring with the entries of its bases."""
    own = NumpyDocString("\n".join(lines))
    wanted = {"Parameters": set(_parameters(kind)), "Attributes": None}
    added = {section: _inherited(kind, own, section, names) for section, names in wanted.items()}
    if not any(added.values()):
        return lines
    for section, entries in added.items():
        own[section] = [*own[section], *entries]
    return str(own).splitlines()


def _parameters(kind: type) -> list[str]:
    try:
        return list(inspect.signature(kind).parameters)
    except ValueError:
        return []


def _inherited(
    kind: type, own: NumpyDocString, section: str, wanted: set[str] | None
) -> list[Parameter]:
    """Find entries of bases, nearest first, whose names are wanted and not yet there."""
    known = {name for entry in own[section] for name in _names(entry)}
    found = []
    for base in kind.__mro__[1:]:
        if not base.__module__.startswith("permdist") or not base.__dict__.get("__doc__"):
            continue
        for entry in NumpyDocString(inspect.cleandoc(base.__doc__))[section]:
            names = _names(entry) - known
            if names and (wanted is None or names <= wanted):
                found.append(entry)
                known |= names
    return found


def _names(entry: Parameter) -> set[str]:
    return {name.strip().lstrip("*") for name in entry.name.split(",")}
