"""The good-bad pair model over sign vectors, against listings of all of them."""

import itertools
import pickle

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, log_expit

from permdist import measures, strategies
from permdist.distributions import Distribution, PairSigns

QUERY = strategies.labelled_queries(min_relevant=1, min_irrelevant=1, max_items=5, max_grade=1)
GRADED = strategies.labelled_queries(min_relevant=1, min_irrelevant=1, max_items=5)


@given(query=QUERY, kappa=st.sampled_from([None, 0.0, 1.0, 7.0]))
def test_pairs_equal_listing_all_sign_vectors(query, kappa):
    scores, labels = query.scores / 4, query.labels
    options = {} if kappa is None else {"tilt": "auc", "kappa": kappa}
    model = PairSigns(scores, labels, scale=0.6, **options)
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
    model = PairSigns(scores, labels, scale=scale)
    assert model.log_partition() == pytest.approx(np.logaddexp(x, -x).sum(), rel=1e-12)
    satisfied = (1 / (1 + np.exp(-np.clip(2 * x, -700, 700)))).mean()
    assert model.expect("auc") == pytest.approx(satisfied, rel=1e-10, abs=1e-15)


@given(model=strategies.pair_signs(max_items=5, wide=True))
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
    assert model.expect("auc") == pytest.approx(chances.mean(), abs=1e-7)
    entropy = -(chances * log_expit(odds) + expit(-odds) * log_expit(-odds)).sum()
    assert model.entropy() == pytest.approx(entropy, abs=1e-7)
    found = model.pair_probabilities()
    assert (found >= 0).all()
    assert (found <= 1).all()
    gradient = model.log_partition_gradient()
    assert np.abs(gradient).max() <= model.scale * model.n_items * (1 + 1e-12)
    assert gradient.sum() == pytest.approx(0.0, abs=1e-7)


def test_many_pairs():
    rng = np.random.default_rng(1)
    scores = rng.normal(0, 40, 3000)
    labels = (rng.random(3000) < 0.3).astype(int)
    model = PairSigns(scores, labels)
    x = scores[labels > 0][:, None] - scores[labels == 0][None, :]
    assert model.log_partition() == pytest.approx(np.logaddexp(x, -x).sum(), rel=1e-12)
    gradient = np.zeros(3000)
    gradient[labels > 0] = np.tanh(x).sum(axis=1)
    gradient[labels == 0] = -np.tanh(x).sum(axis=0)
    assert model.log_partition_gradient() == pytest.approx(gradient, rel=1e-9, abs=1e-9)


def test_graded_pairs_are_drawn_as_antisymmetric_matrices():
    scores, labels = np.array([0.5, -0.2, 0.9, 0.1]), np.array([2, 0, 1, 0])
    model = PairSigns(scores, labels)
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
    model = PairSigns([0.5, -0.2, 0.9], [1, 0, 1])
    assert model.sample(rng=0).shape == (2, 1)
    assert model.sample((2, 3), rng=0).shape == (2, 3, 2, 1)
    assert (model.sample(9, rng=1) == model.sample(9, rng=1)).all()


def test_unlikely_signs_and_safe_gradients():
    assert PairSigns([20.0, 0.0], [1, 0]).log_prob([[-1]]) == pytest.approx(-40.0)
    model = PairSigns([1.0, 0.0, 2.0], [1, 0, 0])
    gradient = model.log_partition_gradient()
    gradient *= 0.0
    assert model.log_partition_gradient().any()
    graded = PairSigns([1.0, 0.0, 2.0], [2, 1, 0])
    with pytest.raises(ValueError, match="antisymmetric"):
        graded.log_prob(np.ones((3, 3)))


def test_only_pairs_can_be_measured():
    model = PairSigns([0.5, -0.2, 0.9], [1, 0, 1])
    for call in (model.expect, model.expect_gradient):
        for arguments in (["ap"], ["auc", [0, 1, 1]]):
            with pytest.raises(TypeError):
                call(*arguments)
    assert not isinstance(model, Distribution)
    assert model.expect("auc", [1, 0, 1]) == model.expect("auc")
    with pytest.raises(ValueError, match=r"shape \(..., 2, 1\), got \(3,\); over pairs a draw"):
        model.log_prob([0, 1, 2])
    with pytest.raises(ValueError, match=r"entries \+1 and -1"):
        model.log_prob([[0], [1]])


@given(query=strategies.labelled_queries(min_relevant=1, min_irrelevant=1, max_items=5, ties=False))
def test_gradients(query):
    for tilt in (None, "auc"):

        def model(s, t=tilt):
            return PairSigns(s, query.labels, scale=0.5, tilt=t, kappa=1.7)

        scores = query.scores
        for find, slopes in (
            (lambda s: model(s).log_partition(), model(scores).log_partition_gradient()),
            (lambda s: model(s).expect("auc"), model(scores).expect_gradient("auc")),
            (lambda s: model(s).expect("tau"), model(scores).expect_gradient("tau")),
        ):
            assert slopes == pytest.approx(naive.gradient(find, scores), abs=1e-7)


def test_it_says_what_it_is():
    model = PairSigns([0.5, -0.2], [1, 0], scale=2, tilt="auc", kappa=3, names=["a", "b"])
    assert (model.n_items, model.names) == (2, ("a", "b"))
    assert (model.scale, model.kappa, model.tilt) == (2.0, 3.0, measures.AUC())
    with pytest.raises(AttributeError, match="immutable"):
        model.scale = 1.0
    copied = pickle.loads(pickle.dumps(model))
    assert copied.log_partition() == model.log_partition()
    assert not copied.scores.flags.writeable
