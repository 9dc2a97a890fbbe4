"""Temporary signal handlers."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


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
