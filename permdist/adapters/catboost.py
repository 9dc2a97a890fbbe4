"""Objectives and measures for CatBoost, whose own objectives know nothing of queries.

CatBoost hands documents to an objective written in Python in blocks of 500 or so, without telling
which ones. So `CatBoostObjective` makes the steps of boosting itself: each is a tree of CatBoost's,
fitted to Newton steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._check import count
from permdist._extras import need_extra
from permdist.adapters.losses import GroupedLoss
from permdist.adapters.measuring import GroupedMeasures
from permdist.measures import parse
from permdist.models.rules import Number

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.measures import Measure
    from permdist.models.objectives import Objective

FIXED = ("loss_function", "objective", "iterations", "n_estimators", "num_boost_round")


class CatBoostObjective(GroupedLoss):
    """An objective for CatBoost: `train` fits trees to it step by step.

    Parameters
    ----------
    objective : Objective or str
    unit : bool
        Whether to multiply gradient and curvature by the number that makes the mean curvature of
        a document 1 where all scores are 0, so that ``l2_leaf_reg`` counts documents.
    floor : float
        The smallest curvature of a document, relative to the mean over all of them.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.

    Examples
    --------
    >>> from permdist import data, objectives
    >>> queries = data.make_letor(20, rng=0)
    >>> loss = objectives.ListNet().catboost()
    >>> model = loss.train(queries.X, queries.y, queries.sizes, iterations=5, depth=3)
    >>> model.tree_count_, model.predict(queries.X).shape == queries.y.shape
    (5, True)
    """

    no_jit: ClassVar[bool] = True  # CatBoost would try to compile its methods, and warn

    def __init__(
        self,
        objective: Objective | str,
        *,
        unit: bool = True,
        floor: float = 0.1,
        n_jobs: int | None = None,
    ) -> None:
        need_extra("catboost", "catboost()")
        super().__init__(objective, unit=unit, floor=floor, n_jobs=n_jobs)

    def calc_ders_range(self, approxes: Any, targets: Any, weights: Any) -> Any:
        """Refuse to be CatBoost's `loss_function`: it is given blocks of documents, not queries."""
        raise NotImplementedError(
            "loss_function: CatBoost gives an objective blocks of documents without their queries; "
            "use objective.catboost().train(X, y, group) instead"
        )

    def train(
        self,
        X: Any,
        y: Any,
        group: Any,
        *,
        weights: Any = None,
        baseline: Any = None,
        eval_set: tuple[Any, Any, Any] | None = None,
        measure: Measure | str = "ndcg@10",
        early_stopping_rounds: int | None = None,
        iterations: int = 100,
        learning_rate: float = 0.1,
        **params: Any,
    ) -> Any:
        """Fit trees and return them as one model.

        Each is a tree of CatBoost's for weighted least squares, whose leaves are Newton steps.

        Parameters
        ----------
        X : array or data frame of float, shape (documents, features)
        y : array of int, shape (documents,)
            Relevance labels.
        group : array of int, shape (queries,)
            How many documents each query has.
        weights : array of float, shape (queries,), optional
        baseline : array of float, shape (documents,), optional
            Scores to start from.
        eval_set : (X, y, group), optional
            Validation data.
        measure : Measure or str
            To judge it by.
        early_stopping_rounds : int, optional
            Stop after so many rounds without a better measure on `eval_set`, and keep the best.
        iterations : int
        learning_rate : float
        **params
            Of ``catboost.CatBoost``: ``depth``, ``l2_leaf_reg``, ``random_seed``, ...

        Returns
        -------
        catboost.CatBoost
        """
        catboost = need_extra("catboost", "catboost()")
        count("iterations", iterations)
        Number(1e-12, 1e6).check("learning_rate", learning_rate)
        wrong = [name for name in FIXED if name in params]
        if wrong:
            raise ValueError(f"{wrong[0]}: the objective decides it; leave it out")
        if early_stopping_rounds is not None:
            count("early_stopping_rounds", early_stopping_rounds)
            if eval_set is None:
                raise ValueError("early_stopping_rounds: it needs an eval_set to look at")
        labels = np.asarray(y)
        scores = np.zeros(len(labels)) if baseline is None else np.array(baseline, dtype=float)
        if scores.shape != labels.shape:
            raise ValueError(f"baseline: expected shape {labels.shape}, got {scores.shape}")
        steps = _Steps(catboost, X, labels, learning_rate, params)
        judge, best, highest = parse(measure), 0, -np.inf
        held_out = None if eval_set is None else np.zeros(len(np.asarray(eval_set[1])))
        for number in range(iterations):
            tree = steps.add(*self.derivatives(scores, labels, group, weights))
            scores += tree.predict(X)
            if eval_set is None or held_out is None:
                continue
            held_out += tree.predict(eval_set[0])
            found = GroupedMeasures(judge).means(held_out, *eval_set[1:])[0][1]
            if found > highest:
                best, highest = number + 1, found
            if early_stopping_rounds is not None and number + 1 - best >= early_stopping_rounds:
                break
        kept = steps.trees[: best if early_stopping_rounds is not None else None]
        return kept[0] if len(kept) == 1 else catboost.sum_models(kept)


