"""Scores up to 1e8: every distribution against exact arithmetic; larger ones are refused."""

import math
from fractions import Fraction

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfc

from permdist import (
    DavidsonLuce,
    GaussianScores,
    GaussianScoresBatch,
    GoodBad,
    PairSigns,
    PlackettLuce,
    PlackettLuceBatch,
    WeightedOrders,
    objectives,
    rankings,
    strategies,
)
from permdist.distributions import NotExactError
from permdist.measures import evaluate, parse
from permdist.samplers import run_chains
from permdist.samplers.auto import applicable
from permdist.samplers.kernels import KERNELS
from permdist.targets import target_of

SIZES = st.integers(-8, 6).map(lambda power: 10.0**power)
MANTISSAS = st.sampled_from([-3.0, -1.0, -0.25, 0.0, 0.25, 0.5, 1.0, 1.7, 2.0])


def fractions(values):
    return [Fraction(float(value)) for value in values]


@st.composite
def wide_scores(draw, min_items=2, max_items=4):
    """Draw scores of all sizes, some of them close together far away from the others."""
    count = draw(st.integers(min_items, max_items))
    centers = draw(st.lists(st.tuples(MANTISSAS, SIZES), min_size=1, max_size=3))
    scores = []
    for _ in range(count):
        (mantissa, size), step = draw(st.sampled_from(centers)), draw(st.tuples(MANTISSAS, SIZES))
        near = draw(st.sampled_from([0.0, 1.0]))
        scores.append(mantissa * size + near * step[0] * min(step[1], 10.0))
    return np.array(scores)


@st.composite
def wide_queries(draw, max_grade=2, max_items=4):
    scores = draw(wide_scores(max_items=max_items))
    labels = draw(
        st.lists(st.integers(0, max_grade), min_size=len(scores), max_size=len(scores)).filter(
            lambda grades: len(set(grades)) > 1
        )
    )
    return scores, np.array(labels)


def agrees(model, truth, labels=None):
    """Compare all that a distribution answers with a listing of all orders."""
    n = model.n_items
    assert np.exp(model.log_prob(truth.orders)) == pytest.approx(truth.prob, abs=1e-9)
    finite = np.isfinite(truth.log_prob)
    assert model.log_prob(truth.orders)[finite] == pytest.approx(
        truth.log_prob[finite], rel=1e-9, abs=1e-9
    )
    assert model.rank_marginals() == pytest.approx(truth.rank_marginals(), abs=1e-9)
    assert model.pairwise() == pytest.approx(truth.pairwise(), abs=1e-9)
    assert model.entropy(method="exact") == pytest.approx(truth.entropy(), abs=1e-8)
    assert 0.0 <= model.entropy() <= math.lgamma(n + 1) + 1e-12
    chosen = labels if labels is not None else np.arange(n) % 2
    for name in ("ap", "ndcg"):
        if parse(name).defined(chosen):
            value = float(truth.prob @ parse(name)(truth.orders, chosen))
            assert model.expect(name, chosen, method="exact") == pytest.approx(value, abs=1e-9)


def good_bad(scores, labels, scale=Fraction(1), **options):
    """List all orders with their exact exponents under the good-bad pair model."""
    return naive.Listing(
        len(scores),
        lambda order: naive.good_bad(fractions(scores), labels, order, scale=scale, **options),
    )


def plackett_luce(scores):
    return naive.Listing(len(scores), lambda order: naive.plackett_luce(fractions(scores), order))


@given(query=wide_queries(), scale=st.sampled_from([1e-9, 0.3, 1.0]))
def test_good_bad_over_orders(query, scale):
    scores, labels = query
    truth = good_bad(scores, labels, scale=Fraction(scale))
    agrees(GoodBad(scores, labels, scale=scale), truth, labels)


@given(query=wide_queries(max_grade=1), kappa=st.sampled_from([-2.0, 1.0, 1e3]))
def test_tilted_good_bad_over_orders(query, kappa):
    scores, labels = query
    truth = good_bad(scores, labels, tilt=parse("ap"), kappa=Fraction(kappa))
    agrees(GoodBad(scores, labels, tilt="ap", kappa=kappa), truth, labels)


@pytest.mark.parametrize("grade", [1, 2])
@settings(max_examples=25)
@given(data=st.data())
def test_interleavings(grade, data):
    scores, labels = data.draw(wide_queries(max_grade=grade))
    model = GoodBad(scores, labels, space="interleavings")
    agrees(model, good_bad(scores, labels, space="interleavings"), labels)


