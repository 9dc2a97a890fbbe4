import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from permdist import Ballots, Mallows, Mixture, strategies
from permdist.distributions import PlackettLuce
from permdist.rankings import BucketOrder, TopK, enumerate_orders

MODELS = st.one_of(
    strategies.plackett_luces(min_items=2, max_items=6),
    strategies.plackett_luces(min_items=2, max_items=6, wide=True),
)


@given(MODELS, st.data())
def test_top_k_and_subset_probabilities(model, data):
    order = data.draw(strategies.orders(n_items=model.n_items))
    k = data.draw(st.integers(1, model.n_items))
    wide = np.abs(model.scores).max() > 5.0
    near = {"rel": 1e-9, "abs": 1e-9} if wide else {"rel": 1e-12, "abs": 1e-13}
    listed, rest = order[:k].tolist(), order[k:].tolist()
    expected = naive.plackett_luce(model.scores, listed, rest)
    first = model.log_prob(listed, subset=False)
    assert first == pytest.approx(expected, **near)
    assert model.log_prob(TopK(listed, model.n_items)) == first
    among = naive.plackett_luce(model.scores, listed)
    assert model.log_prob(listed, subset=True) == pytest.approx(among, **near)


@given(strategies.plackett_luces(min_items=2, max_items=5), st.data())
def test_gradients_of_log_prob(model, data):
    order = data.draw(strategies.orders(n_items=model.n_items))
    k = data.draw(st.integers(1, model.n_items))
    for subset in (False, True):
        ours = model.log_prob_gradient(order[:k], subset=subset)
        quotient = naive.gradient(
            lambda s, sub=subset: PlackettLuce(s).log_prob(order[:k], subset=sub), model.scores
        )
        assert ours == pytest.approx(quotient, abs=1e-7)


@given(strategies.plackett_luces(min_items=2, max_items=6, wide=True), st.data())
def test_gradients_for_scores_of_every_magnitude(model, data):
    # A difference quotient has no digits here; the definition has.
    order = data.draw(strategies.orders(n_items=model.n_items))
    expected = np.zeros(model.n_items)
    for k in range(model.n_items):
        left = order[k:]
        weights = np.exp(model.scores[left] - model.scores[left].max())
        expected[order[k]] += 1.0
        expected[left] -= weights / weights.sum()
    assert model.log_prob_gradient(order) == pytest.approx(expected, abs=1e-7)
    labels = data.draw(strategies.labels(n_items=model.n_items, min_relevant=1, min_irrelevant=1))
    for measure in ("ndcg", "p@2", "auc"):
        slopes = model.expect_gradient(measure, labels)
        assert np.abs(slopes).max() <= 1.0
        assert slopes.sum() == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("measure", ["ndcg", "ndcg@2", "p@2", "wta", "auc", "tau"])
@given(query=strategies.labelled_queries(min_relevant=1, min_irrelevant=1, max_items=6))
def test_gradients_of_expectations(measure, query):
    ours = PlackettLuce(query.scores / 4).expect_gradient(measure, query.labels)
    quotient = naive.gradient(
        lambda s: float(PlackettLuce(s).expect(measure, query.labels)), query.scores / 4
    )
    assert ours == pytest.approx(quotient, abs=1e-8)
    assert ours.sum() == pytest.approx(0.0, abs=1e-12)


def test_lists_of_unequal_length_and_ballots_have_one_answer_each():
    model = PlackettLuce([0.5, -1.0, 2.0, 0.0], names=["a", "b", "c", "d"])
    lists = [[2, 0, 1, 3], [3, 1], [1, 2, 0]]
    for subset in (True, False):
        ballots = Ballots.of(lists, subset=subset, names=model.names, clusters=[0, 0, 1])
        both = lists, ballots, [np.array(each) for each in lists]
        for method in (model.log_prob, model.log_prob_gradient):
            expected = np.stack([method(each, subset=subset) for each in lists])
            for given_ones in both:
                found = method(given_ones, subset=subset)
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    tops = [TopK([2], 4), TopK([0, 3], 4)]
    for method in (model.log_prob, model.log_prob_gradient):
        np.testing.assert_allclose(method(tops), [method(top) for top in tops], rtol=1e-12)
        order = BucketOrder.from_order([2, 0, 1, 3])
        np.testing.assert_allclose(method(order), method([2, 0, 1, 3]), rtol=1e-12)
        with pytest.raises(ValueError, match=r"got 2 item\(s\) in ranking 1; pass subset=True"):
            method(lists)
    with pytest.raises(ValueError, match="expected no probability of 0, got ties"):
        model.log_prob_gradient([[[0, 1], 2, 3]])
    mixed = Mixture([model, Mallows([0, 1, 2, 3], 0.5, names=model.names)], [0.5, 0.5])
    for orders, subset in ((lists, True), (lists, False), (tops, None)):
        each = [mixed.log_prob(one, subset=subset) for one in orders]
        np.testing.assert_allclose(mixed.log_prob(orders, subset=subset), each, rtol=1e-12)


