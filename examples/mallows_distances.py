"""Six distances, one agreement: what Mallows' model says about positions.

For each distance theta is chosen such that the center has the same chance. Left: the distribution
of the distance, as a share of the largest one. Right: where the items of the center end up. Swaps
of neighbors, displacements and moves of single items blur the center; for exchanges of any two
items it does not matter how far apart they are.
"""

import numpy as np
from common import plain, read_options, save
from matplotlib.figure import Figure
from scipy.optimize import brentq

from permdist import Mallows, rankings


def with_log_partition(n_items, target, distance):
    """Return the model about 0, 1, ... whose center has log-probability -target."""

    def gap(theta):
        return Mallows(range(n_items), theta, distance).log_partition() - target

    return Mallows(range(n_items), brentq(gap, 0.0, 50.0), distance)


def marginals(model, draws):
    """Return rank marginals: exact ones if there are, otherwise shares of draws."""
    if model.distance != "ulam":
        return model.rank_marginals()
    found = np.zeros((model.n_items, model.n_items))
    np.add.at(found, (model.sample(draws, rng=0), np.arange(model.n_items)), 1.0 / draws)
    return found


def main():
    options = read_options(
        __file__, __doc__, items=(12, "how many items"), draws=(20_000, "draws for Ulam's distance")
    )
    figure = Figure(figsize=(11.0, 4.9), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.0, 1.35))
    axes, grid = left.subplots(), right.subplots(2, 3)
    axes.set_xlabel("distance from the center, share of the largest")
    axes.set_ylabel("probability of at most this distance")
    axes.set_title("Distribution of the distance", loc="left")
    plain(axes)
    print(f"{'distance':<10} {'theta':>8} {'expected distance':>18} {'standard deviation':>19}")
    for ax, distance in zip(grid.flat, rankings.DISTANCES, strict=True):
        model = with_log_partition(options.items, 6.0, distance)
        chances = model.distance_distribution()
        shares = np.arange(len(chances)) / max(1, len(chances) - 1)
        axes.step(shares, chances.cumsum(), where="post", label=distance)
        mean, spread = model.expected_distance(), model.distance_variance() ** 0.5
        print(f"{distance:<10} {model.theta:>8.4f} {mean:>18.3f} {spread:>19.3f}")
        picture = ax.imshow(marginals(model, options.draws), vmin=0.0, vmax=0.6, cmap="Blues")
        ax.set_title(distance, loc="left")
        ax.set_xticks([0, options.items - 1], ["1", str(options.items)])
        ax.set_yticks([0, options.items - 1], ["1", str(options.items)])
    axes.legend(frameon=False)
    right.supxlabel("position")
    right.supylabel("place in the center")
    right.colorbar(picture, ax=grid, shrink=0.7, label="probability", extend="max")
    save(figure, options)


if __name__ == "__main__":
    main()