class _Steps:
    """One tree after the other on the same documents, whose features are read once."""

    def __init__(
        self, catboost: Any, X: Any, labels: Any, rate: float, params: dict[str, Any]
    ) -> None:
        self._catboost = catboost
        self._params = {
            "depth": 6,
            "l2_leaf_reg": 1.0,
            "random_seed": 0,
            "bootstrap_type": "No",
            "random_strength": 0.0,
            "logging_level": "Silent",
            "allow_writing_files": False,
            **params,
            "loss_function": "RMSE",
            "iterations": 1,
            "learning_rate": rate,
            "boost_from_average": False,
            "leaf_estimation_iterations": 1,
        }
        # Targets cannot be changed, scores to start from can; they must not all be the same.
        self._base = np.arange(len(labels)) % 2.0
        self._pool = catboost.Pool(X, self._base)
        self._pool.quantize()
        self.trees: list[Any] = []

    def add(self, gradient: FloatArray, curvature: FloatArray) -> Any:
        """Fit the next tree to the step of each document."""
        weights = np.maximum(curvature, 1e-30)
        self._pool.set_baseline((self._base + gradient / weights)[:, None])
        self._pool.set_weight(weights)
        tree = self._catboost.CatBoost({**self._params})
        tree.fit(self._pool)
        self.trees.append(tree)
        return tree


class CatBoostMeasure(GroupedMeasures):
    """A measure for CatBoost: as ``eval_metric=`` of its own objectives.

    CatBoost gives a measure the scores of all documents, but not their queries: these are passed
    here, for each data set that is evaluated, and told from each other by the number of documents.

    Parameters
    ----------
    measure : Measure or str
    *groups : arrays of int
        How many documents each query has: of the training data, of the validation data, ...

    Examples
    --------
    >>> measure = CatBoostMeasure("ndcg@10", [2, 2])
    >>> measure.evaluate([[0.3, 0.2, 0.1, 0.4]], [1, 0, 0, 1], None)
    (2.0, 2.0)
    """

    no_jit: ClassVar[bool] = True

    def __init__(self, measure: Measure | str, *groups: Any) -> None:
        need_extra("catboost", "CatBoostMeasure")
        super().__init__(measure)
        self._groups: dict[int, Any] = {}
        for group in groups:
            total = int(np.sum(group))
            if total in self._groups and not np.array_equal(self._groups[total], group):
                raise ValueError(
                    f"groups: two data sets have {total:,} documents each, and CatBoost does not "
                    "tell which one it evaluates; leave out a document"
                )
            self._groups[total] = np.asarray(group)

    def is_max_optimal(self) -> bool:
        """Say that larger values are better."""
        return True

    def get_final_error(self, error: float, weight: float) -> float:
        """Return the mean over queries."""
        return error / weight

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:  # noqa: ARG002
        """Return the sum over queries, and their number.

        Parameters
        ----------
        approxes : sequence of one array of scores
        target : array of labels
        weight : array or None
        """
        group = self._groups.get(len(target))
        if group is None:
            known = ", ".join(f"{total:,}" for total in self._groups) or "none"
            raise ValueError(
                f"groups: expected those of a data set of {len(target):,} documents, got data sets "
                f"of {known}"
            )
        mean = self.means(np.asarray(approxes[0]), np.asarray(target), group)[0][1]
        return mean * len(group), float(len(group))
