"""The block kernel: all items of a class move at once, and the distribution stays as it is."""

from __future__ import annotations

import numpy as np
import pytest
from naive import class_moves, divide_by_quadrature, division_density, gap_counts

from permdist import GoodBad
from permdist.diagnostics import compare_to_exact
from permdist.rankings import enumerate_orders
from permdist.samplers import run_chains
from permdist.samplers.auto import choose_kernel, default_thin, work
from permdist.targets import target_of

SCORES = np.array([0.3, 0.1, -0.2, 0.25, -0.1])
MODELS = {
    "two classes": GoodBad(SCORES[:4], [1, 0, 1, 0]),
    "two and three": GoodBad(2.0 * SCORES, [1, 0, 0, 1, 0]),
    "one item": GoodBad(SCORES[:4], [0, 0, 1, 0]),
    "graded": GoodBad(SCORES[:4], [2, 0, 1, 0]),
    "tilted": GoodBad(SCORES[:4], [1, 0, 1, 0], tilt="ap", kappa=3.0),
    "graded and tilted": GoodBad(SCORES[:4], [0, 2, 1, 2], tilt="ndcg", kappa=2.0),
    "wide": GoodBad([300.0, 0.1, 0.0, -200.0], [1, 0, 1, 0]),
}


def fixed(lengths):
    """Replace a random division of the interval by a given one."""

    def divide(_oracle, counts, n):
        assert n == len(lengths)
        counts[:n] = lengths

    return divide


@pytest.mark.parametrize("name", MODELS)
def test_the_distribution_is_stationary_for_every_division(name):
    """With the lengths of the gaps as a part of the state, chance is finite and can be listed."""
    model = MODELS[name]
    target, orders = target_of(model), enumerate_orders(model.n_items)
    chances, levels = np.exp(model.log_prob(orders)), target.constants.levels
    rng = np.random.default_rng(0)
    for level in range(levels.max() + 1):
        lengths = rng.dirichlet(np.ones((levels != level).sum() + 1))
        counts = [gap_counts(order, levels, level) for order in orders]
        joint = chances * [division_density(lengths, one) for one in counts]
        matrix = class_moves(target, orders, level, fixed(lengths))
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
        assert np.abs(joint @ matrix - joint).max() < 1e-12 * joint.max()


@pytest.mark.parametrize(
    ("labels", "nodes", "error"), [([1, 0, 0], 14, 1e-12), ([1, 0, 1, 0], 5, 1e-6)]
)
def test_the_transition_matrix_leaves_the_distribution_as_it_is(labels, nodes, error):
    model = GoodBad(0.5 * SCORES[: len(labels)], labels)
    target, orders = target_of(model), enumerate_orders(len(labels))
    chances = np.exp(model.log_prob(orders))
    moves = [class_moves(target, orders, c, divide_by_quadrature(nodes)) for c in (0, 1)]
    matrix = moves[0] @ moves[1]  # a step is one class after the other
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    assert np.abs(chances @ matrix - chances).max() < error
    assert matrix.min() > 0.0  # every order can follow every other one


def test_steps_have_the_frequencies_of_the_transition_matrix():
    model = GoodBad(0.5 * SCORES[:3], [1, 0, 0])
    target, orders = target_of(model), enumerate_orders(3)
    moves = [class_moves(target, orders, c, divide_by_quadrature(14)) for c in (0, 1)]
    chains = run_chains(model, 40_000, 10, kernel="block", chains=1, rng=0)
    numbers = chains.orders[0] @ [9, 3, 1]
    known = orders @ [9, 3, 1]
    found = np.zeros((6, 6))
    at = np.argsort(known)[np.searchsorted(np.sort(known), numbers)]
    np.add.at(found, (at[:-1], at[1:]), 1.0)
    expected = found.sum(axis=1, keepdims=True) * (moves[0] @ moves[1])
    assert ((found - expected) ** 2 / expected).sum() < 70.0  # 30 degrees of freedom: p = 5e-5


def test_pairs_of_a_longer_query():
    rng = np.random.default_rng(2)
    model = GoodBad(0.2 * rng.normal(size=13), rng.permutation([0] * 6 + [1] * 4 + [2] * 3))
    chains = run_chains(model, 5000, 100, kernel="block", rng=0)
    assert compare_to_exact(chains).worst_score < 5.0
    place = np.argsort(chains.orders, axis=-1)
    found = (place[..., :, None] < place[..., None, :]).mean(axis=(0, 1))
    assert np.abs(found - model.pairwise()).max() < 0.02


def test_a_run_continues_to_the_bit(tmp_path):
    model = GoodBad(np.linspace(-0.3, 0.3, 30), np.arange(30) % 3, tilt="ap", kappa=2.0)
    options = {"kernel": "block", "chains": 2, "rng": 3}
    run_chains(model, 40, 5, checkpoint=tmp_path / "run", **options)
    resumed = run_chains(model, 300, 5, checkpoint=tmp_path / "run", **options)
    whole = run_chains(model, 300, 5, **options)
    np.testing.assert_array_equal(resumed.orders, whole.orders)
    np.testing.assert_array_equal(resumed.log_weight, whole.log_weight)


def test_auto_chooses_it_where_classes_are_large():
    model = GoodBad(0.05 * np.random.default_rng(0).normal(size=60), np.arange(60) < 12)
    target = target_of(model)
    assert choose_kernel(target, np.random.default_rng(0)) == "block"
    assert default_thin("block", 60) == 1
    few, many = (target_of(GoodBad(np.zeros(60), np.arange(60) < p)) for p in (2, 30))
    assert work(few, "block", 1.0) < work(many, "block", 1.0)
