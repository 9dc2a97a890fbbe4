"""Interleavings of the classes, each in a fixed order: sorted by score, or drawn beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from permdist._check import as_rng, count
from permdist.models.spaces.base import Sums
from permdist.sums.batch import BatchInterleavings

if TYPE_CHECKING:
    from permdist._typing import FloatArray, RandomState
    from permdist.measures import Measure
    from permdist.models.batch import Batch


class InterleavingSums(Sums):
    """All ways to interleave the classes, each sorted by score.

    ``log_sums`` is convex in the scores: for every pattern of labels, sorting inside the classes
    gives the largest F, so the sum is over maxima of linear functions. It has kinks where scores
    of a class tie.
    """

    n_orders = 0  # sorted anew for every call

    def __init__(self, batch: Batch, measure: Measure, n_jobs: int | None = None) -> None:
        super().__init__(batch, measure, n_jobs)
        self._sums = BatchInterleavings(
            batch.labels, batch.ptr, batch.scale, measure, self.n_orders
        )

    def log_sums(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:
        """Sum over all interleavings."""
        values, gradient = self._sums.log_sums(scores, -kappa, self._in_threads)
        return values + kappa * (1.0 - self._sums.offsets), gradient

    def mean_gains(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Average over all interleavings."""
        values, gradient = self._sums.means(scores, self._in_threads)
        return values + self._sums.offsets, gradient


class LatticeSums(InterleavingSums):
    """All ways to interleave the classes, for several fixed orders of each class, and their mean.

    The orders are drawn once. ``log_sums`` is smooth, convex, and the mean of the sums is an
    unbiased estimate of the mean over all orders.

    Parameters
    ----------
    orders : int
        How many.
    rng : int, Generator or None
    """

    def __init__(
        self,
        batch: Batch,
        measure: Measure,
        n_jobs: int | None = None,
        *,
        orders: int = 4,
        rng: RandomState = None,
    ) -> None:
        self.n_orders = count("orders", orders)
        super().__init__(batch, measure, n_jobs)
        self._sums.draw_orders(as_rng(rng))
