"""Plots of Markov chains and of restart samples."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import count, finite
from permdist.diagnostics.exchange import has_trees, load_arviz, to_arviz
from permdist.plots.pictures import finished, new_axes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from permdist.diagnostics import ChainComparison
    from permdist.samplers import Chains, RestartSample

MOST_ITEMS = 5
MOST_DRAWS = 500


def trace(chains: Chains, items: Sequence[str] | None = None) -> Figure:
    """Draw the ranks of some items and the log-probability along the chains, through arviz.

    Parameters
    ----------
    chains : Chains
    items : sequence of str, optional
        Names of items; by default a few, from the top to the bottom of the mean ranking.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from permdist import PlackettLuce, plots
    >>> from permdist.samplers import run_chains
    >>> chains = run_chains(PlackettLuce([1.0, 0.0, 2.0]), 200, kernel="adjacent", rng=0)
    >>> figure = plots.trace(chains)
    """
    from matplotlib.ticker import FixedLocator, MaxNLocator, ScalarFormatter

    places = {"bins": np.arange(0.5, chains.orders.shape[-1] + 1.0), "align": "mid"}
    figure = _figure("plot_trace", _few(chains, items), compact=False, hist_kwargs=places)
    for ax in figure.axes:
        if isinstance(ax.xaxis.get_major_locator(), FixedLocator):
            # One bar per position, but not a tick for each.
            ax.xaxis.set_major_locator(MaxNLocator(12, integer=True))
            ax.xaxis.set_major_formatter(ScalarFormatter())
    return figure


def rank_plot(chains: Chains, items: Sequence[str] | None = None) -> Figure:
    """Compare chains by the ranks of their draws among all draws, through arviz.

    If the chains have mixed, their histograms are uniform.

    Parameters
    ----------
    chains : Chains
    items : sequence of str, optional
        As in `trace`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    dataset = _few(chains, items)
    # Ranks of items tie; a little noise from a fixed seed breaks the ties.
    noise = np.random.default_rng(0).random(dataset["rank"].shape) - 0.5
    return _figure("plot_rank", dataset.assign(rank=dataset["rank"] + noise))


def autocorrelation(chains: Chains, lags: int = 100, ax: Axes | None = None) -> Axes:
    """Draw autocorrelations of the rank of every item and of the log-weight.

    Parameters
    ----------
    chains : Chains
    lags : int
        The largest distance between draws.
    ax : matplotlib.axes.Axes, optional

    Examples
    --------
    >>> from permdist import PlackettLuce, plots
    >>> from permdist.samplers import run_chains
    >>> chains = run_chains(PlackettLuce([1.0, 0.0, 2.0]), 200, kernel="adjacent", rng=0)
    >>> plots.autocorrelation(chains, lags=20).get_xlabel()
    'draws apart'
    """
    ax = ax or new_axes()
    if chains.n_draws < 3:
        raise ValueError(f"chains: expected at least 3 draws per chain, got {chains.n_draws}")
    lags = min(count("lags", lags), chains.n_draws - 1)
    ranks = _autocorrelations(chains.ranks.astype(float), lags)
    for curve in ranks:
        ax.plot(curve, color="#4c72b0", alpha=min(1.0, 4.0 / len(ranks) + 0.1), linewidth=1.0)
    weight = _autocorrelations(np.nan_to_num(chains.log_weight)[..., None], lags)
    if len(weight):
        known = "log-weight" if chains.normalizer is None else "log-probability"
        ax.plot(weight[0], color="#c44e52", linewidth=2.0, label=known)
    ax.plot([], [], color="#4c72b0", label="rank of an item")
    ax.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
    ax.set(xlabel="draws apart", ylabel="autocorrelation", xlim=(0, lags))
    ax.set_title(f"{chains.kernel}, every {chains.thin} steps", fontsize=10)
    ax.legend(frameon=False)
    return finished(ax)


def estimated(comparison: ChainComparison, ax: Axes | None = None) -> Axes:
    """Draw estimated against exact rank marginals, with error bars of two standard errors.

    Parameters
    ----------
    comparison : ChainComparison
        From `permdist.diagnostics.compare_to_exact`.
    ax : matplotlib.axes.Axes, optional
    """
    ax = ax or new_axes()
    exact, found = comparison.exact.ravel(), comparison.estimated.ravel()
    errors = 2.0 * comparison.standard_errors.ravel()
    top = 1.05 * max(exact.max(), found.max())
    ax.plot([0.0, top], [0.0, top], color="0.7", linewidth=0.8, zorder=0)
    ax.errorbar(exact, found, errors, fmt="o", markersize=3, color="#4c72b0", linewidth=0.8)
    ax.set(xlabel="exact probability", ylabel="share of draws", xlim=(0, top), ylim=(0, top))
    ax.set_title(f"worst: {comparison.worst_score:.1f} standard errors", fontsize=10)
    return finished(ax)


