"""Fits that go on where they were killed: every evaluation of an objective is kept in a file.

Solvers are deterministic. A fit that is started again with the same file asks for the same
coefficients in the same order; what is in the file need not be computed, and from where it ends the
fit goes on, with the same bits as if nothing had happened.
"""

from __future__ import annotations

import hashlib
import json
import struct
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._journal import Journal
from permdist.models.solvers.growing import Blocks
from permdist.models.solvers.total import Evaluation
from permdist.models.totals import SumOverBlocks, changes_objective

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from permdist._typing import FloatArray
    from permdist.data import Queries
    from permdist.models.base import Ranker
    from permdist.models.objectives.base import Objective

KIND = "evaluations of a fit"
# They decide how fast a fit is, when it ends and what it prints, not what is evaluated on the way.
FREE = ("n_jobs", "verbose", "max_iter", "tol", "early_stopping")
HASHED = 1 << 17  # numbers that are converted and hashed at a time
_KEY = 16
_RECORD = struct.Struct(f"<{_KEY}sIqdd")  # state, width, silent, value, steepest


class Checkpoint:
    """The file of one fit.

    Parameters
    ----------
    path : path
        It is created if it does not exist.
    facts : dict
        What the evaluations depend on: `facts_of`. A file with other facts is refused.

    Attributes
    ----------
    found : int
        Evaluations that were in the file.
    used : int
        Evaluations that did not have to be computed again.
    """

    def __init__(self, path: str | Path, facts: dict[str, Any]) -> None:
        facts = json.loads(json.dumps({"kind": KIND, **facts}))  # as it is read back
        self._file = Journal(path, "checkpoint")
        try:
            if self._file.header is None:
                self._file.begin(facts)
            _need_same(path, self._file.header or {}, facts)
            self._known = dict(map(_unpack, self._file))
        except BaseException:
            self._file.close()
            raise
        self.found, self.used, self._objectives = len(self._known), 0, 0

    def find(self, state: bytes, w: FloatArray) -> Evaluation | None:
        """Return what an evaluation came to, if it is in the file.

        Parameters
        ----------
        state : bytes
            Which function was evaluated: `Recorded.state`.
        w : array of float, shape (columns,)
        """
        known = self._known.get(state + w.tobytes())
        self.used += known is not None
        return known

    def keep(self, state: bytes, w: FloatArray, found: Evaluation) -> None:
        """Add an evaluation to the file.

        Parameters
        ----------
        state : bytes
        w : array of float, shape (columns,)
        found : Evaluation
        """
        numbers = _RECORD.pack(state, len(w), found.silent, found.value, found.steepest)
        record = numbers + w.tobytes() + found.gradient.tobytes()
        self._file.append(record)
        self._known.update([_unpack(record)])

    def recorded(self, total: SumOverBlocks, objective: Objective) -> Recorded:
        """Return an objective of the fit whose evaluations are kept.

        Parameters
        ----------
        total : SumOverBlocks
        objective : Objective
            What it is made of.
        """
        # A fit makes its objectives in the same order whenever it is repeated.
        self._objectives += 1
        return Recorded(total, self, f"{self._objectives} {type(objective).__name__}")

    def close(self) -> None:
        """Bring everything to the disk, and let other fits use the file."""
        self._file.close()


class Recorded(SumOverBlocks, Blocks):
    """An objective whose evaluations are kept in a file, and taken from there.

    Parameters
    ----------
    total : SumOverBlocks
        Or any other total, which can then only be evaluated.
    checkpoint : Checkpoint
    name : str
        What tells this objective apart from the others of the same fit: its options, say.

    Attributes
    ----------
    state : bytes
        Of the name, and of all that has changed the objective since.
    """

    def __init__(self, total: Any, checkpoint: Checkpoint, name: str) -> None:
        self.total, self.checkpoint = total, checkpoint
        self.width, self.n_queries = total.width, total.n_queries
        self.n_documents = total.n_documents
        self.state = hashlib.sha256(name.encode()).digest()[:_KEY]

    def __call__(self, w: FloatArray) -> Evaluation:
        """Return the evaluation at w, from the file or computed and added to it."""
        w = np.ascontiguousarray(w, dtype=np.float64)
        found = self.checkpoint.find(self.state, w)
        if found is None:
            found = self.total(w)
            self.checkpoint.keep(self.state, w, found)
        return found

    def over_blocks(self, name: str, *args: Any) -> list[Any]:
        """Call a method of every block; see `SumOverBlocks.over_blocks`."""
        if changes_objective(name, args):  # it is another one from now on
            self.state = _after(self.state, name, *args)
        return self.total.over_blocks(name, *args)

    def __len__(self) -> int:
        return len(self.total)

    def some(self, numbers: Sequence[int]) -> Recorded:
        """Return the sum over some of the blocks, by their numbers; it is kept as well."""
        part = Recorded(self.total.some(numbers), self.checkpoint, "")
        part.state = _after(self.state, "some", list(numbers))
        return part