@given(scores=wide_scores())
def test_plackett_luce(scores):
    agrees(PlackettLuce(scores), plackett_luce(scores))


@given(scores=wide_scores(min_items=3, max_items=3), others=wide_scores(3, 3))
def test_divergences(scores, others):
    mine, theirs = plackett_luce(scores), plackett_luce(others)
    expected = float(mine.prob @ np.where(mine.prob > 0, mine.log_prob - theirs.log_prob, 0.0))
    found = PlackettLuce(scores).kl(PlackettLuce(others), method="exact")
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-8)
    assert found >= 0.0
    labels = np.array([1, 0, 2])
    mine, theirs = good_bad(scores, labels), good_bad(others, labels)
    expected = float(mine.prob @ np.where(mine.prob > 0, mine.log_prob - theirs.log_prob, 0.0))
    found = GoodBad(scores, labels).kl(GoodBad(others, labels), method="exact")
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-8)
    assert found >= 0.0


@given(entries=st.lists(st.tuples(MANTISSAS, SIZES), min_size=9, max_size=9))
def test_weights_of_pairs(entries):
    weights = np.array([mantissa * size for mantissa, size in entries]).reshape(3, 3)
    exact = [fractions(row) for row in weights]

    def total(order):
        return sum(exact[order[k]][order[m]] for k in range(3) for m in range(k + 1, 3))

    model = WeightedOrders.from_pairs(weights)
    truth = naive.Listing(3, total)
    try:
        model.rank_marginals()
    except NotExactError:
        # A cycle: whatever the order, a large weight is lost, and its digits hide the small ones.
        best = max(sum(max(exact[i][j], exact[j][i]) for i in range(3) for j in range(i)), 0)
        assert best - max(map(total, truth.orders.tolist())) > 1e5
        return
    agrees(model, truth)


@settings(max_examples=25)
@given(scores=strategies.scores(wide=True, min_items=2), scale=st.sampled_from([1.0, 1e9]))
def test_gaussian_scores_of_every_magnitude(scores, scale):
    dist = GaussianScores(scores, scale)
    marginals, pairwise = dist.rank_marginals(), dist.pairwise()
    assert marginals.sum(axis=0) == pytest.approx(1.0, abs=1e-7)
    assert marginals.sum(axis=1) == pytest.approx(1.0, abs=1e-7)
    assert marginals.min() >= 0
    gaps = (scores[:, None] - scores) / (2.0 * scale)
    assert pairwise == pytest.approx(0.5 * erfc(-gaps) - 0.5 * np.eye(len(scores)), abs=1e-7)
    assert marginals @ np.arange(len(scores)) == pytest.approx(pairwise.sum(axis=0), abs=1e-7)
    # Scores and scale in another unit are the same distribution.
    unit = GaussianScores(scores / 2**20, scale / 2**20)
    assert unit.rank_marginals() == pytest.approx(marginals, abs=1e-7)


@settings(max_examples=20)
@given(dist=strategies.gaussian_scores(wide=True, min_items=2, max_items=4))
def test_orders_of_gaussian_scores_of_every_magnitude(dist):
    orders = rankings.enumerate_orders(dist.n_items)
    chances = np.exp(dist.log_prob(orders))
    assert chances.sum() == pytest.approx(1.0, abs=1e-7)
    tops = np.bincount(orders[:, 0], chances)
    assert dist.rank_marginals()[:, 0] == pytest.approx(tops, abs=1e-7)
    assert 0 <= dist.entropy(method="exact") <= math.lgamma(dist.n_items + 1) + 1e-12


@pytest.mark.parametrize("make", [PlackettLuce, GaussianScores])
def test_draws_see_small_differences_beside_large_ones(make):
    model = make([1e8, 1.0, 0.0, -1e8])
    drawn = model.sample(20_000, rng=0)
    assert (drawn[:, 0] == 0).all()
    assert (drawn[:, 3] == 3).all()
    share = (drawn[:, 1] == 1).mean()
    assert share == pytest.approx(model.pairwise()[1, 2], abs=5 * 0.5 / math.sqrt(20_000))


