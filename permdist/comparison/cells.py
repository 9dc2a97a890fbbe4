"""The cells of a comparison: one learner with one setting on one fold, kept in files.

A cell is fitted once. Its file has the fitted learner, so that measures asked for later are taken
from it without another fit, and is written whole or not at all.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import multiprocessing
import os
import re
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CellType, CodeType
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from permdist import __version__
from permdist._files import write_atomically
from permdist.data import Fold, Queries
from permdist.measures import Measure, evaluate
from permdist.models import Ranker
from permdist.models.files import from_dict, to_dict

FORMAT = 2
# What does not change the result of a fit.
INDIFFERENT = ("n_jobs", "verbose")
# What a class has whatever its code is.
HIDDEN = ("__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "_abc_impl")
# Warnings and the threads of linear algebra belong to the process: fits in its threads take turns.
ONE_AT_A_TIME = threading.RLock()


@dataclass(frozen=True)
class Cell:
    """One fit to be made: which entry, which of its settings, which fold."""

    entry: str
    fold: int
    setting: dict[str, Any]
    learner: Ranker
    key: str
    n_queries: int  # of the test part

    @property
    def file_name(self) -> str:
        """A name that people can read and that no other fit has."""
        return f"{type(self.learner).__name__}-fold{self.fold + 1}-{self.key[:24]}.json"


@dataclass
class Outcome:
    """What came of a cell.

    Attributes
    ----------
    learner : dict
        The fitted learner, as `permdist.models.files` writes it.
    validation : dict
        The mean of each measure on the validation part.
    test : dict
        Each measure on every query of the test part.
    seconds : float
        That the fit took.
    warnings : list of str
    error : str
        Why there is no fit; everything else is empty then.
    """

    learner: dict[str, Any] = field(default_factory=dict)
    validation: dict[str, float] = field(default_factory=dict)
    test: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    error: str = ""

    def lacks(self, measures: Iterable[Measure]) -> bool:
        """Tell whether a measure has not been taken yet."""
        return any(
            measure.name not in self.validation or measure.name not in self.test
            for measure in measures
        )


def make_key(learner: Ranker, prints: Sequence[str]) -> str:
    """Name a cell by all that its result depends on: the learner and the data.

    Of a user's own class its code counts too, but not that of functions which it calls.

    Examples
    --------
    >>> from permdist.models import MLE
    >>> make_key(MLE(), ["a"]) == make_key(MLE(n_jobs=2), ["a"]) != make_key(MLE(C=2.0), ["a"])
    True
    """
    kind = type(learner)
    params = {
        name: value for name, value in to_dict(learner)["params"].items() if name not in INDIFFERENT
    }
    facts = [__version__, f"{kind.__module__}.{kind.__qualname__}", params, list(prints)]
    code = [_describe(vars(base)) for base in kind.__mro__ if not _is_known(base)]
    return _digest([*facts, *code])


def _digest(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _is_known(kind: type) -> bool:
    """Tell whether a class is named well enough by a version: ours, scikit-learn's, Python's."""
    return kind.__module__.partition(".")[0] in ("permdist", "sklearn", "builtins", "abc", "typing")


def _describe(value: Any) -> Any:
    """Write a class's contents, its functions by their code, so that an edit can be seen."""
    value = getattr(value, "__func__", value)  # of static and class methods
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, Mapping):
        return {str(key): _describe(one) for key, one in value.items() if key not in HIDDEN}
    if hasattr(value, "__code__"):
        bound = [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]
        return [_describe(one) for one in (value.__code__, value.__defaults__, bound)]
    if isinstance(value, CodeType):
        return [value.co_code.hex(), list(value.co_names), _describe(value.co_consts)]
    if isinstance(value, list | tuple):
        return [_describe(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))  # where it is does not matter


def fingerprint(queries: Queries) -> str:
    """Name a collection by its contents."""
    digest = hashlib.sha256()
    for array in (queries.X, queries.y, queries.ptr):
        digest.update(str((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).data)
    digest.update(json.dumps([str(qid) for qid in queries.qids.tolist()]).encode())
    return digest.hexdigest()


# ---- what a worker does ------------------------------------------------------------------------


def run_cell(
    number: int,
    learner: Ranker,
    known: Outcome | None,
    train: Queries,
    validation: Queries,
    test: Queries,
    measures: tuple[Measure, ...],
) -> tuple[int, Outcome]:
    """Fit a learner, or take the fit that is known, and measure it.

    One thread for linear algebra, whoever calls: the last digits depend on it.
    """
    _serve_the_parent()
    with ONE_AT_A_TIME, threadpool_limits(1, user_api="blas"):
        try:
            fitted = (
                clone(learner) if known is None else from_dict(known.learner, kind=type(learner))
            )
            outcome = known or _fit(fitted, train, validation)
            for part, found in ((validation, "validation"), (test, "test")):
                result = evaluate(fitted.predict(part), part.y, part.qid, measures)
                for measure in measures:
                    if found == "validation":
                        outcome.validation[measure.name] = float(result.mean(measure))
                    else:
                        outcome.test[measure.name] = result[measure.name].tolist()
        except Exception as error:  # whatever it is, the others' fits go on
            text = " ".join(str(error).split())
            usual = isinstance(error, ValueError | TypeError) and text
            return number, Outcome(error=text if usual else f"{type(error).__name__}: {text}")
    return number, outcome


@functools.cache
def _serve_the_parent() -> None:
    """In a process of joblib's, leave Ctrl-C to the parent, and end when the parent has ended."""
    if not multiprocessing.current_process().name.startswith("Loky"):
        return
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_after, args=(os.getppid(),), daemon=True).start()


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)  # killed, it could not tell its workers to stop


