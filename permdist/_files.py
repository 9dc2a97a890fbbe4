"""Files: reading them whole, compressed or not, with clear errors; writing them atomically."""

from __future__ import annotations

import bz2
import contextlib
import errno
import functools
import gzip
import json
import os
import re
import secrets
import stat
import zlib
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

PIECE = 2**22
MARK = b"\xef\xbb\xbf"
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


def read_bytes(path: Path) -> bytes:
    """Read a whole file; damage to a compressed one raises an error that says so."""
    with reading(path) as (source, _):
        data = _read_all(path, source)
    data = data.removeprefix(MARK)  # a byte order mark says nothing here
    if not data:
        raise ValueError(f"{path}: the file is empty")
    return data


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; what is nested too deeply is a `ValueError`, too.

    Examples
    --------
    >>> parse_json('{"items": [1, 2]}')
    {'items': [1, 2]}
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


@contextlib.contextmanager
def reading(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file, compressed or not, to be read in the block, with clear errors.

    Parameters
    ----------
    path : Path

    Yields
    ------
    file, file
        What is to be read, and the file on the disk under it.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if path.is_dir():
        raise IsADirectoryError(f"{path}: expected a file, this is a directory")
    try:
        with open(path, "rb") as below:
            if path.suffix in _OPENERS:
                with _OPENERS[path.suffix](below, "rb") as source:
                    yield source, below
            else:
                yield below, below
    except EOFError as error:
        raise ValueError(f"{path}: the compressed file is truncated") from error
    except zlib.error as error:
        raise ValueError(f"{path}: the compressed file is damaged") from error
    except PermissionError as error:
        raise PermissionError(f"{path}: no permission to read it") from error
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error})") from error


def _read_all(path: Path, source: IO[bytes]) -> bytes:
    """Read to the end, piece by piece; what a compressed file unfolds to is not known before."""
    size, pieces = path.stat().st_size, []
    if path.suffix not in _OPENERS:
        check_size(f"{path}: a file of {size:,} bytes", size)
    read = 0
    while piece := source.read(PIECE):
        pieces.append(piece)
        read += len(piece)
        if read > size:  # compressed, growing or endless
            check_size(f"{path}: a file that unfolds to {read:,} bytes or more", read)
    return b"".join(pieces)


def write_atomically(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file so that, whatever happens, there is the old file or the new one, whole.

    The contents go to a scratch file in the same folder, are flushed to disk, and take the place of
    the old ones in one move; where anything fails the scratch file is removed. A symbolic link is
    followed, and the file it points to replaced. A file that is replaced keeps its permissions, and
    its owner where the system allows that; other hard links to it keep the old contents. What is
    no regular file (a device, a pipe, ``/dev/stdout``) is written to and never replaced.

    Parameters
    ----------
    path : Path
        Where to write; the contents are compressed if its name ends in ``.gz`` or ``.bz2``.
    chunks : iterable of bytes

    Raises
    ------
    OSError
        Of the kind that the system reported, naming `path`.
    """
    scratch = None
    try:
        target, before = _place(path)
        if target is None:
            number = _descriptor(path)
            # A descriptor is shared, not opened again: what follows is written behind it.
            handle = os.open(path, os.O_WRONLY) if number is None else os.dup(number)
            _write(handle, path.suffix, chunks)
            return
        handle, scratch = _scratch(target, private=before is not None)
        _write(handle, path.suffix, chunks, functools.partial(_adopt, scratch, before))
        os.replace(scratch, target)
        scratch = None
        flush_folder(os.path.dirname(target))
    except OSError as error:
        if error.errno is None:
            raise
        raise type(error)(error.errno, os.strerror(error.errno), str(path)) from error
    finally:
        if scratch is not None:
            with contextlib.suppress(OSError):
                os.unlink(scratch)


def check_place(path: Path) -> None:
    """Refuse, before any work is done, a path that no file can be written to.

    Parameters
    ----------
    path : Path

    Raises
    ------
    OSError
        Naming the path, or the folder that is missing.
    """
    target, _ = _place(path)
    if target is not None and not os.access(os.path.dirname(target), os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _place(path: Path) -> tuple[str | None, os.stat_result | None]:
    """Find the file that `path` leads to, and what it is now; no name where it is not regular."""
    try:
        before = os.stat(path)
    except FileNotFoundError:
        before = None
    if before is not None:
        if stat.S_ISDIR(before.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(before.st_mode) or _descriptor(path) is not None:
            return None, before
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    target = os.path.realpath(path)
    if not os.path.isdir(os.path.dirname(target)):
        missing = os.path.dirname(target) if os.path.islink(path) else path.parent
        raise FileNotFoundError(f"{missing}: no such directory")
    return target, before


def _descriptor(path: Path) -> int | None:
    """Return the number of the open descriptor that a path such as ``/dev/stdout`` stands for."""
    name = {"/dev/stdout": "/dev/fd/1", "/dev/stderr": "/dev/fd/2"}.get(str(path), str(path))
    found = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", name)
    return int(found[1]) if found else None


def _scratch(target: str, *, private: bool) -> tuple[int, str]:
    """Create a file of a new name, with the permissions a new file has or for its owner alone."""
    folder, name = os.path.split(target)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        scratch = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(6)}.tmp")
        with contextlib.suppress(FileExistsError):
            return os.open(scratch, flags, 0o600 if private else 0o666), scratch


def _write(
    handle: int,
    suffix: str,
    chunks: Iterable[bytes],
    finish: Callable[[], None] | None = None,
) -> None:
    """Write to an open descriptor and close it; flush it to disk where there is more to do."""
    with os.fdopen(handle, "wb") as raw:
        if suffix in _OPENERS:
            with _OPENERS[suffix](raw, "wb") as target:
                target.writelines(chunks)
        else:
            raw.writelines(chunks)
        raw.flush()
        if finish is not None:
            finish()
            os.fsync(raw.fileno())


def _adopt(scratch: str, before: os.stat_result | None) -> None:
    """Pass on the owner and the permissions of the file that is being replaced."""
    if before is None:
        return
    if hasattr(os, "chown"):
        for owner, group in ((before.st_uid, -1), (-1, before.st_gid)):
            with contextlib.suppress(OSError):  # only the superuser may give files away
                os.chown(scratch, owner, group)
    os.chmod(scratch, stat.S_IMODE(before.st_mode))


def flush_folder(folder: str) -> None:
    """Flush a new name to disk, where the system can; the contents are there already."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_size(what: str, n_bytes: float) -> None:
    """Refuse a size that a file or an argument declares if it would not fit into memory.

    The limit is 4 GiB, or as many bytes as ``PERMDIST_MEMORY_LIMIT`` says, such as ``32e9``.

    Examples
    --------
    >>> check_size("n_items: 1,000 names", 70_000)
    """
    limit = float(os.environ.get("PERMDIST_MEMORY_LIMIT") or 2**32)
    if n_bytes > limit:
        raise ValueError(
            f"{what}: expected to take at most {limit:.3g} bytes of memory, got {n_bytes:.3g}; set "
            f"the environment variable PERMDIST_MEMORY_LIMIT={n_bytes * 1.1:.2g} to allow it"
        )
