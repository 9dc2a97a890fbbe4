"""Eight conditional models on the same folds: what an expected loss buys beyond likelihood.

Maximum likelihood, expected gain, their sum L3 and the convex loss, for AUC, AP and NDCG, each
with C chosen on the validation part of every fold. Drawn are differences to maximum likelihood,
paired by query. ``--data`` takes a folder with LETOR folds.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import ttest_rel

from permdist import data
from permdist.models import L3, MLE, ConvexLoss, ExpectedGain, cross_validate

LEARNERS = {
    "MLE": MLE(scale=True),
    "ExpectedGain AUC": ExpectedGain("auc", space="pairs", scale=True, n_starts=1),
    "ExpectedGain AP": ExpectedGain("ap", scale=True, n_starts=1),
    "ExpectedGain NDCG": ExpectedGain("ndcg@10", scale=True, n_starts=1),
    "L3 AP": L3("ap", scale=True),
    "ConvexLoss AUC": ConvexLoss("auc", space="pairs", scale=True),
    "ConvexLoss AP": ConvexLoss("ap", scale=True),
    "ConvexLoss NDCG": ConvexLoss("ndcg@10", scale=True),
}
MEASURES = ("letor4:map", "letor4:ndcg@10")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with LETOR folds")
    parser.add_argument("--queries", type=int, default=150, help="simulated queries of each part")
    parser.add_argument("--output", type=Path, default=Path("compare_conditional_models.png"))
    options = parser.parse_args(arguments)
    if options.data:
        folds = data.load_letor_folds(options.data)
    else:
        whole, third = (
            data.make_letor(3 * options.queries, rng=0),
            np.arange(3 * options.queries) % 3,
        )
        parts = [whole.where(third == part) for part in range(3)]
        folds = [parts[turn:] + parts[:turn] for turn in range(3)]
    grid = {"C": [0.1, 1.0, 10.0, 100.0]}
    found = {}
    print(f"{'learner':<20} {'MAP':>8} {'NDCG@10':>8}  p (MAP, paired, against MLE)")
    for name, learner in LEARNERS.items():
        found[name] = cross_validate(learner, folds, grid, select="letor4:map", measures=MEASURES)
        values = found[name].per_query(MEASURES[0])
        same = np.allclose(values, found["MLE"].per_query(MEASURES[0]))
        p = 1.0 if same else ttest_rel(values, found["MLE"].per_query(MEASURES[0])).pvalue
        means = " ".join(f"{found[name].mean(measure):8.4f}" for measure in MEASURES)
        print(f"{name:<20} {means}  {p:.3f}", flush=True)
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    for ax, measure in zip(figure.subplots(1, 2, sharey=True), MEASURES, strict=True):
        for place, result in enumerate(found.values()):
            more = result.per_query(measure) - found["MLE"].per_query(measure)
            error = more.std(ddof=1) / np.sqrt(len(more))
            ax.errorbar(more.mean(), place, xerr=error, fmt="o", color="#4c72b0")
        ax.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        level = found["MLE"].mean(measure)
        ax.set(xlabel=f"{measure} less that of MLE ({level:.3f}), with one standard error")
        ax.set_yticks(range(len(found)), list(found))
        ax.spines[["top", "right"]].set_visible(False)
    ax.invert_yaxis()
    figure.savefig(options.output, dpi=110)
    print(f"\nThe picture: {options.output}")


if __name__ == "__main__":
    main()
