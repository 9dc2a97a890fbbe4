"""`sample`: chains of posterior draws in threads, with progress, checkpoints and Ctrl-C."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._chains import drive, worst_rhat
from permdist._check import as_rng, count
from permdist._compiling import seconds_without_compiling
from permdist._progress import live_bar
from permdist.posterior.chain import Chain
from permdist.posterior.families import problem_of
from permdist.posterior.result import Posterior
from permdist.samplers.checkpoint import Checkpoint, encode

if TYPE_CHECKING:
    from pathlib import Path

    from permdist._typing import RandomState
    from permdist.posterior.problem import Problem

# The files of a chain in a checkpoint, and what they are.
KIND, PARTS = "parameters", ("draws", "log_density")
# R-hat is shown for this many parameters and draws at most.
SHOWN, MOST = 12, 400
# Transitions that tell one posterior from another in a checkpoint.
TRIAL = 3


def sample(
    model: Any,
    data: Any = None,
    prior: Any = None,
    draws: int = 1000,
    tune: int | None = None,
    chains: int = 4,
    rng: RandomState = None,
    *,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Posterior:
    """Draw from the posterior distribution of a model's parameters.

    Chains start at points that are spread wider than the posterior, and run in threads. The same
    `rng` gives the same bits on any number of threads, also if the run was killed and continued
    from its checkpoint. Ctrl-C returns the draws so far, once every chain has drawn something.

    Parameters
    ----------
    model : type, Distribution, Ranker or Problem
        What is estimated: a class such as `PlackettLuce`, `DavidsonLuce` or `GaussianScores`, a
        model that was fitted (of `PlackettLuce` and `DavidsonLuce` its ballots are the data unless
        others are given, with its features, offset and half-life), a learner such as
        ``MLE(C=0.1)``, or a `permdist.posterior.Problem` of your own.
    data : Ballots, Queries, or what makes them, optional
        What was observed. Without data, the posterior is the prior. Ballots are taken as
        independent; those with clusters are refused.
    prior : Prior, float or None
        See `permdist.posterior.priors`; a number is the precision of a normal prior.
    draws : int
        The number of draws per chain.
    tune : int, optional
        The number of draws to discard at the beginning; by default what the family needs.
    chains : int
        The number of chains.
    rng : int, Generator or None
    progress : bool, optional
        Whether to show speed and the worst R-hat so far; by default on a terminal.
    checkpoint : path, optional
        A folder to write draws and states to. A run that finds its own checkpoint there continues
        from it; it may ask for more draws than before. The default of `tune` is then that of the
        first run, and the bits are those of a single run with it.
    n_jobs : int, optional
        The number of chains to run at the same time; the number of processors by default.
    **options
        Of the family, such as ``features=`` for `PlackettLuce`.

    Returns
    -------
    Posterior

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> ballots = [[0, 1, 2], [1, 0, 2], [0, 2, 1]]
    >>> posterior = sample(PlackettLuce, ballots, prior=1.0, draws=200, rng=0)
    >>> posterior.draws.shape
    (4, 200, 3)
    """
    draws, chains = count("draws", draws), count("chains", chains)
    threads = (os.cpu_count() or 1) if n_jobs is None else count("n_jobs", n_jobs)
    if tune is not None:
        tune = count("tune", tune, minimum=0)
    streams = as_rng(rng).spawn(chains)
    problem = problem_of(model, data, prior, **options)
    store = None if checkpoint is None else Checkpoint(checkpoint, PARTS, KIND)
    try:
        found = None if store is None else store.header()
        discarded = problem.default_tune(draws) if tune is None else tune
        if found is not None and tune is None:  # the default is that of the earlier run
            discarded = int(found.get("tune", discarded))
        if store is not None:
            header = {
                "kind": KIND,
                "problem": problem.family,
                "fingerprint": fingerprint(problem),
                "tune": discarded,
                "chains": chains,
                "seed": _digest([stream.bit_generator.state for stream in streams]),
            }
            if found is None:
                store.begin(header)
            else:
                _compare(found, header, free_seed=rng is None)
        table, values = np.empty((chains, draws, problem.size)), np.empty((chains, draws))
        parts = zip(streams, table, values, strict=True)
        workers = [
            Chain(number, problem, discarded, store, *part) for number, part in enumerate(parts)
        ]
        for worker in workers:
            worker.resume()
        begin = seconds_without_compiling()
        complete = drive(workers, threads, _Bar(workers, progress))
        before = max(worker.before for worker in workers)
        seconds = max(before + seconds_without_compiling() - begin, 1e-9)
    finally:
        if store is not None:
            store.close()
    kept = min(worker.kept for worker in workers)
    return Posterior(
        problem=problem,
        draws=table[:, :kept],
        log_density=values[:, :kept],
        seconds=seconds,
        tune=discarded,
        complete=complete,
    )


def fingerprint(problem: Problem) -> str:
    """Return a digest of what the draws of a posterior depend on.

    Parameters
    ----------
    problem : Problem
        Some transitions are made, so that priors and options count, too.
    """
    variables = [(each.name, each.shape, each.dims) for each in problem.variables]
    facts: list[Any] = [problem.family, variables]
    for name, (dims, value) in problem.observed.items():
        array = np.asarray(value)
        raw = array.tobytes() if array.dtype != object else repr(array.tolist()).encode()
        facts.append([name, dims, array.shape, hashlib.sha256(raw).hexdigest()])
    rng = np.random.default_rng(0)
    draws, values = np.empty((TRIAL, problem.size)), np.empty(TRIAL)
    problem.advance(problem.start(rng), draws, values, rng)
    # In few digits, as another machine may round otherwise.
    facts.append([f"{value:.5g}" for value in [*draws.ravel().tolist(), *values.tolist()]])
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()


def _digest(states: Any) -> str:
    return hashlib.sha256(json.dumps(states, default=encode).encode()).hexdigest()


def _compare(found: dict[str, Any], header: dict[str, Any], *, free_seed: bool) -> None:
    """Check that a checkpoint belongs to this run."""
    for key, value in header.items():
        if (key == "seed" and free_seed) or found.get(key) == value:
            continue
        kept = "nothing was overwritten"
        if key == "seed":
            raise ValueError(f"checkpoint: it holds a run with another seed; {kept}")
        if key == "fingerprint":
            raise ValueError(
                f"checkpoint: it holds a run with other data, prior or options; {kept}"
            )
        raise ValueError(
            f"checkpoint: it holds a run with {key} {found.get(key)}, this run has {value}; {kept}"
        )


class _Bar:
    """A progress bar with speed and the worst R-hat so far; nothing if not shown."""

    def __init__(self, chains: list[Chain], progress: bool | None) -> None:
        self.chains = chains
        self.shown = sys.stderr.isatty() if progress is None else bool(progress)
        self._open = contextlib.ExitStack()
        self._looked, self._rhat = 0.0, np.nan

    def __enter__(self) -> _Bar:
        if self.shown:
            self._before = sum(chain.done for chain in self.chains)
            self._begin = time.perf_counter()
            text = f"{len(self.chains)} chains, {self.chains[0].problem.family}"
            total = sum(chain.total for chain in self.chains)
            self._bar = self._open.enter_context(live_bar(text, total))
        return self

    def __exit__(self, *details: object) -> None:
        self._open.close()

    def update(self) -> None:
        """Show the progress of the chains."""
        if not self.shown:
            return
        done, now = sum(chain.done for chain in self.chains), time.perf_counter()
        if now - self._looked > 1.0 or done == sum(chain.total for chain in self.chains):
            self._looked, self._rhat = now, _rhat_so_far(self.chains)
        speed = (done - self._before) / max(now - self._begin, 1e-9)
        told = f"{speed:,.0f} draws/s"
        told += "" if np.isnan(self._rhat) else f", R-hat {self._rhat:.3f}"
        self._bar.update(done, told)


def _rhat_so_far(chains: list[Chain]) -> float:
    """Return the worst split R-hat of log-densities and of some parameters, from some draws."""
    kept = min(chain.kept for chain in chains)
    if kept < 8:
        return np.nan
    at = np.unique(np.linspace(0, kept - 1, min(kept, MOST)).astype(int))
    places = np.unique(np.linspace(0, chains[0].problem.size - 1, SHOWN).astype(int))
    parts = [np.column_stack([chain.draws[at][:, places], chain.values[at]]) for chain in chains]
    return worst_rhat(np.stack(parts))
