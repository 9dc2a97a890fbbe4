"""Gaussian scores: items are ranked by scores with independent Gaussian noise (Thurstone)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial import legendre
from scipy.special import log_ndtr, ndtr

from permdist._check import choice, scale_of
from permdist._interrupts import parts, patiently
from permdist._kernels import kernel
from permdist._limits import need_memory
from permdist._offer import offer_strategy
from permdist.ballots import Collection, default_to
from permdist.distributions.base import DEFAULT_DRAWS, Estimate
from permdist.distributions.gaps import narrowed
from permdist.distributions.random_utility import RandomUtility
from permdist.measures import Measure, parse
from permdist.rankings import check_orders, order_by_scores
from permdist.sums.lattice import NotExactError
from permdist.sums.utilities import Noise, at_nodes, need_pairs, nodes
from permdist.targets.base import unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, IntArray, RandomState
    from permdist.targets import Target

REACH = 9.0  # standard deviations beyond which a Gaussian is below 1e-18 of its peak
NODES, POINTS = 16, 10  # of a panel, and between two neighboring nodes
WORK = 60.0  # elementary operations that a node of a panel takes
STEEP = 8.0  # a change of the log integrand that the points between two nodes still resolve
MAX_SPREAD = 20_000.0
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
        super().__init__(scores, names)
        self._scale = scale_of("scale", scale)

    @property
    def scale(self) -> float:
        """The standard deviation of the noise."""
        return self._scale

    def _sample(self, size: int, rng: np.random.Generator) -> IntArray:
        utilities = rng.standard_normal((size, self.n_items))
        utilities += self._narrowed
        return np.argsort(-utilities, axis=1)

    def pairwise(self) -> FloatArray:
        """Give ``P[i, j] = Phi((s_i - s_j) / (sqrt(2) scale))``; 0 on the diagonal."""
        need_pairs(self.n_items)
        result = ndtr((self._narrowed[:, None] - self._narrowed[None, :]) / np.sqrt(2.0))
        np.fill_diagonal(result, 0.0)
        return result

    def _pairwise_slopes(self) -> FloatArray:
        gap = self._narrowed[:, None] - self._narrowed[None, :]
        return np.exp(-0.25 * gap**2) / (2.0 * np.sqrt(np.pi) * self._scale)

    @cached_property
    def _narrowed(self) -> FloatArray:
        """The scores in standard deviations, with gaps that no noise bridges made smaller."""
        return narrowed(self._scores, self._scale, IMPASSABLE)

    def _noise(self) -> Noise:
        # The item at a given position has a utility that is known to about 1.2 / sqrt(n).
        step = min(0.2, 0.8 / np.sqrt(self.n_items))
        standard = self._narrowed
        x = at_nodes(nodes(standard, -REACH, REACH, 76.0, step), standard)
        density = np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)
        return Noise(density, -x * density, ndtr(-x), ndtr(x), step)

    @property
    def _unit(self) -> float:
        return self._scale

    def rank_marginals(self, *, method: str = "exact") -> FloatArray:
        """Give ``M[i, r]``, the probability that item i is at position r.

        Parameters
        ----------
        method : {"exact", "softrank"}
            By quadrature, or by SoftRank's recursion, which treats the events that others are
            above an item as independent: its rows add up to 1, its columns do not.
        """
        choice("method", method, ("exact", "softrank"))
        if method == "exact":
            return super().rank_marginals()
        below = self.pairwise()
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
        return result

    def expect(
        self,
        measure: str | Measure,
        labels: ArrayLike | None = None,
        *,
        method: str = "auto",
        draws: int = DEFAULT_DRAWS,
        rng: RandomState = None,
    ) -> Estimate:
        """Give the expected value of a measure.

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
        """Give the log-probability of each order.

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
            values[~kept] = _log_probs(flat[~kept], self._standard)
        return values.reshape(order.shape[:-1])[()]

    def _listed_log_prob(self, orders: IntArray) -> Any:
        """Return log-probabilities; -inf for an order that crosses an impassable gap."""
        values, _ = self._blockwise(orders.reshape(-1, self.n_items))
        return values.reshape(orders.shape[:-1])

    def _blockwise(self, orders: IntArray) -> tuple[FloatArray, BoolArray]:
        """Return log-probabilities of orders (rankings, n) block by block, and which have one.

        Between impassable gaps scores form blocks. The items of a block come before those of all
        lower blocks, and blocks are independent. Other orders have no chance: -inf.
        """
        ranked = order_by_scores(self._scores)
        with np.errstate(over="ignore"):
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
                values[kept] += _log_probs(within, scores)
        return values, kept

    @cached_property
    def _is_wide(self) -> bool:
        """Whether the scores are too far apart for one integral over all of them."""
        with np.errstate(over="ignore"):
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
        edges = _panels(standard)
        last, mirrored = _last(standard, edges), _last(-standard, -edges[::-1])
        need_memory(f"orders: gradients of {len(flat):,} orders", 8.0 * flat.size)
        tables = standard, edges, last, mirrored, *_rules(), _integration_weights()
        result = np.empty(flat.shape)
        cost = 2.0 * WORK * last.size
        for a, b in parts(len(flat), cost):
            result[a:b] = patiently(cost * (b - a), _posterior_means, flat[a:b], *tables)
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


def _log_probs(orders: IntArray, standard: FloatArray) -> FloatArray:
    """Return log-probabilities of orders (rankings, n) for scores in standard deviations."""
    edges = _panels(standard)
    last, result = _last(standard, edges), np.empty(len(orders))
    cost, tables = WORK * last.size, (standard, edges, last, *_rules())
    # Rankings that share their last places share the integrals over them: side by side, then.
    by_end = np.lexsort(orders.T)
    for a, b in parts(len(orders), cost):  # one order of many items may take long by itself
        here = by_end[a:b]
        result[here] = patiently(cost * (b - a), _nested, orders[here], *tables)
    return result


# ---- panels: Chebyshev nodes inside, Gauss-Legendre points between neighboring nodes ----------


def _panels(means: FloatArray) -> FloatArray:
    """Give the edges of panels that cover all utilities, in standard deviations."""
    width = 0.5 if len(means) > 30 else 1.0
    low, high = float(means.min()) - REACH - 1.0, float(means.max()) + REACH
    if not high - low < MAX_SPREAD:
        raise NotExactError(
            f"scores: expected them within {MAX_SPREAD:,.0f} standard deviations for the "
            f"probability of an order, got {high - low:,.6g}"
        )
    steps = np.arange(int(np.ceil((high - low) / width)) + 1, dtype=np.float64)
    return low + width * steps


def _last(means: FloatArray, edges: FloatArray) -> FloatArray:
    """Give the innermost integrals, log Phi, at the nodes, shape (n, panels, nodes)."""
    # This table, its mirror image, and two more to work with.
    size = 40.0 * len(means) * len(edges) * NODES
    need_memory(f"scores: the integrals of {len(means):,} items", size)
    return log_ndtr(_panel_nodes(edges)[None] - means[:, None, None])


def _panel_nodes(edges: FloatArray) -> FloatArray:
    """Give the Chebyshev nodes of each panel, both ends included, shape (panels, NODES)."""
    unit = _rules()[0]
    return np.asarray(edges[:-1, None] + (edges[1] - edges[0]) * unit, dtype=np.float64)


@cache
def _rules() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Give nodes in 0..1, points between them, their weights, and nodes-to-points interpolation."""
    unit = (1.0 - np.cos(np.pi * np.arange(NODES) / (NODES - 1))) / 2.0
    x, w = legendre.leggauss(POINTS)
    gaps = np.diff(unit)
    points = unit[:-1, None] + gaps[:, None] * (x + 1.0) / 2.0
    weights = gaps[:, None] * w / 2.0
    barycentric = (-1.0) ** np.arange(NODES)
    barycentric[[0, -1]] *= 0.5
    factors = barycentric / (points[..., None] - unit)
    return unit, points, weights, factors / factors.sum(axis=-1, keepdims=True)


