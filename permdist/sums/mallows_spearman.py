"""Spearman's distance, the sum of squared displacements: sums over subsets of a few items."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel
from permdist.sums.lattice import Lattice, NotExactError
from permdist.sums.mallows import DistanceSums, Moments, refuse_distances
from permdist.sums.shape import Shape, fits

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

MOST_LISTED = 14  # items, for the distribution of the distance


class SpearmanSums(DistanceSums):
    """Sums over all orders.

    Parameters
    ----------
    n : int
    theta : float
        Non-negative.
    """

    def __init__(self, n: int, theta: float) -> None:
        self.n, self.theta = n, theta
        self.has_pairwise = fits(n)
        self._other = UniformSums(n) if theta == 0.0 and not fits(n) else None
        self.has_marginals = fits(n) or self._other is not None

    @property
    def _squares(self) -> FloatArray:
        return np.square(np.arange(self.n, dtype=np.float64))

    @cached_property
    def _lattice(self) -> Lattice:
        if not fits(self.n):
            limit = next(n for n in range(40, 0, -1) if fits(n))
            raise NotExactError(
                f"Spearman's distance: exact up to {limit} items, this distribution has "
                f"{self.n:,}; draw with permdist.samplers.run_chains, and estimate the "
                "log-partition function with permdist.samplers.estimate_log_partition"
            )
        shape = Shape.of_orders(self.n)
        table = -self.theta * self._squares
        return Lattice(shape, displacement_weights(shape, np.arange(self.n), table))

    @property
    def log_partition(self) -> float:
        """The log of the sum of all weights."""
        return self._lattice.log_partition if self._other is None else self._other.log_partition

    @cached_property
    def moments(self) -> Moments:
        """Moments from the probabilities of all steps and their slopes."""
        if self._other is not None:
            return self._other.moments
        lattice = self._lattice
        squares = displacement_weights(lattice.shape, np.arange(self.n), self._squares)
        squares[np.isinf(squares)] = 0.0
        mean = lattice.expect(squares)
        variance = float(np.sum(lattice.expect_gradient(squares) * squares))
        energy = min(self.theta, 1e9) * mean if mean > 0.0 else 0.0
        return Moments(mean, max(0.0, variance), energy)

    def distances(self) -> FloatArray:
        """Return the probability of each distance; odd ones do not occur."""
        n = self.n
        refuse_distances(n, MOST_LISTED)
        halves = _half_distances(n, self.theta)
        result = np.zeros(2 * len(halves) - 1)
        result[::2] = halves / halves.sum()
        return result

    def rank_marginals(self) -> FloatArray | None:
        """Return rank marginals from the probabilities of all steps."""
        return (self._lattice if self._other is None else self._other).rank_marginals()

    def pairwise(self) -> FloatArray:
        """Return pairwise chances from the probabilities of all steps."""
        return self._lattice.pairwise()

    def draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders by a walk back through the subsets."""
        if self._other is not None:
            return self._other.draw(size, rng)
        return self._lattice.sample(size, rng)


class UniformSums(DistanceSums):
    """Sums over all orders of any number of items with theta 0.

    Parameters
    ----------
    n : int
    """

    has_marginals = True

    def __init__(self, n: int) -> None:
        self.n = n

    @property
    def log_partition(self) -> float:
        """The log of the number of orders."""
        return math.lgamma(self.n + 1.0)

    @property
    def moments(self) -> Moments:
        """Moments of Spearman's distance between random orders."""
        n = float(self.n)
        return Moments(n * (n * n - 1) / 6.0, n * n * (n - 1.0) * (n + 1.0) ** 2 / 36.0, 0.0)

    def distances(self) -> FloatArray:
        """Refuse: there are too many distances."""
        refuse_distances(self.n, 0)
        return np.zeros(0)

    def rank_marginals(self) -> FloatArray:
        """Return rank marginals: all are equal."""
        return np.full((self.n, self.n), 1.0 / self.n)

    def draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw random orders."""
        return rng.permuted(np.tile(np.arange(self.n), (size, 1)), axis=1)


def displacement_weights(shape: Shape, ranks: IntArray, table: FloatArray) -> FloatArray:
    """Return log-weights that depend on how far the next item is from its own place.

    Parameters
    ----------
    shape : Shape
        Of all orders.
    ranks : array of int, shape (n,)
        The place of each item in the center.
    table : array of float, shape (n,)
        The log-weight of each displacement.

    Returns
    -------
    array of float, shape (states, n)
        -inf for items that are placed already.
    """
    inputs = shape.n_states, ranks[shape.items], table
    return _displacement_weights(*inputs)


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def _displacement_weights(states: int, ranks: IntArray, table: FloatArray) -> FloatArray:
    """Look up the weight of each next item; the bits of a state are the items placed."""
    n = len(ranks)
    result = np.empty((states, n))
    for state in range(states):
        position, rest = 0, state
        while rest:
            rest &= rest - 1
            position += 1
        for c in range(n):
            placed = state >> c & 1
            result[state, c] = -np.inf if placed else table[abs(ranks[c] - position)]
    return result


@kernel
def _half_distances(n: int, theta: float) -> FloatArray:
    """Distribution of half the distance, up to a factor: subsets of items at the first places.

    Odd squares come in pairs: a displacement of x counts as (x^2 + x) / 2, signed, whose linear
    part adds up to 0 in the end and is never negative on the way.
    """
    length = n * (n * n - 1) // 6 + 1
    table = np.zeros((1 << n, length))
    table[0, 0] = 1.0
    for state in range(1 << n):
        position, rest = 0, state
        while rest:
            rest &= rest - 1
            position += 1
        for item in range(n):
            if state >> item & 1:
                continue
            move = item - position
            step = (move * move + move) // 2
            weight = np.exp(-theta * (move * move)) if move else 1.0
            to = state | 1 << item
            for s in range(length - step):
                if table[state, s] > 0.0:
                    table[to, s + step] += weight * table[state, s]
    return table[(1 << n) - 1].copy()
