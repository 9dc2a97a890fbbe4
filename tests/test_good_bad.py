import itertools

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, gammaln, log_expit

from permdist import measures, strategies
from permdist.distributions import GoodBad
from permdist.distributions.lattice import Shape

QUERY = strategies.labelled_queries(min_relevant=1, min_irrelevant=1, max_items=5, max_grade=1)
GRADED = strategies.labelled_queries(min_relevant=1, min_irrelevant=1, max_items=5)


@given(query=QUERY, kappa=st.sampled_from([None, 0.0, 1.0, 7.0]))
def test_pairs_equal_listing_all_sign_vectors(query, kappa):
    scores, labels = query.scores / 4, query.labels
    options = {} if kappa is None else {"tilt": "auc", "kappa": kappa}
    model = GoodBad(scores, labels, space="pairs", scale=0.6, **options)
    vectors = list(
        naive.sign_vectors(scores, labels, 0.6, tilt=kappa is not None, kappa=kappa or 0.0)
    )
    weights = np.array([value for _, value, _ in vectors])
    total = np.logaddexp.reduce(weights)
    probabilities = np.exp(weights - total)
    assert model.log_partition() == pytest.approx(total, rel=1e-12)
    auc = float(probabilities @ [share for *_, share in vectors])
    assert model.expect("auc") == pytest.approx(auc, rel=1e-10)
    assert model.expect("tau") == pytest.approx(2 * auc - 1, rel=1e-9, abs=1e-12)
    signs = np.array([vector for vector, *_ in vectors])
    assert model.log_prob(signs) == pytest.approx(weights - total, rel=1e-10, abs=1e-10)
    entropy = -float(probabilities @ (weights - total))
    assert model.entropy() == pytest.approx(entropy, rel=1e-9, abs=1e-12)
    chance = (probabilities[:, None, None] * (signs > 0)).sum(axis=0)
    assert model.pair_probabilities() == pytest.approx(chance, rel=1e-10)


@given(query=GRADED, scale=st.sampled_from([0.1, 1.0, 30.0]))
def test_windows_equal_the_plain_sum_over_pairs(query, scale):
    scores, labels = query.scores, query.labels
    pairs = [
        (scores[i] - scores[j])
        for i, j in itertools.permutations(range(len(scores)), 2)
        if labels[i] > labels[j]
    ]
    x = scale * np.array(pairs)
    model = GoodBad(scores, labels, space="pairs", scale=scale)
    assert model.log_partition() == pytest.approx(np.logaddexp(x, -x).sum(), rel=1e-12)
    satisfied = (1 / (1 + np.exp(-np.clip(2 * x, -700, 700)))).mean()
    assert model.expect("auc") == pytest.approx(satisfied, rel=1e-10, abs=1e-15)


@given(model=strategies.good_bads(spaces=["pairs"], max_items=5, wide=True))
def test_pairs_with_scores_of_every_magnitude(model):
    # Pairs are independent: the log-odds of each say everything.
    tilt = 0.0 if model.tilt is None else model.kappa
    upper = [
        (i, j)
        for i, j in itertools.permutations(range(model.n_items), 2)
        if model.labels[i] > model.labels[j]
    ]
    gaps = np.array([model.scores[i] - model.scores[j] for i, j in upper])
    odds = 2 * model.scale * gaps - tilt / len(upper)
    chances = expit(odds)
    total = np.logaddexp(model.scale * gaps, tilt / len(upper) - model.scale * gaps).sum()
    assert model.log_partition() == pytest.approx(total, rel=1e-12, abs=1e-12)
    assert model.expect("auc") == pytest.approx(chances.mean(), abs=1e-9)
    entropy = -(chances * log_expit(odds) + expit(-odds) * log_expit(-odds)).sum()
    assert model.entropy() == pytest.approx(entropy, abs=1e-9)
    found = model.pair_probabilities()
    assert (found >= 0).all()
    assert (found <= 1).all()
    gradient = model.log_partition_gradient()
    assert np.abs(gradient).max() <= model.scale * model.n_items * (1 + 1e-12)
    assert gradient.sum() == pytest.approx(0.0, abs=1e-9)


@given(model=strategies.good_bads(max_items=5, wide=True))
def test_gradients_for_scores_of_every_magnitude(model):
    # A difference quotient has no digits here; expectations of pairs have.
    other = model.labels[:, None] != model.labels[None, :]
    pairwise = model.pairwise()
    expected = model.scale * ((pairwise - pairwise.T) * other).sum(axis=1)
    assert model.log_partition_gradient() == pytest.approx(expected, abs=1e-9)
    for measure in ("ap", "ndcg", "auc"):
        slopes = model.expect_gradient(measure)
        assert np.isfinite(slopes).all()
        assert slopes.sum() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("space", ["pairs", "interleavings", "orders"])
