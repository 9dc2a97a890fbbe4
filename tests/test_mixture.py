"""Mixtures: sums over components, EM that never falls, groups that are found, refusals."""

import pickle

import naive
import numpy as np
import pytest
from hypothesis import given, settings

from permdist import (
    Ballots,
    GaussianScores,
    GoodBad,
    Mallows,
    Mixture,
    PairSigns,
    PlackettLuce,
    identities,
    rankings,
    strategies,
)
from permdist.distributions import NotExactError
from permdist.distributions.mixture_families import MallowsFamily, PlackettLuceFamily
from permdist.distributions.mixture_fit import State, improved, seeds
from permdist.rankings import TopK

ONE, OTHER = np.array([1.5, 0.5, -0.5, -1.5]), np.array([-2.0, 0.2, 0.3, 1.5])


@pytest.fixture(scope="module")
def truth():
    return Mixture([PlackettLuce(ONE), PlackettLuce(OTHER)], [0.65, 0.35])


@pytest.fixture(scope="module")
def ballots(truth):
    return truth.sample(3000, rng=5)


@pytest.fixture(scope="module")
def fitted(ballots):
    return Mixture.fit(ballots, k=2, n_init=3, rng=1)


# ---- the distribution --------------------------------------------------------------------------


@settings(max_examples=20)
@given(strategies.mixtures(max_items=4))
def test_a_mixture_is_the_sum_of_its_components(model):
    orders = rankings.enumerate_orders(model.n_items)
    parts = zip(model.weights, model.components, strict=True)
    chances = sum(weight * np.exp(part.log_prob(orders)) for weight, part in parts)
    assert np.exp(model.log_prob(orders)) == pytest.approx(chances, rel=1e-10)
    assert model.log_prob(model.mode()) == pytest.approx(np.log(chances.max()))


def test_a_mixture_keeps_the_contract_of_distributions(truth):
    assert identities.check_distribution(truth).passed


def test_components_of_any_kind_are_listed():
    parts = [PlackettLuce(ONE), Mallows([3, 1, 0, 2], 0.8, "ulam"), GaussianScores(OTHER)]
    model = Mixture([*parts, GoodBad(ONE, [1, 0, 0, 1])], [0.1, 0.2, 0.3, 0.4])
    orders = rankings.enumerate_orders(4)
    components = [lambda order, part=part: part.log_prob(order) for part in model.components]
    expected = [naive.mixture(model.weights, components, order) for order in orders]
    assert model.log_prob(orders) == pytest.approx(np.array(expected), rel=1e-12)
    shares = model.responsibilities(orders)
    assert shares.shape == (24, 4)
    assert shares.sum(axis=1) == pytest.approx(np.ones(24))
    bayes = np.exp(parts[1].log_prob(orders) + np.log(0.2) - expected)
    assert shares[:, 1] == pytest.approx(bayes)


def test_draws_know_their_component(truth):
    orders, numbers = truth.sample_components((40, 500), rng=3)
    assert orders.shape == (40, 500, 4)
    assert numbers.shape == (40, 500)
    assert abs(np.mean(numbers == 0) - 0.65) < 4.5 * np.sqrt(0.65 * 0.35 / 20_000)
    for number, part in enumerate(truth.components):
        mine = orders[numbers == number]
        for position in range(4):
            found = np.bincount(mine[:, position], minlength=4) / len(mine)
            assert np.abs(found - part.rank_marginals()[:, position]).max() < 0.03
    assert (truth.sample(100, rng=2) == truth.sample_components(100, rng=2)[0]).all()
    order, number = truth.sample_components(rng=0)
    assert order.shape == (4,)
    assert np.ndim(number) == 0


def test_many_items_are_exact_where_components_are():
    a, b = Mallows(np.arange(40), 0.2), PlackettLuce(np.linspace(2.0, -2.0, 40))
    model = Mixture([a, b], [0.25, 0.75])
    assert model.rank_marginals() == pytest.approx(
        0.25 * a.rank_marginals() + 0.75 * b.rank_marginals()
    )
    labels = np.arange(40) % 2
    exact = model.expect("ndcg@5", labels, method="exact")
    assert exact == pytest.approx(
        0.25 * a.expect("ndcg@5", labels) + 0.75 * b.expect("ndcg@5", labels)
    )
    assert (model.mode() == np.arange(40)).all()
    entropy = model.entropy(draws=500, rng=0)
    assert entropy.standard_error > 0.0
    with pytest.raises(NotExactError, match="entropy: exact up to 8 items"):
        model.entropy(method="exact")
    turned = Mixture([a, Mallows(np.arange(40)[::-1], 0.2)], [0.5, 0.5])
    with pytest.raises(NotExactError, match="mode: exact up to 8 items"):
        turned.mode()


