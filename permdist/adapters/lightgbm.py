"""Objectives and measures for LightGBM, its own interface and that of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from permdist._check import import_extra
from permdist.adapters.losses import GroupedLoss
from permdist.adapters.measuring import GroupedMeasures

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.measures import Measure
    from permdist.models.objectives import Objective


class LightGBMObjective(GroupedLoss):
    """An objective for LightGBM.

    It is passed as ``params["objective"]`` to ``lightgbm.train``, and as ``objective=`` to
    ``lightgbm.LGBMRanker``. Scores include `init_score`; weights are those of queries, so all
    documents of a query must have the same.

    Parameters
    ----------
    objective : Objective or str
    unit : bool
        Whether to multiply gradient and curvature by the number that makes the mean curvature of
        a document 1 where all scores are 0, so that ``min_sum_hessian_in_leaf`` and ``lambda_l2``
        count documents.
    floor : float
        The smallest curvature of a document, relative to the mean over all of them.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.

    Examples
    --------
    >>> from permdist import data, objectives
    >>> loss = LightGBMObjective(objectives.ListNet())  # or objectives.ListNet().lightgbm()
    >>> queries = data.make_letor(20, rng=0)
    >>> from lightgbm import LGBMRanker
    >>> ranker = LGBMRanker(objective=loss, n_estimators=5, verbose=-1, n_jobs=1)
    >>> ranker.fit(queries.X, queries.y, group=queries.sizes).predict(queries.X[:3]).shape
    (3,)
    """

    def __init__(
        self,
        objective: Objective | str,
        *,
        unit: bool = True,
        floor: float = 0.1,
        n_jobs: int | None = None,
    ) -> None:
        import_extra("lightgbm", "lightgbm()")
        super().__init__(objective, unit=unit, floor=floor, n_jobs=n_jobs)

    def __call__(
        self, labels: Any, scores: Any, weights: Any = None, group: Any = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return gradient and curvature, in either of the two ways in which LightGBM asks.

        Parameters
        ----------
        labels, scores, weights, group
            Those of the documents; or scores and a ``lightgbm.Dataset``.
        """
        return self.derivatives(*_unpacked(labels, scores, weights, group))


class LightGBMMeasure(GroupedMeasures):
    """Measures for LightGBM: as ``feval=`` of ``train``, or ``eval_metric=`` of a ranker's `fit`.

    Their names start with ``permdist_``, since LightGBM has an ``ndcg@5`` and a ``map@5`` itself.
    Those stop a training too, unless they are left out with ``metric="none"``.

    Parameters
    ----------
    *measures : Measure or str

    Examples
    --------
    >>> measure = LightGBMMeasure("ndcg@10", "ap")
    >>> measure([1, 0, 0, 1], [0.3, 0.2, 0.1, 0.4], None, [2, 2])
    [('permdist_ndcg@10', 1.0, True), ('permdist_ap', 1.0, True)]
    """

    def __init__(self, *measures: Measure | str) -> None:
        import_extra("lightgbm", "LightGBMMeasure")
        super().__init__(*measures)

    def __call__(
        self, labels: Any, scores: Any, weights: Any = None, group: Any = None
    ) -> list[tuple[str, float, bool]]:
        """Return the name and the mean of each measure, and that larger ones are better.

        Parameters
        ----------
        labels, scores, weights, group
            Those of the documents; or scores and a ``lightgbm.Dataset``.
        """
        found = self.told(*_unpacked(labels, scores, weights, group))
        return [(name, mean, True) for name, mean in found]


def _unpacked(labels: Any, scores: Any, weights: Any, group: Any) -> tuple[Any, Any, Any, Any]:
    """Return scores, labels, group and weights; `scores` may be a data set, after scores."""
    if hasattr(scores, "get_label"):
        data, scores = scores, labels
        return scores, data.get_label(), data.get_group(), data.get_weight()
    return scores, labels, group, weights
