"""Learners as plain values: what `save` writes and `load` reads, checked on the way in."""

from __future__ import annotations

import inspect
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from permdist._files import read_bytes
from permdist.measures import Measure
from permdist.models.attributes import LARGEST_WIDTH, Count
from permdist.models.base import Ranker
from permdist.models.missing import Filling
from permdist.models.rules import Views, shown
from permdist.models.spaces.sample import Sample
from permdist.models.specs import Spec
from permdist.models.table import LEARNERS

FORMAT = 1
ALWAYS = ("n_features_in_", "feature_names_in_", "views_", "filling_")


def to_dict(learner: Ranker) -> dict[str, Any]:
    """Return a learner, fitted or not, as a dict that JSON can hold.

    Examples
    --------
    >>> from permdist.models import MLE
    >>> to_dict(MLE(C=3.0))["params"]["C"]
    3.0
    """
    params = {name: _plain(value) for name, value in learner.get_params(deep=False).items()}
    state = {
        name: _plain(value)
        for name in (*learner.fitted, *ALWAYS)
        if (value := getattr(learner, name, None)) is not None
    }
    stored = {
        "format": FORMAT,
        "learner": type(learner).__name__,
        "params": params,
        "state": state,
    }
    try:
        json.dumps(stored, allow_nan=False)
    except TypeError as error:
        raise TypeError(f"save: a parameter cannot be written as text ({error})") from error
    return stored


def from_dict(
    stored: Any, source: str | Path = "learner", kind: type[Ranker] | None = None
) -> Ranker:
    """Make a learner from what `to_dict` returned; errors name the source.

    Without `kind` it is one of the library's, by its name.

    Examples
    --------
    >>> from permdist.models import MLE
    >>> from_dict(to_dict(MLE(C=3.0)))
    MLE(C=3.0)
    """
    if not isinstance(stored, dict):
        raise ValueError(f"{source}: not a learner's file, or a damaged one")
    version = stored.get("format")
    if isinstance(version, bool) or not isinstance(version, int) or version != FORMAT:
        raise ValueError(
            f"{source}: expected a learner in format {FORMAT}, got {shown(version)}; a file of a "
            "newer version needs that version"
        )
    if kind is None:
        name = stored.get("learner")
        found = LEARNERS.get(name) if isinstance(name, str) else None
        if found is None:
            raise ValueError(
                f"{source}: no learner is named {shown(name)}; a class of your own is read by "
                "load(path, kind=...)"
            )
        kind = found
    elif not _is_learner(kind):
        raise TypeError(f"kind: expected a class of learners, got {shown(kind)}")
    extra = set(stored) - {"format", "learner", "params", "state"}
    params, state = stored.get("params"), stored.get("state")
    if extra or not isinstance(params, dict) or not isinstance(state, dict):
        raise ValueError(f"{source}: not a learner's file, or a damaged one")
    unknown = set(params) - set(kind.parameter_names())
    unknown |= set(state) - {*kind.fitted, *ALWAYS}
    if unknown:
        raise ValueError(f"{source}: {shown(min(unknown))} is no attribute of {kind.__name__}")
    try:
        learner = _make(kind, params)
        if state:
            _restore(learner, state)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{source}: {error}") from error
    return learner


def _is_learner(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Ranker)


def _make(kind: type[Ranker], params: dict[str, Any]) -> Ranker:
    """Make a learner that is not fitted, and check its parameters as `fit` does."""
    values = {name: _number(value) for name, value in params.items()}
    defaults = inspect.signature(kind).parameters
    for name, value in values.items():  # JSON has no tuples
        tuples = name == "normalize" or isinstance(defaults[name].default, tuple)
        if tuples and isinstance(value, list):
            values[name] = tuple(value)
    learner = kind(**values)
    learner.check_parameters()
    return learner


def _restore(learner: Ranker, state: dict[str, Any]) -> None:
    """Set the fitted attributes, each as the learner declares it."""
    if "history_" not in state:
        raise ValueError(f"history_: expected it beside {shown(min(state))}, got none")
    learner.n_features_in_ = Count(1, LARGEST_WIDTH).read(
        "n_features_in_", state.get("n_features_in_"), 0
    )
    views = state.get("views_")
    if not isinstance(views, list):
        raise ValueError(f"views_: expected a list of methods, got {shown(views)}")
    learner.views_ = Views().read("views_", views)
    names = state.get("feature_names_in_")
    if names is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"feature_names_in_: expected a list of texts, got {shown(names)}")
        if len(names) != learner.n_features_in_:
            raise ValueError(
                f"feature_names_in_: expected {learner.n_features_in_} names, got {len(names)}"
            )
        learner.feature_names_in_ = np.array(names, dtype=object)
    if state.get("filling_") is not None:
        filling = Filling.read("filling_", state["filling_"], learner.n_features_in_)
        learner.filling_ = filling
    for name, value in learner.read_state(state, learner.n_columns).items():
        setattr(learner, name, value)


def load(path: str | Path, kind: type[Ranker] | None = None) -> Ranker:
    """Read a learner that `save` wrote.

    Every value is checked by what the learner declares: parameters as by `fit`, fitted attributes
    by their type, shape and range. Nothing in the file is run.

    Parameters
    ----------
    path : path
    kind : class, optional
        Of a learner of your own; the library's are found by their names.

    Returns
    -------
    Ranker
        As it was saved: fitted, or not.

    Raises
    ------
    ValueError
        With the file, the name of the value, what was expected and what came.

    Examples
    --------
    >>> from permdist import data, models
    >>> queries = data.make_letor(20, rng=0)
    >>> learner = models.MLE().fit(queries)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learner.save(pathlib.Path(folder) / "mle.json")
    ...     again = models.load(pathlib.Path(folder) / "mle.json")
    >>> bool((again.coef_ == learner.coef_).all())
    True
    """
    source = Path(path)
    try:
        text = read_bytes(source).decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{source}: not a learner's file, or a damaged one") from error
    try:
        stored = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float
        )
    except RecursionError as error:
        raise ValueError(f"{source}: not a learner's file: it is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{source}: not a learner's file, or a damaged one ({error})") from error
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    return from_dict(stored, source, kind)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict; the same name twice would leave it open which value counts."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{shown(name)}: expected it once, got it twice")
        found[name] = value
    return found


def _constant(text: str) -> float:
    raise ValueError(f"expected numbers as JSON has them, got {text}")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"expected numbers that fit into a double, got {text[:40]}")
    return value


def _plain(value: Any) -> Any:
    """Write a value so that JSON can hold it: no numpy, no infinities."""
    if isinstance(value, Measure):
        return value.name
    if isinstance(value, Ranker):
        return to_dict(value)
    if isinstance(value, Sample):
        return value.to_dict()
    if isinstance(value, Spec):
        return value.name if value.has_text else value
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _number(value: Any) -> Any:
    """Read a parameter: a learner from its plain form, and infinities from words."""
    if isinstance(value, dict) and "learner" in value:
        return from_dict(value)
    return float(value) if isinstance(value, str) and value in ("inf", "-inf", "nan") else value
