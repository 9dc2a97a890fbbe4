"""Rows of flat arrays, and work on them in threads, with the same bits on any number of these.

Rows of unequal length stand one after the other in one flat array: row ``r`` is
``flat[ptr[r]:ptr[r + 1]]``.
"""

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
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from permdist._typing import FloatArray, IntArray

Result = TypeVar("Result")

BLOCK = 2_000_000  # entries of a block of rows
SMALL = 250_000.0  # less than this, in steps of some nanoseconds, gains nothing from threads
LOOK = 0.1  # seconds between two looks at the signals, where a wait cannot be interrupted


def pointers(sizes: ArrayLike) -> IntArray:
    """Return where each row starts, and the total: shape (rows + 1,).

    Examples
    --------
    >>> pointers([2, 3, 1])
    array([0, 2, 5, 6])
    """
    sizes = np.asarray(sizes, dtype=np.int64)
    result = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=result[1:])
    return result


def bounds(ptr: IntArray) -> list[tuple[int, int]]:
    """Return the first entry of each row and the one after its last.

    Examples
    --------
    >>> bounds(pointers([2, 3]))
    [(0, 2), (2, 5)]
    """
    return list(pairwise(ptr.tolist()))


def row_blocks(length: int, width: int) -> list[tuple[int, int]]:
    """Cut rows of a table into ranges of about two million entries each; usually there is one.

    Examples
    --------
    >>> row_blocks(5, 10)
    [(0, 5)]
    >>> row_blocks(5, 1_000_000)
    [(0, 2), (2, 4), (4, 5)]
    """
    size = max(1, BLOCK // max(1, width))
    return [(start, min(start + size, length)) for start in range(0, length, size)]


def rows_of(ptr: IntArray) -> IntArray:
    """Return the row of each entry.

    Examples
    --------
    >>> rows_of(pointers([2, 1]))
    array([0, 0, 1])
    """
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def pack(parts: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], IntArray]:
    """Return the rows one after the other, and where each starts.

    Examples
    --------
    >>> pack([np.array([4, 5]), np.array([6])])
    (array([4, 5, 6]), array([0, 2, 3]))
    """
    flat = np.concatenate(parts) if len(parts) else np.zeros(0, dtype=np.int64)
    return flat, pointers([len(part) for part in parts])


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
    if len(ranges) == 1:
        work(*ranges[0])
        return
    rest = iter(ranges)  # of a list: each range goes to one thread

    def run() -> None:
        for part in rest:
            work(*part)

    others = [_pool(workers).submit(run) for _ in range(workers - 1)]
    run()
    for other in others:
        if not other.cancel():  # what has not begun finds nothing left
            other.result()


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
