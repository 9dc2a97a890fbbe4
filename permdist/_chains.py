"""Chains in threads: turns, Ctrl-C, and how well they agree so far."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from permdist._typing import FloatArray

SLICE = 0.1  # seconds between two looks at the clock
SAVE_EVERY = 1.0  # seconds between two writes of a checkpoint


class Worker(Protocol):
    """One chain at work."""

    done: int

    @property
    def total(self) -> int:
        """The number of draws to make, tuning included."""

    @property
    def kept(self) -> int:
        """The number of draws so far, without tuning."""

    def slice(self, stopped: Callable[[], bool]) -> None:
        """Make draws for about a tenth of a second."""

    def save(self) -> None:
        """Write what a checkpoint needs."""


class Bar(Protocol):
    """What shows the progress of chains."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *details: object) -> None: ...

    def update(self) -> None:
        """Show how far the chains are."""


def drive(workers: Sequence[Worker], n_jobs: int, bar: Bar) -> bool:
    """Run all chains until they are complete, or until Ctrl-C; return whether they are complete.

    All slices are taken in threads, which Ctrl-C does not reach: a chain always stops between two
    draws, with its state, its generator and its draws consistent.
    """
    stop = threading.Event()
    faults: list[BaseException] = []
    # Chains take turns, so that all have about the same number of draws at any time.
    waiting = deque(worker for worker in workers if worker.done < worker.total)

    def run() -> None:
        try:
            while waiting and not stop.is_set():
                try:
                    worker = waiting.popleft()
                except IndexError:
                    return
                worker.slice(stop.is_set)
                if worker.done < worker.total:
                    waiting.append(worker)
        except BaseException as fault:
            faults.append(fault)
            stop.set()
        finally:
            ended.release()

    # Not Thread.join, which considers a thread dead when Ctrl-C interrupts it.
    ended = threading.Semaphore(0)
    running, interrupted = 0, False
    try:
        with bar:
            for _ in range(min(n_jobs, len(workers))):
                threading.Thread(target=run, daemon=True).start()
                running += 1
            while running:
                running -= ended.acquire(timeout=SLICE)
                bar.update()
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
    interrupted = interrupted and any(worker.done < worker.total for worker in workers)
    if interrupted:
        for worker in workers:
            worker.save()
        if min(worker.kept for worker in workers) == 0:
            raise KeyboardInterrupt
    return not interrupted


def worst_rhat(table: FloatArray) -> float:
    """Return the worst split R-hat of several quantities; NaN for too few draws.

    Parameters
    ----------
    table : array of float, shape (chains, draws, quantities)
    """
    half = table.shape[1] // 2
    if half < 4:
        return np.nan
    split = np.concatenate([table[:, :half], table[:, half : 2 * half]]).astype(float)
    within = split.var(axis=1, ddof=1).mean(axis=0)
    between = split.mean(axis=1).var(axis=0, ddof=1)
    varying = within > 0
    if not varying.any():
        return np.nan
    ratio = between[varying] / within[varying]
    return float(np.sqrt((half - 1) / half + ratio).max())
