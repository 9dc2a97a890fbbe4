"""The block kernel: how fast it mixes, and log-partition functions of many items with it.

Compares kernels for the good-bad pair model over orders by time, and estimates of log Z with exact
values where there are any, and with thermodynamic integration where there are none.
"""

import numpy as np
from common import plain, read_options, save
from matplotlib.figure import Figure
from scipy.special import gammaln

from permdist import GoodBad
from permdist.samplers import estimate_log_partition, run_chains

KERNELS = {"adjacent": "C7", "transposition": "C0", "relocation": "C1", "block": "C3"}


def query(n, strength=5.0):
    """Make a query with a fifth of its items good, whose scores are informative."""
    labels = (np.arange(n) < max(1, n // 5)).astype(int)
    return GoodBad(strength / n * (labels + np.random.default_rng(n).normal(size=n)), labels)


def rate(model, kernel, draws):
    """Measure effective draws per second, of the rank that mixes worst."""
    options = {"thin": 1 if kernel == "block" else model.n_items, "rng": 0, "n_jobs": 1}
    for number in (1, draws):  # the first run may compile
        chains = run_chains(model, number, kernel=kernel, chains=2, **options)
    return chains.summary().table["ess_bulk"].min() / chains.seconds


def integral(n, draws, nodes=12):
    """Integrate the mean log-weight over the strength of the scores, from log n! at 0."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    total = gammaln(n + 1)
    for root, weight in zip(0.5 + 0.5 * points, weights, strict=True):  # strength = root squared
        chains = run_chains(query(n, 5.0 * root**2), draws, kernel="block", chains=2, rng=0)
        total += weight * chains.log_weight.mean() / root
    return total


def main():
    options = read_options(
        __file__,
        __doc__,
        draws=(2000, "draws of each chain"),
        largest=(200, "the most items"),
        points=(12, "strengths of the scores"),
    )
    draws, largest = options.draws, options.largest
    figure = Figure(figsize=(15, 4.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    sizes = [n for n in (10, 20, 50, 100, 200, 400) if n <= largest]
    for kernel, color in KERNELS.items():
        rates = [rate(query(n), kernel, draws) for n in sizes]
        left.plot(sizes, rates, "o-", color=color, label=kernel)
        print(f"{kernel:<14} {rates[-1]:>10,.0f} effective draws per second, {sizes[-1]} items")
    left.set(title="Effective draws per second", xlabel="items", xscale="log", yscale="log")
    for strength in np.geomspace(0.5, 100.0, options.points):
        model = query(14, strength)
        found = estimate_log_partition(model, rng=int(10 * strength))
        gap = found.value - model.log_partition()
        middle.errorbar(strength, gap, 2.0 * found.standard_error, fmt="C3o")
    middle.axhline(0.0, color="0.5", lw=1)
    middle.set(xlabel="strength of the scores", xscale="log", ylabel="bars: 2 standard errors")
    middle.set_title("log Z of 14 items, estimated less exact")
    for number in (20, 50, 100, 200):
        found = estimate_log_partition(query(largest), number, rng=number)
        right.errorbar(str(number), found.value, 2.0 * found.standard_error, fmt="C3o")
    print(f"{largest} items: {found}; by integration {(reference := integral(largest, draws)):.2f}")
    right.axhline(reference, color="C0", lw=1)
    right.set(title=f"log Z of {largest} items, estimated", xlabel="draws")
    right.set_ylabel("line: thermodynamic integration")
    left.legend(frameon=False)
    plain(left, middle, right)
    save(figure, options)


if __name__ == "__main__":
    main()