@given(query=strategies.labelled_queries(min_relevant=1, min_irrelevant=1, max_items=5, ties=False))
def test_gradients(space, query):
    # Scores well apart: where two of one class cross, the interleavings have a kink.
    scores = np.argsort(np.argsort(query.scores)) * 0.37 - 0.5
    tilts = [None, "auc"] if space == "pairs" else [None, "ap", "ndcg@2"]
    for tilt in tilts:

        def model(s, t=tilt):
            return GoodBad(s, query.labels, space=space, scale=0.5, tilt=t, kappa=1.7)

        ours = model(scores).log_partition_gradient()
        quotient = naive.gradient(lambda s: model(s).log_partition(), scores)
        assert ours == pytest.approx(quotient, abs=1e-8)
        for measure in ["auc"] if space == "pairs" else ["ap", "ndcg", "auc", "rr"]:
            ours = model(scores).expect_gradient(measure)
            quotient = naive.gradient(lambda s, m=measure: float(model(s).expect(m)), scores)
            assert ours == pytest.approx(quotient, abs=1e-8)


def test_derivatives_of_the_log_partition_are_expectations():
    # d log Z / d kappa is the expected loss.
    scores, labels = np.array([0.5, -0.2, 0.9, 0.1]), np.array([1, 0, 1, 0])
    for space in ("interleavings", "orders"):

        def model(kappa, where=space):
            return GoodBad(scores, labels, space=where, tilt="ap", kappa=kappa)

        step = 1e-5
        quotient = (model(1 + step).log_partition() - model(1 - step).log_partition()) / (2 * step)
        assert 1 - model(1.0).expect("ap") == pytest.approx(quotient, abs=1e-9)


def test_a_long_query_with_large_scores():
    rng = np.random.default_rng(0)
    scores = rng.uniform(-50, 50, 1050)
    labels = np.r_[np.ones(50, dtype=int), np.zeros(1000, dtype=int)]
    model = GoodBad(scores, labels, space="interleavings", tilt="ap", kappa=100.0)
    assert np.isfinite(model.log_partition())
    assert np.isfinite(model.log_partition_gradient()).all()
    assert 0 <= model.expect("ap") <= 1
    assert model.rank_marginals().sum(axis=0) == pytest.approx(1.0, abs=1e-9)
    # With equal scores every interleaving has the same weight.
    flat = GoodBad(np.zeros(1050), labels, space="interleavings")
    paths = gammaln(1051) - gammaln(51) - gammaln(1001)
    assert flat.log_partition() == pytest.approx(paths, rel=1e-13)
    assert flat.expect("auc") == pytest.approx(0.5, rel=1e-12)


def test_many_pairs():
    rng = np.random.default_rng(1)
    scores = rng.normal(0, 40, 3000)
    labels = (rng.random(3000) < 0.3).astype(int)
    model = GoodBad(scores, labels, space="pairs")
    x = scores[labels > 0][:, None] - scores[labels == 0][None, :]
    assert model.log_partition() == pytest.approx(np.logaddexp(x, -x).sum(), rel=1e-12)
    gradient = np.zeros(3000)
    gradient[labels > 0] = np.tanh(x).sum(axis=1)
    gradient[labels == 0] = -np.tanh(x).sum(axis=0)
    assert model.log_partition_gradient() == pytest.approx(gradient, rel=1e-9, abs=1e-9)


def test_fifteen_items_over_orders():
    rng = np.random.default_rng(2)
    scores, labels = rng.normal(size=15) / 5, np.arange(15) % 3
    model = GoodBad(scores, labels)
    marginals = model.rank_marginals()
    assert marginals.sum(axis=0) == pytest.approx(1.0, abs=1e-12)
    pairwise = model.pairwise()
    assert pairwise + pairwise.T == pytest.approx(1.0 - np.eye(15), abs=1e-12)
    # Expected ranks follow from either.
    assert marginals @ np.arange(15) == pytest.approx(pairwise.sum(axis=0), rel=1e-12)
    draws = model.sample(4000, rng=0)
    mean = measures.NDCG()(draws, labels).mean()
    assert model.expect("ndcg") == pytest.approx(mean, abs=0.02)
    uniform = GoodBad(np.zeros(15), labels)
    assert uniform.log_partition() == pytest.approx(gammaln(16), rel=1e-14)


def test_graded_pairs_are_drawn_as_antisymmetric_matrices():
    scores, labels = np.array([0.5, -0.2, 0.9, 0.1]), np.array([2, 0, 1, 0])
    model = GoodBad(scores, labels, space="pairs")
    signs = model.sample(30_000, rng=0)
    assert signs.shape == (30_000, 4, 4)
    assert (signs == -signs.transpose(0, 2, 1)).all()
    assert (signs[:, 1, 3] == 0).all()
    chance = model.pair_probabilities()
    different = labels[:, None] != labels[None, :]
    assert np.abs((signs > 0).mean(axis=0) - chance)[different].max() < 0.02
    assert np.isfinite(model.log_prob(signs[:3])).all()
    assert model.entropy() > 0


