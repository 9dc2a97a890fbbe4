"""Spearman's footrule: the sum of how far each item moves, for any number of items.

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
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist.distances.base import ANY, Sums
from permdist.distances.displacement import Displacement

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


class Footrule(Displacement):
    """Spearman's footrule; all but pairwise chances is exact for any number of items.

    References
    ----------
    Diaconis, Graham: Spearman's footrule as a measure of disarray (1977).
    """

    name = "footrule"
    quick = (150, 2000)
    limits: ClassVar = {
        "log_partition": ANY,
        "distance_distribution": 250,
        "sample": 15_000,
        "rank_marginals": 15_000,
    }
    also_exact = ", and those that place all items"

    @classmethod
    def cost(cls, moves: Any, n: int) -> Any:
        """Return displacements as they are."""
        del n
        return moves

    @classmethod
    def largest(cls, n: int) -> float:
        """Return the distance from the reverse."""
        return n * n // 2

    @property
    def log_partition(self) -> float:
        """The log of the sum of all weights."""
        return self.sums.log_total

    @cached_property
    def sums(self) -> Sums:
        """The log of the sum of all weights, and moments of twice the sum over all cuts."""
        log, mean, variance = _program(self.n, float(self.theta), np.zeros((0, 0, 3)))
        return Sums(log, 2.0 * mean, 4.0 * variance)

    def distribution(self) -> FloatArray:
        """Return the probability of each distance; odd ones do not occur."""
        self.check_can("distance_distribution")
        halves = _half_distances(self.n, np.exp(-2.0 * self.theta * np.arange(self.n // 2 + 2)))
        result = np.zeros(2 * len(halves) - 1)
        result[::2] = halves
        return result

    @cached_property
    def _steps(self) -> FloatArray:
        """The chances of all steps, shape (n, n // 2 + 2, 3): up, each way to stay, and down."""
        steps = np.zeros((self.n, self.n // 2 + 2, 3))
        _program(self.n, float(self.theta), steps)
        return steps

    def rank_marginals(self) -> FloatArray:
        """Return rank marginals: how long an open item stays open."""
        self.check_can("rank_marginals")
        return np.minimum(_marginals(self._steps), 1.0)

    def sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders: a path, and at each step one of its ways."""
        self.check_can("sample")
        return _draw(self._steps, rng.random((size, self.n, 3)))

    def bucket_work(self, size: int) -> float:
        """Return about how many operations `bucket` takes."""
        return 150.0 * size * size

    def bucket(self, ranks: IntArray) -> Sums:
        """Add up over all orders of some items at the positions 0, 1, ...."""
        if len(ranks) == self.n:
            return self.sums
        return Sums(*_bucket_sums(ranks, float(self.theta)))


# ---- kernels: steps (n, n // 2 + 2, 3) ----------------------------------------------------------


@kernel
def _program(n: int, theta: float, steps: FloatArray) -> tuple[float, float, float]:
    """Return log-sum, mean and variance of the sum over all cuts, and fill in chances of steps.

    From the last step back, with the log of the weight of what may follow, which doubles could not
    hold, and its mean and variance. `steps` has no rows if it is not wanted.
    """
    size = n // 2 + 2
    rest, before = np.zeros((3, size)), np.zeros((3, size))
    rest[0, 1:] = -np.inf
    for t in range(n - 1, -1, -1):
        most, ratio = min(t, n - t), 1.0
        before[0] = -np.inf
        for k in range(most + 1):
            low, gap = k - 1 if k else 0, rest[0, k + 1] - rest[0, k]
            largest, lower = rest[0, k], ratio
            # One exponential per state, of the next one relative to this one, unless that is
            # beyond the range of doubles.
            if abs(gap) < 600.0 and lower > 0.0:
                ratio = np.exp(gap)
                up, stay, down = (k + 1.0) * ratio, 2.0 * k + 1.0, k / lower
            else:
                ratio = np.exp(gap) if abs(gap) < 600.0 else 0.0
                largest = max(rest[0, k], max(rest[0, k + 1], rest[0, low]))
                up = (k + 1.0) * np.exp(rest[0, k + 1] - largest)
                stay = (2.0 * k + 1.0) * np.exp(rest[0, k] - largest)
                down = k * np.exp(rest[0, low] - largest)
            total = up + stay + down
            up, stay, down = up / total, stay / total, down / total
            if len(steps):
                steps[t, k, 0], steps[t, k, 1], steps[t, k, 2] = up, stay / (2.0 * k + 1.0), down
            mean = up * rest[1, k + 1] + stay * rest[1, k] + down * rest[1, low]
            spread = up * (rest[2, k + 1] + (rest[1, k + 1] - mean) ** 2)
            spread += stay * (rest[2, k] + (rest[1, k] - mean) ** 2)
            spread += down * (rest[2, low] + (rest[1, low] - mean) ** 2)
            # The cut before this step has the weight of its own k.
            before[0, k] = largest + np.log(total) - 2.0 * theta * k
            before[1, k], before[2, k] = mean + k, spread
        rest, before = before, rest
    return rest[0, 0], rest[1, 0], rest[2, 0]


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


@kernel
def _bucket_sums(ranks: IntArray, theta: float) -> tuple[float, float, float]:
    """Return log-sum, mean and variance over all ways to put items into positions 0, 1, ....

    Go along the line: an item takes an open position or stays open, and so does a position. At a
    cut a items and b positions are open, each of which costs a unit of distance per unit of the
    line; a - b is the number of items passed less that of positions passed. `ranks`, shape
    (size,), ascend.
    """
    size = len(ranks)
    old, new = np.zeros((3, size + 2)), np.zeros((3, size + 2))
    old[0, 1:] = -np.inf
    items, positions, log = 0, 0, 0.0  # those passed
    while positions < size or items < size:
        before = items - positions
        is_item = items < size and (positions == size or ranks[items] <= positions)
        here = float(ranks[items] if is_item else positions)
        items, positions = items + is_item, positions + (not is_item)
        after = here
        if items < size and (positions == size or ranks[items] <= positions):
            after = float(ranks[items])
        elif positions < size:
            after = float(positions)
        excess, best = items - positions, -np.inf
        for a in range(size + 1):
            b = a - excess
            new[0, a] = -np.inf
            if b < 0 or b > size:
                continue
            # It stays open, or one of the open ones of the other kind is closed.
            stay, close = (a - 1, a) if is_item else (a, a + 1)
            ways = a - before if is_item else a + 1
            first = old[0, stay] if stay >= 0 and stay >= before else -np.inf
            second = -np.inf
            if close >= before and ways > 0 and close <= size:
                second = old[0, close] + np.log(ways)
            largest = max(first, second)
            if largest == -np.inf:
                continue
            total = np.exp(first - largest) + np.exp(second - largest)
            p, q = np.exp(first - largest) / total, np.exp(second - largest) / total
            stay = max(stay, 0)
            cost = (a + b) * (after - here)
            mean = p * old[1, stay] + q * old[1, close]
            spread = p * (old[2, stay] + (old[1, stay] - mean) ** 2)
            new[2, a] = spread + q * (old[2, close] + (old[1, close] - mean) ** 2)
            new[0, a] = largest + np.log(total) - theta * cost
            new[1, a] = mean + cost
            best = max(best, new[0, a])
        for a in range(size + 1):
            new[0, a] -= best
        log += best
        old, new = new, old
    return log + old[0, 0], old[1, 0], old[2, 0]
