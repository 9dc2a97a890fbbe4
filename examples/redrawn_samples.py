"""Why a sample must be fixed: L-BFGS on the convex loss with one sample, and with new ones.

Section 4 of Dubey et al. draws the rankings once, before the optimization, since a sample that
changes between evaluations is no function that a line search could follow. Here the same objective
is minimized several times over a fixed restart sample, and over one drawn anew at every
evaluation. With new samples the line search soon finds no descent, and L-BFGS stops, with a message
of convergence, where the gradient is nowhere near 0. On the right both are judged by a large sample
that neither has seen.
"""

import numpy as np
from common import FOLDS, load_training, plain, read_options, save, with_pairs
from matplotlib.figure import Figure
from scipy.optimize import minimize

from permdist import data
from permdist.measures import parse
from permdist.models import ConvexLoss
from permdist.models.spaces import Restart

PENALTY = 1e-3  # of |w|^2 per query, for standardized features
LIMITS = {"maxiter": 200, "ftol": 0.0, "gtol": 1e-6}
COLORS = {"fixed": "#4c72b0", "redrawn": "#c44e52"}


def main():
    options = read_options(
        __file__,
        __doc__,
        FOLDS,
        queries=80,
        size=(30, "rankings per query"),
        seeds=(5, "runs of each kind"),
    )
    train = load_training(options)
    train = with_pairs(data.Queries(train.X, (train.y > 0).astype(int), train.qid))
    X = (train.X - train.X.mean(axis=0)) / np.maximum(train.X.std(axis=0), 1e-12)
    _, batch = ConvexLoss(scale=True).training_data(train)
    measure = parse("ap")

    def draw(size, seed):
        return Restart(size).sums(batch, measure, random_state=seed)

    def evaluate(sums, w):
        values, by_scores = sums.log_sums(X @ w, 1.0)
        value = values.mean() + PENALTY * (w @ w)
        return value, X.T @ by_scores / len(values) + 2.0 * PENALTY * w

    judge = draw(20 * options.size, 1_000)
    figure = Figure(figsize=(13, 4.4), layout="constrained")
    axes = figure.subplots(1, 3)
    for kind, color in COLORS.items():
        ends = []
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            fixed, seen = draw(options.size, seed), []

            def objective(w, kind=kind, fixed=fixed, rng=rng, seen=seen):
                sums = fixed if kind == "fixed" else draw(options.size, int(rng.integers(2**31)))
                value, gradient = evaluate(sums, w)
                seen.append((value, np.abs(gradient).max(), evaluate(judge, w)[0]))
                return value, gradient

            begin = np.zeros(X.shape[1])
            end = minimize(objective, begin, jac=True, method="L-BFGS-B", options=LIMITS)
            label = f"{kind} sample" if seed == 0 else None
            for ax, values in zip(axes, zip(*seen, strict=True), strict=True):
                ax.plot(values, ".-", color=color, alpha=0.6, linewidth=0.8, label=label)
            ends.append((len(seen), np.abs(end.jac).max(), evaluate(judge, end.x)[0]))
        counts, slopes, values = np.transpose(ends)
        print(
            f"{kind:<8} {counts.mean():5.1f} evaluations, ends with a gradient of "
            f"{slopes.min():.0e} to {slopes.max():.0e}, by the large sample at {values.min():.3f} "
            f"to {values.max():.3f}; the last reason given: {end.message}"
        )
    axes[0].set(ylabel="convex loss per query, as the optimizer sees it", yscale="log")
    axes[1].set(ylabel="largest derivative, as the optimizer sees it", yscale="log")
    axes[2].set(ylabel="convex loss per query, by a large sample", yscale="log")
    for ax in axes:
        ax.set_xlabel("evaluation")
    axes[0].legend(frameon=False)
    plain(*axes)
    save(figure, options)


if __name__ == "__main__":
    main()
