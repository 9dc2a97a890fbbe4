"""The inner steps of bound-based learners against slow, obvious versions of themselves."""

import time
import warnings

import naive
import numpy as np
import pytest
from marks import UNFINISHED_FITS
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from permdist import data
from permdist.measures import parse
from permdist.models import (
    SVMNDCG,
    AdaRank,
    PermuRank,
    RankBoost,
    RankSVM,
    SVMMap,
    load,
    solvers,
)
from permdist.models.batch import Batch
from permdist.models.spaces import StructuredHinge

pytestmark = UNFINISHED_FITS


@pytest.fixture(scope="module")
def queries():
    whole = data.make_letor(14, n_features=5, rng=3)
    return whole.where([len(np.unique(query.y)) > 1 for query in whole])


# ---- RankBoost -----------------------------------------------------------------------------------


@pytest.mark.parametrize("graded", [False, True])
def test_rankboost_pair_by_pair(queries, graded):
    y = queries.y if graded else (queries.y > 0).astype(int)
    learner = RankBoost(max_iter=8, thresholds=None).fit(queries.X, y, queries.qid)
    H, found = naive.rankboost(queries.X, y, queries.qid, 8)
    np.testing.assert_allclose(learner.history_["r"], found, rtol=1e-9)
    np.testing.assert_allclose(learner.predict(queries.X), H, rtol=1e-9, atol=1e-12)
    loss = np.mean([np.exp(H[i] - H[j]) for i, j in naive.pairs_of(y, queries.qid)])
    assert learner.history_["objective"][-1] == pytest.approx(loss, rel=1e-10)


@pytest.mark.parametrize("options", [{}, {"weak": "feature"}, {"thresholds": 4}, {"scale": True}])
def test_rankboosts_loss_stays_below_its_bound(queries, options):
    history = RankBoost(max_iter=40, **options).fit(queries).history_
    assert all(
        loss <= bound * (1 + 1e-12)
        for loss, bound in zip(history["objective"], history["bound"], strict=True)
    )


def test_rankboost_separates_what_can_be_separated():
    X, y = np.arange(6.0)[:, None], np.array([0, 0, 0, 1, 1, 1])
    learner = RankBoost(max_iter=5).fit(X, y)
    assert learner.score(X, y, np.zeros(6)) == 1.0
    assert np.isfinite(learner.predict(X)).all()
    neighbors = np.array([[1.0], [np.nextafter(1.0, 2.0)]])  # no number lies between them
    assert RankBoost(max_iter=1).fit(neighbors, [0, 1]).predict(neighbors)[1] > 0.0


