"""One chain at work: its state, its generator, its draws, and its part of a checkpoint."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._chains import SAVE_EVERY, SLICE
from permdist._compiling import seconds_without_compiling
from permdist.samplers.exact import drawn_orders
from permdist.samplers.kernels import advance_with, mixture_of, parts_of
from permdist.samplers.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from permdist._typing import AnyIntArray, FloatArray, IntArray
    from permdist.distributions import Distribution
    from permdist.samplers.checkpoint import Checkpoint
    from permdist.targets import Target

EXACT_BLOCK = 1024
MANY_STEPS = 2**17  # take some hundredths of a second


@dataclass(frozen=True)
class Settings:
    """How long to run, in how many threads, and what to keep."""

    draws: int
    tune: int
    chains: int
    keep: str
    n_jobs: int


@dataclass
class Worker:
    """One chain: its state, its generator, its draws."""

    number: int
    dist: Distribution
    target: Target
    kernel: str
    thin: int
    settings: Settings
    store: Checkpoint | None
    rng: np.random.Generator
    order: IntArray
    orders: AnyIntArray
    values: FloatArray
    done: int = 0  # draws so far, tuning included
    before: float = 0.0  # seconds that the run had taken when it was resumed
    saved: int = 0  # draws in the checkpoint
    saved_done: int = 0
    astray: bool = False  # whether the state is between two draws
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = self.settings.keep == "draws"
        self.moments = None if kept else Moments.empty(self.target.n_items)
        self.exact = self.kernel == "exact"
        parts = {} if self.exact else parts_of(self.kernel)
        self.moved = np.zeros((max(1, len(parts)), 2), dtype=np.int64)
        self.tuned = np.zeros_like(self.moved)
        self.state = self.target.state_at(self.order)
        self.seed = int(self.rng.integers(2**63))
        if not self.exact:
            self.mixture, self.advance = mixture_of(parts), advance_with(parts, self.target)
        self._pace = 1
        self._began, self._saved_at = seconds_without_compiling(), time.perf_counter()

    @property
    def total(self) -> int:
        """The number of draws to make, tuning included."""
        return self.settings.draws + self.settings.tune

    @property
    def kept(self) -> int:
        """The number of draws so far, without tuning."""
        return min(max(0, self.done - self.settings.tune), self.settings.draws)

    def slice(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Make draws for about a tenth of a second.

        A single draw that takes longer is given up once `stopped` returns True.
        """
        begin = time.perf_counter()
        end = self.settings.tune if self.done < self.settings.tune else self.total
        size = min(end - self.done, self._pace)
        if self.exact:
            size = min(end - self.done, EXACT_BLOCK - self.done % EXACT_BLOCK)
        orders, values = self._room(size)
        if self.exact:
            # Each block has a generator of its own, so that the bits do not depend on the slices.
            number, within = divmod(self.done, EXACT_BLOCK)
            stream = np.random.default_rng([self.seed, number])
            block = drawn_orders(self.dist, EXACT_BLOCK, stream)[within : within + size]
            orders[:] = block
            values[:] = self.target.log_weights(block)
            self.moved[0] += size
        else:
            counts = self.tuned if self.done < self.settings.tune else self.moved
            if not self._advance(size, orders, values, counts, stopped):
                return
        if self.done >= self.settings.tune and self.moments is not None:
            self.moments.add(orders, values)
        self._check_values(values)
        self.done += size
        took = time.perf_counter() - begin
        if took < SLICE / 2:
            self._pace *= 2
        elif took > SLICE and self._pace > 1:
            self._pace //= 2
        if self.store is not None and (
            self.done == self.total or time.perf_counter() - self._saved_at > SAVE_EVERY
        ):
            self.save()

    def _advance(
        self,
        size: int,
        orders: AnyIntArray,
        values: FloatArray,
        counts: IntArray,
        stopped: Callable[[], bool],
    ) -> bool:
        """Take the steps of some draws; return whether all of them were taken."""
        inputs = self.mixture, self.target.constants, self.state, self.rng
        outputs = orders, values, counts
        if size > 1 or self.thin <= MANY_STEPS:
            self.advance(*inputs, self.done, size, self.thin, *outputs)
            return True
        first, left = self.done, self.thin
        while left > 0:
            self.advance(*inputs, first, 1, min(left, MANY_STEPS), *outputs)
            # Only a draw's first part may begin by restoring the state, as a whole one does.
            first, left = 1, left - MANY_STEPS
            if left > 0 and stopped():
                self.astray = True
                return False
        return True

    def _check_values(self, values: FloatArray) -> None:
        """Refuse log-weights that a user's functions must not return."""
        wrong = np.isnan(values) | (values == np.inf)
        if wrong.any() and not self.exact:
            raise ValueError(
                f"{type(self.dist).__name__}: expected log-weights that are finite or -inf, got "
                f"{values[wrong][0]} in chain {self.number}; check log_weight and swap, or peek "
                "and restore of its target"
            )

    def _room(self, size: int) -> tuple[AnyIntArray, FloatArray]:
        """Return the arrays for the next draws."""
        if self.moments is None and self.done >= self.settings.tune:
            here = slice(self.kept, self.kept + size)
            return self.orders[here], self.values[here]
        return np.empty((size, self.target.n_items), dtype=np.int32), np.empty(size)

    def save(self) -> None:
        """Write the draws since the last call, and the state."""
        if self.store is None or self.done == self.saved_done or self.astray:
            return  # a run cannot continue from a state between two draws
        new = slice(self.saved, self.kept) if self.moments is None else slice(0, 0)
        meta = self.meta | {
            "done": self.done,
            "seconds": self.before + max(0.0, seconds_without_compiling() - self._began),
            "rng": self.rng.bit_generator.state,
            "seed": self.seed,
        }
        orders, values = self.orders[new], self.values[new]
        self.meta = self.store.save(self.number, meta, self._arrays(), orders, values)
        self.saved, self.saved_done = self.kept, self.done
        self._saved_at = time.perf_counter()

    def resume(self) -> None:
        """Continue from what a checkpoint holds."""
        if self.store is None:
            return
        own = self._arrays()
        loaded = self.store.load(self.number, own)
        if loaded is None:
            return
        meta, arrays, raw_orders, raw_values = loaded
        orders = np.frombuffer(raw_orders, dtype=np.int32).reshape(-1, self.target.n_items)
        values = np.frombuffer(raw_values)
        self.rng.bit_generator.state = meta["rng"]
        for name, array in own.items():
            array[...] = arrays[name]
        self.meta, self.seed = meta, int(meta["seed"])
        self.done = self.saved_done = int(meta["done"])
        self.before = float(meta["seconds"])
        if self.moments is not None:
            if self.done > self.total:
                raise ValueError(
                    f"draws: the checkpoint has moments of {self.kept} draws already, "
                    f"more than {self.settings.draws}"
                )
            return
        length = min(len(orders), self.settings.draws)
        self.orders[:length], self.values[:length] = orders[:length], values[:length]
        self.saved = len(orders)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that a checkpoint holds, by their names there."""
        arrays = {f"state {name}": array for name, array in self.state._asdict().items()}
        arrays |= {"moved": self.moved, "tuned": self.tuned}
        if self.moments is not None:
            arrays |= {f"moments {name}": array for name, array in vars(self.moments).items()}
        return arrays
