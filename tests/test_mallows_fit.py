"""Fits of Mallows' models: parameters, errors, centers, and what is refused."""

import naive
import numpy as np
import pytest

from permdist import (
    Ballots,
    DavidsonLuce,
    GaussianScores,
    GeneralizedMallows,
    Mallows,
    Mixture,
    PlackettLuce,
    posterior,
    rankings,
)
from permdist.distributions import NotExactError, compare_families

EVERY = pytest.mark.parametrize("distance", sorted(rankings.DISTANCES))


@EVERY
def test_fits_recover_the_parameters(distance):
    theta = 0.05 if distance == "spearman" else 0.9
    truth = Mallows([3, 0, 4, 1, 2], theta, distance)
    ballots = truth.sample(3000, rng=2)
    model = Mallows.fit(ballots, distance=distance)
    assert model.center.tolist() == [3, 0, 4, 1, 2]
    result = model.fit_result
    assert abs(model.theta - theta) < 4 * result.standard_error
    assert result.log_likelihood == pytest.approx(model.log_prob(ballots).sum(), rel=1e-10)
    assert model.expected_distance() == pytest.approx(result.mean_distance, rel=1e-10)
    for other in (0.99 * model.theta, 1.01 * model.theta):
        assert Mallows(model.center, other, distance).log_prob(ballots).sum() < (
            result.log_likelihood
        )
    step = 1e-3 * model.theta
    logs = [
        Mallows(model.center, model.theta + h, distance).log_prob(ballots).sum()
        for h in (-step, 0.0, step)
    ]
    curvature = -(logs[0] - 2 * logs[1] + logs[2]) / step**2
    assert result.standard_error == pytest.approx(curvature**-0.5, rel=1e-3)


@EVERY
def test_centers_have_the_least_total_distance(distance):
    rng = np.random.default_rng(8)
    ballots = np.array([rng.permutation(5) for _ in range(9)])
    weights = rng.integers(1, 5, size=9).astype(float)
    model = Mallows.fit(ballots, distance=distance, weights=weights)
    costs = rankings.distance_matrix(rankings.enumerate_orders(5), ballots, distance=distance)
    assert model.fit_result.mean_distance == pytest.approx((costs @ weights).min() / weights.sum())
    assert model.fit_result.n_ballots == weights.sum()


def test_fits_of_what_is_known():
    ballots = Mallows([1, 0, 2, 3], 0.7).sample(200, rng=0)
    known = Mallows.fit(ballots, center=[0, 1, 2, 3])
    assert known.center.tolist() == [0, 1, 2, 3]
    both = Mallows.fit(ballots, center=[0, 1, 2, 3], theta=0.5)
    assert (both.theta, both.fit_result.standard_error) == (0.5, 0.0)
    assert Mallows([0, 1], 0.5).fit_result is None
    named = Mallows.fit(Ballots.from_orders([["b", "a", "c"], ["b", "c", "a"], ["a", "b", "c"]]))
    assert [named.names[item] for item in named.center] == ["b", "a", "c"]
    reversed_center = Mallows.fit(ballots, center=[3, 2, 1, 0])
    assert reversed_center.theta == 0.0
    assert reversed_center.fit_result.standard_error > 0.0


def test_weights_count_ballots():
    ballots, times = [[0, 1, 2], [1, 0, 2], [2, 1, 0]], [4, 2, 1]
    weighted = Mallows.fit(ballots, weights=times)
    repeated = Mallows.fit(np.repeat(ballots, times, axis=0))
    assert weighted.theta == pytest.approx(repeated.theta, rel=1e-10)
    assert weighted.fit_result.log_likelihood == pytest.approx(repeated.fit_result.log_likelihood)


def test_centers_of_many_items_are_kemeny_orders():
    center = np.random.default_rng(0).permutation(25)
    model = Mallows.fit(Mallows(center, 0.8).sample(50, rng=0))
    assert model.center.tolist() == center.tolist()
    assert model.fit_result.proved


def test_centers_by_assignment_of_many_items():
    center = np.random.default_rng(0).permutation(60)
    for distance, theta in (("footrule", 0.5), ("hamming", 4.0)):
        model = Mallows.fit(Mallows(center, theta, distance).sample(400, rng=0), distance=distance)
        assert model.center.tolist() == center.tolist()
        assert abs(model.theta - theta) < 4 * model.fit_result.standard_error


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Mallows.fit([[0, 1, 2]] * 3), ValueError, "all agree with the center"),
        (lambda: Mallows.fit([[0], [0]]), ValueError, "expected at least two items"),
        (lambda: Mallows.fit([[0, 1], [1, 0]], center=[0, 1, 2]), ValueError, "center: expected"),
        (
            lambda: Mallows.fit([list(range(30))] * 2, distance="cayley"),
            NotExactError,
            "center: for cayley found exactly up to 8 items",
        ),
    ],
)
def test_mistakes_are_named(make, error, message):
    naive.refuses(make, error, message)


CLUSTERED = Ballots.of([[0, 1, 2], [1, 0, 2], [2, 0, 1], [0, 1, 2]], clusters=list("aabb"))


@pytest.mark.parametrize(
    "call",
    [
        lambda: Mallows.fit(CLUSTERED),
        lambda: GeneralizedMallows.fit(CLUSTERED),
        lambda: Mixture.fit(CLUSTERED, k=2),
        lambda: compare_families(CLUSTERED),
        *(
            lambda family=family: posterior.sample(family, CLUSTERED, 1.0)
            for family in (PlackettLuce, DavidsonLuce, GaussianScores, Mixture)
        ),
        lambda: posterior.sample(Mallows, CLUSTERED),
        lambda: posterior.sample(GeneralizedMallows, CLUSTERED),
        lambda: posterior.sample(PlackettLuce.fit(CLUSTERED), prior=1.0),
    ],
)
def test_clusters_are_refused_where_nothing_takes_them_into_account(call):
    with pytest.raises(ValueError, match=r"clusters: .* as independent.*clusters=None"):
        call()
