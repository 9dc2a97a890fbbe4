"""Estimators that declare each parameter once: its default, what it may be and what it means.

A learner is a class whose parameters are `option` fields and whose fitted attributes are `learned`
fields, its own or inherited. From them come ``__init__``, the checks of `fit`, `save` and `load`,
and the sections of the docstring that list them.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from itertools import pairwise
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any, ClassVar, Literal, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator

from permdist._text import hint
from permdist.models.attributes import Attribute, need_finite
from permdist.models.rules import OneOf, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TYPES = {
    "dict[str, list[float]]": "dict of lists",
    "FloatArray": "array of float",
    "Sequence[str]": "sequence of str",
    "list[int]": "list of int",
    "list[float]": "list of float",
    " | ": " or ",
}
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def option(rule: Rule | None = None, doc: str = "", *, default: Any, kw_only: bool = True) -> Any:
    """Declare a parameter of a learner.

    Parameters
    ----------
    rule : Rule, optional
        What it may be; anything by default.
    doc : str
        What it means, for the docstring.
    default : object
    kw_only : bool
        Whether it must be passed by name.
    """
    meta = {"rule": rule, "doc": doc}
    return dataclasses.field(default=default, kw_only=kw_only, metadata=meta)


def learned(attribute: Attribute, doc: str = "", *, init: Literal[False] = False) -> Any:
    """Declare a fitted attribute: what it may be, and what it means; `save` writes it."""
    return dataclasses.field(init=init, metadata={"attribute": attribute, "doc": doc})


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(option, learned))
class Declared(BaseEstimator):  # type: ignore[misc]
    """An estimator made of declared parameters and fitted attributes.

    A subclass adds to what its bases declare; a plain value replaces the default of an inherited
    parameter. One with an ``__init__`` of its own has the parameters that this one takes, as in
    scikit-learn.

    Attributes
    ----------
    fitted : tuple of str
        The attributes that `save` writes.
    alternatives : tuple of str
        Those of which a fitted learner has exactly one.
    """

    fitted: ClassVar[tuple[str, ...]] = ()
    alternatives: ClassVar[tuple[str, ...]] = ()

    _rules: ClassVar[Mapping[str, Rule]] = {}
    _attributes: ClassVar[Mapping[str, Attribute]] = {}
    _optional: ClassVar[frozenset[str]] = frozenset()  # parameters that are None by default

    n_features_in_: int
    views_: tuple[str, ...]
    filling_: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declared = _fields(cls)
        annotations = dict(inspect.get_annotations(cls))
        for name in [name for name in cls.__dict__ if name in declared]:
            value, base = cls.__dict__[name], declared[name]
            if base.init and not isinstance(value, dataclasses.Field | property):
                meta = base.metadata
                new = dataclasses.field(default=value, kw_only=base.kw_only, metadata=meta)
                setattr(cls, name, new)
                annotations.setdefault(name, base.type)
        # Annotations of fitted attributes alone declare nothing.
        plain = {n for n in annotations if n.endswith("_") and n not in cls.__dict__}
        cls.__annotations__ = {n: t for n, t in annotations.items() if n not in plain}
        own = [n for n in cls.__annotations__ if isinstance(cls.__dict__.get(n), dataclasses.Field)]
        attributes = [n for n in own if "attribute" in cls.__dict__[n].metadata]
        dataclasses.dataclass(eq=False, repr=False, kw_only=True)(cls)
        if "__init__" in cls.__dict__ and not hasattr(cls.__init__, "__wrapped__"):
            cls.__init__ = _refusing_other_names(cls.__init__)  # type: ignore[method-assign]
        if attributes and "fitted" not in cls.__dict__:
            cls.fitted = tuple(dict.fromkeys([*cls.fitted, *attributes]))
        cls._rules = _declarations(cls, "rule")
        cls._attributes = _declarations(cls, "attribute")
        taken = inspect.signature(cls).parameters
        cls._optional = frozenset(n for n, p in taken.items() if p.default is None)
        if cls.__doc__:
            cls.__doc__ = _documented(cls)

    # ---- parameters ----------------------------------------------------------------------------

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Return the names of the parameters."""
        return list(cls._get_param_names())

    def check_parameters(self) -> None:
        """Check all parameters by their rules; a learner adds what concerns several of them."""
        for name, value in self.get_params(deep=False).items():
            self.check_parameter(name, value)

    @classmethod
    def rule(cls, name: str) -> Rule | None:
        """Return the rule of a parameter, None where there is none.

        Parameters
        ----------
        name : str
        """
        return cls._rules.get(name)

    @classmethod
    def check_parameter(cls, name: str, value: Any) -> None:
        """Check one value of a parameter by the learner's rules.

        Parameters
        ----------
        name : str
        value : object

        Raises
        ------
        ValueError, TypeError
            With the name of the parameter, what is expected and what came.

        Examples
        --------
        >>> from permdist.models import MLE
        >>> MLE.check_parameter("max_iter", 0)
        Traceback (most recent call last):
        ValueError: max_iter: expected at least 1, got 0
        """
        # None is a value wherever it is the default.
        if name in cls._rules and not (value is None and name in cls._optional):
            cls._rules[name].check(name, value)

    # ---- fitted attributes ---------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the fitted attributes that `save` writes, None for those that are missing."""
        return {name: getattr(self, name, None) for name in self.fitted}

    def read_state(self, state: Mapping[str, Any], width: int) -> dict[str, Any]:
        """Return fitted attributes as the learner keeps them; refuse what cannot be its own.

        Parameters
        ----------
        state : mapping of str to object
        width : int
            The number of columns that the learner works on.
        """
        known = self._attributes
        found: dict[str, Any] = {}
        for name in self.fitted:
            value = state.get(name)
            if value is None:
                if name in known and known[name].optional:
                    found[name] = None
                elif name in known and name not in self.alternatives:
                    raise ValueError(f"{name}: expected a value, got none")
            elif name in known:
                found[name] = known[name].read(name, value, width)
            else:
                need_finite(name, value)
                found[name] = value
        present = [name for name in self.alternatives if name in found]
        if self.alternatives and len(present) != 1:
            several = " or ".join(self.alternatives)
            raise ValueError(f"{several}: expected one of them, got {len(present)}")
        if "n_iter_" in found and "history_" in found:
            rounds = len(found["history_"]["objective"])
            if found["n_iter_"] != rounds:
                raise ValueError(
                    f"n_iter_: expected {rounds} as in history_, got {found['n_iter_']}"
                )
        self._check_state(found)
        return found

    def _check_state(self, state: Mapping[str, Any]) -> None:
        """Refuse fitted attributes that cannot belong together; a learner says which."""

    def _check_fit(self) -> None:
        """Refuse a fit that ended in numbers that no model can have."""
        for name, value in self.state().items():
            if name == "history_":  # a measure may be undefined there
                continue
            try:
                need_finite(name, value)
            except ValueError as error:
                raise ValueError(
                    f"fit: {error}; are features or parameters too large? Smaller ones, or "
                    "normalize=True, may help"
                ) from error


