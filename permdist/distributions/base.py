"""What every distribution over rankings can do, exactly where that is affordable."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import entr

from permdist._check import as_rng, batch_shape, choice, count
from permdist._interrupts import parts
from permdist._limits import need_memory
from permdist.distributions.estimates import Estimate as Estimate
from permdist.distributions.estimates import mean_of
from permdist.distributions.items import Items
from permdist.measures import AUC, Composite, KendallTau, Measure, parse
from permdist.rankings import check_orders, enumerate_orders, order_to_ranks
from permdist.rankings.orders import FEW_ENTRIES
from permdist.sums.lattice import Lattice
from permdist.sums.lattice import NotExactError as NotExactError
from permdist.sums.shape import Shape, fits
from permdist.targets.function import function_target

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.targets import Target

METHODS = ("auto", "exact", "sample")
DEFAULT_DRAWS = 10_000
MAX_LISTED = 8


class Distribution(Items, ABC):
    """A distribution over the rankings of items ``0, ..., n-1``; immutable.

    A subclass provides `log_prob` and `_sample`; everything else follows, by enumeration or better.
    A model whose log-weight adds up along the ranking provides `_step_weights`, too, and has
    everything exactly up to about 20 items.

    Attributes
    ----------
    n_items : int
    names : tuple of str
        Item names, used in reprs, tables and plots.
    """

    _adds_up: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._adds_up = cls._step_weights is not Distribution._step_weights

    # ---- what a model gives ------------------------------------------------------------------

    @abstractmethod
    def log_prob(self, orders: ArrayLike) -> Any:
        """Return the log-probability of each order, shape (...) for orders (..., n)."""

    @abstractmethod
    def _sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw `size` orders."""

    def _step_weights(self, shape: Shape) -> FloatArray | None:
        """Return the log-weight of each next item in each state; None if there is no such sum."""
        del shape  # for subclasses
        return None

    @property
    def _reference(self) -> float:
        """What `log_weight` is measured from: a constant in it, that may be large."""
        return 0.0

    def _relative_weight(self, orders: ArrayLike) -> Any:
        """Return the log-weight less `_reference`, with all its digits."""
        return getattr(self, "log_weight", self.log_prob)(orders)

    @property
    def _relative_partition(self) -> float:
        """The log-partition function less `_reference`, with all its digits."""
        return self._exact("log_partition").log_partition

    # ---- what follows ------------------------------------------------------------------------

    def sample(
        self, size: int | tuple[int, ...] | None = None, rng: RandomState = None
    ) -> IntArray:
        """Draw orders.

        Parameters
        ----------
        size : int or tuple of int, optional
            The batch shape; a single order without it.
        rng : int, Generator or None

        Returns
        -------
        array of int, shape (..., n)
        """
        shape, generator = batch_shape(size), as_rng(rng)
        number, n = math.prod(shape), self.n_items
        if number * n <= FEW_ENTRIES:
            return self._sample(number, generator).reshape(*shape, n)
        need_memory(f"size: {number:,} orders of {n:,} items", 8.0 * number * n)
        # Blocks draw the same numbers one after the other, and Ctrl-C ends them.
        blocks = list(parts(number, 10.0 * n))
        if len(blocks) == 1:
            return self._sample(number, generator).reshape(*shape, n)
        orders = np.empty((number, n), dtype=np.int64)
        for a, b in blocks:
            orders[a:b] = self._sample(b - a, generator)
        return orders.reshape(*shape, n)

    def log_partition(self) -> float:
        """Return the log-partition function, log Z, of the model's own weights."""
        return self._exact("log_partition").log_partition

    def mode(self) -> IntArray:
        """Find the most probable order."""
        if self._is_listed:
            orders, chances = self._listing
            return orders[chances.argmax()].copy()
        return self._exact("mode").best()

    def rank_marginals(self) -> FloatArray:
        """Return ``M[i, r]``, the probability that item i is at position r."""
        if self._is_listed:
            orders, chances = self._listing
            result = np.zeros((self.n_items, self.n_items))
            np.add.at(result, (orders, np.arange(self.n_items)), chances[:, None])
            return result
        return self._exact("rank_marginals").rank_marginals()

    def pairwise(self) -> FloatArray:
        """Return ``P[i, j]``, the probability that item i is above item j; 0 on the diagonal."""
        if self._is_listed:
            orders, chances = self._listing
            ranks = order_to_ranks(orders)
            return np.einsum("o,oij->ij", chances, ranks[:, :, None] < ranks[:, None, :])
        return self._exact("pairwise").pairwise()

    def top_k(self, k: int) -> FloatArray:
        """Return each item's probability to be among the first k."""
        k = min(count("k", k), self.n_items)
        return self.rank_marginals()[:, :k].sum(axis=1)

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

        Parameters
        ----------
        measure : Measure or str
        labels : array of int, shape (n,)
            Relevance labels of the items.
        method : {"auto", "exact", "sample"}
            ``"auto"``: exact if feasible, otherwise Monte Carlo; ``"exact"``: raise
            `NotExactError` if infeasible; ``"sample"``: always Monte Carlo.
        draws : int
            The number of draws of a Monte Carlo estimate.
        rng : int, Generator or None

        Returns
        -------
        Estimate
            A float with a `standard_error`, 0 where exact.
        """
        chosen, label = parse(measure), self._labels(labels)
        choice("method", method, METHODS)
        if not self._defines(chosen, label):
            return Estimate(chosen(np.arange(self.n_items), label))
        if method != "sample":
            value = self._expect_sum_exactly(chosen, label)
            if value is not None:
                return Estimate(value)
            if method == "exact":
                if not chosen.additive:
                    raise NotExactError(
                        f"expect({chosen.name!r}): no sum along the ranking, exact up to "
                        f"{MAX_LISTED} items, this distribution has {self.n_items}"
                    )
                raise NotExactError(self._refusal(f"expect({chosen.name!r})"))
        return mean_of(chosen(self.sample(count("draws", draws, minimum=2), rng), label))

    def _defines(self, measure: Measure, labels: IntArray) -> bool:
        """Check whether the measure says anything about these labels."""
        return measure.defined(labels)

    def _expect_sum_exactly(self, measure: Measure, labels: IntArray) -> float | None:
        """Add up exact expectations where the measure is a sum of others."""
        if not isinstance(measure, Composite):
            return self._expect_exactly(measure, labels)
        total = 0.0
        for weight, part in zip(measure.weights, measure.parts, strict=True):
            value = self._expect_exactly(part, labels)
            if value is None:
                return None
            total += weight * value
        return total

    def _expect_exactly(self, measure: Measure, labels: IntArray) -> float | None:
        """Return the exact expectation, or None where it is not affordable."""
        form = measure.positional(labels)
        if form is not None and self._has_marginals:
            return form.offset + float(form.gains @ self.rank_marginals() @ form.weights)
        if isinstance(measure, AUC | KendallTau) and self._has_pairwise:
            better = labels[:, None] > labels[None, :]
            share = float(self.pairwise()[better].mean())
            return share if isinstance(measure, AUC) else 2.0 * share - 1.0
        if self._is_small and measure.additive:
            lattice = self._lattice
            totals = np.unique(labels, return_counts=True)
            return measure.offset(*totals) + lattice.expect(lattice.shape.steps_of(measure, labels))
        if self._is_listed or (not measure.additive and self.n_items <= MAX_LISTED):
            orders, chances = self._listing
            return float(chances @ measure(orders, labels))
        return None

    def entropy(
        self, *, method: str = "auto", draws: int = DEFAULT_DRAWS, rng: RandomState = None
    ) -> Estimate:
        """Return the entropy in nats; parameters as in `expect`."""
        choice("method", method, METHODS)
        if method != "sample":
            if self._is_small:
                return Estimate(self._lattice.entropy)
            if self._is_listed:
                chances = self._listing[1]
                return Estimate(float(entr(chances).sum()))
            if method == "exact":
                raise NotExactError(self._refusal("entropy"))
        drawn = self.sample(count("draws", draws, minimum=2), rng)
        return mean_of(-self.log_prob(drawn))

    def kl(
        self,
        other: Distribution,
        *,
        method: str = "auto",
        draws: int = DEFAULT_DRAWS,
        rng: RandomState = None,
    ) -> Estimate:
        """Return the Kullback-Leibler divergence from this distribution to another, in nats.

        Infinite where the other one excludes an order that this one allows. Parameters as in
        `expect`.
        """
        choice("method", method, METHODS)
        if not isinstance(other, Distribution):
            raise TypeError(f"other: expected a Distribution, got {type(other).__name__}")
        if other.n_items != self.n_items:
            raise ValueError(f"other: expected {self.n_items} items, got {other.n_items}")
        if method != "sample":
            if self._is_small and other._is_small:
                mine, theirs = self._lattice, other._lattice
                singles = len(mine.shape.classes) == len(theirs.shape.classes) == self.n_items
                if singles and np.array_equal(mine.shape.items, theirs.shape.items):
                    usable = np.arange(mine.shape.n_states)[:, None] < mine.shape.n_states - 1
                    usable = usable & (mine.shape.counts < mine.shape.sizes)
                    # A step may be possible and its probability too small for a double.
                    everything = np.isfinite(mine.weights[usable]).all()
                    possible = usable if everything else mine.flows > 0
                    if (theirs.weights[possible] == -np.inf).any():
                        return Estimate(np.inf)
                    return Estimate(mine.divergence(theirs))
            if self.n_items <= MAX_LISTED:
                orders = enumerate_orders(self.n_items)
                p = self.listed_log_prob(orders)
                here = p > -np.inf
                q = other.log_prob(orders[here])
                if (q == -np.inf).any():
                    return Estimate(np.inf)
                return Estimate(max(0.0, float(np.exp(p[here]) @ (p[here] - q))))
            if method == "exact":
                raise NotExactError(self._refusal("kl"))
        drawn = self.sample(count("draws", draws, minimum=2), rng)
        return mean_of(self.log_prob(drawn) - other.log_prob(drawn))

    # ---- inside ------------------------------------------------------------------------------

    @cached_property
    def _shape(self) -> Shape:
        """The lattice's states; all orders unless the model says otherwise."""
        return Shape.of_orders(self.n_items)

    @cached_property
    def _lattice(self) -> Lattice:
        """The exact program; only where `_is_small`."""
        weights = self._step_weights(self._shape)
        if weights is None:  # no additive log-weight, so there is no lattice
            raise NotExactError(self._refusal("this"))
        return Lattice(self._shape, weights)

    @property
    def _is_small(self) -> bool:
        """Whether the lattice of this model is affordable, and there is one."""
        return fits(self.n_items) and self._is_additive

    @property
    def _is_additive(self) -> bool:
        """Whether the log-weight adds up along the ranking, so that there is a lattice."""
        return self._adds_up

    @property
    def _is_listed(self) -> bool:
        """Whether to list all orders: there is no lattice, and they are few."""
        return not self._is_small and self.n_items <= MAX_LISTED

    @cached_property
    def _listing(self) -> tuple[IntArray, FloatArray]:
        """All orders and their probabilities."""
        orders = enumerate_orders(self.n_items)
        return orders, np.exp(self.listed_log_prob(orders))

    def listed_log_prob(self, orders: IntArray) -> Any:
        """Return log-probabilities of valid orders; -inf where the chance is 0 in doubles.

        For sums over all orders, in which such orders have no part.

        Parameters
        ----------
        orders : array of int, shape (..., n)
        """
        return self.log_prob(orders)

    @property
    def _has_marginals(self) -> bool:
        return self._is_small

    @property
    def _has_pairwise(self) -> bool:
        return self._is_small

    def _exact(self, what: str) -> Lattice:
        if not self._is_small:
            raise NotExactError(self._refusal(what))
        return self._lattice

    def _refusal(self, what: str) -> str:
        limit = MAX_LISTED
        if self._is_additive:
            limit = next(n for n in range(40, 0, -1) if fits(n))
        remedy = "draw with permdist.samplers.run_chains and average over the draws"
        if what == "log_partition" and self._can_be_tempered:
            remedy = "estimate it with permdist.samplers.estimate_log_partition"
        return f"{what}: exact up to {limit} items, this distribution has {self.n_items}; {remedy}"

    @property
    def _can_be_tempered(self) -> bool:
        """Whether `estimate_log_partition` knows this kind of distribution."""
        return False

    def _check_orders(self, orders: ArrayLike) -> IntArray:
        return check_orders(orders, self.n_items)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_items} items)"

    def _quick(self) -> tuple[int, int]:
        return (12 if self._is_additive else 6), 0

    # ---- Markov chains -----------------------------------------------------------------------

    def _target(self) -> Target:
        """Return what Markov chains need to know; `permdist.targets` explains how to be fast.

        Without a target of its own a distribution is asked for `log_prob` at every step.
        """
        return function_target(
            self.n_items, lambda order: float(self.log_prob(order)), normalizer=0.0
        )
