"""A picture of a consensus ranking: the majorities of all pairs, and how firm neighbors are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._check import count
from permdist.plots.comparisons import BEST, SAME
from permdist.plots.leaderboards import shares_map
from permdist.plots.pictures import finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from permdist._typing import FloatArray
    from permdist.consensus import Consensus

FIRM = 0.95


def plot_consensus(consensus: Consensus, *, most: int = 40) -> Figure:
    """Draw the shares of ballots that put one item above another, in the order of the consensus.

    Blue above the diagonal means that the ballots agree with the consensus, red there that a
    majority does not; white cells are pairs that no ballot has. After `Consensus.bootstrap`, bars
    on the right show how often each item stayed above the next one; dark ones did in 95% of the
    replicates or more.

    Parameters
    ----------
    consensus : Consensus
    most : int
        The number of items to draw, the best ones.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from permdist import plots, rankings
    >>> ballots = [["a", "b", "c"], ["a", "c", "b"], ["b", "a", "c"]]
    >>> figure = plots.plot_consensus(rankings.consensus(ballots).bootstrap(20, rng=0))
    >>> [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    ['a', 'b', 'c']
    """
    from matplotlib.figure import Figure

    order = consensus.order[: count("most", most)]
    shown = [consensus.names[item] for item in order]
    size = min(10.0, 2.4 + 0.34 * len(order))
    kept = None if consensus.kept is None else consensus.kept[: len(order) - 1]
    figure = Figure(figsize=(size + 1.4 + 1.8 * (kept is not None), size), layout="constrained")
    panels = 1 if kept is None else 2
    axes = figure.subplots(1, panels, squeeze=False, width_ratios=[size, 1.6][:panels])[0]
    shares = consensus.majorities.shares[np.ix_(order, order)]
    shares_map(shares, shown, axes[0], "share of ballots, row above column")
    axes[0].set_xlabel("below")
    axes[0].set_ylabel("above")
    if kept is not None:
        _draw_kept(axes[1], kept, len(order))
    return figure


def _draw_kept(ax: Axes, kept: FloatArray, rows: int) -> None:
    """Draw a bar between each two rows of the heat map."""
    colors = [BEST if share >= FIRM else SAME for share in kept]
    ax.barh(np.arange(len(kept)) + 0.5, kept, height=0.7, color=colors)
    ax.axvline(0.5, color="white", linewidth=0.8, linestyle=":")
    for place, share in enumerate(kept if rows <= 30 else ()):
        text = f"{share:.2f}"
        ink = "white" if share > 0.3 else "black"
        ax.text(0.04, place + 0.5, text, va="center", fontsize=7, color=ink)
    ax.set(ylim=(rows - 0.5, -0.5), xlim=(0.0, 1.0), xlabel="above the next one,\nresampled")
    ax.set_yticks([])
    finished(ax)
