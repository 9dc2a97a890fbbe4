"""A file of records that only grows, and that survives the death of the process that writes it.

The file begins with a line that says what it is and a line of JSON, the header. Every record has
its length and a checksum before it, so that a record that was torn, because the process was killed
while it wrote, is recognized; it and whatever follows are cut off when the file is next opened.
"""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from pathlib import Path
from typing import IO, Any

MAGIC = b"permdist records 1\n"
LONGEST = 2**30  # bytes of a record
SECONDS = 1.0  # what a crash of the system, not of the process, may lose
_FRAME = struct.Struct("<II")  # length, checksum


class RecordFile:
    """Records on disk, those that are there already among them.

    Parameters
    ----------
    path : path
        It is created if it does not exist.
    header : dict
        What JSON can hold: facts about the records, for a new file.
    name : str
        The argument that the path came from, for error messages.

    Attributes
    ----------
    header : dict
        That of the file, if there is one already.
    records : list of bytes
        What was in the file when it was opened.
    torn : int
        Bytes at its end that were no complete record, and were cut off.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "notes"
    >>> with RecordFile(path, {"about": "tea"}) as file:
    ...     file.append(b"green")
    >>> with RecordFile(path, {}) as file:
    ...     file.header, file.records
    ({'about': 'tea'}, [b'green'])
    """

    def __init__(self, path: str | Path, header: dict[str, Any], name: str = "path") -> None:
        self.path, self._name = Path(path), name
        if not str(path):
            raise ValueError(f"{name}: expected a file, got an empty name")
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"{name}: {self.path} is no regular file")
        try:
            self._file: IO[bytes] = os.fdopen(
                os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666),
                "r+b",
                buffering=0,
            )
        except OSError as error:
            raise self._failed(error) from error
        try:
            lock(self._file, f"{name}: {self.path} is in use by another process")
            data = self._file.read() or b""
            begin = self._read_header(data)
            self.header: dict[str, Any] = header if begin is None else begin[0]
            self.records, whole = ([], 0) if begin is None else _read_records(data, begin[1])
            self.torn = len(data) - whole
            if self.torn:
                self._file.truncate(whole)
            self._file.seek(whole)
            if begin is None:
                self._write(MAGIC + json.dumps(header).encode() + b"\n")
        except BaseException:
            self._file.close()
            raise
        self._synced, self._waiting = time.monotonic(), begin is None

    def _read_header(self, data: bytes) -> tuple[dict[str, Any], int] | None:
        """Return the header and where it ends; None if it has not been written completely."""
        if not data.startswith(MAGIC):
            if MAGIC.startswith(data):  # an empty file, or one that was torn at its beginning
                return None
            raise ValueError(
                f"{self._name}: {self.path} is something else, or of another version; nothing was "
                "written to it"
            )
        end = data.find(b"\n", len(MAGIC))
        if end < 0:
            return None
        try:
            found = json.loads(data[len(MAGIC) : end])
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self._name}: {self.path}: its header is damaged") from error
        if not isinstance(found, dict):
            raise ValueError(f"{self._name}: {self.path}: its header is damaged")
        return found, end + 1

    def append(self, record: bytes) -> None:
        """Add a record; the system is asked to bring it to the disk at most once per second.

        Parameters
        ----------
        record : bytes
        """
        if len(record) > LONGEST:
            raise ValueError(f"record: expected at most {LONGEST:,} bytes, got {len(record):,}")
        self._write(_FRAME.pack(len(record), zlib.crc32(record)) + record)
        self._waiting = True
        if time.monotonic() - self._synced >= SECONDS:
            self._sync()

    def _write(self, data: bytes) -> None:
        place = self._file.tell()
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            self._file.truncate(place)
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> OSError:
        """Return what the system reported, with the names of the argument and of the file."""
        number = error.errno or 0
        return type(error)(number, f"{self._name}: {os.strerror(number)}", str(self.path))

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced, self._waiting = time.monotonic(), False

    def close(self) -> None:
        """Bring everything to the disk, and let other processes use the file."""
        if not self._file.closed:
            if self._waiting:
                self._sync()
            self._file.close()

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def _read_records(data: bytes, place: int) -> tuple[list[bytes], int]:
    """Return the complete records from a place on, and where the last of them ends."""
    records = []
    while place + _FRAME.size <= len(data):
        length, check = _FRAME.unpack_from(data, place)
        begin, end = place + _FRAME.size, place + _FRAME.size + length
        if length > LONGEST or end > len(data) or zlib.crc32(data[begin:end]) != check:
            break
        records.append(data[begin:end])
        place = end
    return records, place


def lock(handle: IO[Any], message: str) -> None:
    """Keep other processes out; the system frees the lock even if this one is killed.

    Parameters
    ----------
    handle : file
    message : str
        Of the error if another process has it.
    """
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ValueError(message) from error
