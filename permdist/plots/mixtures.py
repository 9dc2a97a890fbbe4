"""Plots of mixtures: the centers of their components side by side."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from permdist.plots.pictures import DRAWS, as_text, finished, new_axes
from permdist.plots.sources import table_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from permdist.distributions import Mixture


def plot_centers(mixture: Mixture, *, ax: Axes | None = None) -> Axes:
    r"""Draw the expected rank of every item in each component, joined by lines.

    The components are columns, as wide apart as one another, with their weights below; the item
    with the best expected rank is at the top. Where lines cross, the groups disagree.

    Parameters
    ----------
    mixture : Mixture
    ax : Axes, optional

    Examples
    --------
    >>> from permdist import Mallows, Mixture, plots
    >>> model = Mixture([Mallows([0, 1, 2], 1.0), Mallows([2, 1, 0], 1.0)], [0.75, 0.25])
    >>> axes = plots.plot_centers(model)
    >>> [tick.get_text() for tick in axes.get_xticklabels()]
    ['1\n75%', '2\n25%']
    """
    from matplotlib import colormaps

    ax = ax or new_axes()
    n, places = mixture.n_items, np.arange(mixture.n_components)
    positions = np.arange(1, n + 1)
    tables = [table_of(part, "rank_marginals", DRAWS, 0) for part in mixture.components]
    ranks = np.array([table @ positions for table in tables])
    colors = colormaps["tab10" if n <= 10 else "viridis"]
    # Names keep a distance from one another, so that they can be read.
    heights, gap = ranks[-1].copy(), 0.06 * max(float(np.ptp(ranks)), 1e-9)
    order = np.argsort(heights, kind="stable")
    for upper, lower in itertools.pairwise(order):
        heights[lower] = max(heights[lower], heights[upper] + gap)
    for item, name in enumerate(mixture.names):
        color = colors(item if n <= 10 else item / (n - 1))
        ax.plot(places, ranks[:, item], "o-", color=color, ms=7, lw=1.8)
        ax.annotate(
            as_text(name),
            (places[-1], heights[item]),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            color=color,
        )
    shares = [f"{100 * weight:.0f}%" for weight in mixture.weights]
    ax.set_xticks(places, [f"{j + 1}\n{share}" for j, share in enumerate(shares)])
    ax.set(xlabel="component and its weight", ylabel="expected rank")
    ax.set_xlim(-0.3, places[-1] + 0.3)
    ax.invert_yaxis()
    return finished(ax)
