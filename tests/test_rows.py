"""Sums over rows: sign vectors for every measure of positions."""

from __future__ import annotations

import naive_rows as naive
import numpy as np
import pytest
from naive import gradient as gradient_of

from permdist import data
from permdist.measures import AP, ERR, NDCG, KendallTau, parse
from permdist.models import L3, ConvexLoss, ExpectedGain
from permdist.models.spaces import Batch, Pairs, Rows, parse_space
from permdist.sums.rows import BatchRows

BINARY = ["ap", "ap@3", "ndcg", "ndcg@2", "p@2", "rr", "err", "rbp", "recall@2", "success@2"]
GRADED = ["ndcg", "ndcg@2", "ndcg[gain=linear]", "p@2"]


def ready(labels, measure, *, scale=0.7, pilot=None, n_jobs=1):
    """The sums of one query, its goods sorted by a pilot."""
    labels = np.array(labels)
    batch = Batch(labels, np.array([0, len(labels)]), np.array([scale]))
    sums = Rows().sums(batch, parse(measure), n_jobs=n_jobs)
    if pilot is not None:
        sums.resort(pilot)
    return sums


@pytest.mark.parametrize("labels", [[1, 0, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]])
@pytest.mark.parametrize("measure", BINARY)
def test_equal_to_all_sign_vectors(labels, measure):
    rng = np.random.default_rng(len(labels))
    scores, pilot = 1.5 * rng.normal(size=len(labels)), rng.normal(size=len(labels))
    sums = ready(labels, measure, pilot=pilot)
    signs = naive.sign_vectors(len(naive.pairs_of(labels)))
    logs = naive.log_weights(scores, labels, 0.7, signs)
    values = naive.binary_values(parse(measure), pilot, labels, signs)
    gains, by_gains = sums.mean_gains(scores)
    assert gains[0] == pytest.approx(naive.mean(logs, values), abs=1e-13)
    np.testing.assert_allclose(
        by_gains, gradient_of(lambda s: sums.mean_gains(s)[0][0], scores), atol=1e-8
    )
    for kappa in (0.0, 1.0, 30.0, 290.0, 2000.0):
        found, gradient = sums.log_sums(scores, kappa)
        expected = naive.convex_loss(logs, values, kappa)
        assert found[0] == pytest.approx(expected, rel=1e-13)
        slope = gradient_of(lambda s, kappa=kappa: sums.log_sums(s, kappa)[0][0], scores)
        np.testing.assert_allclose(gradient, slope, atol=1e-8 * max(1.0, expected))


@pytest.mark.parametrize("labels", [[2, 0, 1, 0, 1], [3, 1, 2, 1], [2, 2, 1, 0, 0]])
@pytest.mark.parametrize("measure", GRADED)
def test_graded_labels_are_split_by_thresholds(labels, measure):
    rng = np.random.default_rng(3)
    scores, pilot = 1.5 * rng.normal(size=len(labels)), rng.normal(size=len(labels))
    sums, chosen = ready(labels, measure, pilot=pilot), parse(measure)
    signs = naive.sign_vectors(len(naive.pairs_of(labels)))
    logs = naive.log_weights(scores, labels, 0.7, signs)
    values = naive.graded_values(chosen, pilot, labels, signs)
    assert sums.mean_gains(scores)[0][0] == pytest.approx(naive.mean(logs, values), abs=1e-13)
    for kappa in (0.0, 1.0, 10.0):
        found, gradient = sums.log_sums(scores, kappa)
        own = naive.averaged_convex_loss(chosen, pilot, labels, signs, logs, kappa)
        assert found[0] == pytest.approx(own, rel=1e-13)
        assert own >= naive.convex_loss(logs, values, kappa) - 1e-12  # Hoelder
        slope = gradient_of(lambda s, kappa=kappa: sums.log_sums(s, kappa)[0][0], scores)
        np.testing.assert_allclose(gradient, slope, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-3, 0.3, 3.0, 30.0])
