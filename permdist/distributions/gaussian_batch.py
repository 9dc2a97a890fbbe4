"""Many distributions of Gaussian scores at once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from permdist._check import scale_of
from permdist.distributions.gaussian import GaussianScores
from permdist.distributions.utility_batch import RandomUtilityBatch
from permdist.sums.positions import RandomNoise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, IntArray


class GaussianScoresBatch(RandomUtilityBatch):
    """Rankings of many lists of items by scores with independent Gaussian noise.

    Parameters
    ----------
    scores : array of float, shape (..., n)
        One list per row.
    scale : float
        The standard deviation of each item's noise.
    mask : array of bool, shape (..., n), optional
        Which entries are items, where lists are shorter than n; all by default.
    names : sequence of str, optional
        Of the n entries of every list.
    n_jobs : int, optional
        Threads, all processors by default; results do not depend on it.

    Examples
    --------
    >>> batch = GaussianScoresBatch.from_lists([[1.0, 0.0], [0.0, 2.0, 0.0]], scale=0.5)
    >>> batch.top_k(1).round(3)
    array([[0.921, 0.079, 0.   ],
           [0.002, 0.995, 0.002]])
    >>> batch.expect("ndcg@2", [[1, 0, 0], [0, 0, 1]]).round(3)
    array([0.971, 0.316])
    """

    def __init__(
        self,
        scores: ArrayLike,
        scale: float = 1.0,
        mask: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._scale = scale_of("scale", scale)
        super().__init__(scores, mask, names, n_jobs)

    @property
    def scale(self) -> float:
        """The standard deviation of the noise."""
        return self._scale

    def _single(self, scores: FloatArray) -> GaussianScores:
        return GaussianScores(scores, self._scale)

    def _like(self, scores: FloatArray, mask: BoolArray) -> Self:
        return type(self)(scores, self._scale, mask, self._given_names, self._n_jobs)

    @property
    def _noise(self) -> RandomNoise:
        return RandomNoise(gaussian=True, scale=self._scale)

    def _keys(self, draws: int, rng: np.random.Generator) -> FloatArray:
        utilities = rng.standard_normal((draws, len(self._flat)))
        utilities += self._standard
        return -utilities

    def _log_probs(self, orders: IntArray) -> FloatArray:
        out = np.empty(orders.shape[:2])

        def work(first: int, last: int) -> None:
            for q in range(first, last):
                out[:, q] = self._list(q).log_prob(self._within(orders, q))

        self._in_threads(work, 1e4 * len(orders) * np.ones(len(self._ptr) - 1))
        return out

    def _gradients(self, orders: IntArray) -> FloatArray:
        out = np.empty((len(orders), len(self._flat)))

        def work(first: int, last: int) -> None:
            for q in range(first, last):
                a, b = self._ptr[q : q + 2]
                out[:, a:b] = self._list(q).log_prob_gradient(self._within(orders, q))

        self._in_threads(work, 2e4 * len(orders) * np.ones(len(self._ptr) - 1))
        return out

    def _within(self, orders: IntArray, number: int) -> IntArray:
        """Return the orders of one list, (draws, its items), by numbers within it."""
        size = self._ptr[number + 1] - self._ptr[number]
        return self._number[number][orders[:, number, :size]]

    @property
    def _unit(self) -> float:
        return self._scale

    @cached_property
    def _standard(self) -> FloatArray:
        """The scores in standard deviations, the lowest of each list at 0."""
        lowest = np.minimum.reduceat(self._flat, self._ptr[:-1])
        return (self._flat - np.repeat(lowest, np.diff(self._ptr))) / self._scale
