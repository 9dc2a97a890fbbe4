"""A distribution of one's own: give a log-weight, get the rest."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from scipy.special import logsumexp

from permdist._check import check_scores, count, finite
from permdist._kernels import kernel
from permdist.distributions.base import Distribution, NotExactError
from permdist.distributions.batches import log_probs
from permdist.rankings import enumerate_orders
from permdist.sums.lattice import check_digits
from permdist.targets.function import function_target
from permdist.targets.pairs import pairs_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.sums.shape import Shape
    from permdist.targets import Target


class WeightedOrders(Distribution):
    """A distribution over orders that is given by its log-weight.

    Parameters
    ----------
    n_items : int
    log_weight : callable, optional
        Takes orders of shape (batch, n), returns log-weights of shape (batch,). All orders are
        listed, which is affordable up to 8 items.
    step : callable, optional
        For a log-weight that adds up along the ranking: takes an item and which items are above
        it, an array of bool of shape (batch, n), and returns what placing the item next adds,
        shape (batch,). Everything is then exact up to 21 items. One of the two must be given.
    swap : callable, optional
        For Markov chains: takes one order, shape (n,), and a position k, and returns how the
        log-weight changes when positions k and k + 1 are swapped. Chains are fast if it and
        `log_weight` are compiled with numba; without it they compute `log_weight` anew at every
        step, fast if that is compiled, slowly if it is plain Python.
    names : sequence of str, optional

    Examples
    --------
    Mallows' model with the Kendall distance to the order 0, 1, 2: placing an item next costs one
    for each smaller item that is not above it.

    >>> def step(item, above):
    ...     return -0.7 * (item - above[:, :item].sum(axis=1))
    >>> mallows = WeightedOrders(3, step=step)
    >>> mallows.mode()
    array([0, 1, 2])
    >>> round(float(mallows.pairwise()[0, 2]), 4)  # 0 above 2
    0.764
    """

    def __init__(
        self,
        n_items: int,
        log_weight: Callable[[IntArray], ArrayLike] | None = None,
        *,
        step: Callable[[int, BoolArray], ArrayLike] | None = None,
        swap: Callable[[IntArray, int], float] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(count("n_items", n_items), names)
        if (log_weight is None) == (step is None):
            raise TypeError("pass exactly one of log_weight and step")
        self._log_weight, self._step, self._swap = log_weight, step, swap
        self._pair_weights: FloatArray | None = None

    @classmethod
    def from_pairs(cls, weights: ArrayLike, names: Sequence[str] | None = None) -> WeightedOrders:
        """Make the distribution whose log-weight adds up over all pairs of items.

        Mallows' model with Kendall's distance, the all-pairs energies of BoltzRank and the
        good-bad pair model are of this kind.

        Parameters
        ----------
        weights : array of float, shape (n, n)
            Entry ``[i, j]`` is added if i is above j; the diagonal does not count.
        names : sequence of str, optional

        Examples
        --------
        Mallows' model again: each pair in the wrong order costs 0.7.

        >>> mallows = WeightedOrders.from_pairs(-0.7 * np.tri(3, k=-1))
        >>> round(float(mallows.pairwise()[0, 2]), 4)
        0.764
        """
        matrix = finite("weights", weights, ndim=2).copy()
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"weights: expected a square matrix, got shape {matrix.shape}")
        np.fill_diagonal(matrix, 0.0)
        check_scores(matrix, name="weights")
        matrix.flags.writeable = False

        def step(item: int, above: BoolArray) -> FloatArray:
            return (~above).astype(float) @ matrix[item]

        made = cls(len(matrix), step=step, names=names)
        made.__dict__["_pair_weights"] = matrix
        return made

    @cached_property
    def _pair_losses(self) -> FloatArray | None:
        """The weights of pairs less those of the better order of each pair, so never above 0."""
        if self._pair_weights is None:
            return None
        return np.minimum(self._pair_weights - self._pair_weights.T, 0.0)

    @cached_property
    def _reference(self) -> float:
        """The sum of the weights of the better order of each pair; 0 without pairs."""
        weights = self._pair_weights
        return 0.0 if weights is None else float(np.triu(np.maximum(weights, weights.T), 1).sum())

    @property
    def pair_weights(self) -> FloatArray | None:
        """The weights of pairs, where the distribution was made from them."""
        return self._pair_weights

    @property
    def swap_change(self) -> Callable[[IntArray, int], float] | None:
        """The function that tells what a swap of neighbors changes, if one was given."""
        return self._swap

    def single_log_weight(self) -> tuple[Callable[[IntArray], float], bool]:
        """Return the log-weight as a function of one order, and whether it is compiled.

        It is compiled if `log_weight` is, and `swap` where it is given.
        """
        function = self._log_weight
        compiled = hasattr(function, "py_func") and (
            self._swap is None or hasattr(self._swap, "py_func")
        )
        if compiled:
            return _single(function), True
        return self._single_log_weight, False

    def _single_log_weight(self, order: IntArray) -> float:
        """Return the log-weight of one order, in plain Python."""
        if self._step is None:
            return float(self.log_weight(order))
        above, total = np.zeros((1, self.n_items), dtype=bool), 0.0
        for item in order.tolist():
            total += float(self._steps(item, above)[0])
            above[0, item] = True
        return total

    def log_weight(self, orders: ArrayLike) -> Any:
        """Return the log-weight of each order, not normalized."""
        order = self._check_orders(orders)
        flat = order.reshape(-1, self.n_items)
        if self._log_weight is not None:
            values = log_probs(self._log_weight, flat.copy(), "log_weight")
            values = self._numbers(values, len(flat), "log_weight")
        else:
            values = np.zeros(len(flat))
            above = np.zeros(flat.shape, dtype=bool)
            rows = np.arange(len(flat))
            for position in range(self.n_items):
                for item in np.unique(flat[:, position]):
                    here = np.flatnonzero(flat[:, position] == item)
                    values[here] += self._steps(int(item), above[here])
                above[rows, flat[:, position]] = True
        return values.reshape(order.shape[:-1])[()]

    def log_prob(self, orders: ArrayLike) -> Any:
        """Return the log-probability of each order."""
        weights = self._relative_weight(orders)
        if self._is_small:
            total = self._lattice.log_partition
            check_digits(abs(total))
            return weights - total
        best, total = self._listed_partition
        return (weights - best) - total

    def _relative_weight(self, orders: ArrayLike) -> Any:
        if self._pair_losses is None:
            return self.log_weight(orders)
        order = self._check_orders(orders)
        losses = _sum_losses(order.reshape(-1, self.n_items), self._pair_losses)
        return losses.reshape(order.shape[:-1])[()]

    def log_partition(self) -> float:
        """Return the log of the sum of all weights."""
        if self._is_small:
            return self._lattice.log_partition + self._reference
        return float(sum(self._listed_partition))

    @cached_property
    def _listed_partition(self) -> tuple[float, float]:
        """The largest log-weight, and the log of the sum of all weights relative to it."""
        if not self._can_list:
            raise NotExactError(self._refusal("log_partition"))
        return partition_of(self.log_weight(enumerate_orders(self.n_items)))

    @property
    def _is_additive(self) -> bool:
        return self._step is not None

    @property
    def _can_be_tempered(self) -> bool:
        return self._pair_weights is not None

    def _sample(self, size: int, rng: np.random.Generator) -> IntArray:
        if self._is_small:
            return self._lattice.sample(size, rng)
        if not self._can_list:
            raise NotExactError(self._refusal("sample"))
        orders, chances = self._listing
        return orders[rng.choice(len(orders), size=size, p=chances / chances.sum())]

    def _step_weights(self, shape: Shape) -> FloatArray | None:
        if self._pair_losses is not None:
            return shape.sum_pairs(self._pair_losses)
        above = np.zeros((shape.n_states, self.n_items), dtype=bool)
        above[:, shape.items] = shape.counts > 0
        weights = np.full((shape.n_states, len(shape.classes)), -np.inf)
        for number, members in enumerate(shape.classes):
            item = int(members[0])
            possible = np.flatnonzero(~above[:, item])
            weights[possible, number] = self._steps(item, above[possible])
        return weights

    def _steps(self, item: int, above: BoolArray) -> FloatArray:
        if self._step is None:
            raise NotExactError("step: this distribution was given without one")
        return self._numbers(self._step(item, above), len(above), "step")

    @staticmethod
    def _numbers(values: ArrayLike, length: int, name: str) -> FloatArray:
        array = np.asarray(values, dtype=np.float64)
        if array.shape != (length,):
            raise ValueError(f"{name}: expected {length} log-weights, got shape {array.shape}")
        if np.isnan(array).any() or (array == np.inf).any():
            raise ValueError(f"{name}: expected log-weights that are finite or -inf")
        return array

    def _normalizer(self) -> float | None:
        """Return the log of the sum of all weights where it is known."""
        return self.log_partition() if self._is_small or self._is_listed else None

    def __repr__(self) -> str:
        if self._pair_weights is not None:
            return f"WeightedOrders.from_pairs({self.n_items} items)"
        given = "log_weight" if self._log_weight is not None else "step"
        function = self._log_weight or self._step
        return f"WeightedOrders({self.n_items}, {given}={getattr(function, '__name__', function)})"

    def _target(self) -> Target:
        exact, normalizer = self._is_small or self._is_listed, self._normalizer()
        if self._pair_weights is None:
            function = self.single_log_weight()[0]
            options = {"normalizer": normalizer, "exact": exact, "log_weights": self.log_weight}
            return function_target(self.n_items, function, self._swap, **options)
        return pairs_target(
            self._pair_weights,
            normalizer=normalizer,
            exact=exact,
            log_weights=self.log_weight,
        )


def partition_of(weights: FloatArray) -> tuple[float, float]:
    """Return the largest log-weight, and the log of the sum of all weights relative to it.

    Parameters
    ----------
    weights : array of float, shape (orders,)
        The log-weights of all orders.
    """
    best = float(weights.max())
    if not np.isfinite(best):
        raise ValueError("log_weight: no order has a positive weight")
    return best, float(logsumexp(weights - best))


@kernel
def _sum_losses(orders: IntArray, losses: FloatArray) -> FloatArray:
    """Sum losses (n, n) over all pairs of each order, orders (rankings, n)."""
    rankings, n = orders.shape
    out = np.zeros(rankings)
    for row in range(rankings):
        for k in range(n):
            for later in range(k + 1, n):
                out[row] += losses[orders[row, k], orders[row, later]]
    return out


@lru_cache(maxsize=16)
def _single(function: Any) -> Callable[[IntArray], float]:
    """Compile a function of one order around one of many."""

    @numba.njit(nogil=True)
    def single(order: IntArray) -> float:
        return function(order.copy().reshape(1, -1))[0]

    return single
