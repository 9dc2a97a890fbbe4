"""Rules of voting that turn pairwise majorities into scores: Borda, Copeland, Schulze, ...

A higher score is better; equal scores are sorted by item number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.consensus.majorities import Majorities


def borda(majorities: Majorities, total: float) -> FloatArray:
    """Return Borda's points: one for every item below on every ballot, half for ties.

    A pair of which a ballot says nothing counts as a tie. On complete ballots without ties these
    are the usual points, n - 1 for the first place and 0 for the last one.

    Parameters
    ----------
    majorities : Majorities
    total : float
        The weight of all ballots.
    """
    n = majorities.n_items
    points: FloatArray = ((n - 1) * total + majorities.margins.sum(axis=1)) / 2.0
    return points


def copeland(majorities: Majorities) -> FloatArray:
    """Return how many other items each one beats by a majority; one half if it is even."""
    signs: FloatArray = np.sign(majorities.margins)
    return (majorities.n_items - 1 + signs.sum(axis=1)) / 2.0


def schulze(majorities: Majorities) -> FloatArray:
    """Return how many other items each one beats in Schulze's method (2011).

    The strength of a path is its smallest majority (as a margin), and i beats j if the strongest
    path from i to j is stronger than that from j to i. "Beats" is transitive, so an item has more
    points than all that it beats.
    """
    margins = majorities.margins
    strength = np.where(margins > 0.0, margins, 0.0)
    _widest_paths(strength)
    return (strength > strength.T).sum(axis=1).astype(np.float64)


def ranked_pairs(majorities: Majorities) -> FloatArray:
    """Return how many other items are below each one in Tideman's method of ranked pairs (1987).

    Majorities are fixed one after the other, from the largest margin, unless one would close a
    circle with those before; equal margins by the number of the winner, then of the loser.
    """
    margins = majorities.margins
    winners, losers = np.nonzero(margins > 0.0)
    order = np.argsort(-margins[winners, losers], kind="stable")
    below = np.eye(majorities.n_items, dtype=np.bool_)
    _fix_pairs(winners[order], losers[order], below)
    return below.sum(axis=1) - 1.0


@kernel
def _widest_paths(strength: FloatArray) -> None:
    """Replace the strength of each pair by that of its strongest path, shape (n, n)."""
    n = len(strength)
    for k in range(n):
        for i in range(n):
            first = strength[i, k]
            if i == k or first == 0.0:
                continue
            for j in range(n):
                if j != i:
                    strength[i, j] = max(strength[i, j], min(first, strength[k, j]))


@kernel
def _fix_pairs(winners: IntArray, losers: IntArray, below: BoolArray) -> None:
    """Fix pairs in turn; ``below[i, j]`` says whether j is i or below it."""
    n = len(below)
    for pair in range(len(winners)):
        one, two = winners[pair], losers[pair]
        if below[two, one] or below[one, two]:
            continue
        for i in range(n):
            if below[i, one]:
                for j in range(n):
                    below[i, j] |= below[two, j]
