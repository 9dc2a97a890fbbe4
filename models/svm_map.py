"""Structural SVMs: the hinge over whole rankings, for AP, NDCG, AUC and any additive measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from permdist._typing import FloatArray
from permdist.measures import Measure
from permdist.models.base import Card, Settings
from permdist.models.descent import Descent, Loss
from permdist.models.history import Watch
from permdist.models.planes import learn_by_planes
from permdist.models.rules import USUAL, Rule
from permdist.models.spaces import Batch, StructuredHinge


class SVMMap(Descent):
    """The structural SVM for average precision.

    Minimizes ``sum_q max_y [1 - AP(y) - (F(best) - F(y))] + |w|^2 / C`` with
    ``F(y) = 1/pairs sum y_gb (s_g - s_b)``, a type-two bound of ``sum_q 1 - AP``. The worst ranking
    of each query is found exactly, by a longest path over merges of goods and bads in O(goods x
    bads); cutting planes then close the duality gap.

    Parameters
    ----------
    measure : Measure or str
        Any measure: the search is exact for all of them.
    C : float
        The larger, the weaker the regularization. In the form ``|w|^2 / 2 + C' / m sum hinges`` of
        the papers, C' is ``m C / 2`` for m queries.
    graded : bool
        Whether all pairs of different labels count, or only those of good and bad.
    scale : bool
        Whether to divide score differences by the number of pairs of each query.
    normalize : bool, str or sequence of str
        How to scale every feature within its query, as in `MLE`.
    max_iter, tol : int, float
        When to stop: iterations, and the duality gap relative to the objective.
    early_stopping : int, optional
        Stop after so many iterations without a better measure on `eval_set`, and keep the best.
    warm_start : bool
        Whether `fit` starts from the coefficients of the last one.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.
    verbose : bool

    Attributes
    ----------
    history_ : dict of lists
        ``objective`` and ``lower``: the minimum lies between them.

    References
    ----------
    Yue et al.: A Support Vector Method for Optimizing Average Precision; Xu et al.: Direct
    Optimization of Evaluation Measures in Learning to Rank, section 5.3.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> learner = SVMMap(C=10.0).fit(queries)
    >>> learner.converged_, learner.history_["lower"][-1] <= learner.history_["objective"][-1]
    (True, True)
    """

    card: ClassVar[Card] = Card(
        paper="Yue et al. 2007",
        optimizes="AP, or any measure",
        minimizes="max_y [1 - measure(y) - (F(best) - F(y))]",
        cost="goods x bads",
    )
    settings: ClassVar[Settings] = {"C": [3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]}

    rules: ClassVar[Mapping[str, Rule]] = USUAL

    def __init__(
        self,
        measure: str | Measure = "ap",
        *,
        C: float = 1.0,
        graded: bool = False,
        scale: bool = True,
        normalize: bool | str | Sequence[str] = False,
        max_iter: int = 1000,
        tol: float = 1e-3,
        early_stopping: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.measure = measure
        self.C = C
        self.graded = graded
        self.scale = scale
        self.normalize = normalize
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _prepare(self, batch: Batch) -> Loss:
        hinge = StructuredHinge(batch, self._measure(), self.n_jobs)

        def loss(scores: FloatArray) -> tuple[float, FloatArray]:
            values, gradient = hinge(scores)
            return float(values.sum()), gradient

        return loss

    def _learn(self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray) -> None:
        learn_by_planes(self, self._prepare(batch), features, watch, start)


class SVMNDCG(SVMMap):
    """The structural SVM for NDCG: `SVMMap` with another measure.

    ``graded=True`` counts all pairs of different labels and lets NDCG see the grades; it searches
    a lattice of all counts of grades, which is slower.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> SVMNDCG(C=10.0).fit(queries).converged_
    True
    """

    card: ClassVar[Card] = SVMMap.card._replace(paper="Chakrabarti et al. 2008", optimizes="NDCG")

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        *,
        C: float = 1.0,
        graded: bool = False,
        scale: bool = True,
        normalize: bool | str | Sequence[str] = False,
        max_iter: int = 1000,
        tol: float = 1e-3,
        early_stopping: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            measure,
            C=C,
            graded=graded,
            scale=scale,
            normalize=normalize,
            max_iter=max_iter,
            tol=tol,
            early_stopping=early_stopping,
            warm_start=warm_start,
            n_jobs=n_jobs,
            verbose=verbose,
        )
