"""All sign vectors of the good-bad pairs: everything is in closed form, for AUC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist.measures import AUC, Measure
from permdist.models.spaces.base import Space, Sums, best_slopes, register_space
from permdist.sums.pairs import BatchPairs

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, RandomState
    from permdist.models.batch import Batch

    Work = Callable[[int, int], None]
    Spread = Callable[[Work, FloatArray], None]


class PairSums(Sums):
    """Sign vectors, transitive or not; the gain must be AUC, for which the sums factorize."""

    def __init__(self, batch: Batch, measure: Measure, n_jobs: int | None = None) -> None:
        super().__init__(batch, measure, n_jobs)
        self._sums = BatchPairs(batch.labels, batch.ptr)
        # F of the best vector is linear in the scores.
        self._best = np.concatenate([best_slopes(batch.labels[a:b]) for a, b in batch.bounds])
        self._best *= batch.scale[batch.query_of]

    def log_sums(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:
        """Sum up ``log(1 + exp(-2 scale (s_g - s_b) + kappa / pairs))`` over pairs."""
        if kappa != 0.0:
            self._need_auc()
        (values, _), (gradient, _) = self._run(scores, kappa)
        return self._beside_best(scores, values, gradient)

    def mean_gains(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Average the chances of all pairs to be in the right order."""
        self._need_auc()
        (_, values), (_, gradient) = self._run(scores, 0.0)
        pairs = self._sums.n_pairs
        return values / pairs, gradient / pairs[self.batch.query_of]

    def with_rows(
        self, scores: FloatArray, rows: Callable[[Spread], tuple[FloatArray, FloatArray]]
    ) -> tuple[FloatArray, FloatArray]:
        """Add the logs of pairs, without a tilt, to sums over rows, in one go of the threads."""
        untilted = np.zeros(len(self.batch))
        of_pairs, values, gradients = self._sums.begin(scores, self.batch.scale, untilted)

        def spread(of_rows: Work, cost: FloatArray) -> None:
            def work(first: int, last: int) -> None:
                of_pairs(first, last)
                of_rows(first, last)

            self._in_threads(work, self._sums.cost + cost)

        more, by_more = rows(spread)
        logs, by_logs = self._beside_best(scores, values[0], gradients[0])
        return logs + more, by_logs + by_more

    def _beside_best(
        self, scores: FloatArray, values: FloatArray, gradient: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        best = np.add.reduceat(self._best * scores, self.batch.ptr[:-1])
        return values - best, gradient - self._best

    def _run(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:
        tilts = kappa / self._sums.n_pairs
        return self._sums.sums(scores, self.batch.scale, tilts, self._in_threads)

    def _need_auc(self) -> None:
        if not isinstance(self.measure, AUC):
            raise ValueError(
                f"space: over pairs only AUC factorizes, the measure is {self.measure.name!r}; "
                "use space='rows' or another one"
            )


@register_space
@dataclass(frozen=True)
class Pairs(Space):
    """All sign vectors of pairs with different labels, transitive or not.

    Everything is in closed form, for AUC; other measures have no sum here.
    """

    alias: ClassVar[str] = "pairs"
    independent: ClassVar[bool] = True

    def _sums(self, batch: Batch, measure: Measure, n_jobs: int | None, _rng: RandomState) -> Sums:
        return PairSums(batch, measure, n_jobs)