def test_scores_of_any_spread():
    scores = np.array([1000.0, -1000.0, 60.0, -60.0, 0.0])
    model = PlackettLuce(scores)
    for order in ([0, 2, 4, 3, 1], [1, 3, 4, 2, 0], [4, 0, 1, 2, 3]):
        expected = naive.plackett_luce(scores, order)
        assert model.log_prob(order) == pytest.approx(expected, rel=1e-14, abs=1e-14)
    assert np.isfinite(model.log_prob(enumerate_orders(5))).all()
    assert model.rank_marginals()[0, 0] == 1.0
    assert model.sample(10, rng=0).tolist() == [[0, 2, 4, 3, 1]] * 10
    assert model.sample_top_k(2, 10, rng=0).tolist() == [[0, 2]] * 10


@pytest.mark.parametrize("n", [1, 2, 37, 200])
def test_marginals_are_doubly_stochastic(n):
    for scores in (np.zeros(n), np.random.default_rng(n).normal(0, 3, n)):
        marginals = PlackettLuce(scores).rank_marginals()
        assert marginals.sum(axis=0) == pytest.approx(1.0, abs=1e-12)
        assert marginals.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert PlackettLuce(np.zeros(n)).rank_marginals() == pytest.approx(1 / n, rel=1e-12)
    assert PlackettLuce(np.zeros(n)).log_prob(np.arange(n)) == pytest.approx(-gammaln(n + 1))


def test_top_k_chances_agree_with_marginals():
    scores = np.random.default_rng(0).normal(size=40)
    model = PlackettLuce(scores)
    fresh = model.top_k(5)
    assert fresh == pytest.approx(model.rank_marginals()[:, :5].sum(axis=1), abs=1e-14)
    assert model.top_k(5) == pytest.approx(fresh, abs=1e-14)  # from the stored marginals
    assert model.top_k(100) == pytest.approx(1.0)


def test_top_k_draws_follow_their_probabilities():
    scores = np.random.default_rng(1).normal(size=40)
    model = PlackettLuce(scores)
    drawn = model.sample_top_k(2, 50_000, rng=0)
    counts = np.zeros((40, 40))
    np.add.at(counts, (drawn[:, 0], drawn[:, 1]), 1)
    pairs = np.array([[i, j] for i in range(40) for j in range(40) if i != j])
    expected = np.exp(model.log_prob(pairs, subset=False)) * 50_000
    error = (counts[pairs[:, 0], pairs[:, 1]] - expected) / np.sqrt(expected)
    assert np.diagonal(counts).sum() == 0
    assert np.abs(error).max() < 6
    assert (error**2).mean() == pytest.approx(1.0, abs=0.2)
    assert (model.sample_top_k(3, (2, 2), rng=5) == model.sample_top_k(3, (2, 2), rng=5)).all()


# ---- fitting ---------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [5, 2, 1])
def test_the_estimate_is_a_maximum(k):
    lists = PlackettLuce([1.0, 0.5, 0.0, -0.5, -1.0]).sample(300, rng=0)[:, :k]
    model = PlackettLuce.fit(lists, n_items=5, subset=False)

    def likelihood(scores):
        return float(PlackettLuce(scores).log_prob(lists, subset=False).sum())

    best = likelihood(model.scores)
    assert model.fit_result.log_likelihood == pytest.approx(best, rel=1e-12)
    assert naive.gradient(likelihood, model.scores) == pytest.approx(0.0, abs=1e-4)
    for direction in np.random.default_rng(0).normal(size=(10, 5)):
        assert likelihood(model.scores + 0.05 * direction) < best
    assert model.scores.sum() == pytest.approx(0.0, abs=1e-12)


