"""When it matters which measure a learner optimizes: documents that look good and are not.

Queries of 300 documents, 5 of them relevant, with six independent features. A share of documents
is spam: high in the best feature, and never relevant. Without it all learners are equal; a linear
model cannot rank good documents high and spam low, and the more of it there is, the more it
matters what is given up. On the left NDCG@10 on other queries, C chosen by validation, with
standard errors over seeds; on the right the weights of three features.
"""

import warnings

import numpy as np
from common import plain, read_options, save, standard_error
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from permdist.data import make_letor
from permdist.models import L2, MLE, ApproxNDCG, ConvexLoss, ExpectedGain, RankSVM, SVMMap

MEASURE = "ndcg@10"
PLAIN = {"n_documents": (300, 300), "n_features": 6, "features": "plain"}
LEARNERS = {
    "MLE": (MLE, {}, (1e-3, 0.1)),
    "RankSVM": (RankSVM, {}, (1e-2, 1.0)),
    "SVMMap": (SVMMap, {}, (1.0, 100.0)),
    "ConvexLoss": (ConvexLoss, {"measure": MEASURE, "kappa": 100.0}, (1e-3, 0.1)),
    "ConvexLoss reweighted": (ConvexLoss, {"measure": MEASURE, "reweight": 3}, (1e-3, 0.1)),
    "L2": (L2, {}, (0.01, 1.0)),
    "ExpectedGain": (ExpectedGain, {}, (1e-3, 0.1, 10.0)),
    "ApproxNDCG": (ApproxNDCG, {}, (1.0, 1e3)),
}
COLORS = ("0.75", "0.55", "0.35", "tab:green", "tab:red", "tab:blue", "tab:purple", "tab:orange")


def simulate(n_queries, spam, seed):
    labels, rng = {"relevant": (5, 5), "max_grade": 1, "empty": 0.0}, np.random.default_rng(seed)
    return make_letor(n_queries, **PLAIN, **labels, spam=spam, rng=rng)


def best(name, train, validation):
    kind, options, grid = LEARNERS[name]
    with warnings.catch_warnings():  # of weak penalties, where minima are hard to certify
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [kind(**options, C=C).fit(train) for C in grid]
    return max(fits, key=lambda learner: learner.score(validation, measure=MEASURE))


def main():
    options = read_options(__file__, __doc__, queries=60, seeds=(5, "collections per share"))
    shares = np.array([0.0, 0.02, 0.05, 0.08, 0.12])
    values = np.zeros((len(LEARNERS), len(shares), options.seeds))
    weights = np.zeros((len(LEARNERS), 6))
    sizes = options.queries * np.array([1, 1, 4])
    for column, share in enumerate(shares):
        for seed in range(options.seeds):
            parts = [simulate(n, share, (column, seed, part)) for part, n in enumerate(sizes)]
            for row, name in enumerate(LEARNERS):
                learner = best(name, *parts[:2])
                values[row, column, seed] = learner.score(parts[2], measure=MEASURE)
                if column == 3:
                    weights[row] += learner.coef_ / np.linalg.norm(learner.coef_) / options.seeds
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    print(f"{'share of spam':<24}" + "".join(f"{share:>8.0%}" for share in shares))
    for row, (name, color) in enumerate(zip(LEARNERS, COLORS, strict=True)):
        means = values[row].mean(axis=1)
        left.errorbar(100 * shares, means, standard_error(values[row]), label=name, color=color)
        right.plot(range(3), weights[row, :3], "o-", color=color)
        print(f"{name:<24}" + "".join(f"{mean:>8.3f}" for mean in means))
    left.set(xlabel="spam, % of documents", ylabel="NDCG@10 on other queries", ylim=0.0)
    left.legend(frameon=False, fontsize=9)
    right.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
    right.set_xticks(range(3), ["x0, high in spam", "x1", "x2, of spam only"])
    right.set(ylabel=f"mean weight at {shares[3]:.0%} of spam, |w| = 1", xlim=(-0.3, 2.3))
    plain(left, right)
    save(figure, options)


if __name__ == "__main__":
    main()
