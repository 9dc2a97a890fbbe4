"""The fast engines for interleavings against the general lattice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from permdist import GoodBad
from permdist.measures import parse
from permdist.sums.exponential import exp_down

MEASURES = ("auc", "ap", "ndcg", "ndcg@3", "p@2", "rr", "wta", "err", "tau")


def both_ways(model, measure):
    """Give log-partition, its gradient, expectation and its gradient by both programs."""
    steps = model._shape.steps_of(parse(measure), model.labels)
    lattice = model._lattice
    offset = parse(measure).offset(*np.unique(model.labels, return_counts=True))
    fast = (
        model.log_partition(),
        model.log_partition_gradient(),
        float(model.expect(measure)),
        model.expect_gradient(measure),
    )
    slow = (
        lattice.log_partition + model._constant + model._reference,
        model._by_scores(lattice.flows),
        offset + lattice.expect(steps),
        model._by_scores(lattice.expect_gradient(steps)),
    )
    return fast, slow


@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=4),
    st.sampled_from([0, 1]),
    st.sampled_from([0.01, 1.0, 30.0]),
    st.sampled_from([0.0, 1.0, 40.0]),
    st.integers(0, 2**32 - 1),
)
def test_equals_the_general_lattice(sizes, lowest, spread, kappa, seed):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(lowest + np.arange(len(sizes)), sizes))
    scores = spread * rng.normal(size=sum(sizes))
    for measure in MEASURES:
        model = GoodBad(scores, labels, space="interleavings", tilt=measure, kappa=kappa, scale=0.7)
        for fast, slow in zip(*both_ways(model, measure), strict=True):
            np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("p", "m"), [(300, 400), (400, 300), (1, 700), (700, 1)])
@pytest.mark.parametrize("spread", [1e-3, 5.0])
def test_large_lattices_neither_overflow_nor_underflow(p, m, spread):
    scores = spread * np.random.default_rng(0).normal(size=p + m)
    labels = np.repeat([1, 0], [p, m])
    model = GoodBad(scores, labels, space="interleavings", tilt="ap", kappa=3.0)
    for fast, slow in zip(*both_ways(model, "ap"), strict=True):
        np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-9)


def test_exponential_is_right_to_the_last_digit():
    x = -np.geomspace(1e-18, 707.9, 20_000)
    computed = np.array([exp_down(value) for value in x])
    np.testing.assert_allclose(computed, np.exp(x), rtol=5e-16)
    assert exp_down(0.0) == 1.0
    assert exp_down(-709.0) == exp_down(-1e300) == 0.0


def test_many_classes_neither_overflow_nor_underflow():
    labels = np.repeat([0, 1, 2], [700, 2, 2])
    model = GoodBad(np.zeros(704), labels, space="interleavings")
    expected = gammaln(705) - gammaln(701) - 2 * gammaln(3)
    assert model.log_partition() == pytest.approx(expected, rel=1e-13)
