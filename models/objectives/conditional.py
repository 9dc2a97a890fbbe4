"""Objectives of conditional models ``Pr(y) proportional to exp F(y)`` over a space of rankings.

Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._typing import FloatArray
from permdist.measures import Measure, parse
from permdist.models.objectives.base import Bound, BoundDerivatives, Objective
from permdist.models.objectives.curvature import (
    by_gradient,
    by_means,
    number_of_others,
    pair_variances,
    slopes_of_best,
)
from permdist.models.rules import Flag, MeasureName, Number, OneOf, Seed
from permdist.models.spaces import SPACES, Space, Sums, UtilitySums, parse_space
from permdist.models.specs import SpecName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from permdist._typing import IntArray, RandomState
    from permdist.models.batch import Batch
    from permdist.models.rules import Rule

Variances = Callable[[FloatArray, FloatArray], FloatArray]
SMALLEST = 1e-300
KAPPA_UNITS = ("queries", "pairs")
DISTRIBUTIONS = ("good-bad", "plackett-luce", "gaussian")


@dataclass(frozen=True)
class Conditional(Objective):
    """What the objectives of conditional models share.

    The second derivatives of the log of a sum over rankings are variances. Over `pairs` and `rows`
    they are those of independent pairs, without the tilt of rows; over other spaces the curvature
    is the largest variance that goes with the mean, and so an upper bound (where more than two
    labels are cut up by thresholds, its size). The curvature of an expected measure, which is not
    convex, is ``(|slope| + mean |slope| of the query) * factor``, with the factor of score
    differences in the log-odds of a pair: a Newton step changes these by 1 at most.

    Parameters
    ----------
    measure : Measure or str
        The gain; the loss is 1 less it.
    space : Space or str
        The rankings that are summed over.
    scale : bool
        Whether to divide score differences by the number of pairs of each query.
    random_state : int, Generator or None
        For spaces that draw.
    """

    measure: Measure | str = "ap"
    space: Space | str = "interleavings"
    scale: bool = True
    random_state: RandomState = 0

    rules: ClassVar[Mapping[str, Rule]] = {
        "measure": MeasureName(),
        "space": SpecName(SPACES),
        "scale": Flag(),
        "random_state": Seed(),
    }

    @property
    def scaled(self) -> bool:
        """Whether score differences are divided by the number of pairs of each query."""
        return self.scale

    def settle(self, labels: IntArray, ptr: IntArray) -> Objective:
        """Let the space decide what depends on all queries; see `Objective.settle`."""
        return replace(self, space=parse_space(self.space).settle(labels, ptr))

    def sums(self, batch: Batch, n_jobs: int | None = None) -> Sums:
        """Make the space ready for the queries of a batch."""
        space, measure = parse_space(self.space), parse(self.measure)
        return space.sums(batch, measure, n_jobs=n_jobs, random_state=self.random_state)

    def _variances(self, batch: Batch, n_jobs: int | None, kappa: float = 0.0) -> Variances:
        """Return a function of scores and of the slopes of the log-sum."""
        space = parse_space(self.space)
        if space.independent:
            tilts = kappa / batch.n_pairs if space.alias == "pairs" else np.zeros(len(batch))
            factors = 2.0 * batch.scale
            return lambda scores, _: pair_variances(batch, factors, tilts, scores, n_jobs)
        scale = batch.scale[batch.query_of]
        best, largest = scale * slopes_of_best(batch), scale * number_of_others(batch)
        return lambda _, slopes: by_means(best + slopes, largest)

    def _bounded(self, batch: Batch) -> Callable[[FloatArray], FloatArray]:
        """Return a function of the slopes of an expected measure: its curvature."""
        log_odds = 2.0 * batch.scale[batch.query_of]
        return lambda slopes: log_odds * by_gradient(slopes, batch.ptr)


class OverSums:
    """An objective that is ready for the queries of a batch, with the sums it is made of."""

    def __init__(self, sums: Sums, function: Bound) -> None:
        self.sums, self._function = sums, function

    def __call__(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the value of each query, and the gradient by all scores."""
        return self._function(scores)


