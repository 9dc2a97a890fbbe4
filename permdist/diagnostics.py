"""Can these chains be trusted? Draws as an xarray Dataset, judged by arviz, or by the truth.

The Dataset has the dimensions ``chain``, ``draw`` and ``item``, which is all that arviz asks for,
before and after its version 1.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from permdist._check import FloatArray, IntArray, count, grades
from permdist._text import aligned
from permdist.distributions import Distribution
from permdist.distributions.base import MAX_LISTED, NotExactError
from permdist.measures import Measure, parse
from permdist.rankings import enumerate_orders, kendall, order_to_ranks

if TYPE_CHECKING:
    import pandas
    import xarray

    from permdist.samplers import Chains

__all__ = ["Comparison", "Summary", "compare_to_exact", "load", "save", "summary", "to_dataset"]

GOOD_RHAT = 1.01
GOOD_ESS = 100  # effective draws for each chain
MOST_DRAWS = 10_000
BATCHES = 30
FORMAT = 1


def to_dataset(
    chains: Chains,
    measures: Iterable[str | Measure] = (),
    labels: ArrayLike | None = None,
) -> xarray.Dataset:
    """Give chains as an `xarray.Dataset` that arviz takes as it is.

    Parameters
    ----------
    chains : Chains
    measures : iterable of Measure or str
        Ranking measures to add, each under its name.
    labels : array of int, shape (n,), optional
        The labels for the measures; those of the distribution by default.

    Returns
    -------
    xarray.Dataset
        ``rank`` (chain, draw, item), 0 at the top; ``log_prob`` (chain, draw), up to a constant
        where the normaliser is not known; ``distance_to_mode``, Kendall's distance to the most
        probable order, or to the most probable draw; the measures. Items go by their names.

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

    orders = chains._drawn("to_dataset")
    label = _labels(chains, labels) if (chosen := [parse(m) for m in measures]) else None
    variables: dict[str, Any] = {
        "rank": (("chain", "draw", "item"), order_to_ranks(orders)),
        "log_prob": (("chain", "draw"), chains.log_prob),
        "distance_to_mode": (("chain", "draw"), kendall(orders, _mode(chains))),
    }
    for measure in chosen:
        variables[measure.name] = (("chain", "draw"), measure(orders, label))
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
            "normalised": int(chains.normaliser is not None),
        },
    )


@dataclass(frozen=True, repr=False)
class Summary:
    """What the diagnostics say.

    Attributes
    ----------
    table : pandas.DataFrame
        For every item's rank (1 at the top), the log-probability and the whole ranking: mean,
        standard deviation, Monte Carlo standard error, R-hat, bulk and tail effective draws. What
        never changes has no R-hat and no effective draws, and says so in `note`.
    converged : bool
        Whether every R-hat is at most 1.01 and there are 100 effective draws for each chain.
    verdict : str
        The same in words, with what to do.
    ess_per_second : float
        Effective draws a second of what mixes worst.
    """

    table: pandas.DataFrame
    converged: bool
    verdict: str
    ess_per_second: float
    kernel: str = ""
    shown: int = field(default=12)

    def __str__(self) -> str:
        table = self.table
        items = table[table.index.str.startswith("rank[")]
        worst = items.sort_values(["r_hat", "ess_bulk"], ascending=[False, True], kind="stable")
        rows = list(table.index[~table.index.isin(items.index)]) + list(worst.index[: self.shown])
        text = table.loc[rows].to_string(float_format=lambda value: f"{value:.4g}", na_rep="")
        left = len(items) - min(self.shown, len(items))
        more = f"\n(and {left} more items that mix better)" if left else ""
        told = {"kernel": self.kernel, "effective draws a second": f"{self.ess_per_second:,.0f}"}
        return f"{text}{more}\n\n{aligned(told)}\n{self.verdict}"

    def __repr__(self) -> str:
        return str(self)


def summary(chains: Chains, *, max_draws: int = MOST_DRAWS) -> Summary:
    """Judge chains by arviz: R-hat, effective draws, standard errors, and a verdict in words.

    Besides every item's rank it looks at the ranking as a whole: the inner products of its ranks
    with those of the mode and of each chain's last draw. Chains that are stuck in different
    places agree about themselves and not about these.

    Parameters
    ----------
    chains : Chains
    max_draws : int
        Longer chains are thinned to so many draws each for R-hat and effective draws, which then
        are a little too low rather than too high; means use all draws.

    Returns
    -------
    Summary

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> from permdist.samplers import run_chains
    >>> found = summary(run_chains(PlackettLuce([2.0, 0.0, 1.0]), draws=500, rng=0))
    >>> found.verdict
    'The chains agree: R-hat is at most 1.00..., with at least ... effective draws.'
    """
    max_draws = count("max_draws", max_draws, minimum=4)
    if chains.n_draws < 4:
        raise ValueError(f"chains: expected at least 4 draws of each, got {chains.n_draws}")
    columns = _from_moments(chains) if chains.moments else _from_draws(chains, max_draws)
    import pandas

    table = pandas.DataFrame(columns, index=columns.pop("name"))
    table.index = table.index.astype(str)
    return _judge(table, chains)


