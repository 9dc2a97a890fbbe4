"""Ballots as data of a posterior: drawn again, and as observed data."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._parallel import pointers
from permdist.ballots import Ballots, check_independent, levels_of
from permdist.rankings import order_to_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import IntArray


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


def no_ballots(n_items: int, names: Sequence[str] | None = None) -> Ballots:
    """Return no ballots about some items, from which the posterior is the prior.

    Parameters
    ----------
    n_items : int
    names : sequence of str, optional
    """
    one = Ballots.of(np.arange(n_items)[None, :], names=names)
    none = np.zeros(0, np.int64)
    start = np.zeros(1, np.int64)
    return dataclasses.replace(
        one,
        items=none,
        ptr=start,
        sizes=none,
        stages=start,
        signs=np.zeros(0),
        ballot=none,
        weights=np.zeros(0),
    )


def one_by_one(ballots: Ballots) -> Ballots:
    """Return ballots one by one that were counted together; see `Ballots.units`.

    Parameters
    ----------
    ballots : Ballots

    Examples
    --------
    >>> from permdist import Ballots
    >>> one_by_one(Ballots.from_orders([[0, 1], [1, 0]], weights=[2, 1])).items
    array([0, 1, 0, 1, 1, 0])
    """
    counts, unit = ballots.units()
    if (counts == 1).all():
        return ballots
    cast = np.repeat(np.arange(ballots.n_ballots), counts)
    first = np.searchsorted(ballots.ballot, np.arange(ballots.n_ballots + 1))
    each, records = _ranges(first[cast], first[cast + 1])
    _, entries = _ranges(ballots.ptr[records], ballots.ptr[records + 1])
    _, buckets = _ranges(ballots.stages[records], ballots.stages[records + 1])
    return dataclasses.replace(
        ballots,
        items=ballots.items[entries],
        ptr=pointers(np.diff(ballots.ptr)[records]),
        sizes=ballots.sizes[buckets],
        stages=pointers(np.diff(ballots.stages)[records]),
        signs=ballots.signs[records],
        ballot=each,
        weights=unit[cast],
        unit_weights=None,
        clusters=None if ballots.clusters is None else ballots.clusters[cast],
        times=None if ballots.times is None else ballots.times[cast],
        features=None if ballots.features is None else ballots.features[entries],
    )


def _ranges(begin: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
    """Return ranges one after the other, and the number of its range for each entry."""
    lengths = end - begin
    owner = np.repeat(np.arange(len(begin)), lengths)
    starts = pointers(lengths)[:-1]
    return owner, np.repeat(begin - starts, lengths) + np.arange(len(owner))


def read_ballots(data: Any, *, n_items: int | None, **options: Any) -> Ballots:
    """Return ballots from what a user gives; none of them from None.

    Parameters
    ----------
    data : object
    n_items : int or None
    **options
        Of `permdist.Ballots.of`.
    """
    if data is not None:
        ballots = Ballots.of(data, n_items=n_items, **options)
        check_independent(ballots, "a posterior")
        return ballots
    if n_items is None:
        raise TypeError("data: expected ballots, or n_items=... to draw from the prior")
    return no_ballots(n_items, options.get("names"))
