"""`run_chains`: the loop around the kernels, with threads, progress, checkpoints and Ctrl-C."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from permdist._check import FloatArray, IntArray, RandomState, as_rng, choice, count
from permdist._text import hint
from permdist.distributions import Distribution
from permdist.rankings import check_orders, order_to_ranks
from permdist.samplers.auto import applicable, choose_kernel, default_thin
from permdist.samplers.chains import Chains
from permdist.samplers.checkpoint import Checkpoint, _encode, fingerprint
from permdist.samplers.exact import has_exact
from permdist.samplers.kernels import KERNELS, advancer, mixture_of
from permdist.samplers.moments import Moments
from permdist.samplers.targets import Problem, State, problem_of

SLICE = 0.1  # seconds between two looks at the clock
EXACT_BLOCK = 1024
MEMORY_SHARE = 0.5


def run_chains(
    dist: Distribution,
    draws: int = 1000,
    tune: int | None = None,
    chains: int = 4,
    kernel: str | Mapping[str, float] = "auto",
    thin: int | None = None,
    rng: RandomState = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    *,
    start: ArrayLike | None = None,
    keep: str = "draws",
    threads: int | None = None,
) -> Chains:
    """Run Markov chains whose draws have a given distribution in the long run.

    Chains start at random orders and run in threads; the result does not depend on how many. With
    the same seed it is the same to the bit, also if the run was killed and went on from its
    checkpoint. Ctrl-C returns what was drawn so far.

    Parameters
    ----------
    dist : Distribution
        Any distribution over orders. The models of the library, and `WeightedOrders` with compiled
        functions, take nanoseconds a step; others are asked for `log_prob` at every step.
    draws : int
        Draws of each chain.
    tune : int, optional
        Draws thrown away at the beginning; half as many as `draws` by default.
    chains : int
    kernel : str or mapping
        ``"adjacent"`` swaps two neighbours, ``"transposition"`` any two items; ``"relocation"``
        puts an item where its full conditional says; ``"flip"`` exchanges items of neighbouring
        blocks of equal labels (`GoodBad` over orders); ``"exact"`` draws independently.
        ``"adjacent+relocation"`` takes both equally often, ``{"adjacent": 9, "relocation": 1}``
        in other shares. ``"auto"`` is exact where that is affordable, else what gave the most
        effective draws in a short trial; the result says which.
    thin : int, optional
        Steps between two draws; about one sweep over the items by default.
    rng : int, Generator or None
    progress : bool, optional
        Whether to show speed, acceptance and the worst R-hat so far; by default on a terminal.
    checkpoint : path, optional
        A folder to write draws and states to. A run that finds its own checkpoint goes on from
        there; it may ask for more draws than before.
    start : array of int, shape (n,) or (chains, n), optional
        Where to start.
    keep : {"draws", "moments"}
        All draws, or only rank marginals and the moments of ranks and log-weights, in memory that
        does not grow.
    threads : int, optional
        At most so many chains at a time; the number of processors by default.

    Returns
    -------
    Chains

    Examples
    --------
    >>> from permdist import GoodBad
    >>> model = GoodBad([0.3, 0.1, -0.2] * 10, [1, 0, 0] * 10)
    >>> chains = run_chains(model, draws=500, kernel="relocation", rng=0)
    >>> chains.orders.shape
    (4, 500, 30)
    >>> bool(chains.summary().converged)
    True
    """
    settings = _check(dist, draws, tune, chains, thin, keep, threads)
    problem = problem_of(dist)
    store = None if checkpoint is None else Checkpoint(checkpoint)
    try:
        generator = as_rng(rng)
        pilot, *streams = generator.spawn(settings.chains + 1)
        seed = _digest([stream.bit_generator.state for stream in streams])
        found = None if store is None else store.header()
        name = _name(kernel, problem, pilot, found)
        steps = thin if thin is not None else _default_thin(name, dist.n_items)
        if name == "exact":  # independent draws need neither
            steps, settings = 1, replace(settings, tune=0)
        if store is not None:
            header = {
                "distribution": repr(dist),
                "fingerprint": fingerprint(problem),
                "kernel": name,
                "thin": steps,
                "tune": settings.tune,
                "chains": settings.chains,
                "keep": keep,
                "seed": seed,
            }
            if found is None:
                store.begin(header)
            else:
                _compare(found, header, free_seed=rng is None)
        starts = _starts(problem, start, streams)
        workers = [
            _Worker(number, problem, name, steps, settings, stream, order, store)
            for number, (stream, order) in enumerate(zip(streams, starts, strict=True))
        ]
        for worker in workers:
            worker.resume()
        return _drive(workers, settings, _shown(progress), steps, name, problem)
    finally:
        if store is not None:
            store.close()


@dataclass(frozen=True)
class _Settings:
    draws: int
    tune: int
    chains: int
    keep: str
    threads: int


def _check(
    dist: Any, draws: Any, tune: Any, chains: Any, thin: Any, keep: Any, threads: Any
) -> _Settings:
    if not isinstance(dist, Distribution):
        raise TypeError(f"dist: expected a Distribution, got {type(dist).__name__}")
    if dist.n_items < 2:
        raise ValueError(f"dist: expected at least 2 items, got {dist.n_items}")
    draws = count("draws", draws)
    tune = draws // 2 if tune is None else count("tune", tune, minimum=0)
    chains = count("chains", chains)
    if thin is not None:
        count("thin", thin)
    choice("keep", keep, ("draws", "moments"))
    size = 4.0 * chains * draws * dist.n_items
    limit = MEMORY_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if keep == "draws" and size > limit:
        raise ValueError(
            f"draws: {size / 2**30:.0f} GiB of draws do not fit into memory; "
            "thin more, or use keep='moments'"
        )
    processors = os.cpu_count() or 1
    workers = processors if threads is None else count("threads", threads)
    return _Settings(draws, tune, chains, keep, workers)


def _name(
    kernel: Any, problem: Problem, pilot: np.random.Generator, found: dict[str, Any] | None
) -> str:
    """Write the kernel's name out: a mixture with its shares, or what `auto` chose."""
    if isinstance(kernel, Mapping):
        shares = {str(part): float(share) for part, share in kernel.items()}
        if not shares or not all(np.isfinite(share) and share > 0 for share in shares.values()):
            raise ValueError(f"kernel: expected kernels with positive shares, got {dict(kernel)}")
        total = sum(shares.values())
        name = "+".join(
            part if len(set(shares.values())) == 1 else f"{share / total:.12g} {part}"
            for part, share in shares.items()
        )
    elif isinstance(kernel, str):
        name = kernel
    else:
        raise TypeError(f"kernel: expected a name or a mapping, got {type(kernel).__name__}")
    if name == "auto":
        if found is not None:
            return str(found.get("kernel"))
        if has_exact(problem.dist):
            return "exact"
        return choose_kernel(problem, pilot)
    if name == "exact":
        if not has_exact(problem.dist):
            problem.dist.sample(rng=0)  # says why not
        return name
    usable = applicable(problem)
    for part in parts_of(name):
        if part not in KERNELS:
            options = ["auto", "exact", *KERNELS]
            raise ValueError(
                f"kernel: expected one of {', '.join(options)}, or a mixture such as "
                f"'adjacent+relocation', got {part!r}{hint(part, options)}"
            )
        if part not in usable:
            raise ValueError(
                f"kernel: {part!r} needs items in classes that can change places freely: "
                f"GoodBad over orders; for this distribution there are {', '.join(usable)}"
            )
    return name


