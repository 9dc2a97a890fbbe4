"""Hamming's distance: the engine of Mallows' model.

The distance is n less the number of items that stay. With q = exp(-theta), `F_m` sums over all
permutations of m items, and `H_m` over the same where one given item has weight q even if it
stays:

    F_m = F_(m-1) + q (m - 1) H_(m-1),    H_m = q F_(m-1) + q (m - 1) H_(m-1).

An item stays, or it goes to another; these two then count as one, which cannot stay any more.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from permdist._kernels import kernel
from permdist.sums.mallows import DistanceSums, Moments, exchangeable

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


class HammingSums(DistanceSums):
    """Sums over all orders.

    Parameters
    ----------
    n : int
    theta : float
        Non-negative.
    """

    has_marginals = True
    has_pairwise = True

    def __init__(self, n: int, theta: float) -> None:
        self.n, self.theta = n, theta

    @cached_property
    def _logs(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Logs of F, of H, and of the sums with two such items, from no item to n."""
        return _log_sums(self.n, self.theta)

    @property
    def log_partition(self) -> float:
        """The log of the sum of all weights."""
        return float(self._logs[0][-1])

    @cached_property
    def moments(self) -> Moments:
        """Moments of the number of items that move."""
        chances, moved = self.distances(), np.arange(self.n + 1)
        mean = float(chances @ moved)
        variance = float(chances @ (moved - mean) ** 2)
        return Moments(mean, variance, min(self.theta, 1e9) * mean if mean > 0.0 else 0.0)

    @property
    def _log_ratio(self) -> float:
        return -self.theta

    @cached_property
    def _pair_chances(self) -> tuple[float, float, float, float, float]:
        """What `exchangeable` asks for, with two items or more."""
        n, (free, marked, twice) = self.n, self._logs
        q, total = self._log_ratio, free[-1]
        both = np.exp(free[n - 2] - total)
        swapped = np.exp(2.0 * q + free[n - 2] - total)
        one = np.exp(q + marked[n - 2] - total) if n > 2 else 0.0
        chain = np.exp(2.0 * q + marked[n - 2] - total) if n > 2 else 0.0
        apart = np.exp(2.0 * q + twice[n - 2] - total) if n > 3 else 0.0
        return float(both), float(swapped), float(one), float(chain), float(apart)

    def distances(self) -> FloatArray:
        """Return the probability of each number of items that move, all others staying."""
        moved = np.arange(self.n + 1)
        choices = gammaln(self.n + 1.0) - gammaln(moved + 1.0) - gammaln(self.n - moved + 1.0)
        with np.errstate(invalid="ignore"):
            logs = choices + _log_derangements(self.n) - np.where(moved > 0, self.theta * moved, 0)
        chances = np.exp(logs - self.log_partition)
        return chances / chances.sum()

    def rank_marginals(self) -> FloatArray:
        """Return rank marginals: an item stays, or goes to any other place."""
        n, (free, marked, _) = self.n, self._logs
        elsewhere = np.exp(self._log_ratio + marked[n - 1] - free[-1]) if n > 1 else 0.0
        result = np.full((n, n), elsewhere)
        np.fill_diagonal(result, np.exp(free[n - 1] - free[-1]))
        return result

    def pairwise(self) -> FloatArray:
        """Return pairwise chances from where two items can go together."""
        return np.zeros((1, 1)) if self.n == 1 else exchangeable(self.n, *self._pair_chances)

    def draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders: items in random order, each of which stays, ends a cycle, or leads on."""
        free, marked, _ = self._logs
        n = self.n
        stay = np.exp(free[:-1] - free[1:])
        with np.errstate(invalid="ignore"):
            close = np.exp(self._log_ratio + free[:-1] - marked[1:])
        close[0] = 1.0
        return _draw(stay, np.nan_to_num(close, nan=1.0), rng.random((size, 2 * n)))


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def _log_sums(n: int, theta: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return logs of F, H and the sums with two marked items, shape (n + 1,)."""
    free, marked, twice = np.zeros(n + 1), np.full(n + 1, -np.inf), np.full(n + 1, -np.inf)
    for m in range(1, n + 1):
        on = np.log(m - 1.0) - theta + marked[m - 1] if m > 1 else -np.inf
        free[m] = np.logaddexp(free[m - 1], on)
        marked[m] = np.logaddexp(free[m - 1] - theta, on)
        if m > 1:
            ends = np.log(2.0) - theta + marked[m - 1]
            more = np.log(m - 2.0) - theta + twice[m - 1] if m > 2 else -np.inf
            twice[m] = np.logaddexp(ends, more)
    return free, marked, twice


@kernel
def _log_derangements(n: int) -> FloatArray:
    """Return logs of the numbers of permutations of 0 to n items in which none stays."""
    logs = np.full(n + 1, -np.inf)
    logs[0] = 0.0
    for m in range(2, n + 1):
        logs[m] = np.log(m - 1.0) + np.logaddexp(logs[m - 1], logs[m - 2])
    return logs


@kernel
def _draw(stay: FloatArray, close: FloatArray, uniforms: FloatArray) -> IntArray:
    """Build cycles along a random order of the items; stay, close (n,), uniforms (draws, 2 n).

    Entry m - 1 of `stay` is the chance that one of m items left stays where none is marked; that
    of `close` the chance that the marked one of m ends its cycle.
    """
    draws, n = len(uniforms), len(stay)
    orders = np.empty((draws, n), np.int64)
    visits = np.empty(n, np.int64)
    for row in range(draws):
        for k in range(n):
            visits[k] = k
        for k in range(n - 1, 0, -1):
            at = min(int(uniforms[row, k] * (k + 1)), k)
            visits[k], visits[at] = visits[at], visits[k]
        first = -1  # the start of the cycle that is open
        for k in range(n):
            item, u, m = visits[k], uniforms[row, n + k], n - k
            if first < 0:
                if u < stay[m - 1] or m == 1:
                    orders[row, item] = item
                else:
                    first = item
                    orders[row, item] = visits[k + 1]
            elif u < close[m - 1] or m == 1:
                orders[row, item] = first
                first = -1
            else:
                orders[row, item] = visits[k + 1]
    return orders
