"""BoltzRank: a Boltzmann distribution over rankings, with the energy of all pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from permdist._check import as_rng
from permdist._typing import FloatArray, IntArray
from permdist.distributions.lattice import Lattice, Shape
from permdist.measures import Measure
from permdist.models.base import Card, Settings
from permdist.models.descent import Descent, Loss
from permdist.models.inputs import need_draws
from permdist.models.rules import POSITIVE, USUAL, Number, Rule, Whole
from permdist.models.spaces import Batch
from permdist.models.spaces.base import spread
from permdist.models.spaces.restart import sum_sample

LARGEST_EXACT = 12


class BoltzRank(Descent):
    """Expected measure, and closeness to a target, under ``Pr(y) proportional to exp F(y)``.

    F is minus the energy, ``2 / (n (n - 1)) sum (s_j - s_k)`` over all pairs with j above k,
    whatever their labels. Minimizes ``sum_q mix (1 - E[measure]) + (1 - mix) H + |w|^2 / C``, where
    H is the cross entropy to the same distribution with the labels as scores.

    Parameters
    ----------
    measure : Measure or str
    mix : float
        From 0, the target alone, to 1, the expected measure alone.
    sharpness : float
        Labels are multiplied by it in the target.
    exact : int
        Queries of up to so many documents are summed over all their rankings, by a dynamic
        program over subsets; 12 at most.
    sample_size : int
        Longer queries are summed over so many rankings, drawn once: sorted by label plus noise,
        from next to none to much more than the labels differ by.
    C : float
        The larger, the weaker the regularization; ``numpy.inf`` for none.
    random_state : int, optional
        The seed of these rankings.
    normalize : bool, str or sequence of str
        How to scale every feature within its query, as in `MLE`.
    max_iter, tol : int, float
        When the optimizer stops: iterations, and the largest entry of the gradient.
    early_stopping : int, optional
        Stop after so many iterations without a better measure on `eval_set`, and keep the best.
    warm_start : bool
        Whether `fit` starts from the coefficients of the last one.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.
    verbose : bool

    References
    ----------
    Volkovs and Zemel: BoltzRank: Learning to Maximize Expected Ranking Gain.

    Examples
    --------
    >>> from permdist import data
    >>> queries = data.make_letor(40, rng=0)
    >>> learner = BoltzRank("ndcg@10", max_iter=20).fit(queries)
    >>> learner.history_["objective"][-1] <= learner.history_["objective"][0]
    True
    """

    card: ClassVar[Card] = Card(
        paper="Volkovs and Zemel 2009",
        optimizes="any measure, in expectation",
        minimizes="1 - E[measure], and cross entropy",
        cost="sample size x n, or 2^n",
    )
    settings: ClassVar[Settings] = {
        "C": [10.0, 100.0, 1e3, 1e4],
        "mix": [0.0, 0.5, 1.0],
    }

    rules: ClassVar[Mapping[str, Rule]] = {
        **USUAL,
        "mix": Number(0.0, 1.0),
        "sharpness": POSITIVE,
        "exact": Whole(0, LARGEST_EXACT),
        "sample_size": Whole(2),
    }

    def __init__(
        self,
        measure: str | Measure = "ndcg",
        *,
        mix: float = 0.5,
        sharpness: float = 10.0,
        exact: int = 6,
        sample_size: int = 100,
        C: float = 1000.0,
        random_state: int | None = 0,
        normalize: bool | str | Sequence[str] = False,
        max_iter: int = 100,
        tol: float = 1e-5,
        early_stopping: int | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.measure = measure
        self.mix = mix
        self.sharpness = sharpness
        self.exact = exact
        self.sample_size = sample_size
        self.C = C
        self.random_state = random_state
        self.normalize = normalize
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _prepare(self, batch: Batch) -> Loss:
        sizes = np.diff(batch.ptr)
        small = np.flatnonzero(sizes <= self.exact)
        large = np.flatnonzero(sizes > self.exact)
        if len(large):
            need_draws("sample_size", self.sample_size, batch)
        parts: list[_Exact | _Sampled] = [
            _Exact(batch, small, self._measure(), self.sharpness),
            _Sampled(
                batch,
                large,
                self._measure(),
                self.sharpness,
                self.sample_size,
                as_rng(self.random_state),
            ),
        ]
        mix = float(self.mix)

        def loss(scores: FloatArray) -> tuple[float, FloatArray]:
            total, gradient = 0.0, np.zeros(len(scores))
            for part in parts:
                logs, by_logs, gains, by_gains = part(scores, self.n_jobs)
                rows = part.documents
                entropy = float(logs.sum()) - float(part.target @ scores[rows])
                total += mix * float((1.0 - gains).sum()) + (1.0 - mix) * entropy
                gradient[rows] = -mix * by_gains + (1.0 - mix) * (by_logs - part.target)
            return total, gradient

        return loss


Sums = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


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
        place = self.places[n]
        lattice = Lattice(self.shapes[n], place[:, None] * scores[None, :])
        return lattice, (lattice.flows * place[:, None]).sum(axis=0)

    def __call__(self, scores: FloatArray, threads: int | None) -> Sums:
        logs, gains = np.zeros(len(self.bounds)), np.zeros(len(self.bounds))
        by_logs, by_gains = np.zeros(len(scores)), np.zeros(len(scores))

        def work(first: int, last: int) -> None:
            for q in range(first, last):
                a, b = self.bounds[q]
                lattice, by_logs[a:b] = self._one(scores[a:b], b - a)
                logs[q] = lattice.log_partition
                gains[q] = self.offsets[q] + lattice.expect(self.steps[q])
                slopes = lattice.expect_gradient(self.steps[q])
                by_gains[a:b] = (slopes * self.places[b - a][:, None]).sum(axis=0)

        cost = np.array([100.0 * (b - a) * 2.0 ** (b - a) for a, b in self.bounds])
        spread(work, cost, threads)
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
        rng: np.random.Generator,
    ) -> None:
        bounds = [batch.bounds[q] for q in queries]
        self.documents = _rows(bounds)
        self.ptr = np.concatenate([[0], np.cumsum([b - a for a, b in bounds])]).astype(np.int64)
        slopes, losses, target = [], [], []
        for a, b in bounds:
            label = batch.labels[a:b]
            # From next to none to much more than neighboring labels differ by.
            gap = float(np.ptp(label)) / (len(np.unique(label)) - 1)
            noise = gap * np.geomspace(0.1, 10.0, size)[:, None] * rng.gumbel(size=(size, b - a))
            orders = np.argsort(-(label + noise), axis=1)
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

    def __call__(self, scores: FloatArray, threads: int | None) -> Sums:
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

            spread(work, np.diff(self.ptr).astype(float) * self.losses.shape[1], threads)
            found += [values, gradient]
        return found[0], found[1], found[2], found[3]


def _factors(n: int) -> FloatArray:
    """Give the factor of a score in F at each position."""
    return np.asarray(2.0 * (n - 1.0 - 2.0 * np.arange(n)) / (n * (n - 1.0)), dtype=np.float64)


def _places(n: int, shape: Shape) -> FloatArray:
    """Give that factor for whoever comes next in each state."""
    placed = shape.counts.sum(axis=1)
    return np.append(_factors(n), 0.0)[placed]


def _rows(bounds: list[tuple[int, int]]) -> IntArray:
    """Give the documents of some queries."""
    parts = [np.arange(a, b) for a, b in bounds]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
