"""Places of items under a posterior: their probabilities, and credible sets of places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.posterior.problem import Problem, Variable

# Variables over the items that say who is above whom, and the sign that turns them into scores.
SCORES = ("scores",)
RANKS = ("center", "center_ranks", "ranks")


def scored(problem: Problem) -> Variable:
    """Return the variable whose values put the items in order.

    Raises
    ------
    ValueError
        If the problem has none: coefficients of documents' features, or a mixture.
    """
    for variable in problem.variables:
        if variable.dims == ("item",) and variable.name in (*SCORES, *RANKS):
            return variable
    kinds = ", ".join(
        f"{one.name} ({', '.join(one.dims) or 'a number'})" for one in problem.variables
    )
    raise ValueError(
        f"a posterior of {problem.family} has no one order of the items per draw: its variables "
        f"are {kinds}; see models() for the distribution of each draw"
    )


def ranks_of(problem: Problem, draws: FloatArray) -> IntArray:
    """Return the ranks of the items, 0 at the top, shape (draws, n); ties by number.

    Parameters
    ----------
    problem : Problem
    draws : array of float, shape (draws, size)
    """
    variable = scored(problem)
    values = problem.split(draws)[variable.name]
    keys = -values if variable.name in SCORES else values
    order = np.argsort(keys, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(order.shape[1])[None, :], axis=1)
    return ranks.astype(np.int64)


def place_shares(ranks: IntArray) -> FloatArray:
    """Return the share of draws in which each item has each place, shape (n, n).

    Examples
    --------
    >>> place_shares(np.array([[0, 1], [0, 1], [1, 0], [0, 1]]))
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    draws, n = ranks.shape
    cells = (np.arange(n) * n + ranks).ravel()
    return np.bincount(cells, minlength=n * n).reshape(n, n) / draws


def pair_shares(ranks: IntArray) -> FloatArray:
    """Return the share of draws in which i is above j, shape (n, n); 1/2 on the diagonal.

    Examples
    --------
    >>> pair_shares(np.array([[0, 1], [0, 1], [1, 0], [0, 1]]))
    array([[0.5 , 0.75],
           [0.25, 0.5 ]])
    """
    n = ranks.shape[1]
    above = np.full((n, n), 0.5)
    columns = np.ascontiguousarray(ranks.T)
    for i in range(n):
        above[i] = (columns[i] < columns).mean(axis=1)
        above[i, i] = 0.5
    return above


def interval_sets(ranks: IntArray, level: float) -> IntArray:
    """Return the shortest run of places of each item with at least this probability, shape (n, 2).

    The first and the last place, 1 at the top. Of runs of equal length it is the likeliest.

    Examples
    --------
    >>> interval_sets(np.array([[0, 1], [0, 1], [1, 0], [0, 1]]), 0.7)
    array([[1, 1],
           [2, 2]])
    """
    shares = place_shares(ranks)
    n = len(shares)
    sums = np.concatenate([np.zeros((n, 1)), np.cumsum(shares, axis=1)], axis=1)
    result = np.zeros((n, 2), dtype=np.int64)
    undecided = np.ones(n, dtype=bool)
    for length in range(1, n + 1):
        held = sums[:, length:] - sums[:, : n + 1 - length]
        first = held.argmax(axis=1)
        found = undecided & (held.max(axis=1) >= level - 1e-12)
        result[found] = np.column_stack([first + 1, first + length])[found]
        undecided &= ~found
        if not undecided.any():
            break
    return result


def simultaneous_sets(ranks: IntArray, level: float) -> IntArray:
    """Return runs of places that hold the places of all items at once, shape (n, 2).

    Every run goes as far into both tails of its item's places, so far that at least this share of
    the draws has all items inside.

    Examples
    --------
    >>> simultaneous_sets(np.array([[0, 1, 2]] * 9 + [[0, 2, 1]]), 0.9)
    array([[1, 1],
           [2, 2],
           [3, 3]])
    """
    shares = place_shares(ranks)
    below = np.cumsum(shares, axis=1)
    tails = np.minimum(below, 1.0 - below + shares)  # of each place, from its own side
    items = np.arange(len(shares))
    depth = tails[items, ranks].min(axis=1)  # how far in the least usual item of a draw is
    needed = int(np.ceil(level * len(depth) - 1e-9))
    least = np.sort(depth)[::-1][max(needed, 1) - 1] - 1e-12
    inside = (tails >= least) & (shares > 0.0)
    first = inside.argmax(axis=1)
    last = inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
    return np.column_stack([first + 1, last + 1]).astype(np.int64)
