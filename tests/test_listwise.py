"""Listwise learners and smooth measures against double loops and enumeration."""

import itertools

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import UNFINISHED_FITS

from permdist import GaussianScores, data, strategies
from permdist.measures import parse
from permdist.models import (
    Approx,
    ApproxNDCG,
    BoltzRank,
    ListMLE,
    ListNet,
    RankCosine,
    SoftRank,
)
from permdist.models.batch import Batch
from permdist.models.smooth_positions import SIGMOIDS, smooth_positions

pytestmark = UNFINISHED_FITS

LABELS = [np.array([0, 1, 2, 0, 1]), np.array([1, 0, 0]), np.array([2, 0, 1, 1, 0, 0, 0])]
PTR = np.array([0, 5, 8, 15])
BATCH = Batch(np.concatenate(LABELS), PTR, np.ones(3))


def parts(scores):
    return [scores[a:b] for a, b in itertools.pairwise(PTR)]


def near_ties(rng):
    return np.round(rng.normal(size=15), 1) + 1e-9 * rng.normal(size=15)


def check(learner, expected, tolerance=1e-10):
    """Value against a formula and gradient against a quotient, with and without near-ties."""
    rng = np.random.default_rng(0)
    loss = naive.bound(learner, BATCH)
    for scores in (rng.normal(size=15), 5.0 * rng.normal(size=15), near_ties(rng)):
        value, gradient = loss(scores)
        total = sum(expected(s, y) for s, y in zip(parts(scores), LABELS, strict=True))
        assert value == pytest.approx(total, rel=tolerance, abs=tolerance)
        quotient = naive.gradient(lambda s: loss(s)[0], scores)
        np.testing.assert_allclose(gradient, quotient, atol=2e-6 * max(1.0, np.abs(gradient).max()))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_listnet(k):
    check(ListNet(k, target="softmax"), lambda s, y: naive.list_net(s, y, k))
    if k == 1:
        check(ListNet(target="label"), lambda s, y: naive.list_net(s, y, 1, float))
    warm = ListNet(k, target="softmax", temperature=0.5)
    check(warm, lambda s, y: naive.list_net(s, y, k, lambda label: np.exp(2.0 * label)))


def test_listnet_ends_where_the_target_has_nothing_left():
    """One relevant document: after it the target chooses nothing, whatever k is."""
    batch, scores = (
        Batch(np.array([0, 1, 0]), np.array([0, 3]), np.ones(1)),
        np.array([0.1, 0.5, 2.0]),
    )
    values = [naive.bound(ListNet(k, target="label"), batch)(scores)[0] for k in (1, 2, 3)]
    assert values[0] == pytest.approx(values[1]) == pytest.approx(values[2])


def test_listmle():
    check(ListMLE(), naive.list_mle)
    # With strict labels all ways of handling ties are one: the Plackett-Luce likelihood.
    from permdist import PlackettLuce

    rng = np.random.default_rng(0)
    labels, scores = rng.permutation(7), rng.normal(size=7)
    batch = Batch(labels, np.array([0, 7]), np.ones(1))
    exact = -float(PlackettLuce(scores).log_prob(np.argsort(-labels)))
    for ties in ("together", "random", "index"):
        assert naive.bound(ListMLE(ties=ties), batch)(scores)[0] == pytest.approx(exact, rel=1e-12)


def test_listmle_ties_by_index_and_at_random():
    check(
        ListMLE(ties="index"),
        lambda s, y: naive.list_mle(s, -np.argsort(np.argsort(-y, kind="stable"))),
    )
    check(ListMLE(ties="random"), lambda s, y: _random_ties(s, y))


def _random_ties(scores, labels):
    """The same order, drawn again as the learner draws it."""
    number = [len(y) == len(labels) for y in LABELS].index(True)
    order = np.lexsort((BATCH.streams(0)[number].random(len(labels)), -labels))
    ranks = np.empty(len(labels), int)
    ranks[order] = np.arange(len(labels))
    return naive.list_mle(scores, -ranks)


