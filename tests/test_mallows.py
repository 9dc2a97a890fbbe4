"""Mallows' models: every distance against listing all orders, closed forms, draws and fits."""

import math

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
from permdist.sums.mallows_band import BandSums
from permdist.sums.mallows_spearman import SpearmanSums
from permdist.sums.mallows_ulam import UlamSums
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
    listed = naive_mallows.Distances(distance, center, theta)
    close = {"rel": 1e-11, "abs": 1e-13}
    assert model.log_partition() == pytest.approx(truth.log_partition, **close)
    assert model.log_prob(truth.orders) == pytest.approx(truth.log_prob, **close)
    assert model.rank_marginals() == pytest.approx(truth.rank_marginals(), **close)
    assert model.pairwise() == pytest.approx(truth.pairwise(), **close)
    assert model.entropy() == pytest.approx(truth.entropy(), **close)
    assert model.expected_distance() == pytest.approx(listed.mean, **close)
    assert model.distance_variance() == pytest.approx(listed.variance, **close)
    found, expected = model.distance_distribution(), listed.distribution()
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


@EVERY
def test_seven_items_equal_listing_all_orders(distance):
    orders, center = rankings.enumerate_orders(7), np.array([4, 1, 6, 0, 5, 3, 2])
    values = naive_mallows.distances_of(distance, orders)  # of orders of places in the center
    close = {"rel": 1e-11, "abs": 1e-13}
    for theta in (0.05, 0.7):
        model, weights = Mallows(center, theta, distance), np.exp(-theta * values)
        total = weights.sum()
        prob = weights / total
        assert model.log_partition() == pytest.approx(np.log(total), **close)
        assert model.log_prob(center[orders]) == pytest.approx(np.log(prob), **close)
        mean = prob @ values
        assert model.expected_distance() == pytest.approx(mean, **close)
        assert model.distance_variance() == pytest.approx(prob @ (values - mean) ** 2, rel=1e-10)
        assert model.entropy() == pytest.approx(-(prob @ np.log(prob)), **close)
        marginals = np.stack([np.bincount(orders[:, r], prob, 7) for r in range(7)], axis=1)
        assert model.rank_marginals()[center] == pytest.approx(marginals, **close)
        ranks = np.argsort(orders, axis=1)
        above = np.tensordot(prob, ranks[:, :, None] < ranks[:, None, :], axes=1)
        assert model.pairwise()[np.ix_(center, center)] == pytest.approx(above, **close)


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


def test_many_items():
    model = Mallows(range(10_000), 0.5)
    q, m = math.exp(-0.5), np.arange(1, 10_001)
    assert model.log_partition() == pytest.approx(np.log((1 - q**m) / (1 - q)).sum(), rel=1e-13)
    small, large = Mallows(range(1000), 1e-9, "footrule"), Mallows(range(1000), 0.01, "footrule")
    assert small.log_partition() == pytest.approx(gammaln(1001) - 1e-9 * (1e6 - 1) / 3, rel=1e-12)
    assert large.expected_distance() < small.expected_distance()
    assert large.sample(3, rng=0).shape == (3, 1000)
    for distance in ("cayley", "hamming"):
        assert np.isfinite(Mallows(range(10_000), 1.0, distance).log_partition())


@pytest.mark.parametrize("distance", ["kendall", "footrule"])
def test_log_partition_is_an_integral_of_the_expected_distance(distance):
    nodes, weights = np.polynomial.legendre.leggauss(25)
    thetas, n = 0.005 * (nodes + 1.0), 400
    means = [Mallows(range(n), theta, distance).expected_distance() for theta in thetas]
    truth = gammaln(n + 1) - 0.005 * (weights @ means)
    assert Mallows(range(n), 0.01, distance).log_partition() == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("theta", [0.0, 1e-3])
def test_footrule_draws_where_sums_are_beyond_the_range_of_doubles(theta):
    model = Mallows(range(1500), theta, "footrule")
    values = rankings.footrule(model.sample(40, rng=0), range(1500))
    error = (model.distance_variance() / 40) ** 0.5
    assert abs(values.mean() - model.expected_distance()) < 5 * error


