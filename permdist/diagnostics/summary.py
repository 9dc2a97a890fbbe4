"""Diagnostics of chains by arviz: a table and a verdict."""

from __future__ import annotations

import textwrap
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import count
from permdist._result import Result, frame_cells
from permdist._text import aligned, plural, visible
from permdist.diagnostics.dataset import mode_of
from permdist.diagnostics.exchange import TAILS, load_arviz
from permdist.rankings import order_to_ranks

if TYPE_CHECKING:
    import pandas

    from permdist._typing import FloatArray
    from permdist.samplers import Chains

GOOD_RHAT = 1.01
GOOD_ESS = 100  # effective draws per chain
FEW_DRAWS = 20  # per chain: with fewer, R-hat means nothing
MOST_DRAWS = 10_000


@dataclass(frozen=True, repr=False)
class Summary(Result):
    """The diagnostics of chains.

    Attributes
    ----------
    table : pandas.DataFrame
        For every item's rank (1 at the top), the log-probability and the whole ranking: mean,
        standard deviation, Monte Carlo standard error, R-hat, bulk and tail effective draws.
        Constant quantities have no R-hat and no effective draws; see the column `note`.
    converged : bool
        Whether every R-hat is at most 1.01 and there are 100 effective draws per chain.
    verdict : str
        The same in words, with a recommendation.
    ess_per_second : float
        Effective draws per second of the quantity that mixes worst.
    """

    table: pandas.DataFrame
    converged: bool
    verdict: str
    ess_per_second: float
    kernel: str = ""
    shown: int = field(default=12)

    def to_frame(self) -> pandas.DataFrame:
        """Return a copy of the table, whose columns are those of `table`."""
        return self.table.rename_axis("quantity")

    @property
    def caption(self) -> str:
        """The verdict."""
        return self.verdict

    def _facts(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "effective draws per second": f"{self.ess_per_second:,.0f}"}

    def _cells(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        rows, _ = self._worst()
        frame = self.to_frame().loc[rows[:most]]
        frame["r_hat"] = ["" if value != value else f"{value:.3f}" for value in frame["r_hat"]]
        return frame_cells(frame if frame["note"].any() else frame.drop(columns="note"))

    def _remarks(self) -> list[str]:
        _, left = self._worst()
        return [f"Not shown: {left} more items that mix better, in to_frame()."] if left else []

    def __str__(self) -> str:
        return f"{self.details()}\n{textwrap.fill(visible(self.verdict), 88)}"

    def details(self) -> str:
        """Return the table as text, items that mix worst first, without the verdict."""
        rows, left = self._worst()
        text = self.table.loc[rows].to_string(
            float_format=lambda value: f"{value:.4g}",
            formatters={"r_hat": lambda value: "" if value != value else f"{value:.3f}"},
            na_rep="",
        )
        more = f"\n(and {left} more items that mix better)" if left else ""
        told = {name: str(value) for name, value in self._facts().items()}
        return f"{visible(text)}{more}\n\n{aligned(told)}"

    def _worst(self) -> tuple[list[str], int]:
        """Return the rows to show, items that mix worst first, and how many items are left out."""
        table = self.table
        items = table[table.index.str.startswith("rank[")]
        # R-hats that differ in the third decimal count as equal: then sort by effective draws.
        alike = items.assign(r_hat=items["r_hat"].round(2))
        worst = alike.sort_values(["r_hat", "ess_bulk"], ascending=[False, True], kind="stable")
        rows = [*table.index[~table.index.isin(items.index)], *worst.index[: self.shown]]
        return rows, len(items) - min(self.shown, len(items))

    def __repr__(self) -> str:
        return str(self)


def summary(chains: Chains, *, max_draws: int = MOST_DRAWS) -> Summary:
    """Diagnose chains by arviz: R-hat, effective draws, standard errors, and a verdict in words.

    Besides the rank of every item it considers the whole ranking: the inner products of its ranks
    with those of the mode and of each chain's last draw. Chains that are stuck in different
    places can agree on nearly every item, but not on these.

    Parameters
    ----------
    chains : Chains
    max_draws : int
        Longer chains are thinned to this number of draws each for R-hat and effective draws,
        which makes the latter slightly too low; means use all draws.

    Returns
    -------
    Summary

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> from permdist.samplers import run_chains
    >>> model = PlackettLuce([2.0, 0.0, 1.0])
    >>> found = summary(run_chains(model, draws=500, kernel="adjacent", thin=5, rng=0))
    >>> found.verdict
    'The chains agree: R-hat is at most ..., with at least ... effective draws.'
    """
    max_draws = count("max_draws", max_draws, minimum=4)
    if chains.n_draws < 4:
        raise ValueError(f"chains: expected at least 4 draws per chain, got {chains.n_draws}")
    columns = _from_moments(chains) if chains.moments else _from_draws(chains, max_draws)
    import pandas

    table = pandas.DataFrame(columns, index=columns.pop("name"))
    table.index = table.index.astype(str)
    if np.isnan(chains.log_weight).any() or np.isnan(table["mean"].iloc[0]):
        table = table.drop(index=_weight_name(chains))  # not computed
    return _judge(table, chains)


def _from_draws(chains: Chains, max_draws: int) -> dict[str, Any]:
    ranks = chains.ranks
    last = order_to_ranks(np.vstack([mode_of(chains)[None], chains.orders[:, -1]]))
    # A ranking's inner product with a reference falls as their Spearman distance grows.
    whole = ranks @ np.unique(last, axis=0).T
    names = [f"rank[{name}]" for name in chains.names]
    stride = -(-chains.n_draws // max_draws)
    items = diagnose(ranks[:, ::stride].astype(float))
    others = diagnose(chains.log_prob[:, ::stride, None])
    total = diagnose(whole[:, ::stride].astype(float))
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
    """Diagnose the means of blocks; their variance gives the number of effective draws."""
    longest = max(int(moments.progress[1]) for moments in chains.moments)
    tables = [moments.block_means(longest) for moments in chains.moments]
    length = min(map(len, tables))
    if length < 4:
        raise ValueError(f"chains: expected at least {4 * longest} draws per chain")
    blocks = np.stack([table[:length] for table in tables])
    variance = np.mean([moments.variances() for moments in chains.moments], axis=0)
    found = diagnose(blocks)
    draws = chains.n_chains * chains.n_draws
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = np.minimum(variance / found["mcse"] ** 2, draws)
    means = np.mean([moments.means() for moments in chains.moments], axis=0)
    means[:-1] += 1.0
    means[-1] -= chains.normalizer or 0.0
    order = np.r_[len(means) - 1, : len(means) - 1]
    names = [_weight_name(chains), *(f"rank[{name}]" for name in chains.names)]
    return {
        "name": names,
        "mean": means[order],
        "sd": np.sqrt(variance)[order],
        "mcse": found["mcse"][order],
        "r_hat": found["r_hat"][order],
        "ess_bulk": ess[order],
        "ess_tail": np.full(len(names), np.nan),
        "note": [found["note"][i] for i in order],
    }


def _weight_name(chains: Chains) -> str:
    return "log_weight" if chains.normalizer is None else "log_prob"


def diagnose(values: FloatArray) -> dict[str, Any]:
    """Diagnose columns of draws by arviz where they vary.

    Parameters
    ----------
    values : array of float, shape (chain, draw, column)

    Returns
    -------
    dict of str to array, shape (column,)
        ``mcse``, ``r_hat``, ``ess_bulk``, ``ess_tail`` and ``note``, which says what is constant.
    """
    import xarray

    arviz = load_arviz()
    n_columns = values.shape[2]
    values = np.nan_to_num(values)
    rounding = 1e-10 * (1.0 + np.abs(values).max(axis=(0, 1)))
    still = np.ptp(values, axis=1) <= rounding
    within = ~still.all(axis=0)
    between = np.ptp(values.reshape(-1, n_columns), axis=0) > rounding
    result: dict[str, Any] = {
        key: np.full(n_columns, np.nan) for key in ("mcse", "r_hat", "ess_bulk", "ess_tail")
    }
    result["note"] = [_note(between[column], still[:, column]) for column in range(n_columns)]
    # Every chain is constant, at different values: the worst possible disagreement.
    result["r_hat"][between & ~within] = np.inf
    result["ess_bulk"][between & ~within] = result["ess_tail"][between & ~within] = len(values)
    if within.any():
        dataset = xarray.Dataset(
            {"x": (("chain", "draw", "column"), values[:, :, within])},
            coords={"chain": np.arange(len(values)), "draw": np.arange(values.shape[1])},
        )
        halves = dataset
        if len(values) == 1:  # compare the halves of a single chain
            half = values.shape[1] // 2
            parts = values[0, : 2 * half, within].T.reshape(2, half, -1)
            halves = xarray.Dataset(
                {"x": (("chain", "draw", "column"), parts)},
                coords={"chain": [0, 1], "draw": np.arange(half)},
            )
        for key, function, options in (
            ("mcse", arviz.mcse, {"method": "mean"}),
            ("r_hat", arviz.rhat, {}),
            ("ess_bulk", arviz.ess, {"method": "bulk"}),
            ("ess_tail", arviz.ess, {"method": "tail", "prob": TAILS}),
        ):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # about one constant chain among others
                source = halves if key == "r_hat" else dataset
                found = np.asarray(function(source, **options)["x"], dtype=float)
            result[key][within] = found
    return result


def _note(varies: bool, still: Any) -> str:
    """Return whether a quantity is constant, in all chains or in some."""
    if not varies:
        return "constant"
    if still.all():
        return "stuck"
    return f"constant in chain {int(np.argmax(still))}" if still.any() else ""


def _judge(table: pandas.DataFrame, chains: Chains) -> Summary:
    """Return the table with a verdict in words."""
    wanted = GOOD_ESS * chains.n_chains
    rhat, ess = table["r_hat"].dropna(), table["ess_bulk"].dropna()
    if (table["note"] == "constant").all():
        verdict = "Every draw is the same ranking: there is nothing to diagnose."
        return Summary(table, True, verdict, 0.0, chains.kernel)
    if chains.kernel == "exact":
        verdict = "The draws are exact and independent: there is nothing to diagnose."
        speed = chains.n_chains * chains.n_draws / max(chains.seconds, 1e-9)
        return Summary(table, True, verdict, speed, chains.kernel)
    if rhat.empty or ess.empty or chains.n_draws < FEW_DRAWS:
        verdict = (
            f"{plural(chains.n_draws, 'draw')} per chain: too few for diagnostics; take at least "
            f"{FEW_DRAWS}."
        )
        return Summary(table, False, verdict, 0.0, chains.kernel)
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
            f"{wanted} take about {np.ceil(needed):,.0f} draws per chain, or thin more."
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
