"""The target of a Markov chain, the state of a chain, and the functions that kernels call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from permdist._kernels import kernel
from permdist.rankings import random_orders

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import AnyIntArray, FloatArray, IntArray

STARTS = 100  # random orders to try before giving up

compiled = kernel(inline=True)
"""Compile a function of a target or a kernel; the result is cached on disk.

The function is inlined and does not count references: it must not create arrays or slices. Use
`numba.njit` for functions that do.
"""


class State(NamedTuple):
    """What a chain carries from step to step.

    Attributes
    ----------
    order : array of int, shape (n,)
    value : array of float, shape (1,)
        The log-weight of the order.
    integers, floats : arrays
        For the target, of the lengths that it asks for. `restore` must compute the integers from
        the order alone, and `swap` must keep them equal to that.
    weights, shares : arrays of float, shape (n,)
        Scratch space for kernels.
    """

    order: IntArray
    value: FloatArray
    integers: IntArray
    floats: FloatArray
    weights: FloatArray
    shares: FloatArray


def ask_distribution(orders: Any) -> Any:
    """Stand for the log-weights of a distribution, which `target_of` fills in."""
    raise NotImplementedError(f"log_weights: not known for {np.shape(orders)} without target_of")


class SupportsTarget(Protocol):
    """A distribution, as far as targets need to know it."""

    @property
    def n_items(self) -> int:
        """The number of items."""

    def log_prob(self, orders: Any) -> Any:
        """Return the log-probability of each order."""

    def _target(self) -> Target: ...


@dataclass(frozen=True, eq=False)
class Target:
    """A distribution as Markov chains see it.

    The functions take the target's constants, the `State` of a chain, and where two neighbors
    change places, the position ``k`` of the upper one. If all three are compiled, with `compiled`
    or with `numba.njit`, then a step takes nanoseconds; otherwise the interpreter runs the chain.
    Define them at the top level of a module: code that is compiled for a function is found again
    by that function.

    Parameters
    ----------
    n_items : int
    peek : callable
        ``peek(constants, state, k)`` returns the log-weight after a swap of positions k and k + 1.
    restore : callable
        ``restore(constants, state)`` computes ``state.value[0]``, `integers` and `floats` from
        ``state.order``. It runs every few hundred draws, so that rounding errors do not add up.
    swap : callable
        ``swap(constants, state, k, value)`` swaps positions k and k + 1 and sets the log-weight to
        `value`. The default, `exchange`, is right for targets without `integers` and `floats`.
    constants : tuple
        Numbers and arrays, best as a NamedTuple; arrays are copied.
    integers, floats : int
        The lengths of the arrays in the state that belong to the target.
    normalizer : float, optional
        The log of the sum of all weights, where it is known.
    exact : bool
        Whether the distribution's `sample` can draw independently.
    has_levels : bool
        Whether the constants have `levels`, an array with the class of each item, and items of
        equal level can change places without changing the log-weight.
    has_pair_scores : bool
        Whether the constants are `permdist.targets.good_bad.Levels` and the functions those of the
        good-bad pair model over orders, with ``floats = 3 * n_items`` as scratch space for kernels.
    start : callable, optional
        Draws an order of positive weight to start from, given a generator. By default random
        orders are tried.
    log_weights : callable, optional
        The log-weights of orders of shape (batch, n), on the same scale as `restore`; by default
        the distribution's `log_weight`, or `log_prob` if it has none.
    costs : tuple of float
        Approximate nanoseconds of one `peek` and one `swap`, by which ``kernel="auto"`` compares
        kernels.
    temper : callable, optional
        ``temper(share)`` returns the constants with which all log-weights are `share` times what
        they are, for a number between 0 and 1: `estimate_log_partition` needs it. All orders must
        have a positive weight.

    Examples
    --------
    The distribution with log-weight ``-theta * sum_i |rank_i - i|``:

    >>> @compiled
    ... def peek(constants, state, k):
    ...     a, b = state.order[k], state.order[k + 1]
    ...     change = abs(a - k) + abs(b - k - 1) - abs(b - k) - abs(a - k - 1)
    ...     return state.value[0] + constants[0] * change
    >>> @compiled
    ... def restore(constants, state):
    ...     state.value[0] = 0.0
    ...     for k in range(len(state.order)):
    ...         state.value[0] -= constants[0] * abs(state.order[k] - k)
    >>> target = Target(3, peek, restore, constants=(0.5,))
    >>> state = target.state_at([2, 0, 1])
    >>> restore(target.constants, state)
    >>> float(state.value[0]), peek(target.constants, state, 0)
    (-2.0, -1.0)
    """

    n_items: int
    peek: Callable[..., float]
    restore: Callable[..., None]
    swap: Callable[..., None] | None = None
    constants: tuple[Any, ...] = ()
    integers: int = 0
    floats: int = 0
    normalizer: float | None = None
    exact: bool = True
    has_levels: bool = False
    has_pair_scores: bool = False
    start: Callable[[np.random.Generator], IntArray] | None = None
    log_weights: Callable[[Any], Any] = ask_distribution
    costs: tuple[float, float] = (3.0, 3.0)
    temper: Callable[[float], tuple[Any, ...]] | None = None

    def __post_init__(self) -> None:
        # Compiled code depends on whether an array is writable and contiguous: make all alike.
        parts = [
            np.array(part) if isinstance(part, np.ndarray) else part for part in self.constants
        ]
        kind = type(self.constants)
        made = kind._make(parts) if hasattr(kind, "_make") else tuple(parts)
        object.__setattr__(self, "constants", made)
        if self.swap is None:
            object.__setattr__(self, "swap", exchange)

    @property
    def functions(self) -> tuple[Any, Any, Any]:
        """The functions `peek`, `swap` and `restore`."""
        return self.peek, self.swap, self.restore

    @property
    def is_compiled(self) -> bool:
        """Whether all three functions are compiled."""
        return all(hasattr(function, "py_func") for function in self.functions)

    def state_at(self, order: AnyIntArray) -> State:
        """Return the state of a chain at an order, before `restore`."""
        n = self.n_items
        return State(
            np.array(order, dtype=np.int64),
            np.zeros(1),
            np.zeros(self.integers, dtype=np.int64),
            np.zeros(self.floats),
            np.zeros(n),
            np.zeros(n),
        )

    def random_start(self, rng: np.random.Generator) -> IntArray:
        """Draw an order of positive weight to start from, spread wider than the distribution."""
        start = self.start or positive_start(self.n_items, self.log_weights)
        return start(rng)


def target_of(dist: SupportsTarget) -> Target:
    """Return the target of a distribution, with everything filled in."""
    target = dist._target()
    if target.log_weights is ask_distribution:
        return replace(target, log_weights=getattr(dist, "log_weight", dist.log_prob))
    return target


def unknown(orders: Any) -> FloatArray:
    """Return NaN for each order: log-weights that cost far more than draws do."""
    return np.full(np.shape(orders)[:-1], np.nan)


def anywhere(n_items: int) -> Callable[[np.random.Generator], IntArray]:
    """Start at random orders, where all orders have a positive weight."""
    return lambda rng: random_orders(n_items, rng=rng)


def positive_start(
    n_items: int, log_weight: Callable[[IntArray], Any]
) -> Callable[[np.random.Generator], IntArray]:
    """Start at random orders that have a positive weight."""

    def start(rng: np.random.Generator) -> IntArray:
        for _ in range(STARTS):
            order = random_orders(n_items, rng=rng)
            if log_weight(order) != -np.inf:
                return order
        raise ValueError(
            f"start: {STARTS} random orders all have weight 0; pass orders of positive weight as "
            "start"
        )

    return start


# ---- what kernels call; the functions of a target take their places -----------------------------


def peek(target: Any, state: State, k: int) -> float:
    """Return the log-weight after a swap of positions k and k + 1."""
    raise NotImplementedError("peek: only for kernels, which get it from the target")


def swap(target: Any, state: State, k: int, value: float) -> None:
    """Swap positions k and k + 1; the log-weight becomes `value`."""
    raise NotImplementedError("swap: only for kernels, which get it from the target")


def restore(target: Any, state: State) -> None:
    """Compute everything that follows from the order."""
    raise NotImplementedError("restore: only for kernels, which get it from the target")


@compiled
def exchange(_target: Any, state: State, k: int, value: float) -> None:
    """Swap positions k and k + 1, where nothing but the log-weight follows from the order."""
    order = state.order
    order[k], order[k + 1] = order[k + 1], order[k]
    state.value[0] = value
