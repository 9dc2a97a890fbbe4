"""Temporary signal handlers."""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

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


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, as a handler of signals; a little later if it would be lost now.

    Python discards what is raised in a callback of the garbage collector, as other libraries have.
    """
    callbacks = {getattr(one, "__code__", None) for one in gc.callbacks}
    while frame is not None:
        if frame.f_code in callbacks:
            again = threading.Timer(AGAIN, signal.raise_signal, [number])
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt
