"""Tables of named things that users can add to: kernels, spaces, objectives, learners, sections.

A module that adds to a table is loaded before the table is first searched by name if it is listed
as an entry point of the group ``permdist.plugins``, or in the environment variable
``PERMDIST_PLUGINS`` (module names with commas between them): so the command line finds it, too.
"""

from __future__ import annotations

import importlib
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
