"""Every kernel, by its own code with chance enumerated, leaves every target exactly as it is."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from naive import transition_matrix
from scipy.sparse.csgraph import connected_components

from permdist import GaussianScores, GoodBad, PlackettLuce, WeightedOrders
from permdist.rankings import enumerate_orders
from permdist.samplers.kernels import KERNELS, advance_with, mixture_of, parts_of
from permdist.samplers.kernels.binding import plain_advancer
from permdist.targets import target_of


def scores(n, spread=0.7):
    return spread * np.random.default_rng(n).normal(size=n)


def excluding(orders):
    """Favor some orders, and forbid that item 0 comes last."""
    weights = np.cos(orders @ np.arange(1.0, orders.shape[1] + 1))
    return np.where(orders[:, -1] == 0, -np.inf, weights)


LABELS = {3: [1, 0, 0], 4: [1, 0, 1, 0], 5: [1, 0, 0, 1, 0]}
TARGETS = {
    "good-bad": lambda n: GoodBad(scores(n), LABELS[n]),
    "good-bad tilted": lambda n: GoodBad(scores(n), LABELS[n], tilt="ap", kappa=2.0),
    "graded": lambda n: GoodBad(scores(n), [2, 0, 1, 0, 2][:n], tilt="ndcg", kappa=1.5),
    "interleavings": lambda n: GoodBad(scores(n), LABELS[n], space="interleavings", tilt="rr"),
    "plackett-luce": lambda n: PlackettLuce(scores(n)),
    "plackett-luce, wide": lambda n: PlackettLuce([0.3, 0.0, -350.0, 0.1, -350.5][:n]),
    "gaussian": lambda n: GaussianScores(scores(n)),
    "pairs": lambda n: WeightedOrders.from_pairs(np.random.default_rng(n).normal(size=(n, n))),
    "function": lambda n: WeightedOrders(n, lambda orders: np.sin(orders @ np.arange(n))),
    "function with zeros": lambda n: WeightedOrders(n, excluding),
}


def cases():
    for target in TARGETS:
        for name in KERNELS:
            if name == "block":  # draws real numbers: see test_block.py
                continue
            if KERNELS[name].needs_levels and target not in (
                "good-bad",
                "good-bad tilted",
                "graded",
            ):
                continue
            for n in (
                (3, 4) if target in ("gaussian", "function", "function with zeros") else (4, 5)
            ):
                yield target, name, n


@pytest.mark.parametrize(("target", "name", "n"), list(cases()))
def test_the_target_is_stationary(target, name, n):
    dist = TARGETS[target](n)
    orders = enumerate_orders(n)
    chances = np.exp(dist.log_prob(orders))
    orders, chances = orders[chances > 0], chances[chances > 0]
    matrix = transition_matrix(target_of(dist), name, orders)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    assert np.abs(chances @ matrix - chances).max() < 1e-12
    n_parts, _ = connected_components(matrix > 0, connection="strong")
    assert n_parts == 1, "the chain is not irreducible"


@pytest.mark.parametrize(
    ("target", "name"),
    [(target, "adjacent+relocation") for target in TARGETS if "function" not in target]
    + [("good-bad tilted", name) for name in KERNELS],
)
def test_compiled_and_plain_code_take_the_same_steps(target, name):
    dist = TARGETS[target](4)
    found, parts = target_of(dist), parts_of(name)
    plain = plain_advancer(found, [KERNELS[part].function for part in parts])
    runs = []
    for advance in (advance_with(parts, found), plain):
        orders, values, moved = steps(advance, found, parts, 40, 3, seed=3)
        np.testing.assert_allclose(values, _log_weight(dist, orders), rtol=1e-10, atol=1e-10)
        runs.append((orders, moved))
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    np.testing.assert_array_equal(runs[0][1], runs[1][1])


def steps(advance, target, parts, draws, thin, seed):
    rng = np.random.default_rng(seed)
    state = target.state_at(target.random_start(rng))
    orders, values = np.empty((draws, target.n_items), np.int32), np.empty(draws)
    moved = np.zeros((len(parts), 2), np.int64)
    inputs = mixture_of(parts), target.constants, state, rng, 0, draws, thin
    advance(*inputs, orders, values, moved)
    return orders, values, moved


def _log_weight(dist, orders):
    return dist.log_weight(orders) if hasattr(dist, "log_weight") else dist.log_prob(orders)


@numba.njit
def compiled_weight(orders):
    result = np.zeros(len(orders))
    for row in range(len(orders)):
        for k in range(orders.shape[1]):
            result[row] -= 0.4 * abs(orders[row, k] - k)
    return result


@numba.njit
def compiled_swap(order, k):
    a, b = order[k], order[k + 1]
    return 0.4 * (abs(a - k) + abs(b - k - 1) - abs(b - k) - abs(a - k - 1))


@pytest.mark.parametrize("swap", [None, compiled_swap])
@pytest.mark.parametrize("name", ["adjacent", "transposition", "relocation"])
def test_a_users_compiled_functions_take_the_steps_of_plain_ones(name, swap):
    runs = []
    plain_swap = None if swap is None else swap.py_func
    for log_weight, change in (
        (compiled_weight, swap),
        (compiled_weight.py_func, plain_swap),
    ):
        dist = WeightedOrders(6, log_weight, swap=change)
        target = target_of(dist)
        assert target.is_compiled == (log_weight is compiled_weight)
        parts = parts_of(name)
        out, values, _ = steps(advance_with(parts, target), target, parts, 30, 2, seed=0)
        np.testing.assert_allclose(values, dist.log_weight(out), atol=1e-12)
        runs.append(out)
    np.testing.assert_array_equal(*runs)
