"""Eight conditional models on the same folds: what an expected loss buys beyond likelihood.

Maximum likelihood, expected gain, their sum L3 and the convex loss, for AUC, AP and NDCG, each
with C chosen on the validation part of every fold. Drawn are differences to maximum likelihood,
paired by query. ``--data`` takes a folder with LETOR folds.
"""

import numpy as np
from common import FOLDS, fold_means, load_folds, plain, read_options, save, standard_error
from matplotlib.figure import Figure
from scipy.stats import ttest_rel

from permdist.comparison import compare
from permdist.models import L3, MLE, ConvexLoss, ExpectedGain

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
GRID = {"C": [0.1, 1.0, 10.0, 100.0]}
MEASURES = ("letor4:map", "letor4:ndcg@10")


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=150)
    folds = load_folds(options)
    entries = {name: (learner, GRID) for name, learner in LEARNERS.items()}
    found = compare(folds, entries, measures=MEASURES)
    by_query = {
        measure: dict(zip(LEARNERS, found.values(measure), strict=True)) for measure in MEASURES
    }
    means = np.transpose([fold_means(found, measure) for measure in MEASURES])
    print(f"{'learner':<20} {'MAP':>8} {'NDCG@10':>8}  p (MAP, paired, against MLE)")
    first = by_query[MEASURES[0]]
    for row, name in zip(means, LEARNERS, strict=True):
        same = np.allclose(first[name], first["MLE"])
        p = 1.0 if same else ttest_rel(first[name], first["MLE"]).pvalue
        print(f"{name:<20} {row[0]:8.4f} {row[1]:8.4f}  {p:.3f}")
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    for ax, measure in zip(figure.subplots(1, 2, sharey=True), MEASURES, strict=True):
        for place, values in enumerate(by_query[measure].values()):
            more = values - by_query[measure]["MLE"]
            ax.errorbar(more.mean(), place, xerr=standard_error(more), fmt="o", color="#4c72b0")
        ax.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        level = means[0, MEASURES.index(measure)]
        ax.set(xlabel=f"{measure} less that of MLE ({level:.3f}), with one standard error")
        ax.set_yticks(range(len(LEARNERS)), list(LEARNERS))
        plain(ax)
    ax.invert_yaxis()
    save(figure, options)


if __name__ == "__main__":
    main()
