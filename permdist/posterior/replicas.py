"""Ballots drawn from a model on the alternatives of given ballots."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from permdist._ragged import pointers, rows_of
from permdist.sums import davidson_draws

if TYPE_CHECKING:
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
        Whole weights are numbers of ballots; other weights stay as they are.
    """
    data, utilities = likelihood.ballots, likelihood.utilities(parameters)
    counts = np.ones(data.n_ballots, dtype=np.int64)
    weights = data.weights
    if (weights == np.round(weights)).all():
        counts, weights = weights.astype(np.int64), np.ones(data.n_ballots)
    ballots = np.repeat(np.arange(data.n_ballots), counts)
    # The records of each copy of a ballot, one copy after the other.
    first = np.searchsorted(data.ballot, np.arange(data.n_ballots + 1))
    sizes = np.diff(first)[ballots]
    records = np.repeat(first[ballots] - pointers(sizes)[:-1], sizes) + np.arange(sizes.sum())
    lengths = np.diff(data.ptr)[records]
    ptr = pointers(lengths)
    entries = np.repeat(data.ptr[records] - ptr[:-1], lengths) + np.arange(ptr[-1])
    chosen = np.bincount(rows_of(data.stages), data.sizes, len(data.signs)).astype(np.int64)
    complete = (chosen >= np.diff(data.ptr) - 1)[records]
    stages = np.diff(data.stages)[records]
    _, _, deltas = likelihood.split(parameters)
    ranks = _ranks(utilities[entries], deltas, ptr, rng)
    rows = rows_of(ptr)
    most = np.where(complete, np.iinfo(np.int64).max, stages)
    listed = ranks < most[rows]
    order = np.lexsort([rng.random(len(ranks)), ranks, rows])
    kept = listed[order]
    keys = rows[order][kept] * (int(lengths.max()) + 1) + ranks[order][kept]
    _, sizes_drawn = np.unique(keys, return_counts=True)
    owners = np.unique(keys) // (int(lengths.max()) + 1)
    return dataclasses.replace(
        data,
        items=data.items[entries][order],
        ptr=ptr,
        sizes=sizes_drawn,
        stages=pointers(np.bincount(owners, minlength=len(lengths))),
        signs=data.signs[records],
        ballot=np.repeat(np.arange(len(ballots)), sizes),
        weights=weights[ballots],
        clusters=None if data.clusters is None else data.clusters[ballots],
        times=None if data.times is None else data.times[ballots],
        features=None if data.features is None else data.features[entries][order],
    )


def _ranks(
    utilities: FloatArray, deltas: FloatArray, ptr: IntArray, rng: np.random.Generator
) -> IntArray:
    """Return the number of each alternative's bucket, without end."""
    if len(deltas) < 3:
        keys = utilities + rng.gumbel(size=len(utilities))
        rows = rows_of(ptr)
        order = np.lexsort([-keys, rows])
        ranks = np.empty(len(keys), dtype=np.int64)
        ranks[order] = np.arange(len(keys)) - ptr[rows]
        return ranks
    with np.errstate(divide="ignore"):
        ties = np.log(deltas[1:])
    result = np.empty(len(utilities), dtype=np.int64)
    for a, b in zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True):
        scores = utilities[a:b] - utilities[a:b].max()
        largest = min(len(ties), b - a)
        tree, logs = davidson_draws.tree_of(scores, largest)
        uniforms = rng.random((1, b - a))
        ranks, _ = davidson_draws.draw(tree, logs, scores, ties[:largest], uniforms)
        result[a:b] = ranks[0]
    return result
