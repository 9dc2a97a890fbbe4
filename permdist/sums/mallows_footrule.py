"""Spearman's footrule: the engine of Mallows' model, for any number of items.

Go through the places and the items of the center side by side. After each step, at a cut, k items
passed are not placed yet and k places passed are empty; the distance is twice the sum of k over
all cuts. From k, the next item and the next place lead

- to k + 1 in one way: both stay open;
- to k in 2 k + 1 ways: the item takes the place, or one of the two an open one of the other kind;
- to k - 1 in k^2 ways.

Multiplied by k! in each state (so that k + 1 ways lead to k + 1, and k to k - 1), the steps are
symmetric, and sums stay within the range of doubles.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.sums.lattice import NotExactError
from permdist.sums.mallows import DistanceSums, Moments, refuse_distances

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

MOST_LISTED = 250  # items, for the distribution of the distance
MOST_ITEMS = 15_000  # for draws and rank marginals, which need the chances of all steps


class FootruleSums(DistanceSums):
    """Sums over all orders.

    Parameters
    ----------
    n : int
    theta : float
        Non-negative.
    """

    has_marginals = True

    def __init__(self, n: int, theta: float) -> None:
        self.n, self.theta = n, theta

    @cached_property
    def _sums(self) -> tuple[float, float, float]:
        return _moments(self.n, self.theta)

    @cached_property
    def _factors(self) -> FloatArray:
        """The weight of each k at a cut."""
        sizes = np.arange(self.n // 2 + 2)
        return np.exp(-np.where(sizes > 0, 2.0 * self.theta * sizes, 0.0))

    @property
    def log_partition(self) -> float:
        """The log of the sum of all weights."""
        return self._sums[0]

    @cached_property
    def moments(self) -> Moments:
        """Moments of twice the sum over all cuts."""
        _, mean, variance = self._sums
        energy = 2.0 * min(self.theta, 1e9) * mean if mean > 0.0 else 0.0
        return Moments(2.0 * mean, 4.0 * variance, energy)

    def distances(self) -> FloatArray:
        """Return the probability of each distance; odd ones do not occur."""
        n = self.n
        refuse_distances(n, MOST_LISTED)
        halves = _half_distances(n, self._factors)
        result = np.zeros(2 * len(halves) - 1)
        result[::2] = halves
        return result

    @cached_property
    def _steps(self) -> FloatArray:
        """The chances of all steps, shape (n, n // 2 + 2, 3): up, each way to stay, and down."""
        n = self.n
        if n > MOST_ITEMS:
            raise NotExactError(
                f"footrule: draws and rank marginals are exact up to {MOST_ITEMS:,} items, this "
                f"distribution has {n:,}; draw with permdist.samplers.run_chains"
            )
        return _chances(n, self.theta)

    def rank_marginals(self) -> FloatArray:
        """Return rank marginals: how long an open item stays open."""
        return np.minimum(_marginals(self._steps), 1.0)

    def draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders: a path, and at each step one of its ways."""
        return _draw(self._steps, rng.random((size, self.n, 3)))


# ---- kernels: factors (n // 2 + 2,), steps (n, n // 2 + 2, 3) -----------------------------------


@kernel
def _moments(n: int, theta: float) -> tuple[float, float, float]:
    """Log-sum, mean and variance of the sum over all cuts.

    Beside the weight of each state, in logs relative to the largest, the mean and the variance of
    the sum so far are kept.
    """
    size = n // 2 + 2
    old, new = np.zeros((3, size)), np.zeros((3, size))
    old[0, 1:] = -np.inf
    log = 0.0
    for t in range(1, n + 1):
        most, best, ratio = min(t, n - t), -np.inf, 1.0
        for k in range(most + 1):
            low, gap = k - 1 if k else 0, old[0, k + 1] - old[0, k]
            largest, lower = old[0, k], ratio
            # One exponential per state, of the next one relative to this one, unless that is
            # beyond the range of doubles.
            if abs(gap) < 600.0 and lower > 0.0:
                ratio = np.exp(gap)
                down, stay, up = (k + 1.0) * ratio, 2.0 * k + 1.0, k / lower
            else:
                ratio = np.exp(gap) if abs(gap) < 600.0 else 0.0
                largest = max(old[0, k], max(old[0, k + 1], old[0, low]))
                down = (k + 1.0) * np.exp(old[0, k + 1] - largest)
                stay = (2.0 * k + 1.0) * np.exp(old[0, k] - largest)
                up = k * np.exp(old[0, low] - largest)
            weight = down + stay + up
            a, b, c = down / weight, stay / weight, up / weight
            mean = a * old[1, k + 1] + b * old[1, k] + c * old[1, low]
            spread = a * (old[2, k + 1] + (old[1, k + 1] - mean) ** 2)
            spread += b * (old[2, k] + (old[1, k] - mean) ** 2)
            spread += c * (old[2, low] + (old[1, low] - mean) ** 2)
            new[0, k] = largest + np.log(weight) - (2.0 * theta * k if k else 0.0)
            new[1, k], new[2, k] = mean + k, spread
            best = max(best, new[0, k])
        for k in range(size):
            new[0, k] = new[0, k] - best if k <= most else -np.inf
        log += best
        old, new = new, old
    return log, old[1, 0], old[2, 0]


@kernel
def _chances(n: int, theta: float) -> FloatArray:
    """Compute the chances of all steps, from the last one back.

    The sums over what may follow differ by more than doubles can hold: logs are kept.
    """
    size = n // 2 + 2
    steps = np.zeros((n, size, 3))
    rest, before = np.full(size, -np.inf), np.full(size, -np.inf)
    rest[0] = 0.0
    for t in range(n - 1, -1, -1):
        before[:] = -np.inf
        for k in range(min(t, n - t) + 1):
            largest = max(rest[k], rest[k + 1])
            if k:
                largest = max(largest, rest[k - 1])
            up = (k + 1.0) * np.exp(rest[k + 1] - largest)
            way = np.exp(rest[k] - largest)
            down = k * np.exp(rest[k - 1] - largest) if k else 0.0
            total = up + (2.0 * k + 1.0) * way + down
            steps[t, k, 0], steps[t, k, 1], steps[t, k, 2] = up / total, way / total, down / total
            before[k] = largest + np.log(total)
            if k:  # the weight of the cut before this step
                before[k] -= 2.0 * theta * k
        rest, before = before, rest
    return steps


@kernel
def _half_distances(n: int, factors: FloatArray) -> FloatArray:
    """Distribution of the sum over all cuts, by (k, sum)."""
    size, length = n // 2 + 2, n * n // 4 + 1
    old, new = np.zeros((size, length)), np.zeros((size, length))
    old[0, 0] = 1.0
    for t in range(1, n + 1):
        most, total = min(t, n - t), 0.0
        for k in range(size):
            if k > most:
                new[k] = 0.0
                continue
            for s in range(k):
                new[k, s] = 0.0
            for s in range(k, length):
                before = s - k
                weight = (2.0 * k + 1.0) * old[k, before] + (k + 1.0) * old[k + 1, before]
                if k:
                    weight += k * old[k - 1, before]
                new[k, s] = weight * factors[k]
                total += new[k, s]
        for k in range(most + 1):
            for s in range(length):
                new[k, s] /= total
        old, new = new, old
    return old[0].copy()


@kernel
def _draw(steps: FloatArray, uniforms: FloatArray) -> IntArray:
    """Draw paths from the start, and what is matched at each step; uniforms (draws, n, 3)."""
    draws, n = uniforms.shape[:2]
    orders = np.empty((draws, n), np.int64)
    items, places = np.empty(n, np.int64), np.empty(n, np.int64)  # those that are open
    for row in range(draws):
        k = 0
        for t in range(n):
            up, stay, down = steps[t, k, 0], (2.0 * k + 1.0) * steps[t, k, 1], steps[t, k, 2]
            u = uniforms[row, t, 0] * (up + stay + down)
            if u < down:
                a = min(int(uniforms[row, t, 1] * k), k - 1)
                b = min(int(uniforms[row, t, 2] * k), k - 1)
                orders[row, places[a]] = t
                orders[row, t] = items[b]
                k -= 1
                places[a], items[b] = places[k], items[k]
            elif u < down + stay and stay > 0.0:
                choice = min(int(uniforms[row, t, 1] * (2 * k + 1)), 2 * k)
                if choice == 2 * k:
                    orders[row, t] = t
                elif choice < k:
                    orders[row, places[choice]] = t
                    places[choice] = t
                else:
                    orders[row, t] = items[choice - k]
                    items[choice - k] = t
            elif up > 0.0:
                items[k], places[k] = t, t
                k += 1
            else:  # rounding: nothing leads up from here
                orders[row, t] = t
    return orders


@kernel
def _marginals(steps: FloatArray) -> FloatArray:
    """Follow one open item until it is placed, shape (n, n); distances are symmetric."""
    n, size = steps.shape[:2]
    result = np.zeros((n, n))
    # The chance of each k, and of each k with the item among the open ones.
    here, ahead = np.zeros(size + 1), np.zeros(size + 1)
    old, new = np.zeros(size + 1), np.zeros(size + 1)
    here[0] = 1.0
    for i in range(n):
        old[:] = 0.0
        ahead[:] = 0.0
        for k in range(min(i, n - i) + 1):
            up, way, down = here[k] * steps[i, k, 0], here[k] * steps[i, k, 1], steps[i, k, 2]
            result[i, i] += way
            # The item stays open: the place does, too, or takes one of k open items.
            old[k + 1] += up
            old[k] += k * way
            ahead[k + 1] += up
            ahead[k] += (2.0 * k + 1.0) * way
            if k:
                ahead[k - 1] += here[k] * down
        here, ahead = ahead, here
        for t in range(i + 1, n):
            taken = 0.0
            most = min(t, n - t)
            new[: most + 2] = 0.0
            for k in range(1, most + 1):
                up, way, down = steps[t, k, 0], steps[t, k, 1], steps[t, k, 2] / k
                taken += old[k] * (way + down)
                new[k + 1] += old[k] * up
                new[k] += 2.0 * k * old[k] * way
                new[k - 1] += (k - 1.0) * old[k] * down
            result[i, t] = result[t, i] = taken
            old, new = new, old
    return result
