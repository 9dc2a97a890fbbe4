"""BoltzRank: a Boltzmann distribution over rankings, with the energy of all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist._parallel import pointers
from permdist.measures import Measure, parse
from permdist.models.batch import in_threads
from permdist.models.objectives.base import Bound, BoundDerivatives, Objective
from permdist.models.objectives.curvature import by_gradient, by_means
from permdist.models.rules import POSITIVE, MeasureName, Number, Seed, Whole
from permdist.models.spaces.restart import sum_sample
from permdist.sums.lattice import Lattice
from permdist.sums.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.models.batch import Batch
    from permdist.models.rules import Rule

    Sums = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True)
class Boltzmann(Objective):
    """``mix (1 - E[measure]) + (1 - mix) H`` under ``Pr(y) proportional to exp F(y)``.

    F is ``2 / (n (n - 1)) sum (s_j - s_k)`` over all pairs with j above k, whatever their labels; H
    is the cross entropy to the same distribution with the labels as scores.

    The curvature of H is the largest variance that goes with a document's mean place, an upper
    bound; that of the expected measure is as in `ExpectedLoss`.

    Parameters
    ----------
    measure : Measure or str
    mix : float
        From 0, the target alone, to 1, the expected measure alone.
    sharpness : float
        Labels are multiplied by it in the target.
    exact : int
        Queries of up to so many documents are summed over all their rankings.
    sample_size : int
        Longer queries are summed over so many rankings, drawn once.
    random_state : int, Generator or None

    References
    ----------
    Volkovs and Zemel: BoltzRank: Learning to Maximize Expected Ranking Gain.

    Examples
    --------
    >>> better, worse = (Boltzmann()(s, [1, 0])[0] for s in ([1.0, 0.0], [0.0, 1.0]))
    >>> better < worse
    True
    """

    alias: ClassVar[str] = "boltzmann"
    measure: Measure | str = "ndcg"
    mix: float = 0.5
    sharpness: float = 10.0
    exact: int = 6
    sample_size: int = 100
    random_state: RandomState = 0

    rules: ClassVar[Mapping[str, Rule]] = {
        "measure": MeasureName(),
        "mix": Number(0.0, 1.0),
        "sharpness": POSITIVE,
        "exact": Whole(0),
        "sample_size": Whole(2),
        "random_state": Seed(),
    }

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        derivatives = self.bind_derivatives(batch, n_jobs)
        return lambda scores: derivatives(scores)[:2]

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        small = np.flatnonzero(batch.sizes <= self.exact)
        large = np.flatnonzero(batch.sizes > self.exact)
        measure, mix = parse(self.measure), float(self.mix)
        largest = 2.0 / batch.sizes[batch.query_of]  # the factor of a score at the top
        log_odds = 2.0 * largest / np.maximum(batch.sizes - 1.0, 1.0)[batch.query_of]
        drawn = self.sample_size, batch.streams(self.random_state)
        parts: list[tuple[IntArray, _Exact | _Sampled]] = [
            (small, _Exact(batch, small, measure, self.sharpness)),
            (large, _Sampled(batch, large, measure, self.sharpness, *drawn)),
        ]

        def bound(scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            values, gradient = np.empty(len(batch)), np.zeros(len(scores))
            curvature, slopes = np.zeros(len(scores)), np.zeros(len(scores))
            for queries, part in parts:
                logs, by_logs, gains, by_gains = part(scores, n_jobs)
                rows = part.documents
                reached = np.bincount(
                    batch.query_of[rows], part.target * scores[rows], minlength=len(batch)
                )[queries]
                values[queries] = mix * (1.0 - gains) + (1.0 - mix) * (logs - reached)
                gradient[rows] = -mix * by_gains + (1.0 - mix) * (by_logs - part.target)
                slopes[rows] = mix * by_gains
                curvature[rows] = (1.0 - mix) * by_means(by_logs, largest[rows])
            curvature += log_odds * by_gradient(slopes, batch.ptr)
            return values, gradient, curvature

        return bound


class _Exact:
    """Small queries: all rankings, by subsets."""

    def __init__(self, batch: Batch, queries: IntArray, measure: Measure, sharpness: float) -> None:
        self.bounds = [batch.bounds[q] for q in queries]
        self.documents = _rows(self.bounds)
        self.shapes = {b - a: Shape.of_orders(b - a) for a, b in self.bounds}
        self.places = {n: _places(n, shape) for n, shape in self.shapes.items()}
        self.steps, self.offsets, target = [], [], []
        for a, b in self.bounds:
            label = batch.labels[a:b]
            self.steps.append(self.shapes[b - a].steps_of(measure, label))
            self.offsets.append(measure.offset(*np.unique(label, return_counts=True)))
            target.append(self._one(sharpness * label.astype(float), b - a)[1])
        self.target = np.concatenate(target) if target else np.zeros(0)

    def _one(self, scores: FloatArray, n: int) -> tuple[Lattice, FloatArray]:
        """Return the lattice of F less its largest value, and the gradient of its log-sum."""
        # What an item costs by coming before the better ones that are left: small wherever orders
        # matter, so that gaps of any size leave all digits.
        better = np.maximum(scores[:, None] - scores[None, :], 0.0)
        left = 1.0 - self.shapes[n].counts
        costs = np.asarray(4.0 / max(1, n * (n - 1)) * (left @ better), dtype=np.float64)
        lattice = Lattice(self.shapes[n], -costs)
        return lattice, (lattice.flows * self.places[n][:, None]).sum(axis=0)

    def __call__(self, scores: FloatArray, n_jobs: int | None) -> Sums:
        logs, gains = np.zeros(len(self.bounds)), np.zeros(len(self.bounds))
        by_logs, by_gains = np.zeros(len(scores)), np.zeros(len(scores))

        def work(first: int, last: int) -> None:
            for q in range(first, last):
                a, b = self.bounds[q]
                lattice, by_logs[a:b] = self._one(scores[a:b], b - a)
                largest = float(_factors(b - a) @ np.sort(scores[a:b])[::-1])
                logs[q] = lattice.log_partition + largest
                gains[q] = self.offsets[q] + lattice.expect(self.steps[q])
                slopes = lattice.expect_gradient(self.steps[q])
                by_gains[a:b] = (slopes * self.places[b - a][:, None]).sum(axis=0)

        cost = np.array([100.0 * (b - a) * 2.0 ** (b - a) for a, b in self.bounds])
        in_threads(work, cost, n_jobs)
        return logs, by_logs[self.documents], gains, by_gains[self.documents]


class _Sampled:
    """Longer queries: a fixed sample of rankings around the best ones."""

    def __init__(
        self,
        batch: Batch,
        queries: IntArray,
        measure: Measure,
        sharpness: float,
        size: int,
        streams: list[np.random.Generator],
    ) -> None:
        bounds = [batch.bounds[q] for q in queries]
        self.documents = _rows(bounds)
        self.ptr = pointers([b - a for a, b in bounds])
        slopes, losses, target = [], [], []
        for q in queries:
            a, b = batch.bounds[q]
            label = batch.labels[a:b]
            # From next to none to much more than neighboring labels differ by.
            gap = float(np.ptp(label)) / (len(np.unique(label)) - 1)
            # Each ranking comes with its mirror image, or chance orders of documents of one label
            # would drown the signal of long queries.
            half = (size + 1) // 2
            draws = streams[q].gumbel(size=(half, b - a))
            noise = gap * np.geomspace(0.1, 10.0, half)[:, None] * draws
            orders = np.argsort(-(label + noise), axis=1)
            orders = np.concatenate([orders, mirror(orders, label)])[:size]
            matrix = np.empty((size, b - a))
            np.put_along_axis(matrix, orders, np.broadcast_to(_factors(b - a), matrix.shape), 1)
            exponents = sharpness * (matrix @ label)
            chances = np.exp(exponents - exponents.max())
            slopes.append(matrix.ravel())
            losses.append(1.0 - measure(orders, label))
            target.append(chances @ matrix / chances.sum())
        self.slopes = np.concatenate(slopes) if slopes else np.zeros(0)
        self.losses = np.array(losses).reshape(len(bounds), size)
        self.target = np.concatenate(target) if target else np.zeros(0)

    def __call__(self, scores: FloatArray, n_jobs: int | None) -> Sums:
        own = scores[self.documents]
        found = []
        for of_mean in (False, True):
            values, gradient = np.zeros(len(self.losses)), np.zeros(len(own))

            def work(
                first: int,
                last: int,
                flag: bool = of_mean,
                values: FloatArray = values,
                gradient: FloatArray = gradient,
            ) -> None:
                inputs = own, self.ptr, self.slopes, self.losses
                sum_sample(first, last, *inputs, 0.0, flag, values, gradient)

            in_threads(work, np.diff(self.ptr).astype(float) * self.losses.shape[1], n_jobs)
            found += [values, gradient]
        return found[0], found[1], found[2], found[3]


def mirror(orders: IntArray, label: IntArray) -> IntArray:
    """Reverse the documents of each label among the positions that they take."""
    grades = label[orders]
    by_grade = np.argsort(grades, axis=1, kind="stable")
    backward = np.argsort(grades[:, ::-1], axis=1, kind="stable")
    mirrored = np.empty_like(orders)
    np.put_along_axis(
        mirrored, by_grade, np.take_along_axis(orders[:, ::-1], backward, axis=1), axis=1
    )
    return mirrored


def _factors(n: int) -> FloatArray:
    """Return the factor of a score in F at each position."""
    return np.asarray(2.0 * (n - 1.0 - 2.0 * np.arange(n)) / (n * (n - 1.0)), dtype=np.float64)


def _places(n: int, shape: Shape) -> FloatArray:
    """Return that factor for whoever comes next in each state."""
    placed = shape.counts.sum(axis=1)
    return np.append(_factors(n), 0.0)[placed]


def _rows(bounds: list[tuple[int, int]]) -> IntArray:
    """Return the documents of some queries."""
    parts = [np.arange(a, b) for a, b in bounds]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
