"""Ballots as data of a posterior: drawn again, and as observed data."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.ballots import levels_of
from permdist.rankings import order_to_ranks

if TYPE_CHECKING:
    from permdist._typing import IntArray
    from permdist.ballots import Ballots


def replicate_ballots(ballots: Ballots, orders: IntArray) -> Ballots:
    """Return what voters with full rankings would have cast instead of their ballots.

    Parameters
    ----------
    ballots : Ballots
        Each new ballot has the same alternatives and buckets of the same sizes, filled from the
        top of the voter's ranking.
    orders : array of int, shape (ballots, n)

    Examples
    --------
    >>> from permdist import Ballots
    >>> ballots = Ballots.from_orders([[2, 0], [1, [0, 2]]], n_items=3, subset=True)
    >>> new = replicate_ballots(ballots, np.array([[0, 1, 2], [2, 0, 1]]))
    >>> levels_of(new)
    array([[ 0, -1,  1],
           [ 1,  1,  0]])
    """
    ranks = order_to_ranks(np.asarray(orders))
    items = ballots.items.copy()
    rest = np.zeros(0, np.int64)  # what the last record did not choose
    for record, (row, sign) in enumerate(
        zip(ballots.ballot.tolist(), ballots.signs.tolist(), strict=True)
    ):
        here = slice(int(ballots.ptr[record]), int(ballots.ptr[record + 1]))
        second = record > 0 and row == int(ballots.ballot[record - 1]) and sign < 0.0
        there = rest if second else items[here]
        items[here] = there[np.argsort(sign * ranks[row, there], kind="stable")]
        chosen = int(ballots.sizes[ballots.stages[record] : ballots.stages[record + 1]].sum())
        rest = items[here][chosen:]
    return dataclasses.replace(ballots, items=items)


def observed_ballots(
    ballots: Ballots, levels: IntArray | None = None
) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Return ballots as variables of observed data: the level of each item, and the weights.

    Parameters
    ----------
    ballots : Ballots
    levels : array of int, shape (ballots, n), optional
        Of the ballots, where they are known already.
    """
    found = levels_of(ballots) if levels is None else levels
    levels_or_nan = np.where(found >= 0, found.astype(np.float64), np.nan)
    return {
        "level": (("observation", "item"), levels_or_nan),
        "weight": (("observation",), np.asarray(ballots.weights)),
    }
