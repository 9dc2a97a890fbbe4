"""Temporary signal handlers."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

AGAIN = 0.01  # seconds


@contextlib.contextmanager
def handled(number: signal.Signals, handler: Any) -> Iterator[None]:
    """Install a signal handler inside a block; outside the main thread, do nothing.

    Examples
    --------
    >>> with handled(signal.SIGTERM, signal.SIG_IGN):
    ...     signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    True
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        # None stands for a handler that was not set from Python and cannot be put back.
        signal.signal(number, signal.SIG_DFL if before is None else before)


@contextlib.contextmanager
def kept_interrupts() -> Iterator[None]:
    """Inside a block, interrupt again if Python has discarded a KeyboardInterrupt.

    It does so in callbacks of the garbage collector, which other libraries have, and of weak
    references, and in ``__del__``.
    """
    before = sys.unraisablehook

    def hook(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        number = next((one for one in numbers if callable(signal.getsignal(one))), numbers[0])
        again = threading.Timer(AGAIN, signal.raise_signal, [number])
        again.daemon = True
        again.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
