"""Posteriors of Mallows' model against enumeration of centers and quadrature over theta."""

import numpy as np
import pytest
from naive_posterior import run

from permdist import Ballots, Mallows, PlackettLuce, rankings
from permdist.ballots import levels_of
from permdist.posterior import sample, simulation_based_calibration
from permdist.posterior.ballots import no_ballots
from permdist.posterior.mallows import MallowsPosterior, MallowsPrior, mallows_problem
from permdist.posterior.priors import Flat, Gamma
from permdist.posterior.spreads import normalizer

DISTANCES = sorted(rankings.DISTANCES)
EVERY = pytest.mark.parametrize("distance", DISTANCES)
THETAS = {"kendall": 0.6, "footrule": 0.4, "spearman": 0.15, "hamming": 0.8, "cayley": 1.0,
          "ulam": 1.2}  # fmt: skip


def exact(ballots, distance, prior):
    """List all centers (probabilities, by order), and integrate over theta (mean, s.d.)."""
    orders = rankings.enumerate_orders(ballots.n_items)
    grid = np.exp(np.linspace(-9.0, 3.0, 400))
    away = rankings.distance_matrix(orders, orders, distance=distance)
    marks = levels_of(ballots)[:, orders]  # ballot, order, place
    agrees = ((marks < 0) | (marks == np.maximum.accumulate(marks, axis=2))).all(axis=2)
    table = np.empty((len(orders), len(grid)))
    for column, theta in enumerate(grid):
        weights = np.exp(-theta * away)
        chances = (weights @ agrees.T) / weights.sum(axis=1, keepdims=True)
        table[:, column] = np.log(np.maximum(chances, 1e-300)) @ ballots.weights
    table += prior.theta.log_density_of_values(grid) + np.log(grid)
    table += prior.log_center(orders)[:, None]
    shares = np.exp(table - table.max())
    theta = shares.sum(axis=0) / shares.sum()
    mean = theta @ grid
    return shares.sum(axis=1) / shares.sum(), mean, np.sqrt(theta @ (grid - mean) ** 2)


