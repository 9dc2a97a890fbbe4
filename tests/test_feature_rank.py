"""Feature rankings: weak rankers, rank addition and DiffRank against pair-by-pair versions."""

import naive
import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning

from permdist import data
from permdist.measures import KendallTau
from permdist.models import BLFeatureRank, DiffRank, FeatureRank, feature_rank
from permdist.models.feature_ranks import Intervals, quasi_knn


@pytest.fixture(scope="module")
def strict():
    return data.make_letor(12, n_documents=(5, 15), n_features=6, strict=True, rng=1)


def test_the_worked_example():
    """The center of the third interval is below the second's: 0.4 is ranked above 0.5."""
    centers = np.array([[0.9, 0.6, 0.3, 0.2, 0.15, 0.1, 0.05, 0.0]])
    ranks = Intervals(centers).ranks(np.array([[0.4], [0.5]]), np.array([0, 2]))
    assert Intervals(centers).ranks(np.array([[0.35], [0.4]]), np.array([0, 2]))[0, 0] == 2.0
    assert ranks[0].tolist() == [2.0, 1.0]


def test_weak_rankers_pair_by_pair():
    rng = np.random.default_rng(0)
    for k in (1, 2, 5, 8):
        values, centers = rng.random(9), rng.random(k)
        ranks = Intervals(centers[None]).ranks(values[:, None], np.array([0, 9]))[0]
        if k == 1:
            assert ranks.tolist() == (1.0 + np.argsort(np.argsort(values))).tolist()
        else:
            assert ranks.tolist() == [1.0 + w for w in naive.quasi_knn_order(values, centers)]


def test_interval_centers(strict):
    found = quasi_knn(strict.X, strict.y, strict.ptr, 3).centers
    gathered = [[], [], []]
    for query in strict:
        order = np.argsort(query.y, kind="stable")
        for t, i in enumerate(order):
            gathered[t * 3 // len(order)].append(query.X[i])
    for k in range(3):
        np.testing.assert_allclose(found[:, k], np.mean(gathered[k], axis=0))
    many = quasi_knn(strict.X, strict.y, strict.ptr, 40).centers
    assert np.isfinite(many).all()


def test_feature_rank_step_by_step(strict):
    learner = FeatureRank(intervals=4).fit(strict)
    h = Intervals(learner.centers_).ranks(strict.X, strict.ptr)
    tau, H = KendallTau(ties="average"), np.zeros(len(strict.y))
    spans = list(zip(strict.ptr[:-1], strict.ptr[1:], strict=True))

    def quality(ranks):
        return np.array([float(tau.from_scores(ranks[a:b], strict.y[a:b])) for a, b in spans])

    w = np.ones(len(spans))
    for k, weight in enumerate(learner.weights_):
        E = quality(h[k])
        assert weight == pytest.approx(0.5 * np.log((w @ (1 + E)) / (w @ (1 - E))), rel=1e-9)
        total = H + weight * h[k]
        for a, b in spans:
            H[a:b] = rankdata(total[a:b])
        w = np.exp(-quality(H))
    np.testing.assert_array_equal(learner.predict(strict), H)
    assert learner.history_["train"][-1] == pytest.approx(quality(H).mean())


def test_balance_control_never_adds_a_worse_ranking(strict, monkeypatch):
    """What is added is at least as good, query by query, as the combined ranking so far."""
    seen, balance = [], feature_rank._balance

    def watched(h, combined, quality, taus, batch):
        chosen = balance(h, combined, quality, taus, batch)
        seen.append((taus(chosen) - np.maximum(quality, taus(h))).min())
        return chosen

    monkeypatch.setattr(feature_rank, "_balance", watched)
    BLFeatureRank(cycles=2).fit(strict)
    assert min(seen) >= -1e-12
    steady = BLFeatureRank(cycles=3).fit(strict).history_["train"]
    free = FeatureRank(cycles=3).fit(strict).history_["train"]
    assert np.minimum(np.diff(steady), 0).sum() >= np.minimum(np.diff(free), 0).sum()


@pytest.mark.parametrize("prec", [None, 3])
def test_diff_rank_pair_by_pair(strict, prec):
    learner = DiffRank(prec=prec).fit(strict)
    h = Intervals(learner.centers_).ranks(strict.X, strict.ptr)
    sizes = np.repeat(strict.sizes, strict.sizes)
    rows = naive.diff_rank(h, strict.y, strict.qid, sizes, prec or 10**9, len(h))
    np.testing.assert_allclose(learner.weights_, [row[0] for row in rows], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(learner.history_["z"], [row[1] for row in rows], rtol=1e-9)
    np.testing.assert_allclose(learner.history_["error"], [row[2] for row in rows], atol=1e-12)


def test_lemma_three_round_by_round(strict):
    for prec in (None, 4):
        history = DiffRank(prec=prec, cycles=2).fit(strict).history_
        products = np.cumprod(history["z"])
        np.testing.assert_allclose(history["objective"], products, rtol=1e-9)
        assert (np.array(history["error"]) <= products + 1e-12).all()
        assert (np.array(history["z"]) <= 1.0 + 1e-12).all()


def test_ties_one_document_and_refusals(strict):
    graded = data.make_letor(10, n_features=4, rng=0)
    for learner in (FeatureRank(), BLFeatureRank(), DiffRank(), DiffRank(prec=1)):
        learner.fit(graded)
        assert np.isfinite(learner.predict(graded)).all()
        assert learner.predict(graded.X[:1], [7]).shape == (1,)
        with pytest.raises(TypeError, match="needs the query of each document"):
            learner.predict(graded.X)
    for call, message in (
        (lambda: FeatureRank(intervals=0).fit(strict), "intervals: expected at least 1"),
        (lambda: FeatureRank(cycles=0).fit(strict), "cycles: expected at least 1"),
        (lambda: DiffRank(prec=0).fit(strict), "prec: expected at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_early_stopping_cuts_the_additions(strict):
    learner = DiffRank(cycles=3, early_stopping=4).fit(strict, eval_set=strict)
    assert len(learner.weights_) < 18
    assert learner.score(strict) == pytest.approx(max(learner.history_["measure"]))


def test_rows_tell_nothing():
    """With documents sorted by label, a constant feature must not learn from where they stand."""
    rng = np.random.default_rng(3)
    y, qid = rng.integers(0, 2, 200), np.repeat(np.arange(20), 10)
    X = np.column_stack([rng.normal(size=200) + y, np.zeros(200)])
    order = np.lexsort((-y, qid))
    for learner in (FeatureRank(), BLFeatureRank(), DiffRank()):
        learner.fit(X[order], y[order], qid)
        if not isinstance(learner, BLFeatureRank):  # which may add the ranking so far instead
            assert learner.weights_[1] == 0.0
        with pytest.warns(ConvergenceWarning, match="nothing was learned"):
            learner.fit(0.0 * X[order], y[order], qid)


def test_perfect_features_do_not_underflow():
    X = np.array([[1.0], [0.0], [1.0], [0.0]])
    learner = DiffRank(cycles=80).fit(X, [1, 0, 1, 0], [0, 0, 1, 1])
    assert np.isfinite(learner.predict(X, [0, 0, 1, 1])).all()


def test_intervals_that_no_query_fills_are_left_out():
    learner = FeatureRank().fit(np.arange(4.0)[:, None], [0, 1, 2, 0], [0] * 4)
    assert learner.centers_.shape == (1, 4)
    assert learner.predict(np.arange(4.0)[:, None], [0] * 4).tolist() == [1.0, 3.0, 4.0, 2.0]
