"""Work on ranges of rows in threads, with the same results on any number of them."""

from __future__ import annotations

import contextvars
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray

Result = TypeVar("Result")

SMALL = 250_000.0  # less than this, in steps of some nanoseconds, gains nothing from threads
LOOK = 0.1  # seconds between two looks at the signals, where a wait cannot be interrupted


def n_threads(n_jobs: int | None) -> int:
    """Return how many threads a number of jobs means."""
    return (os.cpu_count() or 1) if n_jobs in (None, -1) else int(n_jobs or 1)


def map_blocks(work: Callable[[int], Result], number: int, n_jobs: int | None) -> list[Result]:
    """Return what `work` returns for the numbers of all blocks, in their order, by threads.

    What is called in turn must not start threads itself.
    """
    workers = min(n_threads(n_jobs), number)
    if workers <= 1:
        return [work(block) for block in range(number)]
    return list(_pool(workers).map(work, range(number)))


def in_threads(work: Callable[[int, int], None], cost: FloatArray, n_jobs: int | None) -> None:
    """Call ``work(first, last)`` on ranges of queries of about the same cost, in threads."""
    if not len(cost):
        return
    workers = n_threads(n_jobs)
    total = np.concatenate([[0.0], np.cumsum(cost)])
    parts = min(4 * workers, len(cost), int(total[-1] / SMALL) + 1) if workers > 1 else 1
    cuts = np.searchsorted(total, np.linspace(0.0, total[-1], parts + 1))
    cuts[0], cuts[-1] = 0, len(cost)
    ranges = [(int(a), int(b)) for a, b in pairwise(cuts) if a < b]
    map_blocks(lambda part: work(*ranges[part]), len(ranges), n_jobs)


def run_interruptible(function: Callable[..., Result], *args: Any) -> Result:
    """Run a long call in a thread so that Ctrl-C can interrupt it.

    On Ctrl-C `KeyboardInterrupt` is raised at once; the call itself ends in the background, and
    its result is discarded.

    Parameters
    ----------
    function : callable
        A kernel or an external solver that releases the global lock. It must not need to be undone.
    *args
        Its arguments.

    Returns
    -------
    object
        What the function returns.

    Examples
    --------
    >>> run_interruptible(sum, [1, 2])
    3
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args)
    # What numpy does about overflow, say, is part of the context.
    context, answer = contextvars.copy_context(), Future[Result]()

    def run() -> None:
        try:
            answer.set_result(context.run(function, *args))
        except BaseException as fault:
            answer.set_exception(fault)

    threading.Thread(target=run, daemon=True).start()
    while not answer.done():
        wait([answer], LOOK)
    return answer.result()


@lru_cache(maxsize=8)
def _pool(threads: int) -> ThreadPoolExecutor:
    """Keep threads for the next call, a fraction of a millisecond later."""
    return ThreadPoolExecutor(threads)


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
