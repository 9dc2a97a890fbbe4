"""Files: reading whole, compressed or not, with clear errors; writing all or nothing."""

from __future__ import annotations

import bz2
import gzip
import math
import os
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


def read_bytes(path: Path) -> bytes:
    """Read a whole file; damage to a compressed one is told in words."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if path.is_dir():
        raise IsADirectoryError(f"{path}: expected a file, this is a directory")
    try:
        with _OPENERS.get(path.suffix, open)(path, "rb") as source:
            data: bytes = source.read()
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
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: no such directory")
    try:
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix
        )
    except OSError as error:
        raise _named(error, path) from error
    try:
        target: IO[bytes]
        with os.fdopen(handle, "wb") as raw:
            if path.suffix in _OPENERS:
                with _OPENERS[path.suffix](raw, "wb") as target:
                    target.writelines(chunks)
            else:
                raw.writelines(chunks)
        # mkstemp makes private files; give this one the permissions a new file would have.
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise _named(error, path) from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _named(error: OSError, path: Path) -> OSError:
    """Give an error of the system that names the file that was to be written."""
    return type(error)(error.errno, error.strerror or str(error), str(path))
