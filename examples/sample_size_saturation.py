"""How many rankings must a sample have? Accuracy on test queries against the size of the sample.

The convex loss is fitted on restart samples of growing size, several times each; the dotted lines
are the same loss over all merges of four orders of each class: only these orders are drawn.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from permdist import data
from permdist.models import ConvexLoss

MEASURES = ("map", "ndcg@10")
SIZES = (1, 3, 10, 30, 100, 300)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with LETOR folds")
    parser.add_argument("--queries", type=int, default=150, help="queries of the simulation")
    parser.add_argument("--seeds", type=int, default=5, help="samples of each size")
    parser.add_argument("--output", type=Path, default=Path("sample_size_saturation.png"))
    options = parser.parse_args(arguments)
    if options.data:
        train, _, test = data.load_letor_folds(options.data)[0]
    else:
        whole = data.make_letor(2 * options.queries, rng=0)
        train, test = (whole.where(np.arange(len(whole)) % 2 == part) for part in (0, 1))

    def accuracy(**settings):
        learner = ConvexLoss("ndcg@10", scale=True, C=0.1, **settings).fit(train)
        return [learner.score(test, measure=measure) for measure in MEASURES]

    exact = accuracy()
    table = np.empty((len(SIZES), options.seeds, len(MEASURES)))
    for row, size in enumerate(SIZES):
        for seed in range(options.seeds):
            sample = {"space": "restart", "sample_size": size, "random_state": seed}
            table[row, seed] = accuracy(**sample)
        means = ", ".join(f"{value:.4f}" for value in table[row].mean(axis=0))
        print(f"{size:>4} rankings a query: {means}", flush=True)
    print(f"all merges:             {', '.join(f'{value:.4f}' for value in exact)}")
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    for column, ax in enumerate(figure.subplots(1, len(MEASURES))):
        values = table[:, :, column]
        ax.plot(SIZES, values.mean(axis=1), "o-", label=f"mean of {options.seeds} samples")
        ax.fill_between(
            SIZES, values.min(axis=1), values.max(axis=1), alpha=0.2, label="their range"
        )
        ax.axhline(exact[column], color="0.4", linestyle=":", label="all merges of four orders")
        ax.set(
            xscale="log", xlabel="rankings a query", ylabel=f"{MEASURES[column]} on test queries"
        )
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="lower right")
    figure.savefig(options.output, dpi=110)
    print(f"The picture: {options.output}")


if __name__ == "__main__":
    main()