def test_a_component_without_weight_has_no_say():
    model = Mixture([PlackettLuce(ONE), PlackettLuce(OTHER)], [1.0, 0.0])
    orders = rankings.enumerate_orders(4)
    assert model.log_prob(orders) == pytest.approx(PlackettLuce(ONE).log_prob(orders))
    assert (model.sample_components(200, rng=0)[1] == 0).all()


def test_ballots_of_every_kind(truth):
    tops = [TopK([0, 1], 4), TopK([3], 4)]
    expected = np.log(
        0.65 * np.exp(np.stack([truth.components[0].log_prob(top) for top in tops]))
        + 0.35 * np.exp(np.stack([truth.components[1].log_prob(top) for top in tops]))
    )
    assert truth.log_prob(tops) == pytest.approx(expected)
    assert truth.log_prob(tops[0]) == pytest.approx(expected[0])
    assert truth.log_prob([0, 1], subset=False) == pytest.approx(expected[0])
    assert truth.log_prob(Ballots.of(tops)) == pytest.approx(expected)
    full = rankings.enumerate_orders(4)
    mixed = Mixture([PlackettLuce(ONE), Mallows([0, 1, 2, 3], 1.0)], [0.5, 0.5])
    assert mixed.responsibilities(Ballots.of(full)) == pytest.approx(mixed.responsibilities(full))
    parts = [np.exp(part.log_prob(Ballots.of(tops))) for part in mixed.components]
    assert mixed.log_prob(tops) == pytest.approx(np.log(0.5 * parts[0] + 0.5 * parts[1]))
    named = Mixture([PlackettLuce([1.0, 0.0], ["tea", "milk"])], [1.0])
    assert named.log_prob([["milk", "tea"]]) == pytest.approx(named.log_prob([[1, 0]]))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Mixture([], []), ValueError, "components: expected at least one"),
        (lambda: Mixture(PlackettLuce(ONE), [1.0]), TypeError, "sequence of distributions"),
        (
            lambda: Mixture([PlackettLuce(ONE), PlackettLuce([0.0])], [0.5, 0.5]),
            ValueError,
            "components: expected 4 items in all, got 1 at index 1",
        ),
        (
            lambda: Mixture(
                [PlackettLuce([0.0, 1.0], ["a", "b"]), PlackettLuce([0.0, 1.0], ["b", "a"])],
                [0.5, 0.5],
            ),
            ValueError,
            "components: expected the same item names",
        ),
        (
            lambda: Mixture([PairSigns(ONE, [0, 1, 0, 1])], [1.0]),
            TypeError,
            "got PairSigns at index 0",
        ),
        (lambda: Mixture([PlackettLuce(ONE)], [0.5]), ValueError, "a sum of 1, got 0.5; divide"),
        (lambda: Mixture([PlackettLuce(ONE)], [0.5, 0.5]), ValueError, "expected 1 weights, got 2"),
        (lambda: Mixture([PlackettLuce(ONE)] * 2, [1.5, -0.5]), ValueError, "no negative number"),
        (lambda: Mixture([PlackettLuce(ONE)], [np.nan]), ValueError, "weights: expected finite"),
    ],
)
def test_bad_mixtures(make, error, message):
    naive.refuses(make, error, message)


# ---- fits --------------------------------------------------------------------------------------


def test_two_groups_are_found_within_errors(truth, fitted):
    result = fitted.fit_result
    assert result.converged
    assert result.n_parameters == 7
    assert np.abs(fitted.weights - truth.weights).max() < 4 * result.weight_errors[0]
    for found, true, errors in zip(
        fitted.components, truth.components, result.component_errors, strict=True
    ):
        off = found.scores - (true.scores - true.scores.mean())
        assert (np.abs(off) < 4 * errors).all()
    assert result.bic == pytest.approx(7 * np.log(3000) - 2 * result.log_likelihood)
    assert result.icl > result.bic


