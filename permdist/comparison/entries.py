"""What goes into a comparison: learners with the settings to choose from, and folds."""

from __future__ import annotations

import hashlib
import inspect
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from permdist._check import choice, count, finite
from permdist._registry import read_value, split_list, split_spec
from permdist._text import hint
from permdist.comparison.guests import Guest, as_guest, is_fitted, is_guest
from permdist.comparison.statistics import CORRECTIONS
from permdist.comparison.wording import REFERENCES, setting_text
from permdist.data import Fold, Queries
from permdist.data.tables import differing_columns
from permdist.models import LEARNERS, Ranker, all_learners
from permdist.models.batch import teaching

if TYPE_CHECKING:
    from permdist.measures import Measure

PARTS = ("training", "validation", "test")
# Parameters that say nothing about what is to be tuned.
UNTUNED = ("n_jobs", "verbose", "random_state")


# ---- learners ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A learner and the settings to choose from on validation queries.

    Parameters
    ----------
    name : str
        Its name in tables.
    learner : Ranker
        Parameters that are not in `settings` are taken from it. If it has been fitted, and there
        are no settings, it is used as it is. A model of another library is wrapped by
        `read_entries`.
    settings : mapping of str to sequences
        Values to try for each parameter, in all combinations.
    given : tuple of str
        The parameters that the user set; the others are from the learner's default grid.
    by_name : bool
        Whether the learner was given by name. If so, the comparison sets its random_state and,
        where `measure` is only used for validation, its measure. Instances are used unchanged.

    Examples
    --------
    >>> from permdist.models import MLE
    >>> entry = Entry("likelihood", MLE(), {"C": [0.1, 1.0], "scale": [True]})
    >>> entry.combinations()
    [{'C': 0.1, 'scale': True}, {'C': 1.0, 'scale': True}]
    """

    name: str
    learner: Ranker | Guest
    settings: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    by_name: bool = False

    def combinations(self) -> list[dict[str, Any]]:
        """Return every combination of the settings; repeated values count once."""
        values = [{repr(one): one for one in many}.values() for many in self.settings.values()]
        return [
            dict(zip(self.settings, chosen, strict=True)) for chosen in itertools.product(*values)
        ]

    def learners(self, *, judge: str, random_state: int) -> list[tuple[dict[str, Any], Any]]:
        """Return each combination of the settings with its unfitted learner.

        Parameters
        ----------
        judge : str
            The measure of a learner given by name, where it is only used for validation.
        random_state : int
            The random state of a learner given by name.
        """
        own = {} if isinstance(self.learner, Guest) else self.learner.get_params(deep=False)
        usual: dict[str, Any] = {"verbose": False}
        if self.by_name:
            usual["random_state"] = random_state
            if isinstance(self.learner, Ranker) and type(self.learner).measure_judges:
                usual["measure"] = judge
        usual = {name: value for name, value in usual.items() if name in own}
        return [
            (combination, clone(self.learner).set_params(**{**usual, **combination}))
            for combination in self.combinations()
        ]


def read_entries(
    learners: Any = "all",
    measure: Measure | None = None,
) -> list[Entry]:
    """Read the learners of a comparison.

    Parameters
    ----------
    learners : str, Ranker, Entry, object with `predict`, iterable or mapping of these
        A string is ``"all"`` or a comma-separated list of names, as in
        `permdist.models.all_learners`. A name may be followed by settings in brackets, with bars
        between alternatives: ``"ConvexLoss[measure=ndcg@10,C=0.1|1|10]"``. Parameters that are not
        named there are chosen from the learner's default grid, `settings`. A name alone also
        tries features scaled within queries and, where the measure has grades, graded labels:
        `settings_for`. Instances of learners keep their parameters; in a mapping,
        ``(learner, settings)`` adds the settings to choose from.

        A learner or a model that has been fitted (by the conventions of scikit-learn), or has no
        `fit`, is used as it is on every fold. One that has not, and one with settings, is copied
        and fitted on every fold.

        A model of another library is any object with `predict`, which takes features and returns
        one score per document. It is fitted by ``fit(X, y, group=sizes)`` as in LightGBM and
        XGBoost, with ``qid=`` or ``group_id=`` where `fit` has that parameter, or else by
        ``fit(X, y)``. X is a data frame where the features have names.
    measure : Measure, optional
        The one by which settings will be chosen.

    Returns
    -------
    list of Entry
        With unique names.

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
    for name, one in _named(learners):
        if isinstance(one, Entry):
            found.append(one if name is None else replace(one, name=name))
        elif isinstance(one, Ranker):
            found.append(Entry(name or str(one), one))
        elif isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], Ranker):
            found.append(Entry(name or str(one[0]), clone(one[0]), dict(one[1] or {})))
        elif isinstance(one, tuple) and len(one) == 2 and is_guest(one[0]):
            guest = as_guest(one[0], refit=True)
            found.append(Entry(name or str(guest), guest, dict(one[1] or {})))
        elif is_guest(one):
            guest = as_guest(one)
            found.append(Entry(name or str(guest), guest))
        elif isinstance(one, str):
            for text in split_list(one, "learners"):
                if text.lower() == "all":
                    found += [_read(kind.__name__, measure) for kind in all_learners()]
                else:
                    entry = _read(text, measure)
                    found.append(entry if name is None else replace(entry, name=name))
        else:
            raise TypeError(
                "learners: expected names, learners or objects with predict, got "
                f"{type(one).__name__}"
            )
    if not found:
        raise ValueError("learners: expected at least one, got none")
    return [_checked(entry) for entry in check_names(found)]


