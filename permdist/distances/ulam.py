"""Ulam's distance: the items that must be moved, n less the longest increasing subsequence.

Robinson, Schensted and Knuth: permutations are pairs of standard tableaux of one shape, a
partition of n, and the longest increasing subsequence is as long as its first row. The number of
tableaux of a shape is n! over the product of its hook lengths. With many items only the shapes
that matter are listed.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from permdist._kernels import kernel
from permdist.distances.base import ANY, Center, Distance, Sums
from permdist.rankings.sorting import copy
from permdist.sums.lattice import NotExactError
from permdist.targets.base import State, Target, compiled

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

MOST_SHAPES = 1_200_000  # all of 61 items
NEGLIGIBLE = 1e-17  # the share of all shapes that are left out, at most


class Ulam(Distance):
    """Ulam's distance; sums and draws are exact up to 61 items, or where theta is large.

    References
    ----------
    Irurozki, Calvo, Lozano: Sampling and learning the Mallows model under the Ulam distance (2014).
    """

    name = "ulam"
    limits: ClassVar = {
        "log_partition": ANY,
        "distance_distribution": ANY,
        "sample": ANY,
    }  # as far as shapes can be listed

    @classmethod
    def from_identity(cls, orders: IntArray) -> Any:
        """Return the distance of each order from 0, 1, ...."""
        return _distances(orders)

    @classmethod
    def largest(cls, n: int) -> float:
        """Return n - 1: one item stays."""
        return n - 1

    @cached_property
    def _farthest(self) -> int:
        """The largest distance that is not negligible."""
        n, counts = self.n, _count_shapes(self.n)
        if int(counts.sum()) <= MOST_SHAPES:
            return n - 1
        # There are at most C(n, d)^2 d! orders at distance d: choose items, their places, and
        # how they are placed. The order at distance 0 has weight 1.
        d = np.arange(n)
        choices = gammaln(n + 1.0) - gammaln(d + 1.0) - gammaln(n - d + 1.0)
        bounds = 2.0 * choices + gammaln(d + 1.0) - self.theta * d
        beyond = np.logaddexp.accumulate(bounds[::-1])[::-1]
        enough = np.flatnonzero(beyond < np.log(NEGLIGIBLE))
        farthest = int(enough[0]) - 1 if len(enough) else n - 1
        if counts[: farthest + 1].sum() > MOST_SHAPES:
            raise NotExactError(
                "log_partition: for ulam exact up to 61 items, or where theta is large, this one "
                f"has {n:,} and {self.theta:.4g}; draw with permdist.samplers.run_chains"
            )
        return farthest

    @property
    def _shapes(self) -> Shapes:
        """All shapes that matter."""
        return _shapes(self.n, int(_count_shapes(self.n)[: self._farthest + 1].sum()))

    @cached_property
    def sums(self) -> Sums:
        """The log of the sum of all weights, and mean and variance of the distance."""
        d = np.arange(self.n)
        logs = self._shapes.log_counts - self.theta * d
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        mean = float(shares @ d)
        return Sums(float(logsumexp(logs)), mean, float(shares @ (d - mean) ** 2))

    def distribution(self) -> FloatArray:
        """Return the probability of each distance."""
        shares = np.exp(self._shapes.log_counts - self.theta * np.arange(self.n))
        return shares / shares.sum()

    def sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders: a shape, two tableaux, and the algorithm backwards."""
        rows, logs, _ = self._shapes
        uniforms = rng.random((size, 1 + 2 * self.n))
        logs = 2.0 * logs - self.theta * (self.n - rows)
        bounds = np.cumsum(np.exp(logs - self.log_partition))
        chosen = np.searchsorted(bounds, uniforms[:, 0] * bounds[-1], side="right")
        listed, which = np.unique(np.minimum(chosen, len(bounds) - 1), return_inverse=True)
        return _draw(_shapes_at(self.n, listed), which, uniforms)

    def target(self, ranks: IntArray, **options: Any) -> Target:
        """Return the target of chains: the longest increasing subsequence is found anew."""
        options |= {"floats": self.n, "costs": (20.0 * self.n, 3.0)}
        return Center.target(ranks, np.array([self.theta]), _peek, _restore, **options)


class Shapes(NamedTuple):
    """Shapes of n cells: first rows, logs of the numbers of tableaux, and of orders by distance."""

    rows: IntArray
    logs: FloatArray
    log_counts: FloatArray


@lru_cache(maxsize=4)
def _shapes(n: int, number: int) -> Shapes:
    """List the first so many shapes, largest parts first; they do not depend on theta."""
    rows, logs = _list_shapes(n, number)
    counts = np.full(n, -np.inf)
    np.logaddexp.at(counts, n - rows, 2.0 * logs)
    return Shapes(rows, logs, counts)


@lru_cache(maxsize=16)
def _count_shapes(n: int) -> FloatArray:
    """Count the shapes of n cells by how many of them are below the first row."""
    # counts[d] with parts of at most m, for m = n - d: parts are added in ascending size.
    counts, found = np.zeros(n), np.zeros(n)
    counts[0] = 1.0
    with np.errstate(over="ignore"):
        for part in range(1, n + 1):
            for d in range(part, n):
                counts[d] += counts[d - part]
            found[n - part] = counts[n - part]
    return found


# ---- kernels ------------------------------------------------------------------------------------


