"""PermuRank against a literal version of its figure, and what it must not depend on."""

import warnings
from dataclasses import replace

import naive
import naive_permurank
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from permdist.measures import parse
from permdist.models import PermuRank, load
from permdist.models.batch import Batch
from permdist.models.perfect import Permutations
from permdist.models.permurank import LOSSES, _pair_losses

MEASURES = ["ap", "ap@2", "ndcg", "ndcg@2", "ndcg@3[discount=jk]", "auc", "err", "err@2"]
MEASURES += ["rr", "p@2", "p@4", "recall@2", "wta", "rprec", "rbp"]


def collection(rng, n_queries=5, n=5, width=3, grades=3):
    X, y = rng.normal(size=(n_queries * n, width)), rng.integers(0, grades, n_queries * n)
    y[::n], y[1::n] = 0, grades - 1
    return X, y, np.repeat(np.arange(n_queries), n)


def long_queries(n=120, n_queries=12, noise=3.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n, 6))
    y = np.digitize(X @ [2.0, 1, 0, 0, -1, 0] + noise * rng.normal(size=len(X)), [2.0, 4.0])
    return X, y, np.repeat(np.arange(n_queries), n)


def quietly(learner, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return learner.fit(*args, **kwargs)


# ---- permutations --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEASURES)
def test_the_most_violated_permutations_equal_enumeration(name):
    rng, measure = np.random.default_rng(0), parse(name)
    for trial in range(9):
        n = int(rng.integers(3, 6))
        labels = rng.integers(0, 3, n)
        labels[:2] = 0, 2
        rng.shuffle(labels)
        if measure.binary:
            labels = (labels > 0).astype(int)
        # The ranking by score is perfect in two thirds of the trials.
        scores = rng.normal(size=n) + 3.0 * labels * (trial % 3 > 0)
        for pairs in ("good-bad", "all"):
            found = Permutations(Batch.of(labels, np.array([0, n])), measure, pairs)
            perfect, rest = naive.permutations_of(scores, labels, measure, pairs)
            assert found.teaching[0] == bool(rest)
            if not rest:
                continue
            lowest, highest = found.most_violated(scores)
            for order in (lowest, highest):
                F = naive.query_exponent(scores, labels, order, pairs)
                assert found.weights(order) @ scores == pytest.approx(F, abs=1e-12)
            assert found.ideal[0] == pytest.approx(perfect[0][0], abs=1e-12)
            assert found.values(lowest)[0] == pytest.approx(found.ideal[0], abs=1e-12)
            assert found.values(highest)[0] < found.ideal[0] - 1e-12
            low, high = found.weights(lowest) @ scores, found.weights(highest) @ scores
            assert low == pytest.approx(min(row[1] for row in perfect), abs=1e-12)
            assert high == pytest.approx(max(row[1] for row in rest), abs=1e-12)


# ---- Figure 7 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("grades", [2, 3])
@pytest.mark.parametrize(
    ("name", "pairs"),
    [("ap", "good-bad"), ("ap", "all"), ("ndcg", "good-bad"), ("ndcg@2", "all"), ("rr", "all")],
)
def test_figure_seven(name, pairs, grades):
    # With seed 7 two rankings are equally wrong in a round, but for rounding.
    X, y, qid = collection(np.random.default_rng(8), grades=grades)
    rows = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    C, rounds = 2.0, 6
    notes = naive_permurank.permurank(X, y, rows, parse(name), pairs, C, rounds)
    options = {"C": C, "max_iter": rounds, "tol": 1e-11, "keep": "last", "standardize": False}
    learner = quietly(PermuRank(name, pairs=pairs, **options), X, y, qid)
    history = learner.history_
    for t, (_, value, perfect, imperfect, train) in enumerate(notes):
        assert history["objective"][t] == pytest.approx(value, rel=1e-8)
        assert history["perfect"][t] == pytest.approx(perfect)
        assert history["imperfect"][t] == pytest.approx(imperfect)
        assert history["train"][t] == pytest.approx(train)
    if len(notes) == learner.n_iter_:
        np.testing.assert_allclose(learner.coef_, notes[-1][0], atol=1e-4)


@pytest.mark.parametrize("kind", LOSSES)
def test_losses_on_the_working_sets(kind):
    rng = np.random.default_rng(0)
    good, bad, losses = rng.normal(size=5), rng.normal(size=7), rng.random(7)
    ptr, other = np.array([0, 2, 5]), np.array([0, 3, 7])
    layout = losses, ptr, other, LOSSES.index(kind)
    value, by_good, by_bad = _pair_losses(good, bad, *layout)
    expected = 0.0
    for q in range(2):
        for p in range(ptr[q], ptr[q + 1]):
            for y in range(other[q], other[q + 1]):
                term = naive.TERMS[kind](losses[y], good[p] - bad[y])
                expected += term / (ptr[q + 1] - ptr[q])
    assert value == pytest.approx(expected, rel=1e-12)
    quotient = naive.gradient(lambda g: _pair_losses(g, bad, *layout)[0], good)
    np.testing.assert_allclose(by_good, quotient, atol=1e-6)
    quotient = naive.gradient(lambda b: _pair_losses(good, b, *layout)[0], bad)
    np.testing.assert_allclose(by_bad, quotient, atol=1e-6)


# ---- what is kept, what is told ------------------------------------------------------------------


def test_the_best_round_is_kept_and_an_oscillation_is_told():
    X, y, qid = long_queries()
    with pytest.warns(ConvergenceWarning, match=r"turned around.*keep='best'"):
        learner = PermuRank("ap", max_iter=40).fit(X, y, qid)
    history = learner.history_
    assert not learner.converged_
    assert min(history["turn"]) < 0.0  # as the notes have it: linear, and flipping
    assert max(history["active"]) > 0.95
    averaged = replace(parse("ap"), ties="average")
    assert learner.score(X, y, qid, averaged) == pytest.approx(max(history["train"]))
    last = quietly(PermuRank("ap", max_iter=40, keep="last"), X, y, qid)
    assert last.score(X, y, qid, averaged) == pytest.approx(history["train"][-1])
    assert min(history["train"]) < max(history["train"]) - 0.05


def test_convergence_is_certified_and_the_lack_of_it_told(tmp_path):
    X, y, qid = collection(np.random.default_rng(1), n_queries=12)
    learner = PermuRank("ap", C=0.05).fit(X, y, qid)
    assert learner.converged_
    history = learner.history_
    assert history["imperfect"][-1] == history["imperfect"][-2]
    assert learner.n_iter_ > 2
    with pytest.warns(ConvergenceWarning, match=r"at max_iter=1; round 1 is kept.*larger max_iter"):
        assert not PermuRank("ap", C=0.05, max_iter=1).fit(X, y, qid).converged_
    learner.save(tmp_path / "model.json")
    np.testing.assert_array_equal(load(tmp_path / "model.json").coef_, learner.coef_)


# ---- what it must not depend on ------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"pairs": "all"}, {"measure": "ndcg@3"}])
def test_neither_units_nor_the_order_of_documents_matter(options):
    X, y, qid = long_queries(n=25)
    X = np.round(X, 1)  # with ties
    learner = quietly(PermuRank(max_iter=8, **options), X, y, qid)
    units = 10.0 ** np.array([-3, 7, 0, 2, -1, 4])
    scaled = quietly(PermuRank(max_iter=8, **options), X * units, y, qid)
    np.testing.assert_allclose(scaled.predict(X * units), learner.predict(X), rtol=1e-4, atol=1e-6)
    rng = np.random.default_rng(0)
    shuffled = np.concatenate([rng.permutation(np.flatnonzero(qid == q)) for q in range(12)])
    again = quietly(PermuRank(max_iter=8, **options), X[shuffled], y[shuffled], qid)
    np.testing.assert_allclose(again.predict(X), learner.predict(X), rtol=1e-6, atol=1e-8)


def test_a_random_start_is_drawn_by_features():
    X, y, qid = collection(np.random.default_rng(3), n_queries=10)
    first, same, other = (
        quietly(PermuRank(start="random", random_state=seed, max_iter=1, keep="last"), X, y, qid)
        for seed in (0, 0, 5)
    )
    np.testing.assert_array_equal(first.coef_, same.coef_)
    assert np.abs(first.coef_ - other.coef_).max() > 1e-3


def test_a_measure_that_all_rankings_please():
    X, y, qid = collection(np.random.default_rng(0))
    with pytest.warns(ConvergenceWarning, match="nothing was learned"):
        PermuRank("p@10").fit(X, y, qid)
    with pytest.raises(ValueError, match="perfect rankings of 'success@2'"):
        PermuRank("success@2").fit(X, y, qid)
