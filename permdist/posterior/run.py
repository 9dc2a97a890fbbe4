"""`sample`: chains of posterior draws in threads, with progress, checkpoints and Ctrl-C."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng, count
from permdist._kernels import seconds_without_compiling
from permdist.posterior.families import problem_of
from permdist.posterior.result import Posterior
from permdist.samplers.chain import Chain, digest, drive, open_checkpoint, start_or_resume

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from permdist._typing import FloatArray, RandomState
    from permdist.posterior.problem import Problem

SHOWN = 12  # parameters that the R-hat of the progress bar is computed from
TRIAL = 3  # transitions that tell one posterior from another in a checkpoint


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
        A file to write draws and states to. A run that finds its own checkpoint there continues
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
    with open_checkpoint(checkpoint) as journal:
        found: dict[str, Any] = {} if journal is None else journal.header or {}
        if tune is None:  # the default is that of the earlier run
            tune = found.get("tune", problem.default_tune(draws))
        table, values = np.empty((chains, draws, problem.size)), np.empty((chains, draws))
        parts = zip(table, values, streams, strict=True)
        workers = [
            PosteriorChain(number, *out, draws, tune, stream, journal, problem=problem)
            for number, (*out, stream) in enumerate(parts)
        ]
        facts = {
            "kind": "parameters",
            "problem": problem.family,
            "posterior (data, prior or options)": fingerprint(problem),
            "tune": tune,
            "chains": chains,
            "seed": digest([stream.bit_generator.state for stream in streams]),
        }
        start_or_resume(journal, facts, workers, free=["seed"] if rng is None else [])
        begin = seconds_without_compiling()
        complete = drive(workers, threads, problem.family, progress)
        before = max(worker.before for worker in workers)
        seconds = max(before + seconds_without_compiling() - begin, 1e-9)
    kept = min(worker.kept for worker in workers)
    return Posterior(
        problem=problem,
        draws=table[:, :kept],
        log_density=values[:, :kept],
        seconds=seconds,
        tune=tune,
        complete=complete,
    )


class PosteriorChain(Chain):
    """One chain of parameters.

    Parameters
    ----------
    *args
        Those of `Chain`.
    problem : Problem
    """

    def __init__(self, *args: Any, problem: Problem) -> None:
        super().__init__(*args)
        self.problem = problem
        self._state = np.array(problem.start(self.rng), dtype=np.float64)
        if self._state.ndim != 1:
            raise ValueError(
                f"{type(problem).__name__}.start: expected a vector, got shape {self._state.shape}"
            )

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the array that the next draw depends on."""
        return {"state": self._state}

    def advance(self, draws: NDArray[Any], values: FloatArray, stopped: Callable[[], bool]) -> bool:
        """Make the next draws; `stopped` makes no difference to them."""
        del stopped
        self._state = self.problem.advance(self._state, draws, values, self.rng)
        if not np.isfinite(values).all() or not np.isfinite(draws).all():
            raise ValueError(
                f"{type(self.problem).__name__}.advance: expected finite draws and log-densities, "
                f"got others in chain {self.number}"
            )
        return True

    def quantities(self, at: NDArray[Any]) -> FloatArray:
        """Return some parameters and the log-density of some draws."""
        places = np.unique(np.linspace(0, self.problem.size - 1, SHOWN).astype(int))
        return np.column_stack([self.draws[at][:, places], self.values[at]])


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