def smear(sample: RestartSample, bins: int = 40, ax: Axes | None = None) -> Axes:
    """Draw histograms of the losses of a restart sample, by restart state.

    Parameters
    ----------
    sample : RestartSample
    bins : int
        The number of bins of each histogram.
    ax : matplotlib.axes.Axes, optional

    Examples
    --------
    >>> from permdist import plots, samplers
    >>> sampler = samplers.RestartSampler("ndcg", rungs=3, skew=0.0)
    >>> axes = plots.smear(sampler.sample([1, 0, 0, 1, 0, 0, 0, 0], 300, rng=0))
    >>> axes.get_xlabel()
    'loss (1 - ndcg)'
    """
    from matplotlib import colormaps

    ax = ax or new_axes()
    edges = np.linspace(0.0, 1.0, count("bins", bins) + 1)
    used = np.unique(sample.rung)
    shades = colormaps["viridis"](np.linspace(0.0, 0.85, len(used)))
    for rung, shade in zip(used, shades, strict=True):
        losses = sample.delta[sample.rung == rung]
        name = f"started at {sample.ladder[rung]:.2f}"
        density, _ = np.histogram(losses, bins=edges)
        share = density / density.sum()
        ax.stairs(share, edges, fill=True, color=shade, alpha=0.45, label=name)
        ax.axvline(sample.ladder[rung], color=shade, linestyle=":", linewidth=1.2)
    ax.set(xlabel=f"loss (1 - {sample.measure.name})", ylabel="share of the walk", xlim=(0, 1))
    ax.legend(frameon=False, fontsize=9)
    return finished(ax)


def mixing(
    sizes: ArrayLike, times: Mapping[str, ArrayLike], unit: str = "steps", ax: Axes | None = None
) -> Axes:
    """Draw the cost per effective draw by the number of items.

    Parameters
    ----------
    sizes : array of int
        Numbers of items.
    times : mapping of str to array of float
        The cost at each size, by kernel.
    unit : str
        The unit of the cost.
    ax : matplotlib.axes.Axes, optional

    Examples
    --------
    >>> from permdist import plots
    >>> axes = plots.mixing([10, 100], {"adjacent": [1e3, 1e6], "relocation": [50, 500]})
    >>> axes.get_ylabel()
    'steps per effective draw'
    """
    ax = ax or new_axes()
    n = finite("sizes", sizes, ndim=1)
    for name, values in times.items():
        cost = np.asarray(values, dtype=float)
        slope = np.polyfit(np.log(n), np.log(cost), 1)[0]
        ax.plot(n, cost, "o-", label=f"{name} (grows like n^{slope:.1f})")
    ax.set(xscale="log", yscale="log", xlabel="items", ylabel=f"{unit} per effective draw")
    ax.legend(frameon=False)
    return finished(ax)


def _few(chains: Chains, items: Sequence[str] | None) -> Any:
    """Return a Dataset of some items, with ranks from 1, thinned so that lines are visible."""
    known = ["rank"] if np.isnan(chains.log_weight).any() else ["rank", "log_prob"]
    dataset = chains.to_dataset()[known]
    if items is None:
        by_mean = np.argsort(dataset["rank"].mean(("chain", "draw")).values, kind="stable")
        at = np.linspace(0, len(by_mean) - 1, min(MOST_ITEMS, len(by_mean))).astype(int)
        dataset = dataset.isel(item=by_mean[at])
    else:
        unknown = [item for item in items if item not in chains.names]
        if unknown:
            raise ValueError(f"items: no item is named {unknown[0]!r}")
        dataset = dataset.sel(item=list(items))
    dataset = dataset.isel(draw=slice(None, None, -(-chains.n_draws // MOST_DRAWS)))
    dataset = dataset.assign(rank=dataset["rank"].astype(int) + 1)
    if chains.normalizer is None and "log_prob" in dataset:
        dataset = dataset.rename(log_prob="log_weight")
    return dataset


def _figure(name: str, dataset: Any, **options: Any) -> Figure:
    """Call a plot of arviz, of any version, and return its figure."""
    arviz = load_arviz()
    figure: Figure
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about arviz's own calls of matplotlib
        if not has_trees():
            rows = -(-(dataset.sizes["item"] + 1) // (1 if options else 3))
            size = (9.0, 1.6 * rows) if options else (10.0, 3.0 * rows)
            with _interpreted(arviz):
                axes = getattr(arviz, name)(dataset, figsize=size, **options)
            figure = np.ravel(axes)[0].figure
            figure.tight_layout()
        else:
            tree = to_arviz({"posterior": dataset})
            figure = getattr(arviz, name)(tree, backend="matplotlib").viz["figure"].item()
            figure.set_size_inches(12.0, 2.8 * -(-(dataset.sizes["item"] + 1) // 4))
    return figure


@contextlib.contextmanager
def _interpreted(arviz: Any) -> Iterator[None]:
    """Keep arviz from compiling its histogram, which takes longer than all our histograms do."""
    switch = arviz.utils.Numba
    before = switch.numba_flag
    switch.numba_flag = False
    try:
        yield
    finally:
        switch.numba_flag = before


def _autocorrelations(values: Any, lags: int) -> Any:
    """Return mean autocorrelations over chains of varying columns, (columns, lags + 1)."""
    draws = values.shape[1]
    centered = values - values.mean(axis=(0, 1))
    size = 1 << (2 * draws - 1).bit_length()
    power = np.abs(np.fft.rfft(centered, size, axis=1)) ** 2
    covariance = np.fft.irfft(power.mean(axis=0), size, axis=0)[: lags + 1].T
    varying = covariance[:, 0] > 1e-12 * draws
    return covariance[varying] / covariance[varying, :1]
