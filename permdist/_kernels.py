"""The one decorator through which every numba kernel of the library is compiled.

A kernel is a pure function of arrays that never validates; it releases the global lock, and its
machine code is cached on disk. Where no cache folder can be written, or the disk is full, it is
compiled in memory. While kernels are compiled the garbage collector rests, and a person who waits
is told why.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, overload

import numba
from numba.core import event
from numba.core.caching import FunctionCache

Function = TypeVar("Function", bound=Callable[..., Any])

NOTICE = "permdist: compiling kernels, once per installation"
PATIENCE = 1.0  # seconds after which to say so
SILENT = "PERMDIST_SILENT"  # set in the environment of workers, which say nothing

# Versions of numba whose inside `permdist._parts` has been tested with. With any other, kernels
# are compiled as numba does it, which takes a little longer.
TESTED = (0, 65), (0, 68)
HAS_PARTS = TESTED[0] <= numba.version_info[:2] <= TESTED[1]


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
        self._timer = threading.Timer(0.0, self._tell)

    def on_start(self, event: Any) -> None:
        """Note that a compilation begins."""
        self._depth += 1
        if self._depth > 1:
            return
        self._begin, self._collects = time.perf_counter(), gc.isenabled()
        gc.disable()
        self._timer = threading.Timer(max(0.0, PATIENCE - self.seconds), self._tell)
        if not self._told and _is_ours(event) and _somebody_watches():
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """Note that a compilation ends."""
        self._depth -= 1
        self.kernels += _is_ours(event)
        if self._depth > 0:
            return
        self.seconds += time.perf_counter() - self._begin
        self._timer.cancel()
        if self._collects:
            gc.enable()

    def _tell(self) -> None:
        self._told = True
        print(NOTICE, file=sys.stderr, flush=True)


def _is_ours(event: Any) -> bool:
    """Return whether the function that is compiled is one of this library."""
    module = str(getattr(event.data["dispatcher"].py_func, "__module__", ""))
    return module.partition(".")[0] == "permdist"


def _somebody_watches() -> bool:
    """Return whether there is a terminal, or a notebook, to write to."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return SILENT not in os.environ and (terminal or "ipykernel" in sys.modules)


COMPILING = Compiling()
event.register("numba:compile", COMPILING)  # type: ignore[no-untyped-call]


def seconds_without_compiling() -> float:
    """Return the time of a clock that stands still while kernels are compiled."""
    return time.perf_counter() - COMPILING.seconds


@overload
def kernel(function: Function) -> Function: ...
@overload
def kernel(
    *, fuse: bool = False, inline: bool = False, depends: Sequence[Any] = ()
) -> Callable[[Function], Function]: ...
def kernel(
    function: Any = None,
    *,
    fuse: bool = False,
    inline: bool = False,
    depends: Sequence[Any] = (),
) -> Any:
    """Compile a function on its first call; keep the result on disk if any folder allows it.

    Parameters
    ----------
    function : callable
    fuse : bool
        Let the compiler fuse a multiplication with an addition, which rounds once, not twice.
    inline : bool
        For a few lines that a loop calls millions of times: put them into the caller, and do not
        count references to arrays, which would cost more than they do. Such a function, and the
        kernel around its loop, must not make arrays or slices.
    depends : sequence of kernels
        Kernels that the function calls under other names: cached code is compiled again after
        an edit of their files.

    Examples
    --------
    >>> @kernel
    ... def total(values):
    ...     result = 0.0
    ...     for value in values:
    ...         result += value
    ...     return result
    >>> import numpy as np
    >>> total(np.array([1.0, 2.0]))
    3.0
    """
    if function is None:
        return partial(kernel, fuse=fuse, inline=inline, depends=depends)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    options["fastmath"] = {"contract"} if fuse else False
    if inline:
        options |= {"forceinline": True, "_nrt": False}
    if not HAS_PARTS:
        compiled = numba.njit(**options)(function)
        _keep(compiled, FunctionCache, function, depends)
        return compiled
    from permdist._parts import Part, PartCache, Whole, show_as_part

    compiled = numba.njit(pipeline_class=Whole, **options)(function)
    if hasattr(compiled, "py_func"):  # it has none if NUMBA_DISABLE_JIT is set
        twin = numba.njit(pipeline_class=Part, **options)(function)
        _keep(compiled, FunctionCache, function, depends)
        _keep(twin, PartCache, function, depends)
        show_as_part(compiled, twin)
    return compiled


