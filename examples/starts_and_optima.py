"""Where do optimizers end? Four objectives from many starting points, one of them convex.

The convex loss has one optimum; the expected gain, SoftRank and ApproxAP may have many. Learners
start at 0 (circled) and at random coefficients; drawn are how far the objective ends above the
lowest end, and MAP on test queries. ``--data`` takes LETOR folds, of which the first is used.
"""

import warnings

import numpy as np
from common import FOLDS, load_halves, plain, read_options, save
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from permdist.models import MLE, ApproxAP, ConvexLoss, ExpectedGain, SoftRank

LEARNERS = {
    "ConvexLoss": ConvexLoss("ap", C=10.0, max_iter=1000),
    "ExpectedGain": ExpectedGain("ap", C=1e4, n_starts=1, max_iter=1000),
    "SoftRank": SoftRank("ndcg@10", method="softrank", C=1000.0, max_iter=1000),
    "ApproxAP": ApproxAP(C=100.0, max_iter=1000),
}
COLORS = ["#4c72b0", "#55a868", "#dd8452", "#c44e52"]
SPREAD = 10.0


def main():
    options = read_options(
        __file__, __doc__, FOLDS, queries=120, starts=(20, "starting points, 0 among them")
    )
    train, test = load_halves(options)
    train, test = (part.clean(conflicts=None) for part in (train, test))  # the others teach nothing
    start = MLE().fit(train)  # lends its shape
    starts = SPREAD * np.random.default_rng(0).normal(size=(options.starts, train.n_features))
    starts[0] = 0.0
    warnings.simplefilter("ignore", ConvergenceWarning)  # some starts lead nowhere
    figure = Figure(figsize=(12, 4.4), layout="constrained")
    axes = figure.subplots(1, 2)
    print(f"{'':<13}  objective: from 0   lowest  highest   MAP: from 0   lowest  highest")
    for place, ((name, learner), color) in enumerate(zip(LEARNERS.items(), COLORS, strict=True)):
        ends = []
        for coefficients in starts:
            start.coef_ = coefficients
            learner.fit(train, warm_start_from=start)
            value = learner.history_["objective"][-1] / len(train)
            ends.append((value, learner.score(test, measure="ap")))
        ends = np.transpose(ends)
        row = [f"{one[0]:8.4f} {one.min():8.4f} {one.max():8.4f}" for one in ends]
        print(f"{name:<13} {row[0]:>35}  {row[1]:>29}", flush=True)
        ends[0] -= ends[0].min()
        side = place + np.linspace(-0.3, 0.3, len(starts))
        for ax, one in zip(axes, ends, strict=True):
            ax.plot(side, one, "o", color=color, alpha=0.7)
            ax.plot(side[0], one[0], "o", color="black", fillstyle="none", markersize=11)
    axes[0].set(ylabel="objective per query, above the lowest end")
    axes[1].set(ylabel="MAP on test queries")
    for ax in axes:
        ax.set_xticks(range(len(LEARNERS)), list(LEARNERS))
        plain(ax)
    save(figure, options)


if __name__ == "__main__":
    main()
