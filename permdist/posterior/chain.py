"""One chain of posterior draws: its state, its generator, and its part of a checkpoint."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._chains import SAVE_EVERY, SLICE
from permdist._compiling import seconds_without_compiling

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray
    from permdist.posterior.problem import Problem
    from permdist.samplers.checkpoint import Checkpoint


@dataclass
class Chain:
    """One chain at work.

    Parameters
    ----------
    number : int
    problem : Problem
    tune : int
        The number of draws to discard at the beginning.
    store : Checkpoint or None
    rng : Generator
    draws : array of float, shape (draws, size)
        Filled in.
    values : array of float, shape (draws,)
        Filled in with log-densities.
    """

    number: int
    problem: Problem
    tune: int
    store: Checkpoint | None
    rng: np.random.Generator
    draws: FloatArray
    values: FloatArray
    done: int = 0  # draws so far, tuning included
    before: float = 0.0  # seconds that the run had taken when it was resumed
    saved: int = 0  # draws in the checkpoint
    saved_done: int = 0
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state = np.array(self.problem.start(self.rng), dtype=np.float64)
        if self.state.ndim != 1:
            raise ValueError(
                f"{type(self.problem).__name__}.start: expected a vector, got shape "
                f"{self.state.shape}"
            )
        self._pace = 1
        self._began, self._saved_at = seconds_without_compiling(), time.perf_counter()

    @property
    def total(self) -> int:
        """The number of draws to make, tuning included."""
        return len(self.draws) + self.tune

    @property
    def kept(self) -> int:
        """The number of draws so far, without tuning."""
        return min(max(0, self.done - self.tune), len(self.draws))

    def slice(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Make draws for about a tenth of a second; `stopped` makes no difference to them."""
        del stopped
        begin = seconds_without_compiling()
        tuning = self.done < self.tune
        size = min((self.tune if tuning else self.total) - self.done, self._pace)
        if tuning:
            draws, values = np.empty((size, self.problem.size)), np.empty(size)
        else:
            here = slice(self.kept, self.kept + size)
            draws, values = self.draws[here], self.values[here]
        self.state = self.problem.advance(self.state, draws, values, self.rng)
        self._check(draws, values)
        self.done += size
        took = seconds_without_compiling() - begin
        if took < SLICE / 2:
            self._pace *= 2
        elif took > SLICE and self._pace > 1:
            self._pace //= 2
        if self.store is not None and (
            self.done == self.total or time.perf_counter() - self._saved_at > SAVE_EVERY
        ):
            self.save()

    def _check(self, draws: FloatArray, values: FloatArray) -> None:
        if not np.isfinite(values).all() or not np.isfinite(draws).all():
            raise ValueError(
                f"{type(self.problem).__name__}.advance: expected finite draws and log-densities, "
                f"got others in chain {self.number}"
            )

    def save(self) -> None:
        """Write the draws since the last call, and the state."""
        if self.store is None or self.done == self.saved_done:
            return
        new = slice(self.saved, self.kept)
        meta = self.meta | {
            "done": self.done,
            "seconds": self.before + max(0.0, seconds_without_compiling() - self._began),
            "rng": self.rng.bit_generator.state,
            "seed": 0,
        }
        arrays = {"state": self.state}
        self.meta = self.store.save(self.number, meta, arrays, self.draws[new], self.values[new])
        self.saved, self.saved_done = self.kept, self.done
        self._saved_at = time.perf_counter()

    def resume(self) -> None:
        """Continue from what a checkpoint holds."""
        loaded = None if self.store is None else self.store.load(self.number, {"state": self.state})
        if loaded is None:
            return
        meta, arrays, raw_draws, raw_values = loaded
        draws = np.frombuffer(raw_draws).reshape(-1, self.problem.size)
        values = np.frombuffer(raw_values)
        self.rng.bit_generator.state = meta["rng"]
        self.state, self.meta = arrays["state"], meta
        self.done = self.saved_done = int(meta["done"])
        self.before, self.saved = float(meta["seconds"]), len(draws)
        length = min(len(draws), len(self.draws))
        self.draws[:length], self.values[:length] = draws[:length], values[:length]
