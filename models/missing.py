"""Missing values of features: how a learner fills them, and columns that say where they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._text import plural
from permdist.data import Queries
from permdist.data.missing import FILLS, fill, has_missing
from permdist.models.attributes import Columns
from permdist.models.rules import shown

if TYPE_CHECKING:
    from permdist._typing import FloatArray

METHODS = ("error", *FILLS)


class Filling(NamedTuple):
    """What a fitted learner does with missing values.

    Attributes
    ----------
    method : {"error", "zero", "mean"}
    indicators : tuple of int
        The features with an indicator column: those with missing values in the training data.
    """

    method: str = "error"
    indicators: tuple[int, ...] = ()

    @classmethod
    def of(cls, features: FloatArray, method: str, indicator: bool) -> Filling:
        """Make the filling of a learner that is fitted to these features."""
        if method == "error" or not indicator or not has_missing(features):
            return cls(method)
        return cls(method, tuple(np.flatnonzero(np.isnan(features).any(axis=0)).tolist()))

    @classmethod
    def read(cls, name: str, value: Any, n_features: int) -> Filling:
        """Read a filling from plain values, as `permdist.models.load` finds them."""
        if not isinstance(value, list) or len(value) != 2 or value[0] not in METHODS:
            raise ValueError(f"{name}: expected a method and columns, got {shown(value)}")
        return cls(str(value[0]), tuple(Columns().read(name, value[1], n_features)))

    def needs_queries(self, features: FloatArray) -> bool:
        """Check whether the query of each document matters for these features."""
        return self.method == "mean" and has_missing(features)

    def apply(self, queries: Queries, views: tuple[str, ...]) -> Queries:
        """Fill missing values, normalize, and put the indicators behind all other columns."""
        if self.method == "error":
            need_values(self.method, queries.X)
            return queries.normalize(views)
        scaled = queries.fill_missing(self.method).normalize(views)
        if not self.indicators:
            return scaled
        names = scaled.feature_names
        if names is not None and queries.feature_names is not None:
            names += tuple(f"missing:{queries.feature_names[one]}" for one in self.indicators)
        X = np.hstack([scaled.X, self._marks(queries.X)])
        return Queries(X, queries.y, queries.qid, doc_ids=queries.doc_ids, feature_names=names)

    def apply_to_rows(self, features: FloatArray) -> FloatArray:
        """Do the same for documents whose queries do not matter."""
        filled = features
        if has_missing(features):
            filled = fill(features, np.array([0, len(features)]), self.method)
        return np.hstack([filled, self._marks(features)]) if self.indicators else filled

    def _marks(self, features: FloatArray) -> FloatArray:
        """Return the indicator columns: 1 where a feature is missing."""
        return np.isnan(features[:, list(self.indicators)]).astype(np.float64)


def need_values(method: str, features: FloatArray, name: str = "X") -> None:
    """Refuse missing values, unless the learner was asked to fill them."""
    if method != "error" or not has_missing(features):
        return
    missing = np.isnan(features)
    row, column = np.argwhere(missing)[0]
    number = plural(int(missing.sum()), "missing value")
    raise ValueError(
        f"{name} contains NaN: {number}, the first in row {row}, column {column}; "
        "missing='mean' or missing='zero' makes the learner fill them in"
    )
