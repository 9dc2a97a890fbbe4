"""Does a sampled objective lead where the exact one does? Both along the optimization.

The optimizer sees the convex loss over a restart sample; at every iteration the same coefficients
are also evaluated over all that it samples from, every valid sign vector, summed exactly; and the
other way round. Queries are short, so that the exact sum is possible.
"""

import warnings

import numpy as np
from common import FOLDS, load_halves, plain, read_options, save, with_pairs
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from permdist import data
from permdist.measures import evaluate, parse
from permdist.models import ConvexLoss
from permdist.models.spaces import parse_space

ITERATIONS = 15
LONGEST = 14  # documents of a query
SPACES = {"exact": "valid-signs", "sampled": "restart"}


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=120)
    train, test = load_halves(options, n_documents=(6, 12))
    measure = parse("ap")
    warnings.simplefilter("ignore", ConvergenceWarning)  # of fits that are stopped on the way
    train = with_pairs(data.Queries(train.X, (train.y > 0).astype(int), train.qid))
    train = train.where(train.sizes <= LONGEST)
    _, batch = ConvexLoss().training_data(train)
    spaces = {
        name: parse_space(space).sums(batch, measure, random_state=0)
        for name, space in SPACES.items()
    }
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    axes = figure.subplots(1, 3)
    for ax, other in zip(axes, ("sampled", "exact"), strict=False):
        path = [np.zeros(train.n_features)]
        for limit in range(1, ITERATIONS + 1):
            learner = ConvexLoss("ap", space=SPACES[other], max_iter=limit).fit(train)
            path.append(learner.coef_)
        for (name, judge), color in zip(spaces.items(), ("#4c72b0", "#dd8452"), strict=True):
            sums = [judge.log_sums(train.X @ w, 1.0)[0].mean() for w in path]
            ax.plot(sums, "o-", color=color, label=f"{name} objective")
        ax.set(xlabel=f"iterations on the {other} objective", ylabel="convex loss per query")
        scores = [evaluate(test.X @ w, test.y, test.qid, measure).mean(measure) for w in path]
        axes[2].plot(scores, "o-", label=f"fitted on the {other} objective")
    axes[2].set(xlabel="iterations", ylabel="MAP on test queries")
    for ax in axes:
        plain(ax)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False)
    save(figure, options)


if __name__ == "__main__":
    main()
