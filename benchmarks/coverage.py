"""Coverage of intervals and rank sets on simulated battles, by kind of error.

    python benchmarks/coverage.py [DATA SETS] [--bootstrap REPLICATES] [--jobs N]

Prints the share of 95% intervals that hold the true score, over all items and data sets, and of
data sets in which the rank sets hold the true places of all items at once; 1,000 data sets by
default. Where the model is wrong, the true scores are those that it tends to as battles are added:
the fit to the exact chances of all results.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import harness
import numpy as np
from joblib import Parallel, delayed

from permdist import DavidsonLuce, PlackettLuce
from permdist.ballots import Ballots

SCORES = np.array([0.9, 0.5, 0.5, 0.2, -0.1, -0.4, -0.4, -1.2])
N = len(SCORES)
BATTLES = 1000
TIES = 1.3  # delta_2: about 40% ties
KINDS = ("observed", "sandwich", "bootstrap", "profile")


@dataclass(frozen=True)
class Setting:
    """How battles are simulated and fitted."""

    title: str
    delta: float = TIES
    voters: int = 0  # with tastes of their own; 0 for battles that are all independent
    taste: float = 0.0  # the standard deviation of a voter's own scores
    careless: float = 0.0  # the share of battles in which the weaker half is called a tie
    halves: bool = False  # ties count as half a win for either, and are not modeled


SETTINGS = [
    Setting("Bradley-Terry, no ties", delta=0.0),
    Setting("Davidson, 40% ties"),
    Setting("100 voters of 10 battles with tastes of their own, clusters", voters=100, taste=1.5),
    Setting("misspecified ties: some items tie more than others", careless=0.6),
    Setting("misspecified ties: half-wins, each battle a cluster", halves=True),
]


def chances(setting, first, second, shift=0.0):
    """Return the chances of a win, a loss and a tie, shape (..., 3)."""
    gap = SCORES[first] - SCORES[second] + shift
    weights = np.stack(
        [np.exp(0.5 * gap), np.exp(-0.5 * gap), np.full_like(gap, setting.delta)], axis=-1
    )
    result = weights / weights.sum(axis=-1, keepdims=True)
    # Items with even numbers are alike to careless voters: wins among them become ties.
    alike = (first % 2 == 0) & (second % 2 == 0)
    lost = setting.careless * result[..., :2] * alike[..., None]
    result[..., :2] -= lost
    result[..., 2] += lost.sum(axis=-1)
    return result


def simulate(setting, rng):
    """Return the items of battles, their results (0, 1 or 2, a tie) and voters."""
    first = rng.integers(N, size=BATTLES)
    second = (first + rng.integers(1, N, size=BATTLES)) % N
    voter, shift = np.arange(BATTLES), np.zeros(BATTLES)
    if setting.voters:
        voter = np.repeat(np.arange(setting.voters), BATTLES // setting.voters)
        own = rng.normal(scale=setting.taste, size=(setting.voters, N))
        shift = own[voter, first] - own[voter, second]
    p = chances(setting, first, second, shift)
    result = (rng.random(BATTLES)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    return first, second, np.minimum(result, 2), voter


def fit(setting, first, second, result, voter=None, weights=None):
    """Fit the model of a setting to battles."""
    winners, losers = np.where(result == 1, second, first), np.where(result == 1, first, second)
    weights = np.ones(len(first)) if weights is None else weights
    tied = result == 2
    if setting.halves:
        half = np.where(tied, 0.5, 1.0) * weights
        winners = np.concatenate([winners, losers[tied]])
        losers = np.concatenate([losers, first[tied]])
        weights = np.concatenate([half, half[tied]])
        voter = None if voter is None else np.concatenate([voter, voter[tied]])
    model = PlackettLuce if setting.halves or not setting.delta else DavidsonLuce
    clustered = voter if setting.voters or setting.halves else None
    ballots = Ballots.from_pairs(
        winners,
        losers,
        ties=tied if model is DavidsonLuce else None,
        weights=weights,
        clusters=clustered,
        n_items=N,
    )
    return model.fit(ballots).fit_result


def true_scores(setting):
    """Return the scores that the fit tends to, from the chances of all results of all pairs."""
    first, second = (part.ravel() for part in np.indices((N, N)))
    first, second = first[first != second], second[first != second]
    # Differences of two voters' tastes are normal: an integral by Gauss and Hermite.
    nodes, shares = np.polynomial.hermite_e.hermegauss(60)
    shifts = np.sqrt(2.0) * setting.taste * nodes
    p = sum(
        share * chances(setting, first, second, shift)
        for share, shift in zip(shares / shares.sum(), shifts, strict=True)
    )
    results = np.repeat(np.arange(3), len(first))
    weights = p.T.ravel()
    some = weights > 0.0
    return fit(
        setting,
        np.tile(first, 3)[some],
        np.tile(second, 3)[some],
        results[some],
        weights=weights[some],
    ).scores


def true_places(scores):
    """Return the best and the worst place of each item; equal items share all of theirs."""
    gaps = np.subtract.outer(scores, scores)
    same = 1e-9
    return np.column_stack([1 + (same < gaps.T).sum(axis=1), N - (gaps > same).sum(axis=1)])


def one(setting, truth, seed, replicates):
    """Return by kind: covered intervals, their mean length, and whether all places are covered."""
    found = fit(setting, *simulate(setting, np.random.default_rng(seed)))
    places, rows = true_places(truth), {}
    for kind in KINDS:
        if kind == "bootstrap":
            if not replicates:
                continue
            found.bootstrap(replicates, rng=seed, n_jobs=1)
        low, high = found.intervals(kind=kind).T
        covered = (low <= truth) & (truth <= high)
        sets = np.full((N, 2), [1, N]) if kind == "profile" else found.rank_sets(kind=kind)
        inside = (sets[:, 0] <= places[:, 0]) & (sets[:, 1] >= places[:, 1])
        size = (sets[:, 1] - sets[:, 0] + 1).mean()
        rows[kind] = (covered.mean(), (high - low).mean(), inside.all(), size)
    return rows


def run(setting, sets, replicates, jobs):
    truth = true_scores(setting)
    work = (delayed(one)(setting, truth, seed, replicates) for seed in range(sets))
    rows = Parallel(n_jobs=jobs)(work)
    print(f"\n{setting.title}")
    print("  errors     intervals cover  mean length  rank sets cover  mean size")
    for kind in rows[0]:
        covered, length, inside, size = np.mean([row[kind] for row in rows], axis=0)
        error = np.std([row[kind][0] for row in rows]) / np.sqrt(sets)
        ranks = "" if kind == "profile" else f"{inside:>15.3f}  {size:>9.2f}"
        print(f"  {kind:<10} {covered:>8.3f} ±{error:.3f}  {length:>11.3f}  {ranks}".rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", type=int, nargs="?", default=1000)
    parser.add_argument("--bootstrap", type=int, default=400, help="replicates; 0 for none")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print(harness.machine())
    print(f"{options.sets} data sets of {BATTLES} battles of {N} items, 95% intervals")
    start = time.perf_counter()
    for setting in SETTINGS:
        run(setting, options.sets, options.bootstrap, options.jobs)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
