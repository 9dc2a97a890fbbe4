"""What learners take: arrays, data frames, sparse matrices and collections, made into `Queries`."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import validate_data

from permdist._check import check_masks, dense, pieces
from permdist._text import hint
from permdist.data import Queries
from permdist.data.tables import as_frame, check_no_texts, column_names, differing_columns
from permdist.models.rules import LARGEST, SMALLEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray


def as_queries(X: Any, y: Any, qid: Any, *, regroup: bool = False) -> Queries:
    """Return X, y and qid as a collection of queries; X may be one already."""
    if isinstance(X, Queries):
        if y is not None or qid is not None:
            raise TypeError("y, qid: a collection of queries brings its own")
        return X
    if y is None:
        raise TypeError("y: expected relevance labels")
    # A learner refuses NaN in its own words.
    return Queries(X, y, qid, missing="allow", regroup=regroup)


def as_eval_set(data: Any, *, regroup: bool = False) -> Queries:
    """Return validation data as a collection of queries."""
    if isinstance(data, Queries):
        return data
    if not isinstance(data, tuple | list) or len(data) != 3:
        raise TypeError("eval_set: expected a collection of queries, or (X, y, qid)")
    return as_queries(*data, regroup=regroup)


def read_features(learner: Any, X: Any, *, reset: bool) -> FloatArray:
    """Return the features, after comparing their number and names with those of the fit.

    With `reset` there is nothing to compare with: the learner keeps their number and names.
    Arrays of float32 or float64 are returned as they are; other numbers become float64.
    """
    if not isinstance(X, Queries):
        X = as_table("X", X)
    names = names_of(X)
    if isinstance(X, Queries):
        if reset:
            keep_names(learner, X.n_features, names)
        else:
            need_names(learner, names)
            need_width(learner, X.n_features)
        return X.X
    if not reset and names is not None:
        need_names(learner, names)
    dtypes = [np.float64, np.float32]
    features: FloatArray = validate_data(
        learner, X, dtype=dtypes, reset=reset, ensure_all_finite=False
    )
    for _, part in pieces(features):
        assert_all_finite(
            part, allow_nan=True, input_name="X", estimator_name=type(learner).__name__
        )
    return features


def names_of(X: Any) -> tuple[str, ...] | None:
    """Return the names of the features, where there are any."""
    return X.feature_names if isinstance(X, Queries) else column_names(X)


def keep_names(learner: Any, width: int, names: tuple[str, ...] | None) -> None:
    """Set the attributes that scikit-learn's conventions ask for."""
    if width == 0:
        raise ValueError("X: expected at least one feature, got none")
    learner.n_features_in_ = width
    if names is None:
        learner.__dict__.pop("feature_names_in_", None)
    else:
        learner.feature_names_in_ = np.array(names, dtype=object)


def need_width(learner: Any, width: int) -> None:
    """Refuse another number of features than that of the fit."""
    if width != learner.n_features_in_:
        raise ValueError(
            f"X has {width} features, but {type(learner).__name__} is expecting "
            f"{learner.n_features_in_} features as input"
        )


def need_names(learner: Any, names: tuple[str, ...] | None, what: str = "X") -> None:
    """Refuse features in another order than that of the fit; warn where it cannot be told."""
    wanted, kind = getattr(learner, "feature_names_in_", None), type(learner).__name__
    if wanted is None and names is None:
        return
    if wanted is None:
        text = f"{what} has feature names, but {kind} was fitted without feature names"
        warnings.warn(text, UserWarning, stacklevel=5)
    elif names is None:
        text = f"{what} does not have valid feature names, but {kind} was fitted with feature names"
        warnings.warn(text, UserWarning, stacklevel=5)
    else:
        wrong = differing_columns(what, names, wanted)
        if wrong is not None:
            raise ValueError(wrong)


def need_range(largest: float) -> None:
    """Refuse features whose squares, and what is made of them, no double can hold."""
    if largest > LARGEST or 0.0 < largest < SMALLEST:
        raise ValueError(
            f"X: expected features of a size from {SMALLEST:g} to {LARGEST:g}, the largest is "
            f"{largest:g}; scale them, or use normalize=True"
        )


def refuse_arguments(fit: Callable[..., Any], wrong: str) -> None:
    """Raise TypeError for an argument of `fit` that there is not, and say what to pass.

    Examples
    --------
    >>> refuse_arguments(as_queries, "group")
    Traceback (most recent call last):
    TypeError: group: ...qid=numpy.repeat(numpy.arange(len(group)), group)
    """
    if wrong == "group":
        repeat = "numpy.repeat(numpy.arange(len(group)), group)"
        raise TypeError(f"group: expected the query of each document instead; pass qid={repeat}")
    if wrong in ("eval_group", "eval_qid"):
        raise TypeError(f"{wrong}: pass validation data with their queries, eval_set=(X, y, qid)")
    parameters = inspect.signature(fit).parameters
    known = [
        name
        for name, one in parameters.items()
        if name != "self" and one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    raise TypeError(
        f"fit: there is no argument {wrong!r}, expected some of {', '.join(known)}"
        f"{hint(wrong, known)}"
    )


def as_table(name: str, values: Any) -> Any:
    """Return a sparse matrix as a dense one, a table of another library as a data frame.

    Whatever else may be a table is returned as it is. Texts that numpy would read as numbers are
    refused, and so are masked entries.
    """
    check_masks(name, values)
    values = as_frame(name, dense(name, values))
    check_no_texts(name, values)
    if hasattr(values, "dtypes") and hasattr(values, "columns"):
        return values
    try:
        array = np.asarray(values)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        text = f"{name}: expected an array, got rows of unequal length"
        raise ValueError(text) from error
    kind = array.dtype.kind
    if kind == "O" and array.ndim == 0:
        raise TypeError(f"{name}: expected an array, got {type(values).__name__}")
    if kind == "O" and any(isinstance(entry, str | bytes) for entry in array.flat):
        kind = "U"
    if kind in "USTMm":
        raise TypeError(f"{name}: expected numbers, got texts or dates; convert them first")
    return values
