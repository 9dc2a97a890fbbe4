"""Learners as plain values: what `save` writes and `load` reads, checked on the way in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from permdist._check import choice, finite
from permdist._files import read_bytes
from permdist.data.queries import NORMALISATIONS
from permdist.measures import Measure
from permdist.models.base import Ranker

FORMAT = 1
ALWAYS = ("n_features_in_", "feature_names_in_", "views_")


def to_dict(learner: Ranker) -> dict[str, Any]:
    """Give a learner, fitted or not, as a dict that JSON can hold.

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
    """Make a learner from what `to_dict` gave; errors name the source.

    Without `kind` it is one of the library's, by its name.

    Examples
    --------
    >>> from permdist.models import MLE
    >>> from_dict(to_dict(MLE(C=3.0)))
    MLE(C=3.0)
    """
    from permdist import models

    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise ValueError(f"{source}: expected a learner in format {FORMAT}")
    if kind is None:
        found = getattr(models, str(stored.get("learner")), None)
        if not (isinstance(found, type) and issubclass(found, Ranker) and found is not Ranker):
            raise ValueError(
                f"{source}: no learner is named {stored.get('learner')!r}; a class of your own is "
                "read by load(path, kind=...)"
            )
        kind = found
    params, state = stored.get("params"), stored.get("state")
    if not isinstance(params, dict) or not isinstance(state, dict):
        raise ValueError(f"{source}: not a learner's file, or a damaged one")
    unknown = set(params) - set(kind._get_param_names())
    unknown |= set(state) - {*kind.fitted, *ALWAYS}
    if unknown:
        raise ValueError(f"{source}: {min(unknown)!r} is no attribute of {kind.__name__}")
    learner = kind(**{name: _number(value) for name, value in params.items()})
    if isinstance(params.get("normalise"), list):
        learner.set_params(normalise=tuple(params["normalise"]))
    for name, value in state.items():
        if name == "coef_":
            value = finite("coef_", value, ndim=1)
        elif name == "feature_names_in_":
            value = np.array(value, dtype=object)
        setattr(learner, name, value)
    if "history_" in state:
        try:
            for view in learner.views_:
                choice("views_", view, NORMALISATIONS)
            if not all(isinstance(entries, list) for entries in learner.history_.values()):
                raise TypeError("history_")
            learner._check_state()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{source}: not a learner's file, or a damaged one") from error
    return learner


def load(path: str | Path, kind: type[Ranker] | None = None) -> Ranker:
    """Read a learner that `save` wrote.

    Parameters
    ----------
    path : path
    kind : class, optional
        Of a learner of your own; the library's are found by their names.

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
        stored = json.loads(read_bytes(source))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{source}: not a learner's file, or a damaged one") from error
    return from_dict(stored, source, kind)


def _plain(value: Any) -> Any:
    """Write a value so that JSON can hold it: no numpy, no infinities."""
    if isinstance(value, Measure):
        return value.name
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _number(value: Any) -> Any:
    return float(value) if value in ("inf", "-inf", "nan") else value
