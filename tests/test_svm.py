"""Hinges of RankSVM and of structural SVMs, graded or not, against their literal versions."""

import warnings

import naive
import naive_svm
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from permdist import objectives
from permdist.data import Queries
from permdist.measures import parse
from permdist.models import L3, MLE, SVMNDCG, ConvexLoss, ExpectedGain, RankSVM, SVMMap
from permdist.models.batch import Batch
from permdist.models.spaces import Interleavings, StructuredHinge
from permdist.sums.thresholds import threshold_weights

MEASURES = ["ap", "ndcg", "ndcg@2", "ndcg@3[gain=linear,discount=jk]", "precision@2", "rr"]


def graded_query(rng, lowest=0):
    n = int(rng.integers(4, 7))
    labels = rng.integers(0, 4, n)
    labels[:3] = 0, 1, 3
    return lowest + labels, rng.normal(size=n)


def one(labels, factor=0.3):
    return Batch(np.asarray(labels), np.array([0, len(labels)]), np.array([factor]))


def noisy(n_queries, n_documents, rng, grades=5, noise=3.0):
    """Long queries whose first feature matters; NDCG@10 by chance is about .15."""
    X = rng.normal(size=(n_queries * n_documents, 6))
    quality = X[:, 0] + noise * rng.normal(size=len(X))
    cuts = np.quantile(quality, [0.5, 0.75, 0.9, 0.97][: grades - 1])
    return X, np.searchsorted(cuts, quality), np.repeat(np.arange(n_queries), n_documents)


# ---- the loss with a share of pairs -------------------------------------------------------------


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("weight", [0.0, 0.1, 2.0])
def test_the_worst_ranking_is_found(name, weight):
    rng, measure = np.random.default_rng(0), parse(name)
    for trial in range(6):
        labels, scores = graded_query(rng)
        labels = labels if trial % 2 else (labels > 0).astype(int)
        hinge = StructuredHinge(one(labels), measure, auc_weight=weight)
        values, gradient = hinge(scores)
        expected = naive_svm.ranking_hinge(scores, labels, measure, 0.3, weight)
        assert values[0] == pytest.approx(expected, rel=1e-12)
        quotient = naive.gradient(lambda s, h=hinge: h(s)[0][0], scores)
        np.testing.assert_allclose(gradient, quotient, atol=1e-6)


def test_with_a_large_weight_it_is_the_hinge_over_pairs():
    rng = np.random.default_rng(0)
    labels, scores = np.array([1, 0, 0, 1, 0]), rng.normal(size=5)
    value = objectives.RankingHinge("ap", auc_weight=1e6)(1e6 * scores, labels)[0] / 1e6
    pairs = objectives.PairHinge(squared=False)(2.0 * scores, labels)[0]
    assert value == pytest.approx(pairs, rel=1e-5)


@pytest.mark.parametrize("options", [{}, {"graded": True}])
def test_cut_offs_on_long_noisy_queries(options):
    X, y, qid = noisy(60, 120, np.random.default_rng(0))
    learner = SVMNDCG(**options).fit(X, y, qid)
    assert learner.converged_
    assert learner.score(X, y, qid) > 0.25
    assert abs(learner.coef_[0]) > 3.0 * np.abs(learner.coef_[1:]).max()
    for C in (0.01, 1.0, 100.0):
        with pytest.warns(ConvergenceWarning):
            papers = SVMNDCG(auc_weight=0.0, C=C, **options).fit(X, y, qid)
        assert np.abs(papers.coef_).max() < 1e-3


def test_ties_are_not_broken_by_rows():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 40)
    scores = np.round(rng.normal(size=40))  # many of them are equal
    order = rng.permutation(40)
    for grades in ("levels", "thresholds"):
        found = [
            StructuredHinge(one(labels[rows], 1.0), parse("ndcg@5"), grades=grades)(scores[rows])
            for rows in (np.arange(40), order)
        ]
        assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
        np.testing.assert_allclose(found[0][1][order], found[1][1], rtol=1e-12, atol=1e-12)
    values, gradient = StructuredHinge(one(labels), parse("ndcg@5"))(scores)
    for _ in range(50):  # a subgradient, for all that
        other = scores + rng.normal(size=40)
        above = StructuredHinge(one(labels), parse("ndcg@5"))(other)[0]
        assert above[0] >= values[0] + gradient @ (other - scores) - 1e-9


