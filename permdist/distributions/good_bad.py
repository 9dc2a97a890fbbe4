"""The log-linear good-bad pair model over interleavings or orders."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import choice
from permdist._kernels import kernel
from permdist.distributions.base import DEFAULT_DRAWS, METHODS, Distribution, Estimate
from permdist.distributions.pair_model import PairModel
from permdist.distributions.valid_signs import ValidSigns
from permdist.measures import Measure, parse
from permdist.sums.interleavings import Interleavings, tabulate
from permdist.sums.lattice import Lattice
from permdist.sums.shape import MAX_CELLS, Shape, check_cells, fits, level_steps
from permdist.targets.good_bad import Levels, good_bad_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.targets import Target

SPACES = ("interleavings", "orders")


class GoodBad(PairModel, Distribution):
    """The good-bad pair model over rankings: ``Pr(y) proportional to exp F(y)``.

    ``F(y) = scale * sum_gb y_gb (s_g - s_b)`` over the pairs of a good and a bad item, with
    ``y_gb = 1`` if the good one is above and -1 if not; with graded labels, over all pairs with
    different labels. `space` says what y runs over. For sign vectors see `PairSigns`.

    Parameters
    ----------
    scores : array of float, shape (n,)
    labels : array of int, shape (n,)
        Relevance labels, at least two different ones.
    space : {"orders", "interleavings", "valid-signs"}
        All n! orders, or the orders that keep each class sorted by score. Over valid sign vectors
        a draw is no order, and the object is a `ValidSigns`.
    scale : float
        The factor of the score differences.
    tilt : Measure or str, optional
        Adds ``kappa * (1 - measure)`` to the exponent: the loss-augmented distribution.
    kappa : float
        The weight of the tilt.
    names : sequence of str, optional
        Item names.

    References
    ----------
    Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, sections 1.7 to 3.

    Examples
    --------
    >>> model = GoodBad([1.0, 0.2, -0.4], [1, 0, 0], space="interleavings")
    >>> round(model.log_partition(), 4)
    2.3941
    >>> model.rank_marginals().round(4)
    array([[0.8236, 0.1663, 0.0101],
           [0.1764, 0.8236, 0.    ],
           [0.    , 0.0101, 0.9899]])
    >>> float(model.expect("ap"))
    0.910...
    """

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """Make the object; over valid sign vectors a `ValidSigns`."""
        if options.get("space") == "valid-signs":
            del options["space"]
            return ValidSigns(*args, **options)
        return super().__new__(cls)

    def __init__(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        space: str = "orders",
        scale: float = 1.0,
        tilt: Measure | str | None = None,
        kappa: float = 1.0,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(scores, labels, scale=scale, tilt=tilt, kappa=kappa, names=names)
        self._space = choice("space", space, SPACES)

    @property
    def space(self) -> str:
        """What the distribution is over."""
        return self._space

    def log_weight(self, orders: ArrayLike) -> Any:
        """Return the exponent of each order, shape (...): F and the tilt, not normalized."""
        return self._reference + self._relative_weight(orders)

    def _relative_weight(self, orders: ArrayLike) -> Any:
        """Return the exponent less F of the order of the scores, which is the largest F.

        The difference is minus twice the sum, over the gaps between neighboring scores, of the
        gap times how many pairs are in the wrong order across it: no term is positive.
        """
        order = self._check_orders(orders)
        flat, sorted_only = order.reshape(-1, self.n_items), self._space == "interleavings"
        result = _losses(flat, *self._levels, self._ranked, self._gaps, self._place, sorted_only)
        result = result.reshape(order.shape[:-1])
        if self._tilt is not None:
            result = result + self._kappa * (1.0 - self._tilt(order, self._own_labels))
        return result[()]

    @cached_property
    def _place(self) -> IntArray:
        """Each item's place among those with its label, by score."""
        place = np.empty(self.n_items, dtype=np.int64)
        for members in self._classes:
            place[members] = np.arange(len(members))
        return place

    @property
    def _classes(self) -> list[IntArray]:
        """The items of each label by score, the lowest label first."""
        return np.split(self._arranged.by_level, self._arranged.totals.cumsum()[:-1])

    def log_prob(self, orders: ArrayLike) -> Any:
        """Return the log-probability of each order."""
        return self._relative_weight(orders) - self._relative_partition

    def log_partition(self) -> float:
        """Return ``log sum_y exp F(y)``, with the tilt if there is one.

        Over orders it is exact up to 21 items; `permdist.samplers.estimate_log_partition` estimates
        it beyond.
        """
        return self._reference + self._relative_partition

    @property
    def _relative_partition(self) -> float:
        """The log-partition function less F of the order of the scores."""
        if self._sums is not None:
            return self._sums.log_sum + self._constant
        return self._exact("log_partition").log_partition + self._constant

    def log_partition_gradient(self) -> FloatArray:
        """Differentiate `log_partition` by the scores, shape (n,)."""
        if self._sums is None:
            return self._by_scores(self._exact("log_partition_gradient").flows)
        return self._scatter(self._sums.slopes()) + self._scale * self._arranged.balance

    def expect_gradient(
        self, measure: str | Measure, labels: ArrayLike | None = None
    ) -> FloatArray:
        """Differentiate `expect` by the scores, shape (n,)."""
        chosen, label = parse(measure), self._labels(labels)
        if not self._defines(chosen, label):
            return np.zeros(self.n_items)
        if self._sums is not None and np.array_equal(label, self._own_labels):
            return self._scatter(self._sums.expect_slopes(self._steps(chosen)))
        lattice = self._exact("expect_gradient")
        steps = lattice.shape.steps_of(chosen, label)
        return self._by_scores(lattice.expect_gradient(steps))

    def _mode(self) -> IntArray:
        """Find the most probable order: that of the scores, unless a tilt moves it."""
        if self._tilt is None:
            return self._ranked.copy()
        # Sorting inside the classes is best for F and changes no measure.
        shape = self._interleavings()
        return Lattice(shape, self._step_weights(shape)).best()

    def _sample(self, size: int, rng: np.random.Generator) -> IntArray:
        return self._exact("drawing").sample(size, rng)

    @cached_property
    def _shape(self) -> Shape:
        if self._space == "interleavings":
            return self._interleavings()
        return Shape.of_orders(self.n_items)

    def _interleavings(self) -> Shape:
        check_cells(self._levels[1])
        return Shape(tuple(self._classes))

    @cached_property
    def _sums(self) -> Interleavings | None:
        """The faster program for interleavings."""
        if self._space != "interleavings":
            return None
        totals = self._levels[1]
        check_cells(totals)
        steps = None if self._tilt is None else self._steps(self._tilt)
        return Interleavings(self._standard[self._arranged.by_level], totals, steps, -self._kappa)

    def _steps(self, measure: Measure) -> FloatArray:
        return tabulate(measure, self._arranged.values, self._arranged.totals)

    def _scatter(self, slopes: FloatArray) -> FloatArray:
        """Put derivatives by the sorted, scaled scores where the items are."""
        result = np.empty(self.n_items)
        result[self._arranged.by_level] = 2.0 * self._scale * slopes
        return result

    def _defines(self, measure: Measure, labels: IntArray) -> bool:
        if labels is not self._own_labels:
            return super()._defines(measure, labels)
        return _is_defined(measure, *(tuple(part.tolist()) for part in self._arranged[1:4:2]))

    def _expect_exactly(self, measure: Measure, labels: IntArray) -> float | None:
        own = self._sums is not None and np.array_equal(labels, self._own_labels)
        if self._sums is not None and own and measure.additive:
            return self._offset(measure) + self._sums.expect(self._steps(measure))
        return super()._expect_exactly(measure, labels)

    def _offset(self, measure: Measure) -> float:
        return measure.offset(self._arranged.values, self._arranged.totals)

    @property
    def _is_small(self) -> bool:
        return self._space == "interleavings" or fits(self.n_items)

    @property
    def _is_listed(self) -> bool:
        return False  # few orders have a lattice

    @cached_property
    def _constant(self) -> float:
        """What the tilt adds whatever the order."""
        return 0.0 if self._tilt is None else self._kappa * (1.0 - self._offset(self._tilt))

    def _step_weights(self, shape: Shape) -> FloatArray:
        weights = shape.sum_losses(self._scores, self._own_labels, 2.0 * self._scale)
        if self._tilt is not None and self._kappa != 0.0:
            weights -= self._kappa * shape.steps_of(self._tilt, self._own_labels)
        return weights

    def _by_scores(self, by_weights: FloatArray) -> FloatArray:
        """Carry derivatives by log-weights over to the scores."""
        inputs = by_weights, *self._shape.geometry, *self._levels
        return self._scale * _by_scores(*inputs)

    def _labels(self, labels: ArrayLike | None) -> IntArray:
        return self._own_labels if labels is None else super()._labels(labels)

    def kl(
        self,
        other: Distribution,
        *,
        method: str = "auto",
        draws: int = DEFAULT_DRAWS,
        rng: RandomState = None,
    ) -> Estimate:
        """Return the Kullback-Leibler divergence to another distribution, in nats.

        Infinite if the other distribution excludes an order that this one allows.

        Parameters
        ----------
        other : Distribution
        method : {"auto", "exact", "sample"}
            ``"auto"``: exact if feasible, otherwise Monte Carlo; ``"exact"``: raise
            `NotExactError` if infeasible; ``"sample"``: always Monte Carlo.
        draws : int
            The number of draws of a Monte Carlo estimate.
        rng : int, Generator or None
        """
        choice("method", method, METHODS)
        if isinstance(other, GoodBad) and method != "sample" and self._is_like(other):
            return Estimate(self._divergence(other))
        return super().kl(other, method=method, draws=draws, rng=rng)

    def _is_like(self, other: GoodBad) -> bool:
        """Check whether both are over the same interleavings."""
        mine, theirs = self._arranged, other._arranged
        return (
            self._space == other._space == "interleavings"
            and np.array_equal(mine.totals, theirs.totals)
            and np.array_equal(mine.by_level, theirs.by_level)
        )

    def _divergence(self, other: GoodBad) -> float:
        return self._lattice.divergence(other._lattice)

    @property
    def _can_be_tempered(self) -> bool:
        return self._space == "orders"

    def _refusal(self, what: str) -> str:
        if self._space == "orders" and self.n_items > 8:
            return super()._refusal(what) + ", or use space='interleavings'"
        return super()._refusal(what)

    def _quick(self) -> tuple[int, int]:
        few_classes = self._space == "interleavings" and len(np.unique(self.labels)) <= 2
        return (150 if few_classes else 12), 0

    def __repr__(self) -> str:
        return self._shown(f"space={self._space!r}")

    def _target(self) -> Target:
        scores = self.scores
        normalizer = self.log_partition() if self._is_small else None
        labels, levels, totals = np.unique(self.labels, return_inverse=True, return_counts=True)
        table, offset = np.zeros((len(labels), 1)), 0.0
        if self.tilt is not None and self.kappa != 0.0:
            cells = float(np.prod(totals + 1.0)) * len(labels)
            if cells > MAX_CELLS:
                raise ValueError(
                    f"tilt: its table would have {cells:,.0f} entries, the limit is "
                    f"{MAX_CELLS:,}; merge grades"
                )
            found = level_steps(self.tilt, tuple(labels.tolist()), tuple(totals.tolist()))
            table = -self.kappa * found
            offset = self.kappa * (1.0 - self.tilt.offset(labels, totals))
        constants = Levels(
            offset,
            2.0 * self.scale * (scores - scores.max()),
            levels.astype(np.int64),
            np.concatenate([[1], np.cumprod(totals + 1)[:-1]]).astype(np.int64),
            table,
        )
        return good_bad_target(
            constants,
            self._shape.classes if self.space == "interleavings" else None,
            normalizer=normalizer,
            exact=self._is_small,
            log_weights=self.log_weight,
        )