def test_standard_errors_cover_the_truth():
    truth = np.array([1.0, 0.3, -0.2, -1.1])
    z = []
    for seed in range(60):
        model = PlackettLuce.fit(PlackettLuce(truth).sample(200, rng=seed))
        z.append((model.scores - truth) / model.fit_result.standard_errors())
    assert np.std(z) == pytest.approx(1.0, abs=0.15)
    assert np.mean(z) == pytest.approx(0.0, abs=0.25)


def test_weights_count_as_repetitions():
    orders = PlackettLuce([0.5, 0.0, -0.5]).sample(40, rng=0)
    times = np.random.default_rng(0).integers(0, 4, 40)
    weighted = PlackettLuce.fit(orders, weights=times)
    repeated = PlackettLuce.fit(np.repeat(orders, times, axis=0))
    assert weighted.scores == pytest.approx(repeated.scores, abs=1e-8)
    assert weighted.fit_result.standard_errors() == pytest.approx(
        repeated.fit_result.standard_errors()
    )


def test_lists_of_unequal_length():
    ragged = [[0, 1, 2], [2, 0], [1], TopK([2, 1], 4), [3, 0, 1, 2], [1, 3], [0, 3]]
    model = PlackettLuce.fit(ragged, subset=False)
    lists = [list(entry.items) if isinstance(entry, TopK) else entry for entry in ragged]

    def likelihood(scores):
        candidate = PlackettLuce(scores)
        return sum(float(candidate.log_prob(entry, subset=False)) for entry in lists)

    assert naive.gradient(likelihood, model.scores) == pytest.approx(0.0, abs=1e-6)


def test_regularisation_gives_an_estimate_always():
    model = PlackettLuce.fit([[0, 1, 2]], regularization=0.1)
    assert (np.diff(model.scores) < 0).all()
    stronger = PlackettLuce.fit([[0, 1, 2]], regularization=10.0)
    assert np.ptp(stronger.scores) < np.ptp(model.scores)


@pytest.mark.parametrize(
    ("orders", "options", "message"),
    [
        ([[0, 1, 2], [0, 2, 1]], {}, "always above the others: 0;"),
        ([[0, 1], [1, 0], [2, 3], [3, 2]], {"subset": True}, "never compared with the others"),
        ([[0, 1], [1, 0]], {"n_items": 3, "subset": True}, "never compared with the others: 2"),
        ([[0, 1], [0, 0]], {}, "ranking 1 must list different items from 0 to 1, got 0 at index 1"),
        ([[0, 1], [0, 5]], {"n_items": 3}, "got 5 at index 1"),
        ([], {}, "orders: expected"),
        ([[0, 1]], {"weights": [1, 2]}, "weights: expected 1 weights, got 2"),
        ([[0, 1]], {"weights": [-1]}, "weights: expected no negative weight"),
        ([0, [1, 2]], {}, "orders: expected lists of items, got 0 as 0"),
        ([TopK([0], 5), TopK([1], 7)], {}, "do not mix"),
    ],
)
def test_what_cannot_be_fitted(orders, options, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        PlackettLuce.fit(orders, **options)
    assert message in str(caught.value)


def test_sparse_comparisons_do_not_send_the_search_astray():
    # Items that are rarely listed, some nearly always last: a full Newton step goes far too far.
    rng = np.random.default_rng(0)
    truth = PlackettLuce(np.linspace(4, -4, 40))
    lists = [np.sort(rng.permutation(40)[: rng.integers(2, 30)]) for _ in range(60)]
    ranked = [own[PlackettLuce(truth.scores[own]).sample(rng=rng)].tolist() for own in lists]
    ranked += [[i + 1, i] for i in range(39)]  # connects everything
    model = PlackettLuce.fit(ranked, subset=True)

    def likelihood(scores):
        candidate = PlackettLuce(scores)
        return sum(float(candidate.log_prob(entry, subset=True)) for entry in ranked)

    assert model.fit_result.log_likelihood == pytest.approx(likelihood(model.scores), rel=1e-10)
    assert naive.gradient(likelihood, model.scores) == pytest.approx(0.0, abs=1e-5)
