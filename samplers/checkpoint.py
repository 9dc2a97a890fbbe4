"""A run on disk: a folder that is always whole, whatever moment the process is killed at.

``run.json`` says what the run is. For each chain, ``chain-0.orders`` and ``chain-0.values`` grow by
the draws, and ``chain-0.npz`` holds the state after the last of them that counts; it is replaced
in one move. What was written behind that is cut off when the run goes on.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from permdist._check import AnyIntArray, FloatArray
from permdist._files import write_atomically
from permdist.samplers.targets import Problem

FORMAT = 1


class Checkpoint:
    """The folder of one run.

    Parameters
    ----------
    path : path
        A folder; it is made if it is not there.
    """

    def __init__(self, path: str | Path) -> None:
        if not str(path):
            raise ValueError("checkpoint: expected a folder, got an empty name")
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"checkpoint: {self.path} is a file, expected a folder")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(f"checkpoint: {self.path} cannot be made ({error})") from error
        if not os.access(self.path, os.W_OK):
            raise PermissionError(f"checkpoint: {self.path} cannot be written to")
        names = {file.name for file in self.path.iterdir()} - {"lock"}
        if any(name[0] != "." for name in names) and not self._header.exists():
            raise ValueError(
                f"checkpoint: {self.path} holds other files and no run; nothing was written there"
            )
        self._lock = _lock(self.path / "lock")

    @property
    def _header(self) -> Path:
        return self.path / "run.json"

    def header(self) -> dict[str, Any] | None:
        """Read what the run is; None if there is none yet."""
        if not self._header.exists():
            return None
        try:
            found = json.loads(self._header.read_text())
        except ValueError as error:
            raise ValueError(f"checkpoint: {self._header} is damaged") from error
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ValueError(
                f"checkpoint: {self._header} has format "
                f"{found.get('format') if isinstance(found, dict) else None}, expected {FORMAT}"
            )
        return found

    def begin(self, header: dict[str, Any]) -> None:
        """Write what the run is."""
        text = json.dumps({"format": FORMAT, **header}, indent=1)
        write_atomically(self._header, [text.encode()])

    def close(self) -> None:
        """Let other processes use the folder."""
        self._lock.close()

    def save(
        self,
        chain: int,
        meta: dict[str, Any],
        arrays: dict[str, Any],
        orders: AnyIntArray,
        values: FloatArray,
    ) -> dict[str, Any]:
        """Append draws and replace the chain's state; give `meta` with sizes and check sums.

        Nothing counts until the state is replaced: a write that failed is cut off by the next one.
        """
        meta = dict(meta)
        for name, data in (("orders", orders), ("values", values)):
            raw = np.ascontiguousarray(data).tobytes()
            with (self.path / f"chain-{chain}.{name}").open("ab") as target:
                target.truncate(meta.get(name, 0))
                target.write(raw)
                target.flush()
                os.fsync(target.fileno())
            meta[name] = meta.get(name, 0) + len(raw)
            meta[f"{name} check"] = zlib.crc32(raw, meta.get(f"{name} check", 0))
        buffer = io.BytesIO()
        text = np.frombuffer(json.dumps(meta, default=encode).encode(), dtype=np.uint8)
        np.savez(buffer, meta=text, **arrays)
        write_atomically(self.path / f"chain-{chain}.npz", [buffer.getvalue()])
        return meta

    def load(self, chain: int) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes] | None:
        """Read a chain's state and its draws as bytes; None if it has not got that far."""
        path = self.path / f"chain-{chain}.npz"
        if not path.exists():
            for name in ("orders", "values"):  # written, but never counted
                (self.path / f"chain-{chain}.{name}").unlink(missing_ok=True)
            return None
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            meta = json.loads(arrays.pop("meta").tobytes(), object_hook=_decode)
        except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"checkpoint: {path} is damaged") from error
        draws = []
        for name in ("orders", "values"):
            data = self.path / f"chain-{chain}.{name}"
            raw = data.read_bytes()[: meta[name]] if data.exists() else b""
            if len(raw) < meta[name] or zlib.crc32(raw) != meta[f"{name} check"]:
                raise ValueError(f"checkpoint: {data} is damaged; nothing was overwritten")
            draws.append(raw)
        for name, raw in zip(("orders", "values"), draws, strict=True):
            data = self.path / f"chain-{chain}.{name}"
            if data.exists() and data.stat().st_size > len(raw):
                os.truncate(data, len(raw))
        return meta, arrays, draws[0], draws[1]


def fingerprint(problem: Problem) -> str:
    """Sum up what a chain's steps depend on."""
    digest = hashlib.sha256()
    for part in problem.target:
        array = np.asarray(part)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
    digest.update(str(problem.dist.n_items).encode())
    for function in (problem.function, problem.change):
        if function is not None:
            # What a function looks at cannot be hashed: try it out.
            rng, n = np.random.default_rng(0), problem.dist.n_items
            tries = [np.arange(n), *(rng.permutation(n) for _ in range(20))]
            more = ((),) if function is problem.function else ((0,), (n - 2,))
            found = [float(function(order, *k)) for order in tries for k in more]
            digest.update(repr(found).encode())
    return digest.hexdigest()


def encode(value: Any) -> Any:
    """Write the arrays in a bit generator's state as lists."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": value.dtype.str}
    return value.item()


def _decode(value: dict[str, Any]) -> Any:
    if value.keys() == {"array", "dtype"}:
        return np.array(value["array"], dtype=value["dtype"])
    return value


def _lock(path: Path) -> Any:
    """Keep other processes out; the system frees the lock even if this one is killed."""
    handle = path.open("a")
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return handle
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        handle.close()
        raise ValueError(f"checkpoint: {path.parent} is in use by another run") from error
    return handle