@cache
def _integration_weights() -> FloatArray:
    """Give the weights that integrate a polynomial through the nodes over 0..1."""
    _, _, weights, matrix = _rules()
    return np.einsum("gp,gpn->n", weights, matrix)


@kernel
def _interpolate(values: FloatArray, unit: FloatArray, x: float) -> float:
    """Evaluate the polynomial through values (nodes,) at a point x of 0..1."""
    above, below = 0.0, 0.0
    for node in range(len(unit)):
        gap = x - unit[node]
        if gap == 0.0:
            return values[node]
        weight = 1.0 / gap
        if node % 2 == 1:
            weight = -weight
        if node == 0 or node == len(unit) - 1:
            weight *= 0.5
        above += weight * values[node]
        below += weight
    return above / below


@kernel
def _next_level(
    inner: FloatArray,
    mean: float,
    edges: FloatArray,
    unit: FloatArray,
    points: FloatArray,
    weights: FloatArray,
    matrix: FloatArray,
    outer: FloatArray,
) -> None:
    """One integration: log h_k at all nodes from log h_(k+1), both (panels, nodes)."""
    panels, n_nodes = inner.shape
    width = edges[1] - edges[0]
    constant = -0.5 * np.log(2.0 * np.pi) + np.log(width)
    n_points = points.shape[1]
    logs = np.empty(n_points)
    fractions = (points[0] - unit[0]) / (unit[1] - unit[0])
    shares = weights[0] / (unit[1] - unit[0])
    # To the left of all panels the integrand grows like an exponential: its integral is its
    # value over its rate. Whatever is wrong with that is far too small to matter.
    first = (inner[0, 1] - inner[0, 0]) / (width * points[0, 0] + 1e-300)
    rate = max((mean - edges[0]) + min(max(first, 0.0), 1e3), 1.0)
    reached = inner[0, 0] - 0.5 * (edges[0] - mean) ** 2 + constant - np.log(width) - np.log(rate)
    for panel in range(panels):
        outer[panel, 0] = reached
        for gap in range(n_nodes - 1):
            left, right = unit[gap], unit[gap + 1]
            at_left = edges[panel] + width * left - mean
            at_right = edges[panel] + width * right - mean
            log_left = inner[panel, gap] - 0.5 * at_left * at_left
            log_right = inner[panel, gap + 1] - 0.5 * at_right * at_right
            change = abs(log_right - log_left)
            if change > STEEP:
                # Pieces over which the integrand changes little, from its larger end on.
                largest = max(log_left, log_right)
                pieces = int(change / STEEP) + 1
                size = (right - left) / pieces
                total = 0.0
                for piece in range(min(pieces, 5)):  # beyond, below 1e-17 of it
                    start = (
                        left + piece * size if log_left > log_right else right - (piece + 1) * size
                    )
                    for p in range(n_points):
                        x = start + size * fractions[p]
                        t = edges[panel] + width * x - mean
                        value = _interpolate(inner[panel], unit, x) - 0.5 * t * t
                        total += size * shares[p] * np.exp(value - largest)
                part = largest + constant + np.log(total)
                top, low = max(reached, part), min(reached, part)
                reached = top + np.log1p(np.exp(low - top))
                outer[panel, gap + 1] = reached
                continue
            largest = -np.inf
            for p in range(n_points):
                value = 0.0
                for node in range(n_nodes):
                    value += matrix[gap, p, node] * inner[panel, node]
                t = edges[panel] + width * points[gap, p] - mean
                logs[p] = value - 0.5 * t * t
                largest = max(largest, logs[p])
            total = 0.0
            for p in range(n_points):
                total += weights[gap, p] * np.exp(logs[p] - largest)
            part = largest + constant + np.log(total)
            top, low = max(reached, part), min(reached, part)
            reached = top + np.log1p(np.exp(low - top))
            outer[panel, gap + 1] = reached