def parts_of(name: str) -> dict[str, float]:
    """Read the kernels of a mixture and their shares."""
    parts: dict[str, float] = {}
    for part in name.split("+"):
        share, _, kernel = part.strip().rpartition(" ")
        parts[kernel] = parts.get(kernel, 0.0) + (float(share) if share else 1.0)
    return parts


def _default_thin(name: str, n_items: int) -> int:
    return 1 if name == "exact" else default_thin("+".join(parts_of(name)), n_items)


def _compare(found: dict[str, Any], header: dict[str, Any], *, free_seed: bool) -> None:
    """Refuse to go on with another run's checkpoint."""
    for key, value in header.items():
        if key == "seed" and free_seed:
            continue
        if found.get(key) != value:
            shown = found.get("distribution") if key == "fingerprint" else found.get(key)
            mine = header["distribution"] if key == "fingerprint" else value
            what = "distribution" if key == "fingerprint" else key
            raise ValueError(
                f"checkpoint: it holds a run with {what} {shown}, this run has {mine}; "
                "nothing was overwritten"
            )


def _starts(
    problem: Problem, start: ArrayLike | None, streams: list[np.random.Generator]
) -> list[IntArray]:
    if start is None:
        return [problem.random_start(stream) for stream in streams]
    n = problem.dist.n_items
    orders = check_orders(start, n)
    if orders.shape not in ((n,), (len(streams), n)):
        raise ValueError(
            f"start: expected one order or {len(streams)} orders of {n} items, "
            f"got shape {orders.shape}"
        )
    return list(np.broadcast_to(orders, (len(streams), n)))


