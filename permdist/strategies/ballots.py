"""Strategies for ballots of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from hypothesis import strategies as st

from permdist.ballots import Ballots
from permdist.rankings import TopK
from permdist.strategies.values import permutations_of, sizes_of

if TYPE_CHECKING:
    from permdist.strategies.values import Sizes


def ballots(
    *, max_ballots: int = 5, max_tie: int = 3, **sizes: Unpack[Sizes]
) -> st.SearchStrategy[Ballots]:
    """Generate ballots: rankings of all items or of some, with ties, and top-k lists.

    Weights are whole numbers up to 3. They shrink towards one ranking of few items without ties.

    Parameters
    ----------
    max_ballots : int
        The largest number of ballots.
    max_tie : int
        The largest number of items in a bucket.
    n_items, min_items, max_items : int
        As in `orders`; 2 to 6 items by default.

    Examples
    --------
    >>> from hypothesis import find
    >>> found = find(ballots(), lambda found: found.largest_tie == 2)
    >>> found.n_items, found.n_ballots
    (2, 1)
    """

    @st.composite
    def of_size(draw: st.DrawFn, n: int) -> Ballots:
        number = draw(st.integers(1, max_ballots))
        n_tops = draw(st.integers(0, number))
        parts = []
        for size, tops in ((number - n_tops, False), (n_tops, True)):
            if size == 0:
                continue
            one = _top(n) if tops else _ranking(n, max_tie)
            cast = draw(st.lists(one, min_size=size, max_size=size))
            counts = draw(st.lists(st.integers(1, 3), min_size=size, max_size=size))
            subset = None if tops else True
            parts.append(Ballots.from_orders(cast, n_items=n, subset=subset, weights=counts))
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    chosen: Any = {"min_items": 2, "max_items": 6, **sizes}
    return sizes_of(**chosen).flatmap(of_size)


def _top(n: int) -> st.SearchStrategy[TopK]:
    return st.builds(TopK.from_order, permutations_of(n), st.integers(1, n))


@st.composite
def _ranking(draw: st.DrawFn, n: int, max_tie: int) -> list[list[int]]:
    """Generate a ranking of at least two items (if there are), as buckets."""
    order = draw(permutations_of(n)).tolist()[: draw(st.integers(min(2, n), n))]
    buckets: list[list[int]] = []
    while order:
        size = draw(st.integers(1, min(max_tie, len(order))))
        buckets.append(order[:size])
        order = order[size:]
    return buckets


st.register_type_strategy(Ballots, ballots())
