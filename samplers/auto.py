"""The choice of a kernel: try all of them briefly, keep the one with the most effective draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.rankings import order_to_ranks
from permdist.samplers.kernels import KERNELS, advance_with, mixture_of, parts_of

if TYPE_CHECKING:
    from permdist._typing import AnyIntArray, FloatArray, IntArray
    from permdist.targets import Target

MOST_WORK = 1e8  # of a trial, in estimated nanoseconds
LEAST_WORK = 1e7  # a shorter trial tells little
SHARE = 0.3  # of the planned run that trials may take
DRAWS = 2000
FEWEST = 100  # draws of a trial; a kernel that is too slow even for these is not tried
MOST_ITEMS = 300
INDEPENDENT = 0.5  # effective draws per draw above which a trial is longer than necessary


def applicable(target: Target) -> list[str]:
    """List the kernels that can be used for a target."""
    return [
        name
        for name in KERNELS
        if (target.has_levels or not KERNELS[name].needs_levels)
        and (target.has_pair_scores or not KERNELS[name].needs_pair_scores)
    ]


def default_thin(name: str, n_items: int) -> int:
    """Return the number of steps between draws that make about one sweep over the items."""
    sweeps = [KERNELS[part].sweep for part in parts_of(name)]
    return max(1, round(n_items * float(np.mean(sweeps))))


def choose_kernel(target: Target, rng: np.random.Generator, draws: float = np.inf) -> str:
    """Choose the kernel with the most effective draws for the same work.

    Work is counted, not timed, so that the same seed makes the same choice on every machine. All
    kernels start from the same order, which short runs of each have warmed up; those that come
    close to the best get a second, longer trial.

    Parameters
    ----------
    target : Target
    rng : Generator
    draws : float
        How many draws are planned. Where trials would take more than a third of the run they are
        shorter; for a run so short that they would tell little there are none, and the kernel is
        the one that usually wins: block moves where there are any, relocation elsewhere.
    """
    names = [name for name in applicable(target) if KERNELS[name].operations is not None]
    if target.n_items < 3 or not names:
        return "adjacent"
    sweeps = [default_thin(name, target.n_items) * work(target, name, 0.5) for name in names]
    most = min(MOST_WORK, SHARE * draws * min(sweeps) / (3.0 * len(names)))
    # Without compiled functions a trial would take longer than most runs.
    if not target.is_compiled or most < LEAST_WORK:
        return "block" if target.is_compiled and "block" in names else "relocation"
    names = [name for name in names if FEWEST * work(target, name, 0.5) <= 5 * most]
    if not names:
        return "adjacent"
    order = target.random_start(rng)
    for name in names:
        order = _try(target, name, order, rng, most / 8)[1]
    rates = {name: _try(target, name, order, rng, most)[0] for name in names}
    best = max(rates.values())
    close = [name for name in names if rates[name] > 0.25 * best]
    if len(close) > 1:
        rates = {name: _try(target, name, order, rng, 5 * most)[0] for name in close}
    return max(close, key=lambda name: rates[name])


def work(target: Target, name: str, share: float) -> float:
    """Estimate the cost of a step in nanoseconds at acceptance rate `share`."""
    operations = KERNELS[name].operations
    if operations is None:
        raise ValueError(f"kernel: {name!r} was registered without operations")
    peeks, swaps, other, *per_pair = operations(target.n_items, share)
    for_peek, for_swap = target.costs
    if per_pair:
        constants: Any = target.constants
        sizes = np.bincount(constants.levels)
        other += per_pair[0] * float(sizes @ (target.n_items - sizes))
    return peeks * for_peek + swaps * for_swap + other


def _try(
    target: Target, name: str, order: IntArray, rng: np.random.Generator, most: float
) -> tuple[float, IntArray]:
    """Run a kernel for `most` nanoseconds of work, or less if draws become nearly independent.

    Returns effective draws per nanosecond, and the last order.
    """
    state, parts = target.state_at(order), {name: 1.0}
    steps = int(most / work(target, name, 0.5))
    draws, thin = int(np.clip(steps, FEWEST, DRAWS)), max(1, steps // DRAWS)
    orders, values = np.empty((draws, target.n_items), dtype=np.int32), np.empty(draws)
    advance, mixture = advance_with(parts, target), mixture_of(parts)
    while True:
        moved = np.zeros((1, 2), dtype=np.int64)
        advance(mixture, target.constants, state, rng, 0, draws, thin, orders, values, moved)
        tried, went = moved.sum(axis=0)
        effective = _worst_ess(orders, values)
        if effective <= INDEPENDENT * draws or thin == 1:
            done = tried * work(target, name, went / tried)
            return effective / done, orders[-1].astype(np.int64)
        thin = max(1, thin // 4)


def _worst_ess(orders: AnyIntArray, values: FloatArray) -> float:
    """Estimate the effective number of draws of what mixes worst."""
    ranks = order_to_ranks(orders).astype(float)
    # Ranks of some items, the log-weight, and two statistics of the whole ranking.
    items = np.unique(np.linspace(0, ranks.shape[1] - 1, MOST_ITEMS).astype(int))
    whole = ranks @ np.stack([ranks[0], ranks[-1]], axis=1)
    table = np.column_stack([ranks[:, items], whole, values])
    table = table[:, np.ptp(table, axis=0) > 0]
    return min(map(_ess, table.T), default=0.0)


def _ess(values: FloatArray) -> float:
    """Divide the number of draws by their autocorrelation time, cut at the first negative pair."""
    centered = values - values.mean()
    size = 1 << (2 * len(values) - 1).bit_length()
    power = np.abs(np.fft.rfft(centered, size)) ** 2
    covariance = np.fft.irfft(power, size)[: len(values) // 2 * 2]
    pairs = covariance.reshape(-1, 2).sum(axis=1) / covariance[0]
    end = int(np.argmax(pairs <= 0.0)) if (pairs <= 0.0).any() else len(pairs)
    time = 2.0 * np.minimum.accumulate(pairs[:end]).sum() - 1.0
    return len(values) / max(time, 1.0 / np.log10(len(values)))
