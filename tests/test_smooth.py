"""Smooth measures and SoftRank: kernels against literal versions, starts, long queries."""

import warnings

import naive
import naive_smooth
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from permdist import GaussianScores, data, measures, objectives
from permdist.models import Approx, ApproxAP, ApproxNDCG, ListNet, SoftRank
from permdist.sums.gaussian_positions import expected_sums, independent_sums


def sums(kernel, scores, form, noise=1.0):
    counted = int(np.max(np.flatnonzero(form.weights), initial=-1)) + 1
    weights, n = np.ascontiguousarray(form.weights[:counted]), len(scores)
    value, gradient = np.zeros(1), np.zeros(n)
    layout = np.array([0, n]), form.gains, weights, np.array([0, counted])
    kernel(0, 1, np.asarray(scores, dtype=float), *layout, noise, value, gradient)
    return value[0], gradient


def long_queries(n_queries, n_documents, rng, grades=5, n_features=6):
    """Noisy queries, features with raw scales from 1e-3 to 1e7."""
    rng = np.random.default_rng(rng)
    X = rng.normal(size=(n_queries * n_documents, n_features))
    quality = X @ [1.0, -0.7, 0.5, 0.3, 0.0, 0.0] + 0.7 * rng.normal(size=len(X))
    y = np.searchsorted(np.array([1.0, 1.7, 2.4, 3.0])[: grades - 1], quality)
    X *= [1e-3, 1e7, 1.0, 30.0, 1e4, 1e-2]
    return data.Queries(X, y, np.repeat(np.arange(n_queries), n_documents))


# ---- SoftRank's expectations ---------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["ndcg", "ndcg@3", "p@2"])
@pytest.mark.parametrize("spread", [0.0, 0.5, 4.0, 30.0])
def test_expected_sums_equal_a_literal_version(measure, spread):
    rng = np.random.default_rng(0)
    scores, labels = spread * rng.normal(size=6), np.array([0, 2, 0, 1, 1, 0])
    scores[4] = scores[5]  # a tie
    form = measures.parse(measure).positional(labels)
    args = form.gains, form.weights, 0.7
    value, gradient = sums(expected_sums, scores, form, 0.7)
    assert value == pytest.approx(naive_smooth.exact(scores, *args), abs=1e-11)
    exact = GaussianScores(scores, 0.7).expected_sum(form)
    assert gradient == pytest.approx(exact[1], abs=1e-11)
    value, gradient = sums(independent_sums, scores, form, 0.7)
    assert value == pytest.approx(naive_smooth.recursion(scores, *args), abs=1e-13)
    quotient = naive.gradient(lambda s: naive_smooth.recursion(s, *args), scores)
    assert gradient == pytest.approx(quotient, abs=1e-7)


@pytest.mark.parametrize(("n", "k"), [(2, None), (40, 1), (40, 10), (40, None), (150, 10)])
def test_expected_sums_are_exact(n, k):
    rng = np.random.default_rng(n)
    for spread, clustered in ((0.0, False), (0.4, False), (3.0, True), (2.0, False), (25.0, False)):
        scores = spread * (rng.integers(0, 3, n) if clustered else rng.normal(size=n))
        labels = rng.integers(0, 4, n) * (rng.random(n) < 0.4)
        labels[-1] = 1
        form = measures.NDCG(k=k).positional(labels)
        value, gradient = sums(expected_sums, scores, form)
        exact = GaussianScores(scores).expected_sum(form)
        assert value == pytest.approx(exact[0], abs=1e-11)
        assert gradient == pytest.approx(exact[1], abs=1e-11)


def test_expected_sums_of_scores_of_any_size():
    form = measures.NDCG(k=2).positional([0, 1, 0, 1])
    for kernel in (expected_sums, independent_sums):
        value, gradient = sums(kernel, [1e8, 3e7, 3e7 - 1e4, -1e8], form)
        assert value == pytest.approx(form.gains[1] * form.weights[1], abs=1e-13)
        assert gradient == pytest.approx(0.0, abs=1e-13)
        # Only differences of scores count, and their order in the file does not.
        value, gradient = sums(kernel, [0.3, 0.9, 0.1, 0.5], form)
        moved = sums(kernel, np.array([0.3, 0.9, 0.1, 0.5]) + 64.0, form)
        assert moved[0] == pytest.approx(value, abs=1e-13)
        assert gradient.sum() == pytest.approx(0.0, abs=1e-13)
        turned = sums(kernel, [0.5, 0.1, 0.9, 0.3], measures.NDCG(k=2).positional([1, 0, 1, 0]))
        assert turned[1][::-1] == pytest.approx(gradient, abs=1e-14)