@lru_cache(maxsize=256)
def _is_defined(measure: Measure, values: tuple[int, ...], totals: tuple[int, ...]) -> bool:
    """Check whether a measure says anything about so many items of each label."""
    return measure.defined(np.repeat(values, totals))


# ---- kernels: geometry as in shape.Shape, level_of (n,), totals (levels,) -----------------------


@kernel
def _losses(
    orders: IntArray,
    level_of: IntArray,
    totals: IntArray,
    ranked: IntArray,
    gaps: FloatArray,
    place: IntArray,
    sorted_only: bool,
) -> FloatArray:
    """Minus twice the sum of gaps times the pairs in the wrong order across them.

    orders (rankings, n); with `sorted_only`, -inf if the items of a level are not by place (n,).
    """
    rankings, n = orders.shape
    out = np.zeros(rankings)
    placed = np.zeros(len(totals), np.int64)
    signed = np.empty(n, np.int64)
    best = np.empty(n, np.int64)
    for k in range(n):
        level = level_of[ranked[k]]
        best[k] = 2 * (k - placed[level])
        placed[level] += 1
    for row in range(rankings):
        placed[:] = 0
        for k in range(n):
            item = orders[row, k]
            level = level_of[item]
            if sorted_only and place[item] != placed[level]:
                out[row] = -np.inf
                break
            signed[item] = 2 * (k - placed[level])
            placed[level] += 1
        if out[row] < 0.0:
            continue
        crossed, value = 0, 0.0
        for k in range(n - 1):
            crossed += best[k] - signed[ranked[k]]
            value += gaps[k] * crossed
        out[row] = value
    return out


@kernel
def _by_scores(
    table: FloatArray,
    sizes: IntArray,
    _strides: IntArray,
    first: IntArray,
    items: IntArray,
    level_of: IntArray,
    totals: IntArray,
) -> FloatArray:
    """Carry derivatives by log-weights, table (states, classes), over to the items, (n,).

    The log-weight of placing an item next is linear in its score: the score times the items with
    another label below it, less those above.
    """
    states, classes = table.shape
    n = len(items)
    result = np.zeros(n)
    counts = np.zeros(classes, np.int64)
    placed = np.zeros(len(totals), np.int64)
    position = 0
    for state in range(states - 1):
        for c in range(classes):
            if counts[c] < sizes[c]:
                item = items[first[c] + counts[c]]
                level = level_of[item]
                signed = (n - totals[level]) - 2 * (position - placed[level])
                result[item] += signed * table[state, c]
        c = 0
        while counts[c] == sizes[c]:
            placed[level_of[items[first[c]]]] -= sizes[c]
            position -= sizes[c]
            counts[c] = 0
            c += 1
        counts[c] += 1
        placed[level_of[items[first[c]]]] += 1
        position += 1
    return result
