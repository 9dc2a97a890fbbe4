"""How many rankings must a sample have? Accuracy on test queries against the size of the sample.

The convex loss is fitted on restart samples of growing size, several times each; the dotted lines
are the same loss over all sign vectors of good-bad pairs, where nothing is drawn.
"""

import numpy as np
from common import FOLDS, load_halves, plain, read_options, save
from matplotlib.figure import Figure

from permdist.models import ConvexLoss

MEASURES = ("map", "ndcg@10")
SIZES = (1, 3, 10, 30, 100, 300)


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=150, seeds=(5, "samples of each size"))
    train, test = load_halves(options)

    def accuracy(**settings):
        learner = ConvexLoss("ndcg@10", **settings).fit(train)
        return [learner.score(test, measure=measure) for measure in MEASURES]

    exact = accuracy(space="rows")
    table = np.empty((len(SIZES), options.seeds, len(MEASURES)))
    for row, size in enumerate(SIZES):
        for seed in range(options.seeds):
            sample = f"restart[sample_size={size}]"
            table[row, seed] = accuracy(space=sample, random_state=seed)
        means = ", ".join(f"{value:.4f}" for value in table[row].mean(axis=0))
        print(f"{size:>4} rankings per query: {means}", flush=True)
    print(f"all sign vectors:         {', '.join(f'{value:.4f}' for value in exact)}")
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    for column, ax in enumerate(figure.subplots(1, len(MEASURES))):
        values = table[:, :, column]
        ax.plot(SIZES, values.mean(axis=1), "o-", label=f"mean of {options.seeds} samples")
        ax.fill_between(
            SIZES, values.min(axis=1), values.max(axis=1), alpha=0.2, label="their range"
        )
        ax.axhline(exact[column], color="0.4", linestyle=":", label="all sign vectors")
        ax.set(
            xscale="log", xlabel="rankings per query", ylabel=f"{MEASURES[column]} on test queries"
        )
        plain(ax)
        ax.legend(frameon=False, loc="lower right")
    save(figure, options)


if __name__ == "__main__":
    main()
