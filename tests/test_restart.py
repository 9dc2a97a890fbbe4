"""The restart sampler: the law of Figure 2, the ladder, and what the sample covers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import accept_reject_law, enumerated_chance, outcomes, signs_of

from permdist.samplers import RestartSampler
from permdist.samplers.kernels.binding import bind
from permdist.samplers.restart import _blocks, flip_once


def rejection_free_law(order, labels):
    """Enumerate one step of the library's own code: sign vectors and their probabilities."""
    made = bind(flip_once, enumerated_chance(), lambda copy, _: copy)
    is_good = np.asarray(labels) > 0
    law = {}

    def run(oracle):
        moved = np.array(order)
        width = 2 * min(is_good.sum(), (~is_good).sum()) + 3
        sizes, weights = np.zeros(width, dtype=np.int64), np.zeros(width)
        blocks = _blocks.py_func(moved, is_good, sizes)
        blocks = made(moved, is_good, sizes, blocks, weights, oracle)
        again = np.zeros(width, dtype=np.int64)
        assert _blocks.py_func(moved, is_good, again) == blocks
        assert (again[:blocks] == sizes[:blocks]).all()
        assert sorted(moved.tolist()) == sorted(order)
        return signs_of(moved, labels)

    for probability, signs in outcomes(run):
        law[signs] = law.get(signs, 0.0) + probability
    return law


@pytest.mark.parametrize(("p", "m"), list(itertools.product((1, 2, 3), repeat=2)))
def test_no_step_is_rejected_and_the_law_is_that_of_figure_2(p, m):
    labels = [1] * p + [0] * m
    seen = set()
    for order in itertools.permutations(range(p + m)):
        signs = signs_of(order, labels)
        if signs in seen:
            continue
        seen.add(signs)
        expected = accept_reject_law(signs, p, m)
        found = rejection_free_law(order, labels)
        assert found.keys() == expected.keys()
        for key, chance in expected.items():
            assert found[key] == pytest.approx(chance, abs=1e-12)
    assert len(seen) == {(2, 2): 14, (3, 2): 46, (2, 3): 46, (3, 3): 230}.get((p, m), len(seen))


@given(st.integers(1, 6), st.integers(1, 12), st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_samples_are_rankings_with_the_losses_they_claim(p, m, seed, stride):
    labels = np.random.default_rng(seed).permutation([1] * p + [0] * m)
    sampler = RestartSampler("ndcg", rungs=5, skew=-1.0, walk=7, stride=stride)
    sample = sampler.sample(labels, 40, rng=seed)
    assert sample.orders.shape == (40, p + m)
    assert (np.sort(sample.orders, axis=1) == np.arange(p + m)).all()
    np.testing.assert_allclose(sample.delta, 1.0 - sampler.measure(sample.orders, labels))
    again = sampler.sample(labels, 40, rng=seed)
    np.testing.assert_array_equal(sample.orders, again.orders)
    assert not sample.orders.flags.writeable
    starts = sample.delta[::7]
    np.testing.assert_allclose(starts, sample.ladder[sample.rung[::7]], atol=1e-12)


@given(st.integers(1, 6), st.integers(1, 12), st.integers(2, 12))
def test_the_ladder_goes_from_the_best_to_the_worst(p, m, rungs):
    labels = np.array([1] * p + [0] * m)
    for measure in ("ap", "ndcg", "auc", "rr"):
        orders, losses = RestartSampler(measure, rungs=rungs).ladder(labels)
        assert (np.diff(losses) >= -1e-12).all()
        assert losses[0] == pytest.approx(0.0, abs=1e-12)
        assert (labels[orders[0]][:p] == 1).all()
        assert (labels[orders[-1]][m:] == 1).all()
    gaps = np.diff(RestartSampler("auc", rungs=min(rungs, p * m + 1)).ladder(labels)[1])
    assert gaps.max() <= 1.0 / (min(rungs, p * m + 1) - 1) + 1.0 / (p * m) + 1e-9


def test_skew_chooses_the_restart_states():
    labels = np.array([1] * 3 + [0] * 20)
    sampler = RestartSampler("ap", rungs=2, skew=-np.log(9.0), walk=1)
    sample = sampler.sample(labels, 20_000, rng=0)
    worst = sample.ladder[1]
    chance = 9.0**-worst / (1.0 + 9.0**-worst)
    assert (sample.rung == 1).mean() == pytest.approx(chance, abs=5 * np.sqrt(0.25 / 20_000))
    assert sample.coverage().sum() == pytest.approx(1.0)
    assert "2 restart states" in repr(sample)


def test_arrangements_inside_blocks_are_uniform():
    labels = np.array([1, 1, 0, 0, 0])
    sample = RestartSampler("ap", rungs=2, skew=0.0, walk=4, stride=1).sample(labels, 60_000, rng=1)
    goods = sample.orders[labels[sample.orders] == 1].reshape(-1, 2)
    assert (goods[:, 0] == 0).mean() == pytest.approx(0.5, abs=0.01)
    bads = sample.orders[labels[sample.orders] == 0].reshape(-1, 3)
    for item in (2, 3, 4):
        assert (bads[:, 0] == item).mean() == pytest.approx(1 / 3, abs=0.01)


def test_refusals():
    with pytest.raises(ValueError, match="expected good and bad items, got one class"):
        RestartSampler().sample([1, 1], 3)
    with pytest.raises(ValueError, match="rungs: expected at least 2"):
        RestartSampler(rungs=1)
    with pytest.raises(ValueError, match="skew: expected finite"):
        RestartSampler(skew=np.nan)
    with pytest.raises(ValueError, match="size: expected at least 1"):
        RestartSampler().sample([1, 0], 0)


def test_graded_restart_states_have_their_losses():
    labels = np.array([3, 2, 1, 0, 0, 0, 0, 0])
    sampler = RestartSampler("ndcg", rungs=3, skew=0.0, walk=1)
    sample = sampler.sample(labels, 500, rng=0)
    np.testing.assert_allclose(sample.delta, sample.ladder[sample.rung], atol=1e-12)
    worst = 1.0 - sampler.measure(np.argsort(labels, kind="stable"), labels)
    assert sample.ladder[-1] == pytest.approx(worst)


def test_losses_beyond_one_are_covered():
    sample = RestartSampler("tau", skew=0.0).sample([1, 1, 0, 0, 0], 200, rng=0)
    assert sample.coverage().sum() == pytest.approx(1.0)
    assert "of [0, 2]" in repr(sample)
