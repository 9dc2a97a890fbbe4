"""AdaRank against Figure 6 as a loop, its weak rankers, and what it must not depend on."""

import warnings

import naive_permurank
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from permdist import data
from permdist.measures import parse
from permdist.models import AdaRank, RankSVM, batch, blocks, load


@pytest.fixture(scope="module")
def queries():
    whole = data.make_letor(16, n_documents=(5, 20), n_features=6, rng=3)
    return whole.where([len(np.unique(query.y)) > 1 for query in whole])


def fitted(*args, **options):
    """Fit where it is not the point that the fit has not ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return AdaRank(**options).fit(*args)


class Means:
    """A weak ranker of one's own: the difference between good and bad documents, by weight."""

    def __init__(self):
        self.seen = []

    def choose(self, X, y, qid, weights):
        self.seen.append(weights)
        w = weights[qid] * np.where(y > 0, 1.0, -1.0)
        return Direction(w @ (X - X.mean(axis=0)))


class Direction:
    def __init__(self, w):
        self.w = w

    def predict(self, X):
        return X @ self.w


# ---- Figure 6 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ap", "ndcg@5", "rr"])
@pytest.mark.parametrize("rounded", [False, True])
def test_figure_six(name, rounded, queries):
    X = np.round(3.0 * queries.X) if rounded else queries.X  # with ties, or with few
    X = X[:, np.ptp(X, axis=0) > 0]
    measure = parse(f"{name}[ties=average]")
    rows = [np.arange(a, b) for a, b in zip(queries.ptr[:-1], queries.ptr[1:], strict=True)]
    f, notes = naive_permurank.adarank(X, queries.y, rows, measure, 12)
    options = {"weak": "features", "accept": "literal", "max_iter": 12, "standardize": False}
    learner = fitted(X, queries.y, queries.qid, measure=name, **options)
    assert learner.features_ == [k for k, _, _ in notes]
    np.testing.assert_allclose(learner.alphas_, [alpha for _, alpha, _ in notes], rtol=1e-12)
    np.testing.assert_allclose(learner.coef_, f, rtol=1e-12)
    assert learner.n_iter_ == 12


def test_the_letter_can_stay_with_one_feature_and_the_default_does_not():
    rng = np.random.default_rng(0)
    y, qid = np.tile([1, 0, 0, 1, 0], 8), np.arange(40) // 5
    noise = rng.normal(size=(40, 3))
    X = np.column_stack([1.5 * y, 0 * y, 0.5 * y]) + noise
    literal = AdaRank(weak="features", accept="literal", max_iter=9).fit(X, y, qid)
    assert len(set(literal.features_)) == 1
    assert len(literal.features_) == 9
    assert literal.converged_  # nothing changes any more
    better = fitted(X, y, qid)
    assert len(set(better.features_)) > 1
    assert better.history_["train"][-1] > literal.history_["train"][-1]


@pytest.mark.parametrize("weak", ["features", "signed", Means()], ids=["features", "signed", "own"])
@pytest.mark.parametrize("accept", ["better", "all", "literal"])
def test_theorem_four(queries, weak, accept):
    history = fitted(queries, weak=weak, accept=accept, max_iter=25).history_
    rounds = zip(history["train"], history["guarantee"], strict=True)
    assert all(train >= bound - 1e-12 for train, bound in rounds)
    if accept == "better":
        assert (np.diff(history["train"]) > 0.0).all()


# ---- what is kept, what is told ------------------------------------------------------------------


def test_the_best_round_is_kept(queries):
    averaged = parse("ap[ties=average]")
    for accept in ("better", "all"):
        learner = fitted(queries, accept=accept, max_iter=40)
        features, batch = learner.training_data(queries)
        value = batch.measured(averaged, features @ learner.coef_).mean()
        assert value == pytest.approx(max(learner.history_["train"]), abs=1e-4)
    last = fitted(queries, accept="literal", max_iter=40)
    value = batch.measured(averaged, features @ last.coef_).mean()
    assert value == pytest.approx(last.history_["train"][-1])


def test_an_end_after_one_round_is_told():
    X = np.tile(np.column_stack([np.arange(6.0)[::-1], np.arange(6.0)]), (2, 1))
    y, qid = np.tile([0, 1, 0, 0, 0, 0], 2), np.repeat([0, 1], 6)
    with pytest.warns(ConvergenceWarning, match=r"could not improve 'ap'.*try weak="):
        assert len(AdaRank().fit(X, y, qid).alphas_) == 1
    with pytest.warns(ConvergenceWarning, match="max_iter=1; use a larger max_iter"):
        assert not AdaRank(max_iter=1).fit(X, y, qid).converged_
    perfect = AdaRank().fit(X, np.tile([1, 0, 0, 0, 0, 0], 2), qid)  # nothing is left to improve
    assert perfect.converged_