def check_names(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries with single blanks in their names, which must be different."""
    found = [replace(entry, name=" ".join(entry.name.split())) for entry in entries]
    names = [entry.name for entry in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"learners: {min(twice)!r} appears twice; give each a name of its own")
    taken = sorted(set(names) & set(REFERENCES))
    if taken:
        raise ValueError(
            f"learners: {taken[0]!r} is the name of a reference; give the learner another name"
        )
    return found


def _checked(entry: Entry) -> Entry:
    """Check that the learner takes all values of its settings; return the entry with lists.

    A learner that was fitted before, and has no settings, is used as it is.
    """
    if isinstance(entry.learner, Ranker) and not entry.settings and is_fitted(entry.learner):
        return replace(entry, learner=Guest(entry.learner, ready=True))
    learner, known = entry.learner, entry.learner.get_params(deep=False)
    kind, settings = type(learner), dict[str, list[Any]]()
    for setting, values in entry.settings.items():
        if isinstance(learner, Ranker) and setting not in known:
            raise ValueError(
                f"learners: {kind.__name__} has no parameter {setting!r}{hint(setting, known)}"
            )
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ValueError(
                f"learners: {entry.name}: expected values of {setting!r} in a list, got {values!r}"
            )
        settings[setting] = list(values)
        if not settings[setting]:
            raise ValueError(f"learners: {entry.name}: expected values of {setting!r}, got none")
        for value in settings[setting]:
            try:
                if isinstance(learner, Guest):
                    clone(learner).set_params(**{setting: value})
                else:
                    type(learner).check_parameter(setting, value)
            except (TypeError, ValueError) as error:
                raise ValueError(f"learners: {entry.name}: {error}") from error
    return replace(entry, settings=settings)


def _named(learners: Any) -> list[tuple[str | None, Any]]:
    if isinstance(learners, Mapping):
        return [(str(name), one) for name, one in learners.items()]
    alone = isinstance(learners, str | Ranker | Entry) or is_guest(learners)
    if alone or not isinstance(learners, Iterable):
        return [(None, learners)]
    return [(None, one) for one in learners]


def _read(text: str, measure: Measure | None = None) -> Entry:
    """Read one learner, with settings in brackets; without them, those for the measure."""
    kinds = dict(LEARNERS)
    name, options = split_spec(text, "learners")
    name = {known.lower(): known for known in kinds}.get(name.lower(), name)
    if name not in kinds:
        by_length = sorted(kinds, key=len)
        raise ValueError(
            f"learners: there is no learner {name!r}{_near(name, by_length)}; there are "
            f"{', '.join(kinds)}"
        )
    given = {
        setting: [read_value(value.strip()) for value in values.split("|")]
        for setting, values in options.items()
    }
    chosen = {**_usual_settings(kinds[name], given, measure), **given}
    shown = name + text.strip()[text.strip().index("[") :] if given else name
    return Entry(shown, kinds[name](), chosen, tuple(given), by_name=True)


def _usual_settings(
    kind: type[Ranker], given: Iterable[str], measure: Measure | None
) -> dict[str, Sequence[Any]]:
    """Return the settings to try of parameters that are not given."""
    usual = kind.settings if given else kind.settings_for(measure)
    return {name: values for name, values in usual.items() if name not in given}


def tuned_entry(learner: Ranker, measure: Measure) -> tuple[Entry, str]:
    """Return a learner with its default settings of all parameters that have their default value.

    Parameters
    ----------
    learner : Ranker
    measure : Measure
        The one by which settings will be chosen.

    Returns
    -------
    Entry, str
        The entry, and which parameters are tuned and which are kept.
    """
    kind, defaults = type(learner), inspect.signature(type(learner)).parameters
    kept = {
        name: value
        for name, value in learner.get_params(deep=False).items()
        if name not in UNTUNED and repr(value) != repr(defaults[name].default)
    }
    settings = _usual_settings(kind, tuple(kept), measure)
    tried = [f"{one} ({len(values)} values)" for one, values in settings.items() if len(values) > 1]
    told = f"{kind.__name__}: {', '.join(tried) or 'nothing'} tuned"
    if kept:
        told += f", kept as given: {setting_text(kept)}"
    return Entry(str(learner), clone(learner), settings), told


def _near(name: str, options: Sequence[str]) -> str:
    """Suggest a learner, ignoring case."""
    near = hint(name.lower(), [option.lower() for option in options])
    for option in options:
        near = near.replace(f"'{option.lower()}'", f"'{option}'")
    return near


def check_options(
    correction: str, level: float, random_state: int, baseline: str | None, names: Sequence[str]
) -> None:
    """Check the options of the tests of a comparison."""
    choice("correction", correction, CORRECTIONS)
    if not 0.0 < float(finite("level", level, ndim=0)) < 1.0:
        raise ValueError(f"level: expected a number between 0 and 1, got {level!r}")
    count("random_state", random_state, minimum=0)
    if baseline is not None:
        choice("baseline", baseline, names)


# ---- folds ---------------------------------------------------------------------------------------


def check_folds(folds: Any) -> list[Fold]:
    """Check every fold by `check_parts`, and that no query is tested twice."""
    if isinstance(folds, Queries):
        raise TypeError(
            "folds: expected an iterable of (train, validation, test) triples, got one collection; "
            "permdist.data.make_folds splits it"
        )
    found: list[Fold] = []
    tested: dict[bytes, int] = {}
    if not isinstance(folds, Iterable):
        raise TypeError(
            "folds: expected an iterable of (train, validation, test) triples, "
            f"got {type(folds).__name__}"
        )
    if isinstance(folds, tuple) and len(folds) == 3 and isinstance(folds[0], Queries):
        folds = [folds]  # one split
    for number, fold in enumerate(folds, 1):
        parts = tuple(fold)
        if len(parts) != 3 or not all(isinstance(part, Queries) for part in parts):
            raise TypeError(
                f"folds: expected (train, validation, test), each of them Queries; fold {number} "
                "is something else"
            )
        prints = check_parts(f"fold {number}", dict(zip(PARTS, parts, strict=True)))
        for print_, qid in prints["test"].items():
            if tested.setdefault(print_, number) != number:
                raise ValueError(
                    f"folds: query {qid} is tested on fold {tested[print_]} and on fold {number}; "
                    "the test parts must not overlap"
                )
        found.append(Fold(*parts))
    if not found:
        raise ValueError("folds: expected at least one, got none")
    return found


def check_parts(where: str, parts: Mapping[str, Queries]) -> dict[str, dict[bytes, Any]]:
    """Check that parts can be learned from and evaluated on, and share no query.

    Returns
    -------
    dict of dict
        For each part, the query ids by the fingerprints of the queries.
    """
    for name, part in parts.items():
        if not isinstance(part, Queries):
            raise TypeError(f"{where}: expected {name} Queries, got {type(part).__name__}")
        if not (part.n_relevant > 0).any():
            raise ValueError(f"{where}: its {name} part has no relevant document")
    train = parts["training"]
    if not teaching(train.y, train.ptr).any():
        raise ValueError(
            f"{where}: no training query has documents of different labels, there is nothing to "
            "learn from"
        )
    widths = {part.n_features for part in parts.values()}
    if len(widths) > 1:
        raise ValueError(
            f"{where}: its parts have {sorted(widths)} features; expected the same number"
        )
    for name, part in parts.items():
        if (part.feature_names is None) != (train.feature_names is None):
            raise ValueError(
                f"{where}: the features of its training and its {name} part must both have names, "
                "or neither"
            )
        if part.feature_names is not None and train.feature_names is not None:
            wrong = differing_columns(
                f"{where}, its {name} part", part.feature_names, train.feature_names, "in training"
            )
            if wrong is not None:
                raise ValueError(wrong)
    prints = {name: _query_prints(part) for name, part in parts.items()}
    for (one, a), (other, b) in itertools.combinations(prints.items(), 2):
        shared = [qid for print_, qid in b.items() if print_ in a]
        if shared:
            raise ValueError(f"{where}: query {shared[0]} is in its {one} and its {other} part")
    return prints


def _query_prints(queries: Queries) -> dict[bytes, Any]:
    """Return the ids of the queries by fingerprints of their ids and contents."""
    found = {}
    for number, qid in enumerate(queries.qids.tolist()):
        rows = slice(queries.ptr[number], queries.ptr[number + 1])
        digest = hashlib.blake2b(str(qid).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(queries.X[rows]).data)
        digest.update(np.ascontiguousarray(queries.y[rows]).data)
        found[digest.digest()] = qid
    return found
