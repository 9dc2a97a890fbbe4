"""Ulam's distance: the engine of Mallows' model.

Robinson, Schensted and Knuth: permutations are pairs of standard tableaux of one shape, a
partition of n, and the longest increasing subsequence is as long as its first row. The number of
tableaux of a shape is n! over the product of its hook lengths. With many items only the shapes
that matter are listed.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, logsumexp

from permdist._kernels import kernel
from permdist.rankings.sorting import copy
from permdist.sums.lattice import NotExactError
from permdist.sums.mallows import DistanceSums, Moments

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

MOST_SHAPES = 1_200_000  # all of 61 items
NEGLIGIBLE = 1e-17  # the share of all shapes that are left out, at most


class UlamSums(DistanceSums):
    """Sums over all orders.

    Parameters
    ----------
    n : int
    theta : float
        Non-negative.
    """

    def __init__(self, n: int, theta: float) -> None:
        self.n, self.theta = n, theta

    @cached_property
    def _farthest(self) -> int:
        """The largest distance that is not negligible."""
        n = self.n
        if int(_count_shapes(n).sum()) <= MOST_SHAPES:
            return n - 1
        # There are at most C(n, d)^2 d! orders at distance d: choose items, their places, and
        # how they are placed. The order at distance 0 has weight 1.
        d = np.arange(n)
        choices = gammaln(n + 1.0) - gammaln(d + 1.0) - gammaln(n - d + 1.0)
        bounds = 2.0 * choices + gammaln(d + 1.0) - np.where(d > 0, self.theta * d, 0.0)
        beyond = np.logaddexp.accumulate(bounds[::-1])[::-1]
        enough = np.flatnonzero(beyond < np.log(NEGLIGIBLE))
        needed = int(enough[0]) - 1 if len(enough) else n - 1
        if _count_shapes(n)[: needed + 1].sum() > MOST_SHAPES:
            raise NotExactError(
                f"Ulam's distance: exact up to 61 items, or where theta is large, this "
                f"distribution has {n:,} and theta = {self.theta:.4g}; draw with "
                "permdist.samplers.run_chains"
            )
        return needed

    @cached_property
    def _logs(self) -> FloatArray:
        """The log-weights of all shapes that matter."""
        rows, logs = _shapes(self.n, self._farthest)
        moved = self.n - rows
        return 2.0 * logs - np.where(moved > 0, self.theta * moved, 0.0)

    @cached_property
    def log_partition(self) -> float:
        """The log of the sum of all weights."""
        return float(logsumexp(self._logs))

    @cached_property
    def moments(self) -> Moments:
        """Moments of the distance, from its distribution."""
        chances, d = self.distances(), np.arange(self.n)
        mean = float(chances @ d)
        variance = float(chances @ (d - mean) ** 2)
        return Moments(mean, variance, min(self.theta, 1e9) * mean if mean > 0.0 else 0.0)

    def distances(self) -> FloatArray:
        """Return the probability of each distance."""
        rows = _shapes(self.n, self._farthest)[0]
        chances = np.exp(self._logs - self.log_partition)
        result = np.bincount(self.n - rows, weights=chances, minlength=self.n)
        return result / result.sum()

    @cached_property
    def _cumulative(self) -> FloatArray:
        return np.cumsum(np.exp(self._logs - self.log_partition))

    def draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders: a shape, two tableaux, and the algorithm backwards."""
        bounds, uniforms = self._cumulative, rng.random((size, 1 + 2 * self.n))
        chosen = np.searchsorted(bounds, uniforms[:, 0] * bounds[-1], side="right")
        listed, which = np.unique(np.minimum(chosen, len(bounds) - 1), return_inverse=True)
        shapes = _shapes_at(self.n, listed)
        return _draw(shapes, which, uniforms)


@lru_cache(maxsize=4)
def _shapes(n: int, farthest: int) -> tuple[IntArray, FloatArray]:
    """List first rows and logs of the numbers of tableaux of all shapes that matter."""
    number = int(_count_shapes(n)[: farthest + 1].sum())
    rows, logs = _list_shapes(n, number)
    rows.flags.writeable = logs.flags.writeable = False
    return rows, logs


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
