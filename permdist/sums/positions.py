"""Expected sums over positions and exposures of many queries, in threads.

`RandomNoise` says which noise is added to scores: Gaussian, or the Gumbel noise of Plackett-Luce.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._parallel import in_threads, pointers
from permdist.sums import exposures as _exposures
from permdist.sums import gaussian_positions, luce_positions

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

COST = 200.0  # nanoseconds per document and position, or about


class RandomNoise(NamedTuple):
    """Independent noise on scores.

    Attributes
    ----------
    gaussian : bool
        Gaussian, or Gumbel noise, which makes Plackett-Luce.
    scale : float
    """

    gaussian: bool
    scale: float = 1.0

    def expected_sums(
        self,
        scores: FloatArray,
        ptr: IntArray,
        gains: FloatArray,
        weights: FloatArray,
        weight_ptr: IntArray,
        n_jobs: int | None = 1,
    ) -> tuple[FloatArray, FloatArray]:
        """Return ``sum_i gains[i] E weights[rank of i]`` of each query, and its gradient.

        Absolute errors are below 1e-12 times the largest possible sum, 1e-11 under Gaussian noise.

        Parameters
        ----------
        scores, gains : arrays of float, shape (documents,)
        ptr : array of int, shape (queries + 1,)
        weights : array of float
            Of the positions that count, cut by `weight_ptr`.
        weight_ptr : array of int, shape (queries + 1,)
        n_jobs : int, optional
            Threads, all processors for None; the result does not depend on it.

        Returns
        -------
        values : array of float, shape (queries,)
        gradient : array of float, shape (documents,)
        """
        cost = self._cost(ptr, weight_ptr)
        values, gradient = np.empty(len(cost)), np.empty(len(scores))
        kernel = (gaussian_positions if self.gaussian else luce_positions).expected_sums
        form = gains, weights, weight_ptr, self.scale

        def work(first: int, last: int) -> None:
            kernel(first, last, scores, ptr, *form, values, gradient)

        in_threads(work, cost, n_jobs)
        return values, gradient

    def exposures(
        self,
        scores: FloatArray,
        ptr: IntArray,
        weights: FloatArray,
        weight_ptr: IntArray,
        n_jobs: int | None = 1,
    ) -> FloatArray:
        """Return the expected weight of each document's position; see `expected_sums`."""
        cost = self._cost(ptr, weight_ptr)
        out = np.empty(len(scores))
        form = weights, weight_ptr, self.scale, self.gaussian

        def work(first: int, last: int) -> None:
            _exposures.exposures(first, last, scores, ptr, *form, out)

        in_threads(work, cost, n_jobs)
        return out

    def marginals_gradient(
        self, scores: FloatArray, cotangent: FloatArray, n_jobs: int | None = 1
    ) -> FloatArray:
        """Return the gradient of ``sum(cotangent * rank marginals)`` of one query by its scores.

        Each position is an expected sum of its own, with the cotangents as gains.

        Parameters
        ----------
        scores : array of float, shape (n,)
        cotangent : array of float, shape (n, k)
            For the first k positions.
        n_jobs : int, optional
        """
        n = len(scores)
        places = np.flatnonzero(cotangent.any(axis=0))
        weights = np.concatenate([np.zeros(0), *(np.eye(1, r + 1, r)[0] for r in places.tolist())])
        gains = np.ascontiguousarray(cotangent[:, places].T).ravel()
        queries = pointers(np.full(len(places), n)), pointers(places + 1)
        tiled = np.tile(scores, len(places))
        _, slopes = self.expected_sums(tiled, queries[0], gains, weights, queries[1], n_jobs)
        return slopes.reshape(-1, n).sum(axis=0)

    def _cost(self, ptr: IntArray, weight_ptr: IntArray) -> FloatArray:
        """Return about how long each query takes."""
        sizes, counts = np.diff(ptr).astype(np.float64), np.diff(weight_ptr)
        return COST * sizes * counts