def test_footrule_counts_are_the_published_ones():
    # A062869: how many permutations of n items have total displacement 2 k.
    published = {4: [1, 3, 7, 9, 4], 5: [1, 4, 12, 24, 35, 24, 20]}
    for n, counts in published.items():
        assert naive_mallows.footrule_counts(n) == counts
        chances = Mallows(range(n), 0.0, "footrule").distance_distribution()[::2]
        assert chances * math.factorial(n) == pytest.approx(counts)


@pytest.mark.parametrize("theta", [0.0, 0.02, 0.1, 1.0])
def test_footrule_of_45_items_from_counts_in_whole_numbers(theta):
    counts = naive_mallows.footrule_counts(45)
    assert sum(counts) == math.factorial(45)
    logs = np.array([math.log(count) for count in counts]) - 2 * theta * np.arange(len(counts))
    truth = logs.max() + math.log(np.exp(logs - logs.max()).sum())
    model = Mallows(range(45), theta, "footrule")
    assert model.log_partition() == pytest.approx(truth, rel=2e-14)
    assert model.distance_distribution()[::2] == pytest.approx(np.exp(logs - truth), rel=1e-9)


def test_footrule_of_so_many_items_that_sums_leave_the_range_of_doubles():
    # Weights relative to the largest, not their logarithms, go wrong from here on.
    n = 11_720
    model = Mallows(range(n), 0.0, "footrule")
    assert model.log_partition() == pytest.approx(gammaln(n + 1), abs=1e-8)
    assert model.expected_distance() == pytest.approx((n * n - 1) / 3, rel=1e-12)


# ---- Spearman's distance in a band --------------------------------------------------------------


@pytest.mark.parametrize(("n", "theta"), [(12, 0.5), (13, 0.9), (9, 2.0)])
def test_what_a_band_leaves_out_is_within_its_bound(n, theta):
    exact = SpearmanSums(n, theta)
    marginals = exact.rank_marginals()
    for band in (2, 3, 4):
        cut = BandSums(n, theta, band)
        assert cut.bound > 0.0
        assert exact.log_partition - cut.log_partition >= -1e-12
        if cut.bound < 1.0:
            assert exact.log_partition - cut.log_partition <= -np.log1p(-cut.bound) + 1e-12
        assert np.abs(cut.rank_marginals() - marginals).max() <= cut.bound + 1e-12
    near = BandSums(n, 2.0, 4)
    truth = SpearmanSums(n, 2.0)
    assert near.moments == pytest.approx(truth.moments, rel=1e-11)


def test_spearman_of_many_items_with_large_theta():
    model = Mallows(np.random.default_rng(0).permutation(60), 1.0, "spearman")
    step = 1e-4
    logs = [Mallows(range(60), 1.0 + h, "spearman").log_partition() for h in (-step, 0.0, step)]
    assert (logs[0] - logs[2]) / (2 * step) == pytest.approx(model.expected_distance(), rel=1e-7)
    assert (logs[0] - 2 * logs[1] + logs[2]) / step**2 == pytest.approx(
        model.distance_variance(), rel=1e-4
    )
    assert model.entropy() == pytest.approx(logs[1] + model.expected_distance())
    marginals = model.rank_marginals()
    assert marginals.sum(axis=0) == pytest.approx(np.ones(60))
    draws = model.sample(4000, rng=0)
    values = rankings.spearman(draws, model.center)
    assert abs(values.mean() - model.expected_distance()) < 5 * values.std() / 4000**0.5
    stay = (draws == model.center).mean(axis=0) - marginals[model.center, np.arange(60)]
    assert np.abs(stay).max() < 5 * 0.5 / 4000**0.5
    fitted = Mallows.fit(draws, distance="spearman")
    assert fitted.center.tolist() == model.center.tolist()
    assert abs(fitted.theta - 1.0) < 4 * fitted.fit_result.standard_error
    uniform = Mallows(range(60), 0.0, "spearman")
    assert uniform.log_partition() == pytest.approx(gammaln(61))
    shuffled = rankings.spearman(rankings.random_orders(60, 4000, rng=0), range(60))
    assert abs(shuffled.mean() - uniform.expected_distance()) < 5 * shuffled.std() / 4000**0.5
    assert uniform.distance_variance() == pytest.approx(shuffled.var(), rel=0.1)
    with pytest.raises(NotExactError, match="or with a theta of 0.49 or more"):
        Mallows(range(60), 0.2, "spearman").log_partition()


