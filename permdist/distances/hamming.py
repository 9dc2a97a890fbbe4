"""Hamming's distance: the number of items that are not at their place.

With q = exp(-theta), `F_m` sums over all permutations of m items, and `H_m` over the same where
one given item has weight q even if it stays:

    F_m = F_(m-1) + q (m - 1) H_(m-1),    H_m = q F_(m-1) + q (m - 1) H_(m-1).

An item stays, or it goes to another; these two then count as one, which cannot stay any more.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import gammaln, logsumexp

from permdist._kernels import kernel
from permdist.distances.base import ANSWERS, ANY, Distance, Sums, exchangeable
from permdist.distances.displacement import Displacement

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


class Hamming(Displacement):
    """Hamming's distance; everything is exact for any number of items."""

    name = "hamming"
    takes_ties = False  # no place is between two others
    quick = (150, 2000)
    limits: ClassVar = dict.fromkeys(ANSWERS, ANY)
    also_exact = ", and those that place all items"

    @classmethod
    def cost(cls, moves: Any, n: int) -> Any:
        """Return 1 for items that move."""
        del n
        return np.sign(moves)

    @classmethod
    def start_center(cls, levels: IntArray, weights: FloatArray) -> IntArray:
        """Return a Kemeny order: tied items are at no place of their own."""
        return Distance.start_center(levels, weights)

    @classmethod
    def largest(cls, n: int) -> float:
        """Return n: no item stays."""
        return n if n > 1 else 0

    @cached_property
    def _logs(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Logs of F, of H, and of the sums with two such items, from no item to n."""
        return _log_sums(self.n, float(self.theta))

    @property
    def log_partition(self) -> float:
        """The log of the sum of all weights."""
        return float(self._logs[0][-1])

    @cached_property
    def sums(self) -> Sums:
        """The log of the sum of all weights, and moments of the number of items that move."""
        chances, moved = self.distribution(), np.arange(self.n + 1)
        mean = float(chances @ moved)
        return Sums(self.log_partition, mean, float(chances @ (moved - mean) ** 2))

    def distribution(self) -> FloatArray:
        """Return the probability of each number of items that move, all others staying."""
        moved = np.arange(self.n + 1)
        choices = gammaln(self.n + 1.0) - gammaln(moved + 1.0) - gammaln(self.n - moved + 1.0)
        logs = choices + _log_derangements(self.n) - self.theta * moved
        chances = np.exp(logs - self._logs[0][-1])
        return chances / chances.sum()

    def rank_marginals(self) -> FloatArray:
        """Return rank marginals: an item stays, or goes to any other place."""
        n, (free, marked, _) = self.n, self._logs
        result = np.full((n, n), np.exp(marked[n - 1] - self.theta - free[n]))
        np.fill_diagonal(result, np.exp(free[n - 1] - free[n]))
        return result

    def pairwise(self) -> FloatArray:
        """Return pairwise chances from where two items can go together."""
        n, (free, marked, twice) = self.n, self._logs
        if n == 1:
            return np.zeros((1, 1))
        moved = np.array([0, 2, 1, 2, 2])
        rest = np.array([free[n - 2], free[n - 2], marked[n - 2], marked[n - 2], twice[n - 2]])
        return exchangeable(n, *np.exp(rest - self.theta * moved - free[n]))

    def sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders: items in random order, each of which stays, ends a cycle, or leads on."""
        free, marked, _ = self._logs
        stay = np.exp(free[:-1] - free[1:])
        with np.errstate(invalid="ignore"):
            close = np.exp(free[:-1] - self.theta - marked[1:])
        close[0] = 1.0
        return _draw(stay, np.nan_to_num(close, nan=1.0), rng.random((size, 2 * self.n)))

    def bucket_work(self, size: int) -> float:
        """Return about how many operations `bucket` takes."""
        del size
        return 1e4

    def bucket(self, ranks: IntArray) -> Sums:
        """Count the items that stay, of those with a place in the bucket."""
        size = len(ranks)
        return _bucket(size, int(((ranks >= 0) & (ranks < size)).sum()), float(self.theta))


@lru_cache(maxsize=4096)
def _bucket(size: int, can: int, theta: float) -> Sums:
    """Add up over all orders of a bucket, of whose items so many have their own place in it."""
    log = _log_bucket(size, can, theta)
    one = two = 0.0  # the expected number of items that stay, and of ordered pairs of such
    if can > 0:
        one = can * np.exp(_log_bucket(size - 1, can - 1, theta) - log)
    if can > 1:
        two = can * (can - 1) * np.exp(_log_bucket(size - 2, can - 2, theta) - log)
    return Sums(log, size - one, max(0.0, two + one - one * one))


def _log_bucket(size: int, can: int, theta: float) -> float:
    """Return the log-sum of a bucket.

    Let j of its items stay with the weight ``1 - exp(-theta)``, and all others go anywhere.
    """
    j = np.arange(can + 1.0)
    logs = gammaln(can + 1.0) - gammaln(j + 1.0) - gammaln(can - j + 1.0)
    logs += gammaln(size - j + 1.0) - theta * (size - j)
    with np.errstate(divide="ignore"):
        logs[1:] += j[1:] * np.log(-np.expm1(-theta))
    return float(logsumexp(logs))


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
