"""Plots of collections, distributions and evaluations; every function returns its axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import finite
from permdist.plots.sources import drawn_from, estimated_from, names_of, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from permdist._typing import RandomState
    from permdist.data import Queries
    from permdist.distributions import Distribution, TiedRankings
    from permdist.measures import Evaluation, Measure
    from permdist.samplers import Chains

__all__ = [
    "collection",
    "distances",
    "heatmap",
    "marginals",
    "means",
    "measure_values",
    "pairwise",
    "sorted_values",
]

BAD = "#d9d9d9"
DRAWS = 10_000


def collection(queries: Queries, ax: Axes | None = None) -> Axes:
    """Draw every query as a column of its documents, colored by label, longest query first.

    Examples
    --------
    >>> from permdist import data, plots
    >>> axes = plots.collection(data.make_letor(30, rng=0))
    >>> axes.get_xlabel()
    'queries, longest first'
    """
    from matplotlib import colormaps

    ax = ax or new_axes()
    order = np.argsort(-queries.sizes, kind="stable")
    bottom = np.zeros(len(queries))
    grades = np.unique(queries.y)[::-1]
    # Blue shades in order of the labels, grey for 0: readable in print and if color-blind.
    shades = colormaps["Blues"](np.linspace(1.0, 0.4, len(grades)))
    for grade, shade in zip(grades, shades, strict=True):
        counts = np.add.reduceat((queries.y == grade).astype(float), queries.ptr[:-1])[order]
        color = BAD if grade == 0 else shade
        name = f"label {grade}"
        ax.bar(np.arange(len(queries)), counts, 1.0, bottom, color=color, label=name)
        bottom += counts
    ax.set(xlabel="queries, longest first", ylabel="documents", xlim=(-0.5, len(queries) - 0.5))
    ax.legend(frameon=False)
    return finished(ax)


def heatmap(
    values: ArrayLike,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    label: str = "",
    form: str | None = ".2f",
    cmap: str = "viridis",
    limits: tuple[float, float] | None = None,
    shades: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a matrix as colors, with the numbers inside the cells if they fit.

    Parameters
    ----------
    values : array of float, shape (rows, columns)
    rows, columns : sequences of str, optional
        Tick labels.
    label : str
        The label of the color bar.
    form : str or None
        The format of the numbers; None omits them.
    cmap : str
        A matplotlib color map.
    limits : (float, float), optional
        The values at both ends of the color map; by default the smallest and the largest.
    shades : array of float, shape (rows, columns), optional
        The values that determine the colors; by default `values`.
    ax : Axes, optional

    Examples
    --------
    >>> axes = heatmap([[0.1, 0.9], [0.5, 0.5]], rows=["a", "b"], label="share")
    >>> [text.get_text() for text in axes.texts]
    ['0.10', '0.90', '0.50', '0.50']
    """
    table = finite("values", values, ndim=2)
    shown = table if shades is None else finite("shades", shades, ndim=2)
    ax = ax or new_axes()
    low, high = limits or (shown.min(), shown.max())
    image = ax.imshow(shown, cmap=cmap, vmin=low, vmax=high, aspect="auto")
    for side, names, length in (("y", rows, table.shape[0]), ("x", columns, table.shape[1])):
        if names is not None:
            if len(names) != length:
                raise ValueError(f"rows, columns: expected {length} names, got {len(names)}")
            _name_ticks(ax, side, names)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.figure.colorbar(image, ax=ax, label=label, pad=0.02)
    letters = [0] if form is None else [len(format(value, form)) for value in table.flat]
    if form is not None and table.size and _fits(ax, table.shape, max(letters)):
        for (i, j), value in np.ndenumerate(table):
            # Text that is readable on the color, by its luminance.
            red, green, blue = image.cmap(image.norm(shown[i, j]))[:3]
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            ink = "white" if dark else "black"
            text = format(value, form)
            ax.text(j, i, text, ha="center", va="center", color=ink, fontsize=7)
    return ax


