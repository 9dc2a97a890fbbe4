"""Many Plackett-Luce distributions at once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from permdist._parallel import in_threads
from permdist.distributions.plackett_luce import PLAIN_SPREAD, PlackettLuce
from permdist.distributions.utility_batch import RandomUtilityBatch
from permdist.sums import luce_batches
from permdist.sums.positions import RandomNoise

if TYPE_CHECKING:
    from permdist._typing import BoolArray, FloatArray, IntArray


class PlackettLuceBatch(RandomUtilityBatch):
    """Plackett-Luce distributions over many lists of items, one for each vector of scores.

    Parameters
    ----------
    scores : array of float, shape (..., n)
        Log-worths, one list per row; any finite numbers.
    mask : array of bool, shape (..., n), optional
        Which entries are items, where lists are shorter than n; all by default.
    names : sequence of str, optional
        Of the n entries of every list.
    n_jobs : int, optional
        Threads, all processors by default; results do not depend on it.

    Examples
    --------
    >>> batch = PlackettLuceBatch([[1.0, 0.0, -1.0], [0.0, 2.0, 0.0]])
    >>> batch.sample(rng=0)
    array([[2, 0, 1],
           [0, 1, 2]])
    >>> values, gradient = batch.expect_with_gradient("ndcg", [[1, 0, 0], [0, 0, 1]])
    >>> values.round(4), gradient.round(4)
    (array([0.8695, 0.6064]), array([[ 0.0925, -0.0645, -0.028 ],
           [-0.0354, -0.0337,  0.0691]]))
    >>> abs(float(values[0] - batch[0].expect("ndcg", [1, 0, 0]))) < 1e-12
    True
    """

    def _single(self, scores: FloatArray) -> PlackettLuce:
        return PlackettLuce(scores)

    def _like(self, scores: FloatArray, mask: BoolArray) -> Self:
        return type(self)(scores, mask, self._given_names, self._n_jobs)

    @property
    def _noise(self) -> RandomNoise:
        return RandomNoise(gaussian=False)

    def _keys(self, draws: int, rng: np.random.Generator) -> FloatArray:
        keys = rng.standard_exponential((draws, len(self._flat)))
        plain = np.repeat(self._plain, np.diff(self._ptr))
        if plain.all():
            keys *= np.exp(-self._centered)
        else:
            with np.errstate(over="ignore"):
                scaled = keys * np.exp(-self._centered)
            keys = np.where(plain, scaled, np.log(keys) - self._centered)
        return keys

    def _log_probs(self, orders: IntArray) -> FloatArray:
        out = np.empty(orders.shape[:2])
        inputs = self._flat, self._centered, self._worths, self._plain

        def work(first: int, last: int) -> None:
            luce_batches.log_probs(first, last, orders, self._number, self._ptr, *inputs, out)

        in_threads(work, 20.0 * len(orders) * np.diff(self._ptr), self._n_jobs)
        return out

    def _gradients(self, orders: IntArray) -> FloatArray:
        out = np.empty((len(orders), len(self._flat)))
        layout = self._number, self._ptr, self._centered

        def work(first: int, last: int) -> None:
            luce_batches.log_prob_gradients(first, last, orders, *layout, out)

        in_threads(work, 50.0 * len(orders) * np.diff(self._ptr), self._n_jobs)
        return out

    @cached_property
    def _worths(self) -> FloatArray:
        return np.exp(self._centered)

    @cached_property
    def _plain(self) -> BoolArray:
        """For which lists worths are exact as plain numbers."""
        lowest = np.minimum.reduceat(self._centered, self._ptr[:-1])
        return np.asarray(lowest > -PLAIN_SPREAD)

    @cached_property
    def _centered(self) -> FloatArray:
        """The scores, the highest of each list at 0."""
        starts, sizes = self._ptr[:-1], np.diff(self._ptr)
        result = self._flat - np.repeat(np.minimum.reduceat(self._flat, starts), sizes)
        return result - np.repeat(np.maximum.reduceat(result, starts), sizes)
