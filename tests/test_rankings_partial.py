import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from permdist import strategies
from permdist.rankings import BucketOrder, TopK


@given(strategies.rankings_with_ties(max_items=6))
def test_bucket_orders_hang_together(ranking):
    assert ranking.n_items == len(ranking.order())
    assert ranking.is_total == (ranking.n_extensions == 1)
    assert BucketOrder.from_scores(-ranking.ranks()) == ranking
    for method in ("average", "min", "dense"):
        assert BucketOrder.from_scores(-ranking.ranks(method)) == ranking
    extensions = list(ranking.linear_extensions())
    assert len(extensions) == ranking.n_extensions
    positions = np.mean([np.argsort(order) for order in extensions], axis=0)
    assert np.allclose(ranking.ranks(), positions)
    assert hash(BucketOrder(ranking.buckets)) == hash(ranking)


@given(strategies.rankings_with_ties(), st.integers(0, 100))
def test_sampled_extensions_agree(ranking, seed):
    order = ranking.sample(seed)
    assert (np.diff(ranking.ranks()[order]) >= 0).all()
    assert sorted(order) == list(range(ranking.n_items))


@given(strategies.orders())
def test_a_total_order_is_a_bucket_order(order):
    ranking = BucketOrder.from_order(order)
    assert ranking.is_total
    assert (ranking.order() == order).all()


@given(strategies.top_k_lists())
def test_top_k_lists_hang_together(top):
    buckets = top.to_bucket_order()
    assert buckets.n_items == top.n_items
    assert buckets.order()[: top.k].tolist() == list(top.items)
    assert top.n_extensions == buckets.n_extensions == math.factorial(top.n_items - top.k)
    assert TopK.from_order(buckets.order(), top.k) == top
    assert eval(repr(top)) == top
    assert eval(repr(buckets)) == buckets


def test_order_inside_a_bucket_means_nothing():
    assert BucketOrder([[2, 0], [1]]) == BucketOrder([[0, 2], [1]])
    assert BucketOrder([[2, 0], [1]]) != BucketOrder([[1], [0, 2]])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: BucketOrder([[0], []]), ValueError, "no empty bucket, got one at index 1"),
        (lambda: BucketOrder([[0], [0]]), ValueError, "buckets: expected each item once"),
        (lambda: BucketOrder([[0, 1]]).ranks("max"), ValueError, "method: expected one of"),
        (lambda: TopK([0, 1], 1), ValueError, "at most n_items = 1 items, got 2"),
        (lambda: TopK([1, 1], 3), ValueError, "items: expected each item once, got item 1 again"),
        (lambda: TopK([7], 3), ValueError, "items: expected items 0 to 2, got 7 at index 0"),
        (
            lambda: next(BucketOrder([range(12)]).linear_extensions()),
            ValueError,
            "limited to 1,000,000, this bucket order has 479,001,600",
        ),
    ],
)
def test_bad_partial_rankings(make, error, message):
    naive.refuses(make, error, message)


def test_they_are_immutable():
    with pytest.raises(AttributeError):
        BucketOrder([[0]]).buckets = ()
    with pytest.raises(AttributeError):
        TopK([0], 2).n_items = 3
