"""`run_chains`: the loop around the kernels, with threads, progress, checkpoints and Ctrl-C."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng, choice, count
from permdist._kernels import seconds_without_compiling
from permdist._text import hint
from permdist.distributions import Distribution
from permdist.rankings import check_orders
from permdist.samplers.auto import applicable, choose_kernel, default_thin
from permdist.samplers.chain import digest, drive, open_checkpoint, start_or_resume
from permdist.samplers.chains import Chains
from permdist.samplers.kernels import KERNELS, RESERVED, parts_of
from permdist.samplers.orders import OrderChain
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
        A file to write draws and states to. A run that finds its own checkpoint there continues
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
    n_jobs = _check(dist, draws, tune, chains, thin, keep, n_jobs)
    target = target_of(dist)
    with open_checkpoint(checkpoint) as journal:
        pilot, *streams = as_rng(rng).spawn(chains + 1)
        found: dict[str, Any] = {} if journal is None else journal.header or {}
        tuned = draws // 2 if tune is None else tune
        name = _name(kernel, dist, target, pilot, found, chains * (draws + tuned))
        # The defaults are those of the earlier run.
        steps = found.get("thin", _default_thin(name, dist.n_items)) if thin is None else thin
        tuned = found.get("tune", tuned) if tune is None else tune
        if name == "exact":  # independent draws need neither
            steps, tuned = 1, 0
        facts = {
            "kind": "orders",
            "distribution": fingerprint(target),
            "kernel": name,
            "thin": steps,
            "tune": tuned,
            "chains": chains,
            "keep": keep,
            "seed": digest([stream.bit_generator.state for stream in streams]),
            "start": None if start is None else digest(np.asarray(start)),
        }
        starts = _starts(target, start, streams, exact=name == "exact")
        length = draws if keep == "draws" else 0
        orders = np.empty((chains, length, dist.n_items), dtype=np.int32)
        values = np.empty((chains, length))
        model: dict[str, Any] = {"dist": dist, "target": target, "kernel": name, "thin": steps}
        parts = zip(orders, values, streams, starts, strict=True)
        workers = [
            OrderChain(number, *out, draws, tuned, stream, journal, start=begin, **model)
            for number, (*out, stream, begin) in enumerate(parts)
        ]
        start_or_resume(journal, facts, workers, free=["seed"] if rng is None else [])
        if keep == "moments" and max(worker.done for worker in workers) > draws + tuned:
            raise ValueError(
                f"draws: the checkpoint has moments of more than {draws} draws already"
            )
        begun = seconds_without_compiling()
        complete = drive(workers, n_jobs, name, progress)
        before = max(worker.before for worker in workers)
        seconds = max(before + seconds_without_compiling() - begun, 1e-9)
    kept = min(worker.kept for worker in workers)
    moved = np.array([worker.moved.sum(axis=0) for worker in workers])
    return Chains(
        orders=orders[:, :kept],
        log_weight=values[:, :kept],
        names=dist.names,
        kernel=name,
        thin=steps,
        tune=tuned,
        accept_rate=moved[:, 1] / np.maximum(1, moved[:, 0]),
        seconds=seconds,
        complete=complete,
        normalizer=target.normalizer,
        dist=dist,
        moments=[worker.moments for worker in workers if worker.moments is not None],
    )


def _check(dist: Any, draws: Any, tune: Any, chains: Any, thin: Any, keep: Any, n_jobs: Any) -> int:
    """Check the arguments of `run_chains`; return the number of threads."""
    if not isinstance(dist, Distribution):
        raise TypeError(f"dist: expected a Distribution, got {type(dist).__name__}")
    if dist.n_items < 2:
        raise ValueError(f"dist: expected at least 2 items, got {dist.n_items}")
    count("draws", draws)
    count("chains", chains)
    if tune is not None:
        count("tune", tune, minimum=0)
    if thin is not None:
        count("thin", thin)
    choice("keep", keep, ("draws", "moments"))
    return (os.cpu_count() or 1) if n_jobs is None else count("n_jobs", n_jobs)


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


def _name(
    kernel: Any,
    dist: Distribution,
    target: Target,
    pilot: np.random.Generator,
    found: dict[str, Any],
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
    if name == "auto" and "kernel" in found:
        name = str(found["kernel"])
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
