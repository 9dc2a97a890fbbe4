"""Mallows' models: every distance against listing all orders, closed forms, draws and fits."""

import naive
import naive_mallows
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln

from permdist import (
    GeneralizedMallows,
    Mallows,
    PlackettLuce,
    WeightedOrders,
    measures,
    rankings,
    strategies,
)
from permdist.distributions import NotExactError
from permdist.identities import check_distribution
from permdist.samplers import estimate_log_partition, run_chains
from permdist.targets import target_of

DISTANCES = sorted(rankings.DISTANCES)
EVERY = pytest.mark.parametrize("distance", DISTANCES)
STAGED = {"kendall": naive_mallows.kendall_stages, "cayley": naive_mallows.cayley_stages}


@EVERY
@pytest.mark.parametrize("theta", [0.0, 1e-4, 0.3, 2.0, 40.0])
@pytest.mark.parametrize("center", [[0], [1, 0], [2, 0, 1], [4, 1, 0, 5, 3, 2]])
def test_everything_equals_listing_all_orders(distance, theta, center):
    model, n = Mallows(center, theta, distance), len(center)
    truth = naive.Listing(n, lambda order: -theta * naive_mallows.distance(distance, order, center))
    values = np.array([naive_mallows.distance(distance, o, center) for o in truth.orders.tolist()])
    mean = truth.prob @ values
    close = {"rel": 1e-11, "abs": 1e-13}
    assert model.log_partition() == pytest.approx(truth.log_partition, **close)
    assert model.log_prob(truth.orders) == pytest.approx(truth.log_prob, **close)
    assert model.rank_marginals() == pytest.approx(truth.rank_marginals(), **close)
    assert model.pairwise() == pytest.approx(truth.pairwise(), **close)
    assert model.entropy() == pytest.approx(truth.entropy(), **close)
    assert model.expected_distance() == pytest.approx(mean, **close)
    assert model.distance_variance() == pytest.approx(truth.prob @ (values - mean) ** 2, **close)
    found, expected = model.distance_distribution(), np.bincount(values, weights=truth.prob)
    assert found[: len(expected)] == pytest.approx(expected, **close)
    assert (found[len(expected) :] == 0.0).all()
    assert model.mode().tolist() == center


@pytest.mark.parametrize("distance", STAGED)
@pytest.mark.parametrize("thetas", [[0.0] * 5, [2.0, 0.0, 0.4, 1e-5, 1.1], [50.0, 0.2, 0.1, 3, 0]])
def test_stages_equal_listing_all_orders(distance, thetas):
    center = [4, 1, 0, 5, 3, 2]
    model, stages = GeneralizedMallows(center, thetas, distance), STAGED[distance]
    truth = naive.Listing(6, lambda order: -float(np.dot(thetas, stages(order, center))))
    close = {"rel": 1e-11, "abs": 1e-13}
    assert model.log_partition() == pytest.approx(truth.log_partition, **close)
    assert model.log_prob(truth.orders) == pytest.approx(truth.log_prob, **close)
    assert model.rank_marginals() == pytest.approx(truth.rank_marginals(), **close)
    assert model.pairwise() == pytest.approx(truth.pairwise(), **close)
    assert model.entropy() == pytest.approx(truth.entropy(), **close)
    values = [sum(stages(order, center)) for order in truth.orders.tolist()]
    assert model.expected_distance() == pytest.approx(truth.prob @ values, **close)
    expected = np.bincount(values, weights=truth.prob)
    assert model.distance_distribution() == pytest.approx(expected, **close)


@given(st.data())
@settings(max_examples=40)
def test_equal_parameters_make_it_the_plain_model(data):
    model = data.draw(strategies.mallows(distances=["kendall", "cayley"], min_items=2))
    thetas = np.full(model.n_items - 1, model.theta)
    same = GeneralizedMallows(model.center, thetas, model.distance)
    orders = rankings.random_orders(model.n_items, 5, rng=0)
    assert same.log_prob(orders) == pytest.approx(model.log_prob(orders), abs=1e-12)
    assert same.kl(model) == pytest.approx(0.0, abs=1e-12)
    assert same.kl(Mallows(model.center, 0.3, model.distance), method="exact") == pytest.approx(
        model.kl(Mallows(model.center, 0.3, model.distance)), abs=1e-12
    )


# ---- closed forms against the programs over subsets, beyond what can be listed ------------------


