"""What a ballot says about the order of the items, as one level per item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._parallel import rows_of

if TYPE_CHECKING:
    from permdist._typing import IntArray
    from permdist.ballots.ballots import Ballots


def levels_of(ballots: Ballots) -> IntArray:
    """Return the level of every item on every ballot, shape (ballots, n).

    An item is above all items of higher levels. Items of one level are tied, or both below all
    that were chosen: the ballot does not say which one is above. Items that are not on a ballot
    have level -1. Levels are 0, 1, ... without gaps.

    Examples
    --------
    >>> from permdist import Ballots
    >>> levels_of(Ballots.from_orders([[2, [0, 3]], [1, 0]], n_items=4, subset=True))
    array([[ 1, -1,  0,  1],
           [ 1,  0, -1, -1]])
    >>> levels_of(Ballots.from_best_worst([0], [2], [[0, 1, 2, 3]]))
    array([[0, 1, 2, 1]])
    """
    owner, bucket = rows_of(ballots.ptr), ballots.bucket_of_entry()
    buckets = np.diff(ballots.stages)
    place = np.where(bucket < 0, buckets[owner], bucket - ballots.stages[owner])
    # Where the worst was chosen, levels count from the other end; its record comes after that of
    # the best, whose items that were not chosen it is about.
    turned = ballots.signs < 0
    second = turned & (np.diff(ballots.ballot, prepend=-1) == 0)
    base = np.where(second, np.roll(buckets, 1), 0)
    place = np.where(turned[owner], (base + buckets)[owner] - place, place)
    result = np.full((ballots.n_ballots, ballots.n_items), -1, dtype=np.int64)
    result[ballots.ballot[owner], ballots.items] = place
    for row in np.unique(ballots.ballot[turned]):
        there = result[row] >= 0
        result[row, there] = np.unique(result[row, there], return_inverse=True)[1]
    return result
