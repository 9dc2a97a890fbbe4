"""Model selection as LETOR does it: choose on the validation part, report the test part."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from permdist.measures import Evaluation, Measure, evaluate, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from permdist._typing import FloatArray
    from permdist.data import Queries
    from permdist.models.base import Ranker


@dataclass(frozen=True, repr=False)
class CrossValidation:
    """What came of every fold.

    Attributes
    ----------
    learners : list of Ranker
        The chosen learner of each fold.
    chosen : list of dict
        The chosen parameters of each fold.
    validation : list of dict
        For each fold, the validation measure of every setting, by its text.
    test : list of Evaluation
        For each fold, every measure on every test query.
    measures : tuple of Measure
    """

    learners: list[Ranker]
    chosen: list[dict[str, Any]]
    validation: list[dict[str, float]]
    test: list[Evaluation]
    measures: tuple[Measure, ...]

    def per_query(self, measure: str | Measure) -> FloatArray:
        """Give a measure on all test queries, fold after fold, for significance tests."""
        name = parse(measure).name
        return np.concatenate([evaluation[name] for evaluation in self.test])

    def mean(self, measure: str | Measure) -> float:
        """Give the mean over folds of the means over test queries, as LETOR reports it."""
        return float(np.mean([evaluation.mean(parse(measure)) for evaluation in self.test]))

    def __repr__(self) -> str:
        lines = ["fold  " + "  ".join(f"{measure.name:>10}" for measure in self.measures)]
        for number, evaluation in enumerate(self.test, 1):
            row = "  ".join(f"{evaluation.mean(measure):>10.4f}" for measure in self.measures)
            lines.append(f"{number:>4}  {row}  {_text(self.chosen[number - 1])}")
        row = "  ".join(f"{self.mean(measure):>10.4f}" for measure in self.measures)
        return "\n".join([*lines, f"mean  {row}"])


def cross_validate(
    learner: Ranker,
    folds: Iterable[tuple[Queries, Queries, Queries]],
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    select: str | Measure | None = None,
    measures: str | Measure | Iterable[str | Measure] = ("letor4:map", "letor4:ndcg@10"),
) -> CrossValidation:
    """Fit on the training part of each fold, choose on its validation part, report its test part.

    Parameters
    ----------
    learner : Ranker
        One with `early_stopping` is shown the validation part while it is fitted.
    folds : iterable of (train, validation, test)
        For instance `permdist.data.load_letor_folds`.
    grid : mapping of str to sequences, optional
        The settings to choose from, all combinations of them.
    select : Measure or str, optional
        What to choose by on the validation part; the learner's own measure by default.
    measures : iterable of Measure or str
        What to report.

    Returns
    -------
    CrossValidation

    Examples
    --------
    >>> from permdist import data, models
    >>> parts = [data.make_letor(40, rng=seed) for seed in range(3)]
    >>> found = cross_validate(models.MLE(), [parts], {"C": [0.1, 10.0]})
    >>> sorted(found.validation[0])
    ['C=0.1', 'C=10.0']
    >>> found.per_query("letor4:map").shape
    (40,)
    """
    if isinstance(measures, str | Measure):
        measures = [measures]
    chosen_measures = tuple(parse(measure) for measure in measures)
    by = learner.judge if select is None else parse(select)
    names, values = list(grid or {}), [list(options) for options in (grid or {}).values()]
    learners, chosen, tried, tests = [], [], [], []
    for train, validation, test in folds:
        best: tuple[float, dict[str, Any], Ranker] | None = None
        seen: dict[str, float] = {}
        for setting in itertools.product(*values):
            params = dict(zip(names, setting, strict=True))
            fitted = clone(learner).set_params(**params)
            stops = fitted.get_params(deep=False).get("early_stopping") is not None
            fitted.fit(train, eval_set=validation if stops else None)
            measured = fitted.score(validation, measure=by)
            seen[_text(params)] = measured
            if best is None or measured > best[0]:
                best = measured, params, fitted
        if best is None:
            raise ValueError("grid: expected at least one setting")
        learners.append(best[2])
        chosen.append(best[1])
        tried.append(seen)
        scores = best[2].predict(test)
        tests.append(evaluate(scores, test.y, test.qid, chosen_measures))
    if not tests:
        raise ValueError("folds: expected at least one")
    return CrossValidation(learners, chosen, tried, tests, chosen_measures)


def _text(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())
