"""A seventh and an eighth distance from outside: all that follows from them, by enumeration."""

import naive
import numpy as np
import pytest
from extension import distance as extension

from permdist import Mallows, Mixture, rankings
from permdist.distributions import NotExactError
from permdist.samplers import run_chains

BOTH = pytest.mark.parametrize("name", ["top-weighted", "lee"])


@pytest.fixture(autouse=True, scope="module")
def registered():
    extension.register()
    yield
    extension.unregister()


def _distances(name, orders, center):
    ranks = np.argsort(center)
    if name == "lee":
        moves = np.abs(ranks[orders] - np.arange(len(center)))
        return np.minimum(moves, len(center) - moves).sum(axis=1)
    result = np.zeros(len(orders))
    for row, order in enumerate(orders):
        for k, item in enumerate(order):
            above = sum(ranks[other] > ranks[item] for other in order[:k])
            result[row] += above / (1.0 + ranks[item])
    return result


@BOTH
def test_answers_are_those_of_all_orders(name):
    model = Mallows([3, 1, 5, 0, 2, 4], 0.6, name)
    orders = rankings.enumerate_orders(6)
    costs = _distances(name, orders, model.center)
    p = np.exp(-0.6 * costs)
    assert model.log_partition() == pytest.approx(np.log(p.sum()))
    p /= p.sum()
    assert np.exp(model.log_prob(orders)) == pytest.approx(p)
    assert model.expected_distance() == pytest.approx(p @ costs)
    assert model.distance_variance() == pytest.approx(p @ (costs - p @ costs) ** 2)
    ranks = np.argsort(orders)
    assert model.pairwise()[2, 4] == pytest.approx(p[ranks[:, 2] < ranks[:, 4]].sum())
    assert model.rank_marginals()[5, 1] == pytest.approx(p[orders[:, 1] == 5].sum())
    assert float(model.entropy()) == pytest.approx(-(p @ np.log(p)))
    first = (orders[:, :2] == [1, 3]).all(axis=1)
    found = model.log_prob([1, 3], subset=False)
    assert found == pytest.approx(np.log(p[first].sum()))
    drawn = _distances(name, model.sample(4000, rng=0), model.center)
    assert abs(drawn.mean() - p @ costs) < 5 * drawn.std() / 4000**0.5
    matrix = rankings.distance_matrix(orders[:20], orders[:20], distance=name)
    assert matrix[:, 3] == pytest.approx(_distances(name, orders[:20], orders[3]))


@BOTH
def test_fits_find_the_best_center(name):
    ballots = Mallows([3, 1, 4, 0, 2], 0.7, name).sample(80, rng=1)
    model = Mallows.fit(ballots, distance=name)
    totals = [_distances(name, ballots, center).mean() for center in rankings.enumerate_orders(5)]
    assert model.fit_result.mean_distance == pytest.approx(min(totals))
    assert model.expected_distance() == pytest.approx(min(totals))
    tops = Mallows.fit(ballots[:, :2], distance=name, subset=False, n_items=5)
    assert abs(tops.theta - 0.7) < 5 * tops.fit_result.standard_error
    mixed = Mixture.fit(ballots, "mallows", k=1, distance=name, rng=0)
    assert mixed.components[0].theta == pytest.approx(model.theta, rel=0.05)


@BOTH
def test_chains_go_where_nothing_is_exact(name):
    small = Mallows(range(6), 0.5, name)
    chains = run_chains(small, 40_000, chains=1, rng=0, thin=5)
    found = _distances(name, chains.orders.reshape(-1, 6), small.center).mean()
    assert found == pytest.approx(small.expected_distance(), rel=0.03)
    large = Mallows(range(30), 0.5, name)
    assert run_chains(large, 20, chains=1, rng=0).orders.shape == (1, 20, 30)
    naive.refuses(large.log_partition, NotExactError, f"for {name} exact up to")


def test_centers_of_many_items_by_assignment():
    center = np.random.default_rng(0).permutation(40)
    ballots = run_chains(Mallows(center, 0.8, "lee"), 300, chains=1, rng=0).orders[0]
    kind = extension.Lee
    found, proved = kind.best_center(rankings.order_to_ranks(ballots), np.ones(len(ballots)))
    assert proved
    least = _distances("lee", ballots, found).sum()
    assert least <= _distances("lee", ballots, center).sum()
    assert least == rankings.distance_matrix(ballots, [found], distance="lee").sum()
