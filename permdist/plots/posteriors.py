"""Plots of posteriors: intervals, probabilities of places, predictive checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import count
from permdist.plots.comparisons import BEST, OTHERS
from permdist.plots.pictures import as_text, finished, new_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from pandas import DataFrame

    from permdist._typing import FloatArray
    from permdist.posterior import Check

FEWEST_ROWS, MOST_ROWS = 4, 40
RED = "#c44e52"
MEANINGS = {
    "distance": "distance to the consensus, as a share of pairs",
    "wins": "win rate",
    "top": "share of ballots headed",
    "ties": "share of tied pairs",
}


def plot_forest(
    draws: FloatArray,
    names: Sequence[str],
    *,
    level: float = 0.95,
    most: int = 60,
    ax: Axes | None = None,
) -> Axes:
    """Draw the median of each parameter with its interval, and half of the probability in bold.

    Parameters
    ----------
    draws : array of float, shape (draws, k)
    names : sequence of str
    level : float
        Of the wider interval.
    most : int
        The number of parameters to draw, the first ones.
    ax : Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from permdist import plots
    >>> axes = plots.plot_forest(np.random.default_rng(0).normal(size=(99, 2)), ["a", "b"])
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['a', 'b']
    """
    shown = min(len(names), count("most", most))
    ax = ax or new_axes(7.0, 1.0 + 0.24 * max(shown, FEWEST_ROWS))
    tails = [0.5 - 0.5 * level, 0.25, 0.5, 0.75, 0.5 + 0.5 * level]
    low, lower, middle, upper, high = np.quantile(draws[:, :shown], tails, axis=0)
    places = np.arange(shown)
    ax.hlines(places, low, high, color=BEST, linewidth=1.2)
    ax.hlines(places, lower, upper, color=BEST, linewidth=3.5)
    ax.plot(middle, places, "o", color=BEST, markersize=5)
    if (low < 0.0).any() and (high > 0.0).any():
        ax.axvline(0.0, color=OTHERS, linewidth=0.8, linestyle="--", zorder=0)
    ax.set_yticks(places, [as_text(name) for name in names[:shown]], fontsize=8)
    ax.set(ylim=(shown - 0.5, -0.5), xlabel=f"50% and {100.0 * level:g}% credible intervals")
    ax.grid(axis="x", color="#e5e5e5", linewidth=0.7)
    ax.set_axisbelow(True)
    return finished(ax)


def plot_rank_probabilities(table: DataFrame, *, most: int = 40, ax: Axes | None = None) -> Axes:
    """Draw how sure each item's place is, as a map, the best item at the top.

    Parameters
    ----------
    table : DataFrame
        A row per item, a column per place; as from `Posterior.rank_probabilities`.
    most : int
        The number of items to draw, the best ones; as many places.
    ax : Axes, optional

    Examples
    --------
    >>> import pandas as pd
    >>> from permdist import plots
    >>> table = pd.DataFrame([[0.1, 0.9], [0.9, 0.1]], index=["a", "b"], columns=[1, 2])
    >>> axes = plots.plot_rank_probabilities(table)
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['b', 'a']
    """
    from permdist.plots.pictures import heatmap

    values = table.to_numpy(float)
    expected = values @ np.arange(1, values.shape[1] + 1)
    order = np.argsort(expected, kind="stable")[: count("most", most)]
    shown = values[order][:, : len(order)]
    size = len(order)
    ax = ax or new_axes(2.6 + 0.34 * size, 1.4 + 0.3 * size)
    heatmap(
        shown,
        rows=[as_text(str(table.index[item])) for item in order],
        columns=[str(place) for place in range(1, size + 1)],
        label="probability",
        form=".2f" if size <= 12 else None,
        cmap="Blues",
        limits=(0.0, 1.0),
        ax=ax,
    )
    ax.tick_params(axis="x", labelrotation=0)
    if size > 20:  # every fifth place
        ticks = [place for place in range(size) if place == 0 or (place + 1) % 5 == 0]
        ax.set_xticks(ticks, [str(place + 1) for place in ticks])
    ax.set(xlabel="true place", ylabel="")
    return ax


def plot_check(check: Check, *, ax: Axes | None = None) -> Axes:
    """Draw a posterior predictive check: the data in red, replicated data in blue.

    A single number is a line over a histogram. Several are dots, each beside the interval of its
    replicates; red crosses are outside. Up to 40 have their names, and of more the values of the
    data are on the horizontal axis.

    Parameters
    ----------
    check : Check
    ax : Axes, optional
    """
    frame, meaning = check.to_frame(), MEANINGS.get(check.statistic, check.statistic)
    if len(frame) == 1:
        ax = ax or new_axes(6.0, 3.2)
        ax.hist(check.replicated[:, 0], bins="auto", color=BEST, alpha=0.6, label="replicated")
        ax.axvline(float(check.observed[0]), color=RED, linewidth=2.0, label="data")
        p_value = float(check.p_values[0])
        ax.set(xlabel=meaning, ylabel="replicates", title=f"p = {p_value:.3g}")
        ax.legend(frameon=False)
        return finished(ax)
    low, high, mean, data = (frame[name].to_numpy() for name in ("low", "high", "mean", "observed"))
    inside = frame["inside"].to_numpy()
    interval = f"{100.0 * check.level:g}% of replicates"
    if len(frame) <= MOST_ROWS:
        ax = ax or new_axes(7.0, 1.2 + 0.24 * max(len(frame), FEWEST_ROWS))
        places = np.arange(len(frame))
        ax.hlines(places, low, high, color=BEST, linewidth=3.0, alpha=0.6, label=interval)
        _dots(ax, data, places, inside)
        ax.set_yticks(places, [as_text(str(name)) for name in check.labels], fontsize=8)
        ax.set(ylim=(len(frame) - 0.5, -0.5), xlabel=meaning)
    else:
        ax = ax or new_axes(5.2, 4.8)
        ax.vlines(data, low, high, color=BEST, linewidth=1.0, alpha=0.5, label=interval)
        _dots(ax, data, mean, inside)
        ends = [float(min(low.min(), data.min())), float(max(high.max(), data.max()))]
        ax.plot(ends, ends, color=OTHERS, linewidth=0.8, linestyle="--", zorder=0)
        ax.set(xlabel=f"{meaning}: data", ylabel=f"{meaning}: replicates")
    ax.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)
    return finished(ax)


def _dots(ax: Axes, x: FloatArray, y: Any, inside: Any) -> None:
    """Draw numbers inside their intervals as dots, and those outside as crosses."""
    good = np.asarray(inside, dtype=bool)
    ax.plot(x[good], y[good], "o", color="0.2", markersize=4, label="data, inside")
    if not good.all():
        ax.plot(x[~good], y[~good], "X", color=RED, markersize=6, label="outside")
