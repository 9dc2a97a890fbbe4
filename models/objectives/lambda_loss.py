"""LambdaLoss: logistic losses of pairs, weighed by what a pair means for a measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._kernels import kernel
from permdist._parallel import pointers
from permdist.measures import NDCG, Measure, parse
from permdist.models.batch import derivatives_in_threads
from permdist.models.objectives.base import Bound, BoundDerivatives, Objective
from permdist.models.rules import Number, OneOf, Seed, Whole
from permdist.rankings.sorting import descending
from permdist.sums.exchanges import BatchExchanges
from permdist.sums.exponential import exp_down

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.models.batch import Batch
    from permdist.models.rules import Rule

SCHEMES = ("ranknet", "lambdarank", "ndcg-loss1", "ndcg-loss2", "ndcg-loss2++")


@dataclass(frozen=True)
class LambdaLoss(Objective):
    """``sum W log(1 + exp(-sigma (s_i - s_j)))`` over pairs with a higher label of i.

    The weights W follow from the ranking by score, ties in the order of the documents, and count
    as constant: between two changes of the ranking the loss is convex, the gradient that of the
    value, and the curvature the exact diagonal. With gains G (as shares of the ideal DCG),
    discounts D and places r, W is 1 for `ranknet`; what exchanging the two documents changes in the
    measure for `lambdarank`, ``|G_i - G_j| |D(r_i) - D(r_j)|`` for NDCG; ``G_i D(r_i)`` for
    `ndcg-loss1`; ``|G_i - G_j| (D(d) - D(d + 1))`` with ``d = |r_i - r_j|`` for `ndcg-loss2`;
    and the second plus `mu` times the fourth for `ndcg-loss2++`.

    Parameters
    ----------
    measure : Measure or str
        Any for `lambdarank`, where AP, RR and sums over positions are fast; NDCG for the schemes
        named after it, without a cut-off for the second and third of these.
    scheme : {"lambdarank", "ndcg-loss1", "ndcg-loss2", "ndcg-loss2++", "ranknet"}
    sigma : float
        The factor of score differences.
    mu : float
        For `ndcg-loss2++`.
    draws : int
        Average the weights over so many rankings by scores with Gumbel noise, which are rankings
        of the Plackett-Luce model, instead of taking those of the one ranking; 0 for the latter.
        The noise is drawn once.
    noise : float
        What the noise is multiplied by.
    random_state : int, Generator or None
        For the noise.

    References
    ----------
    Wang et al.: The LambdaLoss Framework for Ranking Metric Optimization.

    Examples
    --------
    >>> value, gradient = LambdaLoss("ndcg")([1.0, 1.0], [0, 1])  # exchanging them gains .369
    >>> gradient.round(4)
    array([ 0.1845, -0.1845])
    """

    alias: ClassVar[str] = "lambda-loss"
    measure: Measure | str = "ndcg"
    scheme: str = "lambdarank"
    sigma: float = 1.0
    mu: float = 10.0
    draws: int = 0
    noise: float = 1.0
    random_state: RandomState = 0

    rules: ClassVar[Mapping[str, Rule]] = {
        "scheme": OneOf(SCHEMES),
        **dict.fromkeys(("sigma", "mu", "noise"), Number(0.0)),
        "draws": Whole(0),
        "random_state": Seed(),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        measure = parse(self.measure)
        cut = self.scheme.startswith("ndcg-loss2") and getattr(measure, "k", None) is not None
        if self.scheme.startswith("ndcg") and (cut or not isinstance(measure, NDCG)):
            wanted = "ndcg without a cut-off" if cut else "ndcg"
            raise ValueError(
                f"measure: expected {wanted} for scheme={self.scheme!r}, got {measure.name!r}; "
                "use scheme='lambdarank'"
            )

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        derivatives = self.bind_derivatives(batch, n_jobs)
        return lambda scores: derivatives(scores)[:2]

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        pairs = _pairs(batch)
        noise = np.zeros((0, len(batch.labels)))
        if self.draws:
            drawn = [
                stream.gumbel(size=(self.draws, b - a))
                for stream, (a, b) in zip(
                    batch.streams(self.random_state), batch.bounds, strict=True
                )
            ]
            noise = float(self.noise) * np.concatenate(drawn, axis=1)
        measure = parse(self.measure)
        sigma = float(self.sigma)
        if self.scheme == "ranknet" or isinstance(measure, NDCG):
            scheme, mu = SCHEMES.index(self.scheme), float(self.mu)
            form: tuple[Any, ...] = *self._gains(batch), scheme, mu, *pairs, batch.ptr, sigma

            def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
                _by_places(first, last, scores, noise, *form, *out)

            cost = (20.0 + 5.0 * len(noise)) * batch.sizes**2
            return derivatives_in_threads(work, batch, cost, n_jobs)
        changes = self._changes(batch, measure, noise)
        layout: tuple[Any, ...] = *pairs, batch.ptr, sigma

        def derivatives(scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            weights = changes(scores)

            def given(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
                _given(first, last, scores, weights, *layout, *out)

            return derivatives_in_threads(given, batch, 20.0 * batch.sizes**2, n_jobs)(scores)

        return derivatives

    def _gains(self, batch: Batch) -> tuple[FloatArray, FloatArray]:
        """Return the gain of each document as a share of the ideal DCG, and all discounts."""
        measure = parse(self.measure)
        longest = int(batch.sizes.max(initial=1))
        if not isinstance(measure, NDCG):
            return np.zeros(len(batch.labels)), np.zeros(longest)
        measure.check_grades(batch.labels)
        gains = measure.gains(batch.labels)
        discounts = measure.discounts(longest)
        for a, b in batch.bounds:
            ideal = float(np.sort(gains[a:b])[::-1] @ discounts[: b - a])
            gains[a:b] /= ideal if ideal > 0.0 else 1.0
            if measure.short == "zero" and measure.k is not None and b - a < measure.k:
                gains[a:b] = 0.0  # such a query counts nothing
        return gains, discounts

    def _changes(
        self, batch: Batch, measure: Measure, noise: FloatArray
    ) -> Callable[[FloatArray], FloatArray]:
        """Return a function of the scores: the mean change of the measure by each exchange."""
        exchanges = BatchExchanges(batch.labels, batch.ptr)

        def changes(scores: FloatArray) -> FloatArray:
            if not len(noise):
                return np.abs(exchanges.changes(measure, scores))
            total = np.zeros(int(exchanges.n_pairs.sum()))
            for row in noise:
                total += np.abs(exchanges.changes(measure, scores + row))
            return total / len(noise)

        return changes


def _pairs(batch: Batch) -> tuple[Any, ...]:
    """Return the documents by label, how many of each query are lower, and their first pairs.

    Pairs are numbered as in `BatchExchanges`.
    """
    members = np.lexsort((batch.labels, batch.query_of))
    label, query = batch.labels[members], batch.query_of
    new = np.r_[True, (np.diff(label) != 0) | (np.diff(query) != 0)]
    first = np.maximum.accumulate(np.where(new, np.arange(len(label)), 0))
    lower = first - batch.ptr[query]
    return members, lower, pointers(lower)


# ---- kernels: members (documents,) by label, lower (documents,) as in `_pairs` --------------


@kernel
def _by_places(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    noise: FloatArray,
    gains: FloatArray,
    discounts: FloatArray,
    scheme: int,
    mu: float,
    members: IntArray,
    lower: IntArray,
    first_pair: IntArray,
    ptr: IntArray,
    sigma: float,
    values: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
) -> None:
    """Weigh the pairs of each query by their places, and add up; noise (draws, documents)."""
    draws = len(noise)
    for q in range(first_query, last_query):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        start, stop = first_pair[a], first_pair[a + n]
        weights = np.zeros(stop - start)
        own, place, gain = np.empty(n), np.empty(n, np.int64), np.empty(n)
        at, worth = np.empty(n, np.int64), np.empty(n)  # of the members, as gain
        for k in range(n):
            gain[k] = gains[members[a + k]]
        for draw in range(max(draws, 1)):
            for i in range(n):
                own[i] = scores[a + i] + (noise[draw, a + i] if draws else 0.0)
            order = descending(own)
            for t in range(n):
                place[order[t]] = t
            for k in range(n):
                at[k] = place[members[a + k] - a]
                worth[k] = discounts[at[k]]
            for k in range(n):
                row = weights[first_pair[a + k] - start :][: lower[a + k]]
                if scheme == 0 or scheme == 2:
                    weight = gain[k] * worth[k] if scheme == 2 else 1.0
                    for j in range(len(row)):
                        row[j] += weight
                if scheme == 1 or scheme == 4:
                    for j in range(len(row)):
                        row[j] += abs(gain[k] - gain[j]) * abs(worth[k] - worth[j])
                if scheme >= 3:
                    factor = mu if scheme == 4 else 1.0
                    for j in range(len(row)):
                        far = abs(at[k] - at[j])
                        gap = abs(gain[k] - gain[j])
                        row[j] += factor * gap * (discounts[far - 1] - discounts[far])
        for pair in range(stop - start):
            weights[pair] /= max(draws, 1)
        rows = members[a : a + n], lower[a : a + n]
        values[q] = _logistic(scores, weights, rows[0], rows[1], sigma, gradient, curvature)


@kernel
def _given(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    weights: FloatArray,
    members: IntArray,
    lower: IntArray,
    first_pair: IntArray,
    ptr: IntArray,
    sigma: float,
    values: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
) -> None:
    """Add up with weights (pairs,) that are given."""
    for q in range(first_query, last_query):
        a, b = ptr[q], ptr[q + 1]
        own = weights[first_pair[a] : first_pair[b]]
        rows = members[a:b], lower[a:b]
        values[q] = _logistic(scores, own, rows[0], rows[1], sigma, gradient, curvature)


@kernel
def _logistic(
    scores: FloatArray,
    weights: FloatArray,
    members: IntArray,
    lower: IntArray,
    sigma: float,
    gradient: FloatArray,
    curvature: FloatArray,
) -> float:
    """Return the sum over the pairs of a query, and add to gradient and curvature."""
    n = len(members)
    own, slopes, curves = np.empty(n), np.zeros(n), np.zeros(n)
    losses, pulls, parts = np.empty(n), np.empty(n), np.empty(n)
    for k in range(n):
        own[k] = sigma * scores[members[k]]
    value, pair = 0.0, 0
    for k in range(n):
        m = lower[k]
        logistic_row(own[k], own[:m], weights[pair : pair + m], losses, pulls, parts)
        slope, curve = 0.0, 0.0
        for j in range(m):
            value += losses[j]
            slope += pulls[j]
            curve += parts[j]
            slopes[j] += pulls[j]
            curves[j] += parts[j]
        slopes[k] -= slope
        curves[k] += curve
        pair += m
    for k in range(n):
        gradient[members[k]] += sigma * slopes[k]
        curvature[members[k]] += sigma * sigma * curves[k]
    return value


@kernel(fuse=True)
def logistic_row(
    upper: float,
    others: FloatArray,
    weights: FloatArray,
    losses: FloatArray,
    pulls: FloatArray,
    parts: FloatArray,
) -> None:
    """Fill in ``weight log(1 + exp(-x))`` with ``x = upper - other``, its slope and curvature.

    ``log(1 + e) = 2 artanh(z)`` with ``z = e / (2 + e)``, at most 1/3, is a series that vector
    instructions can add up.
    """
    for j in range(len(others)):
        x = upper - others[j]
        e = exp_down(-abs(x))
        over, z = 1.0 / (1.0 + e), e / (2.0 + e)
        y = z * z
        series = 1.0 / 31.0
        series = series * y + 1.0 / 29.0
        series = series * y + 1.0 / 27.0
        series = series * y + 1.0 / 25.0
        series = series * y + 1.0 / 23.0
        series = series * y + 1.0 / 21.0
        series = series * y + 1.0 / 19.0
        series = series * y + 1.0 / 17.0
        series = series * y + 1.0 / 15.0
        series = series * y + 1.0 / 13.0
        series = series * y + 1.0 / 11.0
        series = series * y + 1.0 / 9.0
        series = series * y + 1.0 / 7.0
        series = series * y + 1.0 / 5.0
        series = series * y + 1.0 / 3.0
        logs = 2.0 * z + 2.0 * z * y * series
        losses[j] = weights[j] * (logs + max(-x, 0.0))
        pulls[j] = weights[j] * (e if x > 0.0 else 1.0) * over
        parts[j] = weights[j] * e * over * over
