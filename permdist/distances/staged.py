"""Distances that are sums of independent stages, each of which may have its own theta."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from permdist.distances.base import Distance, Sums
from permdist.distances.levels import is_top

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray

MOST_THETA = 690.0  # exp(-690) is the smallest mean distance that is told from 0


class StagedDistance(Distance):
    """A sum of n - 1 stages; a subclass gives `stages` and `stage_sums`.

    Parameters
    ----------
    n : int
    theta : float or array of float, shape (n - 1,)
        Of all stages, or of each: the generalized model.
    """

    def __init__(self, n: int, theta: ArrayLike) -> None:
        super().__init__(n, theta)
        self.thetas = np.full(n - 1, theta, dtype=np.float64)
        self.is_plain = bool((self.thetas == self.thetas[:1]).all())

    @classmethod
    def stages(cls, orders: IntArray) -> IntArray:
        """Return what each of the first places adds to the distance, shape (m, k).

        Parameters
        ----------
        orders : array of int, shape (m, k)
            Orders or, where k is less than n, first places.
        """
        raise NotImplementedError

    @classmethod
    def stage_sums(cls, thetas: FloatArray, left: FloatArray) -> Sums:
        """Return the sums of stages with some thetas, at which `left` items are left, any shape."""
        raise NotImplementedError

    def energy(self, orders: IntArray) -> Any:
        """Return minus the log-weight of orders."""
        if np.ndim(self.theta) == 0:
            return self.theta * self.from_identity(orders)
        return self.stages(orders)[:, :-1] @ self.thetas

    @cached_property
    def by_stage(self) -> Sums:
        """The sums of each stage, fields of shape (n - 1,)."""
        return self.stage_sums(self.thetas, np.arange(self.n, 1.0, -1.0))

    @property
    def log_partition(self) -> float:
        """The log of the sum of all weights."""
        return float(self.by_stage.log_total.sum())

    @cached_property
    def sums(self) -> Sums:
        """The log of the sum of all weights, and mean and variance of the distance."""
        return Sums(*(float(field.sum()) for field in self.by_stage))

    @property
    def mean_energy(self) -> float:
        """The mean of minus the log-weight."""
        return float(self.thetas @ self.by_stage.mean)

    def _top(self, levels: IntArray) -> Sums | None:
        """Add up over the orders with some first places; None for any other ballot."""
        if not is_top(levels):
            return None
        k = min(int(levels.max()), self.n - 1)
        added = self.stages(np.argsort(levels, kind="stable")[None, :k])[0]
        log, mean, variance = (float(field[k:].sum()) for field in self.by_stage)
        return Sums(log - float(self.thetas[:k] @ added), mean + float(added.sum()), variance)

    @classmethod
    def stage_theta(cls, left: int, mean: float) -> float:
        """Return the theta of a stage with `left` items left, from the mean of what it adds."""

        def excess(theta: float) -> float:
            return float(cls.stage_sums(np.array([theta]), np.array([float(left)])).mean[0]) - mean

        if excess(0.0) <= 0.0:
            return 0.0
        return float(brentq(excess, 0.0, MOST_THETA, xtol=1e-13, rtol=1e-14))
