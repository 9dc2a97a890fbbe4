"""Posteriors of smooth models: against exact ones, calibrated, and what is refused."""

import numpy as np
import pytest
from naive_posterior import centered_basis, grid, log_ballot, log_gaussian_order, log_order
from scipy.stats import gamma, multivariate_normal, norm

from permdist import DavidsonLuce, GaussianScores, Mallows, PlackettLuce
from permdist.ballots import Ballots
from permdist.inference import Normal as FitNormal
from permdist.inference import PseudoWins, Ridge
from permdist.posterior import (
    Gamma,
    Normal,
    Posterior,
    Prior,
    problem_of,
    sample,
    simulation_based_calibration,
)

ORDERS = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [0, 1, 2], [2, 1, 0]]
# The winner is always the one with the larger covariate.
SEPARATED = Ballots.from_pairs([0, 1] * 3, [1, 0] * 3).with_features([[[1], [0]], [[0], [1]]] * 3)
FEW = {"draws": 4000, "chains": 2, "rng": 1, "progress": False}


def batch_error(values):
    """Return the standard error of the mean of chains (chains, draws), from means of blocks."""
    blocks = values.reshape(len(values), 40, -1).mean(axis=2).ravel()
    return blocks.std(ddof=1) / np.sqrt(len(blocks))


def agrees(draws, exact, weights, limit=5.0):
    """Compare means, squares and products with those of a grid, in standard errors."""
    both = [(draws, exact), (draws**2, exact**2)]
    both.append((draws * np.roll(draws, 1, axis=2), exact * np.roll(exact, 1, axis=1)))
    for found, expected in both:
        for i in range(expected.shape[1]):
            error = batch_error(found[..., i]) + 1e-9
            gap = abs(found[..., i].mean() - weights @ expected[:, i])
            assert gap < limit * error + 2e-4, (i, gap, error)


# ---- exact posteriors ---------------------------------------------------------------------------


def test_three_items_agree_with_quadrature():
    basis = centered_basis(3)

    def log_density(points):
        scores = points @ basis.T
        prior = norm.logpdf(points, scale=np.sqrt(2.0)).sum(axis=1)
        return prior + sum(log_order(order, [], scores) for order in ORDERS)

    points, weights, _ = grid(log_density, [-8, -8], [8, 8], 161)
    posterior = sample(PlackettLuce, ORDERS, 0.5, **FEW)
    agrees(posterior.draws, points @ basis.T, weights)
    assert np.abs(posterior.draws.sum(axis=2)).max() < 1e-9
    problem = posterior.problem
    coordinates = problem.coordinates(posterior.draws[0, :5])
    assert coordinates.shape == (5, 2)
    np.testing.assert_allclose(problem.log_density(coordinates), posterior.log_density[0, :5])
    own = posterior.draws[0, :5] @ basis
    np.testing.assert_allclose(log_density(own), posterior.log_density[0, :5], rtol=1e-10)


def test_four_items_agree_with_quadrature():
    basis = centered_basis(4)
    data = Ballots.from_orders([[0, 1], [2, 0], [1, 3]], n_items=4, subset=False)

    def log_density(points):
        scores = points @ basis.T
        prior = norm.logpdf(points).sum(axis=1)
        lists = [([0, 1], [2, 3]), ([2, 0], [1, 3]), ([1, 3], [0, 2])]
        return prior + sum(log_order(order, rest, scores) for order, rest in lists)

    points, weights, _ = grid(log_density, [-5] * 3, [5] * 3, 51)
    agrees(sample(PlackettLuce, data, 1.0, **FEW).draws, points @ basis.T, weights)


class Student(Prior):
    """A prior of one's own: Student's t distribution of each score."""

    def derivatives(self, values):
        square = 1.0 + values**2 / 5.0
        value = -3.0 * np.log(square).sum()
        gradient = -6.0 * values / 5.0 / square
        second = 6.0 / 5.0 * (1.0 - values**2 / 5.0) / square**2
        return value, gradient, np.diag(second)

    def draw(self, size, length, rng):
        return rng.standard_t(5, size=(size, length))


def normal_prior(covariance):
    mean, matrix = np.array([0.5, 0.0, -0.2]), np.asarray(covariance)
    density = multivariate_normal(mean, matrix * np.eye(3) if matrix.ndim < 2 else matrix)
    return Normal(mean, covariance), density.logpdf, (-6, 6, 51)