def _after(state: bytes, *said: Any) -> bytes:
    """Return the state of an objective after it was told something."""
    digest = hashlib.sha256(state)
    for one in said:
        digest.update(one.tobytes() if isinstance(one, np.ndarray) else repr(one).encode())
    return digest.digest()[:_KEY]


def facts_of(learner: Ranker, data: Any, start: FloatArray | None) -> dict[str, Any]:
    """Return what the evaluations of a fit depend on.

    Parameters
    ----------
    learner : Ranker
    data : object
        The `fingerprint` of the queries, or several of them.
    start : array of float, shape (columns,), or None
        Where the fit starts, if not where it would by itself.
    """
    from permdist.models.files import to_dict

    if getattr(learner, "random_state", 0) is None:
        raise ValueError("checkpoint: a fit with random_state=None cannot be repeated; use a seed")
    params = to_dict(learner)["params"]
    return {
        "permdist": _version(),
        "learner": type(learner).__name__,
        "params": {name: value for name, value in params.items() if name not in FREE},
        "data": data,
        "start": None if start is None else _digest(start),
    }


def fingerprint(queries: Queries) -> dict[str, Any]:
    """Return what tells a collection from any other one; all of it is read once.

    Parameters
    ----------
    queries : Queries

    Examples
    --------
    >>> from permdist import data
    >>> one, same, other = (fingerprint(data.make_letor(10, rng=seed)) for seed in (0, 0, 1))
    >>> one == same, one == other
    (True, False)
    """
    features = hashlib.sha256()
    step = max(1, HASHED // max(1, queries.n_features))
    for first in range(0, queries.n_documents, step):
        # A store may hold single precision; it is the same collection in memory.
        rows = np.ascontiguousarray(queries.X[first : first + step], dtype=np.float64)
        features.update(rows.data)
    return {
        "documents": queries.n_documents,
        "columns": queries.n_features,
        "queries": _digest(queries.ptr),
        "labels": _digest(queries.y),
        "features": features.hexdigest()[:32],
    }


def _digest(values: Any) -> str:
    """Return a checksum of an array, the same for every layout of it."""
    return hashlib.sha256(np.ascontiguousarray(values).data).hexdigest()[:32]


def _version() -> str:
    try:
        return version("permdist")
    except PackageNotFoundError:  # used from its sources
        return "unknown"


def _unpack(record: bytes) -> tuple[bytes, Evaluation]:
    """Return the key of a record, state and w, and the evaluation."""
    state, width, silent, value, steepest = _RECORD.unpack_from(record)
    w, gradient = record[_RECORD.size :][: 8 * width], record[_RECORD.size :][8 * width :]
    return state + w, Evaluation(value, np.array(np.frombuffer(gradient)), steepest, silent)


def _need_same(path: str | Path, there: dict[str, Any], here: dict[str, Any]) -> None:
    """Refuse a file that was written for another fit, and say what is different."""
    if there.get("kind") != KIND:
        raise ValueError(f"checkpoint: {path} is no checkpoint of a fit")
    for key, what in (("permdist", "version of permdist"), ("learner", "learner")):
        if there.get(key) != here[key]:
            raise _other(path, what, there.get(key), here[key])
    params = there.get("params") or {}
    for name, value in here["params"].items():
        if params.get(name) != value:
            raise _other(path, f"value of {name}", params.get(name), value)
    if there.get("data") != here["data"]:
        raise _other(path, "collection", difference=_differing(there.get("data"), here["data"]))
    if there.get("start") != here["start"]:
        raise _other(path, "start", there.get("start"), here["start"])


def _other(
    path: str | Path, what: str, there: Any = None, here: Any = None, difference: str = ""
) -> ValueError:
    return ValueError(
        f"checkpoint: {path} is of a fit with another {what} "
        f"({difference or f'{there}, here {here}'}); use another file, or remove this one"
    )


def _differing(there: Any, here: Any) -> str:
    """Say how two collections differ: in their sizes, or in which of their parts."""
    sizes = _sizes(there), _sizes(here)
    if sizes[0] != sizes[1]:
        return f"{sizes[0]}, here {sizes[1]}"
    pairs = zip(*(one if isinstance(one, list) else [one] for one in (there, here)), strict=True)
    keys = {key: None for a, b in pairs for key in b if a.get(key) != b[key]}
    return f"as many documents, but other {' and '.join(keys)}"


def _sizes(data: Any) -> str:
    parts = data if isinstance(data, list) else [data]
    if not all(isinstance(part, dict) and isinstance(part.get("documents"), int) for part in parts):
        return "unknown"
    stores = f" in {len(parts)} stores" if len(parts) > 1 else ""
    return f"{sum(part['documents'] for part in parts):,} documents{stores}"