@pytest.mark.parametrize("distance", ["kendall", "hamming", "footrule", "spearman"])
@pytest.mark.parametrize("theta", [0.02, 0.5])
def test_closed_forms_agree_with_sums_over_subsets(distance, theta):
    center = np.random.default_rng(3).permutation(12)
    model, ranks = Mallows(center, theta, distance), np.argsort(center)
    costs = {"spearman": lambda d: d**2, "footrule": lambda d: d, "hamming": lambda d: d > 0}

    def step(item, above):
        if distance == "kendall":
            return -theta * (~above[:, ranks < ranks[item]]).sum(axis=1)
        return -theta * costs[distance](np.abs(above.sum(axis=1) - ranks[item]))

    truth = WeightedOrders(12, step=step)
    assert model.log_partition() == pytest.approx(truth.log_partition(), rel=1e-12)
    assert model.rank_marginals() == pytest.approx(truth.rank_marginals(), rel=1e-9, abs=1e-15)
    assert model.pairwise() == pytest.approx(truth.pairwise(), rel=1e-9, abs=1e-15)
    assert model.entropy() == pytest.approx(float(truth.entropy()), rel=1e-11)
    labels = np.arange(12) % 3
    for measure in ("ap", "ndcg@5", "auc"):
        found = model.expect(measure, labels, method="exact")
        assert found == pytest.approx(float(truth.expect(measure, labels)), rel=1e-10)


@EVERY
def test_moments_are_those_of_the_distribution_and_slopes_of_log_partition(distance):
    n, theta, step = (12 if distance == "spearman" else 30), 0.15, 1e-4
    logs = [Mallows(range(n), theta + h, distance).log_partition() for h in (-step, 0.0, step)]
    model = Mallows(range(n), theta, distance)
    chances = model.distance_distribution()
    values = np.arange(len(chances))
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    mean = chances @ values
    assert model.expected_distance() == pytest.approx(mean, rel=1e-11)
    assert model.distance_variance() == pytest.approx(chances @ (values - mean) ** 2, rel=1e-10)
    assert -(logs[2] - logs[0]) / (2 * step) == pytest.approx(mean, rel=1e-6)
    assert (logs[2] - 2 * logs[1] + logs[0]) / step**2 == pytest.approx(
        model.distance_variance(), rel=1e-3
    )


@EVERY
def test_uniform_with_theta_zero(distance):
    n = 15 if distance == "spearman" else 40
    model = Mallows(range(n), 0.0, distance)
    assert model.log_partition() == pytest.approx(gammaln(n + 1), rel=1e-12)
    assert model.entropy() == pytest.approx(gammaln(n + 1), rel=1e-12)
    expected = {
        "kendall": n * (n - 1) / 4,
        "cayley": n - (1 / np.arange(1, n + 1)).sum(),
        "hamming": n - 1,
        "footrule": (n * n - 1) / 3,
        "spearman": n * (n * n - 1) / 6,
    }
    if distance in expected:
        assert model.expected_distance() == pytest.approx(expected[distance], rel=1e-10)


@EVERY
@pytest.mark.parametrize("theta", [800.0, 1e9, 1e99])
def test_a_point_mass_with_theta_huge(distance, theta):
    center = [3, 0, 2, 1, 4]
    model = Mallows(center, theta, distance)
    assert model.log_prob(center) == 0.0
    assert model.log_prob([0, 3, 2, 1, 4]) <= -theta
    assert (model.sample(20, rng=0) == center).all()
    assert model.rank_marginals().tolist() == np.eye(5)[np.argsort(center)].tolist()
    assert model.expected_distance() == pytest.approx(0.0, abs=1e-300)
    assert model.entropy() == 0.0
    assert model.kl(Mallows(center, 1.0, distance)) == pytest.approx(
        Mallows(center, 1.0, distance).log_partition()
    )


# ---- draws --------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize(("n", "theta"), [(6, 0.4), (14, 0.05)])
def test_draws_have_the_exact_distances_and_positions(distance, n, theta):
    center = np.random.default_rng(n).permutation(n)
    model, size = Mallows(center, theta, distance), 20_000
    draws = model.sample(size, rng=5)
    found = np.bincount(getattr(rankings, distance)(draws, center))
    expected = size * model.distance_distribution()
    found = np.pad(found, (0, len(expected) - len(found)))
    chi_square(found, expected)
    if distance != "ulam" or n <= 8:
        counts = np.zeros((n, n))
        np.add.at(counts, (draws, np.arange(n)), 1)
        for row, chances in zip(counts, model.rank_marginals(), strict=True):
            chi_square(row, size * chances)


@pytest.mark.parametrize("thetas", [[1.5, 0.0, 0.3, 1e-5, 0.2], [1e-300, 2.0, 0.0, 0.1, 0.7]])
@pytest.mark.parametrize("distance", STAGED)
def test_draws_of_stages(distance, thetas):
    model = GeneralizedMallows([5, 0, 3, 1, 2, 4], thetas, distance)
    assert check_distribution(model, draws=20_000).passed


@pytest.mark.parametrize("distance", ["kendall", "footrule", "ulam"])
def test_draws_of_many_items(distance):
    assert check_distribution(
        Mallows(np.random.default_rng(0).permutation(25), 0.6, distance), draws=4_000
    ).passed


def chi_square(found, expected):
    """Pool what is rare, and fail correct draws once in a million."""
    order = np.argsort(expected)[::-1]
    found, expected = found[order], expected[order]
    common = max(1, int((expected >= 10).sum()))
    if expected[common:].sum() < 5:
        common -= 1
    o = np.append(found[:common], found[common:].sum())
    e = np.append(expected[:common], expected[common:].sum())
    if len(e) > 1:
        assert ((o - e) ** 2 / np.maximum(e, 1e-9)).sum() < stats.chi2.isf(1e-6, len(e) - 1)


