"""Expected loss alone, exchanges of pairs, and pairs weighed by what they do to the measure."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import naive
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from permdist import data, objectives
from permdist.measures import evaluate, parse
from permdist.models import L2, L3, MLE, ConvexLoss, ExpectedGain, kappa_path, load
from permdist.models.batch import Batch, in_threads
from permdist.models.reweighting import WeightedPairs
from permdist.sums.exchanges import BatchExchanges

SPAM = {
    "n_documents": (300, 300),
    "n_features": 6,
    "features": "plain",
    "relevant": (5, 5),
    "max_grade": 1,
    "empty": 0.0,
    "spam": 0.08,
}


def some_queries(rng, levels):
    """Draw labels and scores, some of them tied, of two short queries."""
    sizes = rng.integers(3, 8, 2)
    labels = np.concatenate([np.append(rng.integers(0, levels, n - 2), [0, 1]) for n in sizes])
    return labels, np.round(rng.normal(size=sizes.sum()), 1), np.cumsum([0, *sizes])


# ---- exchanges ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ap", "ap@3", "ndcg@3", "p@2", "rr", "err", "auc", "rbp", "tau"])
@pytest.mark.parametrize("levels", [2, 3])
def test_changes_are_those_of_exchanged_rankings(name, levels):
    rng, measure = np.random.default_rng(0), parse(name)
    for _ in range(5):
        labels, scores, ptr = some_queries(rng, levels)
        found = BatchExchanges(labels, ptr).changes(measure, scores)
        expected = [naive.exchanges(measure, labels[a:b], scores[a:b]) for a, b in pairwise(ptr)]
        np.testing.assert_allclose(found, np.concatenate(expected), atol=1e-14)


def test_weighted_sums_and_their_gradient():
    rng = np.random.default_rng(1)
    labels, scores, ptr = some_queries(rng, 3)
    pairs, scale = BatchExchanges(labels, ptr), np.array([0.5, 2.0])
    weights = rng.random(pairs.n_pairs.sum())
    sums = partial(pairs.sums, scale=scale, weights=weights, spread=partial(in_threads, n_jobs=1))
    values, gradient = sums(scores)
    expected = np.zeros(2)
    number = 0
    for q in range(2):
        members = ptr[q] + np.argsort(labels[ptr[q] : ptr[q + 1]], kind="stable")
        for i in members:
            for j in (j for j in members if labels[j] < labels[i]):
                x = 2.0 * scale[q] * (scores[i] - scores[j])
                expected[q] += weights[number] * np.log1p(np.exp(-x))
                number += 1
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    slopes = naive.gradient(lambda s: sums(s)[0].sum(), scores)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-6)
    far, flat = sums(1e4 * scores)
    assert np.isfinite(far).all()
    assert np.isfinite(flat).all()


def test_uniform_weights_are_the_likelihood():
    queries = data.make_letor(12, n_features=3, rng=0)
    features, batch = MLE(graded=True).training_data(queries)
    scores = features @ np.array([1.0, -2.0, 0.5])
    likelihood = objectives.Likelihood(scale=False).bind(batch)(scores)
    for one, other in zip(WeightedPairs(batch, parse("ap"))(scores), likelihood, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_weights_are_means_over_rankings():
    labels, ptr = np.array([1, 0, 0, 0]), np.array([0, 4])
    weighted = WeightedPairs(Batch.of(labels, ptr), parse("rr"))
    weighted.weigh(np.array([3.0, 4.0, 2.0, 1.0]))  # from place 2 to 1, 3 and 4
    first = np.array([1 / 2, 1 / 6, 1 / 4])
    expected = (first / first.mean() + 0.1) / 1.1
    np.testing.assert_allclose(weighted.weights, expected)
    assert weighted.weights.mean() == pytest.approx(1.0)
    weighted.weigh(np.array([1.0, 4.0, 3.0, 2.0]))
    second = np.array([3 / 4, 1 / 4, 1 / 12])
    expected = (expected + (second / second.mean() + 0.1) / 1.1) / 2
    np.testing.assert_allclose(weighted.weights, expected)
    same = WeightedPairs(Batch.of(labels, ptr), parse("p@4"))
    same.weigh(np.arange(4.0))  # no exchange changes anything
    np.testing.assert_array_equal(same.weights, np.ones(3))


# ---- rounds -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spam():
    return [data.make_letor(n, **SPAM, rng=seed) for seed, n in enumerate((60, 60, 100))]


def ndcg(learner, queries):
    return learner.score(queries, measure="ndcg@10")


def test_rounds_are_certified_and_the_best_is_kept(spam):
    train, validation, test = spam
    learner = ConvexLoss("ndcg@10", C=0.01, reweight=4).fit(train)
    assert learner.converged_
    history = learner.history_
    rounds, reached = np.array(history["reweighted"]), np.array(history["training"])
    assert len(rounds) == len(reached) == learner.n_iter_
    assert set(rounds) == set(range(5))
    for number in range(5):
        objective = np.array(history["objective"])[rounds == number]
        assert (np.diff(objective) <= 1e-9 * objective[0]).all()
        assert len(set(reached[rounds == number])) == 1
    assert learner.score(train) == pytest.approx(reached.max())
    plain = ConvexLoss("ndcg@10", C=0.01).fit(train)
    assert plain.score(train) == pytest.approx(reached[0])
    assert ndcg(learner, test) > 0.26 > 0.22 > ndcg(plain, test)
    # With validation queries, they decide.
    chosen = ConvexLoss("ndcg@10", C=0.01, reweight=4).fit(train, eval_set=validation)
    ends = [np.flatnonzero(rounds == number)[-1] for number in range(5)]
    assert chosen.score(validation) == pytest.approx(
        max(chosen.history_["measure"][e] for e in ends)
    )


def test_reweighted_learners_are_saved(spam, tmp_path):
    learner = ConvexLoss("ndcg@10", C=0.01, reweight=1).fit(spam[0])
    learner.save(tmp_path / "x.json")
    assert load(tmp_path / "x.json").history_["training"] == learner.history_["training"]


def test_rounds_end_with_the_iterations(spam):
    with pytest.warns(ConvergenceWarning, match="max_iter=12 iterations"):
        learner = ConvexLoss("ndcg@10", C=0.01, reweight=4, max_iter=12).fit(spam[0])
    assert learner.n_iter_ == 12
    assert max(learner.history_["reweighted"]) < 4
    with pytest.warns(ConvergenceWarning, match="ended with an estimated gap"):
        ConvexLoss("ndcg@10", C=0.01, reweight=4, max_iter=11).fit(spam[0])
    with pytest.raises(ValueError, match="reweight: expected at least 0"):
        ConvexLoss(reweight=-1).fit(spam[0])


# ---- expected loss ------------------------------------------------------------------------------


def test_expected_loss_is_one_less_the_expected_gain():
    labels, scores, ptr = some_queries(np.random.default_rng(2), 2)
    qid = np.repeat([0, 1], np.diff(ptr))
    for space in ("interleavings", "rows"):
        loss, by_loss = objectives.ExpectedLoss("ap", space=space).values(scores, labels, qid)
        gain, by_gain = objectives.ExpectedGain("ap", space=space).values(scores, labels, qid)
        np.testing.assert_allclose(loss, 1.0 - np.exp(-gain))
        np.testing.assert_allclose(by_loss, by_gain * np.exp(-gain)[qid])
    assert objectives.parse_objective("expected-loss[measure=rr]").measure == "rr"
    assert objectives.ExpectedLoss("tau")([0.0, 1.0], [1, 0])[0] > 1.0  # no logarithm is needed


def test_l3_is_the_likelihood_and_l2(spam):
    features, batch = L3("ap", space="rows").training_data(spam[0])
    scores = features @ np.arange(6.0)
    parts = [
        objective.bind(batch)(scores)[0]
        for objective in (
            L3("ap", space="rows", kappa=7.0).build_objective(),
            MLE("ap").build_objective(),
            L2("ap", space="rows").build_objective(),
        )
    ]
    np.testing.assert_allclose(parts[0], parts[1] + 7.0 * parts[2])
    by_pairs = L3("ap", space="rows", kappa=7.0 / 1475, kappa_units="pairs").build_objective()
    np.testing.assert_allclose(by_pairs.bind(batch)(scores)[0], parts[0])


def test_expectations_beat_the_likelihood_where_documents_look_good_and_are_not(spam):
    train, _, test = spam
    assert ndcg(MLE().fit(train), test) < 0.22
    for learner in (L2(), ExpectedGain(), L2("ndcg@10", space="rows", C=10.0)):
        assert ndcg(learner.fit(train), test) > 0.24
        assert learner.converged_
    zeros = evaluate(np.zeros(test.n_documents), test.y, test.qid, "ndcg@10").mean("ndcg@10")
    assert zeros < 0.05


# ---- a path over kappa --------------------------------------------------------------------------


def test_a_path_over_kappa(spam):
    train, validation = (part.where(np.arange(len(part)) < 30) for part in spam[:2])
    learner = L3("ndcg@10", C=0.01)
    path = kappa_path(learner, train, [1e4, 0.0, 100.0], eval_set=validation)
    assert path.kappas.tolist() == [0.0, 100.0, 1e4]
    assert [one.kappa for one in path.learners] == path.kappas.tolist()
    np.testing.assert_allclose(path.coefficients[0], MLE(C=0.01).fit(train).coef_, rtol=1e-2)
    assert path.best is path.learners[2]
    assert path.validation[2] == path.best.score(validation) > path.validation[0] + 0.04
    assert list(path.to_frame()) == ["kappa", "training", "validation", "iterations", "converged"]
    assert str(path).splitlines()[0].split()[0] == "kappa"
    assert learner.kappa == 1.0
    assert not hasattr(learner, "coef_")
    cold = ConvexLoss("ap", kappa=100.0, C=0.01).fit(train)
    warm = kappa_path(ConvexLoss("ap", C=0.01), train, [50.0, 100.0]).learners[1]
    np.testing.assert_allclose(warm.coef_, cold.coef_, rtol=0.01, atol=0.01)
    assert warm.n_iter_ <= cold.n_iter_


def test_what_a_path_refuses(spam):
    with pytest.raises(TypeError, match="learner: expected one with a parameter kappa, got MLE"):
        kappa_path(MLE(), spam[0])
    with pytest.raises(ValueError, match="kappas: expected at least one"):
        kappa_path(L3(), spam[0], [])
    with pytest.raises(ValueError, match="kappa: expected"):
        kappa_path(L3(), spam[0], [-1.0])
