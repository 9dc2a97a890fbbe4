"""The fits of a comparison: how one is made, what identifies it, and the file that keeps it.

Each learner is fitted once with each setting on each fold. The file of a fit contains the fitted
learner, so that further measures need no second fit, and is written whole or not at all.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import io
import json
import os
import pickle
import sys
import tempfile
import threading
import uuid
import warnings
import weakref
from dataclasses import dataclass, field
from importlib.metadata import packages_distributions, version
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from permdist import __version__
from permdist._files import parse_json, write_atomically
from permdist._kernels import seconds_without_compiling
from permdist.comparison.guests import Guest
from permdist.measures import Measure, evaluate, parse
from permdist.models.files import from_dict, to_dict
from permdist.models.rules import MeasureName
from permdist.models.specs import SpecName

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from permdist.data import Queries
    from permdist.models import Ranker

FORMAT = 3
# Parameters that do not change the result of a fit.
INDIFFERENT = ("n_jobs", "verbose")
# Warnings and the threads of linear algebra are global: fits in threads of a process take turns.
ONE_AT_A_TIME = threading.RLock()
HERE = threading.local()  # whether this thread is inside a fit
_tokens: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Fit:
    """One fit to make: a learner with one of its settings on one fold."""

    entry: str
    fold: int
    setting: dict[str, Any]
    learner: Ranker | Guest
    key: str
    n_queries: int  # of the test part

    @property
    def ready(self) -> bool:
        """Whether there is nothing to fit: a model that was fitted before is used as it is."""
        return isinstance(self.learner, Guest) and self.learner.ready

    @property
    def file_name(self) -> str:
        """A readable file name that no other fit has."""
        model = self.learner.model if isinstance(self.learner, Guest) else self.learner
        return f"{type(model).__name__}-fold{self.fold + 1}-{self.key[:24]}.json"


@dataclass
class Outcome:
    """The result of a fit.

    Attributes
    ----------
    learner : dict
        The fitted learner, as written by `permdist.models.files`.
    validation : dict
        The mean of each measure on the validation part.
    test : dict
        Each measure on every query of the test part.
    seconds : float
        The duration of the fit.
    warnings : list of str
        Convergence warnings of the fit.
    null : bool
        Whether the fitted learner ranks no better than its ties (`null_`).
    error : str
        Why the fit failed; everything else is then empty.
    source : {"fit", "model", "scores"}
        Whether the learner was fitted here, or before, or is known by its scores only.
    scores : list of lists
        Of a `Guest`: its scores of the validation and of the test part.
    model : object
        The fitted model of a `Guest`; not stored.
    """

    learner: dict[str, Any] = field(default_factory=dict)
    validation: dict[str, float] = field(default_factory=dict)
    test: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    null: bool = False
    error: str = ""
    source: str = "fit"
    scores: list[list[float]] = field(default_factory=list)
    model: Any = None

    def lacks(self, measures: Iterable[Measure]) -> bool:
        """Check whether any of the measures has not been computed yet."""
        return any(
            measure.name not in self.validation or measure.name not in self.test
            for measure in measures
        )


# ---- what identifies a fit -----------------------------------------------------------------------


def make_key(learner: Ranker | Guest, prints: Sequence[str]) -> str:
    """Return a key made of all that the result of a fit depends on: learner, code and data.

    Examples
    --------
    >>> from permdist.models import MLE
    >>> make_key(MLE(), ["a"]) == make_key(MLE(n_jobs=2), ["a"]) != make_key(MLE(C=2.0), ["a"])
    True
    """
    return digest([__version__, _made_of(learner), list(prints)])


def _made_of(learner: Ranker | Guest) -> list[str]:
    """Return digests of the values in a learner's parameters, and the code of all their classes.

    A model with something that cannot be identified gets a token of its own: its fits are not
    reused. Neither are those of a model that is used as it is.
    """
    guest = learner if isinstance(learner, Guest) else None
    if guest is not None and guest.ready:
        return [guest.token]
    try:
        kind = type(learner if guest is None else guest.model)
        values = _values(learner) if guest is None else guest.get_params() or vars(guest.model)
        parts = _Parts()
        parts.dump(values)
        return [joblib.hash(values), *sorted(map(_code, {*kind.__mro__, *parts.found}))]
    except Exception:  # whatever the code of the parts raises
        return [uuid.uuid4().hex if guest is None else guest.token]


def _values(learner: Any) -> dict[str, Any]:
    """Return the parameters of a learner that its fit depends on; named objects as they are."""
    found = learner.get_params(deep=False)
    for name, value in found.items():
        rule = learner.rule(name)
        if isinstance(rule, SpecName) and value is not None:
            found[name] = rule.registry.parse(value)
        elif isinstance(rule, MeasureName):
            found[name] = parse(value)
    return {name: value for name, value in found.items() if name not in INDIFFERENT}


class _Parts(pickle.Pickler):
    """Finds the classes and functions that an object is made of, however deep inside.

    Attributes
    ----------
    found : set of classes and functions
        With the bases of the classes.
    """

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.found: set[Any] = set()

    def reducer_override(self, one: Any) -> Any:
        """Take note of an object on its way; it is pickled as usual."""
        if isinstance(one, FunctionType):
            self.found.add(one)
        else:
            self.found.update((one if isinstance(one, type) else type(one)).__mro__)
        return NotImplemented


def digest(facts: Any) -> str:
    """Return the digest of plain values."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _code(part: Any) -> str:
    """Return the version of the package of a class or function, or the source of a user's own.

    A class that is made inside a function may depend on the function's arguments, and one typed at
    a prompt has no source: such a class gets a token of its own, and its fits are not reused.
    """
    name = f"{part.__module__}.{part.__qualname__}"
    package = part.__module__.partition(".")[0]
    version = _version(package)
    if version is not None:
        return f"{name} {package} {version}"
    try:
        if "<" in name:  # <locals> and <lambda>
            raise OSError
        return f"{name} {inspect.getsource(part)}"
    except (OSError, TypeError):
        return f"{name} {_token(part)}"


