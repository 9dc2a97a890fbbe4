"""Eight conditional models on the same folds: what an expected loss buys beyond likelihood.

Maximum likelihood, expected gain, their sum L3 and the convex loss, for AUC, AP and NDCG, all over
one space, ``--space``; C, and kappa where there is one, are chosen on the validation part of every
fold. Drawn are differences to maximum likelihood, paired by query, over several seeds of the
simulated data and of whatever a space draws. ``--data`` takes a folder with LETOR folds.
"""

import numpy as np
from common import FOLDS, fold_means, load_folds, plain, read_options, save, standard_error
from matplotlib.figure import Figure
from scipy.stats import ttest_rel

from permdist.comparison import compare
from permdist.models import L3, MLE, ConvexLoss, ExpectedGain

GRID = {"C": [1e-4, 1e-3, 1e-2, 0.1]}
KAPPAS = GRID | {"kappa": [1.0, 100.0]}
MEASURES = ("letor4:map", "letor4:ndcg@10")


def learners(space, seed):
    """Return the models over one space with their settings; AUC has a closed form over pairs."""
    own = {"space": space, "random_state": seed}
    auc = own | ({"space": "pairs"} if space == "rows" else {})
    one = {"n_starts": 1}
    return {
        "MLE": (MLE(graded=False, **auc), GRID),
        "ExpectedGain AUC": (ExpectedGain("auc", **auc, **one), GRID),
        "ExpectedGain AP": (ExpectedGain("ap", **own, **one), GRID),
        "ExpectedGain NDCG": (ExpectedGain("ndcg@10", **own, **one), GRID),
        "L3 AP": (L3("ap", **own), KAPPAS),
        "ConvexLoss AUC": (ConvexLoss("auc", **auc), KAPPAS),
        "ConvexLoss AP": (ConvexLoss("ap", **own), KAPPAS),
        "ConvexLoss NDCG": (ConvexLoss("ndcg@10", **own), KAPPAS),
    }


def main():
    options = read_options(
        __file__,
        __doc__,
        FOLDS,
        queries=100,
        seeds=(3, "seeds of the simulated queries and of the learners"),
        space=("rows", "what the models sum over, such as rows or interleavings"),
    )
    names = list(learners(options.space, 0))
    found = [
        compare(load_folds(options, rng=seed), learners(options.space, seed), measures=MEASURES)
        for seed in range(options.seeds)
    ]
    table = np.array([[fold_means(one, measure) for measure in MEASURES] for one in found])
    means, by_seed = table.mean(axis=0), table - table[:, :, :1]
    values = {
        measure: np.mean([one.values(measure) for one in found], axis=0)
        if options.data  # the same queries, whatever the seed
        else np.concatenate([one.values(measure) for one in found], axis=1)
        for measure in MEASURES
    }
    print(f"{'learner':<20} {'MAP':>8} {'NDCG@10':>8}  MAP less that of MLE by seed, paired p")
    for place, name in enumerate(names):
        first = values[MEASURES[0]]
        same = np.allclose(first[place], first[0])
        p = 1.0 if same else ttest_rel(first[place], first[0]).pvalue
        shown = " ".join(f"{one:+.4f}" for one in by_seed[:, 0, place])
        print(f"{name:<20} {means[0, place]:8.4f} {means[1, place]:8.4f}  {shown}  {p:.3f}")
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    for number, ax in enumerate(figure.subplots(1, 2, sharey=True)):
        own = values[MEASURES[number]]
        for place in range(len(names)):
            more = own[place] - own[0]
            ax.errorbar(more.mean(), place, xerr=standard_error(more), fmt="o", color="#4c72b0")
            ax.plot(by_seed[:, number, place], [place + 0.25] * options.seeds, "|", color="0.5")
        ax.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
        level = f"that of MLE ({means[number, 0]:.3f})"
        ax.set(xlabel=f"{MEASURES[number]} less {level}, one standard error; grey: seeds")
        ax.set_yticks(range(len(names)), names)
        plain(ax)
    ax.invert_yaxis()
    save(figure, options, rules=MEASURES)


if __name__ == "__main__":
    main()
