"""What takes part in a comparison: learners by name, with the settings to choose from."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.base import clone

from permdist._text import hint
from permdist.models import Ranker, all_learners

WORDS = {"true": True, "false": False, "none": None, "inf": float("inf")}


@dataclass(frozen=True)
class Entry:
    """A learner and the settings that validation chooses from.

    Parameters
    ----------
    name : str
        What tables call it.
    learner : Ranker
        Not fitted; whatever the settings do not say is taken from it.
    settings : mapping of str to sequences
        All combinations are tried.
    given : tuple of str
        The settings that were written by hand; the others are the learner's usual ones.
    by_name : bool
        Whether the learner was only named: its seed, and a measure that it only judges by, are then
        those of the comparison. A learner that was given is tried as it is.

    Examples
    --------
    >>> from permdist.models import MLE
    >>> entry = Entry("likelihood", MLE(), {"C": [0.1, 1.0], "scale": [True]})
    >>> entry.combinations()
    [{'C': 0.1, 'scale': True}, {'C': 1.0, 'scale': True}]
    """

    name: str
    learner: Ranker
    settings: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    by_name: bool = False

    def combinations(self) -> list[dict[str, Any]]:
        """List every combination of the settings."""
        # The same value twice is one value.
        values = [{repr(one): one for one in many}.values() for many in self.settings.values()]
        return [
            dict(zip(self.settings, chosen, strict=True)) for chosen in itertools.product(*values)
        ]

    def learners(self, *, judge: str, seed: int) -> list[tuple[dict[str, Any], Ranker]]:
        """Make one learner for each combination.

        Where the learner was only named, a measure that it only judges by becomes `judge` and
        whatever draws is given the seed, unless the settings say otherwise.
        """
        own = self.learner.get_params(deep=False)
        usual: dict[str, Any] = {"verbose": False}
        if self.by_name:
            usual["random_state"] = seed
            if type(self.learner).measure_judges:
                usual["measure"] = judge
        usual = {name: value for name, value in usual.items() if name in own}
        return [
            (combination, clone(self.learner).set_params(**{**usual, **combination}))
            for combination in self.combinations()
        ]


def read_entries(
    models: str | Ranker | Entry | Iterable[Any] | Mapping[str, Any] = "all",
) -> list[Entry]:
    """Read what takes part.

    Parameters
    ----------
    models : str, Ranker or Entry, or several of them, or a mapping of names to them
        A text is ``"all"``, or names of learners with commas between them. A name may be followed
        by settings in brackets, with bars between alternatives:
        ``"ConvexLoss[measure=ndcg@10,C=0.1|1|10]"``; what is not said there is chosen from the
        learner's own `settings`. A learner is tried as it is; in a mapping, ``(learner, settings)``
        gives the settings to choose from.

    Returns
    -------
    list of Entry
        With different names.

    Examples
    --------
    >>> entries = read_entries("MLE, SVMMap[C=0.1|1,scale=false]")
    >>> [entry.name for entry in entries]
    ['MLE', 'SVMMap[C=0.1|1,scale=false]']
    >>> entries[1].combinations()
    [{'C': 0.1, 'scale': False}, {'C': 1, 'scale': False}]
    >>> len(read_entries("all")) > 20
    True
    """
    found: list[Entry] = []
    for name, one in _named(models):
        if isinstance(one, Entry):
            found.append(one if name is None else replace(one, name=name))
        elif isinstance(one, Ranker):
            found.append(Entry(name or _text(one), one))
        elif isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], Ranker):
            found.append(Entry(name or _text(one[0]), one[0], dict(one[1] or {})))
        elif isinstance(one, str):
            for text in split(one):
                if text.lower() == "all":
                    found += [_read(kind.__name__) for kind in all_learners()]
                else:
                    entry = _read(text)
                    found.append(entry if name is None else replace(entry, name=name))
        else:
            raise TypeError(f"models: expected names or learners, got {type(one).__name__}")
    if not found:
        raise ValueError("models: expected at least one")
    found = [replace(entry, name=" ".join(entry.name.split())) for entry in found]
    names = [entry.name for entry in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"models: {min(twice)!r} comes twice; give them names of their own")
    for number, entry in enumerate(found):
        known = entry.learner.get_params(deep=False)
        for setting, options in entry.settings.items():
            if setting not in known:
                raise ValueError(
                    f"models: {type(entry.learner).__name__} has no parameter {setting!r}"
                    f"{hint(setting, known)}"
                )
            if isinstance(options, str) or not isinstance(options, Iterable):
                raise ValueError(
                    f"models: {entry.name}: expected values of {setting!r} in a list, "
                    f"got {options!r}"
                )
        settings = {setting: list(options) for setting, options in entry.settings.items()}
        for setting, values in settings.items():
            if not values:
                raise ValueError(f"models: {entry.name}: expected values of {setting!r}, got none")
            for value in values:
                try:
                    type(entry.learner).check_parameter(setting, value)
                except (TypeError, ValueError) as error:
                    raise ValueError(f"models: {entry.name}: {error}") from error
        found[number] = replace(entry, settings=settings)
    return found


def split(text: str, what: str = "models") -> list[str]:
    """Cut at commas outside brackets.

    Examples
    --------
    >>> split("MLE, L3[C=1,scale=false],")
    ['MLE', 'L3[C=1,scale=false]']
    """
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    if depth:
        raise ValueError(f"{what}: a bracket is not closed, or not opened, in {text!r}")
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def _named(models: Any) -> list[tuple[str | None, Any]]:
    if isinstance(models, Mapping):
        return [(str(name), one) for name, one in models.items()]
    if isinstance(models, str | Ranker | Entry) or not isinstance(models, Iterable):
        return [(None, models)]
    return [(None, one) for one in models]


def _read(text: str) -> Entry:
    """Read one learner from its text."""
    kinds = {kind.__name__: kind for kind in all_learners()}
    name, bracket, rest = text.partition("[")
    name = {known.lower(): known for known in kinds}.get(name.strip().lower(), name.strip())
    if name not in kinds:
        by_length = sorted(kinds, key=len)
        raise ValueError(
            f"models: there is no learner {name!r}{_near(name, by_length)}; there are "
            f"{', '.join(kinds)}"
        )
    given: dict[str, list[Any]] = {}
    if bracket:
        if not rest.endswith("]"):
            raise ValueError(f"models: expected settings in brackets at the end of {text!r}")
        for part in split(rest[:-1]):
            setting, equals, values = part.partition("=")
            if not equals or not values.strip():
                raise ValueError(f"models: expected setting=value, got {part!r} in {text!r}")
            given[setting.strip()] = [_value(value.strip()) for value in values.split("|")]
    brought = dict(kinds[name].settings)
    if "C" in given:  # a fixed scale goes with the range of C that the learner brings
        brought.pop("scale", None)
    chosen = {**brought, **given}
    shown = name + (f"[{rest[:-1].strip()}]" if given else "")
    return Entry(shown, kinds[name](), chosen, tuple(given), by_name=True)


def _near(name: str, options: Sequence[str]) -> str:
    """Suggest a learner, whatever the case of the letters."""
    near = hint(name.lower(), [option.lower() for option in options])
    for option in options:
        near = near.replace(f"'{option.lower()}'", f"'{option}'")
    return near


def _value(text: str) -> Any:
    """Read a number, a word of Python or, for lack of these, a text."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _text(learner: Ranker) -> str:
    """Name a learner by its class and whatever is not usual about it."""
    return " ".join(str(learner).split())
