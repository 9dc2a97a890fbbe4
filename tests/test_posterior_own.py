"""Posteriors from functions, against quadrature and the library's own families."""

import numpy as np
import pytest

from permdist import Ballots, Mallows
from permdist.posterior import (
    Calibration,
    Normal,
    exact,
    from_functions,
    sample,
    simulation_based_calibration,
)

RANKINGS = [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]]
BALLOTS = Ballots.from_orders(RANKINGS, weights=[6, 3, 1])


def mallows(theta):
    return Mallows(range(3), float(np.exp(theta[0])), names=["a", "b", "c"])


def log_prob(theta, ballots):
    del ballots
    return mallows(theta).log_prob(np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1]]))


@pytest.fixture(scope="module")
def problem():
    return from_functions(
        log_prob, Normal(0.0, 1.0), data=BALLOTS, names="log_theta", model=mallows
    )


@pytest.fixture(scope="module")
def draws(problem):
    return sample(problem, draws=500, rng=3)


def test_draws_are_those_of_the_density(problem, draws):
    grid = np.linspace(-8.0, 5.0, 20001)
    counts = {0: 6, 1: 3, 2: 1}
    theta = np.exp(grid)
    normal = np.log(sum(k * np.exp(-theta * d) for d, k in enumerate((1, 2, 2, 1))))
    logs = -0.5 * grid**2 - sum(w * (theta * d + normal) for d, w in counts.items())
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = float(weights @ grid)
    sd = float(np.sqrt(weights @ (grid - mean) ** 2))
    found = exact(problem)
    np.testing.assert_allclose([found.mean[0], found.sd[0]], [mean, sd], atol=1e-5)
    evidence = np.log(np.exp(logs).sum() * (grid[1] - grid[0])) - 0.5 * np.log(2 * np.pi)
    assert found.log_evidence == pytest.approx(evidence, abs=1e-6)
    effective = draws.summary().table.loc["log_theta", "ess_bulk"]
    assert effective > 400
    assert draws.flat.mean() == pytest.approx(mean, abs=5.0 * sd / np.sqrt(effective))


def test_everything_else_works(problem, draws):
    assert draws.loo()["n_data_points"] == 10
    assert draws.check("distance").p_values[0] > 0.01
    assert list(draws.check("top", draws=20).labels) == ["a", "b", "c"]
    assert len(draws.models(5)) == 5
    groups = draws.to_arviz(predictive=5)
    assert groups["prior_predictive"]["rank"].shape == (1, 5, 10, 3)
    found = simulation_based_calibration(
        lambda data: from_functions(
            lambda theta, orders: mallows(theta).log_prob(orders),
            Normal(0.0, 1.0),
            data=data,
            replicate=lambda theta, rng: mallows(theta).sample(6, rng=rng),
        ),
        np.zeros((6, 3), np.int64) + np.arange(3),
        replications=40,
        draws=15,
        rng=1,
    )
    assert found.worst(bins=8)[1] > 1e-4


def test_priors_by_name_and_derivatives():
    y = np.array([1.2, 0.4, 2.2, 1.1])

    def normal(theta, data):
        return -0.5 * (data - theta[0]) ** 2 * np.exp(-2.0 * theta[1]) - theta[1]

    problem = from_functions(
        normal, {"mean": 0.01, "log_sd": Normal(0.0, 1.0)}, data=y, names=["mean", "log_sd"]
    )
    theta = np.array([1.0, -0.3])
    _, gradient, curvature = problem.derivatives(theta)
    inverse = np.exp(0.6)
    away = y - theta[0]
    slopes = [
        away.sum() * inverse - 0.01 * theta[0],
        (away**2).sum() * inverse - 4 - theta[1],
    ]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-3)
    bends = [
        [4 * inverse + 0.01, 2 * away.sum() * inverse],
        [2 * away.sum() * inverse, 2 * (away**2).sum() * inverse + 1],
    ]
    np.testing.assert_allclose(curvature, bends, rtol=1e-3)
    assert problem.observed["data"][0] == ("observation",)


@pytest.mark.parametrize(
    ("log_prob", "prior", "options", "error", "message"),
    [
        (lambda *_: None, 1.0, {"data": [1]}, TypeError, "log_likelihood: expected an array"),
        (lambda *_: 0.0, 1.0, {"data": [1]}, ValueError, "one number per observation"),
        (lambda *_: np.zeros(2), 1.0, {"data": BALLOTS}, ValueError, "one number per ballot"),
        (lambda *_: np.full(2, -np.inf), 1.0, {"data": [1, 2]}, ValueError, "start: "),
        (lambda *_: np.zeros(2), {"a": 1.0}, {"data": [1], "names": "ab"}, ValueError, "prior: "),
    ],
)
def test_functions_that_are_refused(log_prob, prior, options, error, message):
    with pytest.raises(error, match=message):
        from_functions(log_prob, prior, **options)


def test_replicas_need_a_model():
    silent = from_functions(log_prob, 1.0, data=BALLOTS)
    with pytest.raises(NotImplementedError, match="pass replicate= or model="):
        sample(silent, draws=20, rng=0).check()


def test_calibration_has_a_verdict():
    names = ("scores[tea]", "log_likelihood")
    ranks = np.random.default_rng(0).integers(0, 32, (320, 2))
    fine = Calibration(ranks, 31, names)
    assert fine.verdict.startswith("No sign of errors in 320 replications")
    assert fine.verdict in str(fine)
    wrong = Calibration(ranks // [1, 2], 31, names)
    assert wrong.verdict.startswith("Not calibrated: the smallest p-value is that of log_likeli")
    assert wrong.to_frame()["z"].iloc[1] < -5
    assert "no verdict" in Calibration(ranks[:4], 31, names).verdict
