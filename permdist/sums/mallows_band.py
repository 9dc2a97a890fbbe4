"""Spearman's distance where theta is large: orders in which no item is far from its place.

If item i is at place j = i + m, m > b, then for every cut between the two some later item is at a
place above the cut. To exchange the two shortens the distance by 2 (j - p)(i' - i), where i' is
that item and p its place; for the cut in the middle both factors are at least about m / 2. Given i
and i', the exchange can be undone, so the probability that i is more than b places too low is at
most the sum of ``exp(-2 theta H g)`` over g = h, h + 1, ..., with h = (b + 2) // 2 and H =
(b + 3) // 2. The same holds upwards, and for each of n items: that is the bound used here.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._kernels import kernel
from permdist.sums.mallows import DistanceSums, Moments, refuse_distances

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

# At most so much probability is left out.
LEFT_OUT = 1e-13
LEAST_BAND, MOST_BAND = 2, 10
MOST_WORK = 2e10  # elementary operations


def left_out(n: int, theta: float, band: int) -> float:
    """Return a bound on the probability that some item is more than `band` from its place."""
    step = -2.0 * theta * ((band + 3) // 2)
    if step == 0.0:
        return np.inf
    return 2.0 * n * float(np.exp(step * ((band + 2) // 2)) / -np.expm1(step))


def band_for(n: int, theta: float) -> int | None:
    """Return the smallest band that leaves out little enough; None where it is too wide."""
    for band in range(LEAST_BAND, MOST_BAND + 1):
        if left_out(n, theta, band) <= LEFT_OUT:
            return band if _work(n, band) <= MOST_WORK else None
    return None


def least_theta(n: int) -> float:
    """Return about the smallest theta, of two digits, that has a band."""
    thetas = np.arange(0.1, 100.0, 0.01).tolist()
    return next((theta for theta in thetas if band_for(n, theta) is not None), np.inf)


def _work(n: int, band: int) -> float:
    return 10.0 * n * len(_windows(band)[0]) * (2 * band + 1)


class _Windows(NamedTuple):
    """The sets of items near a place that may be placed already, by bits, and their numbers."""

    masks: IntArray
    numbers: IntArray


@lru_cache(maxsize=4)
def _windows(band: int) -> _Windows:
    """List the states at a place: half of the `2 band` items around it are placed.

    Bit k stands for the item `band - k` places above. Items before the first count as placed.
    """
    every = np.arange(1 << (2 * band))
    counts = np.zeros_like(every)
    for k in range(2 * band):
        counts += every >> k & 1
    masks = every[counts == band]
    index = np.full(len(every), -1, dtype=np.int64)
    index[masks] = np.arange(len(masks))
    return _Windows(masks, index)


class BandSums(DistanceSums):
    """Sums over the orders in which no item is more than a band from its place.

    Parameters
    ----------
    n : int
        More than twice the band.
    theta : float
    band : int

    Attributes
    ----------
    bound : float
        The probability of all other orders is at most this.
    """

    has_marginals = True

    def __init__(self, n: int, theta: float, band: int) -> None:
        self.n, self.theta, self.band = n, theta, band
        self.bound = left_out(n, theta, band)
        self._costs = np.square(np.arange(-band, band + 1, dtype=np.float64))

    @property
    def _inputs(self) -> tuple[int, IntArray, IntArray, FloatArray]:
        weights = np.exp(-np.where(self._costs > 0.0, self.theta * self._costs, 0.0))
        return self.n, *_windows(self.band), weights

    @cached_property
    def _sums(self) -> tuple[float, float, float]:
        return _moments(*self._inputs, self._costs)

    @property
    def log_partition(self) -> float:
        """The log of the sum of all weights, too small by `bound` at most."""
        return self._sums[0]

    @property
    def moments(self) -> Moments:
        """Moments from the program over places."""
        _, mean, variance = self._sums
        energy = min(self.theta, 1e9) * mean if mean > 0.0 else 0.0
        return Moments(mean, variance, energy)

    @cached_property
    def _rest(self) -> FloatArray:
        """What may follow each state, up to a factor per place, shape (n + 1, states)."""
        return _backward(*self._inputs)

    def rank_marginals(self) -> FloatArray:
        """Return rank marginals: 0 outside the band."""
        return np.minimum(_marginals(*self._inputs, self._rest), 1.0)

    def distances(self) -> FloatArray:
        """Refuse: there are too many distances."""
        refuse_distances(self.n, 0)
        return np.zeros(0)

    def draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders from the first place down."""
        n, _, index, weights = self._inputs
        return _draw(n, index, weights, self._rest, rng.random((size, n)))


# ---- kernels: masks (states,), index (2^(2 band),), weights (2 band + 1,) by displacement ------


