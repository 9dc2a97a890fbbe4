"""Kendall's distance, stage by stage: the engine of Mallows' model and the generalized one.

At stage k one of the n - k items that are left is placed. `V_k`, the number of items left that the
center ranks above it, has weight ``exp(-thetas[k] V_k)``, independently of all other stages, and
the sum of all `V_k` is the distance.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.sums.mallows import DistanceSums, Moments, refuse_distances

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

MOST_LISTED = 1000  # items, for the distribution of the distance
TINY = 1e-290  # quotients of smaller parameters would lose digits
NARROW = 1e-3  # below this range of log-weights a stage is drawn by inversion
CACHED = 16_384  # random numbers at a time, so that they stay in the cache
FULL = np.uint64(2**64 - 1)
# The place of the set bit number r of a byte, at entry 256 r + byte.
PLACES = np.array(
    [
        ([place for place in range(8) if byte >> place & 1] + [0] * 8)[r]
        for r in range(8)
        for byte in range(256)
    ],
    dtype=np.uint64,
)


class KendallSums(DistanceSums):
    """Sums over all orders with a parameter per stage.

    Parameters
    ----------
    thetas : array of float, shape (n - 1,)
        Non-negative.
    """

    has_marginals = True
    has_pairwise = True

    def __init__(self, thetas: FloatArray) -> None:
        self.n = len(thetas) + 1
        self.thetas = thetas
        self._left: FloatArray = np.arange(
            self.n, 1, -1, dtype=np.float64
        )  # at each stage but the last

    @property
    def log_partition(self) -> float:
        """The log of the sum of all weights: a product of geometric sums."""
        return float(self._stage_sums.sum())

    @cached_property
    def _stage_sums(self) -> FloatArray:
        return stage_sums(self.thetas, self._left)

    @cached_property
    def moments(self) -> Moments:
        """Sums of the moments of truncated geometric variables."""
        means, variances = self._stage_moments
        # A mean that is 0 in doubles belongs to a parameter above 700, of whatever size.
        energy = np.where(means > 1e-300, np.minimum(self.thetas, 1e9) * means, 0.0)
        return Moments(float(means.sum()), float(variances.sum()), float(energy.sum()))

    @property
    def stage_means(self) -> FloatArray:
        """The mean of `V` at each stage, shape (n - 1,)."""
        return self._stage_moments[0]

    @cached_property
    def _stage_moments(self) -> tuple[FloatArray, FloatArray]:
        return stage_moments(self.thetas, self._left)

    def distances(self) -> FloatArray:
        """Return the probability of each distance, by convolving the stages."""
        refuse_distances(self.n, MOST_LISTED)
        return _convolve(np.exp(-self.thetas))

    def rank_marginals(self) -> FloatArray:
        """Return rank marginals: follow each item, and how many better ones are left."""
        return np.minimum(_marginals(self.thetas), 1.0)

    def pairwise(self) -> FloatArray:
        """Return pairwise chances: how many items are left above and between two."""
        n = self.n
        same = bool((self.thetas == self.thetas[:1]).all())
        # With one parameter the items above a pair have no influence on it.
        ahead = _leads(self.thetas, 0 if same else max(0, n - 2))
        i, j = np.triu_indices(n, 1)
        result = np.zeros((n, n))
        chances = np.minimum(ahead[0 if same else i, j - i - 1], 1.0)
        result[i, j], result[j, i] = chances, 1.0 - chances
        return result

    def draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders stage by stage."""
        if not self.thetas.any():
            return rng.permuted(np.tile(np.arange(self.n), (size, 1)), axis=1)
        orders = np.empty((size, self.n), np.int64)
        rows = max(1, CACHED // self.n)
        times = np.empty((min(rows, size), self.n - 1))
        for start in range(0, size, rows):
            some = orders[start : start + rows]
            rng.standard_exponential(out=times[: len(some)])
            _draw(self.thetas, times, some)
        return orders

    def stage_total(self, orders: IntArray) -> FloatArray:
        """Add up thetas times `V` over the stages of each order, orders (rankings, n)."""
        return _stage_total(orders, self.thetas)


def stage_sums(thetas: FloatArray, left: FloatArray) -> FloatArray:
    """Return logs of geometric sums ``1 + ... + exp(-theta (left - 1))``, of any shape."""
    thetas = np.minimum(thetas, 700.0)  # exp(-700) makes no difference to 1
    tiny = thetas < TINY
    usable = np.where(tiny, 1.0, thetas)
    logs = np.log(-np.expm1(-left * usable)) - np.log(-np.expm1(-usable))
    return np.where(tiny, np.log(left), logs)


def stage_moments(thetas: FloatArray, left: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of geometric variables from 0 to left - 1, of any shape."""
    thetas = np.minimum(thetas, 700.0)
    narrow = left * thetas < 0.5
    wide = np.where(narrow, 1.0, thetas)
    product = np.minimum(left * wide, 700.0)
    means = 1.0 / np.expm1(wide) - left / np.expm1(product)
    variances = 0.25 * (np.sinh(wide / 2.0) ** -2.0 - (left / np.sinh(product / 2.0)) ** 2)
    small = np.where(narrow, thetas, 0.0)  # series, since these differences would cancel
    product = left * small
    series = (left - 1.0) / 2.0 + (_slope(small) - left * _slope(product))
    spread = left * left * _curvature(product) - _curvature(small)
    return np.where(narrow, series, means), np.where(narrow, spread, variances)


def _slope(x: FloatArray) -> FloatArray:
    """1 / (exp(x) - 1) - 1 / x + 1 / 2 for x from 0 to 1/2."""
    y = x * x
    coefficients = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)
    more = (-691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000)
    return np.asarray(x * np.polynomial.polynomial.polyval(y, coefficients + more))


def _curvature(x: FloatArray) -> FloatArray:
    """1 / x^2 - 1 / (2 sinh(x / 2))^2 for x from 0 to 1/2: the derivative of `_slope`."""
    y = x * x
    coefficients = (1 / 12, -3 / 720, 5 / 30240, -7 / 1209600, 9 / 47900160)
    more = (-11 * 691 / 1307674368000, 13 / 74724249600, -15 * 3617 / 10670622842880000)
    return np.asarray(np.polynomial.polynomial.polyval(y, coefficients + more))


# ---- kernels: thetas (n - 1,), orders (rankings, n) ---------------------------------------------


@kernel
def _draw(thetas: FloatArray, times: FloatArray, orders: IntArray) -> None:
    """Draw `V` of each stage, and place that item; times (draws, n - 1) are exponential.

    A geometric variable modulo m is a truncated one. Where the parameter is so small that this
    would cost digits, it is drawn by inversion. The items left, in the order of the center, are
    bits that are set, 64 of them in a word.
    """
    draws, n = orders.shape
    scales, narrow = np.empty(n), np.empty(n, np.bool_)
    for k in range(n - 1):
        narrow[k] = (n - k) * thetas[k] < NARROW
        scales[k] = np.expm1(-(n - k) * thetas[k]) if narrow[k] else 1.0 / thetas[k]
    words, counts = np.empty((n + 63) // 64, np.uint64), np.empty((n + 63) // 64, np.int64)
    for row in range(draws):
        for word in range(len(words)):
            words[word], counts[word] = FULL, 64
        counts[-1] = n - 64 * (len(words) - 1)
        first = 0
        for k in range(n):
            m, v = n - k, 0
            if m > 1:
                if narrow[k]:
                    share = -np.expm1(-times[row, k])
                    value = share * m
                    if thetas[k] > TINY:
                        value = -np.log1p(share * scales[k]) / thetas[k]
                else:
                    value = times[row, k] * scales[k]
                    if value >= m:
                        value -= m * np.floor(value / m)
                v = min(int(value), m - 1)
            while counts[first] == 0:
                first += 1
            at = first
            while v >= counts[at]:
                v -= counts[at]
                at += 1
            place = _set_bit(words[at], np.uint64(v))
            words[at] ^= np.uint64(1) << place
            counts[at] -= 1
            orders[row, k] = 64 * at + np.int64(place)


@kernel
def _set_bit(word: np.uint64, r: np.uint64) -> np.uint64:
    """Return the place of the set bit number r of a word, from 0, without a branch.

    Every byte of a word counts for itself: first its set bits, then those up to its end, then
    whether these are no more than r. The bytes of which this is true are before the one in
    question (Vigna, 2008).
    """
    each, high = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
    pairs, fours = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
    counts = word - ((word >> np.uint64(1)) & pairs)
    counts = (counts & fours) + ((counts >> np.uint64(2)) & fours)
    counts = (counts + (counts >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    counts *= each
    passed = (((r * each) | high) - counts) & high
    start = (((passed >> np.uint64(7)) * each) >> np.uint64(56)) << np.uint64(3)
    byte = (word >> start) & np.uint64(255)
    before = ((counts << np.uint64(8)) >> start) & np.uint64(255)
    return start + PLACES[np.int64(((r - before) << np.uint64(8)) | byte)]


@kernel
def _stage_total(orders: IntArray, thetas: FloatArray) -> FloatArray:
    """Add up thetas[k] V_k; a binary indexed tree counts the smaller items below each."""
    rankings, n = orders.shape
    out = np.zeros(rankings)
    tree = np.empty(n + 1, np.int64)
    for row in range(rankings):
        tree[:] = 0
        for k in range(n - 1, -1, -1):
            smaller, at = 0, orders[row, k]
            while at > 0:
                smaller += tree[at]
                at &= at - 1
            if smaller > 0:
                out[row] += thetas[k] * smaller
            at = orders[row, k] + 1
            while at <= n:
                tree[at] += 1
                at += at & -at
    return out


@kernel
def _convolve(ratios: FloatArray) -> FloatArray:
    """Return the distribution of the sum of truncated geometric variables, ratios (n - 1,).

    A window of m terms, whose weights fall by the ratio, is a part of a block of m terms and a
    part of the next: sums from the start and from the end of each block, and no subtraction.
    """
    n = len(ratios) + 1
    chances = np.zeros(n * (n - 1) // 2 + 1)
    chances[0] = 1.0
    ahead, behind = np.empty(len(chances)), np.empty(len(chances))
    largest = 0
    for k in range(n - 1):
        m, ratio = n - k, ratios[k]
        total, power = 0.0, 1.0
        for _ in range(m):
            total += power
            power *= ratio
        largest += m - 1
        for d in range(largest + 1):
            ahead[d] = chances[d] + (ratio * ahead[d - 1] if d % m else 0.0)
        power = ratio ** (m - 1 - largest % m)
        running = 0.0
        for d in range(largest, -1, -1):
            if d % m == m - 1:
                power, running = 1.0, 0.0
            running += power * chances[d]
            behind[d] = running
            power *= ratio
        power = ratio
        for d in range(largest + 1):
            into = d % m
            value = ahead[d]
            if into == 0:
                power = ratio
            if d >= m and into < m - 1:
                value += power * behind[d - m + 1]
            power *= ratio
            chances[d] = value / total
    return chances


@kernel
def _chances(
    theta: float, m: int, chance: FloatArray, below: FloatArray, after: FloatArray
) -> None:
    """Fill in the chances of v, of less than v and of at least v, for a stage with m items left."""
    total = 0.0
    for v in range(m):
        chance[v] = np.exp(-theta * v) if v else 1.0
        total += chance[v]
    running = 0.0
    for v in range(m):
        below[v] = running
        chance[v] /= total
        running += chance[v]
    running = 0.0
    after[m] = 0.0
    for v in range(m - 1, -1, -1):
        running += chance[v]
        after[v] = running


@kernel
def _marginals(thetas: FloatArray) -> FloatArray:
    """Follow the number of better items left beside each item, shape (n, n)."""
    n = len(thetas) + 1
    result = np.zeros((n, n))
    # state[i, a]: item i is left, and so are a better items.
    state = np.eye(n)
    chance, below, after = np.empty(n + 1), np.empty(n + 1), np.empty(n + 1)
    for k in range(n):
        m = n - k
        _chances(thetas[k] if k < n - 1 else 0.0, m, chance, below, after)
        for i in range(n):
            most = min(i, m - 1)
            for a in range(max(0, i - k), most + 1):
                here = state[i, a]
                if here == 0.0:
                    continue
                result[i, k] += here * chance[a]
                state[i, a] = here * after[a + 1]
                if a:
                    state[i, a - 1] += here * below[a]
    return result


@kernel
def _leads(thetas: FloatArray, most: int) -> FloatArray:
    """Return the chance that the upper of two items is placed first, entry [above, between].

    `above` items better than both are left, at most `most`, and `between` items between them.
    From the last stage back.
    """
    n = len(thetas) + 1
    ahead = np.zeros((most + 1, max(1, n - 1)))
    chance, below, after = np.empty(n + 1), np.empty(n + 1), np.empty(n + 1)
    for k in range(n - 2, -1, -1):
        m = n - k
        _chances(thetas[k], m, chance, below, after)
        for a in range(min(most, m - 2), -1, -1):
            for b in range(m - 2 - a, -1, -1):
                value = chance[a]
                if a:
                    value += below[a] * ahead[a - 1, b]
                if b:
                    value += (after[a + 1] - after[a + b + 1]) * ahead[a, b - 1]
                if a + b + 2 < m:
                    value += after[a + b + 2] * ahead[a, b]
                ahead[a, b] = value
    return ahead
