"""Does a sampled objective lead where the exact one does? Both along the optimization.

The optimizer sees the convex loss over a restart sample; at every iteration the same coefficients
are also judged by all merges of four fixed orders of each class, summed exactly, and the other way
round.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from permdist import data
from permdist.measures import evaluate, parse
from permdist.models import ConvexLoss
from permdist.models.spaces import Lattices, Restarts

ITERATIONS = 15


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with LETOR folds")
    parser.add_argument("--queries", type=int, default=120, help="queries of the simulation")
    parser.add_argument("--output", type=Path, default=Path("exact_and_sampled.png"))
    options = parser.parse_args(arguments)
    if options.data:
        train, _, test = data.load_letor_folds(options.data)[0]
    else:
        whole = data.make_letor(2 * options.queries, rng=0)
        train, test = (whole.where(np.arange(len(whole)) % 2 == part) for part in (0, 1))
    measure = parse("ap")
    features, batch = ConvexLoss("ap")._training(train)
    spaces = {
        "exact": Lattices(batch, measure, orders=4, rng=0),
        "sampled": Restarts(batch, measure, sample_size=100, rng=0),
    }
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax, space, other in zip(axes, ("restart", "lattice"), ("sampled", "exact"), strict=False):
        path = [np.zeros(features.shape[1])]
        for limit in range(1, ITERATIONS + 1):
            learner = ConvexLoss("ap", space=space, C=1.0, max_iter=limit).fit(train)
            path.append(learner.coef_)
        for (name, judge), color in zip(spaces.items(), ("#4c72b0", "#dd8452"), strict=True):
            sums = [judge.log_sums(features @ w, 1.0)[0].mean() for w in path]
            ax.plot(sums, "o-", color=color, label=f"{name} objective")
        ax.set(xlabel=f"iterations on the {other} objective", ylabel="convex loss a query")
        scores = [evaluate(test.X @ w, test.y, test.qid, measure).mean(measure) for w in path]
        axes[2].plot(scores, "o-", label=f"fitted on the {other} objective")
    axes[2].set(xlabel="iterations", ylabel="MAP on test queries")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False)
    figure.savefig(options.output, dpi=110)
    print(f"The picture: {options.output}")


if __name__ == "__main__":
    main()