@pytest.mark.parametrize(("measure", "goods"), [("ap", 4), ("ap", 20), ("ndcg@10", 4), ("err", 9)])
def test_windows_and_groups_lose_nothing_in_long_queries(measure, goods, scale):
    rng = np.random.default_rng(7)
    labels = rng.permutation(np.r_[np.ones(goods, int), np.zeros(74 - goods, int)])
    scores, pilot = rng.normal(size=(2, 74))
    rows = BatchRows(labels, np.array([0, 74]), np.array([scale]), parse(measure))
    rows.sort(pilot)

    def alone(work, _cost):
        work(0, 1)

    expected = naive.long_query(parse(measure), pilot, scores, labels, scale, 50.0)
    found = *rows.means(scores, alone), *rows.log_means(scores, 50.0, alone)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.squeeze(one), other, rtol=1e-12, atol=1e-13)
    pairs = Pairs().sums(Batch(labels, np.array([0, 74]), np.array([scale])), AP(), n_jobs=1)
    both = zip(rows.log_means(scores, 50.0, alone), pairs.log_sums(scores, 0.0), strict=True)
    for one, (tilt, likelihood) in zip(rows.log_sums(scores, 50.0, alone), both, strict=True):
        np.testing.assert_allclose(one, tilt + likelihood, rtol=1e-12, atol=1e-11)


def test_small_means_keep_their_digits():
    """E[P@1] of one good among 60 bads that are all likely above it: a product of chances."""
    labels = np.r_[1, np.zeros(60, int)]
    sums = ready(labels, "p@1", scale=0.5)
    value, gradient = sums.mean_gains(np.r_[0.0, np.full(60, 2.0)])
    below = 1.0 / (1.0 + np.exp(2.0))
    assert value[0] == pytest.approx(below**60, rel=1e-12)
    assert gradient[0] == pytest.approx(60 * (1.0 - below) * below**60, rel=1e-12)