def test_binary_pairs_are_drawn_as_goods_by_bads():
    model = GoodBad([0.5, -0.2, 0.9], [1, 0, 1], space="pairs")
    assert model.sample(rng=0).shape == (2, 1)
    assert model.sample((2, 3), rng=0).shape == (2, 3, 2, 1)
    assert (model.sample(9, rng=1) == model.sample(9, rng=1)).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.rank_marginals(),
        lambda m: m.pairwise(),
        lambda m: m.mode(),
        lambda m: m.top_k(1),
        lambda m: m.log_weight([0, 1, 2]),
        lambda m: m.expect("ap"),
        lambda m: m.expect_gradient("ndcg"),
        lambda m: m.kl(m),
    ],
)
def test_over_pairs_there_are_no_orders(call):
    model = GoodBad([0.5, -0.2, 0.9], [1, 0, 1], space="pairs")
    with pytest.raises(TypeError, match="pairs"):
        call(model)
    with pytest.raises(ValueError, match=r"shape \(..., 2, 1\), got \(3,\); over pairs a draw"):
        model.log_prob([0, 1, 2])
    with pytest.raises(ValueError, match=r"entries \+1 and -1"):
        model.log_prob([[0], [1]])
    with pytest.raises(TypeError, match="for space='pairs'"):
        GoodBad([0.5, -0.2], [1, 0]).pair_probabilities()


def test_interleavings_exclude_unsorted_classes():
    model = GoodBad([1.0, 0.0, 0.5], [1, 1, 0], space="interleavings")
    assert model.log_prob([1, 0, 2]) == -np.inf
    assert model.kl(GoodBad([1.0, 0.0, 0.5], [1, 1, 0])) < np.inf
    assert GoodBad([1.0, 0.0, 0.5], [1, 1, 0]).kl(model) == np.inf
    other = GoodBad([2.0, 0.3, 0.5], [1, 1, 0], space="interleavings")
    listed = naive.Listing(
        3, lambda o: naive.good_bad([1.0, 0.0, 0.5], [1, 1, 0], o, space="interleavings")
    )
    here = listed.prob > 0
    expected = listed.prob[here] @ (listed.log_prob[here] - other.log_prob(listed.orders[here]))
    assert model.kl(other) == pytest.approx(expected, rel=1e-12)


def test_the_mode_under_a_tilt():
    scores, labels = np.array([0.3, 0.1, 0.25, 0.0]), np.array([1, 0, 1, 0])
    for kappa in (0.0, 1.0, 20.0):
        for space in ("orders", "interleavings"):
            model = GoodBad(scores, labels, space=space, tilt="ap", kappa=kappa, scale=0.5)
            listed = naive.Listing(
                4, lambda o, k=kappa: naive.good_bad(scores, labels, o, 0.5, measures.AP(), k)
            )
            assert model.log_weight(model.mode()) == pytest.approx(
                (listed.log_prob + listed.log_partition).max()
            )


def test_it_says_what_it_is():
    model = GoodBad([0.5, -0.2], [1, 0], space="interleavings", scale=2, tilt="ap", kappa=3)
    assert repr(model) == (
        "GoodBad([ 0.5, -0.2], [1, 0], space='interleavings', scale=2, tilt='ap', kappa=3)"
    )
    assert (model.scale, model.kappa, model.space, model.tilt) == (
        2.0,
        3.0,
        "interleavings",
        measures.AP(),
    )


def test_lattice_states():
    shape = Shape((np.array([2, 0]), np.array([1])))
    assert shape.n_states == 6
    assert shape.counts.tolist() == [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]
    steps = shape.steps_of(measures.AP(), np.array([1, 0, 1]))
    assert steps[:, 0] == pytest.approx([1 / 2, 1 / 2, 0, 1 / 4, 1 / 3, 0])


def test_unlikely_signs_and_safe_gradients():
    assert GoodBad([20.0, 0.0], [1, 0], space="pairs").log_prob([[-1]]) == pytest.approx(-40.0)
    model = GoodBad([1.0, 0.0, 2.0], [1, 0, 0], space="pairs")
    gradient = model.log_partition_gradient()
    gradient *= 0.0
    assert model.log_partition_gradient().any()
    with pytest.raises(ValueError, match="method: expected one of"):
        model.expect("auc", method="guess")
    with pytest.raises(ValueError, match="method: expected one of"):
        model.entropy(method="guess")
    graded = GoodBad([1.0, 0.0, 2.0], [2, 1, 0], space="pairs")
    with pytest.raises(ValueError, match="antisymmetric"):
        graded.log_prob(np.ones((3, 3)))
