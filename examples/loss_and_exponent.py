"""Why do good rankings suffice? The exponent F soon outgrows the loss.

Ten queries with ten fixed rankings each: how far F falls below that of the best ranking, averaged
over the first iterations of the optimizer, against the loss of the ranking. At w = 0 all falls are
0 and the loss decides; after an iteration or two it hardly counts.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from permdist import data
from permdist.measures import AP
from permdist.models import ConvexLoss
from permdist.models.spaces import Restarts
from permdist.models.spaces.base import Batch
from permdist.samplers import RestartSampler

ITERATIONS = 10


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with LETOR folds")
    parser.add_argument("--queries", type=int, default=120, help="queries of the simulation")
    parser.add_argument("--output", type=Path, default=Path("loss_and_exponent.png"))
    options = parser.parse_args(arguments)
    if options.data:
        train = data.load_letor_folds(options.data)[0].train
    else:
        train = data.make_letor(options.queries, rng=0)
    features, batch = ConvexLoss("ap")._training(train)
    path = [np.zeros(features.shape[1])]
    for limit in range(1, ITERATIONS + 1):
        path.append(ConvexLoss("ap", C=10.0, max_iter=limit).fit(train).coef_)

    chosen = np.random.default_rng(0).choice(len(batch), min(10, len(batch)), replace=False)
    losses, falls = [], []
    for q in chosen:
        a, b = batch.bounds[q]
        one = Batch(batch.labels[a:b], np.array([0, b - a]), batch.scale[[q]])
        sampler = RestartSampler("ap", skew=0.0)
        space = Restarts(one, AP(), sampler=sampler, sample_size=10, rng=int(q))
        slopes = space._slopes.reshape(-1, b - a)[1:]  # F(y) - F(best) is linear in the scores
        losses.append(space._losses[0, 1:])
        falls.append([-slopes @ features[a:b] @ w for w in path])
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
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
    figure.savefig(options.output, dpi=110)
    print(
        f"after {ITERATIONS} iterations F outweighs the loss {typical[-1] / np.median(losses):.0f}x"
    )
    print(f"The picture: {options.output}")


if __name__ == "__main__":
    main()