PRIORS = {
    "one variance": normal_prior(0.7),
    "variances": normal_prior([0.5, 1.0, 2.0]),
    "covariances": normal_prior([[1.0, 0.4, 0.0], [0.4, 2.0, -0.3], [0.0, -0.3, 0.6]]),
    "worths": (
        Gamma(1.5, 2.0),
        lambda scores: (gamma(1.5, scale=0.5).logpdf(np.exp(scores)) + scores).sum(axis=1),
        (-9, 3, 71),
    ),
    "own": (Student(), lambda scores: -3.0 * np.log1p(scores**2 / 5.0).sum(axis=1), (-15, 15, 91)),
}


@pytest.mark.parametrize("name", PRIORS)
def test_priors_that_say_the_level_agree_with_quadrature(name):
    prior, log_prior, (low, high, steps) = PRIORS[name]

    def log_density(scores):
        return log_prior(scores) + sum(log_order(order, [], scores) for order in ORDERS)

    points, weights, _ = grid(log_density, [low] * 3, [high] * 3, steps)
    posterior = sample(PlackettLuce, ORDERS, prior, **FEW)
    agrees(posterior.draws, points, weights)
    expected = posterior.log_density[1, :9]
    np.testing.assert_allclose(log_density(posterior.draws[1, :9]), expected, rtol=1e-10)
    coordinates = posterior.problem.coordinates(posterior.draws[1, :9])
    np.testing.assert_allclose(posterior.problem.log_density(coordinates), expected, rtol=1e-10)


def test_ties_agree_with_quadrature():
    ballots = [[0, [1, 2]], [[0, 1], 2], [2, 0, 1], [0, 1, 2]]
    stages = [[(0,), (1, 2)], [(0, 1), (2,)], [(2,), (0,), (1,)], [(0,), (1,), (2,)]]
    basis = centered_basis(3)

    def log_density(points):
        scores = points[:, :2] @ basis.T
        result = norm.logpdf(points[:, :2]).sum(axis=1) + norm.logpdf(points[:, 2], -0.5, 0.8)
        for ballot in stages:
            result += log_ballot(ballot, [], scores, {2: points[:, 2]})
        return result

    points, weights, _ = grid(log_density, [-4.5, -4.5, -4], [4.5, 4.5, 3], 51)
    prior = {"scores": 1.0, "log_ties": Normal(-0.5, 0.64)}
    posterior = sample(DavidsonLuce, ballots, prior, **FEW)
    assert [variable.name for variable in posterior.problem.variables] == ["scores", "log_ties"]
    exact = np.column_stack([points[:, :2] @ basis.T, points[:, 2]])
    agrees(posterior.draws, exact, weights)


def test_gaussian_scores_agree_with_quadrature():
    basis = centered_basis(3)
    points, _, _ = grid(lambda x: np.zeros(len(x)), [-4, -4], [4, 4], 31)
    scores = points @ basis.T
    logs = norm.logpdf(points).sum(axis=1)
    logs += 2 * norm.logcdf((scores[:, 0] - scores[:, 2]) / np.sqrt(2.0))
    for order in ([0, 1, 2], [1, 0, 2]):
        logs += log_gaussian_order(order, scores, 801)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    names = ["a", "b", "c"]
    data = Ballots.from_orders([["a", "b", "c"], ["b", "a", "c"]], names=names)
    data += Ballots.from_orders([["a", "c"]], names=names, subset=True, weights=[2])
    posterior = sample(GaussianScores, data, 1.0, 640, chains=2, rng=1, progress=False)
    agrees(posterior.draws, scores, weights)
    likelihood = posterior.problem.log_likelihood(posterior.draws[0, :2])
    draw = posterior.draws[0, 0]
    assert likelihood.shape == (2, 3)
    assert likelihood[0, 2] == pytest.approx(
        2 * norm.logcdf((draw[0] - draw[2]) / np.sqrt(2.0)), rel=1e-12
    )


def test_the_unit_of_gaussian_noise_is_that_of_scores():
    options = {"draws": 50, "chains": 1, "rng": 3, "progress": False}
    pairs = Ballots.from_pairs([0, 1, 2, 0], [1, 2, 0, 2])
    one = sample(GaussianScores, pairs, 1.0, **options)
    ten = sample(GaussianScores(np.zeros(3), 10.0), pairs, 0.01, **options)
    np.testing.assert_allclose(ten.draws, 10.0 * one.draws, rtol=1e-6, atol=1e-7)


