"""How far do walks stray? The losses of restart samples around the states they started from.

Walks of single flips start at the best ranking, at one half way and at the worst one. The spread
of the losses they see is wide around good rankings and narrow around bad ones, since few items
are good: most flips of a bad ranking change next to nothing.
"""

import numpy as np
from common import read_options, save
from matplotlib.figure import Figure

from permdist import data, plots
from permdist.samplers import RestartSampler


def main():
    options = read_options(
        __file__,
        __doc__,
        "a LETOR file to take its longest query from",
        size=(20_000, "rankings in each sample"),
    )
    labels = np.repeat([1, 0], [5, 95])
    if options.data:
        queries = data.load_letor(options.data).clean()
        labels = (max((query.y for query in queries), key=len) > 0).astype(int)
    figure = Figure(figsize=(12, 8), layout="constrained")
    axes = figure.subplots(2, 2, sharex="col")
    for column, measure in enumerate(("ap", "ndcg")):
        for row, walk in enumerate((20, 400)):
            sampler = RestartSampler(measure, rungs=3, skew=0.0, walk=walk)
            sample = sampler.sample(labels, options.size, rng=0)
            ax = plots.smear(sample, ax=axes[row, column])
            ax.set_title(f"walks of {walk} flips", fontsize=10)
            print(f"walks of {walk} flips\n{sample}\n")
    good, bad = int(labels.sum()), int((labels == 0).sum())
    figure.suptitle(f"Restart samples of a query with {good} good and {bad} bad items")
    save(figure, options)


if __name__ == "__main__":
    main()
