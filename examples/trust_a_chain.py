"""Can a chain be trusted? Autocorrelation of kernels, draws against exact values, cost by size.

Runs Markov chains for a query of the good-bad pair model that is small enough for exact answers,
and for larger and larger ones to see what an effective draw costs.
"""

import numpy as np
from common import read_options, save
from matplotlib.figure import Figure

from permdist import GoodBad, data, diagnostics, plots
from permdist.samplers import run_chains

KERNELS = ("adjacent", "transposition", "relocation", "flip")


def query(n):
    """Make a query with a fifth of its items good, whose scores are informative."""
    labels = (np.arange(n) < max(1, n // 5)).astype(int)
    return GoodBad((labels + np.random.default_rng(n).normal(size=n)) / n, labels)


def real_query(path):
    """Take the first query of at most 18 documents, ranked by its best feature, 40 in LETOR 4."""
    for one in data.load_letor(path).clean():
        if len(one.y) <= 18:
            scores = one.X[:, min(39, one.X.shape[1] - 1)]
            return GoodBad((scores - scores.mean()) / len(scores), (one.y > 0).astype(int))
    raise SystemExit("no query is small enough for exact answers")


def cost(model, kernel, draws):
    """Estimate the steps that an effective draw takes."""
    chains = run_chains(model, draws, kernel=kernel, rng=0)
    return chains.n_chains * draws * chains.thin / chains.summary().table["ess_bulk"].min()


def main():
    options = read_options(
        __file__,
        __doc__,
        "a LETOR file to take the small query from",
        draws=(4000, "draws of each chain"),
        largest=(96, "the most items"),
    )
    small = real_query(options.data) if options.data else query(16)
    figure = Figure(figsize=(12, 8.5), layout="constrained")
    axes = figure.subplots(2, 2)
    for ax, kernel in zip(axes[0], ("adjacent", "relocation"), strict=True):
        chains = run_chains(small, options.draws, kernel=kernel, rng=1)
        print(f"{kernel}: {chains.summary().verdict}")
        plots.autocorrelation(chains, 60, ax)
    comparison = diagnostics.compare_to_exact(chains)
    print(f"\n{comparison}")
    plots.estimated(comparison, axes[1, 0])
    sizes = [n for n in (6, 12, 24, 48, 96) if n <= options.largest]
    costs = {kernel: [cost(query(n), kernel, options.draws) for n in sizes] for kernel in KERNELS}
    plots.mixing(sizes, costs, ax=axes[1, 1])
    save(figure, options)


if __name__ == "__main__":
    main()
