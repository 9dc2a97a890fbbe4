"""Chains compared with exact probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from permdist._result import Result, block, facts, note
from permdist._text import aligned
from permdist.distributions.base import MAX_LISTED
from permdist.distributions.drawn import ask
from permdist.rankings import enumerate_orders

if TYPE_CHECKING:
    import pandas as pd

    from permdist._typing import AnyIntArray, FloatArray, IntArray
    from permdist.distributions import Distribution
    from permdist.samplers import Chains


@dataclass(frozen=True)
class ChainComparison(Result):
    """How far estimates from chains are from exact probabilities.

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
        The mean total variation for as many independent draws.
    """

    exact: FloatArray
    estimated: FloatArray
    standard_errors: FloatArray
    worst_error: float
    worst_standard_error: float
    worst_score: float
    total_variation: float | None
    expected_total_variation: float | None

    def to_frame(self) -> pd.DataFrame:
        """Return the rank marginals as a data frame, a row per item and place.

        Returns
        -------
        DataFrame
            With the columns ``item`` (its number), ``place`` (1 is the top), ``exact``,
            ``estimated`` and ``standard_error``.
        """
        import pandas as pd

        item, place = np.indices(self.exact.shape).reshape(2, -1)
        columns = {"item": item, "place": place + 1, "exact": self.exact.ravel()}
        estimated = {"estimated": self.estimated.ravel()}
        errors = {"standard_error": self.standard_errors.ravel()}
        return pd.DataFrame(columns | estimated | errors)

    def _repr_html_(self) -> str:
        left = note("Every rank marginal: to_frame().")
        return block("Chains compared with exact probabilities", facts(self._facts()), left)

    def __str__(self) -> str:
        return aligned(self._facts())

    def _facts(self) -> dict[str, str]:
        rows = {
            "worst error of a rank marginal": f"{self.worst_error:.2g} "
            f"± {self.worst_standard_error:.2g}",
            "worst error in standard errors": f"{self.worst_score:.2f}",
        }
        if self.total_variation is not None:
            rows["total variation"] = f"{self.total_variation:.2g}"
            rows["of independent draws"] = f"{self.expected_total_variation:.2g}"
        return rows


def compare_to_exact(chains: Chains, dist: Distribution | None = None) -> ChainComparison:
    """Compare chains with exact probabilities, for sizes where these are affordable.

    Parameters
    ----------
    chains : Chains
    dist : Distribution, optional
        The distribution of the chains by default.

    Returns
    -------
    ChainComparison

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
        raise ValueError("dist: the chains were loaded without their distribution; pass it")
    if truth.n_items != chains.n_items:
        raise ValueError(f"dist: expected {chains.n_items} items, got {truth.n_items}")
    orders = chains.drawn("compare_to_exact")
    exact = np.asarray(ask(truth.rank_marginals, method="exact"))
    marginals = chains.rank_marginals()
    estimated, errors = np.asarray(marginals), marginals.standard_error
    # A marginal that was never drawn has no variance; use at least that of independent draws.
    least = np.sqrt(exact * (1.0 - exact) / orders[..., 0].size)
    errors = np.fmax(errors, least)
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
    return ChainComparison(
        exact,
        estimated,
        errors,
        float(gap[worst]),
        float(errors[worst]),
        float(scores.max()),
        variation,
        expected,
    )


def _shares(orders: AnyIntArray, listed: IntArray) -> FloatArray:
    """Count how often each listed order was drawn."""
    n = listed.shape[1]
    weights = n ** np.arange(n, dtype=np.int64)
    keys = listed @ weights
    sorter = np.argsort(keys)
    found = sorter[np.searchsorted(keys[sorter], orders.astype(np.int64) @ weights)]
    return np.bincount(found, minlength=len(listed)) / len(orders)
