"""The cells of a comparison: one learner with one setting on one fold, kept in files.

A cell is fitted once. Its file has the fitted learner, so that measures asked for later are taken
from it without another fit, and is written whole or not at all.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from permdist._files import write_atomically
from permdist.comparison.keys import digest
from permdist.data import Queries
from permdist.measures import Measure, evaluate
from permdist.models import Ranker
from permdist.models.files import from_dict, to_dict

FORMAT = 2
# Warnings and the threads of linear algebra belong to the process: fits in its threads take turns.
ONE_AT_A_TIME = threading.RLock()
HERE = threading.local()  # whether this thread is in the middle of a cell


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
    with ONE_AT_A_TIME, threadpool_limits(1, user_api="blas"):
        before, HERE.in_cell = in_cell(), True
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
        finally:
            HERE.in_cell = before
    return number, outcome


def in_cell() -> bool:
    """Tell whether this thread is making a fit, which then compares or tunes others itself."""
    return getattr(HERE, "in_cell", False)


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
            if stored.pop("digest") != digest(stored):
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
        stored = json.loads(json.dumps(stored, allow_nan=False))  # as it will be read
        text = json.dumps({**stored, "digest": digest(stored)})
        write_atomically(self.folder / cell.file_name, [text.encode()])


def _null(value: float) -> float | None:
    return None if value != value else value


def _float(value: Any) -> float:
    return float("nan") if value is None else float(value)
