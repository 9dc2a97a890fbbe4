"""Consensus rankings: time to the proof of Kemeny's, and of the other methods.

python benchmarks/consensus.py [FOLDER]

The folder may hold PrefLib files. Kemeny's problems are solved once each, with a limit of a minute;
"whole program" is scipy.optimize.milp with all triangles at once, on the same problem.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import harness
import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from permdist import Ballots, PlackettLuce, data, rankings
from permdist.consensus import METHODS, components
from permdist.data.preflib import FILE_TYPES

LIMIT = 60.0
HARD = (*((n, 40, seed) for n in (30, 60, 80) for seed in range(3)), (60, 40, 3), (60, 60, 0))


def problems(folder):
    """Return ballots by name."""
    found = {
        f"{voters} random ballots over {n}, seed {seed}": rankings.random_orders(
            n, voters, rng=seed
        )
        for n, voters, seed in HARD
    }
    for slope in (0.02, 0.05, 0.1, 0.3):
        scores = slope * np.arange(100.0)
        found[f"40 ballots over 100, slope {slope}"] = PlackettLuce(scores).sample(40, rng=0)
    for path in sorted(folder.iterdir()) if folder else ():
        if path.suffix[1:] in FILE_TYPES:
            found[path.name] = Ballots.of(data.load_preflib(path))
    return found


def whole_program(margins):
    """Solve the linear ordering problem with all triangles; return the largest sum of margins."""
    n = len(margins)
    place = {pair: k for k, pair in enumerate(itertools.combinations(range(n), 2))}
    triples = np.array(list(itertools.combinations(range(n), 3)))
    columns = [[place[i, j], place[j, k], place[i, k]] for i, j, k in triples.tolist()]
    rows = np.repeat(np.arange(len(triples)), 3)
    values = np.tile([1.0, 1.0, -1.0], len(triples))
    matrix = sparse.csr_array((values, (rows, np.ravel(columns))), shape=(len(triples), len(place)))
    costs = -np.array([margins[pair] for pair in place])
    found = milp(
        costs,
        integrality=np.ones(len(costs)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, 0, 1),
        options={"mip_rel_gap": 0.0, "time_limit": LIMIT},
    )
    return -found.fun


def main():
    print(harness.machine())
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    rankings.consensus(rankings.random_orders(6, 5, rng=0))  # compiles
    for name, ballots in problems(folder).items():
        start = time.perf_counter()
        found = rankings.consensus(ballots, time_limit=LIMIT)
        took = time.perf_counter() - start
        largest = max(map(len, components(found.margins)))
        text = "proved" if found.proved else f"bound {found.lower_bound:g}"
        print(f"  {name:<34} largest component {largest:>3}  cost {found.cost:>9g}  {text}", end="")
        print(f"  {took:.3f} s")
    orders = rankings.random_orders(30, 40, rng=0)
    margins = np.array(rankings.consensus(orders, "borda").margins)
    rows = {
        "permdist": harness.seconds(lambda: rankings.consensus(orders), repeat=3),
        "whole program": harness.seconds(lambda: whole_program(margins), repeat=1),
    }
    harness.table("Kemeny, 40 random ballots over 30 items", rows)
    orders = rankings.random_orders(100, 1000, rng=0)
    rows = {
        method: harness.seconds(lambda m=method: rankings.consensus(orders, m), repeat=3)
        for method in METHODS
        if method != "kemeny"
    }
    harness.table("1,000 ballots over 100 items", rows)


if __name__ == "__main__":
    main()