def _token(part: Any) -> str:
    """Return a text that stands for a class or function of this process, and no other one."""
    return _tokens.setdefault(part, uuid.uuid4().hex)


@functools.cache
def _version(package: str) -> str | None:
    """Return the version of an installed package; None for code that may change without one."""
    if package == "permdist":
        return __version__
    if package in sys.stdlib_module_names:
        return sys.version
    module = sys.modules.get(package)
    if not {"site-packages", "dist-packages"} & set(Path(*getattr(module, "__path__", [""])).parts):
        return None
    known = packages_distributions().get(package)
    return str(getattr(module, "__version__", "")) or (version(known[0]) if known else None)


def fingerprint(queries: Queries) -> str:
    """Return the digest of a collection."""
    found = hashlib.sha256()
    for array in (queries.X, queries.y, queries.ptr):
        found.update(str((array.shape, array.dtype.str)).encode())
        found.update(np.ascontiguousarray(array).data)
    found.update(json.dumps([str(qid) for qid in queries.qids.tolist()]).encode())
    if queries.feature_names is not None:
        found.update(json.dumps(queries.feature_names).encode())
    return found.hexdigest()


# ---- what a worker does --------------------------------------------------------------------------


def run_fit(
    number: int,
    learner: Ranker | Guest,
    known: Outcome | None,
    train: Queries,
    validation: Queries,
    test: Queries,
    measures: tuple[Measure, ...],
) -> tuple[int, Outcome]:
    """Fit a learner, or take the known fit, and evaluate it.

    Linear algebra always uses one thread, since the last digits depend on their number.
    """
    with ONE_AT_A_TIME, threadpool_limits(1, user_api="blas"):
        before, HERE.in_fit = in_fit(), True
        try:
            fitted: Any
            if known is None or isinstance(learner, Guest):
                fitted = clone(learner)
            else:
                fitted = from_dict(known.learner, kind=type(learner))
            outcome = known or _fit(fitted, train, validation)
            parts = validation, test
            if isinstance(learner, Guest):
                outcome.scores = outcome.scores or [fitted.predict(one).tolist() for one in parts]
                scores = [np.array(one) for one in outcome.scores]
            else:
                scores = [fitted.predict(part) for part in parts]
            checked, tested = (
                evaluate(one, part.y, part.qid, measures)
                for one, part in zip(scores, parts, strict=True)
            )
            for one in measures:
                outcome.validation[one.name] = float(checked.mean(one))
                outcome.test[one.name] = tested[one.name].tolist()
        except Exception as error:  # the fits of the other learners go on
            text = " ".join(str(error).split())
            usual = isinstance(error, ValueError | TypeError) and text
            return number, Outcome(error=text if usual else f"{type(error).__name__}: {text}")
        finally:
            HERE.in_fit = before
    return number, outcome


