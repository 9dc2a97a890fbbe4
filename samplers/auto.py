"""Which kernel to use: try them all for a moment, keep the one with the most effective draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from permdist.rankings import order_to_ranks
from permdist.samplers.kernels import KERNELS, advancer, mixture_of
from permdist.samplers.targets import Problem

PILOT_WORK = 3e7  # in the kernels' units: about this many nanoseconds each
PILOT_DRAWS = 400


def applicable(problem: Problem) -> list[str]:
    """Name the kernels that can be used for a problem."""
    return [name for name in KERNELS if problem.has_levels or not KERNELS[name].needs_levels]


def default_thin(name: str, n_items: int) -> int:
    """Give the number of steps between draws that makes about one sweep over the items."""
    parts = [KERNELS[part] for part in name.split("+")]
    return max(1, round(n_items * float(np.mean([part.sweep for part in parts]))))


def work(name: str, n_items: int) -> float:
    """Give the work of a step."""
    return KERNELS[name].fixed + KERNELS[name].growing * n_items


def choose_kernel(problem: Problem, rng: np.random.Generator) -> str:
    """Choose the kernel with the most effective draws for the same work.

    Work is counted, not timed, so that the same seed makes the same choice on every machine. All
    kernels start from the same order, which a first run of each has warmed up.
    """
    names = applicable(problem)
    if problem.dist.n_items < 3:
        return "adjacent"
    budget = PILOT_WORK if problem.compiled else PILOT_WORK / 1000
    order = problem.random_start(rng)
    for name in names:
        order = _pilot(problem, name, order, rng, budget / 4)[0][-1]
    best, most = names[0], -np.inf
    for name in names:
        orders, values = _pilot(problem, name, order, rng, budget)
        efficiency = _worst_ess(orders, values)
        if efficiency > most:
            best, most = name, efficiency
    return best


def _pilot(problem: Problem, name: str, order: Any, rng: np.random.Generator, budget: float) -> Any:
    n = problem.dist.n_items
    steps = max(PILOT_DRAWS, int(budget / work(name, n)))
    thin = max(1, steps // PILOT_DRAWS)
    state = problem.start(order)
    orders, values = np.empty((PILOT_DRAWS, n), dtype=np.int32), np.empty(PILOT_DRAWS)
    moved = np.zeros((len(KERNELS), 2), dtype=np.int64)
    inputs = mixture_of(name), problem.target, state, rng, 0, PILOT_DRAWS, thin
    advancer(problem)(*inputs, orders, values, moved)
    return orders, values


def _worst_ess(orders: Any, values: Any) -> float:
    """Give the effective number of draws for whatever mixes worst."""
    import arviz

    ranks = order_to_ranks(orders).astype(float)
    # Ranks of some items, the log-weight, and two numbers that see the whole ranking.
    items = np.unique(np.linspace(0, ranks.shape[1] - 1, 16).astype(int))
    whole = ranks @ np.stack([ranks[0], ranks[-1]], axis=1)
    table = np.column_stack([ranks[:, items], whole, values])
    table = table[:, np.ptp(table, axis=0) > 0]
    if table.shape[1] == 0:
        return 0.0
    return min(float(arviz.ess(column[None, :])) for column in table.T)