def _digest(states: Any) -> str:
    return hashlib.sha256(json.dumps(states, default=_encode).encode()).hexdigest()


@dataclass
class _Worker:
    """One chain: its state, its generator, its draws."""

    number: int
    problem: Problem
    kernel: str
    thin: int
    settings: _Settings
    rng: np.random.Generator
    order: IntArray
    store: Checkpoint | None
    done: int = 0  # draws so far, tuning included
    seconds: float = 0.0
    saved: int = 0
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, kept = self.problem.dist.n_items, self.settings.keep == "draws"
        length = self.settings.draws if kept else 0
        self.orders: IntArray = np.empty((length, n), dtype=np.int32)
        self.values: FloatArray = np.empty(length)
        self.moments = None if kept else Moments.empty(n)
        self.moved = np.zeros((len(KERNELS), 2), dtype=np.int64)
        self.tuned = np.zeros_like(self.moved)
        self.state: State = self.problem.start(self.order)
        self.exact = self.kernel == "exact"
        self.seed = int(self.rng.integers(2**63))
        if not self.exact:
            self.mixture = mixture_of(parts_of(self.kernel))
            self.advance = advancer(self.problem)
        self._pace, self._saved_at = 1, time.perf_counter()

    @property
    def total(self) -> int:
        """All draws to be made, tuning included."""
        return self.settings.draws + self.settings.tune

    @property
    def kept(self) -> int:
        """Draws so far that count."""
        return max(0, self.done - self.settings.tune)

    def slice(self) -> None:
        """Make draws for a tenth of a second or so."""
        begin = time.perf_counter()
        end = self.settings.tune if self.done < self.settings.tune else self.total
        size = min(end - self.done, self._pace)
        if self.exact:
            size = min(end - self.done, EXACT_BLOCK - self.done % EXACT_BLOCK)
        orders, values = self._room(size)
        if self.exact:
            # Each block has a generator of its own, so that the bits do not depend on the slices.
            number, within = divmod(self.done, EXACT_BLOCK)
            stream = np.random.default_rng([self.seed, number])
            block = self.problem.dist.sample(EXACT_BLOCK, stream)[within : within + size]
            orders[:] = block
            values[:] = _log_weights(self.problem.dist, block)
            self.moved[0] += size
        else:
            counts = self.tuned if self.done < self.settings.tune else self.moved
            inputs = self.mixture, self.problem.target, self.state, self.rng
            self.advance(*inputs, self.done, size, self.thin, orders, values, counts)
        if self.done >= self.settings.tune and self.moments is not None:
            self.moments.add(orders, values)
        self.done += size
        took = time.perf_counter() - begin
        self.seconds += took
        if took < SLICE / 2:
            self._pace *= 2
        elif took > SLICE and self._pace > 1:
            self._pace //= 2
        if self.store is not None and (
            self.done == self.total or time.perf_counter() - self._saved_at > 1.0
        ):
            self.save()

    def _room(self, size: int) -> tuple[IntArray, FloatArray]:
        """Give the place for the next draws."""
        if self.moments is None and self.done >= self.settings.tune:
            here = slice(self.kept, self.kept + size)
            return self.orders[here], self.values[here]
        return np.empty((size, self.problem.dist.n_items), dtype=np.int32), np.empty(size)

    def save(self) -> None:
        """Write the draws since the last time, and the state."""
        if self.store is None:
            return
        new = slice(self.saved, self.kept) if self.moments is None else slice(0, 0)
        self.meta |= {
            "done": self.done,
            "seconds": self.seconds,
            "rng": self.rng.bit_generator.state,
        }
        arrays = {f"state {key}": value for key, value in self.state._asdict().items()}
        arrays |= {"moved": self.moved, "tuned": self.tuned}
        if self.moments is not None:
            arrays |= {f"moments {key}": value for key, value in vars(self.moments).items()}
        self.store.save(self.number, self.meta, arrays, self.orders[new], self.values[new])
        self.saved, self._saved_at = self.kept, time.perf_counter()

    def resume(self) -> None:
        """Take over what a checkpoint holds."""
        loaded = None if self.store is None else self.store.load(self.number)
        if loaded is None:
            return
        self.meta, arrays, raw_orders, raw_values = loaded
        n = self.problem.dist.n_items
        for key, value in self.state._asdict().items():
            value[...] = arrays[f"state {key}"]
        self.moved[...], self.tuned[...] = arrays["moved"], arrays["tuned"]
        self.rng.bit_generator.state = self.meta["rng"]
        self.done, self.seconds = int(self.meta["done"]), float(self.meta["seconds"])
        if self.moments is not None:
            for key in vars(self.moments):
                setattr(self.moments, key, arrays[f"moments {key}"])
            if self.done > self.total:
                raise ValueError(
                    f"draws: the checkpoint has moments of {self.kept} draws already, "
                    f"more than {self.settings.draws}"
                )
            return
        stored = np.frombuffer(raw_orders, dtype=np.int32).reshape(-1, n)
        values = np.frombuffer(raw_values)
        length = min(len(stored), self.settings.draws)
        self.orders[:length], self.values[:length] = stored[:length], values[:length]
        self.saved = len(stored)
        self.done = min(self.done, self.total)


