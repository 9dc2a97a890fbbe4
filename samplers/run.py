"""`run_chains`: the loop around the kernels, with threads, progress, checkpoints and Ctrl-C."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._chains import drive
from permdist._check import as_rng, choice, count
from permdist._compiling import seconds_without_compiling
from permdist._text import hint
from permdist.distributions import Distribution
from permdist.rankings import check_orders
from permdist.samplers.auto import applicable, choose_kernel, default_thin
from permdist.samplers.chains import Chains
from permdist.samplers.checkpoint import Checkpoint, encode, fingerprint
from permdist.samplers.kernels import KERNELS, RESERVED, parts_of
from permdist.samplers.progress import Bar
from permdist.samplers.worker import Settings, Worker
from permdist.targets import Target, target_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

    from permdist._typing import IntArray, RandomState


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
    n_jobs: int | None = None,
) -> Chains:
    """Run Markov chains that converge to a given distribution.

    Chains start at random orders and run in threads; the result does not depend on their number.
    The same `rng` gives the same bits, also if the run was killed and continued from its
    checkpoint. Ctrl-C returns the draws so far, once every chain has drawn something.

    Parameters
    ----------
    dist : Distribution
        Any distribution over orders. The models of the library, `WeightedOrders` with compiled
        functions, and distributions with a compiled target of their own (see `permdist.targets`)
        take nanoseconds per step; others evaluate `log_prob` at every step.
    draws : int
        The number of draws per chain.
    tune : int, optional
        The number of draws to discard at the beginning; half of `draws` by default, of the first
        run if there is a checkpoint.
    chains : int
        The number of chains.
    kernel : str or mapping
        ``"adjacent"`` swaps two neighbors, ``"transposition"`` any two items; ``"relocation"``
        draws a new position for an item from its full conditional; ``"flip"`` exchanges items of
        neighboring blocks of equal labels, ``"block"`` draws new positions for all items of a
        class at once, class after class (both for `GoodBad` over orders); ``"exact"`` draws
        independently; `register_kernel` adds others. ``"adjacent+relocation"`` takes both equally
        often, ``{"adjacent": 9, "relocation": 1}`` in the given proportions. ``"auto"`` is exact
        where that is affordable, otherwise the kernel with the most effective draws in trials
        that take a third of the run at most, and for a short run the one that usually wins;
        ``chains.kernel`` says which.
    thin : int, optional
        The number of steps between two draws; about one sweep over the items by default.
    rng : int, Generator or None
    progress : bool, optional
        Whether to show speed, acceptance rate and the worst R-hat so far; by default on a terminal.
    checkpoint : path, optional
        A folder to write draws and states to. A run that finds its own checkpoint there continues
        from it; it may ask for more draws than before. Defaults of `kernel`, `thin` and `tune`
        are then those of the first run, and the bits those of a single run with these.
    start : array of int, shape (n,) or (chains, n), optional
        The orders to start from; random ones by default.
    keep : {"draws", "moments"}
        Keep all draws, or only rank marginals and the moments of ranks and log-weights, in memory
        that does not grow with the number of draws.
    n_jobs : int, optional
        The number of chains to run at the same time; the number of processors by default.

    Returns
    -------
    Chains

    Examples
    --------
    >>> from permdist import GoodBad
    >>> model = GoodBad([0.3, 0.1, -0.2] * 10, [1, 0, 0] * 10)
    >>> chains = run_chains(model, draws=1000, kernel="relocation", thin=60, rng=0)
    >>> chains.orders.shape
    (4, 1000, 30)
    >>> bool(chains.summary().converged)
    True
    """
    settings = _check(dist, draws, tune, chains, thin, keep, n_jobs)
    target = target_of(dist)
    store = None if checkpoint is None else Checkpoint(checkpoint)
    try:
        generator = as_rng(rng)
        pilot, *streams = generator.spawn(settings.chains + 1)
        seed = _digest([stream.bit_generator.state for stream in streams])
        found = None if store is None else store.header()
        planned = settings.chains * (settings.draws + settings.tune)
        name = _name(kernel, dist, target, pilot, found, planned)
        steps = thin if thin is not None else _default_thin(name, dist.n_items)
        if found is not None:  # the defaults are those of the earlier run
            steps = int(found.get("thin", steps)) if thin is None else steps
            earlier = int(found.get("tune", settings.tune))
            settings = replace(settings, tune=earlier if tune is None else settings.tune)
        if name == "exact":  # independent draws need neither
            steps, settings = 1, replace(settings, tune=0)
        if store is not None:
            header = {
                "distribution": repr(dist),
                "fingerprint": fingerprint(target),
                "kernel": name,
                "thin": steps,
                "tune": settings.tune,
                "chains": settings.chains,
                "keep": keep,
                "seed": seed,
                "start": None if start is None else _digest(np.asarray(start)),
            }
            if found is None:
                store.begin(header)
            else:
                _compare(found, header, free_seed=rng is None)
        starts = _starts(target, start, streams, exact=name == "exact")
        length = settings.draws if keep == "draws" else 0
        orders = np.empty((settings.chains, length, dist.n_items), dtype=np.int32)
        values = np.empty((settings.chains, length))
        parts = zip(streams, starts, orders, values, strict=True)
        workers = [
            Worker(number, dist, target, name, steps, settings, store, *part)
            for number, part in enumerate(parts)
        ]
        for worker in workers:
            worker.resume()
        begin = seconds_without_compiling()
        complete = drive(workers, settings.n_jobs, Bar(workers, _shown(progress), name))
        before = max(worker.before for worker in workers)
        seconds = max(before + seconds_without_compiling() - begin, 1e-9)
    finally:
        if store is not None:
            store.close()
    kept = min(worker.kept for worker in workers)
    moved = np.array([worker.moved.sum(axis=0) for worker in workers])
    return Chains(
        orders=orders[:, :kept],
        log_weight=values[:, :kept],
        names=dist.names,
        kernel=name,
        thin=steps,
        tune=settings.tune,
        accept_rate=moved[:, 1] / np.maximum(1, moved[:, 0]),
        seconds=seconds,
        complete=complete,
        normalizer=target.normalizer,
        dist=dist,
        moments=[worker.moments for worker in workers if worker.moments is not None],
    )


def _check(
    dist: Any, draws: Any, tune: Any, chains: Any, thin: Any, keep: Any, n_jobs: Any
) -> Settings:
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
    processors = os.cpu_count() or 1
    workers = processors if n_jobs is None else count("n_jobs", n_jobs)
    return Settings(draws, tune, chains, keep, workers)


def _name(
    kernel: Any,
    dist: Distribution,
    target: Target,
    pilot: np.random.Generator,
    found: dict[str, Any] | None,
    draws: int,
) -> str:
    """Return the full name of a kernel: a mixture with its shares, or what `auto` chose."""
    if isinstance(kernel, Mapping):
        numbers = all(isinstance(share, int | float | np.number) for share in kernel.values())
        if not kernel or not numbers or not all(0 < share < np.inf for share in kernel.values()):
            raise ValueError(f"kernel: expected kernels with positive shares, got {dict(kernel)}")
        shares = {str(part): float(share) for part, share in kernel.items()}
        total = sum(shares.values())
        name = "+".join(
            part if len(set(shares.values())) == 1 else f"{share / total:.12g} {part}"
            for part, share in shares.items()
        )
    elif isinstance(kernel, str):
        name = kernel
    else:
        raise TypeError(f"kernel: expected a name or a mapping, got {type(kernel).__name__}")
    if name == "auto" and found is not None:
        name = str(found.get("kernel"))
    if name == "auto":
        return "exact" if target.exact else choose_kernel(target, pilot, draws)
    if name == "exact":
        if not target.exact:
            dist.sample(rng=0)  # raises the error that says why not
        return name
    check_kernel(name, target)
    return name


def check_kernel(name: str, target: Target) -> None:
    """Refuse names of kernels that do not exist or cannot be used for a target."""
    usable = applicable(target)
    for part in parts_of(name):
        if part in RESERVED:
            raise ValueError(f"kernel: {part!r} cannot be part of a mixture, got {name!r}")
        if part not in KERNELS:
            options = [*RESERVED, *KERNELS]
            raise ValueError(
                f"kernel: expected one of {', '.join(options)}, or a mixture such as "
                f"'adjacent+relocation', got {part!r}{hint(part, options)}"
            )
        if part not in usable:
            what = "items in classes that can change places freely"
            if KERNELS[part].needs_pair_scores:
                what = "a log-weight that adds up over pairs of items of different classes"
            raise ValueError(
                f"kernel: {part!r} needs {what}, as in GoodBad over orders; for this distribution "
                f"use one of {', '.join(usable)}"
            )


def _default_thin(name: str, n_items: int) -> int:
    return 1 if name == "exact" else default_thin(name, n_items)


def _compare(found: dict[str, Any], header: dict[str, Any], *, free_seed: bool) -> None:
    """Check that a checkpoint belongs to this run."""
    for key, value in header.items():
        if key == "distribution" or (key == "seed" and free_seed):
            continue  # the fingerprint tells distributions apart, `repr` need not
        if found.get(key) != value:
            shown = found.get("distribution") if key == "fingerprint" else found.get(key)
            mine = header["distribution"] if key == "fingerprint" else value
            what = "distribution" if key == "fingerprint" else key
            if key in ("seed", "start"):
                raise ValueError(
                    f"checkpoint: it holds a run with another {key}; nothing was overwritten"
                )
            raise ValueError(
                f"checkpoint: it holds a run with {what} {shown}, this run has {mine}; "
                "nothing was overwritten"
            )


def _starts(
    target: Target,
    start: ArrayLike | None,
    streams: list[np.random.Generator],
    *,
    exact: bool,
) -> list[IntArray]:
    n = target.n_items
    if exact:  # independent draws need no start
        return [np.arange(n)] * len(streams)
    if start is None:
        return [target.random_start(stream) for stream in streams]
    orders = check_orders(start, n, name="start")
    if orders.shape not in ((n,), (len(streams), n)):
        raise ValueError(
            f"start: expected one order or {len(streams)} orders of {n} items, "
            f"got shape {orders.shape}"
        )
    if np.min(target.log_weights(orders)) == -np.inf:
        raise ValueError("start: expected orders of positive probability")
    return list(np.broadcast_to(orders, (len(streams), n)))


def _digest(states: Any) -> str:
    return hashlib.sha256(json.dumps(states, default=encode).encode()).hexdigest()


def _shown(progress: bool | None) -> bool:
    return sys.stderr.isatty() if progress is None else bool(progress)