def test_prior_alone():
    posterior = sample(PlackettLuce, None, Normal([1.0, 0.0], [[1.0, 0.5], [0.5, 2.0]]), **FEW)
    flat = posterior.draws.reshape(-1, 2)
    np.testing.assert_allclose(flat.mean(axis=0), [1.0, 0.0], atol=0.1)
    np.testing.assert_allclose(np.cov(flat.T), [[1.0, 0.5], [0.5, 2.0]], atol=0.15)
    posterior = sample(PlackettLuce, None, Gamma(0.5, 3.0), n_items=3, **FEW)
    worths = np.exp(posterior.draws.reshape(-1, 3))
    np.testing.assert_allclose(worths.mean(axis=0), 0.5 / 3.0, rtol=0.12)
    assert posterior.problem.log_likelihood(posterior.draws[0]).shape == (4000, 0)
    ties = sample(
        DavidsonLuce, prior={"scores": 1.0, "log_ties": 4.0}, n_items=2, tie_sizes=[2], **FEW
    )
    assert ties.draws[..., 2].std() == pytest.approx(0.5, rel=0.1)


def test_ballots_without_weight_were_never_cast():
    lists = [[0, 1, 2], [1, 2, 0], [[0, 1], 2], [[0, 1, 2]]]
    cast = problem_of(DavidsonLuce, lists[:3], 1.0)
    data = Ballots.of(lists, weights=[1, 1, 1, 0], times=[5e3, 5e3, 5e3, 5e3])
    faded = Ballots.of(lists, times=[5e3, 5e3, 5e3, 0.0])
    offset = np.zeros((4, 3))
    for given, options in (
        (data, {}),
        (data, {"offset": offset}),
        (data, {"half_life": 1.0, "offset": offset}),
        (faded, {"half_life": 1.0}),
    ):
        found = problem_of(DavidsonLuce, given, 1.0, **options)
        at = np.array([0.3, -0.1, -0.2, -0.4])
        assert found.n_parameters == 4
        each = found.log_likelihood(at[None])
        assert each == pytest.approx(cast.log_likelihood(at[None]), abs=1e-12)
        inside = at[None, :3]
        assert found.log_density(inside) == pytest.approx(cast.log_density(inside), abs=1e-12)


def test_separated_data_with_a_wide_prior():
    """The posterior is far wider than at its mode, and not at all normal."""
    basis = centered_basis(3)
    wins = [([0], [1])] * 20 + [([1], [2])] * 3

    def log_density(points):
        scores = points @ basis.T
        prior = norm.logpdf(points, scale=10.0).sum(axis=1)
        return prior + 20 * log_order([0], [1], scores) + 3 * log_order([1], [2], scores)

    points, weights, _ = grid(log_density, [-40, -40], [40, 40], 301)
    data = Ballots.from_pairs([a for (a,), _ in wins], [b for _, (b,) in wins], n_items=3)
    posterior = sample(PlackettLuce, data, 0.01, **FEW)
    agrees(posterior.draws, points @ basis.T, weights)


# ---- parts of the likelihood --------------------------------------------------------------------


def test_compiled_posteriors_are_those_of_the_likelihood():
    rng = np.random.default_rng(4)
    model = PlackettLuce(rng.normal(size=7))
    full = Ballots.of(model.sample(6, rng=rng))
    top = Ballots.from_orders(model.sample(9, rng=rng)[:, :2], n_items=7, subset=False)
    worst = Ballots.from_best_worst([3, 1], [6, 5], [[0, 3, 4, 6], [1, 2, 5]], n_items=7)
    weighted = Ballots.from_pairs([0, 1, 2], [3, 4, 5], n_items=7, weights=[2.5, 1.0, 4.0])
    priced = (full + top).with_features(rng.normal(size=(15, 7, 2)))
    tied = Ballots.of(DavidsonLuce(rng.normal(size=7), [-0.5, -1.0]).sample(30, rng=rng))
    features = rng.normal(size=(7, 3))
    shift = rng.normal(size=(6, 7))
    cases = [
        (PlackettLuce, full + top + weighted, {}),
        (PlackettLuce, full + worst, {}),
        (PlackettLuce, priced, {}),
        (PlackettLuce, full, {"features": features}),
        (PlackettLuce, full, {"offset": rng.normal(size=7)}),
        (PlackettLuce, full, {"offset": shift}),
        (PlackettLuce, priced, {"features": features, "offset": rng.normal(size=7)}),
        (DavidsonLuce, tied, {}),
        (DavidsonLuce, tied, {"tie_sizes": [2, 3, 4]}),
        (DavidsonLuce, full + worst, {"tie_sizes": [2]}),
    ]
    for model_class, data, options in cases:
        prior = {"scores": 1.0, "log_ties": 1.0} if "tie_sizes" in options else 1.0
        problem = problem_of(model_class, data, prior, **options)
        for scale in (0.0, 1.0, 20.0):
            theta = scale * rng.normal(size=problem.n_parameters)
            expected = problem.derivatives(theta)[0]
            assert problem.value(theta) == pytest.approx(expected, rel=1e-11)
        draw = problem.record(rng.normal(size=(1, problem.n_parameters)))[0]
        each = problem.log_likelihood(draw[None])
        assert each.shape == (1, data.n_ballots)
        theta = problem.parameters_of(draw)
        assert each.sum() == pytest.approx(problem.likelihood(theta)[0], rel=1e-10)


