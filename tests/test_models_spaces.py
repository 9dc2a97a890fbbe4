"""Every space's sums against enumeration, their gradients, and what makes losses convex."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from permdist.measures import parse
from permdist.models.batch import Batch
from permdist.models.spaces import SPACES, parse_space
from permdist.rankings import enumerate_orders
from permdist.samplers import RestartSampler

BINARY = [[1, 0, 0, 1], [0, 1, 0], [0, 1, 1, 0, 0], [1, 0]]
GRADED = [[2, 0, 1, 0], [1, 0, 0], [2, 1, 1, 0, 2], [2, 1, 2]]


def make_batch(labels, scaled=False):
    sizes = [len(label) for label in labels]
    scale = np.full(len(labels), 0.8)
    if scaled:
        scale = 0.5 + np.arange(len(labels)) / 3
    return Batch(np.concatenate(labels), np.concatenate([[0], np.cumsum(sizes)]), scale)


def best_exponent(score, label, scale):
    order = np.argsort(-np.asarray(label), kind="stable")
    return naive.pair_exponent(score, label, order.tolist(), scale)


def listed(score, label, scale, orders, measure, kappa):
    """Sum over a list of orders: the log-sum relative to the best, and the mean gain."""
    exponents = np.array([naive.pair_exponent(score, label, o, scale) for o in orders])
    gains = np.array([float(measure(np.array(o), label)) for o in orders])
    exponents -= best_exponent(score, label, scale)
    chances = np.exp(exponents - logsumexp(exponents))
    return logsumexp(exponents + kappa * (1.0 - gains)), chances @ gains


def merged(classes):
    """All ways to merge sequences."""
    if not any(classes):
        yield []
    for number, members in enumerate(classes):
        if members:
            rest = [*classes[:number], members[1:], *classes[number + 1 :]]
            for tail in merged(rest):
                yield [members[0], *tail]


def check(space, scores, expected, kappa, tolerance=1e-10):
    """Compare with expected (log-sum, mean gain) of each query, and gradients with quotients."""
    batch = space.batch
    values, gradient = space.log_sums(scores, kappa)
    gains, by_gains = space.mean_gains(scores)
    np.testing.assert_allclose(values, [e[0] for e in expected], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(gains, [e[1] for e in expected], rtol=tolerance, atol=tolerance)
    slope = naive.gradient(lambda s: space.log_sums(s, kappa)[0].sum(), scores)
    np.testing.assert_allclose(gradient, slope, atol=1e-6)
    weights = 1.0 + np.arange(len(batch))
    slope = naive.gradient(lambda s: space.mean_gains(s)[0] @ weights, scores)
    np.testing.assert_allclose(by_gains * weights[batch.query_of], slope, atol=1e-6)


CASES = [(labels, scaled) for labels in (BINARY, GRADED) for scaled in (False, True)]


@pytest.mark.parametrize(("labels", "scaled"), CASES)
@pytest.mark.parametrize("name", ["ap", "ndcg", "ndcg@2", "auc", "rr", "p@2"])
@pytest.mark.parametrize("kappa", [0.0, 1.0, 7.0])
def test_interleavings(labels, scaled, name, kappa):
    batch, measure = make_batch(labels, scaled), parse(name)
    scores = np.random.default_rng(0).normal(size=len(batch.labels))
    expected = []
    for q, (a, b) in enumerate(batch.bounds):
        score, label = scores[a:b], batch.labels[a:b]
        ranked = np.argsort(-score, kind="stable")
        classes = [[int(i) for i in ranked if label[i] == g] for g in np.unique(label)]
        orders = list(merged(classes))
        expected.append(listed(score, label, batch.scale[q], orders, measure, kappa))
    check(parse_space("interleavings").sums(batch, measure), scores, expected, kappa)


@pytest.mark.parametrize(("labels", "scaled"), [(BINARY, False), (BINARY, True), (GRADED, False)])
@pytest.mark.parametrize("kappa", [0.0, 3.0])
def test_restarts(labels, scaled, kappa):
    batch, measure = make_batch(labels, scaled), parse("ap")
    scores = np.random.default_rng(2).normal(size=len(batch.labels))
    space = parse_space("restart[sample_size=12]").sums(batch, measure, random_state=7)
    streams, expected = batch.streams(7), []
    for q, (a, b) in enumerate(batch.bounds):
        score, label = scores[a:b], batch.labels[a:b]
        drawn = RestartSampler(measure).sample(label - label.min(), 12, streams[q]).orders
        orders = [np.argsort(-label, kind="stable").tolist(), *drawn.tolist()]
        expected.append(listed(score, label, batch.scale[q], orders, measure, kappa))
    check(space, scores, expected, kappa)


@pytest.mark.parametrize("kappa", [0.0, 1.0, 5.0])
def test_pairs(kappa):
    batch, measure = make_batch([[1, 0, 0, 1], [0, 1, 0]], True), parse("auc")
    scores = np.random.default_rng(3).normal(size=len(batch.labels))
    expected = []
    for q, (a, b) in enumerate(batch.bounds):
        score, label = scores[a:b], batch.labels[a:b]
        rows = list(naive.sign_vectors(score, label, batch.scale[q], kappa=0.0))
        exponents = np.array([row[1] for row in rows])
        exponents = exponents - best_exponent(score, label, batch.scale[q])
        shares = np.array([row[2] for row in rows])
        chances = np.exp(exponents - logsumexp(exponents))
        expected.append((logsumexp(exponents + kappa * (1 - shares)), chances @ shares))
    check(parse_space("pairs").sums(batch, measure), scores, expected, kappa)


def spaces_of(batch, name):
    yield parse_space("interleavings").sums(batch, parse(name))
    yield parse_space("restart[sample_size=20]").sums(batch, parse(name), random_state=0)
    yield parse_space("orders").sums(batch, parse(name))
    yield parse_space("valid-signs").sums(batch, parse(name))
    if name == "auc":
        yield parse_space("pairs").sums(batch, parse(name))


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 20.0]), st.sampled_from(["ap", "auc"]))
def test_log_sums_are_convex_and_bound_what_they_should(seed, kappa, name):
    rng = np.random.default_rng(seed)
    batch = make_batch(BINARY if seed % 2 else GRADED, True)
    a, b = rng.normal(size=(2, len(batch.labels))) * rng.choice([0.1, 1.0, 5.0])
    for space in spaces_of(batch, name):
        at_a, at_b = space.log_sums(a, kappa)[0], space.log_sums(b, kappa)[0]
        for share in (0.25, 0.5, 0.8):
            between = space.log_sums(share * a + (1 - share) * b, kappa)[0]
            assert (between <= share * at_a + (1 - share) * at_b + 1e-9).all()
        # Jensen: L1 + kappa L2 <= L.
        logs, gains = space.log_sums(a, 0.0)[0], space.mean_gains(a)[0]
        assert (logs + kappa * (1.0 - gains) <= at_a + 1e-9).all()


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 30.0]))
def test_the_structured_hinge_lies_below_and_is_the_limit(seed, kappa):
    rng = np.random.default_rng(seed)
    batch, measure = make_batch(BINARY), parse("ap")
    scores = rng.normal(size=len(batch.labels))
    values = parse_space("interleavings").sums(batch, measure).log_sums(scores, kappa)[0]
    for q, (a, b) in enumerate(batch.bounds):
        score, label = scores[a:b], batch.labels[a:b]
        orders = enumerate_orders(b - a)
        exponents = [naive.pair_exponent(score, label, o, 0.8) for o in orders.tolist()]
        losses = 1.0 - measure(orders, label)
        hinge = (np.array(exponents) + kappa * losses).max() - best_exponent(score, label, 0.8)
        assert values[q] >= hinge - 1e-9
        patterns = len(set(map(tuple, label[orders].tolist())))
        assert values[q] <= hinge + np.log(patterns) + 1e-9


@pytest.mark.parametrize("name", SPACES)
def test_same_bits_on_any_number_of_threads(name):
    rng = np.random.default_rng(0)
    labels = [np.r_[1, 0, rng.integers(0, 2, size=rng.integers(1, 20))] for _ in range(40)]
    batch = make_batch([list(map(int, label)) for label in labels], True)
    scores = rng.normal(size=len(batch.labels))
    found = []
    for threads in (1, 2, 5):
        space = parse_space(SMALL.get(name, name))
        space = space.sums(batch, parse("auc"), n_jobs=threads, random_state=0)
        found.append([*space.log_sums(scores, 1.0), *space.mean_gains(scores)])
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


SMALL = {"orders": "orders[exact=10,orders=4]", "valid-signs": "valid-signs[exact=8,orders=3]"}


def test_pairs_need_auc():
    space = parse_space("pairs").sums(make_batch(BINARY), parse("ap"))
    space.log_sums(np.zeros(14), 0.0)
    with pytest.raises(ValueError, match="over pairs only AUC factorizes"):
        space.log_sums(np.zeros(14), 1.0)
    with pytest.raises(ValueError, match="over pairs only AUC factorizes"):
        space.mean_gains(np.zeros(14))