def _fits(ax: Axes, shape: tuple[int, ...], letters: int) -> bool:
    """Check whether numbers of so many letters fit into the cells of a heat map."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    width, height = box.width / dpi / shape[1], box.height / dpi / shape[0]  # in inches
    return bool(width >= 0.068 * letters and height >= 0.12)


def means(evaluations: Mapping[str, Evaluation], ax: Axes | None = None) -> Axes:
    """Draw a heat map of the means over queries, of several rankings by several measures.

    Colors range from the worst to the best ranking within each measure.

    Parameters
    ----------
    evaluations : mapping from a ranking's name to its Evaluation
        All with the same measures. The rows are sorted by the first measure.
    ax : Axes, optional
    """
    if not evaluations:
        raise ValueError("evaluations: expected at least one, got none")
    columns = list(next(iter(evaluations.values())))
    names = sorted(evaluations, key=lambda name: -evaluations[name].mean(columns[0]))
    table = np.array([[evaluations[name].mean(column) for column in columns] for name in names])
    low, spread = table.min(axis=0), np.ptp(table, axis=0)
    shades = (table - low) / np.where(spread > 0, spread, 1.0)
    label = "0: the worst ranking by a measure, 1: the best"
    return heatmap(table, rows=names, columns=columns, label=label, shades=shades, ax=ax)


def sorted_values(
    evaluations: Mapping[str, Evaluation], measure: str, ax: Axes | None = None
) -> Axes:
    """Draw the per-query values of one measure, from the best query to the worst.

    The area under a line is the ranking's mean.
    """
    ax = ax or new_axes()
    for name, evaluation in evaluations.items():
        values = evaluation[measure]
        values = np.sort(values[~np.isnan(values)])[::-1]
        share = np.arange(len(values) + 1) / max(len(values), 1)
        text = f"{name} ({evaluation.mean(measure):.3f})"
        ax.stairs(values, share, label=text, linewidth=1.5, baseline=None)
    ax.set(xlabel="share of queries, best first", ylabel=measure, xlim=(0, 1))
    ax.legend(frameon=False)
    return finished(ax)


def distances(
    matrix: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    label: str = "distance",
    ax: Axes | None = None,
) -> Axes:
    """Draw a distance matrix with similar rankings next to each other.

    Rankings are sorted by average-linkage clustering, so that groups appear as dark blocks.

    Examples
    --------
    >>> from permdist import rankings
    >>> orders = [[0, 1, 2, 3], [3, 2, 1, 0], [0, 1, 3, 2]]
    >>> axes = distances(rankings.distance_matrix(orders), ["A", "B", "C"])
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['B', 'C', 'A']
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    table = finite("matrix", matrix, ndim=2)
    if table.shape[0] != table.shape[1]:
        raise ValueError(f"matrix: expected a square matrix, got shape {table.shape}")
    order = list(range(len(table)))
    if len(table) > 2:
        condensed = squareform(table, checks=False)
        order = leaves_list(linkage(condensed, "average", optimal_ordering=True)).tolist()
    if names is not None:
        if len(names) != len(table):
            raise ValueError(f"names: expected {len(table)} names, got {len(names)}")
        names = [names[i] for i in order]
    return heatmap(
        table[np.ix_(order, order)],
        rows=names,
        columns=names,
        label=label,
        form=None,
        cmap="magma",
        ax=ax,
    )


def marginals(
    dist: Distribution | TiedRankings | Chains | ArrayLike,
    ax: Axes | None = None,
    *,
    highest: float | None = None,
    draws: int = DRAWS,
    rng: RandomState = 0,
) -> Axes:
    """Draw rank marginals as a heat map, with the best items on top.

    Where they are not exact, the color bar says how many draws they are estimated from, and the
    largest standard error.

    Parameters
    ----------
    dist : Distribution, TiedRankings, Chains, or array of int, shape (..., n)
        Whatever has draws; an array has orders. Of rankings with ties, a tied item counts at all
        positions of its bucket alike.
    ax : Axes, optional
    highest : float, optional
        The probability with the brightest color, to make several plots comparable; by default
        the largest one.
    draws : int
        How many a distribution draws if it is not exact.
    rng : int, Generator or None
        For these draws.

    Examples
    --------
    >>> from permdist import PlackettLuce, plots
    >>> axes = plots.marginals(PlackettLuce([0.0, 2.0], names=["tea", "coffee"]))
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['coffee', 'tea']
    """
    table = table_of(dist, "rank_marginals", draws, rng)
    names = names_of(dist, len(table))
    order = np.argsort(table @ np.arange(len(table)), kind="stable")
    positions = [str(position) for position in range(1, len(table) + 1)]
    ax = heatmap(
        table[order],
        rows=[names[item] for item in order],
        columns=positions,
        label="probability" + estimated_from(table),
        limits=(0.0, max(float(table.max()) if highest is None else highest, 1e-300)),
        ax=ax,
    )
    ax.set(xlabel="position", ylabel="item")
    for tick in ax.get_xticklabels():
        tick.set(rotation=0, horizontalalignment="center")
    return ax


