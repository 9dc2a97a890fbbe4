"""Feature rankings: weak rankers, rank addition and DiffRank against literal versions."""

import naive_feature_rank as literal
import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning

from permdist import data
from permdist.measures import KendallTau, evaluate
from permdist.models import BLFeatureRank, DiffRank, FeatureRank, load
from permdist.models.feature_ranks import KINDS, Intervals, Scale, quasi_knn

PAPER = {"cut": "documents", "scores": "ranks", "order": "columns", "keep": "last"}
LEARNERS = (
    FeatureRank(),
    FeatureRank(cycles=1, **PAPER),
    BLFeatureRank(),
    BLFeatureRank(balance="queries", cut="documents"),
    DiffRank(),
    DiffRank(prec=2, **PAPER),
)


@pytest.fixture(scope="module")
def strict():
    return data.make_letor(12, n_documents=(5, 15), n_features=6, strict=True, rng=1)


def small(seed, graded=True, n_queries=3, n_features=3):
    """Make a few short queries with many ties in labels and in values, as Queries and lists."""
    rng = np.random.default_rng(seed)
    rows, labels, qid = [], [], []
    for q in range(n_queries):
        n = int(rng.integers(4, 7))
        y = rng.integers(0, 3 if graded else 2, n)
        y[0], y[1] = 0, 1
        X = rng.integers(0, 6, (n, n_features)) + 0.6 * y[:, None] * np.array([1, -1, 0])
        rows, labels, qid = [*rows, X], [*labels, y], [*qid, *[q] * n]
    queries = data.Queries(np.concatenate(rows), np.concatenate(labels), qid)
    return queries, [(X.tolist(), y.tolist()) for X, y in zip(rows, labels, strict=True)]


def collection(n_queries, n, seed, *, n_good=(1, 9), skew=4.0, n_features=12):
    """Make long queries with few relevant documents and skewed features of any units."""
    rng = np.random.default_rng(seed)
    direction = np.random.default_rng(7).normal(size=n_features)
    X = rng.random((n_queries * n, n_features)) ** skew
    quality = X @ direction
    quality += 0.3 * quality.std() * rng.normal(size=len(X))
    y = np.zeros(len(X), dtype=int)
    for a in range(0, len(X), n):
        y[a + np.argsort(-quality[a : a + n])[: rng.integers(*n_good)]] = 1
    units = 10.0 ** np.random.default_rng(8).uniform(-3.0, 7.0, n_features)
    return data.Queries(X * units, y, np.repeat(np.arange(n_queries), n))


# ---- weak rankers -------------------------------------------------------------------------------


def test_the_worked_example():
    """The center of the third interval is below the second's: 0.4 is ranked above 0.5."""
    centers = np.array([[0.9, 0.6, 0.3, 0.2, 0.15, 0.1, 0.05, 0.0]])
    ranks = Intervals(centers).ranks(np.array([[0.4], [0.5]]), np.array([0, 2]))
    assert Intervals(centers).ranks(np.array([[0.35], [0.4]]), np.array([0, 2]))[0, 0] == 2.0
    assert ranks[0].tolist() == [2.0, 1.0]


def test_weak_rankers_pair_by_pair():
    rng = np.random.default_rng(0)
    for k in (1, 2, 3, 5, 8):
        for centers in (rng.random(k), np.sort(rng.random(k)), np.sort(rng.random(k))[::-1]):
            values = rng.random(9)
            values[:3] = values[3]
            ranks = Intervals(centers[None]).ranks(values[:, None], np.array([0, 9]))[0]
            better = literal.beats(values.tolist(), centers.tolist())
            assert ranks.tolist() == literal.ranks_of(9, better)
            if k == 1:
                assert ranks.tolist() == rankdata(values).tolist()


@pytest.mark.parametrize("cut", ["labels", "documents"])
@pytest.mark.parametrize("center", ["normal", "prior", "middle", "posterior"])
def test_centers_are_means_over_all_orders_of_ties(cut, center):
    for seed in range(4):
        queries, lists = small(seed)
        for k in (1, 2, 3, 4):
            found = quasi_knn(queries.X, queries.y, queries.ptr, k, cut=cut, center=center)
            for m in range(3):
                wanted = literal.centers(lists, m, k, cut, center)
                np.testing.assert_allclose(found.centers[m], wanted, atol=1e-9)