def test_the_objective_is_what_it_says_and_never_falls(fitted, ballots):
    result = fitted.fit_result
    assert (np.diff(result.history) >= 0.0).all()
    assert len(result.history) == result.n_iter + 1
    assert result.log_likelihood == pytest.approx(fitted.log_prob(ballots).sum(), rel=1e-12)
    ridge = sum(0.005 * (part.scores**2).sum() for part in fitted.components)
    assert result.objective == pytest.approx(result.log_likelihood - ridge, rel=1e-12)
    assert result.starts.max() == result.objective


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("kind", ["plackett-luce", "mallows", "footrule"])
def test_no_iteration_falls_by_more_than_rounding(kind, noise, ballots):
    # The loop itself would hide a fall, since it stops there: here the bare step is repeated.
    data = Ballots.of(ballots[:300]).merged()
    family = PlackettLuceFamily(data, noise, 0.01)
    if kind != "plackett-luce":
        family = MallowsFamily(data, noise, 0.01, "kendall" if kind == "mallows" else kind)
    models = seeds(family, 3, family.counts, np.random.default_rng(2))
    shares = np.full(3 + noise, 1.0 / (3 + noise))
    state = State.of(family, models, shares, family.counts)
    for _ in range(25):
        following = improved(family, state, family.counts)
        assert following.objective >= state.objective - 1e-10 * abs(state.objective)
        state = following


def test_errors_equal_those_by_difference_quotients(truth):
    orders = Mixture([PlackettLuce([1, 0, -1]), PlackettLuce([-1.5, 0, 1.5])], [0.6, 0.4]).sample(
        60, rng=0
    )
    model = Mixture.fit(orders, k=2, n_init=2, prior=1.0, rng=0)
    result, scores = model.fit_result, [part.scores for part in model.components]
    expected = naive.mixture_errors(orders.tolist(), model.weights, scores)
    found = np.concatenate([result.weight_errors, *result.component_errors])
    assert found == pytest.approx(expected, rel=1e-3)


def test_the_result_does_not_depend_on_threads(ballots):
    one = Mixture.fit(ballots[:400], k=2, n_init=4, rng=7)
    two = Mixture.fit(ballots[:400], k=2, n_init=4, rng=7, n_jobs=2)
    assert (one.weights == two.weights).all()
    assert (one.fit_result.starts == two.fit_result.starts).all()
    for a, b in zip(one.components, two.components, strict=True):
        assert (a.scores == b.scores).all()


def test_components_are_in_order_of_weight_whatever_the_start(ballots):
    for seed in range(3):
        model = Mixture.fit(ballots, k=2, n_init=2, rng=seed)
        assert model.weights[0] > model.weights[1]
        assert model.components[0].mode().tolist() == [0, 1, 2, 3]


def test_the_number_of_groups_is_chosen(ballots):
    for criterion in ("bic", "icl", "cv"):
        model = Mixture.fit(
            ballots[:1500], k=[1, 2, 3], criterion=criterion, n_init=1, folds=2, tol=1e-5, rng=0
        )
        assert set(model.fit_result.criteria) == {1, 2, 3}
        assert model.fit_result.criterion == criterion
        if criterion != "cv":
            assert model.n_components == 2
            assert model.fit_result.criteria[2] == pytest.approx(
                getattr(model.fit_result, criterion)
            )
        assert model.fit_result.criteria[1] * (-1) ** (criterion == "cv") > (
            model.fit_result.criteria[2] * (-1) ** (criterion == "cv")
        )


def test_one_component_is_the_plain_fit(ballots):
    for prior in (0.0, 2.0):
        model = Mixture.fit(ballots, k=1, prior=prior)
        plain = PlackettLuce.fit(ballots, prior=prior)
        assert model.components[0].scores == pytest.approx(plain.scores, abs=1e-9)
        assert model.fit_result.component_errors[0] == pytest.approx(
            plain.fit_result.standard_errors(), rel=1e-6
        )
        assert model.fit_result.weight_errors == pytest.approx([0.0])
    model, plain = Mixture.fit(ballots, "mallows", k=1, prior=0.0), Mallows.fit(ballots)
    assert model.components[0].theta == pytest.approx(plain.theta, rel=1e-9)
    assert model.components[0].center.tolist() == plain.center.tolist()
    assert model.fit_result.component_errors[0] == pytest.approx([plain.fit_result.standard_error])
    assert model.fit_result.log_likelihood == pytest.approx(plain.fit_result.log_likelihood)


