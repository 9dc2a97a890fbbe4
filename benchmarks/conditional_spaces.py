"""Conditional models over every space: accuracy by space, measure and kappa, over seeds.

    python benchmarks/conditional_spaces.py --data FOLDER_WITH_LETOR_FOLDS
    python benchmarks/conditional_spaces.py --families ConvexLoss --measures ap --kappas 1
    python benchmarks/conditional_spaces.py --show

For each family (ConvexLoss, L3, ExpectedGain), measure, space and kappa: the mean of the measure
over the test queries of all folds, C by validation; for spaces that draw, the mean and the range
over seeds. The defaults of each family are marked. Results are appended to a file of JSON lines,
and what is there already is not computed again. Without --data, the queries are simulated.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from permdist import data, models
from permdist.comparison import compare
from permdist.models.spaces import parse_space

FAMILIES = {
    "ConvexLoss": models.ConvexLoss,
    "L3": models.L3,
    "ExpectedGain": models.ExpectedGain,
}
SPACES = ("rows", "interleavings", "restart")
GRID = {"C": [1e-4, 1e-3, 1e-2]}


def load(folder):
    """Return the folds of a folder, or simulated ones."""
    if folder is not None:
        return data.load_letor_folds(folder)
    return data.make_folds(data.make_letor(200, rng=0), 3, rng=0)


def run(folds, family, measure, space, kappa, seed):
    """Return the mean of the measure over the test queries, and the fits that did not converge."""
    options = {"space": space, "random_state": seed} | ({} if kappa is None else {"kappa": kappa})
    learner = FAMILIES[family](measure, **options)
    begin = time.process_time()
    found = compare(folds, {"it": (learner, GRID)}, measures=(measure,), select=measure)
    outcomes = found.outcomes["it"]
    return {
        "value": float(found.values(measure)[0].mean()),
        "warned": sum(bool(one.warnings) for one in outcomes),
        "null": sum(bool(one.null_) for one in found.learners("it")),
        "seconds": time.process_time() - begin,
    }


def read(file):
    """Return the records by family, measure, space, kappa and seed."""
    lines = file.read_text().splitlines() if file.exists() else []
    records = [json.loads(line) for line in lines]
    return {tuple(one["key"]): one for one in records}


def show(records):
    """Print one table per family and measure, best first."""
    tables = {}
    for (family, measure, space, kappa, _seed), one in records.items():
        rows = tables.setdefault((family, measure), {})
        rows.setdefault((space, kappa), []).append(one)
    for (family, measure), rows in tables.items():
        default = FAMILIES[family](measure)
        own = default.build_objective().space.alias, getattr(default, "kappa", None)
        best = max(np.mean([one["value"] for one in found]) for found in rows.values())
        print(f"\n{family}, {measure}")
        print(f"{'space':<16} {'kappa':>6} {'mean':>7} {'from':>7} {'to':>7} seeds warned null")
        by_mean = sorted(rows.items(), key=lambda row: -np.mean([one["value"] for one in row[1]]))
        for (space, kappa), found in by_mean:
            values = [one["value"] for one in found]
            counts = [sum(one[name] for one in found) for name in ("warned", "null")]
            mark = f"  the default: {best - np.mean(values):.4f} below the best"
            mark = mark if (space, kappa) == own else ""
            shown = "-" if kappa is None else f"{kappa:g}"
            spread = f"{min(values):7.4f} {max(values):7.4f} {len(values):5}"
            print(f"{space:<16} {shown:>6} {np.mean(values):7.4f} {spread}", *counts, mark)


def main(arguments=None):
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("PERMDIST_LETOR"))
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--measures", default="ap,ndcg@10")
    parser.add_argument("--spaces", default=",".join(SPACES))
    parser.add_argument("--kappas", default="1,10,100")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--results", type=Path, default=Path("conditional_spaces.jsonl"))
    parser.add_argument("--show", action="store_true", help="print the tables only")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)  # they are counted
    if not given.show:
        folds = load(given.data)
        kappas = [float(one) for one in given.kappas.split(",")]
        done = read(given.results)
        for family in given.families.split(","):
            for measure in given.measures.split(","):
                for space in given.spaces.split(","):
                    seeds = given.seeds if parse_space(space).draws else 1
                    weighted = "kappa" in FAMILIES[family].parameter_names()
                    for kappa in kappas if weighted else [None]:
                        for seed in range(seeds):
                            key = (family, measure, space, kappa, seed)
                            if key in done:
                                continue
                            record = {"key": key} | run(folds, *key)
                            with given.results.open("a") as file:
                                file.write(json.dumps(record) + "\n")
    show(read(given.results))


if __name__ == "__main__":
    main()