def test_gradients_agree_with_difference_quotients():
    rng = np.random.default_rng(5)
    tied = Ballots.of(DavidsonLuce(rng.normal(size=4), [-0.5]).sample(10, rng=rng))
    orders = Ballots.of(PlackettLuce(rng.normal(size=4)).sample(5, rng=rng))
    problems = [
        problem_of(DavidsonLuce, tied, {"scores": Gamma(2.0, 1.0), "log_ties": Gamma(1.0, 2.0)}),
        problem_of(DavidsonLuce, tied, {"scores": Normal(0.0, [1.0, 2.0, 3.0, 4.0])}),
        problem_of(GaussianScores, orders, Normal(0.5, 2.0)),
    ]
    for problem in problems:
        theta, step = 0.5 * rng.normal(size=problem.n_parameters), 1e-5
        for derivatives in (problem.derivatives, problem.hold):
            _, gradient, curvature = derivatives(theta)
            for i in range(len(theta)):
                forth, back = theta.copy(), theta.copy()
                forth[i] += step
                back[i] -= step
                up, down = derivatives(forth), derivatives(back)
                assert (up[0] - down[0]) / (2 * step) == pytest.approx(gradient[i], abs=1e-5)
                slope = (down[1] - up[1]) / (2 * step)
                np.testing.assert_allclose(slope, curvature[i], atol=1e-4)


def test_modes_are_those_of_fits():
    rng = np.random.default_rng(6)
    orders = PlackettLuce(rng.normal(size=6)).sample(40, rng=rng)
    for prior in (None, 0.7, Ridge(0.3)):
        fitted = PlackettLuce.fit(orders, prior=prior)
        problem = problem_of(PlackettLuce, orders, prior)
        np.testing.assert_allclose(problem.mode.parameters, fitted.scores, atol=1e-7)
        assert problem.mode.gap < 1e-12
    again = problem_of(fitted)  # its own ballots
    assert again.ballots.n_ballots == fitted.fit_result.likelihood.ballots.n_ballots
    assert again.family == "Plackett-Luce"
    prior = FitNormal(np.zeros(6), 2.0)
    fitted = PlackettLuce.fit(orders, prior=prior)
    mode = problem_of(PlackettLuce, orders, prior).mode.parameters
    np.testing.assert_allclose(mode - mode.mean(), fitted.scores - fitted.scores.mean(), atol=1e-6)


# ---- calibration and efficiency -----------------------------------------------------------------


CALIBRATED = {
    "normal": (PlackettLuce, Normal(0.0, 1.5), [[0, 1, 2, 3], [1, 0, 3, 2], [2, 1, 0, 3]], {}),
    "gamma": (PlackettLuce, Gamma(0.7, 2.0), [[0, 1, 2], [1, 0, 2]], {}),
    "ties": (
        DavidsonLuce,
        {"scores": 1.0, "log_ties": Normal(-1.0, 1.0)},
        [[0, [1, 2]], [[1, 0], 2], [2, 1, 0]],
        {"tie_sizes": [2]},
    ),
    "features": (
        PlackettLuce,
        1.0,
        [[0, 1, 2, 3], [1, 0, 3, 2]],
        {"features": [[1.0, 0.3], [-1.0, 0.2], [0.0, -0.5], [0.5, 1.0]]},
    ),
    "gaussian pairs": (
        GaussianScores,
        1.0,
        Ballots.from_pairs([0, 1, 2, 0, 1], [1, 2, 0, 2, 0]),
        {},
    ),
}