def test_groups_of_mallows_models():
    parts = [Mallows([0, 1, 2, 3, 4], 1.0), Mallows([4, 2, 3, 1, 0], 1.5)]
    ballots = Mixture(parts, [0.6, 0.4]).sample(1500, rng=0)
    model = Mixture.fit(ballots, Mallows, k=2, n_init=3, rng=0)
    result = model.fit_result
    assert result.n_parameters == 3
    assert abs(model.weights[0] - 0.6) < 4 * result.weight_errors[0]
    for found, true, errors in zip(model.components, parts, result.component_errors, strict=True):
        assert found.center.tolist() == true.center.tolist()
        assert abs(found.theta - true.theta) < 4 * errors[0]


def test_noise_is_a_uniform_component_at_the_end():
    parts = [Mallows([0, 1, 2, 3, 4], 2.0), Mallows([0, 1, 2, 3, 4], 0.0)]
    ballots = Mixture(parts, [0.4, 0.6]).sample(2000, rng=0)
    model = Mixture.fit(ballots, "mallows", k=1, noise=True, n_init=2, rng=0)
    assert model.n_components == 2
    assert model.fit_result.n_parameters == 2
    assert model.weights[1] > model.weights[0]  # last, though it is the larger one
    assert (model.components[1].scores == 0.0).all()
    assert abs(model.weights[1] - 0.6) < 4 * model.fit_result.weight_errors[1]
    assert abs(model.components[0].theta - 2.0) < 4 * model.fit_result.component_errors[0][0]


def test_short_lists_weights_and_names():
    group = Mixture([PlackettLuce(ONE), PlackettLuce(OTHER)], [0.5, 0.5])
    full = group.sample(120, rng=0)
    lists = [TopK(order[: 2 + i % 2], 4) for i, order in enumerate(full)]
    model = Mixture.fit(lists, k=2, n_init=1, rng=0, names=["a", "b", "c", "d"], tol=1e-6)
    assert model.names == ("a", "b", "c", "d")
    assert model.responsibilities(lists).shape == (120, 2)
    # Counting a ballot twice is casting it twice.
    twice = Mixture.fit(np.repeat(full[:50], 2, axis=0), k=2, n_init=2, rng=0)
    weighted = Mixture.fit(full[:50], weights=np.full(50, 2.0), k=2, n_init=2, rng=0)
    assert twice.fit_result.objective == pytest.approx(weighted.fit_result.objective, rel=1e-9)


def test_families_of_your_own(ballots):
    def fit(orders, weights):
        return GaussianScores.fit(orders, weights=weights, regularization=0.1)

    few = ballots[:40]

    def fit_worths(orders, weights):
        return PlackettLuce.fit(orders, weights=weights, prior=0.1)

    for family in (fit, fit_worths):
        model = Mixture.fit(few, family, k=2, n_init=1, max_iter=2, tol=1e-3, n_parameters=3, rng=0)
        assert model.fit_result.n_parameters == 7
        assert np.isfinite(model.fit_result.bic)
        assert model.fit_result.weight_errors[0] > 0.0
    model = Mixture.fit(few, GaussianScores, k=1)
    assert isinstance(model.components[0], GaussianScores)
    assert np.isnan(model.fit_result.bic)
    with pytest.raises(ValueError, match="pass n_parameters, or criterion='cv'"):
        Mixture.fit(few, GaussianScores, k=[1, 2])


@pytest.mark.parametrize("family", ["plackett-luce", "mallows"])
def test_equal_ballots_are_a_finite_group(family):
    ballots = np.tile([2, 0, 1, 3], (30, 1))
    model = Mixture.fit(ballots, family, k=2, n_init=2, rng=0)
    assert model.mode().tolist() == [2, 0, 1, 3]
    assert np.isfinite(model.fit_result.objective)
    assert -1.0 < model.fit_result.log_likelihood <= 0.0
    with pytest.raises(ValueError, match=r"estimate exists for a component|no finite estimate"):
        Mixture.fit(ballots, family, k=1, prior=0.0)