def _fit(learner: Ranker, train: Queries, validation: Queries) -> Outcome:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        learner.fit(train, eval_set=validation)
        seconds = time.perf_counter() - begin
    told = [str(one.message) for one in caught if issubclass(one.category, ConvergenceWarning)]
    for one in caught:  # whatever else there is belongs to the user
        if not issubclass(one.category, ConvergenceWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return Outcome(learner=to_dict(learner), seconds=seconds, warnings=sorted(set(told)))


# ---- files -------------------------------------------------------------------------------------


class Store:
    """A folder with one file for each finished cell; None keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = None if folder is None else folder / "cells"
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:  # whether it can be written is better told now than after the first fit
                with tempfile.TemporaryFile(dir=self.folder):
                    pass
            except OSError as error:
                reason = os.strerror(error.errno or 0)
                raise type(error)(error.errno, reason, str(self.folder)) from error

    def read(self, cell: Cell) -> Outcome | None:
        """Give what is known of a cell; a damaged file counts as none."""
        if self.folder is None:
            return None
        try:
            stored = json.loads((self.folder / cell.file_name).read_bytes())
            if stored.pop("digest") != _digest(stored):
                return None  # changed by hand, or by a failing disk
            if stored["format"] != FORMAT or stored["key"] != cell.key:
                return None
            from_dict(stored["learner"], kind=type(cell.learner))
            if any(len(row) != cell.n_queries for row in stored["test"].values()):
                return None
            return Outcome(
                learner=stored["learner"],
                validation={name: _float(one) for name, one in stored["validation"].items()},
                test={name: [_float(one) for one in row] for name, row in stored["test"].items()},
                seconds=float(stored["seconds"]),
                warnings=[str(one) for one in stored["warnings"]],
            )
        except Exception:  # a damaged file may be anything; its fit is made again
            return None

    def write(self, cell: Cell, outcome: Outcome) -> None:
        """Keep a finished cell; one that failed is not kept, and is tried again next time."""
        if self.folder is None or outcome.error:
            return
        stored = {
            "format": FORMAT,
            "key": cell.key,
            "entry": cell.entry,
            "fold": cell.fold + 1,
            "setting": {name: repr(value) for name, value in cell.setting.items()},
            "seconds": outcome.seconds,
            "warnings": outcome.warnings,
            "validation": {name: _null(value) for name, value in outcome.validation.items()},
            "test": {name: [_null(one) for one in row] for name, row in outcome.test.items()},
            "learner": outcome.learner,
        }
        text = json.dumps({**stored, "digest": _digest(stored)}, allow_nan=False)
        write_atomically(self.folder / cell.file_name, [text.encode()])


def _null(value: float) -> float | None:
    return None if value != value else value


def _float(value: Any) -> float:
    return float("nan") if value is None else float(value)


def check_folds(folds: Iterable[Sequence[Queries]]) -> list[Fold]:
    """Check that every fold has three parts that can be learned from and measured.

    No query may be tested twice, or be in two parts of the same fold.
    """
    found: list[Fold] = []
    tested: dict[bytes, int] = {}
    if not isinstance(folds, Iterable):
        raise TypeError(f"folds: expected several of them, got {type(folds).__name__}")
    for number, fold in enumerate(folds, 1):
        parts = tuple(fold)
        if len(parts) != 3 or not all(isinstance(part, Queries) for part in parts):
            raise TypeError(f"folds: expected (train, validation, test), fold {number} is not")
        for name, part in zip(("training", "validation", "test"), parts, strict=True):
            if not (part.n_relevant > 0).any():
                raise ValueError(f"fold {number}: its {name} part has no relevant document")
        train = parts[0]
        if not ((train.n_relevant > 0) & (train.n_relevant < train.sizes)).any():
            raise ValueError(
                f"fold {number}: no training query has relevant documents and others, "
                "there is nothing to learn from"
            )
        widths = {part.n_features for part in parts}
        if len(widths) > 1:
            raise ValueError(f"fold {number}: its parts have {sorted(widths)} features")
        names = ("training", "validation", "test")
        for (one, a), (other, b) in itertools.combinations(zip(names, parts, strict=True), 2):
            if (qid := shared_query(a, b)) is not None:
                raise ValueError(f"fold {number}: query {qid} is in its {one} and its {other} part")
        for print_, qid in _query_prints(parts[2]).items():
            if tested.setdefault(print_, number) != number:
                raise ValueError(
                    f"folds: query {qid} is tested on fold {tested[print_]} and on fold {number}; "
                    "tests need every query once"
                )
        found.append(Fold(*parts))
    if not found:
        raise ValueError("folds: expected at least one")
    return found


def shared_query(one: Queries, other: Queries) -> Any:
    """Give the id of a query that two collections share; None if they share none."""
    known = _query_prints(one)
    return next((qid for print_, qid in _query_prints(other).items() if print_ in known), None)


def _query_prints(queries: Queries) -> dict[bytes, Any]:
    """Name every query by its id and its contents."""
    found = {}
    for number, qid in enumerate(queries.qids.tolist()):
        rows = slice(queries.ptr[number], queries.ptr[number + 1])
        digest = hashlib.blake2b(str(qid).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(queries.X[rows]).data)
        digest.update(np.ascontiguousarray(queries.y[rows]).data)
        found[digest.digest()] = qid
    return found
