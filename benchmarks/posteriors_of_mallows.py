"""Posteriors of Mallows' models and of mixtures: calibration at length, and effective draws.

    python benchmarks/posteriors_of_mallows.py [--replications 640]

Prints the worst p-value of simulation-based calibration for every distance and kind of ballot, and
for mixtures; then R-hat and effective draws per processor second. Takes long: about an hour.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from permdist import Ballots, Mallows, rankings
from permdist.posterior import (
    Gamma,
    MallowsPosterior,
    MallowsPrior,
    MixturePosterior,
    sample,
    simulation_based_calibration,
)

THETAS = {
    "kendall": 0.6,
    "cayley": 1.0,
    "hamming": 0.8,
    "ulam": 1.2,
    "footrule": 0.4,
    "spearman": 0.15,
}
SIZES = {"kendall": 20, "cayley": 10, "hamming": 15, "ulam": 10, "footrule": 20, "spearman": 12}
SPREADS = {
    "kendall": 0.15,
    "cayley": 2.0,
    "hamming": 1.5,
    "ulam": 1.5,
    "footrule": 0.1,
    "spearman": 0.02,
}


def kinds(n: int, voters: int) -> dict[str, Ballots]:
    """Return one collection of each kind of ballot; only their shape matters."""
    orders = np.tile(np.arange(n), (voters, 1))
    half = n // 2
    return {
        "full": Ballots.from_orders(orders),
        "top": Ballots.from_orders(orders[:, :half], n_items=n, subset=False),
        "some": Ballots.from_orders(orders[:, :-1], n_items=n, subset=True),
        "ties": Ballots.from_orders([[[*row[:half]], [*row[half:]]] for row in orders.tolist()]),
    }


def calibrate(replications: int) -> None:
    """Print the worst p-value for each family; it is that of the quantity times their number."""
    settings = {"replications": replications, "draws": 31, "thin": 30, "tune": 200, "rng": 0}
    for distance in rankings.DISTANCES:
        prior = MallowsPrior(Gamma(2.0, 2.0 / THETAS[distance]), Mallows(range(5), 0.2))
        for kind, ballots in kinds(5, 8).items():
            found = simulation_based_calibration(
                lambda data, d=distance, p=prior: MallowsPosterior(data, d, p), ballots, **settings
            )
            name, value = found.worst()
            print(f"{distance:9} {kind:5} worst p {value:8.2g} ({name})", flush=True)
    for family in ("plackett-luce", "mallows"):
        found = simulation_based_calibration(
            lambda data, f=family: MixturePosterior(data, 2, f, Gamma(2.0, 2.0)),
            kinds(4, 10)["full"],
            **settings,
        )
        name, value = found.worst()
        print(f"mixture of {family:13} worst p {value:8.2g} ({name})", flush=True)


def race() -> None:
    """Print R-hat and effective draws of 4 chains of 1,000 draws from 30 ballots."""
    import arviz

    for distance, n in SIZES.items():
        orders = Mallows(range(n), SPREADS[distance], distance).sample(30, rng=0)
        lists = {
            "full": Ballots.from_orders(orders),
            "top": Ballots.from_orders(orders[:, : n // 3], n_items=n, subset=False),
        }
        for kind, ballots in lists.items():
            sample(Mallows, ballots, Gamma(1, 1), distance=distance, draws=2, chains=1, rng=0)
            begin = time.process_time()
            found = sample(Mallows, ballots, Gamma(1, 1), distance=distance, draws=1000, rng=0)
            seconds = time.process_time() - begin
            columns = [found.draws[..., i] for i in range(n + 1) if np.ptp(found.draws[..., i])]
            rhat = max(float(arviz.rhat(column)) for column in columns)
            ess = min(float(arviz.ess(column)) for column in columns)
            told = f"R-hat {rhat:6.3f}  least ess {ess:6.0f}  {ess / seconds:8.0f} per second"
            print(f"{distance:9} n={n:3} {kind:5} {told}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--replications", type=int, default=640)
    parser.add_argument("--only-race", action="store_true")
    chosen = parser.parse_args()
    race()
    if not chosen.only_race:
        calibrate(chosen.replications)