@pytest.mark.parametrize("family", ["plackett-luce", "mallows"])
def test_a_group_of_one_ballot_is_finite(family):
    ballots = np.array([[0, 1, 2, 3, 4]] * 80 + [[4, 3, 2, 1, 0]])
    model = Mixture.fit(ballots, family, k=2, n_init=5, rng=0)
    assert model.weights[1] == pytest.approx(1 / 81, rel=0.1)
    assert model.components[1].mode().tolist() == [4, 3, 2, 1, 0]
    largest = model.components[1].theta if family == "mallows" else model.components[1].scores.max()
    assert 1.0 < largest < 20.0


def test_one_item():
    model = Mixture([PlackettLuce([0.0]), Mallows([0], 1.0)], [0.5, 0.5])
    assert model.log_prob([0]) == pytest.approx(0.0)
    assert model.mode().tolist() == [0]
    assert model.entropy() == pytest.approx(0.0)
    for family in ("plackett-luce", "mallows"):
        fitted = Mixture.fit(np.zeros((5, 1), dtype=int), family, k=2, n_init=1, rng=0)
        assert fitted.log_prob([0]) == pytest.approx(0.0)
        assert fitted.fit_result.log_likelihood == pytest.approx(0.0)


def test_fitted_mixtures_are_pickled(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.weights == fitted.weights).all()
    assert again.fit_result.bic == fitted.fit_result.bic


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"k": 0}, ValueError, "k: expected at least 1"),
        ({"k": []}, ValueError, "k: expected at least one number"),
        ({"k": 2, "family": "malows"}, ValueError, "did you mean 'mallows'"),
        ({"k": 2, "family": 3}, TypeError, "family: expected a name, a class or a function"),
        ({"k": 2, "family": int}, TypeError, "class with a method fit, got int"),
        ({"k": 2, "family": lambda b, w: 3}, TypeError, "return a Distribution, got int"),
        ({"k": 2, "prior": -1.0}, ValueError, "prior: expected a non-negative number"),
        ({"k": 2, "n_init": 0}, ValueError, "n_init: expected at least 1"),
        ({"k": 2, "n_jobs": 0}, ValueError, "n_jobs: expected at least 1"),
        ({"k": 2, "tol": -1.0}, ValueError, "tol: expected a non-negative"),
        ({"k": 2, "criterion": "aic"}, ValueError, "criterion: expected one of"),
        ({"k": [1], "criterion": "cv", "folds": 9}, ValueError, "folds: expected at most 3"),
        ({"k": 2, "family": "mallows", "distance": "x"}, ValueError, "distance: expected one of"),
        ({"k": 2, "ballots": [[0, {1, 2}]]}, ValueError, "expected none with ties"),
        (
            {"k": 2, "family": "mallows", "distance": "ulam", "ballots": [TopK([0], 9)]},
            ValueError,
            "center: for ulam found up to 6 items",
        ),
        (
            {"k": 1, "family": lambda b, w: PlackettLuce([0.0])},
            ValueError,
            "a distribution over 3 items, got 1",
        ),
    ],
)
def test_bad_fits(options, error, message):
    ballots = options.pop("ballots", [[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    naive.refuses(lambda: Mixture.fit(ballots, **options), error, message)


def test_mallows_components_from_first_places():
    parts = [Mallows([0, 1, 2, 3, 4], 2.0), Mallows([4, 2, 3, 0, 1], 2.0)]
    ballots = Mixture(parts, [0.6, 0.4]).sample(400, rng=0)[:, :2]
    model = Mixture.fit(ballots, "mallows", k=2, n_init=2, subset=False, n_items=5, rng=0)
    found = model.fit_result
    assert [part.center[0] for part in model.components] == [0, 4]
    assert abs(model.weights[0] - 0.6) < 4 * found.weight_errors[0]
    assert (np.diff(found.history) >= -1e-9).all()
    for part, error in zip(model.components, found.component_errors, strict=True):
        assert abs(part.theta - 2.0) < 4 * error[0]
