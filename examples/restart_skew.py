"""Which restarts should a sample favour? Accuracy against the skew towards good or bad rankings.

On the left, two restart states, the best and the worst ranking, chosen nine times to one, evenly,
or one to nine. On the right, eleven states from best to worst, chosen by the weight exp(k loss).
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from permdist import data
from permdist.measures import parse
from permdist.models import ConvexLoss
from permdist.models.spaces import Restarts
from permdist.samplers import RestartSampler

SKEWS = (5.0, 0.0, -5.0, -10.0, -20.0)


class Sampled(ConvexLoss):
    """The convex loss over the samples of any restart sampler."""

    sampler = None

    def _space(self, batch):
        measure = parse(self.measure)
        return Restarts(batch, measure, sampler=self.sampler, sample_size=self.sample_size, rng=0)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with LETOR folds")
    parser.add_argument("--queries", type=int, default=150, help="queries of the simulation")
    parser.add_argument("--size", type=int, default=30, help="rankings a query")
    parser.add_argument("--output", type=Path, default=Path("restart_skew.png"))
    options = parser.parse_args(arguments)
    if options.data:
        train, _, test = data.load_letor_folds(options.data)[0]
    else:
        whole = data.make_letor(2 * options.queries, rng=0)
        train, test = (whole.where(np.arange(len(whole)) % 2 == part) for part in (0, 1))

    def accuracy(sampler):
        learner = Sampled("ndcg@10", scale=True, C=100.0, sample_size=options.size)
        learner.sampler = sampler
        return learner.fit(train).score(test)

    exact = ConvexLoss("ndcg@10", scale=True, C=100.0).fit(train).score(test)
    # Of two states the losses are 0 and 1, so that exp(k) is the ratio of their chances.
    mixes = {"towards the best": -np.log(9.0), "balanced": 0.0, "towards the worst": np.log(9.0)}
    two = [accuracy(RestartSampler("ndcg@10", rungs=2, skew=skew)) for skew in mixes.values()]
    many = [accuracy(RestartSampler("ndcg@10", rungs=11, skew=skew)) for skew in SKEWS]
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    left.plot(list(mixes), two, "o", color="#4c72b0", markersize=9)
    left.margins(x=0.3)
    left.set(ylabel="NDCG@10 on test queries", xlabel="two restart states, 9 to 1")
    right.plot(SKEWS, many, "o-", color="#4c72b0")
    right.set(xlabel="k of eleven restart states, chance proportional to exp(k loss)")
    for ax in (left, right):
        ax.axhline(exact, color="0.4", linestyle=":", label="all interleavings, exactly")
        ax.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False, loc="lower left")
    figure.savefig(options.output, dpi=110)
    print("  ".join(f"{name}: {value:.4f}" for name, value in zip(mixes, two, strict=True)))
    print("  ".join(f"k={k:g}: {value:.4f}" for k, value in zip(SKEWS, many, strict=True)))
    print(f"The picture: {options.output}")


if __name__ == "__main__":
    main()