@pytest.mark.parametrize("name", CALIBRATED)
def test_simulation_based_calibration(name):
    model, prior, data, options = CALIBRATED[name]
    size = 80 if model is GaussianScores else 112
    found = simulation_based_calibration(
        lambda ballots: problem_of(model, ballots, prior, **options),
        data,
        replications=size,
        draws=31,
        rng=7,
    )
    name, p_value = found.worst(bins=16)
    assert p_value > 1e-4, (name, p_value)


def test_calibration_finds_a_wrong_prior():
    truth = problem_of(PlackettLuce, ORDERS, Normal([1.0, 0.0, -1.0], 1.0))

    def wrong(ballots):
        problem = problem_of(PlackettLuce, ballots, Normal(0.0, 1.0))
        problem.prior_draws = truth.prior_draws
        return problem

    found = simulation_based_calibration(wrong, ORDERS, replications=160, draws=15, rng=0)
    assert found.worst(bins=8)[1] < 1e-5
    assert found.histogram(8).sum() == 160 * 4
    with pytest.raises(ValueError, match="bins: expected a divisor of 16, got 5"):
        found.histogram(5)


def test_a_hundred_items_mix_well():
    import arviz

    rng = np.random.default_rng(0)
    tops = PlackettLuce(rng.normal(size=100)).sample(1000, rng=rng)[:, :10]
    data = Ballots.of(tops, n_items=100, subset=False)
    for prior in (0.01, Gamma(1.0, 1.0)):
        posterior = sample(PlackettLuce, data, prior, rng=1, progress=False)
        shown = np.concatenate([posterior.draws[..., ::19], posterior.log_density[..., None]], 2)
        for i in range(shown.shape[2]):
            chains = np.ascontiguousarray(shown[..., i])
            assert float(arviz.rhat(chains)) < 1.01
            assert float(arviz.ess(chains)) > 0.2 * chains.size


@pytest.mark.parametrize("prior", [None, PseudoWins(0.5)])
@pytest.mark.parametrize("model", [PlackettLuce, DavidsonLuce])
@pytest.mark.parametrize("given", ["", "half_life", "offset", "offsets", "features"])
def test_a_fitted_model_brings_its_data(model, prior, given):
    rng = np.random.default_rng(0)
    i = rng.integers(4, size=60)
    j = (i + rng.integers(1, 4, size=60)) % 4
    ballots = Ballots.from_pairs(i, j, n_items=4, times=np.arange(60.0))
    options = {
        "half_life": {"half_life": 9.0},
        "offset": {"offset": rng.normal(size=4)},
        "offsets": {"offset": rng.normal(size=(60, 4)), "half_life": 20.0},
        "features": {"features": rng.normal(size=(4, 2)), "offset": rng.normal(size=4)},
    }.get(given, {})
    fitted = model.fit(ballots, prior=prior, **options)
    short = {"draws": 20, "chains": 2, "rng": 1, "progress": False}
    found = sample(fitted, prior=1.0, **short)
    expected = sample(model, ballots, 1.0, **short, **options)
    np.testing.assert_array_equal(found.draws, expected.draws)
    assert found.problem.names == fitted.names  # no ghost among them
    assert found.best().shape == (4, 2)
    assert fitted.fit_result.ballots.names == fitted.names
    if options:
        with pytest.raises(ValueError, match=f"data: .* fitted with .*; pass {model.__name__}"):
            sample(fitted, ballots, 1.0, **short)
    else:
        found = sample(fitted, ballots, 1.0, **short)
        np.testing.assert_array_equal(found.draws, expected.draws)


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "data", "prior", "options", "message"),
    [
        (PlackettLuce, [[0, 1, 2]], None, {}, "improper without one: always above the others"),
        (PlackettLuce, None, None, {"n_items": 3}, "without data the prior of scores"),
        (PlackettLuce, [[0, 1], [1, 0]], {"worths": 1.0}, {}, "unknown variable 'worths'"),
        (PlackettLuce, [[0, 1], [1, 0]], -1.0, {}, "expected a non-negative precision"),
        (DavidsonLuce, [[[0, 1]], [[0, 1]]], None, {}, "improper without one: .*ties"),
        (DavidsonLuce, [[[0, 1]]] * 3, 1.0, {}, "nothing about log_ties, or predict every result"),
        (PlackettLuce, [[0, 1]] * 9, None, {"features": [[1.0], [0.0]]}, "nothing about coeff"),
        (PlackettLuce, SEPARATED, None, {}, "improper without one: .* scores or covariates"),
        (DavidsonLuce, SEPARATED, {"scores": 1.0, "log_ties": 1.0}, {"tie_sizes": [2]}, "covaria"),
        (DavidsonLuce, None, 1.0, {"n_items": 2}, "tie_sizes: expected the sizes of ties"),
        (GaussianScores, [[0, 1, 2]], None, {}, "improper without one: always above"),
    ],
)
def test_improper_requests(model, data, prior, options, message):
    with pytest.raises(ValueError, match=message):
        sample(model, data, prior, 10, progress=False, **options)