@dataclass(frozen=True)
class LogSum(Conditional):
    """What `Likelihood` and `ConvexLoss` share: a log-sum, tilted by the loss."""

    def _tilt(self) -> float:
        return 0.0

    def bind(self, batch: Batch, n_jobs: int | None = None) -> OverSums:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        sums, kappa = self.sums(batch, n_jobs), self._tilt()
        return OverSums(sums, lambda scores: sums.log_sums(scores, kappa))

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        bound, variances = self.bind(batch, n_jobs), self._variances(batch, n_jobs, self._tilt())

        def derivatives(scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            values, gradient = bound(scores)
            return values, gradient, variances(scores, gradient)

        return derivatives


@dataclass(frozen=True)
class Likelihood(LogSum):
    """``log sum_y exp(F(y) - F(best))``: minus the log-likelihood of the best ranking, L1.

    Examples
    --------
    >>> value, gradient = Likelihood(space="pairs")([0.3, 0.1, 0.2], [1, 0, 0])
    >>> round(value, 4), gradient.round(3)
    (1.2425, array([-0.925,  0.45 ,  0.475]))
    """

    alias: ClassVar[str] = "likelihood"
    space: Space | str = "pairs"


@dataclass(frozen=True)
class ConvexLoss(LogSum):
    """``log sum_y exp(F(y) - F(best) + kappa loss(y))``: the convex bound of likelihood and loss.

    Parameters
    ----------
    kappa : float
        The weight of the loss; 0 is `Likelihood`.
    measure, space, scale, random_state
        As in `Likelihood`.

    Examples
    --------
    >>> value, gradient = ConvexLoss("ap")([0.3, 0.1, 0.2], [1, 0, 0])
    >>> value > Likelihood("ap", space="interleavings")([0.3, 0.1, 0.2], [1, 0, 0])[0]
    True
    """

    alias: ClassVar[str] = "convex-loss"
    kappa: float = 1.0

    rules: ClassVar[Mapping[str, Rule]] = {**LogSum.rules, "kappa": Number(0.0)}

    def _tilt(self) -> float:
        return float(self.kappa)


@dataclass(frozen=True)
class LikelihoodAndLoss(ConvexLoss):
    """``log sum_y exp(F(y) - F(best)) + kappa E[loss]``: L3, the likelihood and expected loss.

    Parameters
    ----------
    kappa : float
        The weight of the loss; 0 is `Likelihood`.
    kappa_units : {"queries", "pairs"}
        Whether `kappa` is the weight of the loss of a query, or of each of its pairs of different
        labels: it is then multiplied by their number.
    measure, space, scale, random_state
        As in `Likelihood`.
    """

    alias: ClassVar[str] = "likelihood-and-loss"
    kappa_units: str = "queries"

    rules: ClassVar[Mapping[str, Rule]] = {
        **ConvexLoss.rules,
        "kappa_units": OneOf(KAPPA_UNITS),
    }

    def bind(self, batch: Batch, n_jobs: int | None = None) -> OverSums:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        sums, kappas = self.sums(batch, n_jobs), self._kappas(batch)

        def bound(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
            logs, by_logs = sums.log_sums(scores, 0.0)
            if self.kappa == 0.0:
                return logs, by_logs
            gains, by_gains = sums.mean_gains(scores)
            return logs + kappas * (1.0 - gains), by_logs - kappas[batch.query_of] * by_gains

        return OverSums(sums, bound)

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        sums, variances = self.sums(batch, n_jobs), self._variances(batch, n_jobs)
        kappas, bounded = self._kappas(batch), self._bounded(batch)

        def derivatives(scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            logs, by_logs = sums.log_sums(scores, 0.0)
            spread = variances(scores, by_logs)
            if self.kappa == 0.0:
                return logs, by_logs, spread
            gains, by_gains = sums.mean_gains(scores)
            values, slopes = logs + kappas * (1.0 - gains), kappas[batch.query_of] * by_gains
            return values, by_logs - slopes, spread + bounded(slopes)

        return derivatives

    def _kappas(self, batch: Batch) -> FloatArray:
        """Return the weight of the loss of each query."""
        kappas = np.full(len(batch), float(self.kappa))
        return kappas * batch.n_pairs if self.kappa_units == "pairs" else kappas


@dataclass(frozen=True)
class ExpectedLoss(Conditional):
    """``E[1 - measure]``: the expected loss alone, L2.

    Parameters
    ----------
    distribution : {"good-bad", "plackett-luce", "gaussian"}
        Under which the expectation is taken.
    measure, space, scale, random_state
        As in `Likelihood`; the space is that of the good-bad model.

    Examples
    --------
    >>> value, gradient = ExpectedLoss("auc", space="pairs", scale=False)([0.0, 0.0], [1, 0])
    >>> value, gradient
    (0.5, array([-0.5,  0.5]))
    """

    alias: ClassVar[str] = "expected-loss"
    distribution: str = "good-bad"

    rules: ClassVar[Mapping[str, Rule]] = {
        **Conditional.rules,
        "distribution": OneOf(DISTRIBUTIONS),
    }

    def sums(self, batch: Batch, n_jobs: int | None = None) -> Sums:
        """Make the space, or the distribution, ready for the queries of a batch."""
        if self.distribution == "good-bad":
            return super().sums(batch, n_jobs)
        return UtilitySums(batch, parse(self.measure), n_jobs, kind=self.distribution)

    def bind(self, batch: Batch, n_jobs: int | None = None) -> OverSums:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        sums = self.sums(batch, n_jobs)

        def bound(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
            gains, gradient = sums.mean_gains(scores)
            return 1.0 - gains, -gradient

        return OverSums(sums, bound)

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        bound, bounded = self.bind(batch, n_jobs), self._bounded(batch)

        def derivatives(scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            values, gradient = bound(scores)
            return values, gradient, bounded(gradient)

        return derivatives

    def _bounded(self, batch: Batch) -> Callable[[FloatArray], FloatArray]:
        if self.distribution == "good-bad":
            return super()._bounded(batch)
        scale = batch.scale[batch.query_of]
        return lambda slopes: scale * by_gradient(slopes, batch.ptr)


@dataclass(frozen=True)
class ExpectedGain(ExpectedLoss):
    """``-log E[measure]``.

    Parameters
    ----------
    distribution, measure, space, scale, random_state
        As in `ExpectedLoss`.
    """

    alias: ClassVar[str] = "expected-gain"

    def bind(self, batch: Batch, n_jobs: int | None = None) -> OverSums:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        measure = parse(self.measure)
        if measure.range[0] < 0.0:
            raise ValueError(
                f"measure: {measure.name!r} can be negative, and its mean has no logarithm"
            )
        sums = self.sums(batch, n_jobs)

        def bound(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
            gains, gradient = sums.mean_gains(scores)
            gains = np.maximum(gains, SMALLEST)
            return -np.log(gains), -gradient / gains[batch.query_of]

        return OverSums(sums, bound)