@compiled
def _distance(order: IntArray, ranks: IntArray, swapped: int, tails: FloatArray) -> int:
    """Return n less the longest increasing subsequence of ranks along an order.

    Positions `swapped` and the next one are read in exchange; none is if it is negative. `tails`,
    scratch space, holds the smallest end of an increasing subsequence of each length.
    """
    n, length = len(order), 0
    for k in range(n):
        at = k
        if swapped >= 0 and k == swapped:
            at = k + 1
        elif swapped >= 0 and k == swapped + 1:
            at = k - 1
        value = ranks[order[at]]
        low, high = 0, length
        while low < high:
            middle = (low + high) // 2
            if tails[middle] < value:
                low = middle + 1
            else:
                high = middle
        tails[low] = value
        length = max(length, low + 1)
    return n - length


@kernel
def _distances(orders: IntArray) -> IntArray:
    """Return the distance of each order from the identity, orders (m, n)."""
    ranks, tails = np.arange(orders.shape[1]), np.empty(orders.shape[1])
    out = np.empty(len(orders), np.int64)
    for row in range(len(orders)):
        out[row] = _distance(orders[row], ranks, -1, tails)
    return out


@compiled
def _peek(center: Center, state: State, k: int) -> float:
    """Return the log-weight after a swap of positions k and k + 1."""
    return -center.costs[0] * _distance(state.order, center.ranks, k, state.floats)


@compiled
def _restore(center: Center, state: State) -> None:
    """Find the longest increasing subsequence."""
    state.value[0] = -center.costs[0] * _distance(state.order, center.ranks, -1, state.floats)


@kernel
def _next_shape(shape: IntArray, length: int) -> int:
    """Step to the next partition, largest parts first; return its number of parts, or 0."""
    ones, at = 0, length - 1
    while at >= 0 and shape[at] == 1:
        ones += 1
        at -= 1
    if at < 0:
        return 0
    shape[at] -= 1
    part, rest = shape[at], ones + 1
    at += 1
    while rest > 0:
        shape[at] = min(part, rest)
        rest -= shape[at]
        at += 1
    return at


@kernel
def _list_shapes(n: int, number: int) -> tuple[IntArray, FloatArray]:
    """First rows, and logs of the numbers of standard tableaux, of the first so many shapes."""
    rows, logs = np.empty(number, np.int64), np.empty(number)
    log = np.zeros(n + 1)
    total = 0.0
    for m in range(1, n + 1):
        log[m] = np.log(m)
        total += log[m]
    shape, columns = np.zeros(n, np.int64), np.zeros(n, np.int64)
    shape[0], length = n, 1
    for s in range(number):
        columns[: shape[0]] = 0
        for r in range(length):
            for c in range(shape[r]):
                columns[c] += 1
        hooks = 0.0
        for r in range(length):
            for c in range(shape[r]):
                hooks += log[shape[r] - c + columns[c] - r - 1]
        rows[s], logs[s] = shape[0], total - hooks
        length = _next_shape(shape, length)
    return rows, logs


@kernel
def _shapes_at(n: int, listed: IntArray) -> IntArray:
    """Return the shapes with given numbers, ascending, shape (len(listed), n)."""
    result = np.zeros((len(listed), n), np.int64)
    shape = np.zeros(n, np.int64)
    shape[0], length, s = n, 1, 0
    for row in range(len(listed)):
        while s < listed[row]:
            length = _next_shape(shape, length)
            s += 1
        copy(shape[:length], result[row])
    return result


@kernel
def _corner(shape: IntArray, cells: int, u: float) -> int:
    """Draw the row of the largest entry of a uniform standard tableau.

    A corner has the share of tableaux that are left without it: 1 / cells times the product of
    h / (h - 1) over the hook lengths h of its row and its column.
    """
    running, found = 0.0, 0
    for r in range(len(shape)):
        if shape[r] == 0:
            break
        below = shape[r + 1] if r + 1 < len(shape) else 0
        if below == shape[r]:
            continue
        found = r
        share = 1.0 / cells
        column = shape[r] - 1
        leg, under = 0, r
        for c in range(column):  # the row; legs get shorter to the right
            if c == 0:
                while under + 1 < len(shape) and shape[under + 1] > 0:
                    under += 1
            while under > r and shape[under] <= c:
                under -= 1
            leg = under - r
            hook = column - c + leg + 1.0
            share *= hook / (hook - 1.0)
        for a in range(r):  # the column
            hook = shape[a] - 1 - column + (r - a) + 1.0
            share *= hook / (hook - 1.0)
        running += share
        if u < running:
            return r
    return found


@kernel
def _draw(shapes: IntArray, which: IntArray, uniforms: FloatArray) -> IntArray:
    """Draw two tableaux and undo the insertions; which (draws,), uniforms (draws, 1 + 2 n)."""
    draws, n = len(which), shapes.shape[1]
    orders = np.empty((draws, n), np.int64)
    left = np.empty(n, np.int64)
    table = np.empty((n, n), np.int64)
    for row in range(draws):
        copy(shapes[which[row]], left)
        for value in range(n - 1, -1, -1):
            r = _corner(left, value + 1, uniforms[row, 1 + value])
            left[r] -= 1
            table[r, left[r]] = value
        copy(shapes[which[row]], left)
        for at in range(n - 1, -1, -1):
            r = _corner(left, at + 1, uniforms[row, 1 + n + at])
            left[r] -= 1
            value = table[r, left[r]]
            for above in range(r - 1, -1, -1):
                c = left[above] - 1  # the last entry that is smaller moves up
                while table[above, c] > value:
                    c -= 1
                table[above, c], value = value, table[above, c]
            orders[row, at] = value
    return orders
