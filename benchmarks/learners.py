"""Learners: the cost of an objective beside two matrix products, its growth, and whole fits.

    python benchmarks/learners.py [FOLDER WITH LETOR FOLDS]

The first table takes the training part of the first fold, or a simulated collection.
"""

from __future__ import annotations

import sys
import time

import harness
import numpy as np
from sklearn.base import clone

from permdist import data
from permdist.measures import parse
from permdist.models import L3, MLE, ConvexLoss, ExpectedGain
from permdist.models.spaces import parse_space


def products(features):
    w, g = np.ones(features.shape[1]), np.ones(len(features))
    return harness.seconds(lambda: (features @ w, features.T @ g), repeat=20)


def spaces(batch):
    names = {
        "pairs, AUC": ("pairs", "auc"),
        "rows, AP": ("rows", "ap"),
        "rows, NDCG@10": ("rows", "ndcg@10"),
        "interleavings, AP": ("interleavings", "ap"),
        "restart, 100 rankings, AP": ("restart", "ap"),
    }
    return {
        name: parse_space(space).sums(batch, parse(measure), random_state=0)
        for name, (space, measure) in names.items()
    }


def evaluations(queries):
    features, batch = harness.training(ConvexLoss(), queries)
    scores = features @ np.random.default_rng(0).normal(size=features.shape[1])
    rows = {"two matrix products": products(features)}
    for name, space in spaces(batch).items():
        space.resort(scores)  # as a learner does before it solves
        rows[f"convex loss, {name}"] = harness.seconds(lambda s=space: s.log_sums(scores, 1.0))
        rows[f"expected gain, {name}"] = harness.seconds(lambda s=space: s.mean_gains(scores))
    title = f"Value and gradient, {len(batch)} queries, {len(scores):,} documents"
    harness.table(title, rows)


def growth():
    rng = np.random.default_rng(0)
    for queries, documents, features in (
        (100, 20, 46),
        (1000, 20, 46),
        (100, 200, 46),
        (20, 2000, 46),
        (100, 20, 700),
    ):
        n = queries * documents
        labels = np.tile(np.arange(documents) < max(1, documents // 10), queries).astype(int)
        part = data.Queries(
            rng.normal(size=(n, features)), labels, np.repeat(np.arange(queries), documents)
        )
        matrix, batch = harness.training(ConvexLoss(), part)
        scores = matrix @ rng.normal(size=features) / np.sqrt(features)
        rows = {"two matrix products": products(matrix)}
        for name, space in spaces(batch).items():
            space.resort(scores)
            rows[name] = harness.seconds(lambda s=space, at=scores: s.log_sums(at, 1.0), repeat=3)
        title = f"Convex loss, {queries} queries x {documents} documents x {features} features"
        harness.table(title, rows)


def fits(queries):
    learners = {
        "MLE": MLE(scale=True, C=10.0),
        "ExpectedGain AP": ExpectedGain("ap", scale=True, C=10.0, n_starts=1),
        "L3 AP": L3("ap", scale=True, C=10.0),
        "ConvexLoss AP, rows": ConvexLoss("ap", scale=True, C=10.0),
        "ConvexLoss AP, interleavings": ConvexLoss("ap", space="interleavings", scale=True, C=10.0),
        "ConvexLoss AP, restart": ConvexLoss("ap", space="restart", scale=True, C=10.0),
    }
    harness.fits("Whole fits", learners, queries)


def exact_and_sampled(folds):
    """Print what a sample of each size costs and reaches, beside the exact sums."""
    variants = {
        f"restart, {size:,} rankings": f"restart[sample_size={size}]" for size in (10, 100, 1000)
    }
    variants |= {"rows": "rows", "interleavings": "interleavings"}
    print("\nConvex loss for AP, C = 0.003 without scale: test MAP of all folds, and one fit")
    for name, space in variants.items():
        learner = ConvexLoss("ap", scale=False, C=0.003, space=space)
        begin = time.perf_counter()
        reached = [clone(learner).fit(fold.train).score(fold.test) for fold in folds]
        seconds = (time.perf_counter() - begin) / len(folds)
        print(f"  {name:<24} MAP {np.mean(reached):.4f}  {seconds:6.2f} s")


if __name__ == "__main__":
    print(harness.machine())
    if len(sys.argv) > 1:
        parts = list(data.load_letor_folds(sys.argv[1]))
        collection = parts[0].train
    else:
        whole, third = data.make_letor(900, rng=0), np.arange(900) % 3
        collection, held_out, test = (whole.where(third == part) for part in range(3))
        parts = [data.Fold(collection, held_out, test)]
    evaluations(collection)
    growth()
    fits(collection)
    exact_and_sampled(parts)