def test_rank_cosine():
    def expected(s, y):
        return 0.5 * (1.0 - s @ y / np.sqrt((s @ s) * (y @ y)))

    check(RankCosine(), expected)
    value, gradient = naive.bound(RankCosine(), BATCH)(np.zeros(15))
    assert value == 1.5
    assert not gradient.any()


# ---- smooth positions ----------------------------------------------------------------------------


def test_table_one():
    scores = [4.20074, 3.12378, 4.40918, 1.55258, 4.13330]
    expected = [2.00118, 4.0, 1.0, 5.0, 2.99882]
    np.testing.assert_allclose(smooth_positions(scores, 100.0), expected, atol=5e-6)


@pytest.mark.parametrize("sigmoid", SIGMOIDS)
@pytest.mark.parametrize("alpha", [0.5, 10.0, 1000.0])
def test_windows_lose_nothing(sigmoid, alpha):
    rng = np.random.default_rng(0)
    if alpha * 10 > 700 and sigmoid == "logistic":
        alpha = 60.0
    for scores in (rng.normal(size=80), np.round(rng.normal(size=80), 1)):
        slow = naive.smooth_positions(scores, alpha, sigmoid)
        np.testing.assert_allclose(smooth_positions(scores, alpha, sigmoid), slow, rtol=4e-15)


@pytest.mark.parametrize("sigmoid", SIGMOIDS)
@pytest.mark.parametrize("name", ["ndcg", "ndcg@3", "ap", "precision@2", "rr", "tau"])
def test_smooth_measures(name, sigmoid):
    learner = Approx(name, alpha=3.0, beta=2.0, sigmoid=sigmoid)
    check(learner, lambda s, y: 1.0 - naive.smooth_measure(name, s, y, 3.0, 2.0, sigmoid))


@pytest.mark.parametrize("name", ["ndcg", "ndcg@3", "ap", "precision@2", "rr", "tau"])
def test_steep_sigmoids_give_the_measure(name):
    rng = np.random.default_rng(0)
    learner = Approx(name, alpha=1e4, beta=200.0)
    for labels in LABELS:
        scores = rng.normal(size=len(labels))
        batch = Batch(labels, np.array([0, len(labels)]), np.ones(1))
        value = 1.0 - naive.bound(learner, batch)(scores)[0]
        assert value == pytest.approx(float(parse(name).from_scores(scores, labels)), abs=1e-9)


@given(strategies.scores(min_items=2, max_items=8), st.floats(0.1, 50.0))
def test_theorem_three(scores, alpha):
    gaps = np.abs(scores[:, None] - scores[None, :]) + np.diag(np.full(len(scores), np.inf))
    if gaps.min() == 0.0:
        return
    true = 1 + (scores[None, :] > scores[:, None]).sum(axis=1)
    smooth = smooth_positions(scores, alpha)
    bound = (len(scores) - 1) / (np.exp(np.minimum(gaps.min(axis=1) * alpha, 700.0)) + 1.0)
    assert (np.abs(smooth - true) <= bound * (1 + 1e-9) + 1e-12).all()


def test_stochastic_optimiser_keeps_the_best_of_its_models():
    whole = data.make_letor(60, n_features=8, rng=0)
    train, held_out = whole.where(np.arange(60) < 40), whole.where(np.arange(60) >= 40)
    learner = ApproxNDCG(optimizer="stochastic", max_iter=8, learning_rate=0.3)
    learner.fit(train, eval_set=held_out)
    assert learner.score(held_out) == pytest.approx(max(learner.history_["measure"]))
    assert len(learner.history_["objective"]) == 8
    again = ApproxNDCG(optimizer="stochastic", max_iter=8, learning_rate=0.3)
    np.testing.assert_array_equal(again.fit(train, eval_set=held_out).coef_, learner.coef_)


