"""Objectives: sums over queries of a function of scores and labels, with gradients.

An objective is a choice with its own options. Called with scores, labels and query ids it returns
its value and gradient; `Objective.derivatives` adds a positive curvature for second-order boosters,
and `Objective.prepare` makes that ready for many calls on the same queries. Learners use
`Objective.bind`.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._check import check_scores, finite, grades
from permdist._parallel import pointers
from permdist._typing import FloatArray
from permdist.data.tables import group_queries
from permdist.models.batch import Batch, teaching
from permdist.models.objectives.curvature import by_gradient
from permdist.models.objectives.prepared import Derivatives, Prepared
from permdist.models.specs import Spec, SpecRegistry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from permdist._typing import IntArray
    from permdist.adapters.jax import JaxLoss
    from permdist.adapters.lightgbm import LightGBMObjective
    from permdist.adapters.torch import TorchLoss
    from permdist.adapters.xgboost import XGBoostObjective
    from permdist.models.rules import Rule

Bound = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
BoundDerivatives = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]


class Objective(Spec, ABC):
    """A sum over queries of a function of their scores and labels.

    A frozen dataclass with `bind` makes one; smaller values are better.

    Attributes
    ----------
    rules : mapping of str to Rule
        What options may be; they are checked when an objective is made.
    """

    rules: ClassVar[Mapping[str, Rule]] = {}

    def __post_init__(self) -> None:
        for name, rule in self.rules.items():
            rule.check(name, getattr(self, name))

    @property
    def scaled(self) -> bool:
        """Whether score differences are divided by the number of pairs of each query."""
        return False

    @abstractmethod
    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch.

        Parameters
        ----------
        batch : Batch
        n_jobs : int, optional
            Threads, all processors by default; the result does not depend on it.

        Returns
        -------
        callable
            Takes all scores, shape (documents,); returns the value of each query, shape
            (queries,), and the gradient of their sum, shape (documents,).
        """

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Make the objective ready for the queries of a batch, with a curvature.

        By default, the curvature of a document is the size of its slope plus the mean size of the
        slopes of its query, so that Newton steps are at most 1. An objective that knows its second
        derivatives, or a better positive substitute, overrides this method.

        Parameters
        ----------
        batch : Batch
        n_jobs : int, optional
            Threads, all processors by default; the result does not depend on it.

        Returns
        -------
        callable
            As that of `bind`, with the curvature, shape (documents,), as a third result. Entries
            may be 0: `prepare` raises them to the smallest positive value that it allows.
        """
        bound = self.bind(batch, n_jobs)

        def derivatives(scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            values, gradient = bound(scores)
            return values, gradient, by_gradient(gradient, batch.ptr)

        return derivatives

    def settle(self, labels: IntArray, ptr: IntArray) -> Objective:  # noqa: ARG002
        """Return the objective with what depends on all queries decided.

        Learners bind it to one block of queries after the other; what one block must not decide
        by itself is decided here, and what is too much for all of them together is refused.

        Parameters
        ----------
        labels : array of int, shape (documents,)
        ptr : array of int, shape (queries + 1,)
        """
        return self

    def batch(self, labels: IntArray, ptr: IntArray) -> Batch:
        """Make the batch of queries that `bind` takes."""
        return Batch.of(labels, ptr, scale=self.scaled)

    def values(
        self, scores: ArrayLike, labels: ArrayLike, qid: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the value of each query, and the gradient of their sum by the scores.

        Parameters
        ----------
        scores : array of float, shape (documents,)
        labels : array of int, shape (documents,)
        qid : array, shape (documents,), optional
            The query of each document; one query by default.

        Returns
        -------
        values : array of float, shape (queries,)
            0 for a query whose documents all have the same label.
        gradient : array of float, shape (documents,)
        """
        score, label = finite("scores", scores, ndim=1), grades("labels", labels)
        check_scores(score)
        if label.shape != score.shape:
            raise ValueError(f"labels: expected shape {score.shape} as scores, got {label.shape}")
        ptr = group_queries(qid, len(label)).ptr
        useful = teaching(label, ptr)
        values, gradient = np.zeros(len(useful)), np.zeros(len(score))
        if useful.any():
            sizes = np.diff(ptr)
            rows = np.repeat(useful, sizes)
            bound = self.bind(self.batch(label[rows], pointers(sizes[useful])))
            values[useful], gradient[rows] = bound(score[rows])
        return values, gradient

    def derivatives(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        weights: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Derivatives:
        """Return the value of each query, the gradient of their sum, and a positive curvature.

        Parameters
        ----------
        scores : array of float32 or float64, shape (documents,) or (queries, n)
            Padded, with a row per query, or flat with `qid`.
        labels : array of int, of the shape of scores
        qid : array, shape (documents,), optional
            The query of each document of flat scores; one query by default.
        weights : array of float, shape (queries,), optional
            What values, gradients and curvatures of each query are multiplied by.
        mask : array of bool, shape (queries, n), optional
            True where a document is; by default everywhere. Scores and labels elsewhere do not
            matter.
        n_jobs : int, optional
            Threads, all processors by default; the result does not depend on it.

        Returns
        -------
        Derivatives

        Examples
        --------
        >>> from permdist.objectives import ListNet
        >>> mask = [[True, True, False]]
        >>> found = ListNet().derivatives([[0.0, 0.0, 9.9]], [[1, 0, 0]], mask=mask)
        >>> found.gradient.round(4)
        array([[-0.2311,  0.2311,  0.    ]])
        >>> found.curvature
        array([[0.25, 0.25, 0.  ]])
        """
        return self.prepare(labels, qid, weights=weights, mask=mask, n_jobs=n_jobs)(scores)

    def prepare(
        self,
        labels: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        weights: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Prepared:
        """Make the objective ready for many calls on the same queries.

        Parameters
        ----------
        labels : array of int, shape (documents,) or (queries, n)
        qid, weights, mask, n_jobs
            As in `derivatives`.

        Returns
        -------
        callable
            Takes scores, of the shape of the labels, and returns `Derivatives`.

        Examples
        --------
        >>> from permdist.objectives import ListNet
        >>> prepared = ListNet().prepare([1, 0, 0, 1], qid=[1, 1, 2, 2])
        >>> prepared([0.0, 0.0, 1.0, -1.0]).values.round(3)
        array([0.693, 1.589])
        """
        return Prepared(self, labels, qid, weights, mask, n_jobs)

    def __call__(
        self, scores: ArrayLike, labels: ArrayLike, qid: ArrayLike | None = None
    ) -> tuple[float, FloatArray]:
        """Return the sum over queries and its gradient by the scores; see `values`."""
        frame = sys._getframe(1)  # noqa: SLF001
        caller = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if caller in CALLERS:  # in an order of arguments of its own
            kind = type(self).__name__
            raise TypeError(
                f"objective: {caller} cannot call {kind} itself; pass {kind}(...).{caller}(), "
                "which gives it gradient and curvature"
            )
        values, gradient = self.values(scores, labels, qid)
        return float(values.sum()), gradient

    # ---- in other libraries --------------------------------------------------------------------

    def lightgbm(self, **options: Any) -> LightGBMObjective:
        """Return the objective for LightGBM; options are those of `LightGBMObjective`."""
        from permdist.adapters.lightgbm import LightGBMObjective

        return LightGBMObjective(self, **options)

    def xgboost(self, **options: Any) -> XGBoostObjective:
        """Return the objective for XGBoost; options are those of `XGBoostObjective`."""
        from permdist.adapters.xgboost import XGBoostObjective

        return XGBoostObjective(self, **options)

    def torch(self, **options: Any) -> TorchLoss:
        """Return the objective as a loss for PyTorch; options are those of `TorchLoss`."""
        from permdist.adapters.torch import TorchLoss

        return TorchLoss(self, **options)

    def jax(self, **options: Any) -> JaxLoss:
        """Return the objective as a loss for JAX; options are those of `JaxLoss`."""
        from permdist.adapters.jax import JaxLoss

        return JaxLoss(self, **options)


def _load() -> None:
    from permdist.models import objectives

    for name in objectives.__all__:
        kind = getattr(objectives, name)
        if isinstance(kind, type) and issubclass(kind, Objective) and kind is not Objective:
            OBJECTIVES.register(kind)


ELSEWHERE = {  # names in papers and in other libraries
    "approxap": "smooth[measure=ap]",
    "approxndcg": "smooth[measure=ndcg]",
    "boltzrank": "boltzmann",
    "l2": "expected-loss",
    "l3": "likelihood-and-loss",
    "lambdamart": "lambda-loss",
    "lambdarank": "lambda-loss",
    "mle": "likelihood",
    "plackett-luce": "luce",
    "rankcosine": "cosine",
    "ranknet": "lambda-loss[scheme=ranknet]",
    "ranksvm": "pair-hinge",
    "softmax": "listnet",
    "softrank": "noisy",
    "svm-map": "ranking-hinge",
}
CALLERS = ("lightgbm", "xgboost")
OBJECTIVES: SpecRegistry[Objective] = SpecRegistry("objective", Objective, _load, ELSEWHERE)


def register_objective(kind: type[Objective]) -> type[Objective]:
    """Let learners find a class of objectives by its `alias`; usable as a decorator."""
    return OBJECTIVES.register(kind)


def parse_objective(value: str | Objective) -> Objective:
    """Return an objective from its text form, such as ``"listnet[k=2]"``.

    Examples
    --------
    >>> parse_objective("listnet[k=2]").k
    2
    """
    return OBJECTIVES.parse(value)
