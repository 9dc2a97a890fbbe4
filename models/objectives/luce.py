"""Likelihoods of the labels' order, or its top, under Plackett-Luce and Davidson-Luce."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from permdist._check import finite
from permdist._kernels import kernel
from permdist._parallel import pointers
from permdist.models.batch import derivatives_in_threads
from permdist.models.objectives.base import Bound, BoundDerivatives, Objective
from permdist.models.rules import OneOf, Whole
from permdist.sums import davidson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch
    from permdist.models.rules import Rule

TIES = ("orders", "davidson")
CELLS = 2_000_000  # second derivatives that Davidson-Luce holds at a time
DEPTH = 45.0  # integrands this far below their peak, in logarithms, count nothing


@dataclass(frozen=True)
class LuceLikelihood(Objective):
    """Minus the log-likelihood of the order of the labels, or of its first k places.

    Documents with the same label tie. Either nothing is known of their order, and the probability
    adds up all orders that agree with the labels, exactly, by quadrature: with a set S of worths
    ``w = exp(s)`` that comes before the others, whose worths add up to W, it is the integral of
    ``W exp(-W u) prod_S (1 - exp(-w u))`` over u > 0. Or a tie is an event of its own, under the
    model of Davidson and Luce: at every stage a set of t documents is chosen with weight
    ``delta_t prod exp(s / t)``. The documents of the lowest label come last, in any order.

    Both are convex; the curvature is the exact diagonal of second derivatives.

    Parameters
    ----------
    k : int, optional
        Go down to the label at which k places are taken; by default, through all labels.
    ties : {"orders", "davidson"}
        Any order of documents with the same label, or ties as events.
    deltas : str, float or sequence of float
        For Davidson-Luce, the weights of ties of two documents, of three and so on: ``"0.7:0.2"``,
        or ``(0.7, 0.2)``. The last one stands for all larger ties too.
    largest : int, optional
        For Davidson-Luce, the largest tie that is possible at any stage; by default, the largest
        one of the labels.

    References
    ----------
    Turner et al.: Modelling rankings in R: the PlackettLuce package.

    Examples
    --------
    >>> value, gradient = LuceLikelihood()([0.0, 0.0, 0.0], [1, 1, 0])  # 2 of 6 orders
    >>> round(float(np.exp(-value)), 12), gradient.round(3)
    (0.333333333333, array([-0.417, -0.417,  0.833]))
    >>> LuceLikelihood(k=3, ties="davidson", deltas=(0.7, 0.2)).name
    'luce[k=3,ties=davidson,deltas=0.7:0.2]'
    """

    alias: ClassVar[str] = "luce"
    k: int | None = None
    ties: str = "orders"
    deltas: Any = "1"
    largest: int | None = None

    rules: ClassVar[Mapping[str, Rule]] = {
        "ties": OneOf(TIES),
        "k": Whole(optional=True),
        "largest": Whole(optional=True),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.deltas, str):
            numbers = np.atleast_1d(finite("deltas", self.deltas)).tolist()
            object.__setattr__(self, "deltas", ":".join(f"{delta:.15g}" for delta in numbers))
        self._deltas(2)

    def _deltas(self, most: int) -> FloatArray:
        """Return the weights of ties by their size, from 0 to `most`."""
        try:
            given = [float(part) for part in self.deltas.split(":")]
        except ValueError:
            given = []
        if not given or not all(0.0 < delta < np.inf for delta in given):
            raise ValueError(
                f"deltas: expected positive numbers such as '0.7:0.2', got {self.deltas!r:.100}"
            )
        sizes = np.clip(np.arange(most + 1) - 2, 0, len(given) - 1)
        result = np.array(given)[sizes]
        result[:2] = 0.0, 1.0
        return result

    def settle(self, labels: IntArray, ptr: IntArray) -> Objective:
        """Let the largest tie of all queries decide; see `Objective.settle`."""
        if self.ties == "orders" or self.largest is not None:
            return self
        return replace(self, largest=int(max(1, _stages(labels, ptr, self.k).sizes.max())))

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        derivatives = self.bind_derivatives(batch, n_jobs)
        return lambda scores: derivatives(scores)[:2]

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        stages = _stages(batch.labels, batch.ptr, self.k)
        if self.ties == "orders":

            def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
                _any_orders(first, last, scores, batch.ptr, *stages, *out)

            return derivatives_in_threads(work, batch, 5e3 * batch.sizes, n_jobs)
        tied = int(stages.sizes.max(initial=1))
        most = tied if self.largest is None else int(self.largest)
        if tied > most:
            raise ValueError(
                f"largest: expected at least {tied}, the number of documents that tie in a query, "
                f"got {most}"
            )
        # With room for ties of three, the same code serves all parts, at any spread of scores.
        deltas = np.append(self._deltas(most), np.zeros(max(0, 3 - most)))
        cuts = _cuts(batch.sizes)

        def ties(
            first: int,
            last: int,
            scores: FloatArray,
            values: FloatArray,
            gradient: FloatArray,
            curvature: FloatArray,
        ) -> None:
            inner = cuts[(cuts > first) & (cuts < last)].tolist()
            for a, b in zip([first, *inner], [*inner, last], strict=True):
                rows = slice(batch.ptr[a], batch.ptr[b])
                order = stages.order[rows]
                ptr = batch.ptr[a : b + 1]
                found = davidson.terms(
                    scores[order], deltas, ptr - ptr[0], stages.sizes, stages.first[a : b + 1]
                )
                values[a:b] = -found.values
                gradient[order] = -found.slopes
                widths = np.diff(ptr)
                inside = np.arange(len(order)) - np.repeat(ptr[:-1] - ptr[0], widths)
                diagonal = np.repeat(found.starts[:-1], widths) + inside * np.repeat(
                    widths + 1, widths
                )
                curvature[order] = found.covariances[diagonal]

        cost = 20.0 * batch.sizes * (batch.sizes + most * most)
        return derivatives_in_threads(ties, batch, cost, n_jobs)


class Stages(NamedTuple):
    """The sets of documents that come one after the other.

    Attributes
    ----------
    order : array of int, shape (documents,)
        The documents of each query from the top down.
    sizes : array of int, shape (stages,)
    first : array of int, shape (queries + 1,)
        The first stage of each query.
    """

    order: IntArray
    sizes: IntArray
    first: IntArray


def _stages(labels: IntArray, ptr: IntArray, k: int | None) -> Stages:
    """Return the stages of all queries: one per label but the lowest, until k places are taken."""
    query = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    order = np.lexsort((-labels, query))
    label = labels[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(label) != 0) | (np.diff(query) != 0)])
    sizes = np.diff(np.append(starts, len(order)))
    owner, taken = query[starts], starts - ptr[query[starts]]
    last = np.append(owner[1:] != owner[:-1], True)  # the lowest label
    kept = ~last if k is None else ~last & (taken < k)
    return Stages(order, sizes[kept], pointers(np.bincount(owner[kept], minlength=len(ptr) - 1)))


def _cuts(sizes: FloatArray) -> IntArray:
    """Return where to cut the queries into parts whose second derivatives fit into memory."""
    total = np.cumsum(sizes**2) // CELLS
    return np.flatnonzero(np.diff(total) > 0) + 1


# ---- kernels ------------------------------------------------------------------------------------


@kernel
def _any_orders(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    ptr: IntArray,
    order: IntArray,
    sizes: IntArray,
    first_stage: IntArray,
    values: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
) -> None:
    """Fill in what belongs to each query: values (queries,), gradient, curvature (documents,)."""
    for q in range(first_query, last_query):
        start, end = ptr[q], ptr[q + 1]
        value = 0.0
        for stage in range(first_stage[q], first_stage[q + 1]):
            stop = start + sizes[stage]
            high, rest = -np.inf, 0.0
            for t in range(stop, end):
                high = max(high, scores[order[t]])
            for t in range(stop, end):
                rest += np.exp(scores[order[t]] - high)
            log_rest = high + np.log(rest)
            n = stop - start
            worths, sums = np.empty(n), np.zeros((3, n))
            for i in range(n):
                worths[i] = scores[order[start + i]] - log_rest
            log_chance, mean, variance = _first(worths, sums)
            value -= log_chance
            for i in range(n):
                gradient[order[start + i]] -= sums[0, i]
                curvature[order[start + i]] += sums[0, i] * sums[0, i] - sums[1, i] - sums[2, i]
            for t in range(stop, end):
                share = np.exp(scores[order[t]] - log_rest)
                gradient[order[t]] += share * (mean - 1.0)
                curvature[order[t]] += share * (mean - 1.0 + share * (1.0 - variance))
            start = stop
        values[q] = value


@kernel
def _first(worths: FloatArray, sums: FloatArray) -> tuple[float, float, float]:
    """Return the log of the chance that some documents come before all others.

    Log-worths are relative to the sum of the others. Then come the mean and the variance of the
    time y at which the first of the others comes; sums (3, n) get the means of ``a / (e^a - 1)``
    of each document, with ``a = y worth``, of its slope by log a, and of its square.
    """
    n = len(worths)
    if n == 1:  # in closed form
        x = worths[0]
        small = np.exp(-abs(x))
        ahead = (1.0 if x > 0.0 else small) / (1.0 + small)
        behind = (small if x > 0.0 else 1.0) / (1.0 + small)
        sums[0, 0] = behind
        sums[1, 0] = behind * behind - ahead * behind
        sums[2, 0] = 0.0
        mean = 1.0 + behind
        return min(x, 0.0) - np.log1p(small), mean, 1.0 + behind * behind
    step = min(0.2, 0.55 / np.sqrt(n + 1.0))
    # The integrand in z = log y is log-concave, with its peak below this.
    z = np.log(n + 1.0)
    peak = _log_density(z, worths)
    while True:
        below = _log_density(z - step, worths)
        if below <= peak:
            break
        peak = below
        z -= step
    total, first, second = 0.0, 0.0, 0.0
    for side in range(2):
        at = z if side == 0 else z + step
        while True:
            log_density = _log_density(at, worths)
            if log_density < peak - DEPTH:
                break
            f, y = np.exp(log_density - peak), np.exp(at)
            total += f
            first += f * y
            second += f * y * y
            for i in range(n):
                a = min(np.exp(worths[i] + at), 700.0)
                ratio = a / np.expm1(a) if a > 0.0 else 1.0
                sums[0, i] += f * ratio
                sums[1, i] += f * ratio * (1.0 - a - ratio)
                sums[2, i] += f * ratio * ratio
            at += -step if side == 0 else step
    for i in range(n):
        for part in range(3):
            sums[part, i] /= total
    mean = first / total
    return peak + np.log(step * total), mean, second / total - mean * mean


@kernel
def _log_density(z: float, worths: FloatArray) -> float:
    """Return the log of the integrand, by z."""
    result = z - np.exp(z)
    for i in range(len(worths)):
        x = worths[i] + z
        result += x if x < -37.0 else np.log(-np.expm1(-np.exp(x)))
    return result