# ---- RankSVM -------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1, 2])
def test_hinges_are_counted_right(queries, power):
    rng = np.random.default_rng(0)
    learner = RankSVM(loss="hinge" if power == 1 else "squared_hinge", weights="pairs")
    features, batch = learner.training_data(queries)
    loss = naive.bound(learner, batch)
    qid = np.repeat(np.arange(len(batch)), np.diff(batch.ptr))
    for scores in (
        rng.normal(size=len(features)),
        np.round(rng.normal(size=len(features))),
        100.0 + 3.0 * rng.normal(size=len(features)),
    ):
        expected = naive.pair_hinges(scores, batch.labels, qid, power)
        assert loss(scores)[0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_ranksvm_is_linear_svc_on_pairs(queries, loss):
    pairs = np.array(naive.pairs_of(queries.y, queries.qid))
    gaps = queries.X[pairs[:, 1]] - queries.X[pairs[:, 0]]
    C = 0.05
    # |w|^2 / 2 + C' sum there is |w|^2 / (2 C') + sum, and every pair is there with both signs.
    peer = LinearSVC(C=C / 4, loss=loss, fit_intercept=False, dual=True, tol=1e-9, max_iter=10**6)
    peer.fit(np.concatenate([gaps, -gaps]), np.repeat([1, 0], len(gaps)))
    learner = RankSVM(
        loss=loss, weights="pairs", C=C, standardize=False, tol=1e-7, max_iter=5000
    ).fit(queries)
    assert learner.converged_
    np.testing.assert_allclose(learner.coef_, peer.coef_[0], rtol=2e-3, atol=1e-3)


# ---- structural SVMs ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ap", "ndcg", "auc", "rr", "precision@2", "ndcg@2"])
def test_loss_augmented_inference_equals_enumeration(name):
    rng, measure = np.random.default_rng(0), parse(name)
    for trial in range(12):
        n = int(rng.integers(2, 7))
        labels = rng.integers(0, 2 + trial % 2, n)
        labels[:2] = 0, 1
        scores = 2.0 * rng.normal(size=n)
        hinge = StructuredHinge(Batch(labels, np.array([0, n]), np.array([0.3])), measure)
        values, gradient = hinge(scores)
        assert values[0] == pytest.approx(naive.structured_hinge(scores, labels, measure, 0.3))
        quotient = naive.gradient(lambda s, h=hinge: h(s)[0][0], scores)
        np.testing.assert_allclose(gradient, quotient, atol=1e-6)


def test_the_quadratic_program_is_solved_to_its_optimum(queries):
    """Against subgradient-free truth: the value of a smooth solver started at the answer."""
    from scipy.optimize import minimize as descend

    learner = SVMMap(C=1.0, standardize=False, tol=1e-6, max_iter=3000).fit(queries)
    features, batch = learner.training_data(queries)
    loss = naive.bound(learner, batch)

    def objective(w):
        return loss(features @ w)[0] + w @ w

    lower, value = learner.history_["lower"][-1], learner.history_["objective"][-1]
    assert value == pytest.approx(objective(learner.coef_), rel=1e-12)
    assert lower <= value <= lower * (1 + 1e-6)
    found = descend(objective, learner.coef_, method="Nelder-Mead", options={"maxiter": 2000})
    assert found.fun >= lower - 1e-9
    assert (np.diff(learner.history_["lower"]) >= 0).all()


def test_gap_and_graded_labels(queries):
    for learner in (SVMMap(C=3.0), SVMMap("auc", C=3.0), SVMNDCG(C=1.0, graded=True)):
        learner.fit(queries)
        assert learner.converged_
        gap = learner.history_["objective"][-1] - learner.history_["lower"][-1]
        assert gap <= 1e-3 * learner.history_["objective"][-1]
    with pytest.raises(ValueError, match="C: expected a finite number"):
        SVMMap(C=np.inf).fit(queries)


def test_a_minimum_at_zero_is_reported(queries):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=queries.X.shape)
    with pytest.warns(ConvergenceWarning, match="nothing was learned"):
        SVMNDCG("ndcg@2", C=1e-6).fit(noise, queries.y, queries.qid)


def test_cutting_planes_find_a_known_minimum():
    def distance(scores):
        return np.abs(scores - 3.0), np.sign(scores - 3.0)

    found = solvers.cutting_planes(distance, np.ones((1, 1)), None, 4.0)
    assert found.w[0] == pytest.approx(2.0, abs=1e-2)  # |w - 3| + w^2 / 4
    assert found.converged
    assert found.lower <= 2.0 + 1e-9 <= found.value + 1e-3


