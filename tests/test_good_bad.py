import naive
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import gammaln

from permdist import measures, strategies
from permdist.distributions import GoodBad

QUERY = strategies.labelled_queries(min_relevant=1, min_irrelevant=1, max_items=5, max_grade=1)
GRADED = strategies.labelled_queries(min_relevant=1, min_irrelevant=1, max_items=5)


@settings(max_examples=20)
@given(model=strategies.good_bads(max_items=5, wide=True))
def test_gradients_for_scores_of_every_magnitude(model):
    # A difference quotient has no digits here; expectations of pairs have.
    other = model.labels[:, None] != model.labels[None, :]
    pairwise = model.pairwise()
    expected = model.scale * ((pairwise - pairwise.T) * other).sum(axis=1)
    assert model.log_partition_gradient() == pytest.approx(expected, abs=1e-7)
    for measure in ("ap", "ndcg", "auc"):
        slopes = model.expect_gradient(measure)
        assert np.isfinite(slopes).all()
        assert slopes.sum() == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("space", ["interleavings", "orders"])
@settings(max_examples=20)
@given(query=strategies.labelled_queries(min_relevant=1, min_irrelevant=1, max_items=5, ties=False))
def test_gradients(space, query):
    # Scores well apart: where two of one class cross, the interleavings have a kink.
    scores = np.argsort(np.argsort(query.scores)) * 0.37 - 0.5
    for tilt in (None, "ap", "ndcg@2"):

        def model(s, t=tilt):
            return GoodBad(s, query.labels, space=space, scale=0.5, tilt=t, kappa=1.7)

        ours = model(scores).log_partition_gradient()
        quotient = naive.gradient(lambda s: model(s).log_partition(), scores)
        assert ours == pytest.approx(quotient, abs=1e-8)
        for measure in ("ap", "ndcg", "auc", "rr"):
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