def _log_weights(dist: Distribution, orders: IntArray) -> FloatArray:
    function = getattr(dist, "log_weight", dist.log_prob)
    return np.asarray(function(orders))


def _drive(
    workers: list[_Worker],
    settings: _Settings,
    shown: bool,
    thin: int,
    name: str,
    problem: Problem,
) -> Chains:
    """Run all chains to their ends, or to Ctrl-C, and collect them."""
    stop = threading.Event()
    # Chains take turns, so that all are equally far when they are looked at or stopped.
    waiting = deque(worker for worker in workers if worker.done < worker.total)

    def run() -> None:
        while not stop.is_set():
            try:
                worker = waiting.popleft()
            except IndexError:
                return
            worker.slice()
            if worker.done < worker.total:
                waiting.append(worker)

    # The first slice compiles, if anything has to be: once, not in each thread.
    begin = time.perf_counter()
    interrupted = False
    try:
        if waiting:
            waiting[0].slice()
            waiting = deque(worker for worker in workers if worker.done < worker.total)
        threads = min(settings.threads, len(workers))
        with ThreadPoolExecutor(threads) as pool:
            futures = [pool.submit(run) for _ in range(threads)]
            try:
                with _Bar(workers, shown, name) as bar:
                    while not wait(futures, timeout=SLICE, return_when=FIRST_EXCEPTION).done >= {
                        *futures
                    }:
                        bar.update()
                        if any(future.done() and future.exception() for future in futures):
                            break
                    bar.update()
            finally:
                stop.set()
        for future in futures:
            future.result()
    except KeyboardInterrupt:
        interrupted = True
        for worker in workers:
            worker.save()
    kept = min(worker.kept for worker in workers)
    if interrupted and kept == 0:
        raise KeyboardInterrupt
    moved = np.array([worker.moved.sum(axis=0) for worker in workers])
    kept_draws = settings.keep == "draws"
    shape = (0 if not kept_draws else kept, problem.dist.n_items)
    return Chains(
        orders=np.stack([worker.orders[: shape[0]] for worker in workers]),
        log_weight=np.stack([worker.values[: shape[0]] for worker in workers]),
        names=problem.dist.names,
        kernel=name,
        thin=thin,
        tune=settings.tune,
        accept_rate=moved[:, 1] / np.maximum(1, moved[:, 0]),
        seconds=max(time.perf_counter() - begin, 1e-9),
        complete=not interrupted,
        normaliser=problem.normaliser,
        dist=problem.dist,
        moments=[worker.moments for worker in workers if worker.moments is not None],
    )


