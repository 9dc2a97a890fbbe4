"""Checks of everything in a checkpoint that a chain would continue with.

Kernels trust their inputs: an invalid order, or a number out of range, would make them read and
write out of bounds. Checksums find damage; these checks find what no run can have written.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.samplers.moments import BLOCKS, Moments
from permdist.targets import State, Target
from permdist.targets.base import unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from permdist._typing import AnyIntArray, FloatArray, IntArray
    from permdist.samplers.worker import Worker

# The largest values of the parts of a bit generator's state that are positions or flags.
LARGEST = {"pos": 624, "buffer_pos": 4, "has_uint32": 1, "uinteger": 2**32 - 1}


def check_header(found: dict[str, Any]) -> None:
    """Check the types of the entries of ``run.json``; raise ValueError with the reason."""
    for name, minimum in (("thin", 1), ("tune", 0), ("chains", 1)):
        if name in found:
            _whole(name, found[name], minimum)
    for name in ("distribution", "fingerprint", "kernel", "keep", "seed"):
        if not isinstance(found.get(name, ""), str):
            raise ValueError(f"{name}: expected a text, got {found[name]!r}")


def check_meta(meta: Any, generator: dict[str, Any], parts: tuple[str, ...]) -> None:
    """Check the numbers beside a chain's arrays; raise ValueError with the reason.

    Parameters
    ----------
    meta : object
        The first line of a state file.
    generator : dict
        The state of a bit generator of the expected kind.
    parts : tuple of str
        What a draw consists of: the names of files.
    """
    if not isinstance(meta, dict):
        raise ValueError("its first line does not describe a chain")
    files = (name for part in parts for name in (part, f"{part} check"))
    for name in ("done", "chain", *files, "seed"):
        _whole(name, meta.get(name), 0)
    if not isinstance(meta.get("run"), str):
        raise ValueError("run: expected a text")
    seconds = meta.get("seconds")
    if not isinstance(seconds, int | float) or not 0.0 <= seconds < math.inf:
        raise ValueError(f"seconds: expected a non-negative number, got {seconds!r}")
    _check_generator(meta.get("rng"), generator)


def check_chain(
    worker: Worker,
    meta: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    orders: AnyIntArray,
    values: FloatArray,
) -> None:
    """Check the state and the draws of a chain; raise ValueError with the reason.

    Parameters
    ----------
    worker : Worker
        The chain that would continue with them.
    meta, arrays : dict
        As `Checkpoint.load` returns them.
    orders : array of int, shape (draws, n)
    values : array of float, shape (draws,)
    """
    tune, done = worker.settings.tune, int(meta["done"])
    kept = max(0, done - tune)
    expected = kept if worker.moments is None else 0
    if len(orders) != expected or len(values) != expected:
        raise ValueError(
            f"after {done} draws, {tune} of them for tuning, expected {expected} to be kept, got "
            f"{len(orders)} orders and {len(values)} log-weights"
        )
    _check_steps(worker, arrays, done)
    state = State(*(arrays[f"state {name}"] for name in State._fields))
    _check_state(worker.target, state, started=done > 0 and not worker.exact)
    _check_orders("draws", orders, worker.target.n_items)
    without = worker.exact and worker.target.log_weights is unknown
    if (np.isnan(values).any() and not without) or (values == np.inf).any():
        raise ValueError("the log-weights of its draws are not all finite or -inf")
    if expected and not worker.exact:
        same = (orders[-1] == state.order).all() and values[-1] == state.value[0]
        if not same:
            raise ValueError("its last draw is not the state of its chain")
    if worker.moments is not None:
        names = vars(worker.moments)
        found = Moments(**{name: arrays[f"moments {name}"] for name in names})
        _check_moments(found, kept, finite=not without)


def _check_steps(worker: Worker, arrays: dict[str, NDArray[Any]], done: int) -> None:
    tuned = min(done, worker.settings.tune)
    for name, draws in (("tuned", tuned), ("moved", done - tuned)):
        counts = arrays[name]
        bounded = (counts >= 0).all() and (counts[:, 1] <= counts[:, 0]).all()
        if not bounded or sum(counts[:, 0].tolist()) != draws * worker.thin:
            raise ValueError(
                f"{name}: expected {draws * worker.thin} steps and no more moves than steps, got "
                f"{counts.tolist()}"
            )


def _check_state(target: Target, state: State, *, started: bool) -> None:
    _check_orders("state", state.order[None], target.n_items)
    if not started:
        return
    value = float(state.value[0])
    if math.isnan(value) or value == math.inf or np.isnan(state.floats).any():
        raise ValueError("state: expected log-weights that are finite or -inf")
    if target.integers:  # these may be used as positions
        fresh = target.state_at(state.order)
        restore: Any = target.restore
        getattr(restore, "py_func", restore)(target.constants, fresh)
        if (fresh.integers != state.integers).any():
            raise ValueError("state: its integers do not follow from its order")


def _check_orders(name: str, orders: AnyIntArray, n: int) -> None:
    for begin in range(0, len(orders), 4096):  # in memory that does not grow with the run
        wrong = (np.sort(orders[begin : begin + 4096], axis=1) != np.arange(n)).any(axis=1)
        if wrong.any():
            row = begin + int(np.argmax(wrong))
            raise ValueError(
                f"{name}: expected orders of {n} items, got {orders[row][:12].tolist()} at "
                f"index {row}"
            )


def _check_moments(moments: Moments, kept: int, *, finite: bool) -> None:
    draws, length = (int(one) for one in moments.progress)
    if draws != kept or length < 1 or length & (length - 1) or draws > BLOCKS * length:
        raise ValueError(f"moments: expected {kept} draws, got {draws} in blocks of {length}")
    counts: IntArray = moments.counts
    sums_fit = (counts.sum(axis=0) == kept).all() and (counts.sum(axis=1) == kept).all()
    if (counts < 0).any() or not sums_fit:
        raise ValueError("moments: the counts of items at positions do not sum to the draws")
    known = slice(None) if finite else slice(None, -1)  # log-weights may be unknown
    for part in (moments.blocks[:, known], moments.squares[known]):
        if not np.isfinite(part).all():
            raise ValueError("moments: expected finite sums")
    places = counts @ np.arange(len(counts))
    if (moments.blocks[:, :-1].sum(axis=0) != places).any():
        raise ValueError("moments: the sums of positions do not follow from their counts")


def _check_generator(found: Any, like: Any, name: str = "rng") -> None:
    """Check that the state of a bit generator has the form and the limits of another one."""
    if isinstance(like, dict):
        if not isinstance(found, dict) or found.keys() != like.keys():
            raise ValueError(f"{name}: expected the state of a {like.get('bit_generator', 'part')}")
        for key, part in like.items():
            _check_generator(found[key], part, key)
    elif isinstance(like, np.ndarray):
        if not isinstance(found, np.ndarray) or found.shape != like.shape:
            raise ValueError(f"{name}: expected {like.size} numbers")
        if found.dtype != like.dtype:
            raise ValueError(f"{name}: expected numbers of type {like.dtype}, got {found.dtype}")
    elif isinstance(like, int):
        _whole(name, found, 0)
        if found > LARGEST.get(name, 2**128 - 1):
            raise ValueError(f"{name}: expected at most {LARGEST.get(name)}, got {found}")
    elif found != like:
        raise ValueError(f"{name}: expected {like!r}, got {found!r}")


def _whole(name: str, value: Any, minimum: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ValueError(f"{name}: expected a whole number, at least {minimum}, got {value!r}")
