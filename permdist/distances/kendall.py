"""Kendall's distance: the number of pairs of items that are in opposite order.

At stage k one of the n - k items that are left is placed. `V_k`, the number of items left that the
center ranks above it, has weight ``exp(-thetas[k] V_k)``, independently of all other stages, and
the sum of all `V_k` is the distance. With a theta per stage it is the generalized model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist.distances.base import ANSWERS, ANY, AdditiveDistance, Center, Sums
from permdist.distances.centers import Pairs
from permdist.distances.kendall_classes import class_sums, class_table_size, classes_of
from permdist.distances.levels import is_top
from permdist.distances.staged import StagedDistance
from permdist.rankings.sorting import copy, count_inversions, sort
from permdist.sums.shape import MAX_CELLS, Shape
from permdist.targets.base import State, Target, compiled

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

TINY = 1e-290  # quotients of smaller parameters would lose digits
NARROW = 1e-3  # below this range of log-weights a stage is drawn by inversion
CACHED = 16_384  # random numbers at a time, so that they stay in the cache
FULL = np.uint64(2**64 - 1)
# The place of the set bit number r of a byte, at entry 256 r + byte.
BITS = [[place for place in range(8) if byte >> place & 1] + [0] * 8 for byte in range(256)]
PLACES = np.array([bits[:8] for bits in BITS], dtype=np.uint64).T.ravel()


class Kendall(StagedDistance, AdditiveDistance):
    """Kendall's distance; everything is exact for any number of items.

    References
    ----------
    Fligner, Verducci: Distance based ranking models (1986); Multistage ranking models (1988).
    Fagin, Kumar, Mahdian, Sivakumar, Vee: Comparing and aggregating rankings with ties (2004).
    """

    name = "kendall"
    takes_ties = True
    quick = (150, 2000)
    limits: ClassVar = dict.fromkeys(ANSWERS, ANY) | {"distance_distribution": 1000}
    also_exact = ", those that place all items, and those with few gaps in the center"

    @classmethod
    def from_identity(cls, orders: IntArray) -> Any:
        """Return the distance of each order from 0, 1, ...."""
        return _inversions(orders)

    @classmethod
    def largest(cls, n: int) -> float:
        """Return the number of pairs."""
        return n * (n - 1) / 2

    @classmethod
    def between_ranks(cls, a: FloatArray, b: FloatArray, penalty: float) -> FloatArray:
        """Count discordant pairs, and those tied on one side with a penalty."""
        return _between_ties(a, b, penalty)

    @classmethod
    def center_statistic(cls, n: int) -> Pairs:
        """Return how often each item is above each other one."""
        del n
        return Pairs()

    @classmethod
    def best_center(cls, levels: IntArray, weights: FloatArray) -> tuple[IntArray, bool] | None:
        """Return a Kemeny order; from ballots that place all items it does not depend on theta."""
        return Pairs().best(Pairs().count(levels, weights)) if (levels >= 0).all() else None

    @classmethod
    def stages(cls, orders: IntArray) -> IntArray:
        """Return `V` of the first places, shape (m, k) for orders (m, k)."""
        result = orders.copy()
        for k in range(orders.shape[1]):
            result[:, k] -= (orders[:, :k] < orders[:, k : k + 1]).sum(axis=1)
        return result

    @classmethod
    def stage_sums(cls, thetas: FloatArray, left: FloatArray) -> Sums:
        """Return sums of geometric variables from 0 to left - 1, of any shape."""
        thetas = np.minimum(thetas, 700.0)  # exp(-700) makes no difference to 1
        tiny, narrow = thetas < TINY, left * thetas < 0.5
        usable = np.where(tiny, 1.0, thetas)
        logs = np.log(-np.expm1(-left * usable)) - np.log(-np.expm1(-usable))
        logs = np.where(tiny, np.log(left), logs)
        wide = np.where(narrow, 1.0, thetas)
        product = np.minimum(left * wide, 700.0)
        means = 1.0 / np.expm1(wide) - left / np.expm1(product)
        variances = 0.25 * (np.sinh(wide / 2.0) ** -2.0 - (left / np.sinh(product / 2.0)) ** 2)
        small = np.where(narrow, thetas, 0.0)  # series, since these differences would cancel
        series = (left - 1.0) / 2.0 + (_slope(small) - left * _slope(left * small))
        spread = left * left * _curvature(left * small) - _curvature(small)
        return Sums(logs, np.where(narrow, series, means), np.where(narrow, spread, variances))

    def step_costs(self, shape: Shape, ranks: IntArray) -> FloatArray:
        """Return how many better items are left beside the next one, shape (subsets, items)."""
        worse = ranks[:, None] > ranks[None, :]
        return shape.sum_pairs(worse.astype(np.float64))

    def step_weights(self, shape: Shape, ranks: IntArray) -> FloatArray:
        """Return the log-weight of each next item in each state."""
        placed = shape.counts.sum(axis=1)
        return -np.append(self.thetas, [0.0, 0.0])[placed][:, None] * self.step_costs(shape, ranks)

    def distribution(self) -> FloatArray:
        """Return the probability of each distance, by convolving the stages."""
        self.check_can("distance_distribution")
        return _convolve(np.exp(-self.thetas))

    def rank_marginals(self) -> FloatArray:
        """Return rank marginals: follow each item, and how many better ones are left."""
        return np.minimum(_marginals(self.thetas), 1.0)

    def pairwise(self) -> FloatArray:
        """Return pairwise chances: how many items are left above and between two."""
        n = self.n
        # With one parameter the items above a pair have no influence on it.
        ahead = _leads(self.thetas, 0 if self.is_plain else max(0, n - 2))
        i, j = np.triu_indices(n, 1)
        result = np.zeros((n, n))
        chances = np.minimum(ahead[0 if self.is_plain else i, j - i - 1], 1.0)
        result[i, j], result[j, i] = chances, 1.0 - chances
        return result

    def sample(self, size: int, rng: np.random.Generator) -> IntArray:
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

    # ---- ballots -----------------------------------------------------------------------------

    def agreeing_all(self, levels: IntArray) -> Sums:
        """Add up for each ballot, at once where all of them place all items."""
        if not (self.is_plain and (levels >= 0).all()):
            return super().agreeing_all(levels)
        # A pair in different buckets costs what it costs. Inside a bucket of s items the order is
        # that of a model with s items, whose stages are the last of this one.
        buckets, cost = _bucket_sizes(levels), _inversions(levels)
        inside = [np.append([0.0, 0.0], np.cumsum(field[::-1])) for field in self.by_stage]
        log, mean, variance = (buckets @ field for field in inside)
        theta = self.thetas.max(initial=0.0)  # that of all stages
        return Sums(log - theta * cost, mean + cost, variance)

    def _agreeing(self, levels: IntArray) -> Sums | None:
        if self.is_plain and (levels >= 0).all():
            return Sums(*(float(field[0]) for field in self.agreeing_all(levels[None])))
        return self._top(levels) or self._by_classes(levels) or super()._agreeing(levels)

    def work(self, levels: IntArray) -> float:
        """Return about how many elementary operations `agreeing` takes; infinite if not exact."""
        if (levels >= 0).all() and (self.is_plain or is_top(levels)):
            return 1e4  # the interpreter, more than anything
        there = np.flatnonzero(levels >= 0)
        inner = levels[there[0] : there[-1] + 1] if self.is_plain else levels
        cells = class_table_size(*classes_of(inner))
        return 20.0 * cells + 1e4 if cells <= MAX_CELLS else super().work(levels)

    def _by_classes(self, levels: IntArray) -> Sums | None:
        """Add up over the numbers of items placed of each run of equal levels."""
        outside = np.zeros(3)
        if self.is_plain:
            # Items above and below all those on the ballot have no influence.
            there = np.flatnonzero(levels >= 0)
            levels = levels[there[0] : there[-1] + 1]
            outside += [field[: self.n - len(levels)].sum() for field in self.by_stage]
        sizes, marks = classes_of(levels)
        if class_table_size(sizes, marks) > MAX_CELLS:
            return None
        thetas = np.append(self.thetas, 0.0)[: len(levels)]
        stages = thetas[: 1 if self.is_plain else None, None]
        table = np.stack(self.stage_sums(stages, np.arange(1.0, sizes.max() + 1.0)[None, :]))
        return Sums(*(outside + class_sums(sizes, marks, thetas, table)).tolist())

    # ---- chains ------------------------------------------------------------------------------

    def target(self, ranks: IntArray, **options: Any) -> Target:
        """Return the target of chains, which count the better items left at every position."""
        options |= {"integers": self.n, "swap": _swap}
        return Center.target(ranks, np.append(self.thetas, 0.0), _peek, _restore, **options)


def _slope(x: FloatArray) -> FloatArray:
    """1 / (exp(x) - 1) - 1 / x + 1 / 2 for x from 0 to 1/2."""
    coefficients = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)
    more = (-691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000)
    return np.asarray(x * np.polynomial.polynomial.polyval(x * x, coefficients + more))


def _curvature(x: FloatArray) -> FloatArray:
    """1 / x^2 - 1 / (2 sinh(x / 2))^2 for x from 0 to 1/2: the derivative of `_slope`."""
    coefficients = (1 / 12, -3 / 720, 5 / 30240, -7 / 1209600, 9 / 47900160)
    more = (-11 * 691 / 1307674368000, 13 / 74724249600, -15 * 3617 / 10670622842880000)
    return np.asarray(np.polynomial.polynomial.polyval(x * x, coefficients + more))


# ---- kernels: thetas (n - 1,), orders (m, n) ----------------------------------------------------


@kernel
def _inversions(orders: IntArray) -> IntArray:
    """Count the pairs of each row that are in descending order."""
    m, n = orders.shape
    values, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    out = np.empty(m, np.int64)
    for row in range(m):
        copy(orders[row], values)
        out[row] = count_inversions(values, spare, n)
    return out


@kernel
def _between_ties(a: FloatArray, b: FloatArray, penalty: float) -> FloatArray:
    """Count discordant pairs, and with a penalty those tied on one side, for mean ranks (m, n)."""
    m, n = a.shape
    values, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    keys = np.empty(n, np.int64)
    out = np.empty(m)
    for row in range(m):
        # Mean ranks are multiples of 1/2: doubled, they sort exactly as whole numbers.
        in_b = np.zeros(2 * n, np.int64)
        for i in range(n):
            doubled = int(2 * b[row, i])
            keys[i] = int(2 * a[row, i]) * 2 * n + doubled
            in_b[doubled] += 1
        sort(keys)
        in_a, both = 0, 0  # pairs tied in a, and in both
        same_a, same_both = 0, 0
        for i in range(n):
            values[i] = keys[i] % (2 * n)
            same_a = same_a + 1 if i and keys[i] // (2 * n) == keys[i - 1] // (2 * n) else 0
            same_both = same_both + 1 if i and keys[i] == keys[i - 1] else 0
            in_a += same_a
            both += same_both
        tied_b = 0
        for size in in_b:
            tied_b += size * (size - 1) // 2
        discordant = count_inversions(values, spare, n)
        out[row] = discordant + penalty * (in_a + tied_b - 2 * both)
    return out


@kernel
def _bucket_sizes(levels: IntArray) -> FloatArray:
    """Count the buckets of each size, shape (ballots, n + 1) for levels (ballots, n)."""
    ballots, n = levels.shape
    out, sizes = np.zeros((ballots, n + 1)), np.empty(n, np.int64)
    for row in range(ballots):
        sizes[:] = 0
        for i in range(n):
            sizes[levels[row, i]] += 1
        for level in range(n):
            out[row, sizes[level]] += 1.0
        out[row, 0] = 0.0
    return out


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


@compiled
def _peek(center: Center, state: State, k: int) -> float:
    """Return the log-weight after a swap of positions k and k + 1."""
    worse = center.ranks[state.order[k]] > center.ranks[state.order[k + 1]]
    upper, lower = state.integers[k], state.integers[k + 1]
    down = upper - 1 if worse else upper
    up = lower if worse else lower + 1
    return state.value[0] + (center.costs[k] * (upper - up) + center.costs[k + 1] * (lower - down))


@compiled
def _swap(center: Center, state: State, k: int, value: float) -> None:
    """Swap positions k and k + 1; the log-weight becomes `value`."""
    order, counts = state.order, state.integers
    worse = center.ranks[order[k]] > center.ranks[order[k + 1]]
    down = counts[k] - 1 if worse else counts[k]
    counts[k] = counts[k + 1] if worse else counts[k + 1] + 1
    counts[k + 1] = down
    order[k], order[k + 1] = order[k + 1], order[k]
    state.value[0] = value


@compiled
def _restore(center: Center, state: State) -> None:
    """Count the better items left at every position."""
    n, order = len(state.order), state.order
    value = 0.0
    for k in range(n):
        smaller = 0
        for later in range(k + 1, n):
            smaller += center.ranks[order[later]] < center.ranks[order[k]]
        state.integers[k] = smaller
        value -= center.costs[k] * smaller
    state.value[0] = value
