"""What the listwise learners share: a loss of each query's scores, summed in threads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from permdist._typing import FloatArray
from permdist.measures import Measure
from permdist.models.descent import Descent, Loss
from permdist.models.rules import USUAL, Rule
from permdist.models.spaces import Batch
from permdist.models.spaces.base import spread

Work = Callable[[int, int, FloatArray, FloatArray, FloatArray], None]


class Listwise(Descent):
    """A linear learner that minimizes ``sum_q loss(scores of q, labels of q) + |w|^2 / C``.

    Parameters
    ----------
    C : float
        The larger, the weaker the regularization; ``numpy.inf`` for none.
    measure : Measure or str
        What `score` and early stopping look at; it plays no part in the objective.
    normalize : bool, str or sequence of str
        How to scale every feature within its query: not at all, to the range from 0 to 1, or by
        any of the methods of `permdist.data.Queries.normalize`.
    max_iter, tol : int, float
        When the optimizer stops: iterations, and the largest entry of the gradient.
    early_stopping : int, optional
        Stop after so many iterations without a better measure on `eval_set`, and keep the best.
    warm_start : bool
        Whether `fit` starts from the coefficients of the last one.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.
    verbose : bool
    """

    rules: ClassVar[Mapping[str, Rule]] = USUAL

    def __init__(
        self,
        *,
        C: float = 100.0,
        measure: str | Measure = "ndcg@10",
        normalize: bool | str | Sequence[str] = False,
        max_iter: int = 200,
        tol: float = 1e-5,
        early_stopping: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.measure = measure
        self.normalize = normalize
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    @abstractmethod
    def _kernel(self, batch: Batch) -> tuple[Work, FloatArray]:
        """Give the function that fills in values and gradients, and the cost of each query.

        It takes the first and last query, the scores, values (queries,) and gradient (documents,).
        """

    def _prepare(self, batch: Batch) -> Loss:
        return self._sum(batch, *self._kernel(batch))

    def _sum(self, batch: Batch, work: Work, cost: FloatArray) -> Loss:
        """Sum up the losses of all queries."""

        def loss(scores: FloatArray) -> tuple[float, FloatArray]:
            values, gradient = np.zeros(len(batch)), np.zeros(len(scores))
            spread(lambda a, b: work(a, b, scores, values, gradient), cost, self.n_jobs)
            return float(values.sum()), gradient

        return loss
