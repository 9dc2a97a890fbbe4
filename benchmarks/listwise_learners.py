"""Listwise, approximation and feature-ranking learners: evaluations by query length, whole fits.

python benchmarks/listwise_learners.py [FOLDER WITH LETOR FOLDS]
"""

from __future__ import annotations

import sys
import warnings

import harness
import numpy as np

from permdist.models import (
    ApproxAP,
    ApproxNDCG,
    BLFeatureRank,
    BoltzRank,
    DiffRank,
    FeatureRank,
    ListMLE,
    ListNet,
    RankCosine,
    SoftRank,
)
from permdist.models.batch import Batch

OBJECTIVES = {
    "ListNet": ListNet(n_jobs=1),
    "ListMLE": ListMLE(n_jobs=1),
    "RankCosine": RankCosine(n_jobs=1),
    "ApproxNDCG, alpha 1": ApproxNDCG(alpha=1.0, n_jobs=1),
    "ApproxNDCG, alpha 100": ApproxNDCG(alpha=100.0, n_jobs=1),
    "ApproxNDCG, alpha 1000": ApproxNDCG(alpha=1000.0, n_jobs=1),
    "ApproxAP, alpha 100": ApproxAP(alpha=100.0, n_jobs=1),
    "SoftRank@10, recursion": SoftRank("ndcg@10", method="softrank", n_jobs=1),
    "SoftRank@10, exact": SoftRank("ndcg@10", n_jobs=1),
    "BoltzRank, 100 rankings": BoltzRank(n_jobs=1),
}
FITS = {
    "ListNet": ListNet(C=1.0),
    "ListMLE": ListMLE(C=1.0),
    "RankCosine": RankCosine(),
    "ApproxNDCG": ApproxNDCG(C=10.0),
    "ApproxAP": ApproxAP(C=10.0),
    "SoftRank, recursion": SoftRank(method="softrank", C=100.0),
    "BoltzRank": BoltzRank(C=100.0),
    "FeatureRank": FeatureRank(),
    "BLFeatureRank": BLFeatureRank(),
    "DiffRank": DiffRank(),
}


def evaluations():
    """Time one value and gradient of a single query, with 5% relevant documents."""
    rng = np.random.default_rng(0)
    for n in (20, 200, 2000):
        labels = np.zeros(n, dtype=int)
        labels[rng.choice(n, max(1, n // 20), replace=False)] = 1
        scores = rng.normal(size=n)
        batch = Batch(labels, np.array([0, n]), np.ones(1))
        rows = {"sorting the scores": harness.seconds(lambda s=scores: np.argsort(s), repeat=50)}
        for name, learner in OBJECTIVES.items():
            loss = harness.objective(learner, batch)
            rows[name] = harness.seconds(lambda f=loss, s=scores: f(s), repeat=5)
        harness.table(f"One value and gradient, a query of {n:,} documents", rows, unit="us")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(harness.machine())
    evaluations()
    part = harness.training_part(sys.argv[1:], 450)
    shape = f"{part.n_documents:,} documents, {part.n_features} features"
    harness.fits(f"Whole fits, {shape}", FITS, part)
