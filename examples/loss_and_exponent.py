"""Why do good rankings suffice? The exponent F soon outgrows the loss.

Ten queries with ten fixed rankings each: how far F falls below that of the best ranking, averaged
over the first iterations of the optimizer, against the loss of the ranking. At w = 0 all falls are
0 and the loss decides; after an iteration or two it hardly counts.
"""

import warnings

import numpy as np
from common import FOLDS, load_training, plain, read_options, save, with_pairs
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from permdist import GoodBad, data
from permdist.models import ConvexLoss
from permdist.samplers import RestartSampler

ITERATIONS = 10


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=120)
    train = load_training(options)
    train = with_pairs(data.Queries(train.X, (train.y > 0).astype(int), train.qid))
    warnings.simplefilter("ignore", ConvergenceWarning)  # of fits that are stopped on the way
    path = [np.zeros(train.n_features)]
    for limit in range(1, ITERATIONS + 1):
        path.append(ConvexLoss("ap", space="restart", max_iter=limit).fit(train).coef_)

    chosen = np.random.default_rng(0).choice(len(train), min(10, len(train)), replace=False)
    losses, falls = [], []
    for q in chosen:
        X, labels = train[q].X, train[q].y
        sample = RestartSampler("ap", skew=0.0).sample(labels, 10, rng=int(q))
        best = np.argsort(-labels, kind="stable")
        models = [GoodBad(X @ w, labels) for w in path]  # their log-weight is F
        losses.append(sample.delta)
        falls.append([one.log_weight(best) - one.log_weight(sample.orders) for one in models])
    losses, falls = np.array(losses), np.array(falls)
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    for loss, fall in zip(losses, falls, strict=True):
        left.scatter(loss, fall[1:].mean(axis=0), s=16)
    left.set(
        xlabel="loss (1 - AP)",
        ylabel=f"F(best) - F(y), mean of iterations 1 to {ITERATIONS}",
        yscale="symlog",
    )
    left.axhline(1.0, color="0.5", linestyle=":", label="the largest possible loss")
    typical = np.median(np.abs(falls), axis=(0, 2))
    right.plot(typical, "o-", label="median of |F(best) - F(y)|")
    right.axhline(np.median(losses), color="#c44e52", label="median of the loss")
    right.set(xlabel="iteration", yscale="symlog", ylabel="size of the two terms in the exponent")
    right.set_ylim(bottom=0.0)
    for ax in (left, right):
        plain(ax)
        ax.legend(frameon=False)
    print(
        f"after {ITERATIONS} iterations F outweighs the loss {typical[-1] / np.median(losses):.0f}x"
    )
    save(figure, options)


if __name__ == "__main__":
    main()
