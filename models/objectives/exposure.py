"""Expected exposure: how much each document is seen, against how much it should be, exactly.

Under a distribution over rankings every document has an expected exposure: the mean weight of its
position. `Exposure` is what its objectives share; `group_exposure` has that of groups.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._check import scale_of
from permdist._ragged import pointers
from permdist.distributions import position_weights
from permdist.measures import Measure, parse
from permdist.measures.positional import positional_batch
from permdist.models.objectives.base import Bound, BoundDerivatives, Objective
from permdist.models.objectives.curvature import by_gradient
from permdist.models.rules import OneOf, Whole
from permdist.sums.positions import RandomNoise

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch
    from permdist.models.rules import Rule

DISTRIBUTIONS = ("plackett-luce", "gaussian")


@dataclass(frozen=True)
class Exposure(Objective):
    """What the objectives of exposure share.

    Parameters
    ----------
    discount : str or float
        How much is seen of each position: ``"log2"``, ``"jk"``, ``"reciprocal"``, or the chance to
        go on to the next position; see `permdist.distributions.position_weights`.
    k : int, optional
        Positions beyond the first k are not seen.
    measure : Measure or str, optional
        A sum over positions (NDCG, Precision, WTA), whose expected value is wanted high as well.
    weight : float
        Of the exposure, beside 1 for the measure.
    distribution : {"plackett-luce", "gaussian"}
        The noise of the scores, which makes rankings random.
    noise : float
        Its scale.
    """

    discount: str | float = "log2"
    k: int | None = None
    measure: Measure | str | None = None
    weight: float = 1.0
    distribution: str = "plackett-luce"
    noise: float = 1.0

    rules: ClassVar[Mapping[str, Rule]] = {
        "k": Whole(optional=True),
        "distribution": OneOf(DISTRIBUTIONS),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.measure is not None:
            parse(self.measure)
        scale_of("noise", self.noise)
        scale_of("weight", self.weight)
        position_weights(self.discount, self.k)
        if not isinstance(self.discount, str) and np.ndim(self.discount):
            raise ValueError("discount: expected a name or a number, got an array")

    @abstractmethod
    def _loss(
        self, batch: Batch, seen: FloatArray, ptr: IntArray
    ) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        """Return the function from exposures to the loss of each query, and its derivatives.

        Parameters
        ----------
        batch : Batch
        seen : array of float
            How much is seen of each position of each query.
        ptr : array of int, shape (queries + 1,)
            Where those of each query start.
        """

    def _grades(self, batch: Batch) -> IntArray:
        """Return the grades of documents."""
        return batch.labels

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        noise = RandomNoise(self.distribution == "gaussian", float(self.noise))
        ptr, weight, labels = batch.ptr, float(self.weight), self._grades(batch)
        seen, seen_ptr = self._seen(batch)
        loss = self._loss(batch, seen, seen_ptr)
        utility = None if self.measure is None else _utility(self.measure, labels, batch)

        def bound(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
            exposures = noise.exposures(scores, ptr, seen, seen_ptr, n_jobs)
            values, slopes = loss(exposures)
            layout = slopes, seen, seen_ptr
            gradient = noise.expected_sums(scores, ptr, *layout, n_jobs)[1]
            if utility is None:
                return weight * values, weight * gradient
            gains, by_gains = noise.expected_sums(scores, ptr, *utility[:3], n_jobs)
            values = weight * values + 1.0 - utility[3] - gains
            return values, weight * gradient - by_gains

        return bound

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        bound, unit = self.bind(batch, n_jobs), 1.0 / float(self.noise)

        def derivatives(scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            values, gradient = bound(scores)
            return values, gradient, unit * by_gradient(gradient, batch.ptr)

        return derivatives

    def _seen(self, batch: Batch) -> tuple[FloatArray, IntArray]:
        """Return the weights of the positions of all queries, and where those of each start."""
        sizes = np.diff(batch.ptr)
        weights = position_weights(self.discount, self.k, int(sizes.max()))
        counts = np.minimum(sizes, len(weights))
        used = np.arange(len(weights)) < counts[:, None]
        return np.broadcast_to(weights, used.shape)[used], pointers(counts)


@dataclass(frozen=True)
class ExpectedExposure(Exposure):
    """The squared distance of expected exposures from a target, over the squared target.

    ``sum_i (exposure_i - target_i)^2 / sum_i target_i^2``, plus ``1 - E[measure]`` if there is a
    measure. Exposures under Plackett-Luce or Gaussian scores are exact, by quadrature.

    Not convex; the curvature is ``(|slope| + mean |slope| of the query) / noise``.

    Parameters
    ----------
    target : {"grade", "merit"}
        ``"grade"``: what documents are seen by if rankings put higher grades first and order
        documents of one grade by chance: equal exposure for equal grades, as in Diaz et al.
        ``"merit"``: the exposure of all, in proportion to ``2^label - 1``.
    discount, k, measure, weight, distribution, noise
        How much is seen of each position (``"log2"``, ``"jk"``, ``"reciprocal"`` or the chance to
        go on to the next position), how many positions are seen, a measure of the utility, the
        weight of the distance beside it, and the noise of the scores: ``"plackett-luce"`` or
        ``"gaussian"``, and its scale.

    References
    ----------
    Diaz et al.: Evaluating Stochastic Rankings with Expected Exposure (2020); Singh and Joachims:
    Fairness of Exposure in Rankings (2018).

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> value, gradient = ExpectedExposure()([0.5, 0.1, 0.3], [2, 0, 0])
    >>> round(value, 4), gradient.round(4)
    (0.0593, array([-0.0564,  0.0232,  0.0332]))
    >>> seen = PlackettLuce([0.5, 0.1, 0.3]).exposure()
    >>> wanted = np.array([1.0, (0.6309297536 + 0.5) / 2, (0.6309297536 + 0.5) / 2])
    >>> bool(abs(value - ((seen - wanted) ** 2).sum() / (wanted**2).sum()) < 1e-9)
    True
    """

    alias: ClassVar[str] = "expected-exposure"
    target: str = "grade"

    rules: ClassVar[Mapping[str, Rule]] = {
        **Exposure.rules,
        "target": OneOf(("grade", "merit")),
    }

    def _loss(
        self, batch: Batch, seen: FloatArray, ptr: IntArray
    ) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        wanted = np.concatenate(
            [
                self.targets(batch.labels[a:b], seen[first:last])
                for (a, b), first, last in zip(batch.bounds, ptr[:-1], ptr[1:], strict=True)
            ]
        )
        starts = batch.ptr[:-1]
        size = np.add.reduceat(wanted**2, starts)

        def loss(exposures: FloatArray) -> tuple[FloatArray, FloatArray]:
            gap = exposures - wanted
            values = np.add.reduceat(gap**2, starts) / size
            return values, 2.0 * gap / size[batch.query_of]

        return loss

    def targets(self, labels: IntArray, seen: FloatArray) -> FloatArray:
        """Return what each document of a query should be seen.

        Parameters
        ----------
        labels : array of int, shape (n,)
        seen : array of float, shape (positions,)
            How much of each position is seen.

        Examples
        --------
        >>> ExpectedExposure().targets(np.array([0, 2, 0]), np.array([1.0, 0.5]))
        array([0.25, 1.  , 0.25])
        >>> ExpectedExposure(target="merit").targets(np.array([0, 2, 1]), np.array([1.0, 0.5]))
        array([0.   , 1.125, 0.375])
        """
        if self.target == "merit":
            merit = merits(labels)
            return seen.sum() * merit / merit.sum()
        positions = np.zeros(len(labels))
        positions[: len(seen)] = seen
        order = np.argsort(-labels, kind="stable")
        _, grade, sizes = np.unique(-labels[order], return_inverse=True, return_counts=True)
        result = np.empty(len(labels))
        result[order] = (np.bincount(grade, positions) / sizes)[grade]
        return result


def merits(labels: IntArray) -> FloatArray:
    """Return the merit of each document, ``2^label - 1``."""
    return np.exp2(np.minimum(labels, 1000).astype(np.float64)) - 1.0


def _utility(
    measure: Measure | str, labels: IntArray, batch: Batch
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Return gains, weights of positions, where they start, and offsets of a measure."""
    chosen = parse(measure)
    form = positional_batch(chosen, labels, batch.ptr)
    for q in np.flatnonzero(~form.known).tolist():
        a, b = batch.bounds[q]
        if chosen.defined(labels[a:b]):
            raise ValueError(
                f"measure: {chosen.name!r} is no sum over positions; use ndcg, precision or wta"
            )
    # A query without relevant documents has no utility to lose.
    return form.gains, form.weights, form.weight_ptr, np.where(form.known, form.offsets, 1.0)