@kernel
def _nested(
    orders: IntArray,
    means: FloatArray,
    edges: FloatArray,
    last: FloatArray,
    unit: FloatArray,
    points: FloatArray,
    weights: FloatArray,
    matrix: FloatArray,
) -> FloatArray:
    """Log-probabilities of orders (rankings, n); last (n, panels, nodes) is log Phi.

    Places that a ranking shares with the one before it, from the end, are not integrated again.
    """
    rankings, n = orders.shape
    out = np.empty(rankings)
    levels = np.empty((n, *last.shape[1:]))  # log integral over the places from k on
    for row in range(rankings):
        place = n - 1
        if row > 0:
            while place >= 0 and orders[row, place] == orders[row - 1, place]:
                place -= 1
        while place >= 0:
            item = orders[row, place]
            if place == n - 1:
                levels[place] = last[item]
            else:
                inner, outer = levels[place + 1], levels[place]
                _next_level(inner, means[item], edges, unit, points, weights, matrix, outer)
            place -= 1
        out[row] = levels[0, -1, -1]
    return out


@kernel
def _posterior_means(
    orders: IntArray,
    means: FloatArray,
    edges: FloatArray,
    last: FloatArray,
    mirrored: FloatArray,
    unit: FloatArray,
    points: FloatArray,
    weights: FloatArray,
    matrix: FloatArray,
    integrate: FloatArray,
) -> FloatArray:
    """Mean utility of each item given the order, shape (rankings, n).

    The density of the utility at a place is the integral over all places below it, times its
    Gaussian, times the integral over all places above, which is the mirror image of the first.
    """
    rankings, n = orders.shape
    panels, n_nodes = last.shape[1:]
    out = np.empty((rankings, n))
    below = np.zeros((n, panels, n_nodes))  # log integral over the places from k on
    above = np.zeros((n, panels, n_nodes))  # log integral over the places up to k, mirrored
    flipped = -edges[::-1]
    width = edges[1] - edges[0]
    for row in range(rankings):
        below[n - 1] = last[orders[row, n - 1]]
        for k in range(n - 2, -1, -1):
            mean = means[orders[row, k]]
            _next_level(below[k + 1], mean, edges, unit, points, weights, matrix, below[k])
        above[0] = mirrored[orders[row, 0]]
        for k in range(1, n):
            mean = -means[orders[row, k]]
            _next_level(above[k - 1], mean, flipped, unit, points, weights, matrix, above[k])
        for k in range(n):
            item = orders[row, k]
            largest = -np.inf
            for sweep in range(2):
                total, moment = 0.0, 0.0
                for panel in range(panels):
                    for node in range(n_nodes):
                        t = edges[panel] + width * unit[node]
                        value = -0.5 * (t - means[item]) ** 2
                        if k < n - 1:
                            value += below[k + 1, panel, node]
                        if k > 0:
                            value += above[k - 1, panels - 1 - panel, n_nodes - 1 - node]
                        if sweep == 0:
                            largest = max(largest, value)
                        elif value > largest - 745.0:
                            share = integrate[node] * np.exp(value - largest)
                            total += share
                            moment += share * t
                if sweep == 1:
                    out[row, item] = moment / total
    return out


offer_strategy(GaussianScores, "gaussian_scores")