def in_fit() -> bool:
    """Check whether this thread is inside a fit, of a learner that compares or tunes others."""
    return getattr(HERE, "in_fit", False)


def _fit(learner: Ranker | Guest, train: Queries, validation: Queries) -> Outcome:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = seconds_without_compiling()
        learner.fit(train, eval_set=validation)
        seconds = seconds_without_compiling() - begin
    told = [str(one.message) for one in caught if issubclass(one.category, ConvergenceWarning)]
    for one in caught:  # all other warnings are for the user
        if not issubclass(one.category, ConvergenceWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if isinstance(learner, Guest):
        return Outcome(
            learner={"params": {}, "state": {}},
            seconds=float("nan") if learner.ready else seconds,
            warnings=sorted(set(told)),
            null=learner.ready and bool(getattr(learner.model, "null_", False)),
            source="model" if learner.ready else "fit",
            model=learner.model,
        )
    return Outcome(
        learner=to_dict(learner),
        seconds=seconds,
        warnings=sorted(set(told)),
        null=bool(getattr(learner, "null_", False)),
    )


# ---- files ---------------------------------------------------------------------------------------


class Store:
    """A folder with one file per finished fit; None stores nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = None if folder is None else folder / "cells"
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:  # fail before the first fit, not after it
                with tempfile.TemporaryFile(dir=self.folder):
                    pass
            except OSError as error:
                reason = os.strerror(error.errno or 0)
                raise type(error)(error.errno, reason, str(self.folder)) from error

    def read(self, fit: Fit) -> Outcome | None:
        """Return the stored outcome of a fit; None if there is none, or its file is damaged."""
        if self.folder is None:
            return None
        try:
            stored = parse_json((self.folder / fit.file_name).read_bytes())
            if stored.pop("digest") != digest(stored):
                return None  # changed by hand, or by a failing disk
            if stored["format"] != FORMAT or stored["key"] != fit.key:
                return None
            return Outcome(
                learner=stored["learner"],
                validation={name: _float(one) for name, one in stored["validation"].items()},
                test={name: [_float(one) for one in row] for name, row in stored["test"].items()},
                seconds=float(stored["seconds"]),
                warnings=[str(one) for one in stored["warnings"]],
                null=bool(stored["null"]),
                scores=[[float(one) for one in part] for part in stored.get("scores", [])],
            )
        except Exception:  # a damaged file may contain anything; the fit is repeated
            return None

    def write(self, fit: Fit, outcome: Outcome) -> None:
        """Store the outcome of a fit; failures are not stored, so that they are tried again."""
        if self.folder is None or outcome.error or fit.ready:
            return
        stored = {
            "format": FORMAT,
            "key": fit.key,
            "entry": fit.entry,
            "fold": fit.fold + 1,
            "setting": {name: repr(value) for name, value in fit.setting.items()},
            "seconds": outcome.seconds,
            "warnings": outcome.warnings,
            "null": outcome.null,
            "validation": {name: _null(value) for name, value in outcome.validation.items()},
            "test": {name: [_null(one) for one in row] for name, row in outcome.test.items()},
            "learner": outcome.learner,
            **({"scores": outcome.scores} if outcome.scores else {}),
        }
        stored = json.loads(json.dumps(stored, allow_nan=False))  # as it will be read
        text = json.dumps({**stored, "digest": digest(stored)})
        write_atomically(self.folder / fit.file_name, [text.encode()])


def _null(value: float) -> float | None:
    return None if value != value else value


def _float(value: Any) -> float:
    return float("nan") if value is None else float(value)
