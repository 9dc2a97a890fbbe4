"""Posteriors of mixtures against enumeration of who belongs to which component."""

import itertools

import numpy as np
import pytest
from naive_posterior import run
from scipy.special import gammaln

from permdist import Ballots, Mallows, Mixture, PlackettLuce, rankings
from permdist.posterior import (
    Flat,
    Gamma,
    MallowsPrior,
    MixturePosterior,
    problem_of,
    sample,
    simulation_based_calibration,
)
from permdist.posterior.mixture_parts import luce_log_probs

CAST = [[0, 1, 2], [0, 2, 1], [2, 1, 0], [0, 1, 2], [2, 0, 1]]


def mallows_grid(ballots, distance):
    """Log-likelihoods of all centers and a grid of thetas (cells, ballots), and their weights."""
    grid = np.exp(np.linspace(-8.0, 3.5, 100))
    shares = grid * np.exp(-grid) / len(rankings.enumerate_orders(3))
    logs = [
        Mallows(center, theta, distance).log_prob(ballots)
        for center in rankings.enumerate_orders(3)
        for theta in grid
    ]
    return np.array(logs), np.tile(shares / shares.sum(), 6)


def luce_grid(ballots):
    """The same for worths on the simplex, uniform: gamma variables of shape 1 and their sum."""
    steps = (np.arange(60) + 0.5) / 60
    first, second = (each.ravel() for each in np.meshgrid(steps, steps))
    # Square root, so that cells have equal weights.
    a = 1.0 - np.sqrt(1.0 - first)
    worths = np.column_stack([a, (1.0 - a) * second, (1.0 - a) * (1.0 - second)])
    data = Ballots.of(ballots)
    logs = luce_log_probs(data.items, data.ptr, np.diff(data.stages), np.log(worths)).T
    return logs, np.full(len(worths), 1.0 / len(worths))


def exact_pairs(logs, shares, alpha):
    """List all memberships in two components; return who is with whom."""
    n = logs.shape[1]
    total, together = 0.0, np.zeros((n, n))
    for members in itertools.product([0, 1], repeat=n):
        z = np.array(members)
        value = 0.0
        for part in (0, 1):
            value += np.log(shares @ np.exp(logs[:, z == part].sum(axis=1)))
            value += gammaln(alpha + (z == part).sum())
        total += np.exp(value)
        together += np.exp(value) * (z[:, None] == z)
    return together / total


@pytest.mark.parametrize("family", ["plackett-luce", "kendall", "footrule", "ulam"])
def test_who_is_with_whom_is_exact(family):
    ballots = Ballots.from_orders(CAST)
    if family == "plackett-luce":
        problem = MixturePosterior(ballots, 2, alpha=0.7)
        logs, shares = luce_grid(CAST)
    else:
        problem = MixturePosterior(ballots, 2, "mallows", alpha=0.7, distance=family)
        logs, shares = mallows_grid(CAST, family)
    together = exact_pairs(logs, shares, 0.7)
    draws = run(problem, 2000, 0)
    batches = np.array([problem.co_clustering(part) for part in np.array_split(draws, 20)])
    error = batches.std(axis=0, ddof=1) / np.sqrt(20) + 2e-3
    assert (np.abs(batches.mean(axis=0) - together) < 5.5 * error).all()


def test_log_likelihood_is_that_of_the_mixture():
    ballots = Ballots.from_orders([[0, 1, 2, 3], [2, 0, 1], [1, 3]], subset=True, weights=[2, 1, 3])
    problem = MixturePosterior(ballots, 3)
    draws = problem.prior_draws(4, np.random.default_rng(0))
    for draw, found in zip(draws, problem.log_likelihood(draws), strict=True):
        expected = problem.model(draw).log_prob(ballots) * ballots.weights
        assert found == pytest.approx(expected, abs=1e-10)
    ties = Ballots.from_orders([[[0, 1], 2, 3], [3, [0, 1, 2]], [1, 0, 2, 3]])
    problem = MixturePosterior(ties, 2, "mallows")
    draws = problem.prior_draws(4, np.random.default_rng(0))
    for draw, found in zip(draws, problem.log_likelihood(draws), strict=True):
        assert found == pytest.approx(problem.model(draw).log_prob(ties), abs=1e-10)


def test_components_are_numbered_by_weight():
    ballots = Ballots.from_orders([[0, 1, 2, 3], [3, 2, 1, 0]], weights=[12, 20])
    posterior = sample(Mixture, ballots, family="mallows", k=2, draws=200, chains=2, rng=0)
    found = posterior.problem.split(posterior.draws)
    assert (np.diff(found["weights"], axis=-1) <= 0.0).all()
    assert found["center"].shape == (2, 200, 2, 4)
    assert abs(found["weights"][..., 0].mean() - 21 / 34) < 0.1
    again = posterior.problem.replicate(posterior.draws[0, 0], np.random.default_rng(0))
    assert again.n_ballots == 32
    shares = posterior.problem.memberships(posterior.draws)
    assert shares.sum(axis=1) == pytest.approx(1.0)


def test_groups_are_found():
    rng = np.random.default_rng(4)
    truth = Mixture([PlackettLuce(rng.normal(0, 2, 8)) for _ in range(2)], [0.6, 0.4])
    orders = truth.sample(300, rng=1)
    ballots = Ballots.from_orders(orders[:, :4], n_items=8, subset=False)
    problem = MixturePosterior(ballots, 2, prior=Gamma(1.0, 1.0))
    draws = run(problem, 600, 0)[-200:]
    scores = problem.split(draws)["scores"].mean(axis=0)
    for part, component in zip(scores, truth.components, strict=True):
        away = component.scores - component.scores.mean()
        assert np.corrcoef(part, away)[0, 1] > 0.9


@pytest.mark.parametrize("family", ["plackett-luce", "mallows"])
def test_calibration(family):
    ballots = Ballots.from_orders([[0, 1, 2, 3]] * 6)
    found = simulation_based_calibration(
        lambda data: MixturePosterior(data, 2, family, Gamma(2.0, 2.0)),
        ballots,
        replications=64,
        draws=15,
        thin=3,
        tune=30,
        rng=0,
    )
    assert found.worst(bins=8)[1] > 1e-4


def test_wrong_input_is_named():
    ballots = Ballots.from_orders([[0, 1, 2]])
    tied = Ballots.from_orders([[[0, 1], 2]])
    for message, given, options in (
        ("family: expected", ballots, {"family": "gaussian"}),
        ("whole numbers", Ballots.from_orders([[0, 1]], weights=[0.5]), {}),
        ("alpha", ballots, {"alpha": 0.0}),
        ("proper prior", ballots, {"family": "mallows", "prior": MallowsPrior(Flat())}),
        ("have ties", tied, {}),
        ("full rankings for a mixture", tied, {"family": "mallows", "distance": "ulam"}),
    ):
        with pytest.raises(ValueError, match=message):
            MixturePosterior(given, **options)
    problem = problem_of(Mixture, None, n_items=3, k=2)
    assert run(problem, 50, 0).shape == (45, 2 + 6)
    assert problem.log_likelihood(problem.prior_draws(2, np.random.default_rng(0))).shape == (2, 0)