# ---- grades as a sum over thresholds ------------------------------------------------------------


@pytest.mark.parametrize("name", ["ndcg", "ndcg@2", "ndcg@3[gain=linear,discount=jk]"])
@pytest.mark.parametrize("lowest", [0, 2])
def test_ndcg_is_a_sum_over_thresholds(name, lowest):
    rng, measure = np.random.default_rng(0), parse(name)
    for _ in range(30):
        labels, _ = graded_query(rng, lowest)
        values, totals = np.unique(labels, return_counts=True)
        weights = threshold_weights(measure, values, totals)
        np.testing.assert_allclose(weights, naive_svm.threshold_weights(labels, measure))
        order = rng.permutation(len(labels))
        losses = [1.0 - measure(order, (labels >= value).astype(int)) for value in values[1:]]
        assert weights @ losses == pytest.approx(1.0 - measure(order, labels), rel=1e-12)


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("weight", [0.0, 0.1])
def test_hinges_of_thresholds(name, weight):
    rng, measure = np.random.default_rng(0), parse(name)
    for _ in range(5):
        labels, scores = graded_query(rng)
        options = {"auc_weight": weight, "grades": "thresholds"}
        hinge = StructuredHinge(one(labels), measure, **options)
        values, gradient = hinge(scores)
        expected = naive_svm.threshold_hinge(scores, labels, measure, 0.3, weight)
        assert values[0] == pytest.approx(expected, rel=1e-12)
        quotient = naive.gradient(lambda s, h=hinge: h(s)[0][0], scores)
        np.testing.assert_allclose(gradient, quotient, atol=1e-6)
        if name.startswith("ndcg"):  # still a bound of what is to be small
            assert values[0] >= 1.0 - measure.from_scores(scores, labels) - 1e-12


def test_several_queries_at_once():
    rng, measure = np.random.default_rng(0), parse("ndcg@2")
    parts = [graded_query(rng) for _ in range(4)] + [(np.array([0, 1, 0]), rng.normal(size=3))]
    labels = np.concatenate([part[0] for part in parts])
    scores = np.concatenate([part[1] for part in parts])
    qid = np.repeat(np.arange(5), [len(part[0]) for part in parts])
    values, _ = objectives.RankingHinge(measure).values(scores, labels, qid)
    for q, (own, score) in enumerate(parts):
        factor = 1.0 / naive_svm.different_pairs(own)
        expected = naive_svm.threshold_hinge(score, own, measure, factor)
        assert values[q] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["ap", "ndcg@2"])
def test_log_sums_of_thresholds(name):
    rng, measure = np.random.default_rng(0), parse(name)
    for _ in range(5):
        labels, scores = graded_query(rng)
        sums = Interleavings(grades="thresholds").sums(one(labels), measure)
        values, gradient = sums.log_sums(scores, 2.0)
        expected = sum(
            weight * naive_svm.log_sum_of_interleavings(scores, above, measure, factor, 2.0)
            for weight, above, factor in naive_svm.split(labels, measure, 0.3)
        )
        assert values[0] == pytest.approx(expected, rel=1e-12)
        quotient = naive.gradient(lambda s, f=sums: f.log_sums(s, 2.0)[0][0], scores)
        np.testing.assert_allclose(gradient, quotient, atol=1e-6)
        if name == "ndcg@2":
            assert values[0] >= 2.0 * (1.0 - measure.from_scores(scores, labels))
        sums = Interleavings(grades="thresholds").sums(one(labels), measure)
        means, gradient = sums.mean_gains(scores)
        assert 0.0 < means[0] < 1.0
        quotient = naive.gradient(lambda s, f=sums: f.mean_gains(s)[0][0], scores)
        np.testing.assert_allclose(gradient, quotient, atol=1e-6)


def test_mean_gains_of_thresholds_are_one_for_a_perfect_model():
    labels = np.array([3, 2, 1, 0, 0])
    for name in ("ndcg@3", "ap"):
        sums = Interleavings(grades="thresholds").sums(one(labels), parse(name))
        assert sums.mean_gains(100.0 * labels)[0][0] == pytest.approx(1.0, abs=1e-9)


LONG = [
    MLE(graded=True),
    SVMMap(graded=True),
    SVMNDCG(graded=True),
    ExpectedGain("ndcg@10", graded=True, max_iter=3),
    ConvexLoss("ndcg@10", graded=True, max_iter=3),
    L3("ndcg@10", graded=True, max_iter=3),
]


