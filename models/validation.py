"""Cross-validation under its old name; `permdist.comparison.compare` does its job."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.measures import Evaluation, Measure, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from permdist._typing import FloatArray
    from permdist.data import Queries
    from permdist.models.base import Ranker


@dataclass(frozen=True)
class CrossValidation:
    """The result of `cross_validate`, by fold; deprecated."""

    learners: list[Ranker]
    chosen: list[dict[str, Any]]
    validation: list[dict[str, float]]
    test: list[Evaluation]
    measures: tuple[Measure, ...]

    def per_query(self, measure: str | Measure) -> FloatArray:
        """Return a measure on all test queries, fold after fold."""
        name = parse(measure).name
        return np.concatenate([evaluation[name] for evaluation in self.test])

    def mean(self, measure: str | Measure) -> float:
        """Return the mean over folds of the means over test queries, as LETOR reports it."""
        return float(np.mean([evaluation.mean(parse(measure)) for evaluation in self.test]))


def cross_validate(
    learner: Ranker,
    folds: Iterable[tuple[Queries, Queries, Queries]],
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    select: str | Measure | None = None,
    measures: str | Measure | Iterable[str | Measure] = ("letor4:map", "letor4:ndcg@10"),
) -> CrossValidation:
    """Call `permdist.comparison.compare` with one learner; deprecated."""
    from permdist.comparison import compare

    warnings.warn(
        "cross_validate is deprecated and will be removed in the next release; use "
        "permdist.comparison.compare(folds, {name: (learner, grid)})",
        DeprecationWarning,
        stacklevel=2,
    )
    by = learner.judge if select is None else select
    found = compare(folds, {"it": (learner, grid or {})}, measures=measures, select=by)
    return CrossValidation(
        found.learners("it"),
        found.chosen["it"],
        found.validation["it"],
        found.evaluations["it"],
        found.measures,
    )
