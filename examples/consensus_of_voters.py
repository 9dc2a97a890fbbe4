"""One ranking for many voters: Kemeny's consensus, how firm it is, and what other methods cost.

Simulates voters who rank some of the items. The left picture has the share of the voters with one
item above another, in the order of Kemeny's consensus; the middle one how often two neighbors keep
their order if voters are resampled; the right one how many more disagreements the rankings of other
methods have than the lowest number, which is proved. With ``--data FILE`` it reads a PrefLib file.
"""

import numpy as np
from common import plain, read_options, save
from matplotlib.figure import Figure

from permdist import Ballots, PlackettLuce, data, plots, rankings
from permdist.consensus import METHODS

BLUE, GRAY = "#2b6ca3", "#b8c4ce"


def simulate(voters, n_items, rng):
    """Return rankings from the top down to a random place; all others are below."""
    orders = PlackettLuce(np.linspace(1.8, -1.8, n_items)).sample(voters, rng=rng)
    lengths = rng.integers(3, n_items + 1, size=voters)
    lists = [
        [f"item {chr(65 + item)}" for item in order[:length]]
        for order, length in zip(orders, lengths, strict=True)
    ]
    names = [f"item {chr(65 + item)}" for item in range(n_items)]
    return Ballots.from_orders(lists, subset=False, names=names)


def draw_kept(axes, found):
    """Draw the share of the replicates in which each item stays above the next one."""
    places = np.arange(len(found.kept)) + 0.5
    axes.barh(places, found.kept, color=[BLUE if k >= 0.95 else GRAY for k in found.kept])
    axes.axvline(0.5, color="black", linewidth=0.8, linestyle=":")
    axes.set(ylim=(len(found) - 0.5, -0.5), xlim=(0, 1), xlabel="share of replicates", yticks=[])
    axes.set_title("above the next one", loc="left", fontsize=10)


def main():
    options = read_options(
        __file__,
        __doc__,
        "a PrefLib file (.soc .soi .toc .toi)",
        voters=(60, "how many voters"),
        replicates=(500, "bootstrap replicates"),
    )
    rng = np.random.default_rng(4)
    ballots = (
        Ballots.of(data.load_preflib(options.data))
        if options.data
        else simulate(options.voters, 14, rng)
    )
    found = rankings.consensus(ballots).bootstrap(options.replicates, rng=rng)
    print(found)
    costs = {}
    for method in METHODS:
        order = rankings.consensus(ballots, method).order
        costs[method] = found.majorities.cost(order, found.penalty) - found.lower_bound
    for method, excess in costs.items():
        print(f"{method:<13} {excess:g} disagreements above the lowest number")

    figure = Figure(figsize=(14, 5.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[6, 2, 3])
    shares = found.majorities.shares[np.ix_(found.order, found.order)]
    plots.heatmap(
        np.where(np.isnan(shares), 0.5, shares),
        rows=found.ranked_names,
        columns=found.ranked_names,
        label="share of voters, row above column",
        cmap="RdBu",
        limits=(0.0, 1.0),
        ax=left,
    )
    left.set_title("Majorities, in the order of Kemeny's consensus", loc="left", fontsize=10)
    draw_kept(middle, found)
    names = sorted(costs, key=costs.get, reverse=True)
    right.barh(names, [costs[name] for name in names], color=BLUE)
    right.set_xlabel(f"disagreements above {found.lower_bound:g}")
    right.set_title("cost above the lowest one", loc="left", fontsize=10)
    right.margins(x=0.1)
    plain(middle, right)
    save(figure, options, dpi=150)


if __name__ == "__main__":
    main()
