"""Worker processes that start with a safe module path and end with their parent.

joblib starts its workers as ``python -m ...``, which searches the working directory for modules
first: a file ``pickle.py`` there would be executed. Ours search it only if the parent does, and
only after they have received the parent's path. Since a parent that was killed cannot stop its
workers, each of them monitors the parent.
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

from permdist._kernels import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAFE = "PYTHONSAFEPATH"


def make_pool(n_jobs: int | None, **options: Any) -> Parallel:
    """Return joblib's pool of workers, with `SafeWorkers` instead of its own processes.

    If `joblib.parallel_config` has chosen another backend (threads, dask), that one is used.

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
    """joblib's processes, started without the working directory on the module path."""

    def _prepare_worker_env(self, n_jobs: int) -> dict[str, str]:
        own = {SAFE: "1", SILENT: "1"}
        return {**super()._prepare_worker_env(n_jobs), **own}

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
    """Start the processes that clean up after workers, with a safe path, unless they run."""
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
    """Return the function that a worker calls first; it is pickled by value.

    Parameters
    ----------
    parent : int
        The process id of the parent.
    in_main : bool
        Whether the parent's main thread starts the workers. Linux sends the signal when the
        *thread* that started a process ends, which is too early for any other thread.
    stays_safe : bool
        Whether the parent has a safe path; otherwise the worker's own children have none.
    """

    def begin() -> None:
        import contextlib
        import os
        import signal
        import sys
        import threading
        import time

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent shuts workers down
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

        if os.getppid() != parent:  # it ended during startup
            os._exit(1)
        threading.Thread(target=watch, daemon=True).start()

    return begin


def _both(first: Callable[[], None], second: Callable[..., Any]) -> Callable[..., None]:
    def begin(*args: Any) -> None:
        first()
        second(*args)

    return begin
