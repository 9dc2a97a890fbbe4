"""Measures by name: ``"ndcg@10"``, ``"map"``, ``"letor4:ndcg@10"``, and the presets."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from permdist._check import choice, short_text
from permdist._registry import split_spec
from permdist.measures.base import MEASURES, Measure
from permdist.measures.composite import combine, split_terms
from permdist.measures.judged import RunMeasure
from permdist.measures.options import default_of, option_types, read_option
from permdist.measures.trec_names import from_trec

_PATTERN = re.compile(r"(?:(?P<preset>\w+):)?(?P<name>[a-z0-9_]+)(?:@(?P<k>\d+|none))?")


def parse(text: str | Measure) -> Measure:
    """Parse the text name of a measure.

    The grammar is ``[preset:]name[@k][[option=value,...]]``; names are not case-sensitive. Such
    names may be added up, each with a factor or without: see `Composite`. trec_eval's names, such
    as ``ndcg_cut_10`` and ``P_5``, are understood, too. A value that is not a word, a number,
    ``true``, ``false`` or ``none`` stands in quotes.

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
    >>> parse("0.5 * ap + 0.5 * ndcg@10").parts[0]
    AP(k=None, empty='zero', ties='index')
    """
    if isinstance(text, Measure):
        return text
    if not isinstance(text, str):
        raise TypeError(f"measure: expected a Measure or a name, got {type(text).__name__}")
    terms = split_terms(short_text("measure", text))
    if terms is not None and terms[0][1] != text.strip():
        return combine((weight, parse(name)) for weight, name in terms)
    return _make(_find(_split(text)[1]), text)


@lru_cache(maxsize=512)
def _split(text: str) -> tuple[str | None, str, str | None, dict[str, str]]:
    """Split a name into preset, name, cut-off and options."""
    given = short_text("measure", text).strip()
    head, options = split_spec(given if "[" in given else from_trec(given.lower()), "measure")
    match = _PATTERN.fullmatch(head.lower())
    if match is None:
        raise ValueError(
            f"measure: cannot read {text!r}; expected one name such as 'map', 'ndcg@10' or "
            "'ndcg@10[gain=linear]'"
        )
    return match["preset"], match["name"], match["k"], options


@lru_cache(maxsize=512)
def _make(kind: type[Measure], text: str) -> Measure:
    """Make a measure of a class from its name."""
    of_preset, name, cut, listed = _split(text)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    types = option_types(kind)
    options: dict[str, Any] = {}
    if of_preset:
        options.update(preset(of_preset).options(kind))
    if cut is not None:
        if "k" not in fields:
            raise ValueError(f"measure: {name!r} takes no cut-off, got {text!r}")
        options["k"] = None if cut == "none" else int(cut)
    whole = "k" not in fields or type(None) in types["k"]
    if not whole and options.get("k", default_of(fields["k"])) in (None, dataclasses.MISSING):
        raise ValueError(f"measure: {text!r} needs a cut-off, as in '{name}@10'")
    known = sorted(set(fields) - {"k"})
    for written, value in listed.items():
        key = written if written in known else written.lower()
        if key not in known:
            part, shown = f"{written}={value}", ", ".join(known)
            raise ValueError(f"measure: cannot read option {part!r} of {text!r}; known: {shown}")
        try:
            options[key] = read_option(value, types[key])
        except ValueError as error:
            raise ValueError(f"measure: {key} of {text!r} must be {error}") from error
    for key in known:
        if key not in options and default_of(fields[key]) is dataclasses.MISSING:
            raise ValueError(f"measure: {text!r} needs the option {key}, as in '{name}[{key}=...]'")
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
        """Return the conventions that apply to a class of measures."""
        return {
            option: value for name, option, value in self.conventions if name == kind.aliases[0]
        }

    def __call__(self, text: str) -> Measure:
        """Read a measure with these conventions."""
        terms = split_terms(short_text("measure", text)) or [(1.0, text)]
        return combine((weight, parse(f"{self.name}:{name}")) for weight, name in terms)


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
    """Return every class of measures that has been defined, including a user's own.

    Parameters
    ----------
    runs : bool
        Return those that are defined for runs with judgements only (`RunMeasure`), instead of
        those of any ranking.
    """
    return tuple(
        kind
        for kind in dict.fromkeys(MEASURES.values())
        if kind.aliases and issubclass(kind, RunMeasure) == runs
    )


def _find(name: str) -> type[Measure]:
    """Return the class of measures with a name or alias."""
    kind = MEASURES.find(name)
    if name in kind.aliases or name in map(str.lower, kind.aliases):
        return kind
    MEASURES.discard(name)  # its aliases were changed after it was defined
    return _find(name)
