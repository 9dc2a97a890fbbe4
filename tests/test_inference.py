"""Fits of ballots and their errors, against definitions, difference quotients and known values."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from naive_davidson import chance
from scipy import optimize, stats

from permdist import Ballots, DavidsonLuce, PlackettLuce
from permdist.inference import Normal, PseudoWins, Ridge, team_features
from permdist.inference import likelihood as likelihood_module
from permdist.inference.duels import Duels
from permdist.inference.fit import fit_ballots
from permdist.inference.likelihood import Likelihood

# Six brands of chocolate pudding: first, second, wins of each, ties (Davidson 1970).
PUDDING = np.array(
    [
        [0, 1, 19, 22, 16],
        [0, 2, 16, 19, 12],
        [1, 2, 19, 19, 10],
        [0, 3, 18, 23, 13],
        [1, 3, 23, 19, 9],
        [2, 3, 19, 20, 15],
        [0, 4, 13, 19, 18],
        [1, 4, 16, 20, 12],
        [2, 4, 16, 15, 17],
        [3, 4, 17, 14, 16],
        [0, 5, 18, 21, 12],
        [1, 5, 22, 20, 12],
        [2, 5, 13, 18, 10],
        [3, 5, 14, 19, 18],
        [4, 5, 11, 21, 12],
    ]
)


def pudding():
    first, second, wins, losses, ties = PUDDING.T
    return Ballots.from_pairs(
        np.concatenate([first, second, first]),
        np.concatenate([second, first, second]),
        ties=np.repeat([False, False, True], 15),
        weights=np.concatenate([wins, losses, ties]),
    )


def mixed(rng, n=4):
    """Return ballots of many kinds over n items, with covariates."""
    orders = [[[0, 1], 2, 3], [3, [1, 2], 0], [2, 0], [[0, 1, 2], 3], [1, 2, 3, 0], [[1, 3]]]
    ballots = Ballots.from_orders(orders, n_items=n, subset=True)
    ballots = ballots + Ballots.from_choices([3, 0], [[3, 1, 0], [0, 1]], n_items=n)
    ballots = ballots + Ballots.from_best_worst([2, 0], [1, 3], [[0, 1, 2], [3, 1, 0]], n_items=n)
    weights = rng.integers(1, 4, len(ballots)).astype(float)
    features = rng.normal(size=(len(ballots.items), 2))
    return dataclasses.replace(
        ballots, weights=weights, features=features, feature_names=("length", "place")
    )


@pytest.mark.parametrize("ties", [(), (0.4,), (0.4, -0.7), (-0.2, 0.3, -1.0)])
def test_the_likelihood_is_the_definition(ties):
    rng = np.random.default_rng(len(ties))
    scores = rng.normal(size=4) * 2.0
    most = len(ties) + 1
    orders = [[[0, 1], 2, 3], [3, [1, 2], 0], [2, 0], [[0, 1, 2], 3], [1, 2, 3, 0]]
    likelihood = Likelihood(
        Ballots.from_orders(orders, n_items=4, subset=True), tuple(range(2, most + 1))
    )
    values = likelihood.log_likelihoods(np.concatenate([scores, ties]))
    for order, value in zip(orders, values, strict=True):
        buckets = [tuple(b) if isinstance(b, list) else (b,) for b in order]
        expected = chance(buckets, scores, ties)
        assert np.exp(value) == pytest.approx(expected, rel=1e-12, abs=1e-300)
    menu = Likelihood(Ballots.from_choices([1], [[1, 0, 3]], n_items=4), tuple(range(2, most + 1)))
    value = menu.log_likelihoods(np.concatenate([scores, ties]))[0]
    assert np.exp(value) == pytest.approx(chance([(1,)], scores, ties, rest=(0, 3)), rel=1e-12)


@pytest.mark.parametrize("scale", [1.0, 400.0])
def test_scores_far_apart_have_a_likelihood(scale):
    likelihood = Likelihood(Ballots.from_orders([[[0, 1], 2]], subset=True), (2,))
    value = likelihood.log_likelihoods(np.array([0.0, -scale, scale, 0.0]))[0]
    # The pair against item 2 and the other pairs.
    weights = [-scale / 2, 0.0, -scale, scale, scale / 2, 0.0]
    assert value == pytest.approx(weights[0] - np.logaddexp.reduce(weights), rel=1e-12)


@pytest.mark.parametrize("sizes", [(2, 3), (3,), (2,)])
def test_derivatives_are_difference_quotients(sizes):
    rng = np.random.default_rng(0)
    ballots = mixed(rng)
    if 3 not in sizes:
        big = np.array([3 in ballots.sizes[a:b] for a, b in _spans(ballots)])
        ballots = ballots.take(~np.isin(np.arange(len(ballots)), ballots.ballot[big]))
    elif 2 not in sizes:
        pairs = np.array([2 in ballots.sizes[a:b] for a, b in _spans(ballots)])
        ballots = ballots.take(~np.isin(np.arange(len(ballots)), ballots.ballot[pairs]))
    likelihood = Likelihood(ballots, sizes)
    at = rng.normal(size=likelihood.size)
    value, gradient, information = likelihood(at)
    assert value == pytest.approx(likelihood.log_likelihoods(at) @ ballots.weights, rel=1e-12)
    steps = np.eye(likelihood.size) * 1e-5
    slopes = [(likelihood(at + h)[0] - likelihood(at - h)[0]) / 2e-5 for h in steps]
    second = [(likelihood(at - h)[1] - likelihood(at + h)[1]) / 2e-5 for h in steps]
    assert gradient == pytest.approx(slopes, abs=1e-7)
    assert information == pytest.approx(np.array(second), abs=1e-7)
    # The slopes of ballots, one at a time.
    each = [likelihood(at, row)[1] for row in np.eye(len(ballots))]
    spread = sum(w * np.outer(g, g) for w, g in zip(ballots.weights, each, strict=True))
    assert likelihood.spread(at) == pytest.approx(spread, abs=1e-10)
    labels = rng.integers(0, 3, len(ballots))
    grouped = Likelihood(dataclasses.replace(ballots, clusters=labels), sizes)
    sums = [sum(w * g for w, g, c in zip(ballots.weights, each, labels, strict=True) if c == k)
            for k in range(3)]  # fmt: skip
    assert grouped.spread(at) == pytest.approx(sum(np.outer(g, g) for g in sums), abs=1e-10)


def test_blocks_of_records_add_up():
    rng = np.random.default_rng(3)
    ballots = mixed(rng)
    whole = Likelihood(ballots, (2, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(likelihood_module, "LARGEST_BLOCK", 60)
        parts = Likelihood(ballots, (2, 3))
    assert len(parts._blocks) > 3
    at = rng.normal(size=whole.size)
    for one, two in zip(whole(at), parts(at), strict=True):
        assert two == pytest.approx(one, rel=1e-12, abs=1e-12)
    assert parts.spread(at) == pytest.approx(whole.spread(at), rel=1e-12, abs=1e-12)


def _spans(ballots):
    return list(zip(ballots.stages[:-1], ballots.stages[1:], strict=True))


def test_pudding():
    fit = fit_ballots(pudding(), (2,))
    worths = np.exp(fit.scores) / np.exp(fit.scores).sum()
    known = [0.1388034, 0.1730015, 0.1617474, 0.1653730, 0.1586854, 0.2023893]
    assert worths == pytest.approx(known, abs=1e-7)
    assert np.exp(fit.ties) == pytest.approx([0.7468230], abs=1e-7)
    assert -fit.log_likelihood == pytest.approx(809.7095101, abs=1e-6)
    errors = [0.0, 0.187218, 0.193517, 0.188211, 0.192705, 0.192408]
    assert fit.contrast_errors(0) == pytest.approx(errors, abs=2e-6)
    assert fit.tie_errors() == pytest.approx([0.082499], abs=1e-6)
    assert fit.accuracy <= 1e-9
    assert fit.gradient < 1e-9


def test_the_fit_of_orders_is_that_of_ballots():
    orders = PlackettLuce([1.0, 0.0, -0.5, -0.5]).sample(60, rng=0)
    special, general = PlackettLuce.fit(orders), PlackettLuce.fit(Ballots.of(orders))
    assert general.scores == pytest.approx(special.scores, abs=1e-9)
    one, two = special.fit_result, general.fit_result
    assert two.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-12)
    for kind in ("observed", "sandwich"):
        assert two.covariance(kind) == pytest.approx(one.covariance(kind), rel=1e-6)
    ridge = PlackettLuce.fit(orders, regularization=0.7).fit_result
    again = fit_ballots(Ballots.of(orders), (), prior=0.7)
    assert again.scores == pytest.approx(ridge.scores, abs=1e-9)
    for kind in ("observed", "penalized", "sandwich"):
        assert again.covariance(kind) == pytest.approx(ridge.covariance(kind), rel=1e-6)
    assert (again.standard_errors("penalized") < again.standard_errors("observed")).all()


KINDS = ("observed", "penalized", "sandwich", "bootstrap")


def errors_of(ballots, prior=None):
    """Return the errors of all kinds; the bootstrap is drawn ballot by ballot, or by clusters."""
    fit = fit_ballots(ballots, ballots.tie_sizes, prior=prior)
    fit.bootstrap(40)
    return np.array([fit.standard_errors(kind) for kind in KINDS])


def casts(rng, number=150):
    """Return rankings and contests with ties, many of them equal, as lists."""
    kinds = [[0, 1, 2, 3], [1, 0, 3, 2], [3, 2, 1, 0], [[0, 2], 1], [2, [3, 1]], [0, 3], [1, 2, 0]]
    return [kinds[kind] for kind in rng.integers(len(kinds), size=number)]


def made(cast, **given):
    return Ballots.from_orders(cast, n_items=4, subset=True, **given)


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0, 3.0], [0.5], [0.5, 1.0, 1.37, 2.0, 2.5]])
def test_errors_do_not_depend_on_how_ballots_are_written(values):
    rng = np.random.default_rng(4)
    cast = casts(rng)
    weights = rng.choice(values, len(cast))
    ballots = made(cast, weights=weights)
    expected = errors_of(ballots, 0.1)
    half = np.arange(len(cast)) < 70
    blocks = [ballots.take(half), ballots.take(~half)]
    # Whole weights are counts, so that a ballot may as well stand there so often.
    counts = np.where(weights == np.floor(weights), weights, 1.0).astype(int)
    split = np.repeat(np.arange(len(cast)), counts)
    none = dataclasses.replace(made([[[0, 1, 2, 3]], [0, 1]]), weights=np.zeros(2))
    encodings = {
        "merged": ballots.merged(),
        "+": blocks[0] + blocks[1],
        "merged +": blocks[0].merged() + blocks[1].merged(),
        "blocks": Ballots.from_blocks(blocks),
        "merged blocks": Ballots.from_blocks([block.merged() for block in blocks]),
        "split": made([cast[k] for k in split], weights=(weights / counts)[split]),
        "weight 0": ballots + none,
    }
    for name, encoded in encodings.items():
        np.testing.assert_allclose(errors_of(encoded, 0.1), expected, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("values", [[1.0, 2.0], [0.5, 1.0, 1.37]])
def test_errors_by_clusters_do_not_depend_on_how_these_are_written(values):
    rng = np.random.default_rng(5)
    cast = casts(rng)
    weights, voter = rng.choice(values, len(cast)), rng.integers(30, size=len(cast))
    expected = errors_of(made(cast, weights=weights, clusters=voter), 0.1)
    text = np.array([f"voter {k}" for k in voter])
    half = np.arange(len(cast)) < 70
    parts = [
        made([one for one, kept in zip(cast, which, strict=True) if kept],
             weights=weights[which], clusters=text[which])
        for which in (half, ~half)
    ]  # fmt: skip
    copies = np.where(weights == 2.0, 2, 1)
    split = np.repeat(np.arange(len(cast)), copies)
    nobody = made([[1, 0]], weights=[1.0], clusters=["nobody"])
    whole = made(cast, weights=weights, clusters=text)
    encodings = {
        "text": whole,
        "objects": made(cast, weights=weights, clusters=text.astype(object)),
        "+": parts[0] + parts[1],
        "+ of numbers and text": made(cast[:70], weights=weights[:70], clusters=voter[:70])
        + made(cast[70:], weights=weights[70:], clusters=list(map(str, voter[70:]))),
        "split": made(
            [cast[k] for k in split], weights=(weights / copies)[split], clusters=text[split]
        ),
        "take": (whole + nobody).take(np.arange(len(cast) + 1) < len(cast)),
        "weight 0": whole + dataclasses.replace(nobody, weights=np.zeros(1)),
    }
    for name, encoded in encodings.items():
        np.testing.assert_allclose(errors_of(encoded, 0.1), expected, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("weight", [0.5, 1.37, 2.5, "between"])
@pytest.mark.parametrize("kind", ["pairs", "rankings"])
def test_the_bootstrap_draws_ballots_that_were_merged_one_by_one(weight, kind):
    rng = np.random.default_rng(7)
    orders = PlackettLuce([1.0, 0.5, 0.0, -1.0]).sample(600, rng=1)
    weights = rng.uniform(0.5, 1.5, 600) if weight == "between" else np.full(600, weight)
    if kind == "pairs":
        fit = PlackettLuce.fit_pairs(orders[:, 1], orders[:, 2], weights=weights).fit_result
    else:
        fit = PlackettLuce.fit(orders, weights=weights).fit_result
    fit.bootstrap(300)
    np.testing.assert_allclose(
        fit.standard_errors("bootstrap"), fit.standard_errors("sandwich"), rtol=0.2
    )


@pytest.mark.parametrize("model", [PlackettLuce, DavidsonLuce])
def test_ballots_without_weight_were_never_cast(model):
    strict = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1]]
    expected = model.fit(strict)
    ties = [[[0, 1], 2], [[0, 1, 2]]]
    weights, later = [1.0] * 4 + [0.0] * 2, [0.0] * 4 + [1e9] * 2
    everything, offset = Ballots.from_orders(strict + ties), np.zeros((6, 3))
    for options in ({}, {"offset": offset}, {"times": later, "half_life": 1.0}):
        found = model.fit(everything, weights=weights, **options)
        np.testing.assert_allclose(found.scores, expected.scores, atol=1e-9)
        assert len(found.fit_result.ties) == 0
        assert np.isfinite(found.fit_result.log_likelihood)
    with pytest.raises(ValueError, match="offset: expected 6 rows, got 4"):
        model.fit(everything, weights=weights, offset=offset[:4])


@pytest.mark.parametrize("age", [99.0, 101.0, 2000.0])
def test_ballots_that_have_faded_to_nothing(age):
    strict = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1]]
    found = DavidsonLuce.fit([*strict, [[0, 1], 2]], times=[age] * 4 + [0.0], half_life=1.0)
    np.testing.assert_allclose(found.scores, DavidsonLuce.fit(strict).scores, atol=1e-9)
    assert len(found.ties) == (age < 100.0)


def test_clusters_of_copies_double_the_variance():
    ballots = pudding()
    twice = ballots + ballots
    labels = np.tile(np.arange(45), 2)
    grouped = dataclasses.replace(twice, clusters=labels, weights=np.ones(90))
    plain = dataclasses.replace(twice, weights=np.ones(90))
    one, two = fit_ballots(plain, (2,)), fit_ballots(grouped, (2,))
    ratio = two.covariance("sandwich") / one.covariance("sandwich")
    assert ratio == pytest.approx(np.full((6, 6), 2.0 * 45 / 44), rel=1e-6)


def test_pseudo_wins_are_contests_with_a_ghost():
    ballots = Ballots.from_pairs([0, 0, 1, 1], [1, 2, 2, 0])
    fit = fit_ballots(ballots, (), prior=PseudoWins(0.5))
    everyone, ghost = np.arange(3), np.full(3, 3)
    extended = Ballots.from_pairs(
        np.concatenate([[0, 0, 1, 1], everyone, ghost]),
        np.concatenate([[1, 2, 2, 0], ghost, everyone]),
        weights=np.concatenate([np.ones(4), np.full(6, 0.5)]),
    )
    known = fit_ballots(extended, ())
    assert fit.scores == pytest.approx(known.scores[:3] - known.scores[:3].mean(), abs=1e-9)
    # The errors of the data alone: information of the four contests, without the ghost.
    chances = 1.0 / (1.0 + np.exp(fit.scores[None, :] - fit.scores[:, None]))
    v = chances * (1.0 - chances)
    counts = np.array([[0, 2, 1], [2, 0, 1], [1, 1, 0]])
    laplacian = np.diag((counts * v).sum(axis=1)) - counts * v
    assert fit.covariance() == pytest.approx(np.linalg.pinv(laplacian), rel=1e-8)
    assert (fit.standard_errors("penalized") < fit.standard_errors()).all()


def test_a_normal_prior():
    ballots = Ballots.from_pairs([0, 0], [1, 2])
    mean, covariance = np.array([0.0, 0.5, -0.5]), np.diag([1.0, 2.0, 0.5])
    fit = fit_ballots(ballots, (), prior=Normal(mean, covariance))

    def value(scores):
        away = scores - mean
        less = 0.5 * away @ np.linalg.inv(covariance) @ away
        gaps = [scores[0] - scores[1], scores[0] - scores[2]]
        return less + sum(np.logaddexp(0.0, -gap) for gap in gaps)

    best = optimize.minimize(value, mean, tol=1e-12).x
    assert fit.scores == pytest.approx(best - best.mean(), abs=1e-5)
    with pytest.raises(ValueError, match="positive definite"):
        Normal(mean, -covariance)
    with pytest.raises(ValueError, match="mean of 3 scores, got 2"):
        fit_ballots(ballots, (), prior=Normal([0.0, 0.0], 1.0))
    with pytest.raises(ValueError, match="non-negative strength"):
        Ridge(-1.0)
    with pytest.raises(ValueError, match="positive number of pseudo-wins"):
        PseudoWins(0.0)


def test_the_bootstrap_has_the_same_bits_on_any_number_of_threads():
    fit = fit_ballots(pudding(), (2,))
    one, two = (fit_ballots(pudding(), (2,)).bootstrap(200, n_jobs=jobs) for jobs in (1, 2))
    assert one.scores.tobytes() == two.scores.tobytes()
    assert one.failed == 0
    assert fit.standard_errors("bootstrap") == pytest.approx(fit.standard_errors(), rel=0.12)
    assert fit.intervals(kind="bootstrap") == pytest.approx(fit.intervals(), abs=0.06)
    with pytest.raises(ValueError, match="no clusters"):
        fit.bootstrap(10, by="cluster")
    few = PlackettLuce.fit_pairs([0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]).fit_result
    with pytest.warns(UserWarning, match="no estimate exists in"):
        assert few.bootstrap(50).failed > 0


@pytest.mark.parametrize(("sizes", "prior"), [((2,), None), ((2,), 0.5), ((), None)])
def test_contests_of_two_are_refitted_by_their_own_loop(sizes, prior):
    ballots = pudding()
    if not sizes:
        ballots = ballots.take(ballots.sizes[ballots.stages[:-1]] == 1)
    fit = fit_ballots(ballots, sizes, prior=prior)
    duels = Duels.of(fit)
    rng = np.random.default_rng(0)
    weights = rng.poisson(fit.ballots.weights, (20, len(fit.ballots))).astype(float)
    found, good = duels.refit(fit.parameters, 6, weights, 1e-4)
    assert good.all()
    for row, parameters in zip(weights, found, strict=True):
        again = fit_ballots(dataclasses.replace(fit.ballots, weights=row), sizes, prior=prior)
        assert parameters == pytest.approx(again.parameters, abs=1e-7)
    if prior is None:
        # Results of item 0's wins alone have no estimate, and are left to the general way.
        pairs = fit.ballots.items.reshape(-1, 2)
        alone = ((pairs[:, 0] == 0) & (fit.ballots.sizes == 1)).astype(float)
        assert not duels.refit(fit.parameters, 6, alone[None, :], 1e-4)[1].any()
    assert Duels.of(PlackettLuce.fit([[0, 1, 2], [2, 1, 0]]).fit_result) is None


def test_profile_intervals_end_where_the_likelihood_has_fallen_enough():
    ballots = Ballots.from_pairs([0, 1], [1, 0], weights=[7.0, 3.0])
    fit = fit_ballots(ballots, ())
    low, high = fit.intervals(0.9, kind="profile")[0]
    limit = 0.5 * stats.chi2.ppf(0.9, 1)

    def fall(score):  # the other one has minus this score
        value = -7.0 * np.logaddexp(0.0, -2.0 * score) - 3.0 * np.logaddexp(0.0, 2.0 * score)
        return fit.log_likelihood - value - limit

    assert fall(low) == pytest.approx(0.0, abs=1e-5)
    assert fall(high) == pytest.approx(0.0, abs=1e-5)
    assert low < fit.scores[0] < high
    ridge = fit_ballots(Ballots.from_pairs([0, 1], [1, 2]), (), prior=0.1)
    assert np.isfinite(ridge.intervals(kind="profile")).all()


def battles(rng, rows, scores, beta=(), delta=0.8):
    """Simulate contests with covariates and ties."""
    n = len(scores)
    a = rng.integers(0, n, rows)
    b = (a + rng.integers(1, n, rows)) % n
    x, y = rng.normal(size=(2, rows, len(beta)))
    gap = scores[a] - scores[b] + (x - y) @ np.asarray(beta, dtype=float)
    weights = np.stack([gap / 2, -gap / 2, np.full(rows, np.log(delta))])
    result = (weights + rng.gumbel(size=weights.shape)).argmax(axis=0)
    lost = result == 1
    return {
        "winners": np.where(lost, b, a),
        "losers": np.where(lost, a, b),
        "ties": result == 2,
        "features": (np.where(lost[:, None], y, x), np.where(lost[:, None], x, y)),
    }


def test_covariates_of_ballots_are_recovered():
    rng = np.random.default_rng(0)
    scores, beta = np.array([1.0, 0.0, -0.2, -0.8]), np.array([0.5, -0.3, 0.0])
    fit = fit_ballots(Ballots.from_pairs(**battles(rng, 3000, scores, beta)), (2,))
    table = fit.coefficients
    assert (np.abs(table["estimate"] - beta) < 4.0 * table["standard_error"]).all()
    assert (np.abs(fit.scores - scores) < 4.0 * fit.standard_errors()).all()
    assert table["p_value"].iloc[2] > 0.001 > table["p_value"].iloc[0]
    robust = fit.coefficient_table("sandwich")["standard_error"]
    assert robust.to_numpy() == pytest.approx(table["standard_error"].to_numpy(), rel=0.1)
    units = dataclasses.replace(fit.ballots, features=fit.ballots.features * [1e9, 1e-9, 1.0])
    scaled = fit_ballots(units, (2,)).coefficients["estimate"].to_numpy()
    expected = table["estimate"].to_numpy() / [1e9, 1e-9, 1.0]
    assert scaled == pytest.approx(expected, rel=1e-6)
    shrunk = fit_ballots(fit.ballots, (2,), prior=Ridge(0.0, covariates=1e4))
    assert np.abs(shrunk.coefficients["estimate"]).max() < 0.1
    same = dataclasses.replace(fit.ballots, features=np.ones((len(fit.ballots.items), 3)))
    with pytest.raises(ValueError, match="'x0' never differs within a ballot"):
        fit_ballots(same, (2,))


def test_covariates_of_orders_and_menus():
    rng = np.random.default_rng(4)
    truth, beta = np.array([0.8, 0.2, -0.3, -0.7]), np.array([0.6, -0.4])
    features = rng.normal(size=(1500, 4, 2))
    noise = rng.gumbel(size=(1500, 4))
    orders = np.argsort(-(truth + features @ beta + noise), axis=1)
    ballots = Ballots.of(orders).with_features(features, ["price", "place"])
    fit = PlackettLuce.fit(ballots).fit_result
    table = fit.coefficients
    assert table.index.tolist() == ["price", "place"]
    assert (np.abs(table["estimate"] - beta) < 4.0 * table["standard_error"]).all()
    assert (np.abs(fit.scores - truth) < 4.0 * fit.standard_errors()).all()
    # The choice of the first alone says less.
    chosen = Ballots.from_choices(orders[:, 0], n_items=4).with_features(features)
    less = PlackettLuce.fit(chosen).fit_result.coefficients
    assert (np.abs(less["estimate"].to_numpy() - beta) < 4.0 * less["standard_error"]).all()
    assert (less["standard_error"].to_numpy() > table["standard_error"].to_numpy()).all()
    features[7, 2, 1] = np.nan
    with pytest.raises(ValueError, match="expected a number for '2' on ballot 7, got nan"):
        Ballots.of(orders).with_features(features)
    with pytest.raises(ValueError, match=r"expected shape \(1500, 4, q\)"):
        Ballots.of(orders).with_features(features[:5])


def test_features_of_items_are_the_objective_of_listmle():
    from permdist.objectives import ListMLE

    rng = np.random.default_rng(1)
    features = rng.normal(size=(6, 2))
    orders = PlackettLuce(features @ [1.0, -0.5]).sample(40, rng=2)
    model = PlackettLuce.fit(orders, features=features)
    fit = model.fit_result
    beta = fit.coefficients["estimate"].to_numpy()
    assert model.scores == pytest.approx(features @ beta - (features @ beta).mean(), abs=1e-9)
    # Labels that fall along the order make ListMLE's target that order.
    order = orders[0]
    labels = np.empty(6, dtype=np.int64)
    labels[order] = np.arange(6)[::-1]
    value, _ = ListMLE()(features @ beta, labels, np.zeros(6, dtype=np.int64))
    assert value == pytest.approx(-PlackettLuce(features @ beta).log_prob(order), rel=1e-9)
    known = PlackettLuce.fit(orders, features=features[:, :1], offset=features[:, 1] * beta[1])
    assert known.fit_result.parameters[0] == pytest.approx(beta[0], abs=1e-7)


def test_teams_are_the_sum_or_the_mean_of_their_players():
    members = [["ann", "bo"], ["cy"], ["bo", "cy"], ["ann"]]
    sums, means = team_features(members), team_features(members, how="mean")
    games = [[0, 1], [1, 2], [2, 0], [3, 0], [1, 3], [0, 2], [3, 2], [2, 1]]
    fit = PlackettLuce.fit(games, subset=True, features=sums).fit_result
    strength = fit.coefficients["estimate"]
    team = np.array([strength[list(side)].sum() for side in members])
    assert fit.scores == pytest.approx(team - team.mean(), abs=1e-9)
    mean = PlackettLuce.fit(games, subset=True, features=means).fit_result
    strength = mean.coefficients["estimate"]
    assert strength.sum() == pytest.approx(0.0, abs=1e-9)  # only differences count
    team = np.array([strength[list(side)].mean() for side in members])
    assert mean.scores == pytest.approx(team - team.mean(), abs=1e-9)
    with pytest.raises(ValueError, match="team 1 has none"):
        team_features([["a"], []])


def test_a_half_life_lets_old_results_fade():
    ballots = Ballots.from_pairs([0, 1, 0, 1], [1, 0, 1, 0], weights=[8, 2, 2, 8],
                                 times=[0.0, 0.0, 10.0, 10.0])  # fmt: skip
    fit = fit_ballots(ballots, (), half_life=10.0)
    assert fit.scores[0] - fit.scores[1] == pytest.approx(np.log((4 + 2) / (1 + 8)), abs=1e-9)
    # The sandwich knows that a ballot is a ballot, whatever it counts.
    p = 6 / 15
    slopes = np.array([0.5 * (1 - p), -0.5 * p, 1 - p, -p])
    variance = (np.array([8, 2, 2, 8]) * slopes**2).sum() / (15 * p * (1 - p)) ** 2
    covariance = fit.covariance("sandwich")
    found = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert found == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize(
    ("ballots", "sizes", "message"),
    [
        (Ballots.from_pairs(["a", "a", "b"], ["b", "c", "c"]), (), "always above the others: a"),
        (Ballots.from_pairs(["a", "b"], ["b", "a"], names=["a", "b", "c"]), (), "no ballot: c"),
        (Ballots.from_pairs([0, 1, 2, 3], [1, 0, 3, 2]), (), "never compared with the others: 0"),
        (Ballots.from_pairs([0, 0], [1, 1], ties=[True, True]), (2,), "all results are ties"),
        (
            Ballots.from_pairs([0, 0], [1, 1], ties=[False, True]),
            (2,),
            "never below another one but for ties: 0",
        ),
    ],
)
def test_why_there_is_no_estimate(ballots, sizes, message):
    with pytest.raises(ValueError, match=f"no maximum likelihood estimate exists, .*{message}"):
        fit_ballots(ballots, sizes)
    if not sizes:
        assert np.isfinite(fit_ballots(ballots, (), prior=0.5).scores).all()


def test_errors_of_the_data_alone_may_not_exist():
    ballots = Ballots.from_pairs(["a", "b"], ["b", "a"], names=["a", "b", "c"])
    fit = fit_ballots(ballots, (), prior=1.0)
    with pytest.raises(ValueError, match="use kind='penalized'"):
        fit.covariance()
    assert np.isfinite(fit.covariance("penalized")).all()
    with pytest.raises(ValueError, match="kind: "):
        fit.covariance("exact")
    with pytest.raises(ValueError, match="level: expected a number between 0 and 1"):
        fit.intervals(95)


@pytest.mark.parametrize(
    "model",
    [
        PlackettLuce.fit([[0, 1, 2], [2, 1, 0], [1, 0, 2]]),
        PlackettLuce.fit([[0, 1], [1, 0], [2, 0]], subset=True, regularization=0.5),
        PlackettLuce.fit_pairs(["a", "b", "b"], ["b", "a", "c"], prior=PseudoWins(1.0)),
    ],
)
def test_fits_can_be_copied_and_sent(model):
    again = pickle.loads(pickle.dumps(model))
    for kind in ("observed", "penalized", "sandwich"):
        expected = model.fit_result.covariance(kind)
        assert again.fit_result.covariance(kind) == pytest.approx(expected, rel=1e-12)
    assert str(copy.copy(model).fit_result) == str(model.fit_result)


def test_a_fit_answers_by_name():
    fit = PlackettLuce.fit_pairs(
        ["ann", "ann", "bo", "bo", "cy"], ["bo", "cy", "cy", "ann", "ann"]
    ).fit_result
    assert fit.prob_above("ann", "cy") == pytest.approx(stats.norm.cdf(fit.compare("ann", "cy").z))
    assert fit.prob_best().sum() == pytest.approx(1.0)
    assert "ann" in str(fit)
    with pytest.raises(ValueError, match="unknown name 'dy'"):
        fit.compare("ann", "dy")
    with pytest.raises(TypeError, match="expected a number or a name"):
        fit.index(1.5)
