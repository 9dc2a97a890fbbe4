"""Mallows' models of many items: large sums, counts in whole numbers."""

import math

import naive_mallows
import numpy as np
import pytest
from scipy.special import gammaln

from permdist import Mallows, rankings
from permdist.distributions import NotExactError


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


def test_spearman_of_many_items():
    uniform = Mallows(range(60), 0.0, "spearman")
    assert uniform.log_partition() == pytest.approx(gammaln(61))
    shuffled = rankings.spearman(rankings.random_orders(60, 4000, rng=0), range(60))
    assert abs(shuffled.mean() - uniform.expected_distance()) < 5 * shuffled.std() / 4000**0.5
    assert uniform.distance_variance() == pytest.approx(shuffled.var(), rel=0.1)
    with pytest.raises(NotExactError, match=r"exact up to 21 items, .* has 60; estimate it with"):
        Mallows(range(60), 2.0, "spearman").log_partition()


def test_ulam_counts_are_the_published_ones():
    # A047874: how many permutations of n items have a longest increasing subsequence of length k.
    published = {5: [1, 41, 61, 16, 1], 6: [1, 131, 381, 181, 25, 1]}
    for n, counts in published.items():
        chances = Mallows(range(n), 0.0, "ulam").distance_distribution()
        assert chances[::-1] * math.factorial(n) == pytest.approx(counts)


def test_ulam_leaves_out_only_what_does_not_matter():
    model = Mallows(range(200), 20.0, "ulam")
    assert model.distance_distribution()[0] == pytest.approx(
        math.exp(-model.log_partition()), rel=1e-12
    )
    assert model.distance_distribution()[1] == pytest.approx(
        199**2 * math.exp(-20.0 - model.log_partition()), rel=1e-10
    )
    with pytest.raises(NotExactError, match=r"exact up to 61 items, or where theta is large"):
        Mallows(range(100), 0.1, "ulam").log_partition()
