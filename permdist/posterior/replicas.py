"""Ballots drawn from a model on the alternatives of given ballots."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from permdist._parallel import bounds, pointers, rows_of
from permdist.sums import davidson_draws

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray
    from permdist.ballots import Ballots
    from permdist.inference.likelihood import Likelihood


def replicated(likelihood: Likelihood, parameters: FloatArray, rng: np.random.Generator) -> Ballots:
    """Draw ballots like those of a likelihood.

    Parameters
    ----------
    likelihood : Likelihood
        Of the ballots to be replaced.
    parameters : array of float, shape (p,)
    rng : Generator

    Returns
    -------
    Ballots
        One by one; see `Ballots.units`.
    """
    utilities = likelihood.utilities(parameters)
    _, _, deltas = likelihood.split(parameters)
    data, entries = repeated(likelihood.ballots)
    here = utilities[entries]
    if len(deltas) < 3:
        return _by_keys(data, here + rng.gumbel(size=len(here)))
    return _replaced(data, _tied_ranks(here, deltas, data.ptr, rng), rng)


def reordered(ballots: Ballots, keys: Callable[[IntArray], FloatArray]) -> Ballots:
    """Draw ballots from noisy utilities.

    Parameters
    ----------
    ballots : Ballots
    keys : callable
        Returns a utility with its noise for each of these items.
    """
    data, _ = repeated(ballots)
    return _by_keys(data, keys(data.items) * data.signs[rows_of(data.ptr)])


def repeated(data: Ballots) -> tuple[Ballots, IntArray]:
    """Return ballots one by one that were counted together; see `Ballots.units`.

    Parameters
    ----------
    data : Ballots

    Returns
    -------
    ballots : Ballots
    entries : array of int
        Which of `data.items` each entry was.
    """
    counts, unit = data.units()
    ballots = np.repeat(np.arange(data.n_ballots), counts)
    # The records of each copy of a ballot, one copy after the other.
    first = np.searchsorted(data.ballot, np.arange(data.n_ballots + 1))
    sizes = np.diff(first)[ballots]
    records = _spans(first[ballots], sizes)
    lengths, stages = np.diff(data.ptr)[records], np.diff(data.stages)[records]
    entries = _spans(data.ptr[records], lengths)
    return dataclasses.replace(
        data,
        items=data.items[entries],
        ptr=pointers(lengths),
        sizes=data.sizes[_spans(data.stages[records], stages)],
        stages=pointers(stages),
        signs=data.signs[records],
        ballot=np.repeat(np.arange(len(ballots)), sizes),
        weights=unit[ballots],
        unit_weights=None,
        clusters=None if data.clusters is None else data.clusters[ballots],
        times=None if data.times is None else data.times[ballots],
        features=None if data.features is None else data.features[entries],
    ), entries


def _spans(starts: IntArray, lengths: IntArray) -> IntArray:
    """Return the numbers of ranges, one range after the other."""
    return np.repeat(starts - pointers(lengths)[:-1], lengths) + np.arange(int(lengths.sum()))


def _by_keys(data: Ballots, keys: FloatArray) -> Ballots:
    """Sort the alternatives of each record by keys, the highest first; stages stay as they are."""
    order = np.lexsort([-keys, rows_of(data.ptr)])
    features = None if data.features is None else data.features[order]
    return dataclasses.replace(data, items=data.items[order], features=features)


def _replaced(data: Ballots, ranks: IntArray, rng: np.random.Generator) -> Ballots:
    """Return ballots with other buckets: as many stages, or all where all were ranked."""
    rows, lengths = rows_of(data.ptr), np.diff(data.ptr)
    chosen = np.bincount(rows_of(data.stages), data.sizes, len(lengths))
    endless = np.iinfo(np.int64).max
    most = np.where(chosen >= lengths - 1, endless, np.diff(data.stages))
    order = np.lexsort([rng.random(len(ranks)), ranks, rows])
    kept = (ranks < most[rows])[order]
    width = int(lengths.max()) + 1
    keys, sizes = np.unique((rows * width + ranks)[order][kept], return_counts=True)
    return dataclasses.replace(
        data,
        items=data.items[order],
        sizes=sizes,
        stages=pointers(np.bincount(keys // width, minlength=len(lengths))),
        features=None if data.features is None else data.features[order],
    )


def _tied_ranks(
    utilities: FloatArray, deltas: FloatArray, ptr: IntArray, rng: np.random.Generator
) -> IntArray:
    """Return the number of each alternative's bucket, with ties of the given prevalence."""
    with np.errstate(divide="ignore"):
        ties = np.log(deltas[1:])
    if (np.diff(ptr) == 2).all() and len(ptr) > 1:
        return _battle_ranks(utilities.reshape(-1, 2), float(ties[1]), rng)
    result = np.empty(len(utilities), dtype=np.int64)
    for a, b in bounds(ptr):
        scores = utilities[a:b] - utilities[a:b].max()
        largest = min(len(ties), b - a)
        tree, logs = davidson_draws.tree_of(scores, largest)
        uniforms = rng.random((1, b - a))
        ranks, _ = davidson_draws.draw(tree, logs, scores, ties[:largest], uniforms)
        result[a:b] = ranks[0]
    return result


def _battle_ranks(utilities: FloatArray, tie: float, rng: np.random.Generator) -> IntArray:
    """Return the numbers of the buckets of two alternatives each, all ballots at once."""
    first, second = utilities.T
    logs = np.stack([first, second, tie + 0.5 * (first + second)])
    chances = np.exp(logs - logs.max(axis=0))
    chances /= chances.sum(axis=0)
    drawn = rng.random(len(utilities))
    won, lost = drawn < chances[0], drawn >= 1.0 - chances[1]
    return np.column_stack([lost & ~won, won]).astype(np.int64).ravel()
