"""The result of `run_chains`: draws, or their moments, and how they were made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import choice
from permdist._result import Result, block, facts, note
from permdist.distributions.drawn import pairs_counted, positions_counted, shares_of_chains
from permdist.distributions.estimates import Estimates
from permdist.rankings import order_to_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pandas as pd
    import xarray
    from numpy.typing import ArrayLike, NDArray

    from permdist._typing import AnyIntArray, FloatArray, IntArray
    from permdist.diagnostics import Summary
    from permdist.distributions import Distribution
    from permdist.measures import Measure
    from permdist.samplers.moments import Moments

# Notebooks show places of up to so many items, from so many entries of draws.
MOST_ITEMS, MOST_ENTRIES = 1000, 5_000_000


@dataclass(frozen=True, repr=False)
class Chains(Result):
    """Draws of several Markov chains.

    Attributes
    ----------
    orders : array of int, shape (chain, draw, n)
        The draws; no draws if only moments were kept.
    log_weight : array of float, shape (chain, draw)
        The unnormalized log-probability of each draw; NaN for independent draws of
        `GaussianScores`, where it would cost far more than the draws (call its `log_prob`).
        Log-weights beyond 1e6 are given up to a constant, to keep their digits.
    names : tuple of str
        The names of the items.
    kernel : str
        The kernel, or the mixture of kernels.
    thin, tune : int
        The number of steps between two draws, and of draws discarded at the beginning.
    accept_rate : array of float, shape (chain,)
        The proportion of steps that moved.
    seconds : float
        The duration of the run.
    complete : bool
        False if the run was interrupted.
    normalizer : float or None
        The log of the sum of all weights, where it is known.
    dist : Distribution or None
        The distribution; None for chains that were loaded from a file.
    moments : list of Moments
        One per chain, if moments were kept instead of draws.
    """

    orders: AnyIntArray
    log_weight: FloatArray
    names: tuple[str, ...]
    kernel: str
    thin: int
    tune: int
    accept_rate: FloatArray
    seconds: float
    complete: bool = True
    normalizer: float | None = None
    dist: Distribution | None = None
    moments: list[Moments] = field(default_factory=list)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.names)

    @property
    def n_chains(self) -> int:
        """The number of chains."""
        return len(self.orders)

    @property
    def n_draws(self) -> int:
        """The number of draws per chain."""
        if self.moments:
            return min(moments.n_draws for moments in self.moments)
        return self.orders.shape[1]

    @property
    def log_prob(self) -> FloatArray:
        """The log-probability of each draw; up to a constant where `normalizer` is None."""
        return self.log_weight - (0.0 if self.normalizer is None else self.normalizer)

    def drawn(self, what: str) -> AnyIntArray:
        """Return `orders`; ValueError, which names `what`, if only moments were kept."""
        if self.moments:
            raise ValueError(f"{what}: these chains kept moments, not draws; use keep='draws'")
        return self.orders

    @property
    def ranks(self) -> IntArray:
        """The position of each item in each draw, shape (chain, draw, n)."""
        return order_to_ranks(self.drawn("ranks"))

    def rank_marginals(self) -> Estimates:
        """Estimate ``M[i, r]``, the probability that item i is at position r.

        Returns
        -------
        Estimates, shape (n, n)
            An array with a `standard_error` from batches of consecutive draws; NaN where only
            moments were kept, or too few draws.
        """
        if self.moments:
            counts = np.sum([moments.counts for moments in self.moments], axis=0)
            return Estimates(counts / counts[0].sum(), draws=int(counts[0].sum()))
        return shares_of_chains(self.orders, positions_counted)

    def pairwise(self) -> Estimates:
        """Estimate ``P[i, j]``, the probability that item i is above item j; 0 on the diagonal.

        Returns
        -------
        Estimates, shape (n, n)
            An array with a `standard_error` from batches of consecutive draws; NaN where there are
            too few.
        """
        return shares_of_chains(self.drawn("pairwise"), pairs_counted)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the ranks of the items, 1 at the top, shape (chain, draw, n).

        This is what ``arviz.summary(chains)`` and the like read; the variable is then called x, and
        ``x[2]`` is the rank of item 2. `to_dataset` has the names of the items and more variables.
        """
        del copy  # the ranks are always made anew
        return np.asarray(self.ranks + 1, dtype=dtype)

    def to_frame(self, of: str = "items") -> pd.DataFrame:
        """Return the items' places, or all draws, as a data frame.

        Parameters
        ----------
        of : {"items", "draws"}

        Returns
        -------
        DataFrame
            Of items, in the order of their mean places: indexed by ``item``, with the columns
            ``mean_place`` (1 is the top), ``sd``, ``first`` and ``top_3``, the shares of the draws
            with the item there. Of draws: indexed by ``chain`` and ``draw``, a column per item with
            its place.

        Examples
        --------
        >>> from permdist import PlackettLuce
        >>> from permdist.samplers import run_chains
        >>> chains = run_chains(PlackettLuce([2.0, 0.0]), draws=50, kernel="adjacent", rng=0)
        >>> chains.to_frame("draws").shape
        (200, 2)
        """
        import pandas as pd

        if choice("of", of, ("items", "draws")) == "draws":
            pairs = pd.MultiIndex.from_product(
                [range(self.n_chains), range(self.n_draws)], names=["chain", "draw"]
            )
            ranks = 1 + self.ranks.reshape(-1, self.n_items)
            return pd.DataFrame(ranks, index=pairs, columns=list(self.names))
        shares, places = self.rank_marginals(), np.arange(1.0, self.n_items + 1.0)
        mean = shares @ places
        columns = {
            "mean_place": mean,
            "sd": np.sqrt(np.maximum(shares @ places**2 - mean**2, 0.0)),
            "first": shares[:, 0],
            "top_3": shares[:, :3].sum(axis=1),
        }
        frame = pd.DataFrame(columns, index=pd.Index(self.names, name="item"))
        return frame.iloc[np.argsort(mean, kind="stable")]

    def _repr_html_(self) -> str:
        from permdist.distributions.view import places_html

        told = {
            "kernel": self.kernel,
            "thin": self.thin,
            "tune": self.tune,
            "steps that moved": ", ".join(f"{rate:.0%}" for rate in self.accept_rate),
            "seconds": float(self.seconds),
        }
        title = f"{self.n_chains} chains x {self.n_draws:,} draws of {self.n_items:,} items"
        parts = [facts(told), "" if self.complete else note("The run was interrupted.")]
        if self.n_items > MOST_ITEMS:
            parts.append(note("Places are not shown for so many items; see to_frame()."))
        else:
            few = self if self.moments else self._every(-(-self.orders.size // MOST_ENTRIES))
            how = "shares of the draws" if few.n_draws == self.n_draws else "from some of the draws"
            parts.append(places_html(few.rank_marginals(), self.names, how))
        return block(title, *parts, note("Whether the chains agree: summary()."))

    def _every(self, stride: int) -> Chains:
        """Return every so many-th draw."""
        if stride <= 1:
            return self
        weights = self.log_weight[:, ::stride]
        return replace(self, orders=self.orders[:, ::stride], log_weight=weights)

    def to_dataset(
        self,
        measures: Iterable[str | Measure] = (),
        labels: ArrayLike | None = None,
    ) -> xarray.Dataset:
        """Return the draws as an `xarray.Dataset` for arviz.

        See `permdist.diagnostics.to_dataset`.
        """
        from permdist import diagnostics

        return diagnostics.to_dataset(self, measures, labels)

    def summary(self, **options: Any) -> Summary:
        """Diagnose the chains; see `permdist.diagnostics.summary`."""
        from permdist import diagnostics

        return diagnostics.summary(self, **options)

    def save(self, path: str | Path) -> None:
        """Write the draws to a netCDF file; see `permdist.diagnostics.save`."""
        from permdist import diagnostics

        diagnostics.save(self, path)

    def __repr__(self) -> str:
        kept = "moments of " if self.moments else ""
        parts = [
            f"{self.n_chains} chains x {kept}{self.n_draws:,} draws of {self.n_items} items",
            f"kernel {self.kernel!r}",
            f"{self.accept_rate.mean():.0%} of steps moved",
            f"{self.seconds:.2g} s",
        ]
        parts += [] if self.complete else ["interrupted"]
        return f"Chains({', '.join(parts)})"
