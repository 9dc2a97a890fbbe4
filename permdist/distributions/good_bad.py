"""The log-linear good-bad pair model over sign vectors, interleavings or orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit

from permdist._check import as_rng, batch_shape, choice, finite, grades, scale_of
from permdist._interrupts import patiently
from permdist._kernels import kernel
from permdist._limits import need_memory
from permdist._offer import offer_strategy
from permdist._typing import FloatArray, IntArray, RandomState
from permdist.distributions.base import (
    DEFAULT_DRAWS,
    METHODS,
    Distribution,
    Estimate,
)
from permdist.distributions.gaps import narrowed
from permdist.distributions.lattice import (
    MAX_CELLS,
    MAX_EXPONENT,
    Lattice,
    Shape,
    fits,
    grade_table,
    interleave,
)
from permdist.distributions.merges import Merges, Slopes, diagonal_steps
from permdist.distributions.pairs import PairSums, pair_sums
from permdist.measures import AUC, KendallTau, Measure, parse
from permdist.rankings import order_by_scores
from permdist.targets import Target
from permdist.targets.good_bad import Levels, good_bad_target

SPACES = ("pairs", "interleavings", "orders")
# A measure is rounded to about 1e-16, and kappa times that is the error of the exponent.
LARGEST_KAPPA = 1e6
LARGEST_EXPONENT = 1e300
# Twice the scaled gap between scores that no interleaving crosses: exp(-100) of them do.
IMPASSABLE = 100.0


class GoodBad(Distribution):
    """The good-bad pair model: ``Pr(y) proportional to exp F(y)``.

    ``F(y) = scale * sum_gb y_gb (s_g - s_b)`` over the pairs of a good and a bad item, with
    ``y_gb = 1`` if the good one is above and -1 if not; with graded labels, over all pairs with
    different labels. `space` says what y runs over.

    Parameters
    ----------
    scores : array of float, shape (n,)
    labels : array of int, shape (n,)
        Grades, at least two different ones.
    space : {"orders", "interleavings", "pairs"}
        All n! orders; the orders that keep each class sorted by score; or all sign vectors y,
        transitive or not, whose draws are sign matrices and no orders.
    scale : float
    tilt : Measure or str, optional
        Adds ``kappa * (1 - measure)`` to the exponent: the loss-augmented distribution.
    kappa : float
        The weight of the tilt.
    names : sequence of str, optional

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
        values, label = finite("scores", scores, ndim=1).copy(), grades("labels", labels).copy()
        super().__init__(len(values), names)
        if label.shape != values.shape:
            raise ValueError(f"labels: expected {len(values)} labels, got shape {label.shape}")
        if not label.size or label.min() == label.max():
            raise ValueError("labels: expected at least two different labels, got one class")
        self._space = choice("space", space, SPACES)
        self._scale, self._kappa = scale_of("scale", scale), float(finite("kappa", kappa, ndim=0))
        self._tilt = None if tilt is None else parse(tilt)
        if self._space == "pairs" and not (self._tilt is None or isinstance(self._tilt, AUC)):
            raise ValueError("tilt: over pairs only AUC factorizes; use space='interleavings'")
        if self._tilt is not None and not abs(self._kappa) <= LARGEST_KAPPA:
            raise ValueError(
                f"kappa: expected at most {LARGEST_KAPPA:.0e}, got {kappa}; beyond, the rounding "
                "of the measure shows in the probabilities"
            )
        with np.errstate(over="ignore"):
            largest = self._scale * (values.max() - values.min()) * len(values) ** 2
        if not largest < LARGEST_EXPONENT:
            raise ValueError(
                f"scores, scale: exponents up to {largest:.1e} leave the range of floating-point "
                f"numbers; the limit is {LARGEST_EXPONENT:.0e}"
            )
        values.flags.writeable = label.flags.writeable = False
        self._scores, self._labels_ = values, label

    @property
    def scores(self) -> FloatArray:
        """The items' scores."""
        return self._scores

    @property
    def labels(self) -> IntArray:
        """The items' labels."""
        return self._labels_

    @property
    def space(self) -> str:
        """What the distribution is over."""
        return self._space

    @property
    def scale(self) -> float:
        """The factor of the score differences."""
        return self._scale

    @property
    def tilt(self) -> Measure | None:
        """The measure whose loss is added to the exponent."""
        return self._tilt

    @property
    def kappa(self) -> float:
        """The weight of the tilt."""
        return self._kappa

    # ---- over orders and interleavings -------------------------------------------------------

    def log_weight(self, orders: ArrayLike) -> Any:
        """Return the exponent of each order, shape (...): F and the tilt, not normalized."""
        self._need_orders("log_weight")
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
            result = result + self._kappa * (1.0 - self._tilt(order, self._labels_))
        return result[()]

    @cached_property
    def _ranked(self) -> IntArray:
        """The items by score, from the top down."""
        return order_by_scores(self._scores)

    @cached_property
    def _gaps(self) -> FloatArray:
        """The scaled differences between neighboring scores, from the top down."""
        return -self._scale * np.diff(self._scores[self._ranked])

    @cached_property
    def _place(self) -> IntArray:
        """Each item's place among those with its label, by score."""
        place = np.empty(self.n_items, dtype=np.int64)
        for members in self._ranked_classes():
            place[members] = np.arange(len(members))
        return place

    def _ranked_classes(self) -> list[IntArray]:
        """Return the items of each label by score, the lowest label first."""
        label = self._labels_[self._ranked]
        return [self._ranked[label == level] for level in self._kinds[0]]

    @cached_property
    def _reference(self) -> float:
        """F of the order of the scores: the sum of all differences between labels."""
        return float(_signed_gaps(self._ranked, *self._levels, self._gaps))

    def log_prob(self, orders: ArrayLike) -> Any:
        """Return the log-probability of each order, or of each sign matrix over pairs."""
        if self._space == "pairs":
            return self._signs_log_prob(orders)
        return self._relative_weight(orders) - self._relative_partition

    def log_partition(self) -> float:
        """Return ``log sum_y exp F(y)``, with the tilt if there is one."""
        if self._space == "pairs":
            return self._sums.log_partition
        return self._reference + self._relative_partition

    @property
    def _relative_partition(self) -> float:
        """The log-partition function less F of the order of the scores."""
        if self._merges is not None:
            return self._merges.log_sum + self._constant
        return self._exact("log_partition").log_partition + self._constant

    def log_partition_gradient(self) -> FloatArray:
        """Differentiate `log_partition` by the scores, shape (n,)."""
        if self._space == "pairs":
            return self._sums.gradient.copy()
        if self._merges is not None:
            result = self._scatter(self._merges.gradient())
            result[self._goods] += self._scale * len(self._bads)
            result[self._bads] -= self._scale * len(self._goods)
            return result
        return self._by_scores(self._exact("log_partition_gradient").flows)

    def expect_gradient(
        self, measure: str | Measure, labels: ArrayLike | None = None
    ) -> FloatArray:
        """Differentiate `expect` by the scores, shape (n,)."""
        chosen, label = parse(measure), self._labels(labels)
        if not chosen.defined(label):
            return np.zeros(self.n_items)
        if self._space == "pairs":
            factor = self._need_pair_measure(chosen, label)
            return factor * self._sums.satisfied_gradient / self._n_pairs
        if self._merges is not None and np.array_equal(label, self._labels_):
            return self._scatter(self._merges.expect_gradient(self._merge_steps(chosen)))
        lattice = self._exact("expect_gradient")
        steps = lattice.shape.steps_of(chosen, label)
        return self._by_scores(lattice.expect_gradient(steps))

    def mode(self) -> IntArray:
        """Find the most probable order: that of the scores, unless a tilt moves it."""
        self._need_orders("mode")
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
        return interleave(self._ranked_classes())

    @cached_property
    def _merges(self) -> Merges | None:
        """The faster program for interleavings of two classes."""
        if self._space != "interleavings" or not self._is_binary:
            return None
        bads, goods = (0.5 * self._narrowed[members] for members in self._shape.classes)
        steps = None if self._tilt is None else self._merge_steps(self._tilt)
        return Merges(goods, bads, steps, weight=-self._kappa)

    def _merge_steps(self, measure: Measure) -> FloatArray:
        (low, high), (m, p) = self._kinds
        return diagonal_steps(measure, (int(low), int(high)), (int(m), int(p)))

    def _scatter(self, slopes: Slopes) -> FloatArray:
        """Put derivatives by the sorted, scaled scores where the items are."""
        result = np.empty(self.n_items)
        bads, goods = self._shape.classes
        result[bads], result[goods] = slopes.bads, slopes.goods
        result *= self._scale
        return result

    def _expect_exactly(self, measure: Measure, labels: IntArray) -> float | None:
        if self._merges is not None and np.array_equal(labels, self._labels_):
            return measure.offset(*self._kinds) + self._merges.expect(self._merge_steps(measure))
        return super()._expect_exactly(measure, labels)

    @property
    def _is_small(self) -> bool:
        return self._space == "interleavings" or (self._space == "orders" and fits(self.n_items))

    @property
    def _is_listed(self) -> bool:
        return False  # few orders have a lattice, and sign vectors are no orders

    @cached_property
    def _constant(self) -> float:
        """What the tilt adds whatever the order."""
        if self._tilt is None:
            return 0.0
        return self._kappa * (1.0 - self._tilt.offset(*self._kinds))

    def _step_weights(self, shape: Shape) -> FloatArray:
        weights = shape.sum_losses(self._scores, self._labels_, 2.0 * self._scale)
        if self._tilt is not None and self._kappa != 0.0:
            weights -= self._kappa * shape.steps_of(self._tilt, self._labels_)
        return weights

    @cached_property
    def _narrowed(self) -> FloatArray:
        """Scores times twice the scale, without what makes no difference between orders.

        A gap that outweighs the number of orders and the whole range of the tilt separates the
        items above it from those below, however wide it is.
        """
        reach = 0.0 if self._tilt is None else abs(self._kappa) * float(np.ptp(self._tilt.range))
        return narrowed(self._scores, 0.5 / self._scale, IMPASSABLE + reach)

    @cached_property
    def _kinds(self) -> tuple[IntArray, IntArray]:
        """The different labels, ascending, and how many items each has."""
        return np.unique(self._labels_, return_counts=True)

    @cached_property
    def _levels(self) -> tuple[IntArray, IntArray]:
        """The level of each item, and how many items each level has."""
        grades, totals = self._kinds
        return np.searchsorted(grades, self._labels_), totals

    def _by_scores(self, by_weights: FloatArray) -> FloatArray:
        """Carry derivatives by log-weights over to the scores."""
        inputs = by_weights, *self._shape.geometry, *self._levels
        return self._scale * patiently(4.0 * by_weights.size, _by_scores, *inputs)

    # ---- over sign vectors -------------------------------------------------------------------

    @cached_property
    def _sums(self) -> PairSums:
        tilt = 0.0 if self._tilt is None else self._kappa / self._n_pairs
        scores = 0.5 * self._narrowed
        sums = pair_sums(scores, self._labels_, 1.0, tilt)
        # Beyond the gaps that were narrowed every term is linear in its difference.
        shift = self._reference
        shift -= _signed_gaps(self._ranked, *self._levels, -np.diff(scores[self._ranked]))
        return PairSums(
            sums.log_partition + shift,
            sums.satisfied,
            self._scale * sums.gradient,
            self._scale * sums.satisfied_gradient,
        )

    @cached_property
    def _n_pairs(self) -> int:
        totals = self._kinds[1]
        return int((totals.sum() ** 2 - (totals**2).sum()) // 2)

    def pair_probabilities(self) -> FloatArray:
        """Give the probability that each pair is in the right order, over pairs.

        Returns
        -------
        array of float, shape (p, m), or (n, n)
            For binary labels, goods by bads, both by item number. For graded labels entry
            [i, j] is the probability that i is above j; 1/2 where the labels are equal.
        """
        if self._space != "pairs":
            raise TypeError("pair_probabilities: for space='pairs'; orders have pairwise()")
        return expit(self._log_odds())

    @property
    def _is_binary(self) -> bool:
        return len(self._kinds[0]) == 2

    @cached_property
    def _goods(self) -> IntArray:
        return np.flatnonzero(self._labels_ == self._labels_.max())

    @cached_property
    def _bads(self) -> IntArray:
        return np.flatnonzero(self._labels_ == self._labels_.min())

    def sample(self, size: int | tuple[int, ...] | None = None, rng: RandomState = None) -> Any:
        """Draw orders; over pairs, draw sign matrices.

        Over pairs a draw is a matrix of +1 (the good item is above) and -1, goods by bads; for
        graded labels an antisymmetric (n, n) matrix with 0 where labels are equal. It need not
        be the sign matrix of any order.
        """
        if self._space != "pairs":
            return super().sample(size, rng)
        shape, chance = batch_shape(size), self.pair_probabilities()
        need_memory(f"size: {shape} sign matrices", 12.0 * math.prod(shape) * chance.size)
        drawn = as_rng(rng).random((math.prod(shape), *chance.shape)) < chance
        signs = np.where(drawn, 1, -1).astype(np.int8)
        if not self._is_binary:
            upper = np.triu(np.ones(chance.shape, dtype=bool), 1)
            signs = np.where(upper, signs, 0).astype(np.int8)
            signs -= signs.transpose(0, 2, 1)
            signs *= (self._labels_[:, None] != self._labels_[None, :]).astype(np.int8)
        return signs.reshape(*shape, *chance.shape)

    def _signs_log_prob(self, signs: ArrayLike) -> Any:
        array, chance = np.asarray(signs), self.pair_probabilities()
        if array.shape[-2:] != chance.shape:
            raise ValueError(
                f"signs: expected sign matrices of shape (..., {chance.shape[0]}, "
                f"{chance.shape[1]}), got {array.shape}; over pairs a draw is no order"
            )
        counted = np.ones(chance.shape, dtype=bool)
        if not self._is_binary:
            counted = np.triu(self._labels_[:, None] != self._labels_[None, :])
        if not np.isin(array[..., counted], (-1, 1)).all():
            raise ValueError("signs: expected entries +1 and -1")
        if not self._is_binary and (array != -np.swapaxes(array, -1, -2)).any():
            raise ValueError("signs: expected antisymmetric matrices for graded labels")
        odds = self._log_odds()[counted]
        return log_expit(np.where(array[..., counted] > 0, odds, -odds)).sum(axis=-1)[()]

    def _log_odds(self) -> FloatArray:
        """Give the log-odds of each pair, in the shape of `pair_probabilities`."""
        tilt = 0.0 if self._tilt is None else self._kappa / self._n_pairs
        gap = 2.0 * self._scale * (self._scores[:, None] - self._scores[None, :])
        sign = np.sign(self._labels_[:, None] - self._labels_[None, :])
        odds = np.where(sign == 0, 0.0, gap - tilt * sign)
        return odds[np.ix_(self._goods, self._bads)] if self._is_binary else odds

    def expect(
        self,
        measure: str | Measure,
        labels: ArrayLike | None = None,
        *,
        method: str = "auto",
        draws: int = DEFAULT_DRAWS,
        rng: RandomState = None,
    ) -> Estimate:
        """Give the expected value of a measure, for the model's own labels by default.

        Over pairs there are AUC and Kendall's tau only, in closed form. Parameters as for any
        distribution.
        """
        if self._space == "pairs":
            chosen, label = parse(measure), self._labels(labels)
            choice("method", method, METHODS)
            factor = self._need_pair_measure(chosen, label)
            return Estimate(factor * self._sums.satisfied / self._n_pairs - (factor - 1.0))
        return super().expect(measure, self._labels(labels), method=method, draws=draws, rng=rng)

    def entropy(
        self, *, method: str = "auto", draws: int = DEFAULT_DRAWS, rng: RandomState = None
    ) -> Estimate:
        """Give the entropy in nats."""
        if self._space != "pairs":
            return super().entropy(method=method, draws=draws, rng=rng)
        choice("method", method, METHODS)
        odds = self._log_odds()
        if not self._is_binary:
            odds = odds[np.triu(self._labels_[:, None] != self._labels_[None, :])]
        parts = expit(odds) * log_expit(odds) + expit(-odds) * log_expit(-odds)
        return Estimate(-float(parts.sum()))

    def _labels(self, labels: ArrayLike | None) -> IntArray:
        return self._labels_ if labels is None else super()._labels(labels)

    def _exact(self, what: str) -> Lattice:
        self._need_orders(what)
        return super()._exact(what)

    def _need_orders(self, what: str) -> None:
        if self._space == "pairs":
            raise TypeError(
                f"{what}: over pairs a draw is a sign matrix, not an order; "
                "use space='interleavings' or 'orders'"
            )

    def _need_pair_measure(self, measure: Measure, labels: IntArray) -> float:
        if not isinstance(measure, AUC | KendallTau) or (labels != self._labels_).any():
            raise TypeError(
                f"expect: over pairs there are only AUC and tau, for the model's own labels, "
                f"asked was {measure.name!r}; use space='interleavings' or 'orders'"
            )
        return 1.0 if isinstance(measure, AUC) else 2.0

    def kl(
        self,
        other: Distribution,
        *,
        method: str = "auto",
        draws: int = DEFAULT_DRAWS,
        rng: RandomState = None,
    ) -> Estimate:
        """Give the Kullback-Leibler divergence to another distribution over orders."""
        self._need_orders("kl")
        choice("method", method, METHODS)
        if isinstance(other, GoodBad) and method != "sample":
            other._need_orders("kl")
            same = self._space == other._space == "interleavings" and all(
                np.array_equal(a, b)
                for a, b in zip(self._shape.classes, other._shape.classes, strict=False)
            )
            if same and len(self._shape.classes) == len(other._shape.classes):
                return Estimate(self._lattice.divergence(other._lattice))
        return super().kl(other, method=method, draws=draws, rng=rng)

    def _refusal(self, what: str) -> str:
        if self._space == "orders" and self.n_items > 8:
            return super()._refusal(what) + ", or use space='interleavings'"
        return super()._refusal(what)

    def __repr__(self) -> str:
        shown = np.array2string(self._scores, precision=4, threshold=8, separator=", ")
        labels = np.array2string(self._labels_, threshold=8, separator=", ")
        parts = [shown, labels, f"space={self._space!r}"]
        parts += [f"scale={self._scale:g}"] if self._scale != 1.0 else []
        parts += [f"tilt={self._tilt.name!r}, kappa={self._kappa:g}"] if self._tilt else []
        return f"GoodBad({', '.join(parts)})"

    def _target(self) -> Target:
        self._need_orders("run_chains")
        scores, shift, normalizer = self.scores, 0.0, None
        wide = abs(self._reference) > MAX_EXPONENT
        if wide:  # the same probabilities, with scores as close together as these allow
            scores = self._narrowed * (0.5 / self.scale)
            shift = GoodBad(scores, self.labels, scale=self.scale)._reference
        if self._is_small:
            normalizer = self._relative_partition if wide else self.log_partition()
        labels, levels, totals = np.unique(self.labels, return_inverse=True, return_counts=True)
        table, offset = np.zeros((len(labels), 1)), 0.0
        if self.tilt is not None and self.kappa != 0.0:
            cells = float(np.prod(totals + 1.0)) * len(labels)
            if cells > MAX_CELLS:
                raise ValueError(
                    f"tilt: its table would have {cells:,.0f} entries, the limit is "
                    f"{MAX_CELLS:,}; merge grades"
                )
            found = grade_table(self.tilt, tuple(labels.tolist()), tuple(totals.tolist()))
            table = -self.kappa * found
            offset = self.kappa * (1.0 - self.tilt.offset(labels, totals))
        constants = Levels(
            offset - shift,
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
            log_weights=self._relative_weight if wide else self.log_weight,
        )


# ---- kernels: geometry as in lattice.Shape, level_of (n,), totals (levels,) ---------------------


@kernel
def _signed_gaps(ranked: IntArray, level_of: IntArray, totals: IntArray, gaps: FloatArray) -> float:
    """Sum gaps (n - 1,) times the pairs of different levels across them; ranked (n,) by score."""
    n = len(ranked)
    placed = np.zeros(len(totals), np.int64)
    crossing, value = 0, 0.0
    for k in range(n - 1):
        level = level_of[ranked[k]]
        crossing += (n - totals[level]) - 2 * (k - placed[level])
        placed[level] += 1
        value += gaps[k] * crossing
    return value


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
    strides: IntArray,
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


offer_strategy(GoodBad, "good_bads")
