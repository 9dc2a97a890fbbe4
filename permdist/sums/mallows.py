"""What the engines of Mallows' models have in common: one per distance, about the identity.

Items are numbered as the center ranks them, so that the distance of an order is its distance from
0, 1, ..., n - 1. An engine knows the weights of all orders for given parameters, and what they add
up to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist.sums.lattice import NotExactError

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray


class Moments(NamedTuple):
    """Mean and variance of the distance, and the mean of minus the log-weight."""

    mean: float
    variance: float
    energy: float


class DistanceSums(ABC):
    """Exact sums over all orders, weighted by ``exp(-theta d)``.

    Attributes
    ----------
    n : int
        The number of items.
    """

    n: int

    @property
    @abstractmethod
    def log_partition(self) -> float:
        """The log of the sum of all weights."""

    @property
    @abstractmethod
    def moments(self) -> Moments:
        """Mean and variance of the distance, and the mean of minus the log-weight."""

    @abstractmethod
    def distances(self) -> FloatArray:
        """Return the probability of each distance from 0 to the largest."""

    @abstractmethod
    def draw(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders, shape (size, n)."""

    def rank_marginals(self) -> FloatArray | None:
        """Return the probability of each position for each item; None if not known this way."""
        return None

    def pairwise(self) -> FloatArray | None:
        """Return the probability that one item is above another; None if not known this way."""
        return None

    has_marginals = False
    has_pairwise = False


def refuse_distances(n: int, most: int) -> None:
    """Raise where the distribution of the distance would take too long."""
    if n > most:
        raise NotExactError(
            f"distance_distribution: exact up to {most:,} items for this distance, this "
            f"distribution has {n:,}; draw orders and count their distances"
        )


def exchangeable(
    n: int, both: float, swapped: float, one: float, chain: float, apart: float
) -> FloatArray:
    """Return pairwise chances of permutations whose weight depends on their cycles only.

    Parameters
    ----------
    n : int
    both : float
        The probability that two given items both stay.
    swapped : float
        That they change places.
    one : float
        That the first stays and the second goes to a given third place.
    chain : float
        That the first goes to the place of the second, and the second to a given third place.
    apart : float
        That they go to two given other places.

    Returns
    -------
    array of float, shape (n, n)
    """
    # For i < j: who stays, or goes where, so that i is above j.
    i, j = np.arange(n)[:, None], np.arange(n)[None, :]
    above = both + one * ((n - 2 - i) + (j - 1)) + chain * ((n - 1 - j) + i)
    above = above + apart * (n - 2) * (n - 3) / 2.0
    below = swapped + one * (i + (n - 1 - j)) + chain * ((j - 1) + (n - 2 - i))
    below = below + apart * (n - 2) * (n - 3) / 2.0
    result = np.triu(above, 1) + np.triu(below, 1).T
    return np.minimum(result, 1.0)
