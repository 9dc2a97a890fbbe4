"""Plots of leaderboards: intervals, win rates, calibration, and who met whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import choice, count, finite
from permdist.plots.comparisons import BEST, OTHERS, SAME
from permdist.plots.pictures import as_text, finished, heatmap, new_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike
    from pandas import DataFrame

    from permdist._typing import FloatArray
    from permdist.inference.leaderboard import Leaderboard

LAYOUTS = ("circle", "score")


def plot_intervals(
    leaderboard: Leaderboard | DataFrame,
    *,
    elo: bool | None = None,
    most: int = 60,
    ax: Axes | None = None,
) -> Axes:
    """Draw the score of every item with its interval, and the places it may have.

    Dark blue items may be the best one: their set of places begins with 1. The sets are printed on
    the right.

    Parameters
    ----------
    leaderboard : Leaderboard or DataFrame
        With the columns ``name``, ``score``, ``low``, ``high``, ``rank_low`` and ``rank_high``.
    elo : bool, optional
        Whether to draw ``elo``, ``elo_low`` and ``elo_high``; by default if they are there.
    most : int
        The number of items to draw, the best ones.
    ax : Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from permdist import plots
    >>> from permdist.inference.leaderboard import make
    >>> axes = plots.plot_intervals(make(["a", "b"], [0.5, -0.5], 0.01 * np.eye(2)))
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['a', 'b']
    """
    frame, level = _frame(leaderboard)
    shown = frame.head(count("most", most))
    wanted = "elo" in shown.columns if elo is None else elo
    columns = ("elo", "elo_low", "elo_high") if wanted else ("score", "low", "high")
    missing = [name for name in (*columns, "rank_low", "rank_high") if name not in shown.columns]
    if missing:
        raise ValueError(f"leaderboard: there is no column {', '.join(missing)}")
    size = len(shown)
    ax = ax or new_axes(8.0, 1.2 + 0.24 * size)
    middle, low, high = (shown[column].to_numpy(float) for column in columns)
    ends = np.concatenate([part[np.isfinite(part)] for part in (middle, low, high)])
    span = max(float(np.ptp(ends)), 1e-9)
    # An end at infinity is drawn as a line out of the picture.
    far = (ends.min() - span, ends.max() + span)
    low, high = np.clip(low, *far), np.clip(high, *far)
    best = shown["rank_low"].to_numpy() == 1
    for chosen, color in ((best, BEST), (~best, SAME)):
        places = np.flatnonzero(chosen)
        reach = np.stack([middle - low, high - middle])[:, places]
        ax.errorbar(
            middle[places], places, xerr=reach, fmt="o", color=color, capsize=2, markersize=4
        )
    for place, (first, last) in enumerate(shown[["rank_low", "rank_high"]].to_numpy(int).tolist()):
        text = f"{first}" if first == last else f"{first}\N{EN DASH}{last}"
        ax.annotate(
            text,
            (1.0, place),
            (4, 0),
            xycoords=ax.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
    ax.annotate(
        "places",
        (1.0, 1.0),
        (4, 4),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=7,
        color=OTHERS,
    )
    ax.set_yticks(range(size), [as_text(str(name)) for name in shown["name"]], fontsize=8)
    ax.set(ylim=(size - 0.5, -0.5), xlim=(ends.min() - 0.04 * span, ends.max() + 0.04 * span))
    scale = "Elo scale" if wanted else "score (log-worth)"
    ax.set_xlabel(f"{scale}, with {100 * level:g}% intervals" if level else scale)
    ax.grid(axis="x", color="#e5e5e5", linewidth=0.7)
    ax.set_axisbelow(True)
    return finished(ax)


def plot_win_rates(
    wins: ArrayLike,
    ties: ArrayLike,
    fitted: ArrayLike,
    names: Sequence[str],
    *,
    scores: ArrayLike | None = None,
    most: int = 25,
) -> Figure:
    """Draw heat maps of the observed and of the fitted share of points of each pair, side by side.

    A tie is half a point for both. Blue is a share above one half of the item in the row; pairs
    that never met are white in the left map.

    Parameters
    ----------
    wins : array of float, shape (n, n)
        ``wins[i, j]``: how often i beat j.
    ties : array of float, shape (n, n)
        Symmetric.
    fitted : array of float, shape (n, n)
        The fitted chance that i beats j, plus half that of a tie.
    names : sequence of str
    scores : array of float, shape (n,), optional
        Items are sorted by them, best first; by default by the mean of `fitted`.
    most : int
        The number of items to draw, the best ones.

    Examples
    --------
    >>> from permdist import plots
    >>> wins, ties = [[0, 3], [1, 0]], [[0, 4], [4, 0]]
    >>> figure = plots.plot_win_rates(wins, ties, [[0.5, 0.6], [0.4, 0.5]], ["a", "b"])
    >>> [ax.get_title(loc="left") for ax in figure.axes[:2]]
    ['observed', 'fitted']
    """
    from matplotlib.figure import Figure

    won, tied = finite("wins", wins, ndim=2), finite("ties", ties, ndim=2)
    chance = finite("fitted", fitted, ndim=2)
    n = len(names)
    for name, table in (("wins", won), ("ties", tied), ("fitted", chance)):
        if table.shape != (n, n):
            raise ValueError(f"{name}: expected shape {(n, n)}, got {table.shape}")
    key = chance.mean(axis=1) if scores is None else finite("scores", scores, ndim=1)
    order = np.argsort(-key, kind="stable")[: count("most", most)]
    shown = [str(names[item]) for item in order]
    number = won + won.T + tied
    with np.errstate(invalid="ignore"):
        rate = np.where(number > 0, (won + tied / 2.0) / number, np.nan)
    np.fill_diagonal(rate, np.nan)
    size = min(9.0, 2.2 + 0.32 * len(order))
    figure = Figure(figsize=(2 * size + 1.0, size), layout="constrained")
    for ax, table, title in zip(
        figure.subplots(1, 2), (rate, chance), ("observed", "fitted"), strict=True
    ):
        shares_map(table[np.ix_(order, order)], shown, ax)
        ax.set_title(title, loc="left", fontsize=10)
    return figure


def shares_map(
    shares: FloatArray,
    names: Sequence[str],
    ax: Axes,
    label: str = "share of points, row against column",
) -> None:
    """Draw shares of pairs as a heat map, white where they are NaN and on the diagonal."""
    hole = np.isnan(shares) | np.eye(len(names), dtype=bool)
    heatmap(
        np.where(hole, 0.5, shares),
        rows=names,
        columns=names,
        label=label,
        cmap="RdBu",
        limits=(0.0, 1.0),
        ax=ax,
    )
    # Numbers in cells where nothing was seen would be made up.
    empty = {f"{i},{j}" for i, j in np.argwhere(hole)}
    for text in list(ax.texts):
        j, i = (round(value) for value in text.get_position())
        if f"{i},{j}" in empty:
            text.remove()


def plot_calibration(table: DataFrame, *, label: str = "", ax: Axes | None = None) -> Axes:
    """Draw observed shares by predicted chances; on the diagonal chances are right.

    Parameters
    ----------
    table : DataFrame
        As from `permdist.inference.goodness.calibration`.
    label : str
        What the chances are about, such as ``"chance to win"``.
    ax : Axes, optional

    Examples
    --------
    >>> from permdist import plots
    >>> from permdist.inference.goodness import calibration
    >>> table = calibration([0, 0, 0, 1], [[0.75, 0.25, 0.0]] * 4, bins=2)
    >>> plots.plot_calibration(table).get_ylabel()
    'observed share'
    """
    ax = ax or new_axes(5.2, 5.0)
    ax.plot([0, 1], [0, 1], color=OTHERS, linewidth=0.8, linestyle=":")
    x, y = table["predicted"].to_numpy(), table["observed"].to_numpy()
    reach = np.abs(np.stack([y - table["interval_low"], table["interval_high"] - y]))
    ax.errorbar(x, y, yerr=reach, fmt="none", color=BEST, linewidth=1.0, capsize=2)
    n = table["n"].to_numpy()
    area = 15.0 + 85.0 * n / n.max()
    ax.scatter(x, y, s=area, color=BEST, zorder=3, linewidths=0)
    ax.set(xlabel=label or "predicted chance", ylabel="observed share")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    return finished(ax)


def plot_comparisons(
    counts: ArrayLike,
    names: Sequence[str],
    scores: ArrayLike,
    *,
    layout: str = "circle",
    most: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Draw who met whom: items as dots, pairs as lines whose widths grow with their number.

    Parameters
    ----------
    counts : array of float, shape (n, n)
        How often two items met; symmetric.
    names : sequence of str
    scores : array of float, shape (n,)
    layout : {"circle", "score"}
        Items on a circle, clockwise from the best one at the top; or as high as their scores.
    most : int
        The number of items to draw, the best ones.
    ax : Axes, optional

    Examples
    --------
    >>> from permdist import plots
    >>> axes = plots.plot_comparisons([[0, 5, 1], [5, 0, 0], [1, 0, 0]], list("abc"), [2, 1, 0])
    >>> len(axes.patches)
    2
    """
    from matplotlib.patches import FancyArrowPatch

    choice("layout", layout, LAYOUTS)
    table = finite("counts", counts, ndim=2)
    values = finite("scores", scores, ndim=1)
    if table.shape != (len(names), len(names)) or len(values) != len(names):
        raise ValueError(
            f"counts, scores: expected {len(names)} items, got {table.shape} and {values.shape}"
        )
    order = np.argsort(-values, kind="stable")[: count("most", most)]
    met = table[np.ix_(order, order)]
    size = len(order)
    ax = ax or new_axes(6.5, 6.5)
    at = _places(values[order], layout)
    top = max(float(met.max()), 1e-300)
    # The rare pairs first, so that they do not cover the others.
    pairs = np.argwhere(np.triu(met, 1) > 0)
    widest = 3.5 * min(1.0, np.sqrt(60.0 / max(len(pairs), 1)))  # thinner where there are many
    for i, j in pairs[np.argsort(met[pairs[:, 0], pairs[:, 1]], kind="stable")]:
        share = float(met[i, j]) / top
        ax.add_patch(
            FancyArrowPatch(
                tuple(at[i]),
                tuple(at[j]),
                arrowstyle="-",
                linewidth=0.2 + widest * share,
                color=SAME,
                alpha=0.15 + 0.6 * share,
                shrinkA=0,
                shrinkB=0,
            )
        )
    totals = table.sum(axis=1)[order]
    area = 25.0 + 120.0 * totals / max(float(totals.max()), 1e-300)
    ax.scatter(at[:, 0], at[:, 1], s=area, color=BEST, zorder=3)
    _name_dots(ax, at, [as_text(str(names[item])) for item in order], layout)
    _frame_dots(ax, layout)
    ax.annotate(
        f"{len(pairs):,} of {size * (size - 1) // 2:,} pairs met, up to {top:,.6g} times",
        (0.02, 0.0),
        (0, -10),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=8,
        color="#525252",
    )
    return ax


