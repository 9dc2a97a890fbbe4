"""Ctrl-C within a second, however long compiled code runs.

Python handles signals between two of its own instructions only, and a kernel is one. Work that
can be cut into parts is done part by part, from Python; other work is done in a thread of its
own, for which the main thread waits in a way that Ctrl-C ends.
"""

from __future__ import annotations

import contextvars
import math
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Result = TypeVar("Result")

# Elementary operations, some nanoseconds each. Less than this takes about a tenth of a second, and
# to start and await a thread takes a tenth of a millisecond.
LONG = 2e7
_LOOK = 0.1  # seconds between two looks at the clock, where a wait cannot be interrupted


def parts(length: int, cost: float, *, most: float = LONG) -> Iterator[tuple[int, int]]:
    """Cut rows into ranges that take about a tenth of a second each; usually there is one.

    Parameters
    ----------
    length : int
        The number of rows.
    cost : float
        The elementary operations that each row takes.
    most : float
        The elementary operations of a part.

    Yields
    ------
    (int, int)
        The first row of a part and the one after its last. Nothing where there are no rows.

    Examples
    --------
    >>> list(parts(5, 10.0, most=20.0))
    [(0, 2), (2, 4), (4, 5)]
    """
    size = max(1, math.floor(most / max(cost, 1e-300)) if cost * length > most else length)
    for start in range(0, length, size):
        yield start, min(start + size, length)


def patiently(cost: float, function: Callable[..., Result], *args: Any) -> Result:
    """Call a function that may take long without looking at signals, so that Ctrl-C ends it.

    A short call, or one from another thread than the main one, is an ordinary call. A long one is
    made in a thread. On Ctrl-C `KeyboardInterrupt` is raised at once; the call itself comes to its
    end in the background, and its result is discarded.

    Parameters
    ----------
    cost : float
        The approximate number of elementary operations.
    function : callable
        Compiled, or anything else that releases the global lock. It must not need to be undone.
    *args
        Its arguments.

    Returns
    -------
    object
        What the function returns.

    Examples
    --------
    >>> patiently(10.0, sum, [1, 2])
    3
    """
    if cost < LONG or threading.current_thread() is not threading.main_thread():
        return function(*args)
    results: list[Result] = []
    faults: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            results.append(function(*args))
        except BaseException as fault:
            faults.append(fault)
        finally:
            ended.set()

    # What numpy does about overflow, say, is part of the context.
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), daemon=True).start()
    while not ended.wait(_LOOK):
        pass
    if faults:
        raise faults[0]
    return results[0]
