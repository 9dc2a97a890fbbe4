"""Which lines of the library follow which: the arcs that a case runs through."""

from __future__ import annotations

import functools
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

Arc = tuple[int, int, int]  # a function, the line before, the line


@functools.cache
def library_roots() -> tuple[str, ...]:
    """Name the folders that hold the library's modules."""
    import permdist
    from permdist import models, samplers

    return tuple(str(Path(str(part.__file__)).parent) for part in (permdist, models, samplers))


class Tracer:
    """Collect arcs inside some folders; everything outside them runs untraced.

    Parameters
    ----------
    roots : tuple of str
        The folders whose files count.
    seen : set of arcs
        Those known before.
    """

    def __init__(self, roots: tuple[str, ...], seen: set[Any]) -> None:
        self.roots = roots
        self.seen = seen
        self.fresh: set[Any] = set()
        # By id: hashing a code object hashes all of its contents. The object is kept, so that no
        # other one can get its id.
        self._codes: dict[int, tuple[CodeType, int | None]] = {}

    @contextmanager
    def watching(self) -> Iterator[set[Any]]:
        """Trace this thread and those that it starts; yield the set of arcs not seen before."""
        self.fresh = set()
        before = sys.gettrace()
        sys.settrace(self._call)
        threading.settrace(self._call)
        try:
            yield self.fresh
        finally:
            sys.settrace(before)
            threading.settrace(before)  # type: ignore[arg-type]
            self.seen |= self.fresh

    def _name(self, code: CodeType) -> int | None:
        """Number a function in a way that every process shares; None outside the roots."""
        name = None
        if code.co_filename.startswith(self.roots):
            name = zlib.crc32(f"{code.co_filename}:{code.co_firstlineno}".encode())
        self._codes[id(code)] = code, name
        return name

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        known = self._codes.get(id(code))
        name = self._name(code) if known is None else known[1]
        if name is None:
            return None
        last = 0
        seen, fresh = self.seen, self.fresh

        def line(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal last
            if event == "line":
                arc = (name, last, frame.f_lineno)
                last = frame.f_lineno
                if arc not in seen:
                    fresh.add(arc)
            return line

        return line
