"""Learners with a smooth objective: L-BFGS on a loss of the scores, and the square of w."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from permdist._typing import FloatArray
from permdist.models.base import Ranker
from permdist.models.history import Watch
from permdist.models.spaces import Batch

FLAT = 1e-13
SMALL = 5_000_000
Loss = Callable[[FloatArray], tuple[float, FloatArray]]


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def few_threads(size: int) -> AbstractContextManager[Any]:
    """Keep linear algebra on one thread where matrices are small.

    The many small products of an optimizer gain nothing from more, and wait for threads that
    other work keeps busy.
    """
    return _libraries().limit(limits=1, user_api="blas") if size < SMALL else nullcontext()


class Descent(Ranker):
    """A linear ranker that minimizes ``loss(X w) + |w|^2 / C``.

    A learner gives `_prepare`; `history_` also has ``gradient``, its largest entry.
    """

    warns_if_flat: ClassVar[bool] = True

    @abstractmethod
    def _prepare(self, batch: Batch) -> Loss:
        """Turn the queries into a function of all scores: the loss and its gradient."""

    def _tolerance(self) -> float:
        return float(self.get_params(deep=False)["tol"])

    def _start(self, features: FloatArray, batch: Batch) -> FloatArray:
        """Choose where to start from, if the user has not."""
        return np.zeros(features.shape[1])

    def _learn(self, features: FloatArray, batch: Batch, watch: Watch, start: FloatArray) -> None:
        loss = self._prepare(batch)
        self._optimize(
            loss, features, watch, start if start.any() else self._start(features, batch)
        )

    def _optimize(self, loss: Loss, features: FloatArray, watch: Watch, start: FloatArray) -> float:
        """Run L-BFGS; set `coef_` and `converged_`, and give the value that was reached."""
        params = self.get_params(deep=False)
        C, held_out = float(params.get("C", np.inf)), watch.held_out
        seen: dict[bytes, tuple[float, float]] = {}

        def objective(w: FloatArray) -> tuple[float, FloatArray]:
            value, by_scores = loss(features @ w)
            value += float(w @ w) / C
            gradient = features.T @ by_scores + 2.0 / C * w
            seen.clear()
            seen[w.tobytes()] = (value, float(np.abs(gradient).max()))
            return value, gradient

        def note(w: FloatArray) -> None:
            value, steepest = seen.get(w.tobytes()) or (np.nan, np.nan)
            scores = None if held_out is None else held_out.X @ w
            if watch.note(np.array(w), scores, objective=value, gradient=steepest):
                raise StopIteration

        if held_out is not None:
            watch.first(np.array(start), held_out.X @ start)
        by_scores = loss(features @ start)[1]
        if self.warns_if_flat and np.abs(by_scores).max() < FLAT:
            warnings.warn(
                f"{type(self).__name__}: the loss does not change with the scores; is the measure "
                "the same for all rankings of these queries?",
                ConvergenceWarning,
                stacklevel=3,
            )
        # The tolerance is relative to the first gradient, where features are small.
        steepest = float(np.abs(features.T @ by_scores + 2.0 / C * start).max())
        with few_threads(features.size):
            result = optimize.minimize(
                objective,
                start,
                jac=True,
                method="L-BFGS-B",
                callback=note,
                options={
                    "maxiter": params["max_iter"],
                    "gtol": self._tolerance() * min(1.0, steepest),
                    "ftol": 1e-12,
                    "maxcor": 20,
                },
            )
        self.coef_ = watch.best if watch.stops_early else np.array(result.x)
        self.converged_ = bool(result.success) or steepest < FLAT
        if len(watch) == 0 and not self.converged_:
            advice = "space='lattice', or " if "space" in params else ""
            warnings.warn(
                f"{type(self).__name__}: the optimizer could not take a step ({result.message}); "
                f"try {advice}other features",
                ConvergenceWarning,
                stacklevel=3,
            )
        return float(result.fun)
