import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permdist import rankings, strategies


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ([0, 0, 1], ValueError, "orders: expected each item once, got item 0 again at index 1"),
        ([0, 3, 1], ValueError, "orders: expected items 0 to 2, got 3 at index 1"),
        ([[0, 1], [1, 1]], ValueError, "got item 1 again at index (1, 1)"),
        ([0.0, 1.0], TypeError, "orders: expected item numbers, got dtype float64"),
        (["a", "b"], TypeError, "orders: expected numbers"),
        ([[0, 1], [0]], ValueError, "rows of unequal length"),
        (np.zeros(0, int), ValueError, "at least one item, got shape (0,)"),
    ],
)
def test_bad_orders_are_named(bad, error, message):
    with pytest.raises(error) as caught:
        rankings.check_orders(bad)
    assert message in str(caught.value)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64])
def test_every_integer_type_is_welcome(dtype):
    order = rankings.check_orders(np.array([1, 0, 2], dtype=dtype))
    assert order.dtype == np.int64


@given(strategies.orders())
def test_order_and_ranks_are_inverse(order):
    ranks = rankings.order_to_ranks(order)
    assert (order[ranks] == np.arange(len(order))).all()
    assert (rankings.ranks_to_order(ranks) == order).all()
    assert (rankings.compose(order, rankings.inverse(order)) == rankings.identity(len(order))).all()


@given(strategies.order_tuples(count=3))
def test_composition_is_associative(three):
    a, b, c = three
    left = rankings.compose(rankings.compose(a, b), c)
    assert (left == rankings.compose(a, rankings.compose(b, c))).all()


def test_conversions_are_batched():
    orders = rankings.random_orders(6, (2, 3), rng=0)
    ranks = rankings.order_to_ranks(orders)
    assert ranks.shape == (2, 3, 6)
    assert (ranks[1, 2] == rankings.order_to_ranks(orders[1, 2])).all()
    assert rankings.compose(orders, rankings.identity(6)).shape == (2, 3, 6)


@given(strategies.scores(ties=True))
def test_ranking_by_scores_breaks_ties_by_index(scores):
    expected = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    assert rankings.order_by_scores(scores).tolist() == expected
    assert (rankings.ranks_by_scores(scores)[expected] == np.arange(len(scores))).all()


@pytest.mark.parametrize("n", range(1, 8))
def test_enumeration_is_complete(n):
    orders = rankings.enumerate_orders(n)
    assert orders.shape == (math.factorial(n), n)
    assert len({tuple(order) for order in orders.tolist()}) == len(orders)
    rankings.check_orders(orders)


def test_random_orders_are_uniform_and_reproducible():
    draws = rankings.random_orders(3, 60_000, rng=5)
    _, counts = np.unique(draws, axis=0, return_counts=True)
    # Chi-square with 5 degrees of freedom: 33 is exceeded about four times in a million.
    assert len(counts) == 6
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 33
    assert (rankings.random_orders(3, 60_000, rng=np.random.default_rng(5)) == draws).all()
    assert rankings.random_orders(4, rng=1).shape == (4,)


@given(strategies.order_tuples(count=3), st.lists(st.floats(-3, 3), min_size=3, max_size=3))
def test_rank_addition_is_the_order_of_weighted_points(orders, weights):
    n = len(orders[0])
    points = [
        sum(w * (n - list(order).index(i)) for w, order in zip(weights, orders, strict=True))
        for i in range(n)
    ]
    added = rankings.rank_addition(np.stack(orders), weights)
    values = np.array(points)[added]
    assert (values[:-1] >= values[1:] - 1e-9).all()


def test_rank_addition_by_default_is_bordas_rule():
    orders = [[0, 1, 2], [0, 1, 2], [1, 2, 0]]  # points 7, 7 and 4: the tie goes by index
    assert rankings.rank_addition(orders).tolist() == [0, 1, 2]
    assert rankings.rank_addition([orders, orders]).tolist() == [[0, 1, 2]] * 2


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        (lambda: rankings.check_orders([0, 1, 2], n_items=4, name="mine"), ValueError, "mine"),
        (lambda: rankings.order_by_scores([1.0, np.nan]), ValueError, "scores"),
        (lambda: rankings.enumerate_orders(11), ValueError, "n_items"),
        (lambda: rankings.random_orders(3, rng="seed"), TypeError, "rng"),
        (lambda: rankings.random_orders(3, rng=-1), ValueError, "rng"),
        (lambda: rankings.identity(0), ValueError, "n_items"),
        (lambda: rankings.identity(2.0), TypeError, "n_items"),
        (lambda: rankings.rank_addition([0, 1]), ValueError, "orders"),
        (lambda: rankings.rank_addition([[0, 1]], [1.0, 2.0]), ValueError, "weights"),
        (lambda: rankings.compose([0, 1, 2], [0, 1]), ValueError, "second"),
    ],
)
def test_refusals(call, error, argument):
    with pytest.raises(error, match=f"^{argument}: "):
        call()