def test_positions_beyond_a_block_of_nodes():
    # More documents with a gain than are worked on at once.
    labels = np.ones(70, dtype=int)
    labels[::7] = 0
    scores = np.random.default_rng(0).normal(size=70)
    form = measures.NDCG(k=5).positional(labels)
    value, _ = sums(independent_sums, scores, form)
    assert value == pytest.approx(naive_smooth.recursion(scores, form.gains, form.weights))


# ---- smooth positions ----------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["ndcg", "ndcg@3", "p@3", "ap", "rr"])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (10.0, 10.0), (60.0, 3.0)])
def test_smooth_measures_equal_a_literal_version(measure, alpha, beta):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 12) * (rng.random(12) < 0.6)
    labels[3] = 2
    scores = rng.normal(size=12)
    scores[5] = scores[3]
    value, _ = objectives.SmoothMeasure(measure, alpha, beta)(scores, labels)
    literal = naive_smooth.smooth(scores, labels, measure, alpha, beta)
    assert 1.0 - value == pytest.approx(literal, abs=1e-12)


# ---- where learners start ------------------------------------------------------------------------

TRAINED = [
    Approx("ndcg@10"),
    Approx("p@10"),
    Approx("rr"),
    ApproxAP(),
    ApproxNDCG(),
    SoftRank(),
    SoftRank("p@10", method="softrank"),
    Approx("ndcg@10", start="pairs"),
]


SHORTER = [(learner, 15, 120, 5) for learner in TRAINED]
LONGER = [(learner, 4, 1000, 2) for learner in (ApproxNDCG(), SoftRank())]


@pytest.mark.parametrize(("learner", "n_queries", "n_documents", "grades"), SHORTER + LONGER)
def test_learners_train_on_long_queries(learner, n_queries, n_documents, grades):
    queries = long_queries(n_queries, n_documents, 0, grades)
    learner.fit(queries)
    assert not learner.null_
    direction = queries.X @ (np.array([1.0, -0.7, 0.5, 0.3, 0, 0]) / [1e-3, 1e7, 1, 30, 1e4, 1e-2])
    best = measures.evaluate(direction, queries.y, queries.qid, learner.judge).mean(learner.judge)
    assert learner.score(queries) > 0.9 * best


@pytest.mark.parametrize(
    "learner", [Approx("ndcg@10", start="zeros"), SoftRank(method="softrank", start="zeros")]
)
def test_there_is_no_gradient_at_zero(learner):
    with pytest.warns(ConvergenceWarning):
        learner.fit(long_queries(5, 150, 0))
    assert learner.null_


def test_a_start_of_the_users_own_comes_first():
    queries = long_queries(5, 40, 0)
    learner = ApproxNDCG(max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = learner.fit(queries, warm_start_from=ListNet().fit(queries)).history_["objective"]
        second = ApproxNDCG(max_iter=1).fit(queries).history_["objective"]
    assert first != second


# ---- the choice among the models of all iterations -----------------------------------------------


@pytest.mark.parametrize("optimizer", ["lbfgs", "stochastic"])
def test_the_best_of_all_models_is_kept(optimizer):
    train, held_out = long_queries(8, 30, 0), long_queries(8, 30, 1)
    learner = ApproxAP(optimizer=optimizer, C=1e4, max_iter=25, learning_rate=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner.fit(train, eval_set=held_out)
        assert learner.score(held_out) >= max(learner.history_["measure"]) - 1e-12
        learner.set_params(keep="last").fit(train, eval_set=held_out)
    assert learner.score(held_out) == pytest.approx(learner.history_["measure"][-1])


def test_alpha_and_C_act_together():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=20), rng.integers(0, 3, 20)
    first = objectives.SmoothMeasure("ap", alpha=10.0)(scores, labels)
    second = objectives.SmoothMeasure("ap", alpha=1.0)(10.0 * scores, labels)
    assert second[0] == pytest.approx(first[0], abs=1e-13)
    assert 10.0 * second[1] == pytest.approx(first[1], abs=1e-13)
