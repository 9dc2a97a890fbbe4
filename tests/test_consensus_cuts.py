"""Cuts of the linear ordering problem: violated where they were found, and by no order."""

import numpy as np
import pytest
from scipy.optimize import linprog

from permdist import rankings
from permdist.consensus.cuts import odd_circles
from permdist.consensus.program import _State


def pairs_of(orders):
    """Return whether i is above j for all pairs i < j of each order."""
    ranks = rankings.order_to_ranks(orders)
    i, j = np.triu_indices(orders.shape[1], 1)
    return (ranks[:, i] < ranks[:, j]).astype(float)


@pytest.mark.parametrize("seed", range(12))
def test_no_order_violates_a_cut(seed):
    n, rng = 6, np.random.default_rng(seed)
    state = _State(np.zeros((n, n)), np.arange(n), 0.0, None)
    if seed % 2:  # half numbers, as at corners of the relaxation
        x = rng.choice([0.0, 0.5, 0.5, 1.0], size=15)
    else:
        x = rng.dirichlet(np.full(720, 0.01)) @ pairs_of(rankings.enumerate_orders(n))
        x = np.clip(x + 0.2 * rng.standard_normal(15), 0.0, 1.0)
    found = odd_circles(state.full(x), state.place, 100)
    every = pairs_of(rankings.enumerate_orders(n))
    assert (found.matrix @ every.T <= found.limits[:, None]).all()
    assert (found.matrix @ x > found.limits).all()


def relaxation():
    """Solve the fence of six items, the smallest problem that triangles do not solve."""
    margins = np.zeros((6, 6))
    margins[:3, 3:] = 2.0 * np.eye(3) - 1.0  # item i above i + 3, all others of these below
    state = _State(margins - margins.T, np.arange(6), 0.0, None)
    state.add(np.where(state.margins > 0.0, 1.0, 0.0))
    while True:
        matrix, limits = state.constraints()
        found = linprog(state.costs, matrix, limits, bounds=(0, 1))
        if not state.add(state.full(found.x)):
            return state, found.x


def test_a_corner_of_the_relaxation_is_cut_off():
    state, x = relaxation()
    assert (np.abs(x - 0.5) < 0.4).any()
    found = odd_circles(state.full(x), state.place, 10)
    assert len(found.limits) > 0
    assert (found.matrix @ x > found.limits + 0.1).all()
    orders = pairs_of(rankings.enumerate_orders(6))
    assert (found.matrix @ orders.T <= found.limits[:, None]).all()
    assert len((found + found).limits) == len(found.limits)  # each once


def test_an_order_has_no_cuts():
    state = _State(np.zeros((5, 5)), np.arange(5), 0.0, None)
    assert not len(odd_circles(state.full(np.ones(10)), state.place, 10).limits)