# ---- SoftRank ------------------------------------------------------------------------------------


def test_softrank():
    def exact(s, y):
        return 1.0 - float(GaussianScores(s, 0.7).expect("ndcg@3", y))

    def recursion(s, y):
        return 1.0 - float(GaussianScores(s, 0.7).expect("ndcg@3", y, method="softrank"))

    check(SoftRank("ndcg@3", noise=0.7), exact)
    check(SoftRank("ndcg@3", noise=0.7, method="softrank"), recursion)
    check(
        SoftRank("ndcg", noise=0.7, method="softrank"),
        lambda s, y: 1.0 - float(GaussianScores(s, 0.7).expect("ndcg", y, method="softrank")),
    )


def test_the_noise_is_learned():
    queries = data.make_letor(15, n_documents=(5, 12), n_features=5, rng=0)
    learner = SoftRank(noise="learned", method="softrank", max_iter=20).fit(queries)
    assert np.linalg.norm(learner.coef_) == pytest.approx(1.0)
    assert learner.noise_ > 0.0
    assert learner.C == 100.0


# ---- BoltzRank -----------------------------------------------------------------------------------


def boltzmann(scores, labels, measure, mix, sharpness):
    """The objective of one query, by enumeration."""
    n = len(scores)
    orders = np.array(list(itertools.permutations(range(n))))

    def chances(s):
        F = [
            2.0 / (n * (n - 1)) * sum(s[o[t]] - s[o[u]] for t in range(n) for u in range(t + 1, n))
            for o in orders
        ]
        F = np.array(F)
        return np.exp(F - F.max()) / np.exp(F - F.max()).sum()

    model, target = chances(scores), chances(sharpness * labels)
    return mix * (1.0 - model @ measure(orders, labels)) - (1 - mix) * target @ np.log(model)


@pytest.mark.parametrize("mix", [0.0, 0.4, 1.0])
def test_boltzrank_by_subsets(mix):
    rng, measure = np.random.default_rng(0), parse("ndcg")
    labels = [np.array([0, 1, 2, 0, 1]), np.array([1, 0, 0])]
    batch = Batch(np.concatenate(labels), np.array([0, 5, 8]), np.ones(2))
    loss = naive.bound(BoltzRank("ndcg", mix=mix, sharpness=3.0, exact=6), batch)
    scores = 4.0 * rng.normal(size=8)
    expected = sum(
        boltzmann(s, y, measure, mix, 3.0)
        for s, y in zip((scores[:5], scores[5:]), labels, strict=True)
    )
    value, gradient = loss(scores)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(gradient, naive.gradient(lambda s: loss(s)[0], scores), atol=1e-6)


def test_boltzranks_sample():
    learner = BoltzRank("ndcg", exact=0, sample_size=4000, sharpness=3.0)
    loss = naive.bound(learner, BATCH)
    exact = naive.bound(BoltzRank("ndcg", exact=8, sharpness=3.0), BATCH)
    scores = np.random.default_rng(1).normal(size=15)
    value, gradient = loss(scores)
    np.testing.assert_allclose(gradient, naive.gradient(lambda s: loss(s)[0], scores), atol=1e-6)
    assert np.isfinite(value)
    assert np.corrcoef(gradient, exact(scores)[1])[0, 1] > 0.9


def test_boltzrank_learns_from_long_queries():
    rng = np.random.default_rng(0)
    X = rng.random((12, 300, 20)) ** 4
    value = X[:, :, :6].sum(axis=2) + 0.3 * rng.standard_normal((12, 300))
    y = (np.argsort(np.argsort(-value, axis=1), axis=1) < 4).astype(int)
    queries = data.Queries(X.reshape(-1, 20), y.ravel(), np.repeat(np.arange(12), 300))
    learner = BoltzRank("ndcg@10").fit(queries)
    own, others = np.abs(learner.coef_[:6]), np.abs(learner.coef_[6:])
    assert own.min() > 1.5 * others.max()