def test_thirds_of_strict_lists(strict):
    """The most relevant third of an interval is the last of three that it can be cut into."""
    whole = strict.X, strict.y, strict.ptr
    finer = quasi_knn(*whole, 6).centers
    for third, center in enumerate(("posterior", "middle", "prior")):
        found = quasi_knn(*whole, 2, center=center).centers
        np.testing.assert_allclose(found, finer[:, third::3], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_ranks(kind):
    for seed in range(4):
        queries, lists = small(seed)
        weak = quasi_knn(queries.X, queries.y, queries.ptr, 4, cut="documents")
        found = Scale(kind, queries.ptr).weak(weak, queries.X)
        for m in range(3):
            wanted = [
                literal.weak([row[m] for row in rows], weak.centers[m].tolist(), kind)
                for rows, _ in lists
            ]
            np.testing.assert_allclose(found[m], np.concatenate(wanted), atol=1e-12)


# ---- additions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", ["labels", "documents"])
def test_feature_rank_to_the_letter(kind, cut):
    for seed in range(3):
        queries, lists = small(seed)
        learner = FeatureRank(**{**PAPER, "scores": kind, "cut": cut}, intervals=3, cycles=2)
        learner.fit(queries)
        h = literal.weak_rankings(lists, 3, cut, "normal", kind)
        rows = literal.feature_rank(lists, h, kind, [0, 1, 2] * 2)
        np.testing.assert_allclose(learner.weights_, [row[0] for row in rows], atol=1e-9)
        np.testing.assert_allclose(learner.predict(queries), np.concatenate(rows[-1][1]))
        taus = [literal.tau(H, y) for H, (_, y) in zip(rows[-1][1], lists, strict=True)]
        assert learner.history_["train"][-1] == pytest.approx(np.mean(taus))
        assert learner.features_ == [0, 1, 2] * 2


def test_balance_control_to_the_letter():
    for seed in range(6):
        queries, lists = small(seed)
        visited = [0, 1, 2] * 2
        for kind in ("ranks", "normal"):
            h = literal.weak_rankings(lists, 3, "documents", "normal", kind)
            set_up = {**PAPER, "scores": kind, "intervals": 3, "cycles": 2}
            learner = BLFeatureRank(balance="queries", **set_up).fit(queries)
            rows = np.array(literal.steered(lists, h, kind, visited))
            found = [learner.history_["controlled"], learner.carries_, learner.weights_]
            np.testing.assert_allclose(np.transpose(found), rows, atol=1e-9)
            learner = BLFeatureRank(**set_up).fit(queries)
            rows = np.array(literal.balanced(lists, h, kind, visited))
            found = [learner.carries_, learner.weights_, learner.history_["train"]]
            np.testing.assert_allclose(np.transpose(found), rows, atol=1e-9)


def test_balance_control_is_steady(strict):
    """What labels steer falls less often than without; what is predicted is what was trained."""
    steered = BLFeatureRank(balance="queries", **PAPER, cycles=3).fit(strict).history_
    free = FeatureRank(**PAPER, cycles=3).fit(strict).history_["train"]
    fall = [np.minimum(np.diff(one), 0.0).sum() for one in (steered["controlled"], free)]
    assert fall[0] > fall[1]
    assert steered["controlled"][-1] > steered["train"][-1]
    for learner in (FeatureRank(keep="last"), BLFeatureRank(keep="last")):
        tau = learner.fit(strict).score(strict, measure=KendallTau(ties="average"))
        assert learner.history_["train"][-1] == pytest.approx(tau)


@pytest.mark.parametrize("prec", [None, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_diff_rank_to_the_letter(prec, kind):
    for seed in range(3):
        queries, lists = small(seed)
        learner = DiffRank(prec, **{**PAPER, "scores": kind}, intervals=3, cycles=2).fit(queries)
        h = literal.weak_rankings(lists, 3, "documents", "normal", kind)
        units = [[float(np.ptp(one)) or 1.0 for one in row] for row in h]
        if kind != "values":
            full = [literal.pi(list(range(len(y))), kind) for _, y in lists]
            units = [[float(np.ptp(one)) for one in full]] * 3
        rows = literal.diff_rank(lists, h, units, prec or 99, [0, 1, 2] * 2)
        found = [learner.weights_, learner.history_["z"], learner.history_["error"]]
        np.testing.assert_allclose(np.transpose(found), rows, atol=1e-9)


def test_lemma_three_round_by_round(strict):
    for prec in (None, 4):
        for kind in KINDS:
            history = DiffRank(prec=prec, cycles=2, scores=kind).fit(strict).history_
            products = np.cumprod(history["z"])
            np.testing.assert_allclose(history["objective"], products, rtol=1e-9)
            assert (np.array(history["error"]) <= products + 1e-12).all()
            assert (np.array(history["z"]) <= 1.0 + 1e-12).all()


# ---- what a fit promises ------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_order_and_units_tell_nothing(learner):
    """Shuffled documents and other units give the same model, whatever the ties."""
    rng = np.random.default_rng(5)
    for graded in (False, True):
        queries, _ = small(11, graded, n_queries=20)
        shuffle = np.lexsort((rng.random(len(queries.y)), queries.qid))
        expected = learner.fit(queries).predict(queries)
        history = learner.history_["objective"]
        mixed = data.Queries(queries.X[shuffle], queries.y[shuffle], queries.qid[shuffle])
        np.testing.assert_allclose(learner.fit(mixed).predict(mixed), expected[shuffle], atol=1e-9)
        np.testing.assert_allclose(learner.history_["objective"], history, rtol=1e-9)
        units = np.array([1e-3, 3e7, 7.0])
        other = data.Queries(queries.X * units, queries.y, queries.qid)
        np.testing.assert_allclose(learner.fit(other).predict(other), expected, atol=1e-9)


@pytest.mark.parametrize("kind", [FeatureRank, BLFeatureRank, DiffRank])
def test_long_queries_with_few_relevant_documents(kind):
    """Far above random (0.02), where ranks cut by the file's order gave 0.00 to 0.2."""
    for n, least in ((40, 0.6), (200, 0.3)):
        train, test = collection(15, n, 0), collection(15, n, 1)
        learner = kind().fit(train)
        found = evaluate(learner.predict(test), test.y, test.qid, "ndcg@10").mean("ndcg@10")
        assert found > least


def test_the_best_round_is_kept(strict):
    for kind in (FeatureRank, BLFeatureRank, DiffRank):
        learner = kind(cycles=4, scores="ranks").fit(strict)
        last = kind(cycles=4, scores="ranks", keep="last").fit(strict)
        objective = np.array(learner.history_["objective"])
        assert len(learner.weights_) == objective.argmin() + 1
        assert len(last.weights_) == len(objective) == 24
        if kind is not DiffRank:
            assert learner.score(strict) >= last.score(strict)


def test_scores_are_chosen_by_training(strict):
    values = [FeatureRank(cycles=1, scores=kind).fit(strict) for kind in KINDS]
    taus = [max(one.history_["train"]) for one in values]
    chosen = FeatureRank(cycles=1).fit(strict)
    assert chosen.scored_by_ == KINDS[int(np.argmax(taus))]
    errors = [DiffRank(cycles=1, scores=k).fit(strict).history_["error"][-1] for k in KINDS]
    assert DiffRank().fit(strict).scored_by_ == KINDS[int(np.argmin(errors))]


def test_features_by_quality(strict):
    learner = FeatureRank(cycles=1, keep="last", scores="ranks").fit(strict)
    h = Intervals(learner.centers_).ranks(strict.X, strict.ptr)
    tau = KendallTau(ties="average")
    taus = np.abs([evaluate(one, strict.y, strict.qid, tau).mean(tau) for one in h])
    assert sorted(learner.features_) == list(range(6))
    assert (np.diff(taus[learner.features_]) <= 1e-12).all()
    assert learner.features_ != list(range(6))


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
        (lambda: FeatureRank(cut="rows").fit(strict), "cut: expected one of labels, documents"),
        (lambda: FeatureRank(scores="rank").fit(strict), "scores: expected one of auto, "),
        (lambda: BLFeatureRank(balance="query").fit(strict), "balance: expected one of "),
        (lambda: DiffRank(prec=0).fit(strict), "prec: expected at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_damaged_files(strict, tmp_path):
    path = tmp_path / "learner.json"
    BLFeatureRank().fit(strict).save(path)
    np.testing.assert_array_equal(
        load(path).predict(strict), BLFeatureRank().fit(strict).predict(strict)
    )
    text = path.read_text()
    kind = BLFeatureRank().fit(strict).scored_by_
    path.write_text(text.replace(f'"scored_by_": "{kind}"', '"scored_by_": "x"'))
    with pytest.raises(ValueError, match="scored_by_: expected one of normal, ranks, values"):
        load(path)
    path.write_text(text.replace('"features_": [', '"features_": [0, '))
    with pytest.raises(ValueError, match=r"weights_: expected .* of them, as features_"):
        load(path)


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
        learner.set_params(keep="last").fit(X[order], y[order], qid)
        constant = [w for k, w in zip(learner.features_, learner.weights_, strict=True) if k == 1]
        assert constant == [0.0] * 3
        with pytest.warns(ConvergenceWarning, match="nothing was learned"):
            learner.fit(0.0 * X[order], y[order], qid)


def test_perfect_features_do_not_underflow():
    X = np.array([[1.0], [0.0], [1.0], [0.0]])
    learner = DiffRank(cycles=80).fit(X, [1, 0, 1, 0], [0, 0, 1, 1])
    assert np.isfinite(learner.predict(X, [0, 0, 1, 1])).all()


def test_intervals_that_no_query_fills_are_left_out():
    X, y, qid = np.arange(4.0)[:, None], [0, 1, 2, 3], [0] * 4
    learner = FeatureRank(cut="documents").fit(X, y, qid)
    assert learner.centers_.shape == (1, 4)
    assert FeatureRank().fit(X, [0, 1, 2, 0], qid).centers_.tolist() == [[1.5, 1.0, 2.0]]
