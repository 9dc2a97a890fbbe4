"""What happens while kernels are compiled: the collector rests, and long waits are explained."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import tempfile
import threading
import time
from typing import Any

from numba.core import event

NOTICE = "permdist: compiling kernels, once per installation"
PATIENCE = 1.0  # seconds after which to say so
TOKEN = "PERMDIST_NOTICE"  # names the file that a worker must remove before it says so


class Compiling(event.Listener):
    """Listens to the beginning and the end of compilations, which may be inside each other.

    numba compiles in one thread at a time, so that nothing needs a lock. Compilation makes
    millions of objects that live until it ends: going through them again and again to collect
    garbage takes a fifth of the time, and finds none.

    Attributes
    ----------
    seconds : float
        How long this process has compiled so far.
    kernels : int
        How many kernels of the library it has compiled.
    """

    def __init__(self) -> None:
        self.seconds, self.kernels = 0.0, 0
        self._depth, self._begin = 0, 0.0
        self._told, self._collects = False, False
        self._timer: threading.Timer | None = None
        self._token = os.environ.get(TOKEN)

    def on_start(self, event: Any) -> None:
        """Note that a compilation begins."""
        self._depth += 1
        if self._depth > 1:
            return
        self._begin, self._collects = time.perf_counter(), gc.isenabled()
        gc.disable()
        if not self._told and _is_ours(event) and _somebody_watches():
            self._timer = threading.Timer(max(0.0, PATIENCE - self.seconds), self._tell)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """Note that a compilation ends."""
        self._depth -= 1
        self.kernels += _is_ours(event)
        if self._depth > 0:
            return
        self.seconds += time.perf_counter() - self._begin
        if self._collects:
            gc.enable()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self) -> None:
        self._told = True
        if self._token is not None:  # whoever removes it may tell
            try:
                os.unlink(self._token)
            except OSError:
                return
        print(NOTICE, file=sys.stderr, flush=True)

    def workers_environment(self) -> dict[str, str]:
        """Return what workers need in their environment, so that one of them tells, if any does."""
        if self._token is None and not self._told and _somebody_watches():
            handle, self._token = tempfile.mkstemp(prefix="permdist-")
            os.close(handle)
            atexit.register(_remove, self._token)
        # Once told, the name of a file that is not there keeps everybody silent.
        return {TOKEN: self._token or os.path.join(tempfile.gettempdir(), "permdist-told")}


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _is_ours(event: Any) -> bool:
    """Return whether the function that is compiled is one of this library."""
    module = str(getattr(event.data["dispatcher"].py_func, "__module__", ""))
    return module.partition(".")[0] == "permdist"


def _somebody_watches() -> bool:
    """Return whether there is a terminal, or a notebook, to write to."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


COMPILING = Compiling()
event.register("numba:compile", COMPILING)  # type: ignore[no-untyped-call]


def seconds_without_compiling() -> float:
    """Return the time of a clock that stands still while kernels are compiled."""
    return time.perf_counter() - COMPILING.seconds
