"""Learners: scikit-learn's conventions, objectives and gradients, files, and odd collections."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from marks import UNFINISHED_FITS
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.estimator_checks import check_estimator

from permdist import data, models
from permdist.measures import evaluate
from permdist.models import (
    L2,
    L3,
    MLE,
    SVMNDCG,
    AdaRank,
    Approx,
    ApproxAP,
    ApproxNDCG,
    BLFeatureRank,
    BoltzRank,
    ConvexLoss,
    DiffRank,
    ExpectedGain,
    FeatureRank,
    LinearRanker,
    ListMLE,
    ListNet,
    PermuRank,
    RankBoost,
    RankCosine,
    Ranker,
    RankSVM,
    SoftRank,
    SVMMap,
    load,
)

pytestmark = UNFINISHED_FITS

LEARNERS = {
    "MLE": MLE(),
    "MLE interleavings": MLE(space="interleavings"),
    "MLE graded": MLE(graded=True, scale=True),
    "ExpectedGain AUC": ExpectedGain("auc", space="pairs", n_starts=2),
    "ExpectedGain AP": ExpectedGain("ap", n_starts=1, max_iter=15),
    "ExpectedGain graded": ExpectedGain("ndcg@5", graded=True, n_starts=1, max_iter=10),
    "ExpectedGain Plackett-Luce": ExpectedGain(
        "ndcg", distribution="plackett-luce", n_starts=1, max_iter=8
    ),
    "ExpectedGain Gaussian": ExpectedGain(
        "ndcg@5", distribution="gaussian", n_starts=1, max_iter=5
    ),
    "ExpectedGain restart": ExpectedGain(
        "ap", space="restart[sample_size=30]", n_starts=1, max_iter=15
    ),
    "L2": L2("ap", max_iter=20),
    "L3": L3("ndcg@10", max_iter=20),
    "L3, kappa per pair": L3("ap", kappa_units="pairs", max_iter=20),
    "ConvexLoss AUC": ConvexLoss("auc", space="pairs"),
    "ConvexLoss AP": ConvexLoss("ap"),
    "ConvexLoss AP, three views": ConvexLoss("ap", normalize=("raw", "zscore", "rank")),
    "ConvexLoss NDCG, normalized": ConvexLoss("ndcg", normalize=True, scale=True, kappa=5.0),
    "ConvexLoss interleavings": ConvexLoss("rr", space="interleavings"),
    "ConvexLoss reweighted": ConvexLoss("ndcg@5", reweight=2),
    "ConvexLoss restart": ConvexLoss("ap", space="restart[sample_size=30]"),
    "ConvexLoss orders": ConvexLoss("ap", space="orders[exact=4,orders=4]", max_iter=5),
    "L3 valid signs": L3("ap", space="valid-signs[exact=6,orders=2,rounds=1]", max_iter=4),
    "AdaRank": AdaRank("ap"),
    "AdaRank, all accepted": AdaRank("ndcg@5", accept="all", patience=10, weak="signed"),
    "PermuRank": PermuRank("ap", max_iter=5),
    "PermuRank, all pairs": PermuRank("ndcg", loss="logistic", pairs="all", max_iter=3),
    "RankBoost": RankBoost(max_iter=20),
    "RankBoost, raw features": RankBoost(weak="feature", max_iter=20, scale=True),
    "RankSVM": RankSVM(),
    "RankSVM, hinge": RankSVM(loss="hinge", normalize=True),
    "SVMMap": SVMMap(),
    "SVMNDCG": SVMNDCG("ndcg", graded=True, C=30.0),
    "LinearRanker": LinearRanker("smooth[alpha=5]", max_iter=20),
    "LinearRanker, planes": LinearRanker("ranking-hinge", solver="cutting-planes"),
    "ListNet": ListNet(),
    "ListNet, two places": ListNet(2, max_iter=10),
    "ListMLE": ListMLE(),
    "ListMLE, random ties": ListMLE(ties="random"),
    "RankCosine": RankCosine(),
    "BoltzRank": BoltzRank("ndcg@5", max_iter=15, sample_size=30),
    "SoftRank": SoftRank("ndcg@5", max_iter=6),
    "SoftRank, recursion": SoftRank("ndcg@5", method="softrank", noise="learned", max_iter=10),
    "Approx": Approx("rr", sigmoid="erf", annealing=2, max_iter=15),
    "ApproxAP": ApproxAP(max_iter=20),
    "ApproxNDCG": ApproxNDCG(max_iter=20),
    "ApproxNDCG, stochastic": ApproxNDCG(optimizer="stochastic", max_iter=10, learning_rate=0.02),
    "FeatureRank": FeatureRank(),
    "BLFeatureRank": BLFeatureRank(cycles=2),
    "DiffRank": DiffRank(prec=10),
}


@pytest.fixture(scope="module")
def queries():
    return data.make_letor(25, n_features=8, rng=3)


@pytest.fixture(params=LEARNERS)
def learner(request):
    return clone(LEARNERS[request.param])


def test_contract(learner, queries, tmp_path):
    assert learner.fit(queries.X, queries.y, queries.qid) is learner
    stumps = isinstance(learner, RankBoost) and learner.weak == "threshold"
    linear = not stumps and not isinstance(learner, FeatureRank)
    assert hasattr(learner, "coef_") == linear
    if linear:
        assert learner.coef_.shape == (8 * len(learner._views()),)
        assert np.isfinite(learner.coef_).all()
    assert learner.n_features_in_ == 8
    objective = learner.history_["objective"]
    assert learner.n_iter_ == len(objective) == len(learner.history_["seconds"]) > 0
    # PermuRank's objective gets more terms with every round; rank additions have no guarantee.
    if not isinstance(learner, PermuRank | FeatureRank):
        assert objective[-1] <= objective[0] + 1e-9
    scores = learner.predict(queries.X, queries.qid)
    order = learner.rank(queries.X, queries.qid)
    assert sorted(order.tolist()) == list(range(len(scores)))
    for a, b in zip(queries.ptr[:-1], queries.ptr[1:], strict=True):
        assert (np.diff(scores[order[a:b]]) <= 0).all()
        assert order[a:b].min() == a
    value = learner.score(queries.X, queries.y, queries.qid)
    assert value == pytest.approx(learner.score(queries), abs=1e-12)
    nothing = evaluate(np.zeros(len(scores)), queries.y, queries.qid, learner.judge)
    assert nothing.mean(learner.judge) < value <= 1.0
    again = clone(learner).fit(queries)
    np.testing.assert_array_equal(again.predict(queries), scores)
    learner.save(tmp_path / "learner.json")
    loaded = load(tmp_path / "learner.json")
    assert type(loaded) is type(learner)
    np.testing.assert_array_equal(loaded.predict(queries), scores)
    assert loaded.n_iter_ == learner.n_iter_
    assert loaded.history_.keys() == learner.history_.keys()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(learner)).predict(queries), scores)
    watched = clone(learner).fit(queries, eval_set=queries)
    assert len(watched.history_["measure"]) == watched.n_iter_


@pytest.mark.parametrize("name", ["MLE", "ConvexLoss AP", "ConvexLoss NDCG, normalized"])
def test_convex_learners_find_the_minimum_from_anywhere(name, queries):
    learner = clone(LEARNERS[name]).set_params(tol=1e-6, max_iter=2000, C=1.0)
    far = clone(learner).fit(queries)
    far.coef_ = np.random.default_rng(1).normal(size=8)
    ends = [clone(learner).fit(queries, warm_start_from=start) for start in (None, far)]
    cold, warm = (end.history_["objective"][-1] for end in ends)
    assert cold == pytest.approx(warm, rel=2e-3)


def test_same_bits_on_any_number_of_threads(queries):
    for name in ("MLE", "ConvexLoss AP", "ConvexLoss interleavings", "ConvexLoss restart"):
        one, two = (clone(LEARNERS[name]).set_params(n_jobs=n).fit(queries) for n in (1, 3))
        np.testing.assert_array_equal(one.coef_, two.coef_)


def test_a_flat_objective_is_reported(queries):
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="does not change with the scores"):
        found = ExpectedGain("precision@500", n_starts=1).fit(queries)
    assert found.null_


def test_long_queries_of_many_grades_are_learned():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(400, 2)), rng.integers(0, 5, 400), np.arange(400) // 100
    y = np.where(X[:, 0] > 0.5, y, 0)
    for space in (None, "interleavings"):
        found = ConvexLoss(graded=True, space=space).fit(X, y, qid)
        assert found.coef_[0] > abs(found.coef_[1])


def test_kappa_zero_is_maximum_likelihood(queries):
    for space in ("interleavings", "pairs"):
        mle = MLE("auc", space=space).fit(queries)
        convex = ConvexLoss("auc", space=space, kappa=0.0, graded=True).fit(queries)
        np.testing.assert_array_equal(mle.coef_, convex.coef_)


def test_maximum_likelihood_over_pairs_is_logistic_regression(queries):
    from sklearn.linear_model import LogisticRegression

    rows = []
    for query in queries:
        goods, bads = query.X[query.y > 0], query.X[query.y == 0]
        rows.append((goods[:, None] - bads[None, :]).reshape(-1, queries.n_features))
    gaps = 2.0 * np.concatenate(rows)
    # |w|^2 / C here is |w|^2 / 2 there, over a C of half of ours; both signs of each pair.
    peer = LogisticRegression(C=0.25, fit_intercept=False, tol=1e-10, max_iter=5000)
    peer.fit(np.concatenate([gaps, -gaps]), np.repeat([1, 0], len(gaps)))
    ours = MLE(C=1.0, graded=False, standardize=False, tol=1e-9).fit(queries)
    np.testing.assert_allclose(ours.coef_, peer.coef_[0], rtol=1e-3, atol=1e-4)


EXPECTED_FAILURES = {
    "check_fit_score_takes_y": "score needs the query of each document",
    "check_n_features_in_after_fitting": "score needs the query of each document",
    "check_dtype_object": "labels that are no numbers are refused in other words",
    "check_pipeline_consistency": "score needs the query of each document",
    "check_estimators_dtypes": "all its labels are above 0: there is nothing to learn from",
    "check_fit2d_1feature": "all its labels are above 0: there is nothing to learn from",
    "check_fit2d_1sample": "a single document cannot be ranked, which is said in other words",
}


@pytest.mark.parametrize(
    "name",
    ["MLE", "ConvexLoss AP", "AdaRank", "RankBoost", "RankSVM", "SVMMap", "PermuRank", "ListNet"],
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks(name):
    results = check_estimator(
        clone(LEARNERS[name]), on_fail=None, expected_failed_checks=EXPECTED_FAILURES
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 30


def test_early_stopping_keeps_the_best(queries):
    held_out = data.make_letor(20, n_features=8, rng=9)
    learner = MLE(C=100.0, early_stopping=3, max_iter=500, tol=1e-9)
    learner.fit(queries, eval_set=held_out)
    measured = learner.history_["measure"]
    assert learner.score(held_out) == pytest.approx(max(measured))
    assert len(measured) <= max(0, int(np.argmax(measured)) + 1) + 3
    triple = (held_out.X, held_out.y, held_out.qid)
    again = clone(learner).fit(queries.X, queries.y, queries.qid, eval_set=triple)
    np.testing.assert_array_equal(again.coef_, learner.coef_)


@pytest.mark.parametrize(
    "learner",
    [
        MLE(),
        RankSVM(),
        Approx("ndcg@10"),
        PermuRank(max_iter=5),
        RankBoost(weak="feature"),
        AdaRank(),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_a_start_that_is_kept_is_in_the_history(learner, queries, tmp_path):
    held_out = data.make_letor(20, n_features=8, rng=9)
    line = held_out.X @ np.random.default_rng(0).normal(size=8)
    held_out = data.Queries(held_out.X, (line > np.median(line)).astype(int), held_out.qid)
    start = MLE(C=1e4).fit(held_out)  # perfect there, which no fit to other queries is
    learner = clone(learner).set_params(early_stopping=2)
    learner.fit(queries, eval_set=held_out, warm_start_from=start)
    measured = learner.history_["measure"]
    found = evaluate(learner.predict(held_out), held_out.y, held_out.qid, learner.judge)
    assert found.mean(learner.judge) == pytest.approx(measured[0]) == pytest.approx(max(measured))
    assert np.isnan(learner.history_["objective"][0])
    assert {len(entries) for entries in learner.history_.values()} == {learner.n_iter_}
    learner.save(tmp_path / "model")
    assert load(tmp_path / "model").n_iter_ == learner.n_iter_


def test_warm_start(queries):
    cold = MLE(C=5.0, tol=1e-6).fit(queries)
    warm = clone(cold).set_params(warm_start=True).fit(queries)
    warm.fit(queries)
    assert warm.n_iter_ <= 3 < cold.n_iter_
    with pytest.raises(ValueError, match="expected 8 features as before"):
        warm.fit(queries.X[:, :3], queries.y, queries.qid)


def test_restarts_are_reported(queries):
    learner = ExpectedGain("ap", n_starts=3, max_iter=20).fit(queries)
    assert len(learner.restarts_) == 3
    assert min(learner.restarts_) == pytest.approx(learner.history_["objective"][-1], rel=1e-6)


def test_verbose_prints_the_objective(queries, capsys):
    MLE(verbose=True, max_iter=3).fit(queries)
    shown = capsys.readouterr().err
    assert "MLE    1: objective" in shown


def test_grid_search_with_whole_queries(queries):
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        learner = MLE().set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(learner, {"C": [0.01, 1.0]}, cv=GroupKFold(3))
        search.fit(queries.X, queries.y, qid=queries.qid, groups=queries.qid)
    assert search.best_params_["C"] in (0.01, 1.0)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# ---- odd collections and bad input ---------------------------------------------------------------


@pytest.mark.parametrize("name", {type(one): name for name, one in LEARNERS.items()}.values())
def test_queries_without_two_labels_are_left_out(name, queries):
    learner = LEARNERS[name]
    # One document; all good; all bad: none of them says anything.
    extra_X = np.random.default_rng(1).normal(size=(6, 8))
    X = np.concatenate([extra_X[:1], queries.X, extra_X[1:]])
    y = np.concatenate([[1], queries.y, [1, 1], [0, 0, 0]])
    qid = np.concatenate([[-1], queries.qid, [10**6] * 2, [10**7] * 3])
    both = clone(learner).fit(X, y, qid)
    alone = clone(learner).fit(queries)
    np.testing.assert_allclose(both.predict(queries), alone.predict(queries), rtol=1e-6, atol=1e-8)


LINEAR = ["MLE", "ConvexLoss AP", "ExpectedGain AP", "AdaRank", "PermuRank", "RankSVM", "SVMMap"]


@pytest.mark.parametrize("name", [*LINEAR, "RankBoost"])
def test_constant_and_huge_features(name, queries):
    X = np.column_stack([queries.X, np.full(len(queries.y), 3.0), 1e6 * queries.X[:, 0]])
    learner = clone(LEARNERS[name]).fit(X, queries.y, queries.qid)
    assert np.isfinite(learner.predict(X)).all()
    if name in LINEAR:
        assert learner.coef_[-2] == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize(
    "name", ["MLE", "PermuRank", "RankSVM", "SVMMap", "RankBoost, raw features"]
)
def test_start_from_another_learner(name, queries):
    first = AdaRank("ap").fit(queries)
    learner = clone(LEARNERS[name]).fit(queries, warm_start_from=first)
    assert learner.score(queries) > 0.85 * first.score(queries)
    with pytest.raises(ValueError, match="expected a linear learner, got RankBoost"):
        clone(learner).fit(queries, warm_start_from=RankBoost(max_iter=2).fit(queries))
    with pytest.raises(NotFittedError, match="AdaRank: call fit first"):
        clone(learner).fit(queries, warm_start_from=AdaRank())
    other = AdaRank(normalize="rank").fit(queries)
    with pytest.raises(ValueError, match="warm_start_from: expected 8 coefficients"):
        clone(learner).fit(queries, warm_start_from=other)


@pytest.mark.parametrize("name", ["AdaRank, all accepted", "RankBoost", "PermuRank", "SVMMap"])
def test_validation_chooses_the_round(name, queries):
    held_out = data.make_letor(20, n_features=8, rng=9)
    learner = clone(LEARNERS[name]).set_params(early_stopping=3)
    learner.fit(queries, eval_set=held_out)
    assert learner.score(held_out) == pytest.approx(max(learner.history_["measure"]))


def test_refusals(queries):
    X, y, qid = queries.X, queries.y, queries.qid
    for call, error, message in (
        (lambda: MLE().fit(X, y[:-1], qid), ValueError, "y"),
        (lambda: MLE().fit(X), TypeError, "y: expected relevance labels"),
        (lambda: MLE(space="pears").fit(queries), ValueError, "did you mean 'pairs'"),
        (lambda: ConvexLoss("ap", space="pairs").fit(queries), ValueError, "only AUC factorizes"),
        (lambda: ConvexLoss("app").fit(queries), ValueError, "app"),
        (lambda: ExpectedGain(distribution="x").fit(queries), ValueError, "distribution"),
        (lambda: MLE().predict(X), NotFittedError, "MLE: call fit first"),
        (lambda: MLE().fit(queries).predict(X[:, :3]), ValueError, "X has 3 features, but MLE"),
        (lambda: MLE().fit(queries).score(X, y), TypeError, "qid: expected the query"),
        (lambda: MLE(normalize="mean").fit(queries), ValueError, "normalize: expected one of"),
        (lambda: MLE(normalize=()).fit(queries), ValueError, "normalize: expected at least one"),
        (lambda: MLE(normalize=True).fit(queries).predict(X), TypeError, "normalize needs"),
        (lambda: ExpectedGain("tau").fit(queries), ValueError, "'tau' can be negative"),
        (lambda: MLE(early_stopping=2).fit(queries), ValueError, "early_stopping: it needs an eva"),
        (lambda: MLE().fit(queries, y), TypeError, "a collection of queries brings its own"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_faults_that_once_were(queries, tmp_path):
    odd = data.make_letor(15, rng=0)
    stuck = MLE(space="interleavings", C=100.0).fit(odd)
    assert stuck.coef_.any()
    assert stuck.score(odd) > 0.4
    fitted = MLE(max_iter=5).fit(queries)
    before = fitted.coef_.copy()
    with pytest.raises(ValueError, match="eval_set: expected 8 features, got 3"):
        fitted.fit(queries, eval_set=(queries.X[:, :3], queries.y, queries.qid))
    np.testing.assert_array_equal(fitted.coef_, before)
    raw = {"standardize": False}
    small = MLE(C=1e16, **raw).fit(queries.X * 1e-8, queries.y, queries.qid)
    usual = MLE(C=1.0, **raw).fit(queries)
    np.testing.assert_allclose(small.coef_ * 1e-8, usual.coef_, rtol=1e-5)
    for C in (np.inf, np.int64(3), np.float32(2.0)):
        MLE(C=C, max_iter=3).fit(queries).save(tmp_path / "x.json")
        json.loads((tmp_path / "x.json").read_text(), parse_constant=pytest.fail)
        assert load(tmp_path / "x.json").C == C
    MLE(n_jobs=-1, max_iter=2).fit(queries)
    assert L3("ap", space="pairs", kappa=0.0).fit(queries).converged_


def test_every_learner_is_in_the_contract():
    kinds = {
        name
        for name in models.__all__
        if isinstance(getattr(models, name), type) and issubclass(getattr(models, name), Ranker)
    }
    known = {type(learner).__name__ for learner in LEARNERS.values()}
    assert kinds - {"Ranker", "Descent"} == known


def test_the_table_of_learners_is_the_one_in_the_readme():
    table = models.all_learners()
    learners = {type(learner).__name__ for learner in LEARNERS.values()}
    assert set(table.cards) == learners - {"LinearRanker"}
    text = (Path(__file__).resolve().parent.parent / "README.md").read_text()
    assert table.to_markdown() in text
    assert repr(table).splitlines()[0].startswith("learner")
