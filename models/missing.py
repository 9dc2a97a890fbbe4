"""Missing values of features: how a learner fills them, and columns that say where they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import pieces
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
    def of(cls, queries: Queries, method: str, indicator: bool) -> Filling:
        """Make the filling of a learner that is fitted to these queries."""
        if method == "error" or not indicator or not queries.has_missing:
            return cls(method)
        # A minimum with NaN in it is NaN.
        return cls(method, tuple(np.flatnonzero(np.isnan(queries.X.min(axis=0))).tolist()))

    @classmethod
    def read(cls, name: str, value: Any, n_features: int) -> Filling:
        """Read a filling from plain values, as `permdist.models.load` finds them."""
        if not isinstance(value, list) or len(value) != 2 or value[0] not in METHODS:
            raise ValueError(f"{name}: expected a method and columns, got {shown(value)}")
        return cls(str(value[0]), tuple(Columns().read(name, value[1], n_features)))

    def apply(self, queries: Queries, views: tuple[str, ...]) -> Queries:
        """Fill missing values, normalize, and put the indicators behind all other columns."""
        if self.method == "error":
            need_values(self.method, queries)
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


def need_values(method: str, features: Queries | FloatArray | None, name: str = "X") -> None:
    """Refuse missing values, unless the learner was asked to fill them.

    Parameters
    ----------
    method : {"error", "zero", "mean"}
    features : Queries, array of float or None
        An array is looked at only if it has missing values; None has none.
    name : str
        Of the argument, for the message.
    """
    if isinstance(features, Queries):
        features = features.X if features.has_missing else None
    if method != "error" or features is None:
        return
    total, first = 0, ""
    for start, part in pieces(features):
        missing = np.isnan(part)
        if not total and missing.any():
            row, column = np.argwhere(missing)[0]
            first = f"row {start + row}, column {column}"
        total += int(missing.sum())
    raise ValueError(
        f"{name} contains NaN: {plural(total, 'missing value')}, the first in {first}; "
        "missing='mean' or missing='zero' makes the learner fill them in"
    )
