"""Plots on given or on new axes; every function returns the axes or the figure it drew."""

from permdist.plots.chains import autocorrelation, estimated, mixing, rank_plot, smear, trace
from permdist.plots.comparisons import intervals, learning_curves, noise, significance
from permdist.plots.consensus import plot_consensus
from permdist.plots.leaderboards import (
    plot_calibration,
    plot_comparisons,
    plot_intervals,
    plot_win_rates,
)
from permdist.plots.mixtures import plot_centers
from permdist.plots.pictures import (
    collection,
    distances,
    heatmap,
    marginals,
    means,
    measure_values,
    new_axes,
    pairwise,
    sorted_values,
)
from permdist.plots.posteriors import plot_check, plot_forest, plot_rank_probabilities

__all__ = [
    "autocorrelation",
    "collection",
    "distances",
    "estimated",
    "heatmap",
    "intervals",
    "learning_curves",
    "marginals",
    "means",
    "measure_values",
    "mixing",
    "new_axes",
    "noise",
    "pairwise",
    "plot_calibration",
    "plot_centers",
    "plot_check",
    "plot_comparisons",
    "plot_consensus",
    "plot_forest",
    "plot_intervals",
    "plot_rank_probabilities",
    "plot_win_rates",
    "rank_plot",
    "significance",
    "smear",
    "sorted_values",
    "trace",
]
