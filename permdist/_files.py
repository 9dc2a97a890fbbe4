"""Files: reading whole, compressed or not, with clear errors; writing all or nothing."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import math
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from permdist._limits import need_memory

PIECE = 2**22
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


def read_bytes(path: Path) -> bytes:
    """Read a whole file; damage to a compressed one is told in words."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if path.is_dir():
        raise IsADirectoryError(f"{path}: expected a file, this is a directory")
    try:
        with _OPENERS.get(path.suffix, open)(path, "rb") as source:
            data = _read_all(path, source)
    except EOFError as error:
        raise ValueError(f"{path}: the compressed file is truncated") from error
    except zlib.error as error:
        raise ValueError(f"{path}: the compressed file is damaged") from error
    except PermissionError as error:
        raise PermissionError(f"{path}: no permission to read it") from error
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error})") from error
    data = data.removeprefix(b"\xef\xbb\xbf")  # a byte order mark says nothing here
    if not data:
        raise ValueError(f"{path}: the file is empty")
    return data


def _read_all(path: Path, source: IO[bytes]) -> bytes:
    """Read to the end, piece by piece; what a compressed file unfolds to is not known before."""
    size, pieces = path.stat().st_size, []
    if path.suffix not in _OPENERS:
        need_memory(f"{path}: a file of {size:,} bytes", size)
    read = 0
    while piece := source.read(PIECE):
        pieces.append(piece)
        read += len(piece)
        if read > size:  # compressed, growing or endless
            need_memory(f"{path}: a file that unfolds to {read:,} bytes or more", read)
    return b"".join(pieces)


def read_number(file: Path, line: int, text: bytes) -> float:
    """Read one number, or say where it is not one."""
    try:
        value = float("nan") if b"_" in text else float(text)
    except ValueError:
        value = float("nan")
    if not math.isfinite(value):
        shown = text.decode(errors="replace").strip()[:40]
        raise ValueError(f"{file}, line {line}: expected a finite number, got {shown!r}")
    return value


def write_atomically(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file beside its place, then move it there: it is whole or it is not there."""
    with atomically(path) as (handle, _):
        target: IO[bytes]
        with os.fdopen(handle, "wb") as raw:
            if path.suffix in _OPENERS:
                with _OPENERS[path.suffix](raw, "wb") as target:
                    target.writelines(chunks)
            else:
                raw.writelines(chunks)


@contextlib.contextmanager
def atomically(path: Path) -> Iterator[tuple[int, str]]:
    """Give an open handle and the name of a file beside `path`, which it becomes at the end.

    Where anything fails there is no file; errors of the system name `path`.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: no such directory")
    name = None
    try:
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix
        )
        yield handle, name
        # mkstemp makes private files; give this one the permissions a new file would have.
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException as error:
        if name is not None:
            Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise type(error)(error.errno, os.strerror(error.errno), str(path)) from error
        raise