def test_ulam_counts_are_the_published_ones():
    # A047874: how many permutations of n items have a longest increasing subsequence of length k.
    published = {5: [1, 41, 61, 16, 1], 6: [1, 131, 381, 181, 25, 1]}
    for n, counts in published.items():
        chances = Mallows(range(n), 0.0, "ulam").distance_distribution()
        assert chances[::-1] * math.factorial(n) == pytest.approx(counts)


def test_ulam_leaves_out_only_what_does_not_matter():
    full, cut = UlamSums(40, 14.0), UlamSums(40, 14.0)
    assert full._farthest == 39
    cut.__dict__["_farthest"] = 8
    assert cut.log_partition == pytest.approx(full.log_partition, rel=1e-13)
    model = Mallows(range(200), 20.0, "ulam")
    assert model.distance_distribution()[0] == pytest.approx(
        math.exp(-model.log_partition()), rel=1e-12
    )
    assert model.distance_distribution()[1] == pytest.approx(
        199**2 * math.exp(-20.0 - model.log_partition()), rel=1e-10
    )
    with pytest.raises(NotExactError, match=r"exact up to 61 items, or where theta is large"):
        Mallows(range(100), 0.1, "ulam").log_partition()


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
def test_targets_know_what_a_swap_changes(name):
    model = MODELS[name]
    target = target_of(model)
    assert target.is_compiled
    peek, swap, restore = (function.py_func for function in target.functions)
    if "ulam" in name:  # calls a compiled function
        peek, restore = target.peek, target.restore
    for order in rankings.enumerate_orders(4):
        state = target.state_at(order)
        restore(target.constants, state)
        assert state.value[0] - target.normalizer == pytest.approx(model.log_prob(order))
        for k in range(3):
            ahead = peek(target.constants, state, k)
            swap(target.constants, state, k, ahead)
            anew = target.state_at(state.order)
            restore(target.constants, anew)
            assert anew.value[0] == pytest.approx(ahead, abs=1e-12)
            assert (anew.integers == state.integers).all()


@pytest.mark.parametrize("name", ["stages", "cycles", "ulam", "footrule"])
def test_chains_leave_the_distribution_as_it_is(name):
    orders = rankings.enumerate_orders(4)
    chances = np.exp(MODELS[name].log_prob(orders))
    matrix = naive.transition_matrix(target_of(MODELS[name]), "adjacent", orders)
    assert np.abs(chances @ matrix - chances).max() < 1e-12


def test_chains_and_estimates_where_nothing_is_exact():
    model = Mallows(range(25), 0.01, "spearman")
    with pytest.raises(NotExactError, match="Spearman's distance: exact up to 21 items"):
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
        (lambda: Mallows([0, 1], [1.0]), ValueError, "theta: expected 0 dimension"),
        (lambda: Mallows([0, 0], 1.0), ValueError, "center: expected each item once"),
        (lambda: Mallows([[0, 1]], 1.0), ValueError, "center: expected 1 dimension"),
        (lambda: Mallows([], 1.0), ValueError, "center: expected rankings of at least one item"),
        (lambda: Mallows([0, 1], 1.0, "kendal"), ValueError, "did you mean 'kendall'"),
        (lambda: GeneralizedMallows([0, 1], [1.0, 2.0]), ValueError, "thetas: expected 1 param"),
        (lambda: GeneralizedMallows([0, 1], [-1.0]), ValueError, "thetas: expected at least 0"),
        (lambda: GeneralizedMallows([0, 1], [1.0], "ulam"), ValueError, "distance: expected one"),
        (
            lambda: Mallows(range(30), 0.1, "ulam").rank_marginals(),
            NotExactError,
            "rank_marginals: for ulam exact up to 8 items",
        ),
        (
            lambda: Mallows(range(30), 0.1, "footrule").pairwise(),
            NotExactError,
            "pairwise: for footrule exact up to 21 items",
        ),
        (
            lambda: Mallows(range(300), 0.1, "footrule").distance_distribution(),
            NotExactError,
            "distance_distribution: exact up to 250 items",
        ),
        (
            lambda: Mallows(range(20_000), 0.1, "footrule").sample(),
            NotExactError,
            "exact up to 15,000 items",
        ),
        (
            lambda: Mallows(range(12), 0.1, "cayley").expect(
                "ap", np.arange(12) % 2, method="exact"
            ),
            NotExactError,
            "for cayley exact up to 8 items",
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
