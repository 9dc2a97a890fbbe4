"""Named things that users can add to (kernels, spaces, learners, ...), and their text form.

A module that adds to a table is loaded before the table is first searched by name if it is listed
as an entry point of the group ``permdist.plugins``, or in the environment variable
``PERMDIST_PLUGINS`` (module names with commas between them): so the command line finds it, too.

In texts, a thing with options is ``name[option=value,...]``.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from permdist._text import hint

T = TypeVar("T")
GROUP, VARIABLE = "permdist.plugins", "PERMDIST_PLUGINS"


class Registry(Mapping[str, T], Generic[T]):
    """Things of one kind by name, in the order in which they were added.

    Parameters
    ----------
    what : str
        What one of them is called, in error messages: ``"kernel"``, say.
    load : callable, optional
        Called once before the first look-up; it adds the library's own.

    Examples
    --------
    >>> fruits = Registry("fruit")
    >>> fruits.add("apple", 1)
    1
    >>> fruits.find("aple")
    Traceback (most recent call last):
    ValueError: fruit: unknown name 'aple', expected one of apple; did you mean 'apple'?
    """

    def __init__(self, what: str, load: Callable[[], Any] | None = None) -> None:
        self._what, self._load = what, load
        self._entries: dict[str, T] = {}

    def add(self, name: str, value: T) -> T:
        """Add a thing under a new name, and return it.

        A class or function that is defined again, as in a notebook, replaces the older one.
        """
        given: object = name
        if not (isinstance(given, str) and given):
            raise TypeError(f"{self._what}: expected a name, got {given!r}")
        older = self._entries.get(name, value)
        if older is not value and not _same_definition(older, value):
            raise ValueError(f"{self._what}: the name {name!r} is taken")
        self._entries[name] = value
        return value

    def discard(self, name: str) -> None:
        """Remove a thing, if there is one of that name."""
        self._entries.pop(name, None)

    def find(self, name: str) -> T:
        """Return the thing of a name; ValueError names those that there are."""
        entries = self._loaded()
        if name in entries:
            return entries[name]
        known = ", ".join(entries)
        raise ValueError(
            f"{self._what}: unknown name {name!r}, expected one of {known}{hint(name, entries)}"
        )

    def _loaded(self) -> dict[str, T]:
        if self._load is not None:
            load, self._load = self._load, None
            load()
        load_plugins()
        return self._entries

    def __getitem__(self, name: str) -> T:
        return self._loaded()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def __len__(self) -> int:
        return len(self._loaded())


def _same_definition(older: Any, newer: Any) -> bool:
    """Return whether two classes or functions were defined under one name in one module."""
    places = [
        (getattr(thing, "__module__", None), getattr(thing, "__qualname__", None))
        for thing in (older, newer)
    ]
    return places[0] == places[1] and None not in places[0]


@cache
def load_plugins() -> None:
    """Import the modules that add to the tables, once per process."""
    for entry in entry_points(group=GROUP):
        entry.load()
    for name in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(","))):
        importlib.import_module(name)


# ---- the text form name[option=value,...] ------------------------------------------------------

_WORDS = {"none": None, "true": True, "false": False}


def split_list(text: str, what: str) -> list[str]:
    """Split a text at commas outside brackets and quotation marks; empty parts are left out.

    Parameters
    ----------
    text : str
    what : str
        The argument, for error messages.

    Examples
    --------
    >>> split_list("MLE, L3[C=1,scale=false],", "learners")
    ['MLE', 'L3[C=1,scale=false]']
    """
    parts, depth, start, quoted = [], 0, 0, False
    for place, letter in enumerate(text):
        if letter == '"' and text[place - 1 : place] != "\\":
            quoted = not quoted
        elif not quoted:
            depth += (letter in "[(") - (letter in "])")
            if letter == "," and depth == 0:
                parts.append(text[start:place])
                start = place + 1
    if depth or quoted:
        odd = "quotation marks" if quoted else "brackets"
        raise ValueError(f"{what}: unbalanced {odd} in {text!r}")
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def split_spec(text: str, what: str) -> tuple[str, dict[str, str]]:
    """Return the name and the options, as texts, of a text form.

    Parameters
    ----------
    text : str
    what : str
        The argument, for error messages.

    Examples
    --------
    >>> split_spec("ndcg@10[gain=linear]", "measure")
    ('ndcg@10', {'gain': 'linear'})
    """
    name, bracket, rest = text.strip().partition("[")
    if bracket and not rest.endswith("]"):
        raise ValueError(f"{what}: cannot read {text!r}, expected 'name' or 'name[option=value]'")
    options: dict[str, str] = {}
    for part in split_list(rest[:-1], what):
        key, sign, value = (piece.strip() for piece in part.partition("="))
        if not sign or not value or not key.isidentifier():
            raise ValueError(
                f"{what}: cannot read option {part!r} of {text!r}, expected option=value"
            )
        options[key] = value
    return name.strip(), options


def read_value(text: str) -> Any:
    """Return the value that a text stands for: a number, a constant, a text, a list or a word.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> [read_value(text) for text in ("1e-3", "8", "none", "linear", '"A, b"', "(1, 2)")]
    [0.001, 8, None, 'linear', 'A, b', (1, 2)]
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text[:1] == '"':
        return json.loads(text)
    for read in (int, float, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return text