def test_halved_weights_go_on_where_whole_ones_end(queries):
    whole, halved = (fitted(queries, halvings=n) for n in (0, 3))
    assert halved.history_["train"][-1] > whole.history_["train"][-1]
    assert len(halved.alphas_) > len(whole.alphas_)


# ---- weak rankers --------------------------------------------------------------------------------


def test_signed_features_find_what_ranks_small_values_first():
    rng = np.random.default_rng(0)
    y, qid = (rng.random(120) < 0.3).astype(int), np.repeat(np.arange(12), 10)
    X = np.column_stack([-2.0 * y, np.zeros(120)]) + rng.normal(size=(120, 2))
    signed = fitted(X, y, qid, weak="signed")
    assert signed.features_[0] == -1
    assert signed.coef_[0] < 0.0
    assert signed.score(X, y, qid) > fitted(X, y, qid, weak="features").score(X, y, qid) + 0.1


def test_a_weak_ranker_of_ones_own(queries, tmp_path):
    weak = Means()
    learner = AdaRank(weak=weak, accept="literal", max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner.fit(queries, eval_set=queries)
    assert len(weak.seen) == 3
    assert all(one.sum() == pytest.approx(1.0) for one in weak.seen)
    np.testing.assert_allclose(weak.seen[0], 1.0 / len(weak.seen[0]))
    assert learner.history_["measure"][-1] == pytest.approx(learner.score(queries))
    with pytest.raises((TypeError, ValueError), match=r"rankers_|written"):
        learner.save(tmp_path / "own.json")
    total = sum(
        a * h.predict(queries.X) for a, h in zip(learner.alphas_, learner.rankers_, strict=True)
    )
    np.testing.assert_allclose(learner.predict(queries), total)
    with pytest.raises(ValueError, match="warm_start_from: only weak='features'"):
        learner.fit(queries, warm_start_from=RankSVM().fit(queries))


@pytest.mark.parametrize("weak", ["features", "signed"])
def test_files(queries, weak, tmp_path):
    learner = fitted(queries, weak=weak, max_iter=3)
    learner.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(queries), learner.predict(queries))
    assert again.get_params(deep=False).keys() == learner.get_params(deep=False).keys()
    assert clone(again).weak == weak


@pytest.mark.parametrize("weak", ["tree", "stumps", 3, RankSVM()], ids=str)
def test_weak_rankers_that_are_none(queries, weak):
    with pytest.raises(ValueError, match=r"weak: expected one of 'features'.*a method choose"):
        AdaRank(weak=weak).fit(queries)


# ---- what it must not depend on ------------------------------------------------------------------


@pytest.mark.parametrize("weak", ["features", "signed"])
def test_neither_units_nor_the_order_of_documents_matter(queries, weak):
    X, y, qid = np.round(8.0 * queries.X), queries.y, queries.qid  # with many ties
    options = {"weak": weak, "max_iter": 4}
    found = fitted(X, y, qid, **options).predict(X)
    units = 2.0 ** np.array([-10, 23, 0, 7, -3, 13])
    scaled = fitted(X * units, y, qid, **options).predict(X * units)
    np.testing.assert_allclose(scaled, found, rtol=1e-5, atol=1e-8)
    for order in (np.lexsort((-y, qid)), np.lexsort((y, qid))):
        mixed = fitted(X[order], y[order], qid[order], **options).predict(X)
        np.testing.assert_allclose(mixed, found, rtol=1e-5, atol=1e-8)


# ---- blocks --------------------------------------------------------------------------------------


def test_neither_blocks_nor_threads_nor_skipped_queries_matter(queries, monkeypatch):
    learner = fitted(queries, max_iter=10, n_jobs=1)
    dull = data.Queries(queries.X[:9] + 1.0, np.ones(9, dtype=int), np.repeat([900, 901, 902], 3))
    parts = [dull.where([0]), queries.where(np.arange(5)), dull.where([1, 2])]
    more = data.Queries.concatenate([*parts, queries.where(np.arange(5, len(queries)))])
    monkeypatch.setattr(batch, "PART", 40)
    monkeypatch.setattr(blocks, "block_documents", lambda _: 30)
    for jobs in (1, 3):
        found = fitted(more, max_iter=10, n_jobs=jobs)
        assert found.features_ == learner.features_
        np.testing.assert_allclose(found.coef_, learner.coef_, rtol=1e-12)
    small = data.Queries(more.X.astype(np.float32), more.y, more.qid)
    assert fitted(small, max_iter=10).features_ == learner.features_
