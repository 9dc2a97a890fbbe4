"""Work on ranges of rows in threads, with the same results on any number of them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from permdist._interrupts import LONG, patiently

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray

Result = TypeVar("Result")

SMALL = 250_000.0  # less than this, in steps of some nanoseconds, gains nothing from threads


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
    parts = min(4 * workers, len(cost), int(total[-1] / max(SMALL, 1.0)) + 1) if workers > 1 else 1
    cuts = np.searchsorted(total, np.linspace(0.0, total[-1], parts + 1))
    cuts[0], cuts[-1] = 0, len(cost)
    ranges = [(int(a), int(b)) for a, b in pairwise(cuts) if a < b]
    if len(ranges) == 1:
        patiently(total[-1], work, *ranges[0])
        return
    if total[-1] > LONG:  # this thread waits, so that Ctrl-C ends it
        list(_pool(workers).map(lambda part: work(*part), ranges))
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


@lru_cache(maxsize=8)
def _pool(threads: int) -> ThreadPoolExecutor:
    """Keep threads for the next call, a fraction of a millisecond later."""
    return ThreadPoolExecutor(threads)


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