CLUSTERED = Ballots.from_pairs([0, 1, 0], [1, 0, 1], clusters=[0, 0, 1])
PAIRS = [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        (lambda: sample(Mallows.fit(ORDERS), prior=Gamma(1.0, 1.0)), ValueError, "ballots"),
        (lambda: sample(GaussianScores.fit(ORDERS), prior=1.0), ValueError, "ballots"),
        (lambda: sample(PlackettLuce, CLUSTERED, 1.0), ValueError, "clusters: "),
        (lambda: sample(GaussianScores, CLUSTERED, 1.0), ValueError, "clusters: "),
        (lambda: sample(Mallows, CLUSTERED, Gamma(1.0, 1.0)), ValueError, "clusters: "),
        (lambda: sample(PlackettLuce.fit(CLUSTERED), prior=1.0), ValueError, "clusters: "),
        (lambda: sample({}, PAIRS), TypeError, "no posterior is known for dict"),
        (lambda: problem_of(PlackettLuce, PAIRS, "weak"), TypeError, "expected a Prior"),
        (lambda: Gamma(1.0, 0.0), ValueError, "positive rate"),
        (lambda: Normal(0.0, [[1.0, 2.0], [2.0, 1.0]]), ValueError, "positive variances"),
    ],
)
def test_other_refusals(call, error, argument):
    with pytest.raises(error, match=argument):
        call()


# ---- priors of one's own, replicas, models ------------------------------------------------------


def test_replicas_follow_the_model():
    rng = np.random.default_rng(8)
    draw = np.array([0.8, 0.0, -0.8])
    data = Ballots.from_orders([[0, 1, 2]], weights=[4000])
    replica = problem_of(PlackettLuce, data, 1.0).replicate(draw, rng)
    assert replica.n_ballots == 4000
    first = np.bincount(replica.items[replica.ptr[:-1]], minlength=3) / 4000
    np.testing.assert_allclose(first, np.exp(draw) / np.exp(draw).sum(), atol=0.04)
    top = Ballots.from_orders([[0]] * 3000, n_items=3, subset=False)
    replica = problem_of(PlackettLuce, top, 1.0).replicate(draw, rng)
    assert (np.diff(replica.stages) == 1).all()
    assert (replica.sizes == 1).all()
    tied = Ballots.from_orders([[0, [1, 2]]], weights=[4000])
    problem = problem_of(DavidsonLuce, tied, 1.0)
    replica = problem.replicate(np.append(draw, -0.3), rng)
    model = problem.model(np.append(draw, -0.3))
    sampled = Ballots.of(model.sample(4000, rng=rng))
    assert np.mean(replica.sizes > 1) == pytest.approx(np.mean(sampled.sizes > 1), abs=0.03)
    pairs = Ballots.from_pairs([0] * 3000, [1] * 3000)
    replica = problem_of(GaussianScores, pairs, 1.0).replicate(np.array([0.5, -0.5]), rng)
    assert np.mean(replica.items[::2] == 0) == pytest.approx(norm.cdf(1.0 / np.sqrt(2)), abs=0.04)


def test_draws_are_models():
    ballots = [["tea", "milk"], ["milk", "tea"], ["tea", "milk"]]
    problem = problem_of(PlackettLuce, ballots, 1.0)
    model = problem.model(np.array([0.1, -0.1]))
    assert isinstance(model, PlackettLuce)
    assert model.names == ("milk", "tea")
    assert isinstance(sample(problem, draws=3, rng=0, progress=False), Posterior)
    names = problem_of(PlackettLuce(np.zeros(2), ["x", "y"]), prior=1.0).names
    assert names == ("x", "y")