def test_refusals():
    queries = data.make_letor(6, n_features=3, rng=0)
    for call, message in (
        (lambda: ListNet(7).fit(data.make_letor(50, rng=0)), "choices at every step are too many"),
        (lambda: Approx("err").fit(queries), "has no smooth version"),
        (lambda: SoftRank("ap").fit(queries), "no sum over positions"),
        (lambda: BoltzRank(exact=20).fit(queries), "exact: expected at most 12"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


# ---- faults that were found once -----------------------------------------------------------------


def test_listnet_with_scores_far_below_those_taken():
    batch = Batch(np.array([2, 1, 0]), np.array([0, 3]), np.ones(1))
    value, gradient = naive.bound(ListNet(2), batch)(np.array([0.0, -800.0, -801.0]))
    assert gradient.sum() == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(value)
    X = np.random.default_rng(0).normal(size=(6, 2))
    ListNet(k=40).fit(X, [0, 1, 0, 1, 1, 0], [0, 0, 1, 1, 2, 2])


def test_cut_offs_are_kept_or_refused():
    queries = data.make_letor(6, n_features=3, rng=0)
    for name in ("ap@2", "rr@3"):
        with pytest.raises(ValueError, match="no smooth version with a cut-off"):
            Approx(name).fit(queries)
    short = Batch(np.array([1, 0, 2]), np.array([0, 3]), np.ones(1))
    assert naive.bound(Approx("ndcg@10[short=zero]"), short)(np.arange(3.0))[0] == 1.0
    with pytest.raises(ValueError, match="labels up to 1000"):
        Approx("ndcg").fit(queries.X[:6], [0, 10**6, 1, 0, 1, 2], [0] * 3 + [1] * 3)


def test_strong_regularisation_with_stochastic_steps():
    queries = data.make_letor(10, n_documents=(5, 12), n_features=3, rng=0)
    learner = Approx(C=1e-4, optimizer="stochastic", max_iter=50).fit(queries)
    assert np.isfinite(learner.coef_).all()
    with pytest.raises(ValueError, match="annealing: only with"):
        Approx(optimizer="stochastic", annealing=2).fit(queries)


def test_every_stage_of_annealing_has_its_own_patience():
    parts = [data.make_letor(20, n_documents=(5, 12), n_features=5, rng=seed) for seed in (0, 5)]
    learner = Approx("ndcg", alpha=50.0, annealing=3, early_stopping=3, max_iter=30)
    learner.fit(parts[0], eval_set=parts[1])
    assert learner.n_iter_ >= 9


def test_learned_noise_goes_on_where_it_was():
    queries = data.make_letor(12, n_documents=(5, 12), n_features=5, rng=0)
    learner = SoftRank(noise="learned", method="softrank", max_iter=15, warm_start=True)
    last = learner.fit(queries).history_["objective"][-1]
    assert learner.fit(queries).history_["objective"][0] <= last + 1e-9


def test_far_apart_labels_are_the_same_problem_for_boltzrank():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(100, 3)), np.repeat(range(5), 20)
    ranks = np.argsort(np.argsort(X[:, 0].reshape(5, 20), axis=1), axis=1).ravel()
    found = []
    for factor in (1, 50):
        learner = BoltzRank("ndcg[gain=linear]", max_iter=30, sharpness=10.0 / factor)
        found.append(learner.fit(X, ranks * factor, qid).coef_)
    np.testing.assert_allclose(found[0], found[1], rtol=0.05, atol=0.05)


def test_an_optimal_start_is_no_trouble():
    learner = RankCosine().fit([[2.0, 0.0], [1.0, 0.0], [0.0, 0.0]], [2, 1, 0])
    assert learner.converged_
    assert learner.score([[2.0, 0.0], [1.0, 0.0], [0.0, 0.0]], [2, 1, 0], [0] * 3) == 1.0
