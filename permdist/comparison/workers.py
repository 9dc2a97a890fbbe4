"""The processes that make fits: they start in a safe path and end with their parent.

joblib starts its workers as ``python -m ...``, which looks for modules in the working directory
first: a file ``pickle.py`` there would be executed. Ours look there only if the parent does, and
not before they know the parent's path. A parent that was killed cannot tell its workers to end:
they see to it themselves before they take any work.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from joblib import Parallel
from joblib._parallel_backends import LokyBackend
from joblib.externals.loky.backend import resource_tracker as loky_tracker
from joblib.parallel import get_active_backend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAFE = "PYTHONSAFEPATH"


def make_pool(n_jobs: int | None, **options: Any) -> Parallel:
    """Return joblib's pool of workers, with safe ones in place of its own processes.

    Where `joblib.parallel_config` has chosen another backend (threads, dask), it is used as it is.

    Parameters
    ----------
    n_jobs : int, optional
    **options
        For `joblib.Parallel`.
    """
    chosen, _ = get_active_backend()
    if type(chosen) is not LokyBackend:
        return Parallel(n_jobs=n_jobs, **options)
    backend = SafeWorkers(
        nesting_level=chosen.nesting_level,
        inner_max_num_threads=chosen.inner_max_num_threads,
        **getattr(chosen, "backend_kwargs", {}),
    )
    return Parallel(n_jobs=n_jobs, backend=backend, **options)


class SafeWorkers(LokyBackend):  # type: ignore[misc]
    """joblib's processes, started where no file can pass itself off as a module."""

    def _prepare_worker_env(self, n_jobs: int) -> dict[str, str]:
        return {**super()._prepare_worker_env(n_jobs), SAFE: "1"}

    def configure(self, n_jobs: int = 1, parallel: Any = None, **options: Any) -> int:
        """Prepare the pool; see `joblib.parallel.ParallelBackendBase`."""
        own = {**getattr(self, "backend_kwargs", {}), **options}
        in_main = threading.current_thread() is threading.main_thread()
        guard = _guard(os.getpid(), in_main, SAFE in os.environ)
        if own.get("initializer") is not None:
            guard = _both(guard, own["initializer"])
        if self.effective_n_jobs(n_jobs) > 1:
            _start_trackers()
        found: int = super().configure(n_jobs, parallel, **{**options, "initializer": guard})
        return found


def _start_trackers() -> None:
    """Start the processes that clean up after workers, in a safe path, unless they run already."""
    with _safe_path():
        loky_tracker.ensure_running()
        if os.name == "posix":
            resource_tracker.ensure_running()


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    before = os.environ.get(SAFE)
    os.environ[SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE]
        else:
            os.environ[SAFE] = before


@functools.cache
def _guard(parent: int, in_main: bool, stays_safe: bool) -> Callable[[], None]:
    """Make what a worker does first. It is sent by value: nothing has to be imported for it.

    Parameters
    ----------
    parent : int
        The process to end with.
    in_main : bool
        Whether the parent's main thread starts the workers. Linux kills a process with the
        *thread* that started it, which is too early for any other thread.
    stays_safe : bool
        Whether the parent has a safe path, too; otherwise the worker's own children have none.
    """

    def begin() -> None:
        import contextlib
        import os
        import signal
        import sys
        import threading
        import time

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
        if not stays_safe:
            os.environ.pop("PYTHONSAFEPATH", None)
        if in_main and sys.platform.startswith("linux"):
            with contextlib.suppress(OSError, AttributeError):
                import ctypes

                ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(0.2)
            os._exit(1)

        if os.getppid() != parent:  # it ended while we were starting
            os._exit(1)
        threading.Thread(target=watch, daemon=True).start()

    return begin


def _both(first: Callable[[], None], second: Callable[..., Any]) -> Callable[..., None]:
    def begin(*args: Any) -> None:
        first()
        second(*args)

    return begin
