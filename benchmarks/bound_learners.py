"""Bound-based learners: fit times on a LETOR fold and on a large collection, and their growth.

    python benchmarks/bound_learners.py [FOLDER WITH LETOR FOLDS] [--large]

``--large`` adds 1,000 queries of 1,000 documents with 50 features each, half a gigabyte.
"""

from __future__ import annotations

import sys
import time
import warnings

import harness
import numpy as np

from permdist import data
from permdist.models import SVMNDCG, AdaRank, PermuRank, RankBoost, RankSVM, SVMMap

LEARNERS = {
    "AdaRank AP": AdaRank("ap"),
    "AdaRank AP, 100 rounds": AdaRank("ap", accept="all", max_iter=100, patience=100),
    "RankBoost, 300 rounds": RankBoost(max_iter=300),
    "RankBoost, raw features": RankBoost(weak="feature", max_iter=300),
    "RankSVM, squared hinge": RankSVM(C=0.1),
    "RankSVM, hinge, gap 1e-3": RankSVM(loss="hinge", C=1.0),
    "SVMMap, gap 1e-3": SVMMap(C=0.1),
    "SVMNDCG, gap 1e-3": SVMNDCG(C=0.1),
    "PermuRank, 10 rounds": PermuRank(max_iter=10),
}


def simulated(queries, documents, features):
    rng = np.random.default_rng(0)
    n = queries * documents
    X = rng.random((n, features))
    wanted = X @ rng.normal(size=features) + 0.5 * rng.normal(size=n)
    wanted = wanted.reshape(queries, documents)
    good = wanted > np.quantile(wanted, 0.95, axis=1)[:, None]
    return data.Queries(X, good.ravel().astype(int), np.repeat(np.arange(queries), documents))


def fits_once(title, learners, collection):
    rows = {}
    for name, learner in learners.items():
        begin = time.perf_counter()
        learner.fit(collection)
        rows[name] = time.perf_counter() - begin
    harness.table(title, rows, unit="s")


def main(arguments):
    print(harness.machine())
    for learner in LEARNERS.values():  # compile
        learner.fit(data.make_letor(12, rng=0))
    folders = [entry for entry in arguments if not entry.startswith("--")]
    train = harness.training_part(folders, 450)
    shape = f"{train.n_documents:,} documents, {train.n_features} features"
    harness.fits(f"Whole fits, {shape}", LEARNERS, train)
    small = {name: LEARNERS[name] for name in LEARNERS if "PermuRank" not in name}
    for shape in ((100, 100, 50), (1000, 100, 50), (100, 1000, 50), (100, 100, 500)):
        label = "Whole fits, {} queries x {} documents x {} features".format(*shape)
        fits_once(label, small, simulated(*shape))
    if "--large" in arguments:
        fits_once("Whole fits, 1,000 x 1,000 x 50", small, simulated(1000, 1000, 50))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
