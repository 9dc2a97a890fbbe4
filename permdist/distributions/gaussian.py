"""Gaussian scores: items are ranked by scores with independent Gaussian noise (Thurstone)."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from permdist._check import choice, scale_of
from permdist.ballots import Collection, default_to
from permdist.distributions.base import DEFAULT_DRAWS, METHODS, Estimate
from permdist.distributions.estimates import Estimates
from permdist.distributions.random_utility import RandomUtility
from permdist.measures import Measure, parse
from permdist.rankings import check_orders, order_by_scores
from permdist.sums.lattice import NotExactError
from permdist.sums.nested import MAX_SPREAD, REACH, log_probs, posterior_means
from permdist.sums.positions import RandomNoise
from permdist.sums.utilities import Noise, at_nodes, nodes
from permdist.targets.base import unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, IntArray, RandomState
    from permdist.targets import Target

# Standard deviations between scores that no noise bridges: Phi(-80 / sqrt(2)) is 0.
IMPASSABLE = 80.0


class GaussianScores(RandomUtility):
    """Ranking by scores with independent Gaussian noise: the SoftRank or Thurstone model.

    Parameters
    ----------
    scores : array of float, shape (n,)
    scale : float
        The standard deviation of each item's noise.
    names : sequence of str, optional

    References
    ----------
    Thurstone: A law of comparative judgment (1927); Taylor et al.: SoftRank (2008).

    Examples
    --------
    >>> model = GaussianScores([1.0, 0.0, 0.0])
    >>> model.pairwise().round(4)
    array([[0.    , 0.7602, 0.7602],
           [0.2398, 0.    , 0.5   ],
           [0.2398, 0.5   , 0.    ]])
    >>> float(np.exp(model.log_prob([0, 1, 2])).round(4))
    0.3169
    """

    def __init__(
        self, scores: ArrayLike, scale: float = 1.0, names: Sequence[str] | None = None
    ) -> None:
        self._scale = scale_of("scale", scale)
        super().__init__(scores, names)

    @property
    def scale(self) -> float:
        """The standard deviation of the noise."""
        return self._scale

    def _sample(self, size: int, rng: np.random.Generator) -> IntArray:
        utilities = rng.standard_normal((size, self.n_items))
        utilities += self._lifted
        return np.argsort(-utilities, axis=1)

    def _pairwise(self) -> FloatArray:
        """Return ``P[i, j] = Phi((s_i - s_j) / (sqrt(2) scale))``; 0 on the diagonal."""
        result = ndtr((self._lifted[:, None] - self._lifted[None, :]) / np.sqrt(2.0))
        np.fill_diagonal(result, 0.0)
        return result

    def _pairwise_slopes(self) -> FloatArray:
        gap = self._lifted[:, None] - self._lifted[None, :]
        return np.exp(-0.25 * gap**2) / (2.0 * np.sqrt(np.pi) * self._scale)

    @cached_property
    def _lifted(self) -> FloatArray:
        """The scores in standard deviations, the lowest at 0."""
        return (self._scores - self._scores.min()) / self._scale

    @property
    def _kind(self) -> RandomNoise:
        return RandomNoise(gaussian=True, scale=self._scale)

    def _noise(self) -> Noise:
        # The item at a given position has a utility that is known to about 1.2 / sqrt(n).
        step = min(0.2, 0.8 / np.sqrt(self.n_items))
        standard = self._lifted
        x = at_nodes(nodes(standard, -REACH, REACH, 76.0, step), standard)
        density = np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)
        return Noise(density, -x * density, ndtr(-x), ndtr(x), step)

    @property
    def _unit(self) -> float:
        return self._scale

    def rank_marginals(
        self, *, method: str = "auto", draws: int = DEFAULT_DRAWS, rng: RandomState = None
    ) -> Estimates:
        """Return ``M[i, r]``, the probability that item i is at position r.

        Parameters
        ----------
        method : {"auto", "exact", "sample", "softrank"}
            ``"auto"`` and ``"exact"``: by quadrature; ``"sample"``: Monte Carlo; ``"softrank"``:
            by SoftRank's recursion, which treats the events that others are above an item as
            independent: its rows add up to 1, its columns do not.
        draws : int
            The number of draws of a Monte Carlo estimate.
        rng : int, Generator or None

        Returns
        -------
        Estimates, shape (n, n)
            An array with a `standard_error`, 0 where exact.
        """
        choice("method", method, (*METHODS, "softrank"))
        if method != "softrank":
            return super().rank_marginals(method=method, draws=draws, rng=rng)
        below = self._pairwise()
        above = below.T
        result = np.zeros((self.n_items, self.n_items))
        for i in range(self.n_items):
            others = np.arange(self.n_items) != i
            chance = np.zeros(self.n_items)
            chance[0] = 1.0
            for p in above[i, others]:
                chance[1:] = (1.0 - p) * chance[1:] + p * chance[:-1]
                chance[0] *= 1.0 - p
            result[i] = chance
        return Estimates.exact(result)

    def expect(
        self,
        measure: str | Measure,
        labels: ArrayLike | None = None,
        *,
        method: str = "auto",
        draws: int = DEFAULT_DRAWS,
        rng: RandomState = None,
    ) -> Estimate:
        """Return the expected value of a measure.

        As for any distribution; besides, ``method="softrank"`` uses SoftRank's rank
        probabilities, for measures that depend on positions alone.
        """
        if method != "softrank":
            return super().expect(measure, labels, method=method, draws=draws, rng=rng)
        chosen, label = parse(measure), self._labels(labels)
        form = chosen.positional(label)
        if form is None:
            raise ValueError(f"measure: SoftRank has no expectation of {chosen.name!r}")
        marginals = self.rank_marginals(method="softrank")
        return Estimate(form.offset + float(form.gains @ marginals @ form.weights))

    def log_prob(self, orders: ArrayLike) -> Any:
        """Return the log-probability of each order.

        The nested integrals ``h_k(s) = int_(-inf)^s phi_k(t) h_(k+1)(t) dt`` are worked out from
        the last place up. Their logarithms are kept as polynomials on short panels, so that
        every panel has all its digits, however small the numbers are. O(n) panels for each order.
        """
        order = check_orders(orders, self.n_items)
        flat = order.reshape(-1, self.n_items)
        values, kept = self._blockwise(flat)
        if not kept.all():
            if self._is_wide:
                raise NotExactError(
                    f"scores: expected them within {MAX_SPREAD:,.0f} standard deviations for the "
                    f"probability of an order that puts an item above one {IMPASSABLE:g} standard "
                    "deviations better; it is about 0"
                )
            values[~kept] = log_probs(flat[~kept], self._standard)
        return values.reshape(order.shape[:-1])[()]

    def listed_log_prob(self, orders: IntArray) -> Any:
        """Return log-probabilities; -inf for an order that crosses an impassable gap."""
        values, _ = self._blockwise(orders.reshape(-1, self.n_items))
        return values.reshape(orders.shape[:-1])

    def _blockwise(self, orders: IntArray) -> tuple[FloatArray, BoolArray]:
        """Return log-probabilities of orders (rankings, n) block by block, and which have one.

        Between impassable gaps scores form blocks. The items of a block come before those of all
        lower blocks, and blocks are independent. Other orders have no chance: -inf.
        """
        ranked = order_by_scores(self._scores)
        gaps = -np.diff(self._scores[ranked]) / self._scale
        wide = np.flatnonzero(gaps > IMPASSABLE) + 1
        block_of = np.empty(self.n_items, dtype=np.int64)
        block_of[ranked] = np.searchsorted(wide, np.arange(self.n_items), side="right")
        kept = np.asarray((np.diff(block_of[orders], axis=-1) >= 0).all(axis=-1))
        values = np.where(kept, 0.0, -np.inf)
        for start, end in pairwise([0, *wide.tolist(), self.n_items]):
            members = np.sort(ranked[start:end])
            within = np.searchsorted(members, orders[kept, start:end])
            scores = (self._scores[members] - self._scores[members].max()) / self._scale
            if end - start > 1:
                values[kept] += log_probs(within, scores)
        return values, kept

    @cached_property
    def _is_wide(self) -> bool:
        """Whether the scores are too far apart for one integral over all of them."""
        spread = (self._scores.max() - self._scores.min()) / self._scale
        return not spread + 2.0 * REACH + 1.0 < MAX_SPREAD

    def log_prob_gradient(self, orders: ArrayLike) -> FloatArray:
        """Differentiate `log_prob` by the scores: how far the order pulls each utility up.

        Returns
        -------
        array of float, shape (..., n)
        """
        order = check_orders(orders, self.n_items)
        flat = order.reshape(-1, self.n_items)
        standard = self._standard
        result = posterior_means(flat, standard)
        return ((result - standard) / self._scale).reshape(order.shape)

    @property
    def _standard(self) -> FloatArray:
        """The scores in standard deviations, the highest at 0."""
        return (self._scores - self._scores.max()) / self._scale

    @classmethod
    def fit(
        cls,
        orders: Any,
        *,
        weights: ArrayLike | None = None,
        scale: float = 1.0,
        regularization: float = 0.0,
        names: Sequence[str] | None = None,
        max_iter: int = 200,
    ) -> GaussianScores:
        """Estimate the scores from full rankings, by maximum likelihood.

        The estimate is made in standard deviations, so that it does not depend on the unit: with
        `scale` times c, and `regularization` over c squared, all scores are times c.

        Parameters
        ----------
        orders : array of int, shape (rankings, n), or Preferences
            Full rankings: every item in each. Ballots from `permdist.data.load_preflib` bring
            their weights and names.
        weights : array of float, shape (rankings,), optional
            How often each ranking counts.
        scale : float
            The standard deviation of the noise; scores and scale cannot both be estimated.
        regularization : float
            A penalty of half of this times the squared scores.
        names : sequence of str, optional
        max_iter : int
            How many Newton steps may be taken.

        Returns
        -------
        GaussianScores
            With scores that add up to 0, within 1e-7 of the exact maximum, in units of `scale`;
            1e-6 where some items are told apart by less than one in 100,000 of the weight.

        Raises
        ------
        ValueError
            Where no estimate exists: some items always win or lose.
        RuntimeError
            Where it is not reached within `max_iter` steps, or not within the precision of
            floats. There are no unconverged estimates.

        Examples
        --------
        >>> rankings = GaussianScores([1.0, 0.0, -1.0]).sample(2000, rng=0)
        >>> GaussianScores.fit(rankings).scores.round(1)
        array([ 0.9,  0. , -1. ])
        """
        from permdist.distributions.gaussian_fit import fit_standard

        if isinstance(orders, Collection):
            weights, names = default_to(orders, weights, names)
            orders = orders.orders()
        unit = scale_of("scale", scale)
        standard = fit_standard(orders, weights, regularization, unit, names, max_iter)
        return cls(unit * standard, unit, names)

    def _options(self) -> str:
        return "" if self._scale == 1.0 else f", scale={self._scale:g}"

    def _target(self) -> Target:
        # Nested integrals cost far more than independent draws: these go without log-weights.
        return replace(super()._target(), log_weights=unknown)
