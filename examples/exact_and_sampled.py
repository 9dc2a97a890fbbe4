"""What does sampling cost? The exact objective beside its sampled versions, in four pictures.

Saturation with the sample's size, the effect of the restart skew, the two objectives along the
optimisation of the sampled one, and how quickly the exponent F outgrows the loss.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from permdist import data
from permdist.measures import parse
from permdist.models import ConvexLoss
from permdist.models.spaces import Interleavings, Restarts
from permdist.samplers import RestartSampler


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
    figure = Figure(figsize=(12, 9), layout="constrained")
    axes = figure.subplots(2, 2)

    def accuracy(**settings):
        learner = ConvexLoss("ndcg@10", space="restart", scale=True, C=100.0, **settings)
        return learner.fit(train).score(test, measure="ndcg@10")

    exact = ConvexLoss("ndcg@10", scale=True, C=100.0).fit(train).score(test)
    sizes, skews = (3, 10, 30, 100, 300), (10.0, 5.0, 0.0, -5.0, -10.0, -20.0)
    axes[0, 0].plot(sizes, [accuracy(sample_size=size) for size in sizes], "o-")
    axes[0, 0].set(xscale="log", xlabel="rankings a query", ylabel="NDCG@10 on test queries")
    axes[0, 1].plot(skews, [accuracy(skew=skew, sample_size=30) for skew in skews], "o-")
    axes[0, 1].set(xlabel="restart skew k, favours good restarts below 0", ylabel="NDCG@10")
    for ax in axes[0]:
        ax.axhline(exact, color="0.6", linestyle=":", label="whole lattices, exactly")
        ax.legend(frameon=False)

    sampled = ConvexLoss("ap", space="restart", C=10.0)
    features, batch = sampled._training(train)
    measure = parse("ap")
    spaces = {
        "sampled, 100 rankings": Restarts(batch, measure, sample_size=100, rng=0),
        "exact, all interleavings": Interleavings(batch, measure),
    }
    path = [np.zeros(features.shape[1])]
    for limit in range(1, 13):
        learner = ConvexLoss("ap", space="restart", C=10.0, max_iter=limit).fit(train)
        path.append(learner.coef_)
    for name, space in spaces.items():
        values = [space.log_sums(features @ w, 1.0)[0].sum() for w in path]
        axes[1, 0].plot(values, "o-", label=name)
    axes[1, 0].set(xlabel="iterations on the sampled loss", ylabel="convex loss", yscale="log")
    axes[1, 0].legend(frameon=False)
    for number, w in enumerate(path[:7]):
        a, b = batch.bounds[0]
        sample = RestartSampler("ap", skew=0.0).sample(batch.labels[a:b], 60, rng=0)
        signs = np.sign(batch.labels[a:b][:, None] - batch.labels[a:b][None, :])
        above = np.argsort(sample.orders, axis=1)
        gaps = (features[a:b] @ w)[:, None] - (features[a:b] @ w)[None, :]
        wrong = (above[:, :, None] > above[:, None, :]) & (signs > 0)
        fall = -2.0 * (wrong * gaps).sum(axis=(1, 2))
        axes[1, 1].scatter(sample.delta, fall, s=8, label=f"iteration {number}")
    axes[1, 1].set(xlabel="loss (1 - AP)", ylabel="F - F(best)")
    axes[1, 1].legend(frameon=False, fontsize=8)
    figure.savefig(options.output, dpi=110)
    print(f"The picture: {options.output}")


if __name__ == "__main__":
    main()
