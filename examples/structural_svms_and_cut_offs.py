"""Why structural SVMs for NDCG@10 learn nothing on long queries, and what helps.

Simulated queries of 120 documents with five grades, of which features tell little. On the left,
the mean hinge as scores grow along a good direction: the papers' (`auc_weight` of 0) rises from
the start, so that w = 0 is its minimum for every C; with a share of `1 - AUC` in the loss it falls
first. On the right, NDCG@10 on other queries by that share, for several C; the dashed line is the
mean over random orders.
"""

import warnings

import numpy as np
from common import plain, read_options, save
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from permdist import objectives
from permdist.data import Queries
from permdist.measures import evaluate
from permdist.models import SVMNDCG, RankSVM

MEASURE = "ndcg@10[ties=average]"


def simulate(n_queries, w, rng):
    X = rng.normal(size=(120 * n_queries, len(w)))
    quality = X @ w + 3.0 * rng.normal(size=len(X))
    y = np.searchsorted(np.quantile(quality, [0.5, 0.75, 0.9, 0.97]), quality)
    return Queries(X, y, np.repeat(np.arange(n_queries), 120))


def judge(scores, queries):
    return evaluate(scores, queries.y, queries.qid, MEASURE).mean(MEASURE)


def main():
    options = read_options(__file__, __doc__, queries=(200, "training queries"))
    rng = np.random.default_rng(0)
    w = rng.normal(size=20) * (rng.random(20) < 0.5)
    w /= np.linalg.norm(w)
    train, other = simulate(options.queries, w, rng), simulate(100, w, rng)
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    direction = RankSVM().fit(train).coef_
    scores = train.X @ (direction / np.linalg.norm(direction))
    sizes, good = np.linspace(0.0, 0.25, 41), (train.y > 0).astype(int)
    for weight in (0.0, 0.1, 0.3, 1.0):
        hinge = objectives.RankingHinge("ndcg@10", auc_weight=weight)
        values = [hinge.values(size * scores, good, train.qid)[0].mean() for size in sizes]
        left.plot(sizes, np.array(values) - values[0], label=f"auc_weight {weight:g}")
    left.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
    left.set(xlabel="length of w", ylabel="mean hinge, less that at w = 0")
    weights = [0.0, 0.03, 0.1, 0.3, 1.0, 3.0]
    for C in (0.01, 0.1, 1.0):
        found = []
        for weight in weights:
            with warnings.catch_warnings():  # of a fit that ends at w = 0
                warnings.simplefilter("ignore", ConvergenceWarning)
                learner = SVMNDCG(auc_weight=weight, C=C).fit(train)
            found.append(judge(learner.predict(other), other))
        right.plot(range(len(weights)), found, "o-", label=f"C = {C:g}")
        print(f"C = {C:<5g}", " ".join(f"{value:.3f}" for value in found))
    chance = judge(np.zeros(len(other.y)), other)
    right.axhline(chance, color="0.5", linestyle="--", linewidth=0.8, zorder=0)
    right.set_xticks(range(len(weights)), [f"{weight:g}" for weight in weights])
    right.set(xlabel="auc_weight", ylabel="NDCG@10 on other queries")
    for ax in (left, right):
        plain(ax)
        ax.legend(frameon=False)
    save(figure, options)


if __name__ == "__main__":
    main()