def _shown(progress: bool | None) -> bool:
    return sys.stderr.isatty() if progress is None else bool(progress)


class _Bar:
    """A progress bar with speed, acceptance and the worst R-hat so far; nothing if not shown."""

    def __init__(self, workers: list[_Worker], shown: bool, name: str) -> None:
        self.workers, self.shown, self.name = workers, shown, name
        self._looked = 0.0
        self._rhat = np.nan

    def __enter__(self) -> _Bar:
        if self.shown:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                Progress,
                TaskProgressColumn,
                TextColumn,
                TimeRemainingColumn,
            )

            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[told]}"),
                console=Console(file=sys.stderr),
            )
            total = sum(worker.total for worker in self.workers)
            self._before = sum(worker.done for worker in self.workers)
            self._begin = time.perf_counter()
            self._task = self._progress.add_task(
                f"{len(self.workers)} chains, {self.name}", total=total, told=""
            )
            self._progress.start()
        return self

    def update(self) -> None:
        """Show how far the chains are."""
        if not self.shown:
            return
        done = sum(worker.done for worker in self.workers)
        now = time.perf_counter()
        if now - self._looked > 1.0 or done == sum(worker.total for worker in self.workers):
            self._looked, self._rhat = now, _rhat_so_far(self.workers)
        speed = (done - self._before) / max(now - self._begin, 1e-9)
        moved = sum(worker.moved.sum(axis=0) + worker.tuned.sum(axis=0) for worker in self.workers)
        told = f"{speed:,.0f} draws/s, {moved[1] / max(1, moved[0]):.0%} moved"
        told += "" if np.isnan(self._rhat) else f", R-hat {self._rhat:.3f}"
        self._progress.update(self._task, completed=done, told=told)

    def __exit__(self, *details: object) -> None:
        if self.shown:
            self._progress.stop()


def _rhat_so_far(workers: list[_Worker], most: int = 400) -> float:
    """Give the worst split R-hat of log-weights and of some items' ranks, from some draws."""
    if workers[0].moments is not None:
        tables = [worker.moments.block_means() for worker in workers if worker.moments is not None]
        length = min(map(len, tables))
        table = np.stack([table[:length] for table in tables])
    else:
        kept = min(worker.kept for worker in workers)
        at = np.unique(np.linspace(0, kept - 1, min(kept, most)).astype(int)) if kept else []
        if len(at) < 8:
            return np.nan
        orders = np.stack([worker.orders[at] for worker in workers])
        values = np.stack([worker.values[at] for worker in workers])
        items = np.unique(np.linspace(0, orders.shape[2] - 1, 12).astype(int))
        table = np.concatenate([order_to_ranks(orders)[..., items], values[..., None]], axis=2)
    half = table.shape[1] // 2
    if half < 4:
        return np.nan
    split = np.concatenate([table[:, :half], table[:, half : 2 * half]]).astype(float)
    within = split.var(axis=1, ddof=1).mean(axis=0)
    between = split.mean(axis=1).var(axis=0, ddof=1)
    varying = within > 0
    if not varying.any():
        return np.nan
    ratio = between[varying] / within[varying]
    return float(np.sqrt((half - 1) / half + ratio).max())
