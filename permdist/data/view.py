"""Collections of queries and battles as data frames and in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._result import Result, block, facts, frame_cells, note, table

if TYPE_CHECKING:
    import pandas as pd

MOST_DOCUMENTS, MOST_FEATURES = 6, 8
MOST_COUNTED = 5_000_000


class QueriesView(Result):
    """What `Queries` has for notebooks and data frames."""

    def to_frame(self: Any) -> pd.DataFrame:
        """Return the collection as a data frame, a row per document.

        Returns
        -------
        DataFrame
            With the columns ``qid``, ``y``, ``doc_id`` (if there are any) and one per feature: its
            name, or ``feature 1``, ``feature 2``, ... A collection on disk is read into memory.

        Examples
        --------
        >>> from permdist.data import Queries
        >>> Queries([[0.5], [0.25]], [1, 0], [7, 7], feature_names=["age"]).to_frame()
           qid  y   age
        0    7  1  0.50
        1    7  0  0.25
        """
        return _first(self, self.n_documents)

    def _repr_html_(self: Any) -> str:
        some = _first(self, MOST_DOCUMENTS, MOST_FEATURES)
        number, width = self.X.shape
        left = []
        if number > MOST_DOCUMENTS:
            left.append(f"{number - MOST_DOCUMENTS:,} more documents")
        if width > MOST_FEATURES:
            left.append(f"{width - MOST_FEATURES:,} more features")
        told: dict[str, Any] = {}
        if number <= MOST_COUNTED:
            labels, counts = np.unique(np.asarray(self.y), return_counts=True)
            pairs = zip(labels.tolist(), counts.tolist(), strict=True)
            told["documents by label"] = ", ".join(f"{label}: {n:,}" for label, n in pairs)
        shown = note(f"Not shown: {', '.join(left)}.") if left else ""
        return block(repr(self), facts(told), table(*frame_cells(some)), shown)


class BattlesView(Result):
    """What `Battles` has for notebooks and data frames."""

    def to_frame(self: Any) -> pd.DataFrame:
        """Return the battles as a data frame, a row each.

        Returns
        -------
        DataFrame
            With the columns ``first`` and ``second`` (the competitors' names), ``outcome``
            (``first``, ``second``, ``tie`` or ``both bad``) and, where there are any, ``weight``,
            ``cluster``, ``time``, ``group`` and covariates: ``NAME first`` and ``NAME second``.

        Examples
        --------
        >>> from permdist.data import load_battles
        >>> load_battles({"a": ["x"], "b": ["y"], "winner": ["tie"]}).to_frame()
          first second outcome
        0     x      y     tie
        """
        return _battles(self, len(self))

    def _repr_html_(self: Any) -> str:
        left = len(self) - MOST_DOCUMENTS
        more = note(f"Not shown: {left:,} more battles; describe() counts.") if left > 0 else ""
        return block(repr(self), table(*frame_cells(_battles(self, MOST_DOCUMENTS))), more)


def _battles(battles: Any, number: int) -> pd.DataFrame:
    """Return the first battles."""
    import pandas as pd

    names, own = np.array(battles.names, dtype=object), slice(number)
    columns = {
        "first": names[battles.first[own]],
        "second": names[battles.second[own]],
        "outcome": np.array(["first", "second", "tie", "both bad"], object)[battles.outcome[own]],
    }
    for name in ("weight", "cluster", "time"):
        values = getattr(battles, f"{name}s")
        if values is not None:
            columns[name] = values[own]
    if battles.group is not None:
        columns["group"] = np.array(battles.groups, dtype=object)[battles.group[own]]
    for side, features in zip(("first", "second"), battles.features or (), strict=False):
        for k, name in enumerate(battles.feature_names):
            columns[f"{name} {side}"] = features[own, k]
    return pd.DataFrame(columns)


def _first(queries: Any, number: int, width: int | None = None) -> pd.DataFrame:
    """Return the first documents, with the first features."""
    import pandas as pd

    X, sizes = np.asarray(queries.X[:number, :width]), np.diff(queries.ptr[: number + 1])
    names = queries.feature_names or [f"feature {k + 1}" for k in range(X.shape[1])]
    columns = {
        "qid": np.repeat(queries.qids[:number], sizes)[:number],
        "y": np.asarray(queries.y[:number]),
    }
    if queries.doc_ids is not None:
        columns["doc_id"] = np.asarray(queries.doc_ids[:number])
    features = pd.DataFrame(X, columns=list(names[: X.shape[1]]))
    return pd.concat([pd.DataFrame(columns), features], axis=1)
