"""Mixtures: sums over components, draws, refusals."""

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
from permdist.rankings import TopK

ONE, OTHER = np.array([1.5, 0.5, -0.5, -1.5]), np.array([-2.0, 0.2, 0.3, 1.5])


@pytest.fixture(scope="module")
def truth():
    return Mixture([PlackettLuce(ONE), PlackettLuce(OTHER)], [0.65, 0.35])


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
        turned.mode(method="exact")


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
        (lambda: Mixture([PlackettLuce(ONE)] * 2, [1.5, -0.5]), ValueError, "no negative number"),
    ],
)
def test_bad_mixtures(make, error, message):
    naive.refuses(make, error, message)
