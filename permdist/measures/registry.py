"""Measures by name: ``"ndcg@10"``, ``"map"``, ``"letor4:ndcg@10"``, and the presets."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from permdist._check import choice, short_text
from permdist._text import hint
from permdist.measures.base import Measure
from permdist.measures.judged import RunMeasure
from permdist.measures.trec_names import from_trec

_PATTERN = re.compile(
    r"(?:(?P<preset>\w+):)?(?P<name>[a-z0-9_]+)(?:@(?P<k>\d+))?(?:\[(?P<options>[^\]]*)\])?"
)


def parse(text: str | Measure) -> Measure:
    """Read a measure from its text name.

    The grammar is ``[preset:]name[@k][[option=value,...]]``; names are not case-sensitive.
    trec_eval's names, such as ``ndcg_cut_10`` and ``P_5``, are understood, too.

    Parameters
    ----------
    text : str or Measure
        A measure is returned as it is.

    Examples
    --------
    >>> parse("ndcg@10")
    NDCG(k=10, gain='exp2', discount='log2', short='pad', empty='zero', ties='index')
    >>> parse("MAP")
    AP(k=None, empty='zero', ties='index')
    >>> parse("ndcg@10[gain=linear]") == parse("trec:ndcg@10")
    True
    """
    if isinstance(text, Measure):
        return text
    if not isinstance(text, str):
        raise TypeError(f"measure: expected a Measure or a name, got {type(text).__name__}")
    return _read(text, Measure.defined_kinds)


@lru_cache(maxsize=512)
def _read(text: str, defined: int) -> Measure:
    """Read a name, anew whenever more kinds of measures have been defined."""
    match = _PATTERN.fullmatch(from_trec(short_text("measure", text).strip().lower()))
    if match is None:
        raise ValueError(
            f"measure: cannot read {text!r}; expected one name such as 'map', 'ndcg@10' or "
            "'ndcg@10[gain=linear]'"
        )
    kind = _by_name(match["name"])
    fields = {field.name: field for field in dataclasses.fields(kind)}
    options: dict[str, Any] = {}
    if match["preset"]:
        options.update(preset(match["preset"]).options(kind))
    if match["k"]:
        if "k" not in fields:
            raise ValueError(f"measure: {match['name']!r} takes no cut-off, got {text!r}")
        options["k"] = int(match["k"])
    elif "k" in fields and fields["k"].default is dataclasses.MISSING:
        raise ValueError(f"measure: {text!r} needs a cut-off, as in '{match['name']}@10'")
    for part in filter(None, (match["options"] or "").split(",")):
        key, _, value = (piece.strip() for piece in part.partition("="))
        known = sorted(set(fields) - {"k"})
        if key not in known or not value:
            shown = ", ".join(known)
            raise ValueError(f"measure: cannot read option {part!r} of {text!r}; known: {shown}")
        if isinstance(fields[key].default, int):
            if not value.isdecimal():
                raise ValueError(f"measure: {key} of {text!r} must be a whole number")
            options[key] = int(value)
        elif isinstance(fields[key].default, float):
            try:
                options[key] = float(value)
            except ValueError as error:
                raise ValueError(f"measure: {key} of {text!r} must be a number") from error
        else:
            options[key] = value
    return kind(**options)


@dataclass(frozen=True)
class Preset:
    """The conventions of one evaluation tool, to be called with a measure's name.

    Parameters
    ----------
    name : str
    conventions : tuple of (measure name, option, value)
        Where they differ from the defaults.

    Examples
    --------
    >>> letor4("ndcg@10").name
    'ndcg@10[discount=jk,short=zero]'
    """

    name: str
    conventions: tuple[tuple[str, str, str], ...]

    def options(self, kind: type[Measure]) -> dict[str, str]:
        """Give the conventions that apply to a kind of measure."""
        return {
            option: value for name, option, value in self.conventions if name == kind.aliases[0]
        }

    def __call__(self, text: str) -> Measure:
        """Read a measure with these conventions."""
        return parse(f"{self.name}:{text}")


letor3 = Preset(
    "letor3", (("ndcg", "discount", "jk"), ("ndcg", "short", "zero"), ("p", "short", "zero"))
)
letor4 = Preset("letor4", (("ndcg", "discount", "jk"), ("ndcg", "short", "zero")))
trec = Preset("trec", (("ndcg", "gain", "linear"),))
burges = Preset("burges", (("ndcg", "gain", "exp2"), ("ndcg", "discount", "log2")))

PRESETS: dict[str, Preset] = {entry.name: entry for entry in (letor3, letor4, trec, burges)}


def preset(name: str) -> Preset:
    """Find a preset by its name."""
    return PRESETS[choice("preset", name, PRESETS)]


def kinds(*, runs: bool = False) -> tuple[type[Measure], ...]:
    """List every kind of measure that has been defined, a user's own included.

    Parameters
    ----------
    runs : bool
        List those that only runs with judgements have (`RunMeasure`), instead of those of any
        ranking.
    """
    found: list[type[Measure]] = []
    waiting = list(Measure.__subclasses__())
    while waiting:
        kind = waiting.pop(0)
        waiting += kind.__subclasses__()
        # A name of its own, not an inherited one.
        if kind.__dict__.get("aliases") and issubclass(kind, RunMeasure) == runs:
            found.append(kind)
    return tuple(found)


def _by_name(name: str) -> type[Measure]:
    """Find the kind of measure that has a name or alias."""
    known = (*kinds(), *kinds(runs=True))
    names = {alias: kind for kind in reversed(known) for alias in kind.aliases}
    if name in names:
        return names[name]
    shown = ", ".join(" or ".join(kind.aliases[:2]) for kind in known)
    raise ValueError(f"measure: unknown name {name!r}, expected {shown}{hint(name, names)}")
