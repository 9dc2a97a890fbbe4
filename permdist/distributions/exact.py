"""What a distribution knows exactly, from a list of all orders or a lattice of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist.distributions.batches import log_probs
from permdist.distributions.items import Items
from permdist.measures import AUC, Composite, KendallTau
from permdist.rankings import enumerate_orders, order_to_ranks
from permdist.sums.lattice import Lattice, NotExactError
from permdist.sums.shape import Shape, fits

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Measure

MAX_LISTED = 8


class ExactAnswers(Items, ABC):
    """The exact answers of `Distribution`; NotExactError where there are too many items.

    A model that knows a better way overrides `_mode`, `_rank_marginals`, `_pairwise` or `_top_k`.
    """

    _adds_up: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._adds_up = cls._step_weights is not ExactAnswers._step_weights

    # ---- what a model gives ------------------------------------------------------------------

    @abstractmethod
    def log_prob(self, orders: ArrayLike) -> Any:
        """Return the log-probability of each order, shape (...) for orders (..., n)."""

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

    # ---- answers -----------------------------------------------------------------------------

    def _mode(self) -> IntArray:
        """Find the most probable order."""
        if self._is_listed:
            orders, chances = self._listing
            return orders[chances.argmax()].copy()
        return self._exact("mode").best()

    def _rank_marginals(self) -> FloatArray:
        """Return ``M[i, r]``, the probability that item i is at position r."""
        if self._is_listed:
            orders, chances = self._listing
            result = np.zeros((self.n_items, self.n_items))
            np.add.at(result, (orders, np.arange(self.n_items)), chances[:, None])
            return result
        return self._exact("rank_marginals").rank_marginals()

    def _pairwise(self) -> FloatArray:
        """Return ``P[i, j]``, the probability that item i is above item j; 0 on the diagonal."""
        if self._is_listed:
            orders, chances = self._listing
            ranks = order_to_ranks(orders)
            return np.einsum("o,oij->ij", chances, ranks[:, :, None] < ranks[:, None, :])
        return self._exact("pairwise").pairwise()

    def _top_k(self, k: int) -> FloatArray:
        """Return each item's probability to be among the first k."""
        return self._rank_marginals()[:, :k].sum(axis=1)

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
            return form.offset + float(form.gains @ self._rank_marginals() @ form.weights)
        if isinstance(measure, AUC | KendallTau) and self._has_pairwise:
            better = labels[:, None] > labels[None, :]
            share = float(self._pairwise()[better].mean())
            return share if isinstance(measure, AUC) else 2.0 * share - 1.0
        if self._is_small and measure.additive:
            lattice = self._lattice
            totals = np.unique(labels, return_counts=True)
            return measure.offset(*totals) + lattice.expect(lattice.shape.steps_of(measure, labels))
        if self._is_listed or (not measure.additive and self._can_list):
            orders, chances = self._listing
            return float(chances @ measure(orders, labels))
        return None

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
        return not self._is_small and self._can_list

    @property
    def _can_list(self) -> bool:
        """Whether all orders can be listed with their probabilities."""
        return self.n_items <= MAX_LISTED

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
        return log_probs(self.log_prob, orders)

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
