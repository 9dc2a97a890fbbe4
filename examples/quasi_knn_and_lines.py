"""What does quasi-KNN see that a line does not? One curved feature, then all of a collection.

(a) relevance as a curve of the feature, as in Figure 9 of Wang et al., and three interval centers;
(b) Kendall's tau on new values by the number of intervals, with noise added to the relevance; (c)
tau of every feature on test queries, against its values up or down. ``--data``: LETOR folds.
"""

import numpy as np
from common import FOLDS, load_halves, plain, read_options, save
from matplotlib.figure import Figure

from permdist.measures import KendallTau, evaluate
from permdist.models.feature_ranks import quasi_knn

COLORS, K, TAU = ["#c44e52", "#dd8452", "#4c72b0"], 8, KendallTau(ties="average")
SIZES, ENDS = range(1, 31), np.array([0, 400])


def relevance(x, noise=None):
    """Order documents by a curve that rises to x = 0 and falls more slowly than it rose."""
    curve = 3.0 - x[:, 0] ** 2 * np.where(x[:, 0] < 0.0, 1.0, 0.25)
    return curve if noise is None else (curve + noise).argsort().argsort()


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=150)
    x, new = (rng := np.random.default_rng(0)).uniform(-5.0, 4.0, (2, ENDS[1], 1))
    first, second, third = (figure := Figure((14, 4.4), layout="constrained")).subplots(1, 3)
    centers = quasi_knn(x, relevance(x, 0.0), ENDS, 3).centers[0]
    nearest = np.abs(x - centers).argmin(axis=1)
    for number, color in enumerate(COLORS):
        group = x[nearest == number]
        first.plot(group, relevance(group), ".", color=color, markersize=4)
        first.axvline(centers[number], color=color, linestyle=":")
    first.set(title="(a) values by their nearest center", xlabel="feature", ylabel="relevance")
    print("centers, from the least relevant up: " + ", ".join(f"{one:.2f}" for one in centers))
    for noise, color in zip((0.0, 3.0, 10.0), COLORS, strict=True):
        known, truth = (relevance(one, noise * rng.normal(size=ENDS[1])) for one in (x, new))
        ranks = [quasi_knn(x, known, ENDS, size).ranks(new, ENDS)[0] for size in SIZES]
        taus = [float(TAU.from_scores(one, truth)) for one in ranks]
        line = float(TAU.from_scores(np.sign(TAU.from_scores(x[:, 0], known)) * new[:, 0], truth))
        second.plot(SIZES, taus, color=color, label=f"noise {noise:g}")
        second.axhline(line, color=color, linestyle=":")
        print(f"noise {noise:2g}: tau by value {line:.4f}, by {K} intervals {taus[K - 1]:.4f}")
    second.set(title="(b) new values; dotted: a line", xlabel="intervals", ylabel="Kendall's tau")
    second.legend(frameon=False, ncols=3, bbox_to_anchor=(1.0, 0.9), loc="center right")
    second.set_ylim(top=1.0)
    train, test = load_halves(options, strict=True)

    def mean_tau(scores, part):
        return evaluate(scores, part.y, part.qid, TAU).mean(TAU)

    ranks = quasi_knn(train.X, train.y, train.ptr, K).ranks(test.X, test.ptr)
    varied = np.flatnonzero(np.ptp(train.X, axis=0))
    signs = np.sign([mean_tau(train.X[:, feature], train) for feature in varied])
    lines = [mean_tau(s * test.X[:, f], test) for s, f in zip(signs, varied, strict=True)]
    curves = [mean_tau(ranks[feature], test) for feature in varied]
    print(f"features better by quasi-KNN: {np.greater(curves, lines).sum()} of {len(varied)}")
    third.axline((0.0, 0.0), slope=1.0, color="0.7", linewidth=0.8)
    third.plot(lines, curves, "o", color="#4c72b0")
    third.set(title=f"(c) features, K = {K}", xlabel="tau by value", ylabel="tau by quasi-KNN")
    for ax in (first, second, third):
        plain(ax)
    save(figure, options)


if __name__ == "__main__":
    main()
