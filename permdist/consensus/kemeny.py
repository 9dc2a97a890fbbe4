"""Kemeny's consensus: the order with the smallest sum of Kendall distances, and a proof of it."""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from permdist.consensus.program import solve
from permdist.consensus.search import borda_order, search

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray
    from permdist.consensus.majorities import Majorities

SHAKES = 200
FEW_SHAKES = 10  # for a quick answer


class Kemeny(NamedTuple):
    """An order, and how far it may be from the best one.

    Attributes
    ----------
    order : array of int, shape (n,)
    excess : float
        What the order costs above the sum, over all pairs, of the smaller side.
    excess_bound : float
        What the best order costs above that, at least.
    proved : bool
    """

    order: IntArray
    excess: float
    excess_bound: float
    proved: bool


def kemeny(
    majorities: Majorities,
    *,
    time_limit: float | None = None,
    tell: Callable[[str], None] | None = None,
    exact: bool = True,
) -> Kemeny:
    """Return an order with the least cost, component by component of the majority graph.

    Parameters
    ----------
    majorities : Majorities
    time_limit : float, optional
        Seconds, after which the best order so far is returned.
    tell : callable, optional
        Called with a line of text from time to time.
    exact : bool
        False for local search only.

    Notes
    -----
    *Reduction.* Let an edge go from i to j if more ballots put i above j than j above i, let
    C_1, C_2, ... be the strongly connected components of that graph in an order in which all edges
    between components point forward, and take any order of the items. Sort it stably by component.
    Pairs within a component keep their order. A pair of different components is now ordered with
    the edge between its items if there is one, and costs the same either way if there is none: it
    costs as little as it can. So sorting does not increase the cost, and joining best orders of the
    components gives a best order of all. (With ties between components other best orders may
    exist.) This is the extended Condorcet criterion of Truchon (1998).

    *Components* of three items or more are solved by `permdist.consensus.program.solve`.
    """
    margins = majorities.margins
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    parts = components(margins)
    orders: dict[int, IntArray] = {}
    excess = bound = 0.0
    proved = True
    # The small ones first, so that a time limit leaves few of them without a proof.
    for place in sorted(range(len(parts)), key=lambda one: len(parts[one])):
        items = parts[place]
        if len(items) == 1:
            orders[place] = items
            continue
        own = margins[np.ix_(items, items)]
        start = search(own, borda_order(own), SHAKES if exact else FEW_SHAKES)
        found = solve(own, start, deadline if exact else -np.inf, tell)
        orders[place] = items[found.order]
        excess, bound = excess + found.excess, bound + found.bound
        proved = proved and found.proved
    order = np.concatenate([orders[place] for place in range(len(parts))])
    return Kemeny(order, excess, bound, proved)


def components(margins: FloatArray) -> list[IntArray]:
    """Return the strongly connected components of the strict majority graph, best first.

    Of several components that may come next, that with the smallest item number does.

    Parameters
    ----------
    margins : array of float, shape (n, n)

    Examples
    --------
    >>> import numpy as np
    >>> circle = np.array([[0, 1, -1], [-1, 0, 1], [1, -1, 0]])
    >>> margins = np.full((4, 4), 1.0)  # item 3 loses to all of a circle
    >>> margins[:3, :3], margins[3] = circle, [-1, -1, -1, 0]
    >>> components(margins)
    [array([0, 1, 2]), array([3])]
    """
    wins = margins > 0.0
    number, label = csgraph.connected_components(sparse.csr_array(wins), connection="strong")
    members = [np.flatnonzero(label == one) for one in range(number)]
    sources, targets = np.nonzero(wins)
    before = np.zeros((number, number), dtype=np.bool_)  # which component beats which
    before[label[sources], label[targets]] = True
    np.fill_diagonal(before, False)
    waiting = before.sum(axis=0)
    ready = [(int(members[one][0]), one) for one in range(number) if waiting[one] == 0]
    heapq.heapify(ready)
    result = []
    while ready:
        _, one = heapq.heappop(ready)
        result.append(members[one])
        waiting -= before[one]
        for other in np.flatnonzero(before[one] & (waiting == 0)):
            heapq.heappush(ready, (int(members[other][0]), int(other)))
    return result
