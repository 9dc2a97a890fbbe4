"""When an estimate exists: wins connect every item with every other."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

from permdist.ballots import Rankings, check_existence


def all_wins(lists, weights, n, rest):
    """Mark who was above whom in any list that counts, shape (n, n)."""
    wins = np.zeros((n, n), dtype=bool)
    for entry, weight in zip(lists, weights, strict=True):
        for place, item in enumerate(entry):
            wins[item, entry[place + 1 :]] |= weight > 0
            if rest:
                wins[item, [i for i in range(n) if i not in entry]] |= weight > 0
    return wins


@given(st.data())
def test_existence_is_strong_connection(data):
    n = data.draw(st.integers(2, 9))
    rest = data.draw(st.booleans())
    listed = st.tuples(st.permutations(range(n)), st.integers(1, n)).map(lambda p: p[0][: p[1]])
    lists = data.draw(st.lists(listed, min_size=1, max_size=10))
    weights = data.draw(st.lists(st.integers(0, 2), min_size=len(lists), max_size=len(lists)))
    weights[0] = 1
    wins = all_wins(lists, weights, n, rest)
    parts, _ = csgraph.connected_components(wins, connection="strong")
    ballots = Rankings(lists, n, weights, not rest, penalized=True)
    if parts == 1:
        check_existence(ballots, None)
        return
    with pytest.raises(ValueError, match="no maximum likelihood estimate exists") as caught:
        check_existence(ballots, [f"<{item}>" for item in range(n)])
    message = str(caught.value).split(" exists, ")[1].split(";")[0]
    if "more" in message:  # the rest is not named
        return
    named = [item for item in range(n) if f"<{item}>" in message]
    others = [item for item in range(n) if item not in named]
    up, down = wins[np.ix_(named, others)].any(), wins[np.ix_(others, named)].any()
    expected = {"above": (True, False), "below": (False, True), "never": (False, False)}
    assert (up, down) == next(expected[word] for word in expected if word in message)


@pytest.mark.parametrize("subset", [None, False])
def test_many_items_are_checked_too(subset):
    n = 30_000
    orders = np.array([np.arange(n), np.r_[0, np.arange(n - 1, 0, -1)]])
    lists = orders if subset is None else [orders[0, : n - 1], orders[1]]
    start = time.perf_counter()
    with pytest.raises(ValueError, match="always above the others: 0;"):
        check_existence(Rankings(lists, n, None, subset), None)
    check_existence(Rankings(np.array([np.arange(n), np.arange(n)[::-1]]), n, None), None)
    assert time.perf_counter() - start < 5.0


def test_many_short_lists_of_many_items_are_checked():
    n = 30_000
    # Everyone is once on top of all others, but for the last item.
    ballots = Rankings(np.arange(n - 1)[:, None], n, None, False, penalized=True)
    with pytest.raises(ValueError, match=f"always below the others: {n - 1};"):
        check_existence(ballots, None)
    check_existence(Rankings(np.arange(n)[:, None], n, None, False), None)
