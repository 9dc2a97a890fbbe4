"""A distribution from functions: log-probabilities or log-weights, draws, or both."""

from __future__ import annotations

import inspect
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.distributions.base import NotExactError
from permdist.distributions.batches import is_batched, one_by_one
from permdist.distributions.custom import WeightedOrders, partition_of
from permdist.rankings import check_orders, enumerate_orders

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.targets import Target

# How far the probabilities of all orders may be from 1 together.
ROUNDING = 1e-6
DRAWS_ALONE = "log_prob: this distribution was made from draws alone"


class FromFunctions(WeightedOrders):
    """What `Distribution.from_functions` returns.

    Parameters
    ----------
    n_items : int
    log_prob, sample : callable, optional
    normalized : bool
    batched : bool, optional
    names : sequence of str, optional
        All as for `Distribution.from_functions`.
    """

    def __init__(
        self,
        n_items: int,
        log_prob: Callable[[IntArray], Any] | None = None,
        sample: Callable[..., Any] | None = None,
        *,
        normalized: bool = True,
        batched: bool | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if log_prob is None and sample is None:
            raise TypeError("pass log_prob, sample, or both")
        for name, given in (("log_prob", log_prob), ("sample", sample)):
            if given is not None and not callable(given):
                raise TypeError(f"{name}: expected a function, got {type(given).__name__}")
        super().__init__(n_items, _nothing if log_prob is None else log_prob, names=names)
        self._given, self._draw, self._is_normalized = log_prob, sample, bool(normalized)
        self._draws_one = sample is not None and _takes_rng_alone(sample)
        self._is_batched = True
        if log_prob is not None:
            self.__dict__["_is_batched"] = (
                is_batched(log_prob, self.n_items, "log_prob") if batched is None else bool(batched)
            )
            if not self._is_batched:
                self.__dict__["_log_weight"] = one_by_one(log_prob)

    @property
    def _has_weights(self) -> bool:
        return self._given is not None

    @property
    def _can_list(self) -> bool:
        return self._has_weights and super()._can_list

    def log_weight(self, orders: ArrayLike) -> Any:
        """Return what the given function says of each order.

        Parameters
        ----------
        orders : array of int, shape (..., n)
        """
        if not self._has_weights:
            raise NotExactError(DRAWS_ALONE)
        return super().log_weight(orders)

    def log_prob(self, orders: ArrayLike) -> Any:
        """Return the log-probability of each order.

        Of log-weights, up to 8 items; beyond, their sum is not known, and `log_weight` has them
        without it.

        Parameters
        ----------
        orders : array of int, shape (..., n)
        """
        return self.log_weight(orders) if self._is_normalized else super().log_prob(orders)

    def log_partition(self) -> float:
        """Return the log of the sum of all weights: 0 if they are probabilities."""
        if self._is_normalized and self._has_weights:
            return 0.0
        return super().log_partition()

    @cached_property
    def _listing(self) -> tuple[IntArray, FloatArray]:
        orders = enumerate_orders(self.n_items)
        logs = self.listed_log_prob(orders)
        chances = np.exp(logs)
        total = float(chances.sum())
        if abs(total - 1.0) > ROUNDING:
            if _like_probabilities(logs):
                raise ValueError(
                    "log_prob: expected log-probabilities, got numbers from 0 to 1 that add up to "
                    f"1 for all {len(orders):,} orders; these look like probabilities: return "
                    "their logarithms"
                )
            raise ValueError(
                f"log_prob: expected probabilities that add up to 1, got {total:.6g} for all "
                f"{len(orders):,} orders; pass normalized=False if these are weights"
            )
        return orders, chances

    @cached_property
    def _listed_partition(self) -> tuple[float, float]:
        if not self._can_list:
            raise NotExactError(self._refusal("log_partition"))
        weights = self.log_weight(enumerate_orders(self.n_items))
        if _like_probabilities(weights):
            warnings.warn(
                "log_prob: expected log-weights, got numbers from 0 to 1 that add up to 1; these "
                "look like probabilities: return their logarithms",
                stacklevel=2,
            )
        return partition_of(weights)

    def _sample(self, size: int, rng: np.random.Generator) -> IntArray:
        if self._draw is None:
            return super()._sample(size, rng)
        if self._draws_one:
            drawn = np.array([self._draw(rng) for _ in range(size)])
            drawn = drawn if size else np.empty((0, self.n_items), dtype=np.int64)
        else:
            drawn = np.asarray(self._draw(size, rng))
        if drawn.shape != (size, self.n_items):
            raise ValueError(
                f"sample: expected orders of shape {(size, self.n_items)}, got {drawn.shape}; "
                "it takes the number of draws and a numpy Generator, or the Generator alone and "
                "returns one order"
            )
        return check_orders(drawn, self.n_items, name="sample")

    def single_log_weight(self) -> tuple[Callable[[IntArray], float], bool]:
        """Return the log-weight as a function of one order, and whether it is compiled."""
        if self._given is not None and not self._is_batched:
            return self._given, hasattr(self._given, "py_func")
        return super().single_log_weight()

    def _target(self) -> Target:
        if not self._has_weights:
            raise NotExactError(
                "run_chains: this distribution was made from draws alone; call its sample"
            )
        return super()._target()

    def _normalizer(self) -> float | None:
        return 0.0 if self._is_normalized else super()._normalizer()

    def _refusal(self, what: str) -> str:
        text = super()._refusal(what)
        if what == "log_partition" and self._has_weights:
            return f"{text.partition(';')[0]}; log_weight has log-weights, which need no sum"
        if self._draw is not None or not self._has_weights:
            return text
        told, _, remedy = text.partition("; ")
        return f"{told}; pass sample= to Distribution.from_functions for estimates, or {remedy}"

    def __repr__(self) -> str:
        given = {"log_prob": self._given, "sample": self._draw}
        shown = [
            f"{name}={getattr(function, '__name__', type(function).__name__)}"
            for name, function in given.items()
            if function is not None
        ]
        shown += [] if self._is_normalized else ["normalized=False"]
        return f"Distribution.from_functions({self.n_items}, {', '.join(shown)})"


def _like_probabilities(values: FloatArray) -> bool:
    """Check whether numbers are probabilities of all orders, rather than logarithms of them.

    Zeros and a one are not: that is a log-weight, too, which favors one order. Nor is a constant.
    """
    inside = bool(((values >= 0.0) & (values <= 1.0)).all() and ((values % 1.0) > 0.0).any())
    return inside and abs(float(values.sum()) - 1.0) <= ROUNDING and bool(np.ptp(values) > ROUNDING)


def _takes_rng_alone(sample: Callable[..., Any]) -> bool:
    """Check whether a function needs exactly one argument."""
    try:
        taken = inspect.signature(sample).parameters.values()
    except (TypeError, ValueError):  # some compiled functions do not say
        return False
    places = [one for one in taken if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return len(places) == 1 and not any(one.kind is one.VAR_POSITIONAL for one in taken)


def _nothing(orders: IntArray) -> FloatArray:
    """Stand for the log-weights of a distribution that has none."""
    del orders
    raise NotExactError(DRAWS_ALONE)
