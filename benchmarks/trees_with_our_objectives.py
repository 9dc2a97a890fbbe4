"""LightGBM with our objectives beside its own.

    python benchmarks/trees_with_our_objectives.py --data FOLDER
    python benchmarks/trees_with_our_objectives.py --collections bent --folds 2

Collections: `mq2008` and `lightgbm`, read from --data or the folder in PERMDIST_DATA, and `bent`:
3,000 simulated queries whose labels bend (``make_letor(features="bent")``). All trees have the same
settings, validation measure and early stopping; nothing else is chosen. Each row is trained twice,
judged by AP and by NDCG@10 on the validation part, and tested by the same measure. p is of a
paired randomization test over all test queries against lambdarank, by Holm's correction over the
rows.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import harness  # noqa: F401  (one thread, before numpy is loaded)
import numpy as np
from five_collections import lightgbm as lightgbm_folds
from five_collections import mq2008

from permdist import data
from permdist.adapters import LightGBMMeasure, LightGBMObjective
from permdist.comparison import adjust
from permdist.comparison.statistics import randomization_test
from permdist.measures import evaluate

MEASURES = {"ap": "ap[ties=average]", "ndcg@10": "ndcg@10[ties=average]"}
SIMPLE = "space=rows,scale=false,kappa=10"
# {} stands for the measure that judges; lambdarank and rank_xendcg are LightGBM's.
OBJECTIVES = {
    "lambdarank": "lambdarank",
    "rank_xendcg": "rank_xendcg",
    "ListNet": "listnet",
    "ListMLE": "listmle",
    "likelihood of pairs": "likelihood[scale=false]",
    "ConvexLoss": f"convex-loss[measure={{}},{SIMPLE}]",
    "L3": f"likelihood-and-loss[measure={{}},{SIMPLE}]",
    "L3, constant curvature": f"likelihood-and-loss[measure={{}},{SIMPLE}]",
    "LambdaLoss": "lambda-loss[measure=ndcg,scheme=ndcg-loss2++]",
    "ExpectedLoss": "expected-loss[measure={},space=rows,scale=false]",
}


class Constant(LightGBMObjective):
    """An objective whose curvature is the same for all documents: plain gradient boosting."""

    def derivatives(self, scores, labels, group, weights=None):
        """Return the gradient as it is; see `GroupedLoss.derivatives`."""
        gradient, curvature = super().derivatives(scores, labels, group, weights)
        useful = curvature > 0.0
        return gradient, np.where(useful, np.abs(gradient)[useful].mean(), 0.0)


def bent(_folder, draw=0):
    queries = data.make_letor(
        3000, n_documents=(8, 60), n_features=12, features="bent", empty=0.05, rng=draw
    )
    return data.make_folds(queries, 5, rng=0)


COLLECTIONS = {"mq2008": mq2008, "lightgbm": lightgbm_folds, "bent": bent}


def train(name, fold, measure, options):
    """Return the values of a measure on the test part, and processor seconds."""
    import lightgbm

    text = OBJECTIVES[name].format(measure)
    objective = text
    if name not in ("lambdarank", "rank_xendcg"):
        kind = Constant if "constant" in name else LightGBMObjective
        objective = kind(text, n_jobs=1)
    params = {
        "objective": objective,
        "metric": "none",
        "learning_rate": options.rate,
        "num_leaves": options.leaves,
        "min_data_in_leaf": options.documents,
        "verbosity": -1,
        "num_threads": 1,
        "seed": 1,
        "deterministic": True,
        "force_col_wise": True,
    }
    begin = time.process_time()
    quiet = {"params": {"verbosity": -1}}
    table = lightgbm.Dataset(fold.train.X, fold.train.y, group=fold.train.sizes, **quiet)
    part = fold.validation
    held_out = lightgbm.Dataset(part.X, part.y, group=part.sizes, reference=table, **quiet)
    model = lightgbm.train(
        params,
        table,
        options.rounds,
        valid_sets=[held_out],
        feval=LightGBMMeasure(MEASURES[measure]),
        callbacks=[lightgbm.early_stopping(options.patience, verbose=False)],
    )
    spent = time.process_time() - begin
    scores = model.predict(fold.test.X)
    found = evaluate(scores, fold.test.y, fold.test.qid, MEASURES[measure])
    return found[MEASURES[measure]], spent


def compare_trees(name, folds, options):
    for measure in MEASURES:
        values, seconds = {}, {}
        for row in options.objectives:
            parts = [train(row, fold, measure, options) for fold in folds]
            values[row] = np.concatenate([part[0] for part in parts])
            seconds[row] = sum(part[1] for part in parts)
        report(f"{name}, {measure}: LightGBM", values, seconds, "lambdarank")


def report(title, values, seconds, reference):
    known = ~np.isnan(values[reference])
    others = [row for row in values if row != reference]
    differences = np.array([values[row][known] - values[reference][known] for row in others])
    p = dict(zip(others, adjust(randomization_test(differences, rng=0)), strict=True))
    print(f"\n{title}: {known.sum():,} test queries, against {reference}")
    for row, one in values.items():
        line = f"  {row:<24}{one[known].mean():8.4f}"
        if row != reference:
            difference = one[known] - values[reference][known]
            error = difference.std(ddof=1) / np.sqrt(len(difference))
            line += f"  {difference.mean():+.4f} +- {error:.4f}  p {p[row]:.3f}"
        else:
            line += " " * 28
        print(f"{line}  {seconds[row]:8.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("PERMDIST_DATA"))
    parser.add_argument("--collections", default=",".join(COLLECTIONS))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--objectives", default="all", help="rows, separated by semicolons")
    parser.add_argument("--draw", type=int, default=0, help="the seed of the simulated collection")
    parser.add_argument("--leaves", type=int, default=15)
    parser.add_argument("--documents", type=int, default=20, help="the fewest of a leaf")
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--patience", type=int, default=50)
    options = parser.parse_args()
    rows = list(OBJECTIVES) if options.objectives == "all" else options.objectives.split(";")
    options.objectives = rows
    for name in options.collections.split(","):
        folds = COLLECTIONS[name](options.data, options.draw)[: options.folds]
        compare_trees(name, folds, options)


if __name__ == "__main__":
    main()
