"""Posteriors of the generalized Mallows model against enumeration and quadrature."""

import numpy as np
import pytest
from naive_posterior import run

from permdist import Ballots, GeneralizedMallows, Mallows, rankings
from permdist.posterior import (
    Gamma,
    GeneralizedMallowsPosterior,
    MallowsPrior,
    problem_of,
    simulation_based_calibration,
)


@pytest.mark.parametrize("kind", ["full", "first"])
def test_draws_have_the_exact_posterior(kind):
    orders = np.array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [0, 2, 1]])
    full = Ballots.from_orders(orders, weights=[2, 1, 1, 1])
    first = Ballots.from_orders(orders[:, :1], n_items=3, subset=False)
    ballots = full if kind == "full" else first
    prior = MallowsPrior(Gamma(2.0, 1.5), Mallows([0, 1, 2], 0.4))
    draws = run(GeneralizedMallowsPosterior(ballots, prior), 6000, 0)
    every = rankings.enumerate_orders(3)
    grid = np.exp(np.linspace(-6.0, 2.5, 26))
    table = np.empty((6, 26, 26))
    for row, center in enumerate(every):
        for a, one in enumerate(grid):
            for b, two in enumerate(grid):
                model = GeneralizedMallows(center, [one, two])
                # The likelihood is looked up once per order, which is all that is cast.
                table[row, a, b] = _value(model, ballots, kind)
    density = prior.theta.log_density_of_values(grid) + np.log(grid)
    table += density[:, None] + density + prior.log_center(every)[:, None, None]
    shares = np.exp(table - table.max())
    shares /= shares.sum()
    for stage, axis in ((0, (0, 2)), (1, (0, 1))):
        series = draws[:, 3 + stage]
        error = series[: len(series) // 50 * 50].reshape(50, -1).mean(axis=1).std() / 7.0
        assert abs(series.mean() - shares.sum(axis=axis) @ grid) < 5.5 * error + 2e-3
    tops = shares.sum(axis=(1, 2))
    for item in range(3):
        seen = (draws[:, item] == 0).mean()
        assert abs(seen - tops[every[:, 0] == item].sum()) < 0.035


def _value(model, ballots, kind):
    if kind == "first":
        chances = np.exp(model.log_weight(rankings.enumerate_orders(3)) - model.log_partition())
        first = np.array([chances[rankings.enumerate_orders(3)[:, 0] == i].sum() for i in range(3)])
        return np.log(first[ballots.items.reshape(-1, 3)[:, 0]]).sum()
    logs = model.log_weight(ballots.items.reshape(-1, 3)) - model.log_partition()
    return logs @ ballots.weights


def test_calibration():
    ballots = Ballots.from_orders([[0, 1], [1, 0], [2, 3], [3, 2]], n_items=4, subset=False)
    found = simulation_based_calibration(
        lambda data: GeneralizedMallowsPosterior(data, Gamma(2.0, 2.0)),
        ballots, replications=64, draws=15, thin=3, tune=30, rng=0,
    )  # fmt: skip
    assert found.worst(bins=8)[1] > 1e-4


def test_log_likelihood_is_that_of_the_model():
    ballots = Ballots.from_orders([[0, 1], [2]], n_items=4, subset=False, weights=[3, 1])
    problem = problem_of(GeneralizedMallows, ballots, Gamma(1.0, 1.0))
    draws = problem.prior_draws(3, np.random.default_rng(0))
    for draw, row in zip(draws, problem.log_likelihood(draws), strict=True):
        assert row == pytest.approx(problem.model(draw).log_prob(ballots) * ballots.weights)
    assert problem.replicate(draws[0], np.random.default_rng(0)).n_ballots == 4


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match="proper prior of the thetas"):
        GeneralizedMallowsPosterior(Ballots.from_orders([[0, 1, 2]]))
    with pytest.raises(ValueError, match="without ties"):
        GeneralizedMallowsPosterior(Ballots.from_orders([[[0, 1], 2]]), Gamma())
    with pytest.raises(ValueError, match="distance: expected 'kendall'"):
        problem_of(GeneralizedMallows, [[0, 1, 2]], Gamma(), distance="cayley")
