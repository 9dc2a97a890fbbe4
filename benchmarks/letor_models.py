"""All learners on LETOR folds, by LETOR's rules: accuracy beside published figures, and fit times.

    python benchmarks/letor_models.py FOLDER [part of a learner's name ...]

Every setting is chosen by MAP on the validation part of each fold. The last column is the p-value
of a paired t-test over test queries against the first row.
"""

from __future__ import annotations

import sys
import time
import warnings

import harness
import numpy as np
from scipy.stats import ttest_rel

from permdist import data
from permdist.models import L3, MLE, ConvexLoss, ExpectedGain, cross_validate

# The objective without `scale` is a sum over all pairs, some 100 a query: it wants a smaller C.
SUMS = {"C": [1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0]}
SCALED = {"C": [0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0]}

LEARNERS = {
    "MLE": (MLE(scale=True), SCALED),
    "MLE, unscaled": (MLE(), SUMS),
    "MLE, interleavings": (MLE(space="interleavings"), SUMS),
    "ExpectedGain AUC": (ExpectedGain("auc", space="pairs", n_starts=1), SUMS),
    "ExpectedGain AP": (ExpectedGain("ap", n_starts=1), SUMS),
    "ExpectedGain NDCG": (ExpectedGain("ndcg@10", n_starts=1), SUMS),
    "L3 AUC": (L3("auc", space="pairs"), SUMS),
    "L3 AP": (L3("ap"), SUMS),
    "L3 NDCG": (L3("ndcg@10"), SUMS),
    "ConvexLoss AUC": (ConvexLoss("auc", space="pairs", scale=True), SCALED),
    "ConvexLoss AUC, unscaled": (ConvexLoss("auc", space="pairs"), SUMS),
    "ConvexLoss AP": (ConvexLoss("ap"), SUMS),
    "ConvexLoss AP, scaled": (ConvexLoss("ap", scale=True), SCALED),
    "ConvexLoss AP, interleavings": (ConvexLoss("ap", space="interleavings"), SUMS),
    "ConvexLoss AP, restart": (ConvexLoss("ap", space="restart"), SUMS),
    "ConvexLoss NDCG": (ConvexLoss("ndcg@10"), SUMS),
    "ConvexLoss NDCG, graded": (ConvexLoss("ndcg@10", graded=True), SUMS),
}

# MAP and NDCG@10 on MQ2008, from the pages of LETOR 4.0 and from the papers of the learners.
PUBLISHED = {
    "RankSVM-Struct": 0.4696,
    "RankBoost": 0.4775,
    "ListNet": 0.4775,
    "AdaRank-MAP": 0.4764,
    "AdaRank-NDCG": 0.4824,
    "BoltzRank": 0.4848,
}
MAP, NDCG = "letor4:map", "letor4:ndcg@10"


def main(folder, wanted):
    folds = list(data.load_letor_folds(folder))
    print(harness.machine())
    print(f"\n{'learner':<30} {'MAP':>7} {'s.e.':>6} {'NDCG@10':>8} {'one fit':>9} {'p':>6}")
    first = None
    for name, (learner, grid) in LEARNERS.items():
        if wanted and not any(part.lower() in name.lower() for part in wanted):
            continue
        found = cross_validate(learner, folds, grid, select=MAP, measures=[MAP, NDCG])
        values = found.per_query(MAP)
        if first is None:
            first = values
        same = np.array_equal(values, first)
        p = "" if same else f"{ttest_rel(values, first).pvalue:6.2f}"
        begin = time.perf_counter()
        for fitted, fold in zip(found.learners, folds, strict=True):
            fitted.fit(fold.train)
        seconds = (time.perf_counter() - begin) / len(folds)
        error = values.std(ddof=1) / np.sqrt(len(values))
        print(
            f"{name:<30} {found.mean(MAP):7.4f} {error:6.4f} {found.mean(NDCG):8.4f} "
            f"{seconds:7.2f} s {p}",
            flush=True,
        )
    print("\npublished MAP on MQ2008")
    for name, value in PUBLISHED.items():
        print(f"{name:<30} {value:7.4f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(sys.argv[1], sys.argv[2:])
