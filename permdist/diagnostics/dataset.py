"""Chains as an `xarray.Dataset`, for arviz."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import grades
from permdist.distributions.base import NotExactError
from permdist.distributions.drawn import ask
from permdist.measures import Measure, parse
from permdist.rankings import kendall, order_to_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable

    import xarray
    from numpy.typing import ArrayLike

    from permdist._typing import IntArray
    from permdist.samplers import Chains


def to_dataset(
    chains: Chains,
    measures: Iterable[str | Measure] = (),
    labels: ArrayLike | None = None,
) -> xarray.Dataset:
    """Convert chains to an `xarray.Dataset` for arviz.

    Parameters
    ----------
    chains : Chains
    measures : iterable of Measure or str
        Ranking measures to add as variables.
    labels : array of int, shape (n,), optional
        Relevance labels for the measures; those of the distribution by default.

    Returns
    -------
    xarray.Dataset
        ``rank`` (chain, draw, item), 0 at the top; ``log_prob`` (chain, draw), up to a constant
        if the normalizer is not known; ``distance_to_mode``, Kendall's distance to the most
        probable order, or to the most probable draw if that is not known; the measures. The
        coordinate ``item`` has the names of the items.

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> from permdist.samplers import run_chains
    >>> model = PlackettLuce([2.0, 0.0, 1.0], names=["tea", "milk", "water"])
    >>> dataset = to_dataset(run_chains(model, draws=100, rng=0), ["ap"], labels=[1, 0, 0])
    >>> dict(dataset.sizes)
    {'chain': 4, 'draw': 100, 'item': 3}
    >>> list(dataset)
    ['rank', 'log_prob', 'distance_to_mode', 'ap']
    """
    import xarray

    from permdist import __version__

    orders = chains.drawn("to_dataset")
    chosen = [parse(measure) for measure in measures]
    variables: dict[str, Any] = {
        "rank": (("chain", "draw", "item"), order_to_ranks(orders)),
        "log_prob": (("chain", "draw"), chains.log_prob),
        "distance_to_mode": (("chain", "draw"), kendall(orders, mode_of(chains))),
    }
    for measure in chosen:
        values = measure(orders, _labels(chains, labels))
        variables[measure.name] = (("chain", "draw"), values)
    return xarray.Dataset(
        variables,
        coords={
            "chain": np.arange(chains.n_chains),
            "draw": np.arange(orders.shape[1]),
            "item": list(chains.names),
        },
        attrs={
            "inference_library": "permdist",
            "inference_library_version": __version__,
            "kernel": chains.kernel,
            "thin": chains.thin,
            "tuning_steps": chains.tune,
            "sampling_time": chains.seconds,
            "normalized": int(chains.normalizer is not None),
        },
    )


def mode_of(chains: Chains) -> IntArray:
    """Return the most probable order, or the most probable draw if it is not known."""
    if chains.dist is not None:
        try:
            return np.asarray(ask(chains.dist.mode, method="exact"))
        except NotExactError:
            pass
    if np.isnan(chains.log_weight).any():
        return chains.orders[0, -1].astype(np.int64)
    best = np.unravel_index(chains.log_weight.argmax(), chains.log_weight.shape)
    return chains.orders[best].astype(np.int64)


def _labels(chains: Chains, labels: ArrayLike | None) -> IntArray:
    if labels is None:
        own = getattr(chains.dist, "labels", None)
        if own is None:
            raise TypeError(
                "labels: pass the relevance labels of the items, which the measures need"
            )
        return np.asarray(own)
    label = grades("labels", labels)
    if label.shape != (chains.n_items,):
        raise ValueError(f"labels: expected {chains.n_items} labels, got shape {label.shape}")
    return label
