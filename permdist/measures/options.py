"""Options of measures as text: in names, as `parse` reads them, and in docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
import types
import typing
from functools import lru_cache
from typing import Any

_PLAIN = re.compile(r"[a-z][a-z0-9_]*")
_WHOLE = re.compile(r"[+-]?\d+")
_CONSTANTS = {"none": None, "true": True, "false": False}
_RESERVED = {*_CONSTANTS, "inf", "infinity", "nan"}
_EXPECTED = {int: "a whole number", float: "a number", bool: "true or false", type(None): "none"}


def default_of(field: dataclasses.Field[Any]) -> Any:
    """Return the default of a field; `dataclasses.MISSING` where it has none."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def write_option(value: Any) -> str:
    """Return the text of a value: a word or a number as it is, other texts in quotes.

    Examples
    --------
    >>> [write_option(value) for value in ("linear", "A, b", 1e-3, True, None)]
    ['linear', '"A, b"', '0.001', 'true', 'none']
    """
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value not in _RESERVED
        return value if plain else json.dumps(value)
    if hasattr(value, "item"):  # numpy's scalars
        value = value.item()
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def read_option(text: str, allowed: frozenset[type]) -> Any:
    """Read the text of a value as one of the allowed types.

    Raises
    ------
    ValueError
        Saying what was expected: ``a whole number``, say.
    """
    if text[0] == '"':
        try:
            return json.loads(text)
        except ValueError as error:
            raise ValueError("a text between quotation marks") from error
    word = text.lower()
    if word in _CONSTANTS and type(_CONSTANTS[word]) in allowed:
        return _CONSTANTS[word]
    if int in allowed and _WHOLE.fullmatch(word):
        return int(word)
    if float in allowed:
        try:
            return float(word)
        except ValueError:
            pass
    if str in allowed:
        return word
    raise ValueError(" or ".join(what for kind, what in _EXPECTED.items() if kind in allowed))


@lru_cache(maxsize=256)
def option_types(kind: type[Any]) -> dict[str, frozenset[type]]:
    """Return the types that each field of a dataclass may have, by annotation and default.

    Where an annotation cannot be evaluated, or is of another kind, every plain type is allowed.
    """
    everything: frozenset[type] = frozenset({int, float, bool, str, type(None)})
    found: dict[str, frozenset[type]] = {}
    for field in dataclasses.fields(kind):
        allowed = _types_in(_annotation(kind, field)) & everything or everything
        default = default_of(field)
        if allowed is everything and isinstance(default, str):
            allowed = frozenset({str})
        found[field.name] = allowed | (everything & {type(default)})
    return found


def _annotation(kind: type[Any], field: dataclasses.Field[Any]) -> Any:
    """Return the annotation of a field; None where its text cannot be evaluated."""
    if not isinstance(field.type, str):
        return field.type
    holder = types.SimpleNamespace(__annotations__={field.name: field.type})
    for module in dict.fromkeys(base.__module__ for base in kind.__mro__):
        try:
            return typing.get_type_hints(holder, vars(sys.modules[module]))[field.name]
        except (NameError, TypeError, AttributeError, KeyError, SyntaxError):
            continue
    return None


def _types_in(hint: Any) -> frozenset[type]:
    """Return the types that an annotation names."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return frozenset().union(*map(_types_in, typing.get_args(hint)))
    if origin is typing.Literal:
        return frozenset(map(type, typing.get_args(hint)))
    if isinstance(hint, type):
        return frozenset({bool} if hint is bool else hint.__mro__)  # numpy's floats are floats
    return frozenset()


def with_parameters(doc: str, parameters: tuple[str, ...]) -> str:
    """Add inherited parameters to the docstring of a class, where it does not have them."""
    text = inspect.cleandoc(doc)
    sections = re.search(r"\n\n(References|Examples)\n-----", text)
    end = len(text) if sections is None else sections.start()
    missing = [entry for entry in parameters if f"\n{entry.split()[0]} :" not in text]
    heading = [] if "\nParameters\n----" in text else ["", "Parameters", "----------"]
    return "\n".join([text[:end], *heading, *missing]) + text[end:] + "\n"
