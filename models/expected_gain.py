"""Expected gain, with restarts of the optimizer against its local optima."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from permdist._check import as_rng
from permdist._typing import FloatArray
from permdist.measures import Measure
from permdist.models.attributes import Attribute, Numbers
from permdist.models.base import Card, Ranker, Settings
from permdist.models.conditional import Conditional, Loss
from permdist.models.history import Watch
from permdist.models.rules import OneOf, Rule, Whole
from permdist.models.spaces import Batch, Space, Utilities
from permdist.models.spaces.utilities import KINDS

SMALLEST = 1e-300


class ExpectedGain(Conditional):
    """Maximizes the sum over queries of the log of the expected gain.

    The objective is ``-sum_q log E[measure] + |w|^2 / C``. It is not convex: the optimizer starts
    several times, first from the maximum likelihood estimate over pairs, then near it, and
    `restarts_` tells what each start came to.

    Parameters
    ----------
    distribution : {"good-bad", "plackett-luce", "gaussian"}
        Under which the expectation is taken; exactly for all of them, but for restart samples.
    n_starts : int
        How often the optimizer starts.

    Notes
    -----
    All other parameters are those of `ConvexLoss`; `kappa` plays no part.

    References
    ----------
    Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, equations (6) to (8).

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(60, rng=0)
    >>> learner = ExpectedGain("auc", space="pairs", C=10.0).fit(queries)
    >>> len(learner.restarts_)
    3
    """

    card: ClassVar[Card] = Card(
        paper="Dubey et al. 2009",
        optimizes="any measure, in expectation",
        minimizes="-log E[measure]",
        cost="goods x bads",
    )
    settings: ClassVar[Settings] = {
        "C": [0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0],
        "n_starts": [1],
    }

    spaces = ("interleavings", "lattice", "restart", "pairs")
    fitted: ClassVar[tuple[str, ...]] = (*Ranker.fitted, "restarts_")
    rules: ClassVar[Mapping[str, Rule]] = {
        "distribution": OneOf(("good-bad", *KINDS)),
        "n_starts": Whole(),
    }
    attributes: ClassVar[Mapping[str, Attribute]] = {"restarts_": Numbers((None,), listed=True)}

    def __init__(
        self,
        measure: str | Measure = "ap",
        *,
        distribution: str = "good-bad",
        n_starts: int = 3,
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
        super().__init__(
            measure,
            space=space,
            C=C,
            kappa=kappa,
            scale=scale,
            graded=graded,
            normalize=normalize,
            orders=orders,
            sample_size=sample_size,
            skew=skew,
            random_state=random_state,
            max_iter=max_iter,
            tol=tol,
            early_stopping=early_stopping,
            warm_start=warm_start,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.distribution = distribution
        self.n_starts = n_starts

    def _space(self, batch: Batch) -> Space:
        if self.distribution == "good-bad":
            return super()._space(batch)
        return Utilities(batch, self._measure(), self.n_jobs, kind=self.distribution)

    def _kinked(self) -> bool:
        return True  # whatever the space: far from any good ranking the gain is flat

    def _prepare(self, batch: Batch) -> Loss:
        measure = self._measure()
        if measure.range[0] < 0.0:
            raise ValueError(
                f"measure: {measure.name!r} can be negative, and its mean has no logarithm"
            )
        space = self._space(batch)

        def loss(scores: FloatArray) -> tuple[float, FloatArray]:
            gains, gradient = space.mean_gains(scores)
            gains = np.maximum(gains, SMALLEST)
            return -float(np.log(gains).sum()), -gradient / gains[batch.query_of]

        return loss

    def _optimize(self, loss: Loss, features: FloatArray, watch: Watch, start: FloatArray) -> float:
        rng = as_rng(self.random_state)
        found: list[float] = []
        best: tuple[float, FloatArray, bool, dict[str, list[float]]] | None = None
        for number in range(self.n_starts):
            spread = 0.0 if number == 0 else 0.5 * max(1.0, float(np.abs(start).max()))
            begin = start + spread * rng.normal(size=len(start))
            watch.restart()
            value = super()._optimize(loss, features, watch, begin)
            found.append(value)
            merit = value
            if watch.stops_early and watch.held_out is not None:
                merit = -watch.judge(watch.held_out.X @ self.coef_)
            if best is None or merit < best[0]:
                best = merit, self.coef_, self.converged_, watch.history
        if best is not None:
            _, self.coef_, self.converged_, watch.history = best
        self.restarts_ = found
        return float(min(found))
