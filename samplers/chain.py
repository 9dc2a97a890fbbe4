"""Chains at work: turns in threads, Ctrl-C, a journal to go on from, and a progress bar.

What a chain draws is said by its subclasses: orders by kernels in `permdist.samplers.run`,
parameters of a posterior in `permdist.posterior.run`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._journal import Journal, pack_record, unpack_record
from permdist._kernels import seconds_without_compiling
from permdist._progress import live_bar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from permdist._typing import FloatArray

SLICE = 0.1  # seconds between two looks at the clock
SAVE_EVERY = 1.0  # seconds between two records in the journal
DIGEST = 64  # letters of a checksum
SHOWN = 400  # draws per chain that the R-hat of the progress bar is computed from


class Chain(ABC):
    """One chain: its generator, its draws, and what of them is in the journal.

    Parameters
    ----------
    number : int
    draws : array, shape (draws, size) or (0, size)
        Filled in; without rows, draws are not kept.
    values : array of float, shape (draws,) or (0,)
        Filled in with the log-weight or log-density of each draw.
    length : int
        The number of draws to make.
    tune : int
        The number of draws to discard at the beginning.
    rng : Generator
    journal : Journal or None

    Attributes
    ----------
    done : int
        Draws so far, those that are discarded among them.
    before : float
        Seconds that the run had taken when it was resumed.
    """

    def __init__(
        self,
        number: int,
        draws: NDArray[Any],
        values: FloatArray,
        length: int,
        tune: int,
        rng: np.random.Generator,
        journal: Journal | None,
    ) -> None:
        self.number, self.draws, self.values = number, draws, values
        self.length, self.tune, self.rng, self.journal = length, tune, rng, journal
        self.done, self.before = 0, 0.0
        self._saved = self._saved_draws = 0
        self._keeps = len(draws) == length
        self._pace = 1
        self._began, self._saved_at = seconds_without_compiling(), time.perf_counter()

    @abstractmethod
    def advance(self, draws: NDArray[Any], values: FloatArray, stopped: Callable[[], bool]) -> bool:
        """Make the next draws; return False to give them up, because `stopped` returned True."""

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that the next draw depends on; `resume` writes to them."""

    @abstractmethod
    def quantities(self, at: NDArray[Any]) -> FloatArray:
        """Return numbers of some of the draws for R-hat, shape (draws, quantities)."""

    def most(self) -> int:
        """Return how many draws may be made at once."""
        return self.total

    def moves(self) -> tuple[int, int]:
        """Return how many steps were taken, and how many of them moved; zeros if not counted."""
        return 0, 0

    @property
    def total(self) -> int:
        """The number of draws to make, those that are discarded among them."""
        return self.length + self.tune

    @property
    def kept(self) -> int:
        """The number of draws so far, without those that are discarded."""
        return min(max(0, self.done - self.tune), self.length)

    @property
    def tuning(self) -> bool:
        """Whether the next draw is discarded."""
        return self.done < self.tune

    def slice(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Make draws for about a tenth of a second."""
        begin = time.perf_counter()
        size = min((self.tune if self.tuning else self.total) - self.done, self._pace, self.most())
        if self._keeps and not self.tuning:
            here = slice(self.kept, self.kept + size)
            draws, values = self.draws[here], self.values[here]
        else:
            draws = np.empty((size, self.draws.shape[1]), dtype=self.draws.dtype)
            values = np.empty(size)
        if not self.advance(draws, values, stopped):
            self.journal = None  # a run cannot go on from a state between two draws
            return
        self.done += size
        took = time.perf_counter() - begin
        if took < SLICE / 2:
            self._pace *= 2
        elif took > SLICE and self._pace > 1:
            self._pace //= 2
        if self.done == self.total or time.perf_counter() - self._saved_at > SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Write the state and the draws since the last record to the journal."""
        if self.journal is None or self.done == self._saved:
            return
        new = slice(self._saved_draws, self.kept) if self._keeps else slice(0)
        facts = {
            "chain": self.number,
            "done": self.done,
            "seconds": self.before + max(0.0, seconds_without_compiling() - self._began),
            "rng": self.rng.bit_generator.state,
        }
        arrays = {"draws": self.draws[new], "values": self.values[new], **self.state()}
        record = pack_record(facts, arrays)
        if self._keeps:
            self.journal.append(record)
        else:
            self.journal.replace(self.number, record)
        self._saved, self._saved_at = self.done, time.perf_counter()
        self._saved_draws = self.kept

    def resume(self, facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take the draws and the state of a record, the earliest record first."""
        drawn, values = arrays.pop("draws"), arrays.pop("values")
        if self._keeps:
            here = slice(self._saved_draws, self._saved_draws + len(drawn))
            room = len(self.draws[here])
            self.draws[here], self.values[here] = drawn[:room], values[:room]
        self._saved_draws += len(drawn)
        for name, own in self.state().items():
            own[...] = arrays[name]
        self.rng.bit_generator.state = facts["rng"]
        self.done = self._saved = int(facts["done"])
        self.before = float(facts["seconds"])


@contextlib.contextmanager
def open_checkpoint(path: str | Path | None) -> Any:
    """Open the journal of a run in a block; None without a path."""
    if path is None:
        yield None
        return
    with Journal(path, "checkpoint") as journal:
        yield journal


def start_or_resume(
    journal: Journal | None,
    facts: dict[str, Any],
    chains: Sequence[Chain],
    *,
    free: Sequence[str] = (),
) -> None:
    """Begin a journal, or go on from what is in it.

    Parameters
    ----------
    journal : Journal or None
    facts : dict
        What the draws depend on; a journal with other facts is refused.
    chains : sequence of Chain
        At their starts.
    free : sequence of str
        Facts that may differ.
    """
    if journal is None:
        return
    if journal.header is None:
        journal.begin(facts)
        return
    for key, value in facts.items():
        there = journal.header.get(key)
        if there == value or key in free:
            continue
        long = len(str(value)) == DIGEST  # says nothing to a reader
        text = f"another {key}" if long else f"{key} {there}, this run has {value}"
        raise ValueError(f"checkpoint: it holds a run with {text}; nothing was overwritten")
    for record in journal:
        found, arrays = unpack_record(record)
        chains[found["chain"]].resume(found, arrays)


def digest(facts: Any) -> str:
    """Return a checksum of what JSON can hold, or the state of a bit generator."""
    return hashlib.sha256(json.dumps(facts, default=np.ndarray.tolist).encode()).hexdigest()


def drive(chains: Sequence[Chain], n_jobs: int, text: str, progress: bool | None) -> bool:
    """Run all chains until they are complete, or until Ctrl-C; return whether they are complete.

    All slices are taken in threads, which Ctrl-C does not reach: a chain always stops between two
    draws, with its state, its generator and its draws consistent.

    Parameters
    ----------
    chains : sequence of Chain
    n_jobs : int
        How many run at the same time.
    text : str
        What the progress bar says.
    progress : bool, optional
        Whether to show it; by default on a terminal.
    """
    stop = threading.Event()
    faults: list[BaseException] = []
    # Chains take turns, so that all have about the same number of draws at any time.
    waiting = deque(chain for chain in chains if chain.done < chain.total)

    def run() -> None:
        try:
            while waiting and not stop.is_set():
                try:
                    chain = waiting.popleft()
                except IndexError:
                    return
                chain.slice(stop.is_set)
                if chain.done < chain.total:
                    waiting.append(chain)
        except BaseException as fault:
            faults.append(fault)
            stop.set()
        finally:
            ended.release()

    # Not Thread.join, which considers a thread dead when Ctrl-C interrupts it.
    ended = threading.Semaphore(0)
    running, interrupted = 0, False
    try:
        with _bar(chains, text, progress) as show:
            for _ in range(min(n_jobs, len(chains))):
                threading.Thread(target=run, daemon=True).start()
                running += 1
            while running:
                running -= ended.acquire(timeout=SLICE)
                show()
    except KeyboardInterrupt:
        interrupted = True
    stop.set()
    while running:
        try:
            running -= ended.acquire(timeout=SLICE)
        except KeyboardInterrupt:
            interrupted = True  # again: the last draws are being finished
    if faults:
        raise faults[0]
    interrupted = interrupted and any(chain.done < chain.total for chain in chains)
    if interrupted:
        for chain in chains:
            chain.save()
        if min(chain.kept for chain in chains) == 0:
            raise KeyboardInterrupt
    return not interrupted


@contextlib.contextmanager
def _bar(chains: Sequence[Chain], text: str, progress: bool | None) -> Any:
    """Show speed, acceptance and the worst R-hat so far; yield what updates them."""
    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda: None
        return
    total = sum(chain.total for chain in chains)
    before, begin, looked, rhat = sum(chain.done for chain in chains), time.perf_counter(), 0.0, ""

    def show() -> None:
        nonlocal looked, rhat
        done, now = sum(chain.done for chain in chains), time.perf_counter()
        if now - looked > SAVE_EVERY or done == total:
            looked, worst = now, rhat_so_far(chains)
            rhat = "" if np.isnan(worst) else f", R-hat {worst:.3f}"
        speed = (done - before) / max(now - begin, 1e-9)
        steps, moved = np.sum([chain.moves() for chain in chains], axis=0)
        share = f", {moved / steps:.0%} moved" if steps else ""
        bar.update(done, f"{speed:,.0f} draws/s{share}{rhat}")

    with live_bar(f"{len(chains)} chains, {text}", total) as bar:
        yield show


def rhat_so_far(chains: Sequence[Chain]) -> float:
    """Return the worst split R-hat of some quantities, from some draws; NaN for too few draws.

    Parameters
    ----------
    chains : sequence of Chain
    """
    kept = min(chain.kept for chain in chains)
    if kept < 8:
        return np.nan
    at = np.unique(np.linspace(0, kept - 1, min(kept, SHOWN)).astype(int))
    tables = [chain.quantities(at) for chain in chains]
    half = min(map(len, tables)) // 2
    if half < 4:
        return np.nan
    split = np.array([part for table in tables for part in (table[:half], table[half : 2 * half])])
    within = split.var(axis=1, ddof=1).mean(axis=0)
    between = split.mean(axis=1).var(axis=0, ddof=1)
    varying = within > 0
    if not varying.any():
        return np.nan
    ratio = between[varying] / within[varying]
    return float(np.sqrt((half - 1) / half + ratio).max())
