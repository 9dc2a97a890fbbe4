"""All orders and all valid sign vectors: exact sums, drawn class orders, and what is reported."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from marks import UNFINISHED_FITS
from test_models_spaces import BINARY, GRADED, check, listed, make_batch

from permdist import GoodBad, PairSigns, ValidSigns, data
from permdist.distributions import NotExactError
from permdist.measures import parse
from permdist.models import MLE, ConvexLoss, ExpectedGain, load
from permdist.models.spaces import Orders, Restart, parse_space
from permdist.models.spaces import ValidSigns as ValidSignsSpace
from permdist.rankings import enumerate_orders
from permdist.samplers import RestartSampler

pytestmark = UNFINISHED_FITS
SPACES = ("orders", "valid-signs")


def rankings_of(space, label):
    if space == "orders":
        return enumerate_orders(len(label)).tolist()
    return naive.orders_by_signs(label.tolist())


def expected_sums(space, batch, scores, measure, kappa):
    """Return the log-sum, relative to all best rankings, and the mean gain of each query."""
    found = []
    for q, (a, b) in enumerate(batch.bounds):
        score, label = scores[a:b], batch.labels[a:b]
        orders = rankings_of(space, label)
        value, gain = listed(score, label, batch.scale[q], orders, measure, kappa)
        sizes = np.unique(label, return_counts=True)[1]
        best = [np.log(np.arange(1, size + 1)).sum() for size in sizes]
        found.append((value - sum(best) * (space == "orders"), gain))
    return found


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("labels", [BINARY, GRADED])
@pytest.mark.parametrize(("name", "kappa"), [("ap", 0.0), ("ap", 7.0), ("ndcg@2", 1.0)])
def test_short_queries_are_exact(space, labels, name, kappa):
    batch, measure = make_batch(labels, scaled=True), parse(name)
    scores = np.random.default_rng(0).normal(size=len(batch.labels))
    sums = parse_space(space).sums(batch, measure)
    check(sums, scores, expected_sums(space, batch, scores, measure, kappa), kappa)
    assert sums.report(scores) is None
    assert not sums.resort(scores)


LONGER = [[1, 0, 0, 1, 0, 1, 0], [0, 0, 1, 0, 1, 0]]


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("labels", [LONGER, [[2, 0, 1, 0, 2, 1]]])
def test_drawn_class_orders_estimate_the_exact_sums(space, labels):
    if space == "valid-signs" and labels != LONGER:
        with pytest.raises(ValueError, match="drawn for two labels only"):
            parse_space("valid-signs[exact=3]").sums(make_batch(labels), parse("ap"))
        return
    batch, measure = make_batch(labels), parse("ap")
    pilot = np.random.default_rng(2).normal(size=len(batch.labels))
    drawn = parse_space(f"{space}[exact=3,orders=400]").sums(batch, measure, random_state=0)
    exact = parse_space(space).sums(batch, measure)
    assert drawn.adapts
    assert drawn.resort(pilot)  # a few, then all of them
    assert drawn.resort(pilot)
    assert not drawn.resort(pilot)
    for scores, kappa in ((pilot, 0.0), (1.3 * pilot, 3.0), (0.8 * pilot, 0.0)):
        values, gradient = drawn.log_sums(scores, kappa)
        error = drawn.report(scores).std_error
        assert (np.abs(values - exact.log_sums(scores, kappa)[0]) < 4.5 * error + 1e-9).all()
        np.testing.assert_allclose(gradient, exact.log_sums(scores, kappa)[1], atol=0.25)
        gains = drawn.mean_gains(scores)[0]
        np.testing.assert_allclose(gains, exact.mean_gains(scores)[0], atol=0.05)
    slope = naive.gradient(lambda s: drawn.log_sums(s, 2.0)[0].sum(), pilot)
    np.testing.assert_allclose(drawn.log_sums(pilot, 2.0)[1], slope, atol=1e-6)
    slope = naive.gradient(lambda s: drawn.mean_gains(s)[0].sum(), pilot)
    np.testing.assert_allclose(drawn.mean_gains(pilot)[1], slope, atol=1e-6)
    far = 8.0 * pilot[::-1]
    assert drawn.report(far).smallest < 200 < drawn.report(pilot).smallest
    assert drawn.reach(pilot, far) < 1.0 == drawn.reach(pilot, 1.05 * pilot)
    assert drawn.resort(far)
    assert drawn.report(far).smallest >= 200


def test_a_fit_reports_its_draws_and_keeps_them(tmp_path):
    queries = data.make_letor(12, n_features=4, rng=1)
    space = Orders(exact=8, orders=24)
    learner = ConvexLoss("ap", space=space).fit(queries)
    sample = learner.sample_
    assert sample.size == 24
    assert sample.rounds >= 2
    assert sample.smallest >= 12
    assert len(sample.effective) == len(sample.std_error)
    assert "draws per query" in repr(sample)
    learner.save(tmp_path / "orders.json")
    again = load(tmp_path / "orders.json")
    np.testing.assert_array_equal(again.sample_.effective, sample.effective)
    np.testing.assert_array_equal(again.sample_.mass, sample.mass)
    same = ConvexLoss("ap", space=space.name, n_jobs=2).fit(queries)
    np.testing.assert_array_equal(same.coef_, learner.coef_)
    exact = MLE().fit(queries)
    assert exact.sample_ is None
    exact.save(tmp_path / "mle.json")
    assert load(tmp_path / "mle.json").sample_ is None
    assert ExpectedGain("ap", space=space, max_iter=3, n_starts=2).fit(queries).sample_.size <= 24


def test_options_are_checked():
    for make, message in (
        (lambda: Orders(exact=22), "exact: expected at most 21"),
        (lambda: ValidSignsSpace(exact=19), "exact: expected at most 18"),
        (lambda: parse_space("orders[orders=1]"), "orders: expected at least 2"),
        (lambda: parse_space("restart[sample_size=0]"), "sample_size: expected at least 1"),
        (lambda: Restart(rungs=3, chances="9:1"), "chances: expected 3 numbers"),
        (lambda: Restart(chances="nine"), "chances: expected numbers as in '9:1'"),
        (lambda: Restart(rungs=2, chances=(-1, 1)), "chances: expected non-negative numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


# ---- restarts -----------------------------------------------------------------------------------


def test_restart_states_and_their_chances():
    labels = np.array([1, 0, 0])
    sampler = RestartSampler("ap", rungs=2, chances=(9, 1), walk=1)
    drawn = sampler.sample(labels, 4000, rng=0)
    assert (drawn.rung == 0).mean() == pytest.approx(0.9, abs=0.02)
    ladder = RestartSampler("ap", rungs=11, skew=-2.0)
    orders, losses, chances = RestartSampler(
        "ap", rungs=11, skew=-2.0, distinct=True
    ).probabilities(labels)
    assert len(ladder.probabilities(labels)[1]) == 11
    assert len(np.unique(orders, axis=0)) == len(orders) == 3
    np.testing.assert_allclose(losses, [0.0, 0.5, 2 / 3])
    np.testing.assert_allclose(chances, np.exp(-2.0 * losses) / np.exp(-2.0 * losses).sum())
    given = RestartSampler("ap", rungs=11, chances=np.arange(11), distinct=True)
    found = given.probabilities(labels)
    every = given.ladder(labels)[1]
    np.testing.assert_allclose(
        found[2], [np.arange(11)[every == loss].sum() / 55 for loss in found[1]]
    )
    late = RestartSampler("ap", rungs=2, chances=(1, 0), walk=1, warm_up=1)
    assert (late.sample(labels, 20, rng=0).delta > 0.0).all()  # one flip from the best


def test_restart_spaces_with_all_options(tmp_path):
    queries = data.make_letor(10, n_features=4, rng=1)
    space = Restart(30, rungs=2, chances=(9, 1), walk=3, stride=2, warm_up=1, best=False)
    learner = ConvexLoss("ap", space=space, max_iter=5).fit(queries)
    learner.save(tmp_path / "x.json")
    again = load(tmp_path / "x.json")
    assert parse_space(again.space) == space
    assert learner.sample_.size == 30  # and not the best ranking besides
    assert (
        ConvexLoss("ap", space="restart[sample_size=30]", max_iter=2).fit(queries).sample_.size
        == 31
    )


def test_the_mass_that_a_restart_sample_covers():
    batch, measure = make_batch(LONGER), parse("ap")
    scores = np.random.default_rng(3).normal(size=len(batch.labels))
    sums = Restart(300, skew=0.0, stride=3).sums(batch, measure, random_state=0)
    found, streams = sums.report(scores), batch.streams(0)
    for q, (a, b) in enumerate(batch.bounds):
        label = batch.labels[a:b]
        sampler = RestartSampler(measure, skew=0.0, stride=3)
        drawn = sampler.sample(label, 300, streams[q]).orders
        drawn = np.concatenate([np.argsort(-label, kind="stable")[None], drawn])
        model = ValidSigns(scores[a:b], label, scale=batch.scale[q])
        signs = np.unique(model.signs_of(drawn), axis=0)
        assert found.distinct[q] == pytest.approx(len(signs) / 301)
        assert found.mass[q] == pytest.approx(np.exp(model.log_prob(signs)).sum(), rel=1e-9)
    assert np.isnan(found.std_error).all()


# ---- the distribution ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 3), (3, 4)])
def test_valid_sign_vectors_are_counted_by_the_poly_bernoulli_numbers(shape):
    p, m = shape
    count = {(2, 2): 14, (2, 3): 46, (3, 3): 230, (3, 4): 1066}[shape]
    assert naive.poly_bernoulli(p, m) == count
    model = ValidSigns(np.zeros(p + m), [1] * p + [0] * m)
    assert np.exp(model.log_partition()) == pytest.approx(count, rel=1e-12)
    assert model.entropy() == pytest.approx(np.log(count), rel=1e-12)


@pytest.mark.parametrize("labels", [[1, 0, 0, 1, 0], [0, 1], [2, 0, 1, 0, 1]])
@pytest.mark.parametrize("tilt", [None, "ndcg"])
def test_the_distribution_equals_a_listing(labels, tilt):
    label, rng = np.array(labels), np.random.default_rng(4)
    scores = rng.normal(size=len(label))
    model = GoodBad(scores, label, space="valid-signs", scale=0.7, tilt=tilt, kappa=3.0)
    assert isinstance(model, ValidSigns)
    assert isinstance(model, PairSigns)
    orders = np.array(naive.orders_by_signs(labels))
    weights = np.array([naive.pair_exponent(scores, label, o, 0.7) for o in orders.tolist()])
    if tilt:
        weights += 3.0 * (1.0 - parse(tilt)(orders, label))
    total = np.logaddexp.reduce(weights)
    chances = np.exp(weights - total)
    signs = model.signs_of(orders)
    assert model.log_partition() == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(model.log_prob(signs), weights - total, atol=1e-10)
    assert model.entropy() == pytest.approx(-chances @ (weights - total), rel=1e-9)
    for name in ("ap", "ndcg", "auc"):
        exact = float(chances @ parse(name)(orders, label))
        assert model.expect(name) == pytest.approx(exact, rel=1e-10)
    above = np.tensordot(chances, signs > 0, axes=1)
    mine = model.pair_probabilities()
    np.testing.assert_allclose(mine[model._counted], above[model._counted], atol=1e-12)

    def at(values):
        return GoodBad(values, label, space="valid-signs", scale=0.7, tilt=tilt, kappa=3.0)

    slope = naive.gradient(lambda s: at(s).log_partition(), scores)
    np.testing.assert_allclose(model.log_partition_gradient(), slope, atol=1e-6)
    slope = naive.gradient(lambda s: at(s).expect("ap"), scores)
    np.testing.assert_allclose(model.expect_gradient("ap"), slope, atol=1e-6)
    drawn = model.sample(20_000, rng=0)
    found = {key.tobytes(): 0 for key in signs}
    for one in drawn:
        found[one.tobytes()] += 1
    seen = np.array([found[key.tobytes()] for key in signs]) / 20_000
    assert np.abs(seen - chances).max() < 5 * np.sqrt(0.25 / 20_000)
    assert model.sample((2, 3), rng=0).shape == (2, 3, *signs.shape[1:])


def test_sign_vectors_of_no_order_have_probability_zero():
    model = ValidSigns([0.3, 0.1, 0.0, -0.2], [1, 1, 0, 0])
    assert model.log_prob([[1, -1], [-1, 1]]) == -np.inf
    assert np.isfinite(model.log_prob([[1, -1], [1, 1]]))


def test_valid_signs_refuse_what_they_cannot_do():
    with pytest.raises(NotExactError, match="valid sign vectors: exact up to 18 items, got 19"):
        ValidSigns(np.zeros(19), [1] + [0] * 18)
    with pytest.raises(TypeError, match="only the model's own"):
        ValidSigns([0.0, 1.0, 2.0], [1, 0, 0]).expect("ap", [0, 0, 1])


def test_far_scores_keep_their_digits():
    model = ValidSigns([1e6, 0.0, -1e6, 1e-3], [0, 1, 0, 1])
    assert model.entropy() >= 0.0
    near = ValidSigns([1e3, 0.0, -1e3, 1e-3], [0, 1, 0, 1])
    assert model.expect("ap") == pytest.approx(near.expect("ap"), rel=1e-9)