@pytest.mark.parametrize("measure", ["ap", "ndcg@3", "rr"])
def test_no_weight_of_the_loss_is_the_likelihood_over_pairs(measure):
    queries = data.make_letor(20, rng=1)
    batch = Batch.of(queries.y, queries.ptr)
    scores = np.random.default_rng(0).normal(size=len(queries.y))
    rows, pairs = (space.sums(batch, parse(measure)) for space in (Rows(), Pairs()))
    for one, other in zip(rows.log_sums(scores, 0.0), pairs.log_sums(scores, 0.0), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("measure", ["ap", "ndcg@5", "p@5"])
def test_bounds_and_convexity(measure, graded):
    queries = data.make_letor(30, rng=2)
    labels = queries.y if graded else (queries.y > 0).astype(int)
    bounds = zip(queries.ptr, queries.ptr[1:], strict=False)
    keep = np.array([labels[a:b].min() < labels[a:b].max() for a, b in bounds])
    rows = np.repeat(keep, np.diff(queries.ptr))
    ptr = np.concatenate([[0], np.cumsum(np.diff(queries.ptr)[keep])])
    sums = Rows().sums(Batch.of(labels[rows], ptr), parse(measure))
    rng = np.random.default_rng(5)
    one, other = 0.3 * rng.normal(size=(2, rows.sum()))
    sums.resort(rng.normal(size=rows.sum()))
    for kappa in (1.0, 40.0):
        ends = sums.log_sums(one, kappa)[0] + sums.log_sums(other, kappa)[0]
        assert np.all(sums.log_sums(0.5 * (one + other), kappa)[0] <= 0.5 * ends + 1e-9)
        jensen = sums.log_sums(one, 0.0)[0] + kappa * (1.0 - sums.mean_gains(one)[0])
        assert np.all(jensen <= sums.log_sums(one, kappa)[0] + 1e-9)


@pytest.mark.parametrize("measure", ["ap", "ndcg", "ndcg@2", "rr"])
def test_perfect_separation_loses_nothing(measure):
    labels = np.array([2, 1, 0, 0, 1, 0])
    for seen in (labels, (labels > 0).astype(int)):
        sums = ready(seen, measure, pilot=np.arange(6.0))
        assert sums.mean_gains(1000.0 * seen)[0][0] == pytest.approx(1.0, abs=1e-15)
        assert sums.log_sums(1000.0 * seen, 5.0)[0][0] == pytest.approx(0.0, abs=1e-10)


def test_tied_goods_share_their_places():
    labels, scores = np.array([1, 1, 0, 0, 0]), np.array([0.3, -0.2, 0.1, 0.5, -0.9])
    tied = ready(labels, "ap", pilot=np.zeros(5))
    means = [
        ready(labels, "ap", pilot=pilot).mean_gains(scores)
        for pilot in (-labels.cumsum(), labels.cumsum())
    ]
    assert tied.mean_gains(scores)[0][0] == pytest.approx(np.mean([value for value, _ in means]))
    np.testing.assert_allclose(
        tied.mean_gains(scores)[1], np.mean([slope for _, slope in means], axis=0)
    )
    nearly = ready(labels, "ap", pilot=np.array([1.0, 1.0 + 1e-14, 0, 0, 0]))
    np.testing.assert_array_equal(nearly.mean_gains(scores)[1], tied.mean_gains(scores)[1])


def test_threads_give_the_same_bits():
    rng = np.random.default_rng(0)
    labels = (rng.random(40 * 120) < 0.3).astype(int)
    batch, scores = Batch.of(labels, np.arange(41) * 120), rng.normal(size=40 * 120)
    one, four = (Rows().sums(batch, AP(), n_jobs=jobs) for jobs in (1, 4))
    pairs = [(one.log_sums(scores, k), four.log_sums(scores, k)) for k in (1.0, 1000.0)]
    for left, right in [*pairs, (one.mean_gains(scores), four.mean_gains(scores))]:
        np.testing.assert_array_equal(left[0], right[0])
        np.testing.assert_array_equal(left[1], right[1])


def test_measures_that_are_no_sums_over_rows_are_refused():
    assert Rows.supports(NDCG(10), graded=True)
    assert Rows.supports(ERR())
    assert not Rows.supports(ERR(), graded=True)
    assert not Rows.supports(KendallTau())
    with pytest.raises(ValueError, match=r"'tau' .* no sum over rows; use space='interleavings'"):
        ready([1, 0, 0], "tau")


def test_text_form():
    assert parse_space("rows[rounds=2]") == Rows(rounds=2)
    with pytest.raises(ValueError, match="rounds: expected"):
        Rows(rounds=0)


@pytest.mark.parametrize("make", [ConvexLoss, L3, ExpectedGain])
@pytest.mark.parametrize("measure", ["ap", "ndcg@5"])
def test_learners_do_not_depend_on_seeds(make, measure):
    queries = data.make_letor(40, rng=0)
    found = [make(measure, space="rows", random_state=seed).fit(queries) for seed in (0, 1)]
    np.testing.assert_array_equal(found[0].coef_, found[1].coef_)
    assert found[0].converged_
    rounds = found[0].history_["round"]
    assert rounds[0] == 1.0
    assert np.all(np.diff(rounds) >= 0.0)
    assert len(rounds) == found[0].n_iter_


@pytest.mark.parametrize("make", [ConvexLoss, L3, ExpectedGain])
def test_learners_do_not_depend_on_the_order_of_documents(make):
    queries = data.make_letor(40, rng=0)
    order = np.lexsort((np.random.default_rng(1).random(queries.n_documents), queries.qid))
    one = make("ap", space="rows").fit(queries)
    other = make("ap", space="rows").fit(queries.X[order], queries.y[order], queries.qid[order])
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-5, atol=1e-8)


def test_a_round_goes_on_where_the_last_one_ended():
    queries = data.make_letor(60, rng=3)
    learner = ConvexLoss("ap", kappa=100.0, scale=False, C=0.1, space="rows").fit(queries)
    rounds, values = learner.history_["round"], learner.history_["objective"]
    assert max(rounds) > 1.0
    first = rounds.index(2.0)
    assert abs(values[first] - values[first - 1]) < 0.01 * values[0]
    alone = ConvexLoss("ap", kappa=100.0, scale=False, C=0.1, space="rows[rounds=1]").fit(queries)
    assert max(alone.history_["round"]) == 1.0


def test_separable_queries_are_ranked_perfectly():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y, qid = (X[:, 0] > 1.0).astype(int), np.zeros(200)
    for seed in (0, 1):
        learner = ConvexLoss("ap", C=1e6, scale=False, random_state=seed).fit(X, y, qid)
        assert learner.score(X, y, qid) == 1.0
