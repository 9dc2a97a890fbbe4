"""Learners in files: one target for each learner, since each checks a state of its own."""

from __future__ import annotations

import functools
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fuzz.engine import BrokenPromiseError, expect, target
from permdist import data, measures, models
from permdist.models.files import to_dict

MAX_FEATURES = 1_000_000  # no file of a few kilobytes can tell of more


@functools.cache
def training() -> data.Queries:
    return data.make_letor(6, rng=0)


@functools.cache
def fitted(kind: type[models.Ranker]) -> bytes:
    """Write a learner that was fitted for a moment."""
    options = {"max_iter": 3} if "max_iter" in kind._get_param_names() else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.dumps(to_dict(kind(**options).fit(training()))).encode()


def seeds_of(kind: type[models.Ranker]) -> Callable[[], list[bytes]]:
    return lambda: [fitted(kind), json.dumps(to_dict(kind())).encode()]


def check_learner(learner: models.Ranker) -> None:
    """State what holds for a learner that was accepted."""
    usual = type(learner)().get_params(deep=False)
    for name, value in learner.get_params(deep=False).items():
        if isinstance(usual[name], float) and not isinstance(value, str):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            expect(number and not math.isnan(value), f"{name} is a number, got {value!r:.40}")
        if isinstance(usual[name], bool) and name != "normalize":  # which may name methods, too
            expect(isinstance(value, bool), f"{name} is a truth value, got {value!r:.40}")
        if name == "measure" and value is not None:
            promised(lambda value=value: measures.parse(value), f"{name} is one: {value!r:.40}")
    expect(repr(learner), "it can be shown")
    stored = promised(lambda: json.dumps(to_dict(learner)), "it can be written again")
    if not hasattr(learner, "history_"):
        return
    n = learner.n_features_in_
    expect(isinstance(n, int) and 0 < n <= MAX_FEATURES, f"n_features_in_ is plausible, got {n!r}")
    if n * len(learner.views_) <= 10_000:
        X = np.random.default_rng(0).normal(size=(4, n))
        names = getattr(learner, "feature_names_in_", None)
        table = X if names is None else frame(X, names)
        scores = promised(lambda: learner.predict(table, qid=[0, 0, 1, 1]), "it predicts")
        expect(scores.shape == (4,) and np.isfinite(scores).all(), "scores are finite")
    again = models.files.from_dict(json.loads(stored))
    expect(json.dumps(to_dict(again)) == stored, "it survives writing and reading")


def frame(X: np.ndarray, names: np.ndarray) -> object:
    import pandas

    return pandas.DataFrame(X, columns=list(names))


def promised(call: Callable[[], object], what: str) -> object:
    """Call what must not be refused any more."""
    try:
        return call()
    except (ValueError, TypeError) as error:
        raise BrokenPromiseError(f"{what} ({error})") from error


def declare(kind: type[models.Ranker]) -> None:
    @target(f"model-{kind.__name__}", form="json", says="case.json", seeds=seeds_of(kind))
    def load(case: bytes) -> None:
        Path("case.json").write_bytes(case)
        check_learner(models.load("case.json"))


for kind in models.all_learners():
    declare(kind)
