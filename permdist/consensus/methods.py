"""The methods behind one interface: ballots are counted once, and each method ranks by counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist.consensus.kemeny import kemeny
from permdist.consensus.majorities import count_pairs
from permdist.consensus.positions import footrule_order, positions, spearman_order
from permdist.consensus.voting import borda, copeland, ranked_pairs, schulze

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray
    from permdist.ballots import Ballots
    from permdist.consensus.majorities import Majorities
    from permdist.consensus.positions import Placed

METHODS = ("kemeny", "borda", "copeland", "footrule", "spearman", "ranked-pairs", "schulze")
BY_POSITION = ("footrule", "spearman")
_RULES = {"copeland": copeland, "schulze": schulze, "ranked-pairs": ranked_pairs}


class Answer(NamedTuple):
    """The order of a method, and what is known of it; as in `Consensus`."""

    order: IntArray
    scores: FloatArray | None
    cost: float
    lower_bound: float
    proved: bool


class Counts(NamedTuple):
    """All that a method needs to know of weighted ballots."""

    majorities: Majorities
    table: FloatArray | None  # for methods by position
    total: float

    def relabeled(self, items: IntArray) -> Counts:
        """Return the counts of items that are numbered in another way."""
        table = None if self.table is None else self.table[items]
        return self._replace(majorities=self.majorities.relabeled(items), table=table)


def placed_for(ballots: Ballots, method: str) -> Placed | None:
    """Return the positions on the ballots if the method needs them."""
    return positions(ballots, method) if method in BY_POSITION else None


def counted(ballots: Ballots, placed: Placed | None, weights: FloatArray) -> Counts:
    """Count ballots with some weights."""
    table = None if placed is None else placed.table(weights)
    return Counts(count_pairs(ballots, weights), table, float(weights.sum()))


def answer(
    method: str,
    counts: Counts,
    penalty: float,
    *,
    time_limit: float | None = None,
    tell: Callable[[str], None] | None = None,
    exact: bool = True,
) -> Answer:
    """Return the order of a method; parameters as in `consensus`.

    With ``exact=False`` Kemeny's order is looked for by local search only.
    """
    pairs = counts.majorities
    if counts.table is not None:
        rank = footrule_order if method == "footrule" else spearman_order
        order, cost = rank(counts.table)
        return Answer(order, None, cost, cost, True)
    if method == "kemeny":
        found = kemeny(pairs, time_limit=time_limit, tell=tell, exact=exact)
        cost = pairs.cost(found.order, penalty)
        # Both sums are rounded differently.
        lower = min(cost, pairs.bound(penalty) + found.excess_bound)
        return Answer(found.order, None, cost, cost if found.proved else lower, found.proved)
    scores = _RULES[method](pairs) if method in _RULES else borda(pairs, counts.total)
    # Sums of weights that are equal but for rounding are ties.
    key = np.round(scores / max(float(scores.max()), 1e-300), 13)
    order = np.argsort(-key, kind="stable")
    cost = pairs.cost(order, penalty)
    lower = min(cost, pairs.bound(penalty))
    # The order is the best one if each of its pairs agrees with the majority.
    proved = not (np.triu(pairs.margins[np.ix_(order, order)], 1) < 0.0).any()
    return Answer(order, scores, cost, cost if proved else lower, proved)
