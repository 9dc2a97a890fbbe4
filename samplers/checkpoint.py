"""A run on disk: a folder that can be continued from, whenever the process is killed.

``run.json`` describes the run. For each chain, draws are appended to ``chain-0.orders`` and
``chain-0.values``, and ``chain-0.state`` holds the state after the last complete draw; it is
replaced atomically. Anything written after that draw is cut off when the run continues. Every file
has a checksum.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._files import parse_json, write_atomically
from permdist._records import lock
from permdist._seals import seal, unseal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from permdist._typing import FloatArray
    from permdist.targets import Target

FORMAT = 3
DRAWS = ("orders", "values")


class Checkpoint:
    """The folder of one run.

    Parameters
    ----------
    path : path
        A folder; it is created if necessary.
    parts : (str, str)
        What a draw consists of: the names of two files per chain.
    kind : str
        What is drawn: a folder with draws of another kind is refused.
    """

    def __init__(
        self, path: str | Path, parts: tuple[str, str] = DRAWS, kind: str = "rankings"
    ) -> None:
        self.parts, self.kind = parts, kind
        if not str(path):
            raise ValueError("checkpoint: expected a folder, got an empty name")
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"checkpoint: {self.path} is a file, expected a folder")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(f"checkpoint: {self.path} cannot be created ({error})") from error
        if not os.access(self.path, os.W_OK):
            raise PermissionError(f"checkpoint: {self.path} cannot be written to")
        names = {file.name for file in self.path.iterdir()} - {"lock"}
        if any(name[0] != "." for name in names) and not self._header.exists():
            raise ValueError(
                f"checkpoint: {self.path} holds other files and no run; nothing was written there"
            )
        self._run = ""
        self._lock = _lock(self.path / "lock")

    @property
    def _header(self) -> Path:
        return self.path / "run.json"

    def state_file(self, chain: int) -> Path:
        """Return the path of the state of a chain."""
        return self.path / f"chain-{chain}.state"

    def header(self) -> dict[str, Any] | None:
        """Read the description of the run; None if there is none yet."""
        if not self._header.exists():
            return None
        try:
            found = parse_json(self._header.read_bytes())
        except ValueError as error:
            raise _damaged(self._header, "it is not JSON") from error
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ValueError(
                f"checkpoint: {self._header} has format "
                f"{found.get('format') if isinstance(found, dict) else None}, expected {FORMAT}; "
                "start the run again in another folder, or continue with the version that began it"
            )
        if found.pop("checksum", None) != _digest(found):
            raise _damaged(self._header, "the contents do not match their checksum")
        if found.get("kind", "rankings") != self.kind:
            raise ValueError(
                f"checkpoint: it holds a run with draws of {found.get('kind', 'rankings')}, "
                f"this run has {self.kind}; nothing was overwritten"
            )
        self._run = _digest(found)
        return found

    def begin(self, header: dict[str, Any]) -> None:
        """Write the description of the run."""
        facts = json.loads(json.dumps({"format": FORMAT, **header}))  # as it is read back
        text = json.dumps({**facts, "checksum": _digest(facts)}, indent=1)
        write_atomically(self._header, [text.encode()])
        self._run = _digest(facts)

    def close(self) -> None:
        """Release the folder to other processes."""
        self._lock.close()

    def save(
        self,
        chain: int,
        meta: dict[str, Any],
        arrays: dict[str, Any],
        orders: NDArray[Any],
        values: FloatArray,
    ) -> dict[str, Any]:
        """Append draws and replace the chain's state; return `meta` with sizes and checksums.

        Draws count once the state is replaced; the next call cuts off what a failed one wrote.
        """
        meta = {**meta, "run": self._run, "chain": chain}
        for name, data in zip(self.parts, (orders, values), strict=True):
            raw = np.ascontiguousarray(data).tobytes()
            with (self.path / f"chain-{chain}.{name}").open("ab") as target:
                target.truncate(meta.get(name, 0))
                target.write(raw)
                target.flush()
                os.fsync(target.fileno())
            meta[name] = meta.get(name, 0) + len(raw)
            meta[f"{name} check"] = zlib.crc32(raw, meta.get(f"{name} check", 0))
        write_atomically(self.state_file(chain), [_pack(meta, arrays)])
        return meta

    def load(
        self, chain: int, arrays: dict[str, NDArray[Any]]
    ) -> tuple[dict[str, Any], dict[str, NDArray[Any]], bytes, bytes] | None:
        """Read a chain's state and its draws as bytes; None if it has not been saved yet.

        Parameters
        ----------
        chain : int
        arrays : dict
            Arrays with the names, types and shapes that are expected.
        """
        path = self.state_file(chain)
        if not path.exists():
            return None
        try:
            meta, found = _unpack(unseal(path.read_bytes()), arrays)
            if (meta["run"], meta["chain"]) != (self._run, chain):
                raise ValueError("it belongs to another run or to another chain")
        except ValueError as error:
            raise _damaged(path, str(error)) from error
        draws = []
        for name in self.parts:
            data = self.path / f"chain-{chain}.{name}"
            raw = data.read_bytes()[: meta[name]] if data.exists() else b""
            if len(raw) < meta[name]:
                raise _damaged(data, f"expected {meta[name]} bytes, got {len(raw)}")
            if zlib.crc32(raw) != meta[f"{name} check"]:
                raise _damaged(data, "the contents do not match their checksum")
            draws.append(raw)
        return meta, found, draws[0], draws[1]


def fingerprint(target: Target) -> str:
    """Return a digest of what the steps of a chain depend on."""
    digest = hashlib.sha256(str(target.n_items).encode())
    for part in target.constants:
        array = np.asarray(part)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
    digest.update(repr([getattr(part, "__qualname__", "") for part in target.functions]).encode())
    if not target.constants:
        # What functions refer to cannot be hashed: try them out.
        peek, _, restore = target.functions
        rng, n = np.random.default_rng(0), target.n_items
        for order in (np.arange(n), *(rng.permutation(n) for _ in range(20))):
            state = target.state_at(order)
            restore((), state)
            found = [float(state.value[0]), *(float(peek((), state, k)) for k in (0, n - 2))]
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


def _pack(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """Write a line of JSON, then the arrays' own bytes, then a checksum."""
    layout = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    line = json.dumps({"meta": meta, "arrays": layout}, default=encode).encode()
    return seal(line + b"\n" + b"".join(array.tobytes() for array in arrays.values()))


def _unpack(
    data: bytes, like: dict[str, NDArray[Any]]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `_pack` wrote, if the arrays are like those that are expected."""
    line, _, body = data.partition(b"\n")
    stored = json.loads(line, object_hook=_decode)
    layout = {name: [array.dtype.str, list(array.shape)] for name, array in like.items()}
    if stored["arrays"] != layout:
        raise ValueError("its arrays are not those of this run")
    found, at = {}, 0
    for name, array in like.items():
        flat = np.frombuffer(body, array.dtype, array.size, at)
        found[name] = flat.reshape(array.shape).copy()
        at += array.nbytes
    return stored["meta"], found


def _digest(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _damaged(path: Path, reason: str) -> ValueError:
    return ValueError(f"checkpoint: {path} is damaged: {reason}; nothing was overwritten")


def _lock(path: Path) -> Any:
    """Keep other processes out; the system frees the lock even if this one is killed."""
    handle = path.open("a")
    try:
        lock(handle, f"checkpoint: {path.parent} is in use by another run")
    except ValueError:
        handle.close()
        raise
    for left in path.parent.glob(".*.tmp"):  # by a process that was killed while it wrote
        with contextlib.suppress(OSError):
            left.unlink()
    return handle