REFUSED = {
    "PlackettLuce": lambda: PlackettLuce([2e8, 0.0]),
    "GaussianScores": lambda: GaussianScores([2.0, 0.0], scale=1e-8),
    "PlackettLuceBatch": lambda: PlackettLuceBatch([[0.0, 1.0], [-2e8, 0.0]]),
    "GaussianScoresBatch": lambda: GaussianScoresBatch([[2.0, 0.0]], scale=1e-8),
    "DavidsonLuce": lambda: DavidsonLuce([2e8, 0.0]),
    "GoodBad": lambda: GoodBad([2e8, 0.0], [1, 0]),
    "GoodBad by its scale": lambda: GoodBad([2.0, 0.0], [1, 0], scale=1e8),
    "PairSigns": lambda: PairSigns([0.0, -2e8], [1, 0]),
    "objective": lambda: objectives.LambdaLoss()([2e8, 0.0], [1, 0]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_scores_beyond_the_limit_are_refused(name):
    with pytest.raises(ValueError, match=r"^scores: expected numbers up to .* rescale them"):
        REFUSED[name]()


def test_weights_of_pairs_beyond_the_limit_are_refused():
    with pytest.raises(ValueError, match=r"^weights: expected numbers up to 1e\+08"):
        WeightedOrders.from_pairs(np.full((3, 3), 1e9))


def test_measures_and_evaluations_take_any_finite_scores():
    assert parse("ap").from_scores([1e300, -1e300], [1, 0]) == 1.0
    assert evaluate([1e17, 2e17], [0, 1], measures="ap").mean("ap") == 1.0


def test_orders_that_cross_an_impassable_gap_are_refused_where_no_integral_reaches():
    model = GaussianScores([1e8, 1.0, 0.0])
    with pytest.raises(ValueError, match="standard deviations"):
        model.log_prob([1, 0, 2])
    assert model.kl(GaussianScores([1e7, 0.0, 0.0])) == pytest.approx(0.14235552321, abs=1e-9)


def test_sums_without_digits_are_refused():
    cycle = np.array([[0, 1e8, 0], [0, 0, 1e8], [1e8, 0, 0]])
    for ask in ("rank_marginals", "pairwise", "entropy"):
        with pytest.raises(NotExactError, match="log-weights: sums of them reach"):
            getattr(WeightedOrders.from_pairs(cycle), ask)()
    with pytest.raises(NotExactError, match="log-weights"):
        WeightedOrders.from_pairs(cycle).sample(3, rng=0)
    with pytest.raises(NotExactError, match="log-weights"):
        WeightedOrders(3, step=lambda item, above: 1e9 + 0.0 * above[:, 0]).log_prob([0, 1, 2])
    # A log-weight for whole orders is listed, and what all orders share is no trouble there.
    listed = WeightedOrders(3, lambda orders: 1e9 + orders[:, 0])
    assert listed.entropy() == pytest.approx(
        WeightedOrders(3, lambda orders: orders[:, 0]).entropy(), rel=1e-12
    )


@pytest.mark.parametrize("kernel", ["exact", *KERNELS])
@pytest.mark.parametrize(
    "dist",
    [
        GoodBad([1e8, 1.0, 0.8, -1e8], [1, 0, 1, 0]),
        GoodBad([1e8, 1.0, 0.8, -1e8], [1, 0, 1, 0], space="interleavings", tilt="ap"),
        PlackettLuce([1e8, 1.0, 0.8, -1e8]),
        WeightedOrders.from_pairs(np.triu([[0, 1e8, 1e8], [0, 0, 0.4], [0, 0, 0]])),
    ],
    ids=["orders", "interleavings", "plackett-luce", "pairs"],
)
def test_chains_see_small_differences_beside_large_ones(dist, kernel):
    if kernel in KERNELS and kernel not in applicable(target_of(dist)):
        pytest.skip("needs classes of items")
    chains = run_chains(dist, draws=4000, tune=200, chains=2, kernel=kernel, thin=4, rng=1)
    share = float((chains.orders[:, :, 1] == 1).mean())
    assert share == pytest.approx(dist.rank_marginals()[1, 1], abs=0.05)
    np.testing.assert_allclose(chains.log_prob[0], dist.log_prob(chains.orders[0]), atol=1e-7)


def test_kappa_beyond_the_digits_of_a_measure_is_refused():
    with pytest.raises(ValueError, match="kappa: expected at most 1e"):
        GoodBad([1.0, 0.0], [1, 0], tilt="ap", kappa=1e7)
    for make in (GaussianScores, lambda s, scale: GoodBad(s, [1, 0], scale=scale)):
        with pytest.raises(ValueError, match="scale: expected a positive number from 1e-290"):
            make([1.0, 0.0], scale=1e-310)
