"""Learners as posteriors of their coefficients."""

import numpy as np
import pytest
from naive_posterior import grid

from permdist import data
from permdist.data import Queries
from permdist.models import MLE, ConvexLoss, ListMLE
from permdist.objectives import Likelihood
from permdist.posterior import Normal, problem_of, sample, simulation_based_calibration

QUIET = {"progress": False, "rng": 3}


@pytest.fixture(scope="module")
def queries():
    return data.make_letor(30, rng=0)


def small(rng, shift=0.0, unit=1.0):
    X = rng.normal(size=(24, 2)) * [1.0, unit] + shift
    return Queries(X, rng.integers(0, 3, size=24), np.repeat(np.arange(4), 6))


def test_agreement_with_quadrature():
    queries = small(np.random.default_rng(1))
    loss = Likelihood(space="pairs", scale=False)

    def log_density(points):
        values = [
            -0.5 * loss(queries.X @ w, queries.y, queries.qid)[0] - (w @ w) / 3.0 for w in points
        ]
        return np.array(values)

    points, weights, _ = grid(log_density, [-2.5, -2.5], [2.5, 2.5], 31)
    learner = MLE(C=3.0, standardize=False, scale=False)
    found = sample(learner, queries, draws=1500, inverse_temperature=0.5, chains=2, **QUIET)
    flat = found.draws.reshape(-1, 2)
    np.testing.assert_allclose(flat.mean(axis=0), weights @ points, atol=0.03)
    exact = weights @ points**2 - (weights @ points) ** 2
    np.testing.assert_allclose(flat.var(axis=0), exact, rtol=0.1)
    difference = log_density(flat[:20]) - found.log_density.ravel()[:20]
    assert np.ptp(difference) < 1e-9  # but for the constant of the prior


@pytest.mark.parametrize("learner", [MLE(C=0.1), ConvexLoss("ap", C=0.1), ListMLE(C=1.0)])
def test_the_mode_is_what_the_learner_fits(learner, queries):
    problem = problem_of(learner, queries)
    assert problem.mode.gap < 1e-9
    fitted = problem.learner.coef_[problem.varying]
    mode = problem.record(problem.mode.parameters)
    sd = np.sqrt(np.diag(np.linalg.inv(problem.mode.curvature))) / problem.spread
    assert (np.abs(mode - fitted) / sd).max() < 0.1  # the learner's own tolerance
    draws = sample(problem, draws=20, chains=2, **QUIET).draws
    each = problem.log_likelihood(draws[0])
    assert each.shape == (20, len(problem.coords["observation"]))
    assert problem.coords["feature"] == problem.feature_names


def test_units_make_no_difference():
    options = {"draws": 30, "chains": 1, **QUIET}
    one = sample(ListMLE(), small(np.random.default_rng(2)), **options).draws
    other = sample(ListMLE(), small(np.random.default_rng(2), shift=5.0, unit=1e3), **options).draws
    np.testing.assert_allclose(other * [1.0, 1e3], one, rtol=2e-3, atol=2e-3)


def test_calibration_of_listmle():
    rng = np.random.default_rng(3)
    X, ids = rng.normal(size=(20, 2)), np.repeat(np.arange(4), 5)

    def make(labels):
        prior = Normal(0.0, 1.0)
        return problem_of(ListMLE(ties="index"), (X, labels, ids), prior)

    labels = np.tile([4, 3, 2, 1, 0], 4)
    found = simulation_based_calibration(make, labels, replications=96, draws=15, rng=0)
    assert found.worst(bins=8)[1] > 1e-4


def test_refusals(queries):
    for learner, options, message in (
        (MLE(), {}, "data: expected Queries or"),
        (MLE(), {"data": queries, "inverse_temperature": 0.0}, "inverse_temperature"),
        (ConvexLoss(reweight=1), {"data": queries}, "set reweight=0"),
        (MLE(), {"data": queries, "prior": Normal(0.0, [1.0, 2.0])}, "prior"),
    ):
        with pytest.raises(ValueError, match=message):
            problem_of(learner, **options)
    problem = problem_of(MLE(), queries)
    with pytest.raises(ValueError, match="is no model of labels"):
        problem.replicate(np.zeros(problem.size), np.random.default_rng(0))
    constant = Queries([[1.0], [1.0]], [1, 0], [0, 0])
    with pytest.raises(ValueError, match="expected a feature that differs within a query"):
        problem_of(ListMLE(), constant)