@pytest.mark.parametrize("learner", LONG, ids=lambda learner: type(learner).__name__)
def test_grades_of_long_queries(learner):
    X, y, qid = noisy(20, 120, np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner.fit(X, y, qid)
    assert learner.score(X, y, qid, "ndcg@10") > 0.22


def test_a_lattice_that_is_too_large_is_refused_with_what_helps():
    X, _, qid = noisy(3, 120, np.random.default_rng(0))
    y = np.tile(np.arange(5), 72)
    for learner in (SVMMap(graded=True, grades="levels"), ConvexLoss(graded=True)):
        if isinstance(learner, ConvexLoss):
            learner.set_params(space="interleavings[grades=levels]")
        with pytest.raises(ValueError, match=r"cells at every step.*use grades='thresholds'"):
            learner.fit(X, y, qid)
    for call in (SVMMap(grades="some").fit, SVMMap(auc_weight=-1.0).fit):
        with pytest.raises(ValueError, match=r"(grades|auc_weight): expected"):
            call(X, y, qid)
    with pytest.raises(ValueError, match="grades: expected one of"):
        Interleavings(grades="some")


def test_auto_takes_the_lattice_where_it_is_small():
    rng, measure = np.random.default_rng(0), parse("ndcg@2")
    labels, scores = graded_query(rng)
    found = {
        grades: StructuredHinge(one(labels), measure, grades=grades)(scores)[0][0]
        for grades in ("auto", "levels", "thresholds")
    }
    assert found["auto"] == found["levels"] != found["thresholds"]


# ---- RankSVM ------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e7])
@pytest.mark.parametrize("shift", [0.0, 5e7])
def test_hinges_keep_their_digits(power, size, shift):
    rng = np.random.default_rng(0)
    hinge = objectives.PairHinge(squared=power == 2, scale=False)
    for _ in range(5):
        labels = np.r_[0, 1, rng.integers(0, 4, 20)]
        scores = shift + size * rng.normal(size=22)
        value, gradient = hinge(scores, labels)
        expected, slopes = naive_svm.pair_hinges(scores, labels, power)
        assert value == pytest.approx(expected, rel=1e-13)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-12, atol=1e-12 * np.abs(slopes).max())


def test_hinges_never_go_negative():
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 0], 20)
    for size in (1e-8, 1.0, 1e4, 1e7):
        for _ in range(50):  # separated, but for a last pair that is short of its margin by 1e-8
            scores = np.sort(size * rng.random(40))[::-1].copy()
            scores[:20] += 1.0 + size
            scores[20] = scores[19] - 1.0 + 1e-8
            value, gradient = objectives.PairHinge()(scores, labels)
            expected, slopes = naive_svm.pair_hinges(scores, labels, 2)
            assert value >= 0.0
            # A difference of two scores is rounded, to 1e-16 of the margin at most.
            assert value == pytest.approx(expected / 400.0, rel=1e-6, abs=0.0)
            np.testing.assert_allclose(gradient, slopes / 400.0, rtol=1e-6)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize(
    "learner",
    [RankSVM(loss="hinge"), RankSVM(loss="hinge", weights="pairs", C=1e-3), SVMMap(), SVMNDCG()],
    ids=["queries", "pairs", "SVMMap", "SVMNDCG"],
)
def test_the_gap_is_closed_with_raw_scales(learner, standardize):
    X, y, qid = noisy(30, 40, np.random.default_rng(0))
    units = np.array([1e7, 1e-3, 3e4, 12.0, 1.0, 1e5])
    learner.set_params(standardize=standardize).fit(X * units, y, qid)  # a warning is an error
    assert learner.converged_
    value, lower = learner.history_["objective"][-1], learner.history_["lower"][-1]
    assert lower <= value <= 1.0011 * lower
    features, batch = learner.training_data(Queries(X * units, y, qid))
    roots = np.sqrt(np.mean([features[a:b].var(axis=0) for a, b in batch.bounds], axis=0))
    w = learner.coef_ * (roots if standardize else 1.0)
    own = naive.bound(learner, batch)(features @ learner.coef_)[0] + w @ w / learner.C
    assert own == pytest.approx(value, rel=1e-9)