def _from_draws(chains: Chains, max_draws: int) -> dict[str, Any]:
    ranks = chains.ranks
    last = order_to_ranks(np.vstack([_mode(chains)[None], chains.orders[:, -1]]))
    # A ranking's inner product with a reference falls as their Spearman distance grows.
    whole = ranks @ np.unique(last, axis=0).T
    names = [f"rank[{name}]" for name in chains.names]
    stride = -(-chains.n_draws // max_draws)
    items = _diagnose(ranks[:, ::stride].astype(float))
    others = _diagnose(chains.log_prob[:, ::stride, None])
    total = _diagnose(whole[:, ::stride].astype(float))
    worst = int(np.argmax(np.nan_to_num(total["r_hat"], nan=-np.inf)))
    result: dict[str, Any] = {"name": [_weight_name(chains), "whole ranking", *names]}
    means = np.concatenate([[chains.log_prob.mean(), np.nan], ranks.mean(axis=(0, 1)) + 1.0])
    spread = np.concatenate([[chains.log_prob.std(), np.nan], ranks.std(axis=(0, 1))])
    result |= {"mean": means, "sd": spread}
    for key in ("mcse", "r_hat", "ess_bulk", "ess_tail"):
        seen = np.nan if key == "mcse" else total[key][worst if key == "r_hat" else ...].min()
        result[key] = np.concatenate([others[key], [seen], items[key]])
    result["note"] = [*others["note"], total["note"][worst], *items["note"]]
    return result


def _from_moments(chains: Chains) -> dict[str, Any]:
    """Diagnose the means of blocks; a block counts as many effective draws as its spread says."""
    tables = [moments.block_means() for moments in chains.moments]
    length = min(map(len, tables))
    blocks = np.stack([table[:length] for table in tables])
    variance = np.mean([moments.variances() for moments in chains.moments], axis=0)
    found = _diagnose(blocks)
    per_block = min(int(moments.progress[1]) for moments in chains.moments)
    spread = blocks.reshape(-1, blocks.shape[2]).var(axis=0, ddof=1)
    draws = chains.n_chains * chains.n_draws
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = np.where(spread > 0, draws * variance / (per_block * spread), np.nan)
    ess = np.minimum(ess, draws)
    means = blocks.mean(axis=(0, 1))
    means[:-1] += 1.0
    means[-1] -= chains.normaliser or 0.0
    order = np.r_[len(means) - 1, : len(means) - 1]
    names = [_weight_name(chains), *(f"rank[{name}]" for name in chains.names)]
    with np.errstate(divide="ignore", invalid="ignore"):
        mcse = np.sqrt(variance / ess)
    return {
        "name": names,
        "mean": means[order],
        "sd": np.sqrt(variance)[order],
        "mcse": mcse[order],
        "r_hat": found["r_hat"][order],
        "ess_bulk": ess[order],
        "ess_tail": np.full(len(names), np.nan),
        "note": [found["note"][i] for i in order],
    }


def _weight_name(chains: Chains) -> str:
    return "log_weight" if chains.normaliser is None else "log_prob"


def _diagnose(values: FloatArray) -> dict[str, Any]:
    """Diagnose columns of draws, shape (chain, draw, column), by arviz where they vary."""
    import xarray

    arviz = _arviz()
    n_columns = values.shape[2]
    within = np.ptp(values, axis=1).max(axis=0) > 0
    between = np.ptp(values.reshape(-1, n_columns), axis=0) > 0
    result: dict[str, Any] = {
        key: np.full(n_columns, np.nan) for key in ("mcse", "r_hat", "ess_bulk", "ess_tail")
    }
    result["note"] = np.where(between, np.where(within, "", "stuck"), "constant").tolist()
    # Every chain at one value, but not the same: nothing could disagree more.
    result["r_hat"][between & ~within] = np.inf
    result["ess_bulk"][between & ~within] = result["ess_tail"][between & ~within] = len(values)
    if within.any():
        dataset = xarray.Dataset(
            {"x": (("chain", "draw", "column"), values[:, :, within])},
            coords={"chain": np.arange(len(values)), "draw": np.arange(values.shape[1])},
        )
        for key, function, options in (
            ("mcse", arviz.mcse, {"method": "mean"}),
            ("r_hat", arviz.rhat, {}),
            ("ess_bulk", arviz.ess, {"method": "bulk"}),
            ("ess_tail", arviz.ess, {"method": "tail"}),
        ):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # of a chain that is constant beside others
                found = np.asarray(function(dataset, **options)["x"], dtype=float)
            result[key][within] = found
    return result


def _arviz() -> Any:
    """Import arviz without its announcements."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz
    return arviz


def _judge(table: pandas.DataFrame, chains: Chains) -> Summary:
    """Put the table into words."""
    wanted = GOOD_ESS * chains.n_chains
    rhat, ess = table["r_hat"].dropna(), table["ess_bulk"].dropna()
    if rhat.empty:
        verdict = "Every draw is the same ranking: there is nothing to diagnose."
        return Summary(table, True, verdict, 0.0, chains.kernel)
    lowest, highest = float(ess.min()), float(rhat.max())
    if highest > GOOD_RHAT:
        verdict = (
            f"The chains do not agree yet: R-hat of {rhat.idxmax()} is {highest:.3f} "
            f"(above {GOOD_RHAT}). Do not use these draws; run longer, or try another kernel."
        )
    elif lowest < wanted:
        needed = chains.n_draws * wanted / max(lowest, 1e-9)
        verdict = (
            f"The chains agree, but {ess.idxmin()} has only {lowest:,.0f} effective draws; for "
            f"{wanted} take about {np.ceil(needed):,.0f} draws of each chain, or thin more."
        )
    else:
        verdict = (
            f"The chains agree: R-hat is at most {highest:.4f}, with at least {lowest:,.0f} "
            "effective draws."
        )
    if not chains.complete:
        verdict += " The run was interrupted."
    good = highest <= GOOD_RHAT and lowest >= wanted
    return Summary(table, good, verdict, lowest / chains.seconds, chains.kernel)


@dataclass(frozen=True)
class Comparison:
    """How far chains are from the truth.

    Attributes
    ----------
    exact, estimated, standard_errors : arrays of float, shape (n, n)
        Rank marginals, and the standard errors of the estimated ones.
    worst_error : float
        The largest difference of a marginal, in absolute value.
    worst_standard_error : float
        The standard error of that marginal.
    worst_score : float
        The largest difference in standard errors.
    total_variation : float or None
        Between the draws and the distribution, over all orders; None beyond 8 items.
    expected_total_variation : float or None
        What as many independent draws would show on average.
    """

    exact: FloatArray
    estimated: FloatArray
    standard_errors: FloatArray
    worst_error: float
    worst_standard_error: float
    worst_score: float
    total_variation: float | None
    expected_total_variation: float | None

    def __str__(self) -> str:
        rows = {
            "worst error of a rank marginal": f"{self.worst_error:.2g} "
            f"± {self.worst_standard_error:.2g}",
            "worst error in standard errors": f"{self.worst_score:.2f}",
        }
        if self.total_variation is not None:
            rows["total variation"] = f"{self.total_variation:.2g}"
            rows["of independent draws"] = f"{self.expected_total_variation:.2g}"
        return aligned(rows)


def compare_to_exact(chains: Chains, dist: Distribution | None = None) -> Comparison:
    """Compare chains with the truth, for sizes where it is known.

    Parameters
    ----------
    chains : Chains
    dist : Distribution, optional
        The distribution of the chains by default.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from permdist import GoodBad
    >>> from permdist.samplers import run_chains
    >>> model = GoodBad([0.5, 0.1, -0.3, 0.2], [1, 0, 0, 1])
    >>> chains = run_chains(model, draws=2000, kernel="adjacent", rng=0)
    >>> compare_to_exact(chains).worst_score < 5
    True
    """
    truth = chains.dist if dist is None else dist
    if truth is None:
        raise ValueError("dist: expected the distribution of the chains, they carry none")
    if truth.n_items != chains.n_items:
        raise ValueError(f"dist: expected {chains.n_items} items, got {truth.n_items}")
    orders = chains._drawn("compare_to_exact")
    exact, estimated = truth.rank_marginals(), chains.rank_marginals()
    errors = _standard_errors(orders, estimated)
    # A marginal that was never drawn has a spread of 0; independent draws set the least.
    least = np.sqrt(exact * (1.0 - exact) / orders[..., 0].size)
    errors = np.maximum(errors, least)
    gap = np.abs(estimated - exact)
    worst = np.unravel_index(gap.argmax(), gap.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(gap > 1e-12, gap / errors, 0.0)
    variation = expected = None
    if truth.n_items <= MAX_LISTED:
        listed = enumerate_orders(truth.n_items)
        chances = np.exp(truth.log_prob(listed))
        shares = _shares(orders.reshape(-1, truth.n_items), listed)
        draws = orders[..., 0].size
        variation = 0.5 * float(np.abs(shares - chances).sum())
        spread = np.sqrt(2.0 * chances * (1.0 - chances) / (np.pi * draws))
        expected = 0.5 * float(spread.sum())
    return Comparison(
        exact,
        estimated,
        errors,
        float(gap[worst]),
        float(errors[worst]),
        float(scores.max()),
        variation,
        expected,
    )


def _standard_errors(orders: IntArray, estimated: FloatArray) -> FloatArray:
    """Estimate standard errors of rank marginals from batches of consecutive draws."""
    chains, draws, n = orders.shape
    batches = min(BATCHES, draws)
    length = draws // batches
    cut = orders[:, : batches * length].reshape(chains * batches, length, n)
    squares = np.zeros((n, n))
    for batch in cut:
        flat = batch.astype(np.int64) * n + np.arange(n)
        shares = np.bincount(flat.ravel(), minlength=n * n).reshape(n, n) / length
        squares += (shares - estimated) ** 2
    number = chains * batches
    return np.sqrt(squares / max(1, number - 1) / number)


def _shares(orders: IntArray, listed: IntArray) -> FloatArray:
    """Count how often each listed order was drawn."""
    n = listed.shape[1]
    weights = n ** np.arange(n, dtype=np.int64)
    keys = listed @ weights
    sorter = np.argsort(keys)
    found = sorter[np.searchsorted(keys[sorter], orders.astype(np.int64) @ weights)]
    return np.bincount(found, minlength=len(listed)) / len(orders)


def save(chains: Chains, path: str | Path) -> None:
    """Write chains to a netCDF file, which xarray, arviz and many other tools read.

    The file holds the orders and log-weights of all draws, the items' names, and how the chains
    came about. It is whole or it is not there.
    """
    import xarray

    target = Path(path)
    orders = chains._drawn("save")
    dataset = xarray.Dataset(
        {
            "order": (("chain", "draw", "position"), orders),
            "log_weight": (("chain", "draw"), chains.log_weight),
            "accept_rate": (("chain",), chains.accept_rate),
        },
        coords={"item": list(chains.names)},
        attrs={
            "permdist_format": FORMAT,
            "kernel": chains.kernel,
            "thin": chains.thin,
            "tune": chains.tune,
            "seconds": chains.seconds,
            "complete": int(chains.complete),
            "normaliser": json.dumps(chains.normaliser),
            "distribution": repr(chains.dist),
        },
    )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent}: no such directory")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".nc")
    os.close(handle)
    try:
        dataset.to_netcdf(name, engine="h5netcdf")
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load(path: str | Path, dist: Distribution | None = None) -> Chains:
    """Read chains that `save` wrote.

    Parameters
    ----------
    path : path
    dist : Distribution, optional
        The distribution, which the file does not hold.
    """
    import xarray

    from permdist.samplers import Chains

    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"{source}: no such file")
    try:
        with xarray.open_dataset(source, engine="h5netcdf") as opened:
            dataset = opened.load()
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{source}: not a netCDF file, or a damaged one") from error
    if dataset.attrs.get("permdist_format") != FORMAT or "order" not in dataset:
        raise ValueError(f"{source}: expected chains in format {FORMAT}")
    attributes = dataset.attrs
    return Chains(
        orders=np.asarray(dataset["order"].values, dtype=np.int32),
        log_weight=np.asarray(dataset["log_weight"].values),
        names=tuple(str(name) for name in dataset["item"].values),
        kernel=str(attributes["kernel"]),
        thin=int(attributes["thin"]),
        tune=int(attributes["tune"]),
        accept_rate=np.asarray(dataset["accept_rate"].values),
        seconds=float(attributes["seconds"]),
        complete=bool(attributes["complete"]),
        normaliser=json.loads(attributes["normaliser"]),
        dist=dist,
    )


def _mode(chains: Chains) -> IntArray:
    """Give the most probable order, or the most probable draw where it is not known."""
    if chains.dist is not None:
        try:
            return chains.dist.mode()
        except NotExactError:
            pass
    best = np.unravel_index(chains.log_weight.argmax(), chains.log_weight.shape)
    return chains.orders[best].astype(np.int64)


def _labels(chains: Chains, labels: ArrayLike | None) -> IntArray:
    if labels is None:
        own = getattr(chains.dist, "labels", None)
        if own is None:
            raise TypeError("labels: expected the items' relevance labels for the measures")
        return np.asarray(own)
    label = grades("labels", labels)
    if label.shape != (chains.n_items,):
        raise ValueError(f"labels: expected {chains.n_items} labels, got shape {label.shape}")
    return label
