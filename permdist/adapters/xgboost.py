"""Objectives and measures for XGBoost, and a ranker that takes them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import import_extra
from permdist.adapters.losses import GroupedLoss
from permdist.adapters.measuring import GroupedMeasures

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.measures import Measure
    from permdist.models.objectives import Objective


class XGBoostObjective(GroupedLoss):
    """An objective for XGBoost: ``xgboost.train(params, data, obj=...)``.

    The data have groups, ``DMatrix(X, y, qid=...)``; scores include `base_margin`, and weights
    are those of queries. XGBoost keeps scores in single precision.

    Its own ``XGBRanker`` refuses objectives that are functions; `ranker` makes one that does not.

    Parameters
    ----------
    objective : Objective or str
    unit : bool
        Whether to multiply gradient and curvature by the number that makes the mean curvature of
        a document 1 where all scores are 0, so that ``min_child_weight`` and ``lambda`` count
        documents.
    floor : float
        The smallest curvature of a document, relative to the mean over all of them.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.

    Examples
    --------
    >>> import xgboost
    >>> from permdist import data, objectives
    >>> queries = data.make_letor(20, rng=0)
    >>> table = xgboost.DMatrix(queries.X, queries.y, qid=queries.qid)
    >>> loss = objectives.ListNet().xgboost()
    >>> model = xgboost.train({"nthread": 1}, table, 5, obj=loss)
    >>> model.num_boosted_rounds()
    5
    """

    def __init__(
        self,
        objective: Objective | str,
        *,
        unit: bool = True,
        floor: float = 0.1,
        n_jobs: int | None = None,
    ) -> None:
        import_extra("xgboost", "xgboost()")
        super().__init__(objective, unit=unit, floor=floor, n_jobs=n_jobs)

    def __call__(self, scores: FloatArray, data: Any) -> tuple[FloatArray, FloatArray]:
        """Return gradient and curvature.

        Parameters
        ----------
        scores : array of float, shape (documents,)
        data : DMatrix
        """
        gradient, curvature = self.derivatives(*_unpacked(scores, data))
        return gradient, curvature

    def ranker(self, **params: Any) -> Any:
        """Return an estimator like ``xgboost.XGBRanker`` that minimizes this objective.

        Parameters
        ----------
        **params
            Of ``XGBRanker``; `eval_metric` may be an `XGBoostMeasure`.

        Examples
        --------
        >>> from permdist import data, objectives
        >>> queries = data.make_letor(20, rng=0)
        >>> ranker = objectives.ListNet().xgboost().ranker(n_estimators=5, n_jobs=1)
        >>> ranker.fit(queries.X, queries.y, qid=queries.qid).predict(queries.X[:3]).shape
        (3,)
        """
        return _ranker_class()(objective=self, **params)


class XGBoostMeasure(GroupedMeasures):
    """Measures for XGBoost: ``train(..., custom_metric=..., maximize=True)``.

    With ``early_stopping_rounds`` XGBoost looks at the last one. Their names start with
    ``permdist_``, since XGBoost has measures called ``ndcg@10`` and ``map`` itself.

    Parameters
    ----------
    *measures : Measure or str
    """

    def __init__(self, *measures: Measure | str) -> None:
        import_extra("xgboost", "XGBoostMeasure")
        super().__init__(*measures)

    def __call__(self, scores: FloatArray, data: Any) -> list[tuple[str, float]]:
        """Return the name and the mean of each measure.

        Parameters
        ----------
        scores : array of float, shape (documents,)
        data : DMatrix
        """
        return list(self.told(*_unpacked(scores, data)))


def _unpacked(scores: Any, data: Any) -> tuple[Any, Any, Any, Any]:
    """Return scores, labels, group and weights."""
    weights = data.get_weight()
    return np.ravel(scores), data.get_label(), data.get_group(), weights if len(weights) else None


@cache
def _ranker_class() -> Any:
    """Make the class of rankers, which has XGBoost's own as its base."""
    xgboost = import_extra("xgboost", "ranker")

    class Ranker(xgboost.XGBRanker):  # type: ignore[misc, name-defined]
        """An ``XGBRanker`` that takes objectives of permdist."""

        def __init__(self, *, objective: Any, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.objective = objective

        def fit(
            self,
            X: Any,
            y: Any,
            *,
            group: Any = None,
            qid: Any = None,
            sample_weight: Any = None,
            base_margin: Any = None,
            eval_set: Any = None,
            eval_group: Any = None,
            eval_qid: Any = None,
            verbose: bool | int = False,
        ) -> Any:
            """Fit the trees; parameters are those of ``XGBRanker.fit``."""
            if (group is None) == (qid is None):
                raise ValueError("group, qid: pass exactly one of them")
            options = {"nthread": self.n_jobs, "feature_types": self.feature_types}
            options = {name: value for name, value in options.items() if value is not None}
            if not np.isnan(self.missing):
                options["missing"] = self.missing
            if self.enable_categorical:
                options["enable_categorical"] = True
            extra = {"weight": sample_weight, "base_margin": base_margin}
            data = xgboost.DMatrix(X, y, group=group, qid=qid, **extra, **options)
            sets = list(eval_set or [])
            groups = list(eval_group if eval_group is not None else [None] * len(sets))
            qids = list(eval_qid if eval_qid is not None else [None] * len(sets))
            if not len(sets) == len(groups) == len(qids):
                raise ValueError(
                    f"eval_set: expected as many groups as sets ({len(sets)}), got "
                    f"{max(len(groups), len(qids))}"
                )
            evals = [
                (xgboost.DMatrix(*one, group=sizes, qid=ids, **options), f"validation_{number}")
                for number, (one, sizes, ids) in enumerate(zip(sets, groups, qids, strict=True))
            ]
            told: dict[str, Any] = {}
            params = self.get_xgb_params()
            measure = self.eval_metric
            params.pop("eval_metric", None)
            own = isinstance(measure, XGBoostMeasure)
            if measure is not None and not own:
                params["eval_metric"] = measure
            params.pop("objective", None)
            params["disable_default_eval_metric"] = measure is None or own
            self._Booster = xgboost.train(
                params,
                data,
                self.get_num_boosting_rounds(),
                evals=evals,
                obj=self.objective,
                custom_metric=measure if own else None,
                maximize=True if own else None,
                early_stopping_rounds=self.early_stopping_rounds,
                evals_result=told,
                verbose_eval=verbose,
                callbacks=self.callbacks,
            )
            self._set_evaluation_result(told)
            return self

    return Ranker