@kernel
def _next(mask: int, k: int, band: int, place: int, n: int) -> int:
    """Return the mask at the next place if the item of bit k is put at this one; -1 if it cannot.

    Bit k is item ``place - band + k``. The item that leaves the window must have been placed.
    """
    item = place - band + k
    if item < 0 or item >= n or (k < 2 * band and mask >> k & 1):
        return -1
    mask |= 1 << k
    return mask >> 1 if mask & 1 else -1


@kernel
def _moments(
    n: int, masks: IntArray, index: IntArray, weights: FloatArray, costs: FloatArray
) -> tuple[float, float, float]:
    """Log of the sum, mean and variance of the distance; costs (2 band + 1,)."""
    states, band = len(masks), (len(weights) - 1) // 2
    # Weight, and weight times mean and second moment about the running mean.
    old, new = np.zeros((3, states)), np.zeros((3, states))
    old[0, index[(1 << band) - 1]] = 1.0
    log, center = 0.0, 0.0
    for place in range(n):
        new[:] = 0.0
        for s in range(states):
            w = old[0, s]
            if w == 0.0:
                continue
            for k in range(2 * band + 1):
                if weights[k] == 0.0:
                    continue
                mask = _next(masks[s], k, band, place, n)
                if mask < 0:
                    continue
                to, c = index[mask], costs[k]
                new[0, to] += weights[k] * w
                new[1, to] += weights[k] * (old[1, s] + c * w)
                new[2, to] += weights[k] * (old[2, s] + 2.0 * c * old[1, s] + c * c * w)
        total = new[0].sum()
        shift = new[1].sum() / total
        # Keep moments about the mean of the distance so far, which does not cancel.
        for s in range(states):
            new[0, s] /= total
            new[1, s] /= total
            new[2, s] = new[2, s] / total - 2.0 * shift * new[1, s] + shift * shift * new[0, s]
            new[1, s] -= shift * new[0, s]
        center += shift
        log += np.log(total)
        old, new = new, old
    # All items are placed: one state is left that has no item beyond the last.
    end = index[(1 << band) - 1]
    weight = old[0, end]
    mean = old[1, end] / weight
    return log + np.log(weight), center + mean, old[2, end] / weight - mean * mean


@kernel
def _backward(n: int, masks: IntArray, index: IntArray, weights: FloatArray) -> FloatArray:
    """Add up what may follow, from the last place back; rows have a maximum of 1."""
    states, band = len(masks), (len(weights) - 1) // 2
    rest = np.zeros((n + 1, states))
    rest[n, index[(1 << band) - 1]] = 1.0
    for place in range(n - 1, -1, -1):
        best = 0.0
        for s in range(states):
            total = 0.0
            for k in range(2 * band + 1):
                mask = _next(masks[s], k, band, place, n)
                if mask >= 0:
                    total += weights[k] * rest[place + 1, index[mask]]
            rest[place, s] = total
            best = max(best, total)
        rest[place] /= best
    return rest


@kernel
def _marginals(
    n: int, masks: IntArray, index: IntArray, weights: FloatArray, rest: FloatArray
) -> FloatArray:
    """Probability of each position for each item, from chances of states going forward."""
    states, band = len(masks), (len(weights) - 1) // 2
    result = np.zeros((n, n))
    chances, after = np.zeros(states), np.zeros(states)
    chances[index[(1 << band) - 1]] = 1.0
    steps = np.empty(2 * band + 1)
    for place in range(n):
        after[:] = 0.0
        for s in range(states):
            if chances[s] == 0.0:
                continue
            total = 0.0
            for k in range(2 * band + 1):
                mask = _next(masks[s], k, band, place, n)
                steps[k] = weights[k] * rest[place + 1, index[mask]] if mask >= 0 else 0.0
                total += steps[k]
            if total == 0.0:
                continue
            for k in range(2 * band + 1):
                if steps[k] > 0.0:
                    chance = chances[s] * steps[k] / total
                    result[place - band + k, place] += chance
                    after[index[_next(masks[s], k, band, place, n)]] += chance
        chances, after = after, chances
    return result


@kernel
def _draw(
    n: int,
    index: IntArray,
    weights: FloatArray,
    rest: FloatArray,
    uniforms: FloatArray,
) -> IntArray:
    """Walk from the first place to the last, uniforms (draws, n)."""
    band = (len(weights) - 1) // 2
    orders = np.empty((len(uniforms), n), np.int64)
    steps = np.empty(2 * band + 1)
    for row in range(len(uniforms)):
        mask = (1 << band) - 1
        for place in range(n):
            total, last = 0.0, 0
            for k in range(2 * band + 1):
                to = _next(mask, k, band, place, n)
                steps[k] = weights[k] * rest[place + 1, index[to]] if to >= 0 else 0.0
                total += steps[k]
                if steps[k] > 0.0:
                    last = k
            share, k = uniforms[row, place] * total, 0
            while k < last and share >= steps[k]:
                share -= steps[k]
                k += 1
            orders[row, place] = place - band + k
            mask = _next(mask, k, band, place, n)
    return orders