def batch_error(series):
    """Return the standard error of the mean of each column, from 50 batches."""
    batches = series[: len(series) // 50 * 50].reshape(50, -1, *series.shape[1:]).mean(axis=1)
    return batches.std(axis=0, ddof=1) / np.sqrt(50.0)


def ballots_of(kind, orders):
    n = orders.shape[1]
    if kind == "none":
        return no_ballots(n)
    if kind == "full":
        return Ballots.from_orders(orders, weights=[2, 1, 1, 1])
    if kind == "top":
        return Ballots.from_orders(orders[:, :2], n_items=n, subset=False)
    if kind == "some":
        return Ballots.from_orders(orders[:, [0, 2]], n_items=n, subset=True, weights=[2, 1, 0, 1])
    return Ballots.from_orders([[[a, b], [c, *rest]] for a, b, c, *rest in orders.tolist()])


@EVERY
@pytest.mark.parametrize("kind", ["none", "full", "top", "some", "ties"])
def test_draws_have_the_exact_posterior(distance, kind):
    n = 5 if kind == "full" else 4
    orders = Mallows(np.roll(np.arange(n), 2), THETAS[distance], distance).sample(4, rng=1)
    ballots = ballots_of(kind, orders)
    prior = MallowsPrior(Gamma(2.0, 2.0), Mallows(range(n), 0.3, "hamming"))
    chances, mean, sd = exact(ballots, distance, prior)
    draws = run(MallowsPosterior(ballots, distance, prior), 3000, 0)
    numbers = np.argsort(draws[:, :n], axis=1)
    every = rankings.enumerate_orders(n)
    ranks = np.argsort(every, axis=1)
    for item in range(n):
        for place in range(n):
            seen = (numbers[:, place] == item).astype(float)
            error = batch_error(seen) + 1e-3
            assert abs(seen.mean() - chances[ranks[:, item] == place].sum()) < 5.5 * error
    theta = draws[:, -1]
    assert abs(theta.mean() - mean) < 5.5 * batch_error(theta)
    assert abs(theta.std() - sd) < 5.5 * batch_error((theta - mean) ** 2) / (2.0 * sd) + 1e-3 * sd


@pytest.mark.parametrize("center", [PlackettLuce([0.5, 0.0, -0.5, 0.2]),
                                    Mallows([3, 2, 1, 0], 0.7, "cayley")])  # fmt: skip
@pytest.mark.parametrize("distance", ["kendall", "cayley", "footrule"])
def test_any_prior_of_the_center(distance, center):
    prior = MallowsPrior(Gamma(1.0, 1.0), center)
    ballots = Ballots.from_orders([[0, 1, 2, 3], [1, 0, 3, 2]])
    chances, mean, _ = exact(ballots, distance, prior)
    draws = run(MallowsPosterior(ballots, distance, prior), 1500, 0)
    first = (draws[:, :4] == 0).mean(axis=0)
    every = rankings.enumerate_orders(4)
    for item in range(4):
        error = batch_error((draws[:, item] == 0).astype(float)) + 3e-3
        assert abs(first[item] - chances[every[:, 0] == item].sum()) < 5.5 * error
    assert abs(draws[:, -1].mean() - mean) < 5.5 * batch_error(draws[:, -1])


@EVERY
@pytest.mark.parametrize("n", [2, 7, 30])
def test_normalizers_are_partition_functions(distance, n):
    if distance == "spearman" and n == 30:
        n = 12
    for theta in (1e-8, 0.01, 0.3, 5.0):
        expected = -3.0 * Mallows(range(n), theta, distance).log_partition()
        assert normalizer(distance, n, 3.0)(theta) == pytest.approx(expected, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("kind", ["full", "top", "some", "ties"])
@EVERY
def test_log_likelihood_is_that_of_the_model(distance, kind):
    orders = Mallows([2, 0, 1, 3], THETAS[distance], distance).sample(4, rng=3)
    ballots = ballots_of(kind, orders)
    problem = MallowsPosterior(ballots, distance, Gamma(1.0, 1.0))
    draws = problem.prior_draws(5, np.random.default_rng(0))
    found = problem.log_likelihood(draws)
    for draw, row in zip(draws, found, strict=True):
        expected = problem.model(draw).log_prob(ballots) * ballots.weights
        assert row == pytest.approx(expected, abs=1e-10)
    again = problem.replicate(draws[0], np.random.default_rng(0))
    assert again.weights.sum() == ballots.weights.sum()
    assert again.ptr[-1] == ballots.weights @ np.diff(ballots.ptr)
    assert levels_of(again).max() == levels_of(ballots).max()


def test_chains_from_random_orders_find_the_same_center():
    truth = np.random.default_rng(0).permutation(30)
    for distance in ("kendall", "footrule", "hamming", "cayley", "ulam"):
        theta = {"kendall": 0.3, "footrule": 0.2, "hamming": 2.0, "cayley": 3.0, "ulam": 2.5}
        orders = Mallows(truth, theta[distance], distance).sample(60, rng=1)
        problem = MallowsPosterior(Ballots.from_orders(orders), distance, Gamma(1.0, 0.1))
        for seed in (0, 1):
            draws = run(problem, 200, seed)
            assert abs(draws[-50:, :30].mean(axis=0) - np.argsort(truth)).mean() < 0.5
            assert abs(draws[-50:, -1].mean() / theta[distance] - 1.0) < 0.2


CASES = ["kendall top", "kendall some", "cayley top", "ulam full", "hamming ties"]


@pytest.mark.parametrize("case", CASES)
def test_calibration(case):
    distance, kind = case.split()
    orders = np.array([[0, 1, 2, 3]] * 5)
    if kind == "full":
        ballots = Ballots.from_orders(orders)
    elif kind == "top":
        ballots = Ballots.from_orders(orders[:, :2], n_items=4, subset=False)
    elif kind == "some":
        ballots = Ballots.from_orders(orders[:, :3], n_items=4, subset=True)
    else:
        ballots = Ballots.from_orders([[[0, 1], [2, 3]]] * 5)
    prior = MallowsPrior(Gamma(2.0, 2.0 / THETAS[distance]), Mallows([0, 1, 2, 3], 0.2))
    found = simulation_based_calibration(
        lambda data: MallowsPosterior(data, distance, prior),
        ballots,
        replications=48,
        draws=15,
        thin=4 if case in ("ulam full", "kendall top", "cayley top") else 6,
        tune=40,
        rng=1,
    )
    assert found.worst(bins=8)[1] > 1e-4


def test_threads_checkpoints_and_one_ballot(tmp_path):
    ballots = Ballots.from_orders([[3, 1]], n_items=4, subset=False)
    options = {"distance": "footrule", "draws": 60, "tune": 20, "chains": 2, "rng": 3}
    one = sample(Mallows, ballots, Gamma(1.0, 1.0), n_jobs=1, **options)
    two = sample(Mallows, ballots, Gamma(1.0, 1.0), n_jobs=2, checkpoint=tmp_path / "c", **options)
    assert np.array_equal(one.draws, two.draws)
    assert one.best().shape[0] == 4


def test_a_known_center_or_theta_is_not_estimated():
    ballots = Ballots.from_orders([[0, 1, 2], [0, 2, 1]], names=["x", "y", "z"])
    only_center = MallowsPosterior(ballots, "kendall", theta=1.0)
    assert [each.name for each in only_center.variables] == ["center"]
    draw = run(only_center, 100, 0)[-1]
    model = only_center.model(draw)
    assert (model.theta, model.names) == (1.0, ("x", "y", "z"))
    only_theta = MallowsPosterior(ballots, "kendall", Gamma(1.0, 1.0), center=[0, 1, 2])
    assert [each.name for each in only_theta.variables] == ["theta"]
    draws = run(only_theta, 3000, 0)
    grid = np.linspace(1e-4, 12.0, 4000)
    logs = [Mallows([0, 1, 2], t).log_prob([[0, 1, 2], [0, 2, 1]]).sum() - t for t in grid]
    shares = np.exp(logs) / np.exp(logs).sum()
    assert abs(draws.mean() - shares @ grid) < 5.5 * batch_error(draws[:, 0])
    with pytest.raises(ValueError, match="both are given"):
        MallowsPosterior(ballots, "kendall", theta=1.0, center=[0, 1, 2])


def test_improper_posteriors_are_refused():
    same = Ballots.from_orders([[0, 1, 2], [0, 1, 2]])
    with pytest.raises(ValueError, match="a center agrees with all ballots; set prior=Gamma"):
        MallowsPosterior(same, "footrule")
    with pytest.raises(ValueError, match="agrees"):
        MallowsPosterior(no_ballots(3), "kendall", Flat())
    mixed = Ballots.from_orders([[0, 1, 2], [1, 0, 2]])
    with pytest.raises(ValueError, match="flat prior"):
        MallowsPosterior(mixed).prior_draws(3, np.random.default_rng(0))
    assert run(MallowsPosterior(mixed), 50, 0).shape == (45, 4)
    assert run(MallowsPosterior(same, theta=1.0), 50, 0).shape == (45, 3)
    MallowsPosterior(mixed, center=[0, 1, 2])
    with pytest.raises(ValueError, match="agrees"):
        MallowsPosterior(Ballots.from_pairs([0, 1], [1, 2], n_items=3), center=[0, 1, 2])
    MallowsPosterior(Ballots.from_pairs([0, 1, 2], [1, 2, 0]))


def test_wrong_input_is_named():
    two = Ballots.from_orders([[0, 1]])
    for error, call in (
        (ValueError, lambda: MallowsPosterior(Ballots.from_pairs([0], [1], weights=[0.5]))),
        (TypeError, lambda: MallowsPosterior(two, "kendall", 3.0)),
        (ValueError, lambda: MallowsPosterior(two, prior=Mallows([0, 1, 2], 0.3))),
        (TypeError, lambda: mallows_problem(Mallows, None, Gamma())),
    ):
        with pytest.raises(error):
            call()
    problem = mallows_problem(Mallows([0, 1, 2], 1.0, "ulam"), None, Gamma())
    assert (problem.distance, problem.n) == ("ulam", 3)


def test_best_and_worst_choices_are_drawn_again():
    ballots = Ballots.from_best_worst([0, 1], [2, 3], [[0, 1, 2, 3], [1, 2, 3]])
    problem = MallowsPosterior(ballots, "kendall", Gamma(1.0, 1.0))
    draws = run(problem, 200, 0)
    again = problem.replicate(draws[-1], np.random.default_rng(1))
    levels = levels_of(again)
    assert sorted(levels[0].tolist()) == [0, 1, 1, 2]
    assert sorted(levels[1].tolist()) == [-1, 0, 1, 2]
