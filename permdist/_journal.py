"""A file of records that only grows, and that survives the death of the process that writes it.

The file begins with a line that says what it is and a line of JSON, the header. Every record has
its length and a checksum before it, so that a record that was torn, because the process was killed
while it wrote, is recognized; it and whatever follows are cut off when the file is next opened.
Checkpoints of fits, of chains and of posteriors are such files, and so is the journal of a store.
"""

from __future__ import annotations

import json
import os
import struct
import threading
import time
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

MAGIC = b"permdist journal 1\n"
LONGEST = 2**30  # bytes of a record
SECONDS = 1.0  # what a crash of the system, not of the process, may lose
SPARE = 2**24  # bytes of outdated records that are not worth writing a file anew
_FRAME = struct.Struct("<II")  # length, checksum


class Journal:
    """Records on disk.

    Parameters
    ----------
    path : path
        The file; it is created if it does not exist.
    name : str
        The argument that the path came from, for error messages.

    Attributes
    ----------
    header : dict or None
        Facts about the records; None in a new file, until `begin` writes them.
    torn : int
        Bytes at the end of the file that were no complete record, and were cut off.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "notes"
    >>> with Journal(path) as journal:
    ...     journal.begin({"about": "tea"})
    ...     journal.append(b"green")
    >>> with Journal(path) as journal:
    ...     journal.header, list(journal)
    ({'about': 'tea'}, [b'green'])
    """

    def __init__(self, path: str | Path, name: str = "path") -> None:
        self.path, self._name = Path(path), name
        if not str(path):
            raise ValueError(f"{name}: expected a file, got an empty name")
        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"{name}: expected a file, {self.path} is none")
        self._mutex, self._latest = threading.RLock(), dict[Any, bytes]()
        self._file = self._open(self.path)
        try:
            self._ends = [0]  # of the header, and of every record
            self.header = self._read_header()
            if self.header is not None:
                self._ends += self._scan(self._ends[0])
            self.torn = os.fstat(self._file.fileno()).st_size - self._ends[-1]
            if self.torn:
                self._file.truncate(self._ends[-1])
        except BaseException:
            self._file.close()
            raise
        self._synced, self._waiting = time.monotonic(), False

    def _open(self, path: Path) -> IO[bytes]:
        try:
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
            file = os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0)
        except OSError as error:
            raise self._failed(error) from error
        try:
            _lock(file, f"{self._name}: {self.path} is in use by another process")
        except ValueError:
            file.close()
            raise
        return file

    def _read_header(self) -> dict[str, Any] | None:
        """Read the header, if there is one, and check that the file is a journal."""
        self._file.seek(0)
        found = self._file.read(len(MAGIC))
        if not MAGIC.startswith(found):
            raise ValueError(
                f"{self._name}: {self.path} is something else, or of another version; nothing was "
                "written to it"
            )
        line = self._file.readline()
        if not line.endswith(b"\n"):  # an empty file, or one that was torn at its beginning
            return None
        try:
            header = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self._name}: {self.path}: its header is damaged") from error
        if not isinstance(header, dict):
            raise ValueError(f"{self._name}: {self.path}: its header is damaged")
        self._ends = [len(MAGIC) + len(line)]
        return header

    def _scan(self, place: int) -> list[int]:
        """Return where the complete records behind a place end."""
        ends, size = [], os.fstat(self._file.fileno()).st_size
        while place + _FRAME.size <= size:
            length, check = _FRAME.unpack(self._read(place, _FRAME.size))
            if length > LONGEST or place + _FRAME.size + length > size:
                break
            if zlib.crc32(self._read(place + _FRAME.size, length)) != check:
                break
            place += _FRAME.size + length
            ends.append(place)
        return ends

    def _read(self, place: int, length: int) -> bytes:
        self._file.seek(place)
        return self._file.read(length)

    def begin(self, header: Mapping[str, Any]) -> None:
        """Write the header of a new file.

        Parameters
        ----------
        header : mapping
            What JSON can hold: what the records belong to.
        """
        self.header = json.loads(json.dumps(header))  # as it is read back
        self._file.truncate(0)
        self._write(0, MAGIC + json.dumps(header).encode() + b"\n")
        self._ends = [self._file.tell()]

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __iter__(self) -> Iterator[bytes]:
        for begin, end in zip(self._ends, self._ends[1:], strict=False):
            yield self._read(begin + _FRAME.size, end - begin - _FRAME.size)

    def append(self, record: bytes) -> None:
        """Add a record; the system is asked to bring it to the disk at most once per second.

        Parameters
        ----------
        record : bytes
        """
        if len(record) > LONGEST:
            raise ValueError(f"record: expected at most {LONGEST:,} bytes, got {len(record):,}")
        with self._mutex:
            self._write(self._ends[-1], _FRAME.pack(len(record), zlib.crc32(record)) + record)
            self._ends.append(self._file.tell())
            if time.monotonic() - self._synced >= SECONDS:
                self._sync()

    def replace(self, key: Hashable, record: bytes) -> None:
        """Add a record that stands for all earlier ones of its key.

        A file that consists of such records is written anew when most of it is outdated.

        Parameters
        ----------
        key : hashable
        record : bytes
        """
        with self._mutex:
            self.append(record)
            self._latest[key] = record
            if self._ends[-1] > SPARE + 4 * sum(map(len, self._latest.values())):
                self._rewrite(list(self._latest.values()))

    def _rewrite(self, records: Iterable[bytes]) -> None:
        """Put a file with these records in the place of this one."""
        scratch = self.path.with_name(f".{self.path.name}.tmp")
        before, header = self._file, self.header
        self._file = self._open(scratch)
        self.begin(header or {})
        for record in records:
            self.append(record)
        self._sync()
        os.replace(scratch, self.path)
        before.close()

    def keep(self, number: int) -> None:
        """Forget all records but the first ones.

        Parameters
        ----------
        number : int
            How many are kept.
        """
        del self._ends[number + 1 :]
        self._file.truncate(self._ends[-1])

    def _write(self, place: int, data: bytes) -> None:
        try:
            self._file.seek(place)
            while data:
                data = data[self._file.write(data) :]
            self._waiting = True
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

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def pack_record(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a record of facts and arrays: a line of JSON, then the arrays' own bytes.

    Parameters
    ----------
    facts : mapping
        What JSON can hold, or the state of a bit generator.
    arrays : mapping of array

    Examples
    --------
    >>> unpack_record(pack_record({"done": 2}, {"draws": np.array([3, 1])}))
    ({'done': 2}, {'draws': array([3, 1])})
    """
    layout = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    line = json.dumps({"facts": facts, "arrays": layout}, default=np.ndarray.tolist).encode()
    return line + b"\n" + b"".join(np.ascontiguousarray(one).tobytes() for one in arrays.values())


def unpack_record(record: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the facts and the arrays, which must not be written to, of `pack_record`.

    Parameters
    ----------
    record : bytes
    """
    end = record.index(b"\n") + 1
    stored = json.loads(record[:end])
    arrays = {}
    for name, (kind, shape) in stored["arrays"].items():
        size = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(record, kind, size, end).reshape(shape)
        end += arrays[name].nbytes
    return stored["facts"], arrays


def _lock(handle: IO[Any], message: str) -> None:
    """Keep other processes out; the system frees the lock even if this one is killed."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ValueError(message) from error
