"""Measures of this library on the documents that boosters hand over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import grades
from permdist._parallel import pointers, rows_of
from permdist.adapters.groups import query_weights, sizes_of
from permdist.measures import Measure, evaluate, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import FloatArray


class GroupedMeasures:
    """Means of measures over queries whose sizes are given.

    Parameters
    ----------
    *measures : Measure or str
        Such as ``"ndcg@10"`` and ``"ap"``.
    """

    def __init__(self, *measures: Measure | str) -> None:
        if not measures:
            raise TypeError("measures: expected at least one, got none")
        self.measures = tuple(parse(measure) for measure in measures)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(repr(one.name) for one in self.measures)})"

    def means(
        self, scores: FloatArray, labels: Any, group: Any, weights: Any = None
    ) -> Sequence[tuple[str, float]]:
        """Return each measure's name and its mean over queries, by their weights if any.

        Parameters
        ----------
        scores, labels : arrays, shape (documents,)
        group : array of int, shape (queries,)
        weights : array of float, shape (queries,) or (documents,), optional
        """
        label = grades("label", labels)
        sizes = sizes_of("group", group, len(label))
        each = query_weights("weight", weights, sizes)
        found = evaluate(np.asarray(scores), label, rows_of(pointers(sizes)), self.measures)
        if each is None:
            return [(one.name, float(found.mean(one))) for one in self.measures]
        return [(one.name, _mean(found[one.name], each)) for one in self.measures]

    def told(
        self, scores: FloatArray, labels: Any, group: Any, weights: Any = None
    ) -> Sequence[tuple[str, float]]:
        """Return the means under names that no library gives its own: ``"permdist_ndcg@10"``.

        LightGBM and XGBoost keep one history per name, and both have an ``"ndcg@10"``. XGBoost
        reads names up to the next space.

        Parameters
        ----------
        scores, labels, group, weights
            As in `means`.
        """
        found = self.means(scores, labels, group, weights)
        return [(f"permdist_{name}", mean) for name, mean in found]


def _mean(values: FloatArray, weights: FloatArray) -> float:
    """Return the weighted mean of those values that are defined."""
    known = ~np.isnan(values)
    total = float(weights[known].sum())
    return float(values[known] @ weights[known]) / total if total > 0.0 else float("nan")