def _fields(kind: type) -> dict[str, dataclasses.Field[Any]]:
    """Return the declared parameters and attributes of a class by name."""
    bases = [b for b in reversed(kind.__mro__) if "__dataclass_fields__" in b.__dict__]
    return {f.name: f for base in bases for f in dataclasses.fields(base)}


def _declarations(kind: type, what: str) -> dict[str, Any]:
    """Return the rules of parameters (``"rule"``) or of fitted attributes (``"attribute"``)."""
    return {n: f.metadata[what] for n, f in _fields(kind).items() if f.metadata.get(what)}


def _refusing_other_names(init: Any) -> Any:
    names = inspect.signature(init).parameters
    any_name = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in names.values())

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if not any_name and not kwargs.keys() <= names.keys():
            _refuse_names(type(self), kwargs)
        init(self, *args, **kwargs)

    return __init__


def _refuse_names(kind: type[Declared], given: Iterable[str]) -> None:
    """Raise TypeError for the first name that is no parameter; suggest the one that was meant."""
    known = kind.parameter_names()
    wrong = next((name for name in given if name not in known), None)
    if wrong is None:
        return
    raise TypeError(
        f"{kind.__name__}: there is no parameter {wrong!r}, expected some of {', '.join(known)}"
        f"{hint(wrong, known)}"
    )


# ---- docstrings ---------------------------------------------------------------------------------


def _documented(kind: type) -> str:
    """Return a class's docstring with sections that list its parameters and fitted attributes."""
    text = inspect.cleandoc(kind.__doc__ or "")
    cuts = [*(match.start() for match in _SECTION.finditer(text)), len(text)]
    sections = {text[a:b].split("\n", 1)[0]: text[a:b].strip() for a, b in pairwise(cuts)}
    fields, taken = _fields(kind), inspect.signature(kind).parameters
    # The measure comes first, then its own, then those that it shares with others.
    names = [name for base in kind.__mro__ for name in inspect.get_annotations(base)]
    declared = [fields[n] for n in dict.fromkeys(["measure", *names]) if n in fields]
    fitted: tuple[str, ...] = getattr(kind, "fitted", ())
    listed = {
        "Parameters": {f: f", default={_text(f.default)}" for f in declared if f.name in taken},
        "Attributes": {f: "" for f in declared if f.name in fitted},
    }
    parts = [text[: cuts[0]].strip()]
    for title, entries in listed.items():
        written = sections.pop(title, f"{title}\n{'-' * len(title)}")
        known = set(re.findall(r"^(\w+)(?=(?:, \w+)* :)", written, re.MULTILINE))
        lines = [written]
        for field, end in entries.items():
            if field.metadata.get("doc") and field.name not in known:
                lines.append(f"{field.name} : {_type_of(field)}{end}")
                lines.append(indent(fill(field.metadata["doc"], 88), "    "))
        parts += ["\n".join(lines)] if len(lines) > 1 or known else []
    return "\n\n".join([*parts, *sections.values()]) + "\n"


def _type_of(field: dataclasses.Field[Any]) -> str:
    """Return the type of a field in words."""
    rule = field.metadata.get("rule")
    if isinstance(rule, OneOf):
        return "{" + ", ".join(map(repr, rule.words)) + "}"
    text = str(field.type)
    for old, new in _TYPES.items():
        text = text.replace(old, new)
    return text


def _text(value: Any) -> str:
    return "numpy.inf" if isinstance(value, float) and value == np.inf else repr(value)
