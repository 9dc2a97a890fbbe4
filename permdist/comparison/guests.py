"""Models of other libraries, and learners that were fitted before, in a comparison."""

from __future__ import annotations

import copy
import inspect
import re
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from permdist._check import finite
from permdist.data.tables import listed_names
from permdist.models import Ranker

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.data import Queries

# How the queries are called by the `fit` of other libraries: LightGBM and XGBoost take the number
# of documents of each query, the others the query of each document.
GROUPS = ("group", "qid", "group_id")


class Guest:
    """A model of another library, or a learner that was fitted before, in the place of a learner.

    Parameters
    ----------
    model : object
        With `predict`, which takes features and returns one score per document; None where only
        its scores are known.
    ready : bool
        Whether the model is used as it is. Otherwise a copy of it is fitted on every fold.
    """

    def __init__(self, model: Any, *, ready: bool) -> None:
        self.model, self.ready = model, ready
        self.token = uuid.uuid4().hex  # a model that is ready is like no other

    def __str__(self) -> str:
        return type(self.model).__name__

    def __sklearn_clone__(self) -> Guest:
        if self.ready:
            return self
        return Guest(_copied(self.model), ready=False)

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """Return the parameters of the model, where it has any.

        Parameters
        ----------
        deep : bool
            Whether to include those of its parts.
        """
        known = getattr(self.model, "get_params", None)
        return dict(known(deep=deep)) if known is not None and not self.ready else {}

    def set_params(self, **params: Any) -> Guest:
        """Set parameters of the model."""
        if params and not hasattr(self.model, "set_params"):
            raise ValueError(f"{self} has no set_params, expected no settings to choose from")
        if params:
            self.model.set_params(**params)
        return self

    def fit(self, queries: Queries, **_: Any) -> Guest:
        """Fit the model, in the words of its library, unless it is ready.

        Parameters
        ----------
        queries : Queries
        """
        if self.ready:
            return self
        known = inspect.signature(self.model.fit).parameters
        word = next((one for one in GROUPS if one in known), None)
        groups: dict[str, Any] = {}
        if word is not None:
            groups[word] = queries.sizes if word == "group" else queries.qid
        self.model.fit(_table(queries, queries.feature_names), queries.y, **groups)
        return self

    def predict(self, queries: Queries) -> FloatArray:
        """Return the scores of the documents of a collection; columns are found by their names.

        Parameters
        ----------
        queries : Queries
        """
        ours = isinstance(self.model, Ranker)
        found = self.model.predict(queries if ours else _table(queries, self._columns(queries)))
        scores = np.squeeze(finite(f"{self}.predict", found))
        if scores.shape != (queries.n_documents,):
            raise ValueError(
                f"{self}.predict: expected {queries.n_documents} scores, one per document, got "
                f"shape {np.shape(found)}"
            )
        return scores

    def _columns(self, queries: Queries) -> tuple[str, ...] | None:
        """Return the columns that the model was fitted to; None where they have no names."""
        wanted, known = _names_of(self.model), queries.feature_names
        if wanted is None or known is None:
            return None
        by_name = {_word(name): name for name in known}  # LightGBM has no blanks in its names
        missing = [name for name in wanted if _word(name) not in by_name]
        if missing:
            raise ValueError(
                f"{self} was fitted to columns that the queries do not have:\n"
                + listed_names(missing)
            )
        return tuple(by_name[_word(name)] for name in wanted)


def is_guest(model: Any) -> bool:
    """Check whether an object may take part in a comparison because it has `predict`."""
    return callable(getattr(model, "predict", None)) and not isinstance(model, type)


def as_guest(model: Any, *, refit: bool = False) -> Guest:
    """Return a model as a guest, which is ready if it has been fitted, or cannot be.

    Parameters
    ----------
    model : object with `predict`
    refit : bool
        Fit a copy of it on every fold, even if it has been fitted before.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> as_guest(Ridge()).ready, as_guest(Ridge().fit([[0.0], [1.0]], [0, 1])).ready
    (False, True)
    """
    if not callable(getattr(model, "fit", None)):
        if refit:
            raise ValueError(f"learners: {type(model).__name__} has no fit, but has settings")
        return Guest(model, ready=True)
    return Guest(_copied(model) if refit else model, ready=not refit and is_fitted(model))


def is_fitted(model: Any) -> bool:
    """Check whether a model was fitted, by the conventions of scikit-learn or by its own word."""
    for word in ("__sklearn_is_fitted__", "is_fitted"):
        told = getattr(model, word, None)
        if callable(told):
            return bool(told())
    own = getattr(model, "__dict__", {})
    return any(name.endswith("_") and not name.startswith("__") for name in own)


def _copied(model: Any) -> Any:
    """Return an unfitted copy where the model can make one, and a plain one otherwise."""
    if hasattr(model, "get_params"):
        return clone(model)
    return copy.deepcopy(model)


def _names_of(model: Any) -> list[str] | None:
    """Return the names of the columns that a model was fitted to, if it keeps any."""
    names = getattr(model, "feature_names_in_", None)
    if names is None and callable(getattr(model, "feature_name", None)):  # a LightGBM booster
        names = model.feature_name()
        names = None if "Column_0" in names else names
    return None if names is None else [str(name) for name in names]


def _word(name: str) -> str:
    return re.sub(r"\s", "_", name)


def _table(queries: Queries, columns: tuple[str, ...] | None) -> Any:
    """Return features as a data frame of some columns; as an array where they have no names."""
    if columns is None:
        return queries.X
    import pandas as pd

    frame = pd.DataFrame(queries.X, columns=list(queries.feature_names or ()), copy=False)
    return frame if columns == queries.feature_names else frame[list(columns)]
