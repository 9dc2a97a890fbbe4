"""One chain at work: its state, its generator, its draws, and its part of a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from permdist._typing import AnyIntArray, FloatArray, IntArray
from permdist.distributions import Distribution, GaussianScores
from permdist.samplers.checkpoint import Checkpoint
from permdist.samplers.exact import drawn_orders
from permdist.samplers.kernels import KERNELS, advancer, mixture_of, parts_of
from permdist.samplers.moments import Moments
from permdist.samplers.resuming import check_chain
from permdist.samplers.targets import Problem, State, is_wide

SLICE = 0.1  # seconds between two looks at the clock
SAVE_EVERY = 1.0  # seconds between two writes of a checkpoint
EXACT_BLOCK = 1024
MANY_STEPS = 2**17  # take some hundredths of a second


@dataclass(frozen=True)
class Settings:
    """How long to run, on how many threads, and what to keep."""

    draws: int
    tune: int
    chains: int
    keep: str
    threads: int


@dataclass
class Worker:
    """One chain: its state, its generator, its draws."""

    number: int
    problem: Problem
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
    saved: int = 0
    saved_done: int = 0
    astray: bool = False  # whether the state has left the last draw, and is in no other
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = self.settings.keep == "draws"
        self.moments = None if kept else Moments.empty(self.problem.dist.n_items)
        self.moved = np.zeros((len(KERNELS), 2), dtype=np.int64)
        self.tuned = np.zeros_like(self.moved)
        self.state: State = self.problem.start(self.order)
        self.exact = self.kernel == "exact"
        self.seed = int(self.rng.integers(2**63))
        if not self.exact:
            self.mixture = mixture_of(parts_of(self.kernel))
            self.advance = advancer(self.problem)
        self._pace = 1
        self._began = self._saved_at = time.perf_counter()

    @property
    def total(self) -> int:
        """All draws to be made, tuning included."""
        return self.settings.draws + self.settings.tune

    @property
    def kept(self) -> int:
        """Draws so far that count."""
        return min(max(0, self.done - self.settings.tune), self.settings.draws)

    def slice(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Make draws for a tenth of a second or so.

        Where a single draw takes longer, it is left once `stopped`, and does not count.
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
            block = drawn_orders(self.problem.dist, EXACT_BLOCK, stream)[within : within + size]
            orders[:] = block
            values[:] = log_weights(self.problem.dist, block)
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
        """Take the steps of some draws; tell whether all of them were taken."""
        inputs = self.mixture, self.problem.target, self.state, self.rng
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
        """Refuse what a user's functions must not return."""
        if self.problem.function is None or self.exact:
            return
        wrong = np.isnan(values) | (values == np.inf)
        if wrong.any():
            raise ValueError(
                "log_weight, swap: expected log-weights that are finite or -inf, got "
                f"{values[wrong][0]} in chain {self.number}"
            )

    def _room(self, size: int) -> tuple[AnyIntArray, FloatArray]:
        """Give the place for the next draws."""
        if self.moments is None and self.done >= self.settings.tune:
            here = slice(self.kept, self.kept + size)
            return self.orders[here], self.values[here]
        return np.empty((size, self.problem.dist.n_items), dtype=np.int32), np.empty(size)

    def save(self) -> None:
        """Write the draws since the last time, and the state."""
        if self.store is None or self.done == self.saved_done or self.astray:
            return  # a state in the middle of a draw is none to go on from
        new = slice(self.saved, self.kept) if self.moments is None else slice(0, 0)
        meta = self.meta | {
            "done": self.done,
            "seconds": self.before + time.perf_counter() - self._began,
            "rng": self.rng.bit_generator.state,
            "seed": self.seed,
        }
        orders, values = self.orders[new], self.values[new]
        self.meta = self.store.save(self.number, meta, self._arrays(), orders, values)
        self.saved, self.saved_done = self.kept, self.done
        self._saved_at = time.perf_counter()

    def resume(self) -> None:
        """Take over what a checkpoint holds, if a chain like this one can have written it."""
        if self.store is None:
            return
        own = self._arrays()
        loaded = self.store.load(self.number, own, dict(self.rng.bit_generator.state))
        if loaded is None:
            return
        meta, arrays, raw_orders, raw_values = loaded
        n = self.problem.dist.n_items
        try:
            orders = np.frombuffer(raw_orders, dtype=np.int32).reshape(-1, n)
            values = np.frombuffer(raw_values)
            check_chain(self, meta, arrays, orders, values)
            self.rng.bit_generator.state = meta["rng"]
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise self.store.refuse(self.number, str(error)) from error
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


def log_weights(dist: Distribution, orders: IntArray) -> FloatArray:
    """Return the log-weights of orders; NaN where they cost too much to know."""
    if isinstance(dist, GaussianScores):  # nested integrals cost far more than the draws
        return np.full(len(orders), np.nan)
    if is_wide(dist):
        return np.asarray(dist._relative_weight(orders))
    return np.asarray(getattr(dist, "log_weight", dist.log_prob)(orders))