def test_refusals(queries):
    for call, message in (
        (lambda: AdaRank("tau").fit(queries), "expected values from 0 to 1"),
        (lambda: AdaRank(accept="some").fit(queries), "accept: expected one of"),
        (lambda: RankBoost(weak="tree").fit(queries), "weak: expected one of"),
        (lambda: RankBoost(thresholds=0).fit(queries), "thresholds: expected at least 1"),
        (lambda: RankSVM(loss="huber").fit(queries), "loss: expected one of"),
        (lambda: RankSVM(C=-1.0).fit(queries), "C: expected a positive number"),
        (lambda: PermuRank(loss="huber").fit(queries), "loss: expected one of"),
        (lambda: PermuRank(pairs="some").fit(queries), "pairs: expected one of"),
        (
            lambda: RankBoost().fit(queries, warm_start_from=AdaRank().fit(queries)),
            "only weak='feature' makes a linear model",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()


# ---- faults that were found once -----------------------------------------------------------------


def test_separable_data_stay_finite():
    for options in ({"weak": "feature"}, {}):
        learner = RankBoost(max_iter=500, **options).fit([[0.0], [1.0]], [0, 1], [0, 0])
        assert np.isfinite(learner.predict([[0.0], [1.0]])).all()
        assert learner.n_iter_ < 500


def test_large_features_are_no_trouble(queries):
    learner = RankSVM(loss="hinge").fit(queries.X * 1e8, queries.y, queries.qid)
    assert learner.converged_
    assert learner.score(queries.X * 1e8, queries.y, queries.qid) > 0.3
    learner = SVMMap(C=1.0, standardize=False).fit(queries.X * 1e8, queries.y, queries.qid)
    assert learner.converged_
    learner.set_params(max_iter=3)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        learner.fit(queries.X * 1e8, queries.y, queries.qid)
    assert not learner.converged_


def test_a_fit_that_fails_changes_nothing(queries):
    learner = RankBoost(max_iter=5).fit(queries)
    before = learner.predict(queries)
    with pytest.raises(ValueError, match="nothing to learn from"):
        learner.fit(queries.X[:, :2], 0 * queries.y, queries.qid)
    with pytest.raises(ValueError, match="makes a linear model"):
        learner.fit(queries, warm_start_from=RankSVM().fit(queries))
    np.testing.assert_array_equal(learner.predict(queries), before)


def test_normalise_belongs_to_the_fit(queries):
    learner = RankSVM(warm_start=True, normalize="minmax").fit(queries)
    before = learner.predict(queries)
    learner.set_params(normalize=("raw", "rank"))
    np.testing.assert_array_equal(learner.predict(queries), before)
    with pytest.raises(ValueError, match="as before"):
        learner.fit(queries)
    for wrong in (3, {"raw"}):
        with pytest.raises(TypeError, match="normalize: expected"):
            RankSVM(normalize=wrong).fit(queries)
    RankSVM(normalize=None, max_iter=2).fit(queries)


def test_clear_words(queries, tmp_path):
    X, y, qid = queries.X, queries.y, queries.qid
    for call, error, message in (
        (lambda: RankSVM().fit(X, y, qid, eval_set=(X, y)), TypeError, "eval_set: expected"),
        (lambda: RankSVM().fit(X, y, qid, warm_start_from="x"), TypeError, "warm_start_from"),
        (lambda: PermuRank(random_state="x").fit(queries), TypeError, "random_state: expected"),
        (lambda: PermuRank("tau").fit(queries), ValueError, "expected values from 0 to 1"),
        (lambda: SVMMap(tol=True).fit(queries), ValueError, "tol: expected a number"),
        (lambda: queries.normalize(None), TypeError, "method: expected"),
    ):
        with pytest.raises(error, match=message):
            call()
    path = tmp_path / "stumps.json"
    RankBoost(max_iter=3).fit(queries).save(path)
    path.write_text(path.read_text().replace('"feature": [', '"feature": [99, '))
    with pytest.raises(ValueError, match=r"stumps_\['feature'\]: expected column numbers"):
        load(path)


@pytest.mark.parametrize("learner", [PermuRank(max_iter=2), RankBoost(), AdaRank(), RankSVM()])
def test_features_that_say_nothing(learner, queries):
    with pytest.warns(ConvergenceWarning, match="nothing was learned"):
        learner.fit(np.ones_like(queries.X), queries.y, queries.qid)


def test_the_start_counts_as_a_round(queries):
    first = RankSVM(C=100.0).fit(queries)
    held_out = data.make_letor(12, n_features=5, rng=8)
    for learner in (PermuRank(early_stopping=1), SVMMap(early_stopping=1)):
        learner.fit(queries, eval_set=held_out, warm_start_from=first)
        assert learner.score(held_out) >= first.score(held_out) - 1e-12


@pytest.mark.parametrize(("scale", "rounds"), [(1e-9, 8), (1e9, 8), (1e100, 8)])
def test_features_of_any_scale_end(scale, rounds):
    queries = data.make_letor(10, rng=0)
    scaled = data.Queries(queries.X * scale, queries.y, queries.qid)
    begin = time.process_time()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        learner = PermuRank("ap", max_iter=rounds).fit(scaled)
    assert time.process_time() - begin < 20.0
    assert np.isfinite(learner.coef_).all()
    # What was not solved is told, and not called converged.
    failed = any("not solved" in str(entry.message) for entry in told)
    assert not (failed and learner.converged_)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_same_problem_in_other_units_has_the_same_answer(queries, scale):
    scaled = data.Queries(queries.X * scale, queries.y, queries.qid)
    options = {"max_iter": 4, "standardize": False}
    unit = PermuRank("ap", **options).fit(queries)
    same = PermuRank("ap", C=0.01 / scale**2, **options).fit(scaled)
    assert same.predict(scaled) == pytest.approx(unit.predict(queries), rel=1e-5, abs=1e-7)
