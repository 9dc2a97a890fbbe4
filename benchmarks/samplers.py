"""Chains: nanoseconds per step, effective draws per second, and the restart walk.

python benchmarks/samplers.py [classes_at_once ...]
"""

from __future__ import annotations

import sys
import time

import harness
import numba
import numpy as np

from permdist import GoodBad, PlackettLuce, WeightedOrders
from permdist.distributions import Distribution
from permdist.samplers import RestartSampler, estimate_log_partition, run_chains
from permdist.samplers.auto import _worst_ess, applicable
from permdist.samplers.kernels import advance_with, mixture_of
from permdist.targets import Target, compiled, target_of


@numba.njit(nogil=True)
def same_numbers(rng, n, steps):
    """Draw a position and a number to accept by, as numba offers it, for every step."""
    total = 0.0
    for _ in range(steps):
        total += rng.integers(0, n - 1) + rng.random()
    return total


@numba.njit(nogil=True)
def plain_numbers(rng, n, steps):
    """Draw the same from two uniform numbers, as the kernels do."""
    total = 0.0
    for _ in range(steps):
        total += int(rng.random() * (n - 1)) + rng.random()
    return total


def adjacent_step(model, count):
    """Measure the seconds of one step with `adjacent`."""
    n, rng, parts = model.n_items, np.random.default_rng(0), {"adjacent": 1.0}
    target = target_of(model)
    advance, state = advance_with(parts, target), target.state_at(target.random_start(rng))
    orders, values = np.empty((count // n, n), dtype=np.int32), np.empty(count // n)
    inputs = mixture_of(parts), target.constants, state, rng, 0, count // n, n
    moved = np.zeros((1, 2), dtype=np.int64)
    return harness.seconds(lambda: advance(*inputs, orders, values, moved)) / count


class Footrule(Distribution):
    """Mallows' model with the footrule: a distribution and a target from outside the library."""

    def __init__(self, n_items, theta):
        super().__init__(n_items)
        self._theta = theta

    def log_prob(self, orders):
        """Return the log-probability of each order, up to a constant."""
        return -self._theta * np.abs(orders - np.arange(self.n_items)).sum(axis=-1)

    def _sample(self, size, rng):
        raise NotImplementedError

    def _target(self):
        constants = (self._theta,)
        return Target(self.n_items, peek_footrule, restore_footrule, constants=constants)


@compiled
def peek_footrule(constants, state, k):
    a, b = state.order[k], state.order[k + 1]
    change = abs(a - k) + abs(b - k - 1) - abs(b - k) - abs(a - k - 1)
    return state.value[0] + constants[0] * change


@compiled
def restore_footrule(constants, state):
    state.value[0] = 0.0
    for k in range(len(state.order)):
        state.value[0] -= constants[0] * abs(state.order[k] - k)


def outside():
    for n in (10, 100):
        count = 1_000_000 // n * n
        models = {
            "WeightedOrders.from_pairs": WeightedOrders.from_pairs(-0.1 * np.tri(n, k=-1)),
            "a distribution with a target from outside": Footrule(n, 0.05),
        }
        rows = {name: adjacent_step(model, count) for name, model in models.items()}
        harness.table(f"One adjacent swap, {n} items", rows, unit="ns")


def steps():
    rng = np.random.default_rng(0)
    for n in (10, 100, 1000):
        labels = (np.arange(n) < max(2, n // 20)).astype(int)
        scores = 0.1 * rng.normal(size=n)
        count = 1_000_000 // n * n
        models = {
            "good-bad": GoodBad(scores, labels),
            "good-bad, tilted by AP": GoodBad(scores, labels, tilt="ap", kappa=5.0),
            "Plackett-Luce": PlackettLuce(scores),
        }
        rows = {
            "the random numbers, as numba draws them": harness.seconds(
                lambda n=n, c=count: same_numbers(rng, n, c)
            )
            / count,
            "the random numbers, as the kernels do": harness.seconds(
                lambda n=n, c=count: plain_numbers(rng, n, c)
            )
            / count,
        }
        rows |= {name: adjacent_step(model, count) for name, model in models.items()}
        harness.table(f"One adjacent swap, {n} items", rows, unit="ns")


def effective_draws():
    rng = np.random.default_rng(1)
    labels = np.repeat([1, 0], [10, 200])
    targets = {
        "good-bad, 10 and 200, weak scores": GoodBad(0.005 * rng.normal(size=210), labels),
        "good-bad, 10 and 200, strong scores": GoodBad(0.05 * rng.normal(size=210), labels),
        "good-bad, 10 and 200, tilted": GoodBad(
            0.01 * rng.normal(size=210), labels, tilt="ap", kappa=10.0
        ),
        "Mallows, 50 items, 0.1": WeightedOrders.from_pairs(-0.1 * np.tri(50, k=-1)),
        "Mallows, 50 items, 1.0": WeightedOrders.from_pairs(-1.0 * np.tri(50, k=-1)),
        "Mallows, 200 items, 0.05": WeightedOrders.from_pairs(-0.05 * np.tri(200, k=-1)),
    }
    for title, model in targets.items():
        rates = {}
        for kernel in applicable(target_of(model)):
            rates[kernel] = rate(model, kernel)
        best = max(rates.values())
        chosen = [run_chains(model, 10, 0, rng=seed).kernel for seed in range(5)]
        print(f"\nEffective draws per second: {title}")
        for kernel, value in rates.items():
            share = chosen.count(kernel) / len(chosen)
            told = f"  chosen by auto in {share:.0%} of 5 runs" if share else ""
            print(f"  {kernel:<14} {value:>12,.0f}  {value / best:>6.0%}{told}")


def rate(model, kernel, budget=1.0, draws=4000):
    """Measure effective draws per second of what mixes worst: one thread, mean of three runs."""

    def run(thin, seed):
        options = {"kernel": kernel, "thin": thin, "rng": seed, "n_jobs": 1, "chains": 2}
        return run_chains(model, draws, draws // 4, progress=False, **options)

    run(1, 0)
    thin = max(1, int(budget / run(1, 0).seconds))
    while True:  # fewer steps between draws, until draws are not independent
        rates = []
        for seed in range(3):
            chains = run(thin, seed)
            effective = float(chains.summary().table["ess_bulk"].min())
            rates.append(effective / (0.8 * chains.seconds))
        if effective < 0.5 * 2 * draws or thin == 1:
            return float(np.mean(rates))
        thin = max(1, thin // 4)


def classes_at_once():
    """Compare `block` with the other kernels: effective draws per processor second."""
    for n, goods in ((20, 5), (200, 20)):
        for strength, spread in (("weak", 0.5), ("strong", 50.0)):
            scores = spread / n * np.random.default_rng(n).normal(size=n)
            target = target_of(GoodBad(scores, np.arange(n) < goods))
            print(f"\nEffective draws per processor second: {goods} of {n} good, {strength} scores")
            for kernel in applicable(target):
                print(f"  {kernel:<14} {processor_rate(target, kernel):>12,.0f}")


def processor_rate(target, kernel, budget=2.0, draws=4000):
    """Measure effective draws per processor second of what mixes worst, without diagnostics."""
    n, rng, parts = target.n_items, np.random.default_rng(1), {kernel: 1.0}
    advance, state = advance_with(parts, target), target.state_at(target.random_start(rng))
    orders, values = np.empty((draws, n), dtype=np.int32), np.empty(draws)

    def run(count, thin):
        moved = np.zeros((1, 2), dtype=np.int64)
        begin = time.thread_time()
        inputs = mixture_of(parts), target.constants, state, rng, 0, count, thin
        advance(*inputs, orders, values, moved)
        return time.thread_time() - begin

    run(10, 1)
    thin = max(1, int(budget / (run(200, 1) / 200) / draws))
    run(1000, thin)
    while True:
        seconds = run(draws, thin)
        effective = _worst_ess(orders, values)
        if effective < 0.5 * draws or thin == 1:
            return effective / seconds
        thin = max(1, thin // 4)


def log_partitions():
    print("\nLog-partition functions by annealing, 200 draws, processor seconds")
    for n, goods in ((20, 5), (50, 10), (200, 20)):
        for strength, spread in (("weak", 0.5), ("medium", 5.0), ("strong", 50.0)):
            scores = spread / n * np.random.default_rng(n).normal(size=n)
            model = GoodBad(scores, np.arange(n) < goods)
            begin = time.process_time()
            found = estimate_log_partition(model, rng=0)
            seconds = time.process_time() - begin
            exact = f", exact {model.log_partition():.3f}" if n <= 20 else ""
            print(f"  {goods:>3} of {n:<4} {strength:<7} {seconds:>6.1f} s  {found}{exact}")


@numba.njit(nogil=True)
def accept_reject(table, rng, steps):
    """Take accepted steps of the swap walk as it is written, on the table of signs (p, m)."""
    p, m = table.shape
    for _ in range(steps):
        while True:
            index = int(rng.random() * p * m)
            g, b = index // m, index % m
            beaten = (table[g] > 0).sum()
            beats = (table[:, b] < 0).sum()
            if table[g, b] > 0:
                theta = (m - beaten + beats + 1) / (2 + p + m)
            else:
                theta = (p + beaten - beats + 1) / (2 + p + m)
            if rng.random() >= theta:
                continue
            table[g, b] *= -1
            valid = True
            for other in range(p):  # it is a ranking if no good contradicts another
                less, more = False, False
                for c in range(m):
                    less |= table[g, c] < table[other, c]
                    more |= table[g, c] > table[other, c]
                valid &= not (less and more)
            if valid:
                break
            table[g, b] *= -1


def restart_walk():
    labels = np.repeat([1, 0], [10, 1000])
    flips = 100_000
    sampler = RestartSampler("ap", rungs=2, skew=0.0, walk=flips // 100, stride=100)
    rng = np.random.default_rng(0)
    few = 2000
    table = np.ones((10, 1000), dtype=np.int8)
    accept_reject(table, rng, 20_000)  # away from the start
    rows = {
        "without rejections": harness.seconds(lambda: sampler.sample(labels, flips // 100, rng=0))
        / flips,
        "accept and reject": harness.seconds(lambda: accept_reject(table, rng, few)) / few,
    }
    harness.table("One accepted flip, 10 good and 1,000 bad", rows, unit="us")


def long_run():
    model = GoodBad(0.05 * np.random.default_rng(0).normal(size=50), np.repeat([1, 0], [10, 40]))
    for threads in (1, 2):
        begin = time.perf_counter()
        chains = run_chains(model, 100_000, kernel="transposition", rng=0, n_jobs=threads)
        drawn = time.perf_counter()
        verdict = chains.summary().verdict
        judged = time.perf_counter()
        print(
            f"\n4 chains x 100,000 draws of 50 items, {threads} thread(s): "
            f"{drawn - begin:.1f} s, diagnosed in {judged - drawn:.1f} s\n  {verdict}"
        )


if __name__ == "__main__":
    print(harness.machine())
    every = (
        steps,
        outside,
        effective_draws,
        classes_at_once,
        log_partitions,
        restart_walk,
        long_run,
    )
    chosen = sys.argv[1:] or [part.__name__ for part in every]
    for part in every:
        if part.__name__ in chosen:
            part()