# ---- divergences --------------------------------------------------------------------------------


@EVERY
def test_divergences_between_all_distances_equal_listing(distance):
    one = Mallows([2, 0, 3, 1], 0.6, distance)
    orders = rankings.enumerate_orders(4)
    p = one.log_prob(orders)
    for other in DISTANCES:
        for center in ([2, 0, 3, 1], [0, 1, 2, 3]):
            two = Mallows(center, 0.9, other)
            truth = np.exp(p) @ (p - two.log_prob(orders))
            assert one.kl(two) == pytest.approx(truth, abs=1e-12)


def test_divergences_of_many_items():
    rng = np.random.default_rng(0)
    near, far = rng.permutation(40), rng.permutation(40)
    one = Mallows(near, 0.2)
    for distance in ("kendall", "footrule", "hamming"):
        two = Mallows(far, 0.1, distance)
        exact = one.kl(two, method="exact")
        drawn = one.kl(two, method="sample", draws=4_000, rng=1)
        assert exact.standard_error == 0.0
        assert abs(exact - drawn) < 5 * drawn.standard_error
    with pytest.raises(NotExactError, match="kl: for kendall exact up to 21 items"):
        one.kl(PlackettLuce(np.zeros(40)), method="exact")


# ---- chains -------------------------------------------------------------------------------------

MODELS = {
    **{name: Mallows([2, 0, 3, 1], 0.6, name) for name in DISTANCES},
    "stages": GeneralizedMallows([2, 0, 3, 1], [0.9, 0.1, 0.4]),
    "cycles": GeneralizedMallows([2, 0, 3, 1], [0.9, 0.1, 0.4], "cayley"),
}


@pytest.mark.parametrize("name", MODELS)
def test_chains_leave_the_distribution_as_it_is(name):
    orders = rankings.enumerate_orders(4)
    chances = np.exp(MODELS[name].log_prob(orders))
    matrix = naive.transition_matrix(target_of(MODELS[name]), "adjacent", orders)
    assert np.abs(chances @ matrix - chances).max() < 1e-12


def test_chains_and_estimates_where_nothing_is_exact():
    model = Mallows(range(25), 0.01, "spearman")
    with pytest.raises(NotExactError, match="for spearman exact up to 21 items"):
        model.sample(rng=0)
    chains = run_chains(model, draws=500, tune=500, chains=2, kernel="adjacent", rng=0)
    mean = rankings.spearman(chains.orders.reshape(-1, 25), range(25)).mean()
    assert 0.0 < mean < 25 * 624 / 6
    options = {"kernel": "adjacent", "rng": 0}
    found = estimate_log_partition(Mallows(range(12), 0.01, "spearman"), 60, **options)
    exact = Mallows(range(12), 0.01, "spearman").log_partition()
    assert abs(found.value - exact) < 5 * found.standard_error


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Mallows([0, 1], -0.1), ValueError, "theta: expected at least 0"),
        (lambda: Mallows([0, 1], np.inf), ValueError, "theta: expected finite numbers"),
        (lambda: Mallows([0, 1], [1.0], "footrule"), ValueError, "theta: expected 0 dim"),
        (lambda: Mallows([0, 0], 1.0), ValueError, "center: expected each item once"),
        (lambda: Mallows([0, 1], 1.0, "kendal"), ValueError, "did you mean 'kendall'"),
        (lambda: GeneralizedMallows([0, 1], [1.0, 2.0]), ValueError, "thetas: expected 1 param"),
        (lambda: GeneralizedMallows([0, 1], [1.0], "ulam"), ValueError, "distance: expected one"),
        (
            lambda: Mallows(range(30), 0.1, "ulam").rank_marginals(method="exact"),
            NotExactError,
            "rank_marginals: for ulam exact up to 8 items",
        ),
        (
            lambda: Mallows(range(300), 0.1, "footrule").distance_distribution(),
            NotExactError,
            "distance_distribution: for footrule exact up to 250 items",
        ),
        (
            lambda: Mallows(range(20_000), 0.1, "footrule").sample(),
            NotExactError,
            "exact up to 15,000 items",
        ),
    ],
)
def test_mistakes_are_named(make, error, message):
    naive.refuses(make, error, message)


def test_expectations_of_many_items():
    labels = np.arange(50) % 4
    model = Mallows(range(50), 0.1, "footrule")
    exact = model.expect("ndcg@10", labels, method="exact")
    drawn = model.expect("ndcg@10", labels, method="sample", draws=5_000, rng=0)
    assert abs(exact - drawn) < 5 * drawn.standard_error
    assert measures.parse("ndcg@10").positional(labels) is not None
    with pytest.raises(NotExactError, match="for footrule exact up to 21 items"):
        model.expect("auc", labels, method="exact")