def pairwise(
    dist: Distribution | TiedRankings | Chains | ArrayLike,
    ax: Axes | None = None,
    *,
    draws: int = DRAWS,
    rng: RandomState = 0,
) -> Axes:
    """Draw the probability that one item is above another, best items first.

    Blue is above, red is below, white is even. Where there are ties, colors count them half. The
    color bar says so if the probabilities are estimates.

    Parameters
    ----------
    dist : Distribution, TiedRankings, Chains, or array of int, shape (..., n)
        Whatever has draws; an array has orders.
    ax : Axes, optional
    draws : int
        How many a distribution draws if it is not exact.
    rng : int, Generator or None
        For these draws.
    """
    found = table_of(dist, "pairwise", draws, rng)
    label, names = "Pr(row above column)", names_of(dist, len(found))
    table = balance = found.copy()
    if hasattr(dist, "pairwise_ties"):
        balance = table + 0.5 * table_of(dist, "pairwise_ties", draws, rng)
        label += " + Pr(tie) / 2"
    for square in (table, balance):
        np.fill_diagonal(square, 0.5)
    order = np.argsort(balance.sum(axis=0), kind="stable")
    shown = [names[item] for item in order]
    ax = heatmap(
        table[np.ix_(order, order)],
        rows=shown,
        columns=shown,
        label=label + estimated_from(found),
        cmap="RdBu",
        limits=(0.0, 1.0),
        shades=balance[np.ix_(order, order)],
        ax=ax,
    )
    ax.set(xlabel="below", ylabel="above")
    return ax


def measure_values(
    dist: Distribution | Chains | ArrayLike,
    measure: str | Measure,
    labels: ArrayLike,
    *,
    draws: int = 5000,
    rng: RandomState = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw a histogram of a measure under a distribution, with its expectation.

    Parameters
    ----------
    dist : Distribution, Chains, or array of int, shape (..., n)
        Whatever has draws; an array has orders.
    measure : Measure or str
    labels : array of int, shape (n,)
    draws : int
        For the histogram of a distribution; its expectation is exact if that is feasible.
    rng : int, Generator or None
    ax : Axes, optional
    """
    from permdist.distributions import Distribution
    from permdist.measures import parse

    ax = ax or new_axes()
    chosen = parse(measure)
    if not chosen.defined(labels):
        raise ValueError(f"measure: {chosen.name!r} is undefined for these labels")
    values = chosen(drawn_from(dist, draws, rng), labels)
    mean, about = float(values.mean()), f" of {len(values):,} draws"
    if isinstance(dist, Distribution):
        found = dist.expect(chosen, labels, draws=draws, rng=rng)
        mean, about = float(found), f" ± {found.standard_error:.2g}" if found.draws else ""
    low, high = chosen.range
    ax.hist(values, bins=np.linspace(low, high, 41).tolist(), color="#4292c6", density=True)
    ax.axvline(mean, color="#cb181d", linewidth=1.5, label=f"mean {mean:.3f}{about}")
    ax.set(xlabel=chosen.name, ylabel="density of draws", xlim=(low, high))
    ax.legend(frameon=False)
    return finished(ax)


def new_axes(width: float = 7.0, height: float = 4.5) -> Axes:
    """Return the axes of a new figure of this size in inches.

    The figure does not belong to pyplot: it needs no closing and changes no global state.
    """
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def _name_ticks(ax: Axes, side: str, names: Sequence[str]) -> None:
    """Set tick labels, smaller and fewer if there are many."""
    step = max(1, int(np.ceil(len(names) / 60)))
    places = range(0, len(names), step)
    size: Any = 8 if len(names) <= 30 else 6
    shown = [as_text(names[place]) for place in places]
    if side == "y":
        ax.set_yticks(places, shown, fontsize=size)
    else:
        ax.set_xticks(places, shown, fontsize=size, rotation=45, ha="right", rotation_mode="anchor")


def as_text(name: str) -> str:
    """Escape a name so that matplotlib does not read it as a formula."""
    return name.replace("$", r"\$")


def finished(ax: Axes) -> Axes:
    """Remove the top and right sides of the frame, and return the axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax
