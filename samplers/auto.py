"""Which kernel to use: try them all for a moment, keep the one with the most effective draws."""

from __future__ import annotations

import numpy as np

from permdist._typing import AnyIntArray, FloatArray, IntArray
from permdist.rankings import order_to_ranks
from permdist.samplers.kernels import KERNELS, advancer, mixture_of, parts_of
from permdist.samplers.targets import COSTS, Problem

MOST_WORK = 1e8  # of a trial, in nanoseconds or about
DRAWS = 2000
MOST_ITEMS = 300
INDEPENDENT = 0.5  # effective draws by draws above which a trial was longer than it need be


def applicable(problem: Problem) -> list[str]:
    """Name the kernels that can be used for a problem."""
    return [name for name in KERNELS if problem.has_levels or not KERNELS[name].needs_levels]


def default_thin(name: str, n_items: int) -> int:
    """Give the number of steps between draws that makes about one sweep over the items."""
    sweeps = [KERNELS[part].sweep for part in parts_of(name)]
    return max(1, round(n_items * float(np.mean(sweeps))))


def choose_kernel(problem: Problem, rng: np.random.Generator) -> str:
    """Choose the kernel with the most effective draws for the same work.

    Work is counted, not timed, so that the same seed makes the same choice on every machine. All
    kernels start from the same order, which short runs of each have warmed up; those that come
    close to the best get a second, longer trial.
    """
    names = applicable(problem)
    if problem.dist.n_items < 3:
        return "adjacent"
    if not problem.compiled:  # a trial would take longer than most runs
        return "relocation"
    most = MOST_WORK
    order = problem.random_start(rng)
    for name in names:
        order = _try(problem, name, order, rng, most / 8)[1]
    rates = {name: _try(problem, name, order, rng, most)[0] for name in names}
    best = max(rates.values())
    close = [name for name in names if rates[name] > 0.25 * best]
    if len(close) > 1:
        rates = {name: _try(problem, name, order, rng, 5 * most)[0] for name in close}
    return max(close, key=lambda name: rates[name])


def work(problem: Problem, name: str, share: float) -> float:
    """Give the mean cost of a step if so large a share of steps moves."""
    peeks, swaps, other = KERNELS[name].operations(problem.dist.n_items, share)
    for_peek, for_swap = COSTS[problem.target.kind]
    return peeks * for_peek + swaps * for_swap + other


def _try(
    problem: Problem, name: str, order: IntArray, rng: np.random.Generator, most: float
) -> tuple[float, IntArray]:
    """Run a kernel for so much work, or less if draws are nearly independent by then.

    Gives effective draws by work, and the last order.
    """
    n = problem.dist.n_items
    state = problem.start(order)
    orders, values = np.empty((DRAWS, n), dtype=np.int32), np.empty(DRAWS)
    thin = max(1, int(most / work(problem, name, 0.5) / DRAWS))
    while True:
        moved = np.zeros((len(KERNELS), 2), dtype=np.int64)
        inputs = mixture_of({name: 1.0}), problem.target, state, rng, 0, DRAWS, thin
        advancer(problem)(*inputs, orders, values, moved)
        tried, went = moved.sum(axis=0)
        effective = _worst_ess(orders, values)
        if effective <= INDEPENDENT * DRAWS or thin == 1:
            done = tried * work(problem, name, went / tried)
            return effective / done, orders[-1].astype(np.int64)
        thin = max(1, thin // 4)


def _worst_ess(orders: AnyIntArray, values: FloatArray) -> float:
    """Estimate the effective number of draws for whatever mixes worst."""
    ranks = order_to_ranks(orders).astype(float)
    # Ranks of some items, the log-weight, and two numbers that see the whole ranking.
    items = np.unique(np.linspace(0, ranks.shape[1] - 1, MOST_ITEMS).astype(int))
    whole = ranks @ np.stack([ranks[0], ranks[-1]], axis=1)
    table = np.column_stack([ranks[:, items], whole, values])
    table = table[:, np.ptp(table, axis=0) > 0]
    return min(map(_ess, table.T), default=0.0)


def _ess(values: FloatArray) -> float:
    """Divide the draws by their autocorrelation time, summed until pairs of it turn negative."""
    centered = values - values.mean()
    size = 1 << (2 * len(values) - 1).bit_length()
    power = np.abs(np.fft.rfft(centered, size)) ** 2
    covariance = np.fft.irfft(power, size)[: len(values) // 2 * 2]
    pairs = covariance.reshape(-1, 2).sum(axis=1) / covariance[0]
    end = int(np.argmax(pairs <= 0.0)) if (pairs <= 0.0).any() else len(pairs)
    time = 2.0 * np.minimum.accumulate(pairs[:end]).sum() - 1.0
    return len(values) / max(time, 1.0 / np.log10(len(values)))