def _frame(leaderboard: Any) -> tuple[DataFrame, float | None]:
    """Return the table of a leaderboard, and its level if it is known."""
    if hasattr(leaderboard, "to_frame") and not hasattr(leaderboard, "columns"):
        return leaderboard.to_frame(), getattr(leaderboard, "level", None)
    return leaderboard, None


def _places(scores: FloatArray, layout: str) -> FloatArray:
    """Return where the items are drawn."""
    place = np.arange(len(scores))
    if layout == "circle":
        angle = np.pi / 2.0 - 2.0 * np.pi * place / len(scores)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    # Multiples of the golden section keep neighbors by score apart from left to right.
    return np.stack([(place * 0.6180339887) % 1.0, scores], axis=1)


def _name_dots(ax: Axes, at: FloatArray, names: Sequence[str], layout: str) -> None:
    """Write the names beside the dots: around the circle, or on their right."""
    size: Any = 8 if len(names) <= 25 else 6
    for (x, y), name in zip(at, names, strict=True):
        if layout == "score":
            ax.annotate(
                name, (x, y), (7, 0), textcoords="offset points", va="center", fontsize=size
            )
            continue
        turn = float(np.degrees(np.arctan2(y, x)))
        left = x < -1e-9
        ax.annotate(
            name,
            (1.07 * x, 1.07 * y),
            rotation=turn - 180.0 if left else turn,
            rotation_mode="anchor",
            ha="right" if left else "left",
            va="center",
            fontsize=size,
            annotation_clip=False,
        )


def _frame_dots(ax: Axes, layout: str) -> None:
    """Leave the frame away but for the axis of the scores."""
    ax.set_xticks([])
    if layout == "circle":
        ax.spines[:].set_visible(False)
        ax.set_yticks([])
        ax.set(xlim=(-1.55, 1.55), ylim=(-1.55, 1.55), aspect="equal")
        return
    ax.spines["bottom"].set_visible(False)
    ax.set(xlim=(-0.05, 1.25), ylabel="score (log-worth)")
    ax.margins(y=0.08)
    finished(ax)
