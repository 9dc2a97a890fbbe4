"""One chain of orders: a target, a kernel, and draws or their moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.rankings import order_to_ranks
from permdist.samplers.chain import Chain
from permdist.samplers.exact import drawn_orders
from permdist.samplers.kernels import advance_with, mixture_of, parts_of
from permdist.samplers.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from permdist._typing import FloatArray, IntArray
    from permdist.distributions import Distribution
    from permdist.targets import Target

EXACT_BLOCK = 1024
MANY_STEPS = 2**17  # take some hundredths of a second
SHOWN = 12  # items whose ranks the R-hat of the progress bar is computed from


class OrderChain(Chain):
    """One chain of orders.

    Parameters
    ----------
    *args
        Those of `Chain`.
    dist : Distribution
    target : Target
    kernel : str
        A kernel, a mixture of kernels, or ``"exact"``.
    thin : int
    start : array of int, shape (n,)
    """

    def __init__(
        self,
        *args: Any,
        dist: Distribution,
        target: Target,
        kernel: str,
        thin: int,
        start: IntArray,
    ) -> None:
        super().__init__(*args)
        self.dist, self.target, self.thin = dist, target, thin
        self.exact = kernel == "exact"
        self.moments = None if self._keeps else Moments.empty(target.n_items)
        parts = {} if self.exact else parts_of(kernel)
        self.moved = np.zeros((max(1, len(parts)), 2), dtype=np.int64)
        self.tuned = np.zeros_like(self.moved)
        self._state = target.state_at(start)
        self._seed = np.array([self.rng.integers(2**63)])
        if not self.exact:
            self._mixture, self._advance = mixture_of(parts), advance_with(parts, target)

    def most(self) -> int:
        """Return how many draws may be made at once: to the end of a block of exact draws."""
        return EXACT_BLOCK - self.done % EXACT_BLOCK if self.exact else self.total

    def moves(self) -> tuple[int, int]:
        """Return how many steps were taken, and how many of them moved."""
        steps, moved = (self.moved + self.tuned).sum(axis=0)
        return int(steps), int(moved)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that the next draw depends on."""
        arrays = {f"state {name}": array for name, array in self._state._asdict().items()}
        arrays |= {"moved": self.moved, "tuned": self.tuned, "seed": self._seed}
        if self.moments is not None:
            arrays |= {f"moments {name}": array for name, array in vars(self.moments).items()}
        return arrays

    def advance(self, draws: NDArray[Any], values: FloatArray, stopped: Callable[[], bool]) -> bool:
        """Make the next draws; give up a single one that takes long once `stopped` returns True."""
        if self.exact:
            # Each block has a generator of its own, so that the bits do not depend on the slices.
            number, within = divmod(self.done, EXACT_BLOCK)
            stream = np.random.default_rng([int(self._seed[0]), number])
            block = drawn_orders(self.dist, EXACT_BLOCK, stream)[within : within + len(draws)]
            draws[:] = block
            values[:] = self.target.log_weights(block)
            self.moved[0] += len(draws)
        elif not self._walk(draws, values, stopped):
            return False
        else:
            self._check(values)
        if self.moments is not None and not self.tuning:
            self.moments.add(draws, values)
        return True

    def _walk(self, draws: NDArray[Any], values: FloatArray, stopped: Callable[[], bool]) -> bool:
        """Take the steps of some draws; return whether all of them were taken."""
        inputs = self._mixture, self.target.constants, self._state, self.rng
        outputs = draws, values, self.tuned if self.tuning else self.moved
        if len(draws) > 1 or self.thin <= MANY_STEPS:
            self._advance(*inputs, self.done, len(draws), self.thin, *outputs)
            return True
        first, left = self.done, self.thin
        while left > 0:
            self._advance(*inputs, first, 1, min(left, MANY_STEPS), *outputs)
            # Only a draw's first part may begin by restoring the state, as a whole one does.
            first, left = 1, left - MANY_STEPS
            if left > 0 and stopped():
                return False
        return True

    def _check(self, values: FloatArray) -> None:
        """Refuse log-weights that a user's functions must not return."""
        wrong = np.isnan(values) | (values == np.inf)
        if wrong.any():
            raise ValueError(
                f"{type(self.dist).__name__}: expected log-weights that are finite or -inf, got "
                f"{values[wrong][0]} in chain {self.number}; check log_weight and swap, or peek "
                "and restore of its target"
            )

    def quantities(self, at: NDArray[Any]) -> FloatArray:
        """Return the ranks of some items and the log-weight of some draws, or means of blocks."""
        if self.moments is not None:
            return self.moments.block_means()
        n = self.draws.shape[1]
        items = np.unique(np.linspace(0, n - 1, min(n, SHOWN)).astype(int))
        return np.column_stack([order_to_ranks(self.draws[at])[:, items], self.values[at]])
