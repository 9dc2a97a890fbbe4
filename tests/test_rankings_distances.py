import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from permdist import rankings, strategies
from permdist.rankings import BucketOrder, TopK

TOTAL = ["kendall", "footrule", "spearman", "cayley", "hamming", "ulam"]
TIED = ["kendall", "footrule", "spearman"]


@pytest.mark.parametrize("name", TOTAL)
@given(pair=strategies.order_tuples(max_items=12))
def test_equals_the_naive_distance(name, pair):
    distance = getattr(rankings, name)(*pair)
    assert distance == getattr(naive, name)(*(order.tolist() for order in pair))
    assert np.issubdtype(type(distance), np.integer)


@pytest.mark.parametrize("name", TOTAL)
@given(three=strategies.order_tuples(count=3))
def test_is_an_invariant_metric_but_for_spearman(name, three):
    a, b, c = three
    distance = getattr(rankings, name)
    assert distance(a, a) == 0
    assert distance(a, b) == distance(b, a)
    assert (distance(a, b) == 0) == (a == b).all()
    if name != "spearman":
        assert distance(a, c) <= distance(a, b) + distance(b, c)
    relabelled = rankings.compose(c, a), rankings.compose(c, b)
    assert distance(*relabelled) == distance(a, b)


@pytest.mark.parametrize("name", TOTAL)
@pytest.mark.parametrize("n", range(1, 7))
def test_the_normaliser_is_the_largest_distance(name, n):
    distances = getattr(rankings, name)(rankings.enumerate_orders(n), rankings.identity(n))
    scaled = getattr(rankings, name)(
        rankings.enumerate_orders(n), rankings.identity(n), normalize=True
    )
    assert scaled.max() == (1.0 if n > 1 else 0.0)
    assert np.allclose(scaled * distances.max(), distances)


@pytest.mark.parametrize("n", [2, 9, 100, 159, 160, 161, 162, 500, 1000])
def test_kendall_equals_scipys_tau(n):
    orders = rankings.random_orders(n, 6, rng=n)
    ranks = rankings.order_to_ranks(orders)
    for k in range(1, 6):
        tau = stats.kendalltau(ranks[0], ranks[k]).statistic
        pairs = n * (n - 1) // 2
        assert rankings.kendall(orders[0], orders[k]) == round((1 - tau) / 2 * pairs)


def test_rho_and_weighted_tau_equal_scipys():
    orders = rankings.random_orders(30, 5, rng=2)
    ranks = rankings.order_to_ranks(orders)
    for k in range(1, 5):
        rho = stats.spearmanr(ranks[0], ranks[k]).statistic
        ours = 1 - 2 * rankings.spearman(orders[0], orders[k], normalize=True)
        assert ours == pytest.approx(rho, abs=1e-12)
        for additive in (True, False):
            index = stats.weightedtau(
                -ranks[0], -ranks[k], rank=ranks[k].astype(np.intp), additive=additive
            ).statistic
            share = rankings.weighted_kendall(
                orders[0], orders[k], additive=additive, normalize=True
            )
            assert 1 - 2 * share == pytest.approx(index, abs=1e-12)


@given(
    strategies.order_tuples(max_items=20),
    st.lists(st.floats(0, 5), min_size=20, max_size=20),
    st.booleans(),
)
def test_weighted_kendall_equals_the_naive_one(pair, weights, additive):
    weights = np.array(weights[: len(pair[0])])
    ours = rankings.weighted_kendall(*pair, weights, additive=additive)
    assert ours == pytest.approx(naive.weighted_kendall(*pair, weights, additive), abs=1e-9)


@given(
    st.integers(1, 7).flatmap(lambda n: st.tuples(*[strategies.rankings_with_ties(n_items=n)] * 2)),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
def test_kendall_with_ties_equals_its_definition(pair, penalty):
    a, b = pair
    expected = naive.kendall_with_ties(a.ranks(), b.ranks(), penalty)
    assert rankings.kendall(a, b, penalty=penalty) == pytest.approx(expected)


@given(strategies.rankings_with_ties(max_items=5), st.integers(0, 99))
def test_half_a_point_is_the_mean_over_ways_to_break_ties(ranking, seed):
    other = rankings.random_orders(ranking.n_items, rng=seed)
    extensions = np.array(list(ranking.linear_extensions()))
    mean = rankings.kendall(extensions, other).mean()
    assert rankings.kendall(ranking, other) == pytest.approx(mean)


@pytest.mark.parametrize("name", TIED)
@given(pair=strategies.order_tuples())
def test_bucket_orders_without_ties_agree_with_orders(name, pair):
    a, b = pair
    distance = getattr(rankings, name)
    wrapped = distance(BucketOrder.from_order(a), TopK.from_order(b, len(b)))
    assert wrapped == distance(a, b)


def test_batches_broadcast():
    a, b = rankings.random_orders(7, (3, 1), rng=0), rankings.random_orders(7, 4, rng=1)
    for name in TOTAL:
        distance = getattr(rankings, name)
        values = distance(a, b)
        assert values.shape == (3, 4)
        assert values[2, 1] == distance(a[2, 0], b[1])
    assert rankings.weighted_kendall(a, b).shape == (3, 4)
    assert rankings.weighted_kendall(a, b)[2, 1] == rankings.weighted_kendall(a[2, 0], b[1])
    mixed = rankings.kendall([TopK([0], 7), BucketOrder.from_order(b[0])], b[0])
    assert mixed.shape == (2,)
    assert mixed[1] == 0


@pytest.mark.parametrize("name", TOTAL)
def test_the_matrix_holds_every_pair(name):
    a, b = rankings.random_orders(6, 4, rng=3), rankings.random_orders(6, 5, rng=4)
    distance = getattr(rankings, name)
    assert (rankings.distance_matrix(a, b, distance=name) == distance(a[:, None], b)).all()
    own = rankings.distance_matrix(a, distance=name)
    assert (own == distance(a[:, None], a)).all()
    scaled = rankings.distance_matrix(a, distance=name, normalize=True)
    assert np.allclose(scaled, distance(a[:, None], a, normalize=True))


def test_the_matrix_takes_ties():
    tops = [TopK([0], 3), TopK([1], 3), TopK([0, 1], 3)]
    assert rankings.distance_matrix(tops).tolist() == [[0, 2, 0.5], [2, 0, 1.5], [0.5, 1.5, 0]]
    assert rankings.distance_matrix(tops, penalty=0.0)[0, 1] == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rankings.kendall([0, 1], [0, 1, 2]), ValueError, "b: expected rankings of 2"),
        (lambda: rankings.kendall([0, 1], [0, 1], penalty=2), ValueError, "penalty: expected"),
        (lambda: rankings.cayley(TopK([0], 2), [0, 1]), TypeError, "a: cayley compares total"),
        (lambda: rankings.weighted_kendall(TopK([0], 2), [0, 1]), TypeError, "total orders only"),
        (lambda: rankings.weighted_kendall([0, 1], [0, 1], [1, -1]), ValueError, "no negative"),
        (lambda: rankings.distance_matrix([[0]], distance="kendal"), ValueError, "'kendall'?"),
    ],
)
def test_bad_input(call, error, message):
    naive.refuses(call, error, message)


def test_empty_batches_and_batches_of_one():
    none = np.zeros((0, 3), dtype=int)
    assert rankings.weighted_kendall(none, none, normalize=True).shape == (0,)
    assert rankings.kendall(none, [0, 1, 2]).shape == (0,)
    assert rankings.kendall([[0, 1, 2]], [0, 1, 2]).tolist() == [0]
