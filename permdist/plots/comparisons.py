"""Plots of comparisons: intervals, significant differences and learning curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist.plots.pictures import as_text, finished, heatmap, new_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from permdist.comparison import Comparison
    from permdist.measures import Measure
    from permdist.report.inspection import Inspection

BEST, WORSE, SAME, OTHERS = "#08519c", "#cb181d", "#4292c6", "#969696"
BETTER = "#238b45"
MOST_CURVES = 8


def intervals(
    comparison: Comparison, measure: str | Measure | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the mean of every learner with its confidence interval, best on top.

    The baseline is dark blue; learners significantly below it are red, above it green. Grey
    squares are references, the order of the file and a random order.

    Parameters
    ----------
    comparison : Comparison
    measure : Measure or str, optional
        By default the first one.
    ax : Axes, optional

    Examples
    --------
    >>> from permdist import comparison, data, plots
    >>> folds = data.make_folds(data.make_letor(40, rng=0), 3, rng=0)
    >>> found = comparison.compare(folds, "MLE[C=1], ListNet[C=1]", measures="map")
    >>> axes = plots.intervals(found)
    >>> axes.get_xlabel()
    'ap on test queries, with 95% intervals'
    """
    from permdist.comparison.wording import title

    frame = comparison.to_frame(measure, references=True)
    base = comparison.tested_against(measure)
    ax = ax or new_axes(8.0, 1.2 + 0.27 * len(frame))
    names = []
    for place, (name, row) in enumerate(frame.iterrows()):
        color = BEST if name == base else SAME
        if comparison.is_worse(row) or comparison.is_better(row):
            color = WORSE if comparison.is_worse(row) else BETTER
        shape, note = "o", " (null)" if row["mark"] == "null" else ""
        if row["mark"] == "reference":
            color, shape = OTHERS, "s"
        reach = [[row["mean"] - row["low"]], [row["high"] - row["mean"]]]
        ax.errorbar(row["mean"], place, xerr=reach, fmt=shape, color=color, capsize=2, markersize=5)
        names.append(as_text(f"{name}{note}"))
    ax.axvline(float(frame.loc[base, "mean"]), color=OTHERS, linewidth=0.8, linestyle=":")
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.set_ylim(len(names) - 0.5, -0.5)
    shown = title(comparison.resolve(measure))
    ax.set_xlabel(f"{shown} on test queries, with {100 * comparison.level:g}% intervals")
    return finished(ax)


def significance(
    comparison: Comparison,
    measure: str | Measure | None = None,
    test: str = "t",
    ax: Axes | None = None,
) -> Axes:
    """Draw adjusted p-values of all pairs of learners, best first; dark is significant.

    Parameters
    ----------
    comparison : Comparison
    measure : Measure or str, optional
        By default the first one.
    test : {"t", "wilcoxon", "randomization"}
    ax : Axes, optional
    """
    order = list(comparison.to_frame(measure).index)
    table = comparison.p_values(measure, test).loc[order, order].to_numpy(copy=True)
    np.fill_diagonal(table, 1.0)
    # A logarithmic scale tells 0.05 from 0.001.
    shades = np.log10(np.clip(table, 1e-4, 1.0))
    return heatmap(
        table,
        rows=order,
        columns=order,
        label="log10 p",
        cmap="magma",
        limits=(-4.0, 0.0),
        shades=shades,
        form=".2f" if len(order) <= 12 else None,
        ax=ax,
    )


def learning_curves(
    comparison: Comparison, names: Sequence[str] | None = None, fold: int = 0
) -> Figure:
    """Draw the objective and the validation measure during the chosen fits of one fold.

    Parameters
    ----------
    comparison : Comparison
    names : sequence of str, optional
        Names of learners; by default the best ones with more than two iterations.
    fold : int
        Numbered from 0.

    Returns
    -------
    matplotlib.figure.Figure
        On the left the objective, scaled from 1 at the start to 0 at its minimum; on the right the
        measure that the learner monitors on the validation part, named in the legend.
    """
    from matplotlib.figure import Figure

    if names is None:
        names = with_curves(comparison, fold)
    figure = Figure(figsize=(12, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, name in enumerate(names):
        history = _history(comparison, name, fold)
        params = comparison.outcomes[name][fold].learner["params"]
        color, style = f"C{number % 10}", "-" if number < 10 else "--"
        values = np.array(history["objective"], dtype=float)
        known = ~np.isnan(values)  # that of a start that was kept is not
        lowest = values[known].min(initial=np.inf)
        spread = values[known][0] - lowest if known.any() else 0.0
        if spread > 0:
            steps = np.arange(1, len(values) + 1)
            left.plot(steps, (values - lowest) / spread, style, color=color, label=name)
        measured = np.array(history.get("measure", []), dtype=float)
        steps = np.arange(1, len(measured) + 1)
        text = as_text(f"{name}: {params.get('measure', '')}")
        right.plot(steps, measured, style, color=color, label=text, linewidth=1.3)
    left.set(ylabel="objective, from 1 (start) to 0 (minimum)")
    right.set(ylabel="measure on the validation part")
    for ax in (left, right):
        ax.set(xlabel="iteration or round", xscale="log")
        finished(ax)
    if names:
        figure.legend(*right.get_legend_handles_labels(), loc="outside right center", fontsize=8)
    return figure


def with_curves(comparison: Comparison, fold: int = 0) -> list[str]:
    """Return the learners that `learning_curves` draws by default."""
    ranked = [str(name) for name in comparison.to_frame().index]
    curved = [name for name in ranked if len(_history(comparison, name, fold)["objective"]) > 2]
    return curved[:MOST_CURVES]


def noise(inspection: Inspection, ax: Axes | None = None) -> Axes:
    """Draw the expected measures of one query by noise scale.

    Examples
    --------
    >>> from permdist import plots
    >>> from permdist.report import inspect_query
    >>> axes = plots.noise(inspect_query([1.0, 0.5, -1.0], [1, 0, 0]))
    >>> axes.get_xscale()
    'log'
    """
    ax = ax or new_axes()
    frame = inspection.noise
    for column in frame.columns:
        style = "--" if column == "top score first" else "-"
        ax.plot(frame.index, frame[column], style, marker="o", markersize=3, label=column)
    ax.axvline(inspection.at, color=OTHERS, linewidth=0.8, linestyle=":")
    ax.set(xlabel="noise scale", ylabel="expected value", xscale="log", ylim=(-0.02, 1.02))
    ax.legend(frameon=False, fontsize=8)
    return finished(ax)


def _history(comparison: Comparison, name: str, fold: int) -> dict[str, list[float]]:
    state = comparison.outcomes[name][fold].learner["state"]
    return {"objective": [], **state.get("history_", {})}
