"""Which restarts should a sample favor? Accuracy against the skew towards good or bad rankings.

On the left, two restart states, the best and the worst ranking, chosen nine times to one, evenly,
or one to nine. On the right, eleven states from best to worst, chosen by the weight exp(k loss).
Several samples of each kind, and the same loss over all sign vectors, where nothing is drawn.
"""

import numpy as np
from common import FOLDS, load_halves, plain, read_options, save
from matplotlib.figure import Figure

from permdist.models import ConvexLoss
from permdist.models.spaces import Restart

SKEWS = (5.0, 0.0, -5.0, -10.0, -20.0)


def main():
    options = read_options(
        __file__,
        __doc__,
        FOLDS,
        queries=150,
        size=(30, "rankings per query"),
        seeds=(10, "samples of each kind"),
    )
    train, test = load_halves(options)

    def accuracies(skews, rungs):
        spaces = [Restart(options.size, rungs=rungs, skew=skew) for skew in skews]
        learner, seeds = ConvexLoss("ndcg@10"), range(options.seeds)

        def accuracy(space, seed):
            return learner.set_params(space=space, random_state=seed).fit(train).score(test)

        return np.array([[accuracy(space, seed) for seed in seeds] for space in spaces])

    exact = ConvexLoss("ndcg@10", space="rows").fit(train).score(test)
    # Of two states the losses are 0 and 1, so that exp(k) is the ratio of their chances.
    mixes = {"towards the best": -np.log(9.0), "balanced": 0.0, "towards the worst": np.log(9.0)}
    two, many = accuracies(mixes.values(), rungs=2), accuracies(SKEWS, rungs=11)
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    left.margins(x=0.3)
    left.set(ylabel="NDCG@10 on test queries", xlabel="two restart states, 9 to 1")
    right.set(xlabel="k of eleven restart states, chance proportional to exp(k loss)")
    for ax, places, values in ((left, list(mixes), two), (right, SKEWS, many)):
        mean, low, high = values.mean(axis=1), values.min(axis=1), values.max(axis=1)
        ax.plot(places, mean, "o", color="#4c72b0", label=f"mean of {options.seeds} samples")
        ax.vlines(places, low, high, color="#4c72b0", alpha=0.4, linewidth=4, label="their range")
        ax.axhline(exact, color="0.4", linestyle=":", label="all sign vectors")
        plain(ax)
    right.legend(frameon=False, loc="lower left")
    for name, row in zip([*mixes, *(f"k = {k:g}" for k in SKEWS)], [*two, *many], strict=True):
        print(f"{name:<18} {row.mean():.4f}, from {row.min():.4f} to {row.max():.4f}")
    print(f"{'no restarts':<18} {exact:.4f}")
    save(figure, options)


if __name__ == "__main__":
    main()
