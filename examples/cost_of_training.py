"""What does a fit cost? Processor seconds against the number of queries, and their length.

AdaRank and RankBoost for fifty rounds, PermuRank for five, SVMMap and RankSVM until they converge.
Grey lines rise in proportion (dotted) and with the square (dashed). ``--data`` takes a folder with
LETOR folds, of whose first training part more and more is used.
"""

import time
import warnings

import numpy as np
from common import FOLDS, plain, read_folds, read_options, save
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from permdist import data
from permdist.models import AdaRank, PermuRank, RankBoost, RankSVM, SVMMap

warnings.simplefilter("ignore", ConvergenceWarning)  # a few rounds are enough here
LEARNERS = {
    "PermuRank": PermuRank("ap", max_iter=5),
    "RankBoost": RankBoost(max_iter=50),
    "RankSVM": RankSVM(C=0.1),
    "SVMMap": SVMMap(C=0.1),
    "AdaRank": AdaRank("ap", accept="all", max_iter=50, patience=50),
}
COLORS, STEPS = ["#8172b3", "#c44e52", "#dd8452", "#4c72b0", "#55a868"], 2.0 ** np.arange(-4, 1)


def seconds(learner, queries):
    """Time a fit by what all processors do for it."""
    start = time.process_time()
    learner.fit(queries)
    return time.process_time() - start


def shorten(queries, length):
    """Keep a most relevant document of every query, and others by chance."""
    rng, kept = np.random.default_rng(0), []
    for a, b in zip(queries.ptr[:-1], queries.ptr[1:], strict=True):
        best, order = a + np.argmax(queries.y[a:b]), a + rng.permutation(b - a)
        kept.append(np.sort([best, *order[order != best][: length - 1]]))
    rows = np.concatenate(kept)
    return data.Queries(queries.X[rows], queries.y[rows], queries.qid[rows])


def main():
    options = read_options(__file__, __doc__, FOLDS, queries=800)
    if options.data:
        many = long = read_folds(options, options.data)[0][0].train.clean(conflicts=None)
    else:
        many = data.make_letor(options.queries, n_documents=(40, 41), empty=0.0, rng=0)
        long = data.make_letor(options.queries // 8, n_documents=(640, 641), empty=0.0, rng=0)
    parts = {
        "queries": [many.where(np.arange(len(many)) < step * len(many)) for step in STEPS],
        "documents of a query": [shorten(long, int(step * long.sizes.max())) for step in STEPS],
    }
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    for ax, (title, some) in zip(figure.subplots(1, 2, sharey=True), parts.items(), strict=True):
        sizes = [len(one) if title == "queries" else one.n_documents / len(one) for one in some]
        print(f"{title:<20}" + "".join(f"{size:9.4g}" for size in sizes))
        for (name, learner), color in zip(LEARNERS.items(), COLORS, strict=True):
            times = [min(seconds(learner, one) for _ in range(3)) for one in some]
            ax.loglog(sizes, times, "o-", color=color, label=name)
            print(f"{name:<20}" + "".join(f"{one:9.4f}" for one in times), flush=True)
        for power, style in ((1, ":"), (2, "--")):
            ax.plot(sizes, 5.0 * (np.array(sizes) / sizes[-1]) ** power, style, color="0.6")
        ax.set(xlabel=title, ylabel="processor seconds of a fit")
        ax.set_xticks(sizes, [f"{size:.0f}" for size in sizes])
        ax.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        plain(ax)
        ax.legend(frameon=False)
    save(figure, options)


if __name__ == "__main__":
    main()
