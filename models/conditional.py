"""What the learners of the good-bad pair model share: their parameters, and how a space is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import optimize

from permdist._check import choice
from permdist._typing import FloatArray
from permdist.measures import AUC, Measure
from permdist.models.descent import Descent, Loss
from permdist.models.inputs import need_draws
from permdist.models.rules import USUAL, Number, OneOf, Rule, Whole
from permdist.models.spaces import SPACES, Batch, Pairs, Space
from permdist.samplers import RestartSampler

__all__ = ["Conditional", "Loss"]


class Conditional(Descent):
    """A learner of the conditional model ``Pr(y) proportional to exp F(y)`` of each query.

    Parameters
    ----------
    measure : Measure or str
        The gain; the loss is 1 less it. It is also what `score` and early stopping look at.
    space : {"pairs", "interleavings", "lattice", "restart"}, optional
        The rankings that are summed over: all sign vectors of good-bad pairs (AUC only, or no
        measure at all); all merges of the goods and the bads, both sorted by score; all merges
        for `orders` fixed random orders of goods and bads; a fixed restart sample. The default
        depends on the learner.
    C : float
        The larger, the weaker the regularization ``|w|^2 / C``; ``numpy.inf`` for none.
    kappa : float
        The weight of the loss beside the likelihood, where a learner has both.
    scale : bool
        Whether to divide score differences by the number of pairs of each query, so that long
        queries do not outweigh the others. Without it the objective is a sum over all pairs and
        wants a C that is smaller by their typical number.
    graded : bool
        Whether all pairs of different labels count, or only those of good and bad.
    normalize : bool, str or sequence of str
        How to scale every feature within its query: not at all, to the range from 0 to 1, or by
        any of the methods of `permdist.data.Queries.normalize`. Several of them give the learner
        as many versions of every feature, side by side.
    orders : int
        For the lattice: fixed orders of each class.
    sample_size, skew : int, float
        For restarts: rankings of each query, and which restart states are favored.
    random_state : int, optional
        The seed of whatever is drawn.
    max_iter, tol : int, float
        When the optimizer stops: iterations, and the largest entry of the gradient.
    early_stopping : int, optional
        Stop after so many iterations without a better measure on `eval_set`, and keep the best.
    warm_start : bool
        Whether `fit` starts from the coefficients of the last one.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.
    verbose : bool
        Whether to print the objective at every iteration.
    """

    spaces: ClassVar[tuple[str, ...]] = tuple(SPACES)  # the first one is the default
    rules: ClassVar[Mapping[str, Rule]] = {
        **USUAL,
        "space": OneOf(tuple(SPACES), optional=True),
        "kappa": Number(0.0),
        "orders": Whole(),
        "sample_size": Whole(),
        "skew": Number(),
    }

    def __init__(
        self,
        measure: str | Measure = "ap",
        *,
        space: str | None = None,
        C: float = 1.0,
        kappa: float = 1.0,
        scale: bool = True,
        graded: bool = False,
        normalize: bool | str | Sequence[str] = False,
        orders: int = 4,
        sample_size: int = 100,
        skew: float = -10.0,
        random_state: int | None = 0,
        max_iter: int = 200,
        tol: float = 1e-5,
        early_stopping: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.measure = measure
        self.space = space
        self.C = C
        self.kappa = kappa
        self.scale = scale
        self.graded = graded
        self.normalize = normalize
        self.orders = orders
        self.sample_size = sample_size
        self.skew = skew
        self.random_state = random_state
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _space_name(self) -> str:
        return self.spaces[0] if self.space is None else choice("space", self.space, self.spaces)

    def _space(self, batch: Batch) -> Space:
        name, measure = self._space_name(), self._measure()
        options: dict[str, Any] = {"threads": self.n_jobs}
        if name == "restart":
            need_draws("sample_size", self.sample_size, batch)
            options["sampler"] = RestartSampler(measure, skew=self.skew)
            options |= {"sample_size": self.sample_size, "rng": self.random_state}
        elif name == "lattice":
            need_draws("orders", self.orders, batch)
            options |= {"orders": self.orders, "rng": self.random_state}
        return SPACES[name](batch, measure, **options)

    def _start(self, features: FloatArray, batch: Batch) -> FloatArray:
        """Start from the likelihood over pairs where w = 0 is a kink: sorted classes all tie."""
        start = super()._start(features, batch)
        if not self._kinked():
            return start
        pairs = Pairs(batch, AUC(), self.n_jobs)

        def objective(w: FloatArray) -> tuple[float, FloatArray]:
            values, gradient = pairs.log_sums(features @ w, 0.0)
            value = float(values.sum()) + float(w @ w) / self.C
            return value, features.T @ gradient + 2.0 / self.C * w

        found = optimize.minimize(
            objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 50}
        )
        return np.asarray(found.x)

    def _kinked(self) -> bool:
        return self._space_name() == "interleavings"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._space_name()