def kernel_part(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function that only kernels call, with options of numba's, and do not cache it."""
    if not HAS_PARTS:
        return numba.jit(**options)(function)
    from permdist._parts import Part

    return numba.jit(pipeline_class=Part, **options)(function)


def _keep(compiled: Any, cache: Any, function: Callable[..., Any], depends: Sequence[Any]) -> None:
    """Keep the machine code of a function on disk, if any folder allows it.

    numba looks for a writable folder when it decorates: beside the source, then in the user's
    cache. With neither (a read-only container, say), speed must not depend on it.
    """
    if not hasattr(compiled, "py_func"):  # NUMBA_DISABLE_JIT is set
        return
    with contextlib.suppress(RuntimeError):
        compiled._cache = cache(function)
    _stamp_with_helpers(compiled, function, depends)
    _name_by_content(compiled)
    _bear_full_disks(compiled)


def _name_by_content(compiled: Any) -> None:
    """Name files of machine code by what is in them.

    numba numbers them: two processes that save different signatures of one kernel at the same
    time could choose the same number, and one signature would get the code of the other.
    """
    record = _cache_file(compiled)
    if record is None:
        return

    def save(key: Any, code: Any) -> None:
        content = repr((key, record._source_stamp, record._version)).encode()
        digest = hashlib.sha256(content).hexdigest()[:16]
        name = f"{record._index_name.removesuffix('.nbi')}.{digest}.nbc"
        record._save_data(name, code)
        overloads = record._load_index()
        if overloads.get(key) != name:
            overloads[key] = name
            record._save_index(overloads)

    record.save = save


def _bear_full_disks(compiled: Any) -> None:
    """Let a kernel whose code cannot be written, or read back, be compiled again without failing.

    What is read back names the classes of its arguments, which this process may not know.
    """
    if _cache_file(compiled) is not None:
        errors = OSError, ImportError, AttributeError, EOFError, pickle.PickleError
        compiled._cache._guard_against_spurious_io_errors = lambda: contextlib.suppress(*errors)


def cache_stamp(function: Any) -> Any:
    """Return what identifies the source of a kernel; None if its code is not cached on disk."""
    record, source = _cache_file(function), getattr(function, "py_func", None)
    if record is None or source is None or source.__closure__ is not None:
        return None
    return source.__module__, source.__qualname__, record._source_stamp


def _stamp_with_helpers(
    compiled: Any, function: Callable[..., Any], depends: Sequence[Any]
) -> None:
    """Make the cached code depend on kernels that the function calls from other files.

    numba compares the time stamp of the function's own file only, and would go on using code
    that has an older version of such a helper built in.
    """
    own = _cache_file(compiled)
    if own is None:
        return
    helpers: list[Any] = [function.__globals__.get(name) for name in function.__code__.co_names]
    stamps = [
        _cache_file(helper)._source_stamp for helper in helpers if _cache_file(helper) is not None
    ]
    stamps = [stamp for stamp in stamps if stamp != own._source_stamp]  # not the same file's
    stamps += [cache_stamp(helper) for helper in depends]
    if stamps:
        own._source_stamp = (own._source_stamp, *stamps)


def _cache_file(compiled: Any) -> Any:
    """Find numba's record of a cached function; None where caching is off."""
    return getattr(getattr(compiled, "_cache", None), "_cache_file", None)
