"""The bootstrap: ballots or clusters drawn with replacement, and the fit repeated."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from permdist._check import choice, count
from permdist._progress import tracked
from permdist._result import Result, block, facts, note
from permdist._text import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from permdist._typing import FloatArray, RandomState
    from permdist.ballots import Ballots
    from permdist.inference.results import Fit

# Replicates that one thread does in one go.
CHUNK = 25


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap(Result):
    """Estimates from resampled ballots.

    Attributes
    ----------
    parameters : array of float, shape (replicates, p)
    scores : array of float, shape (replicates, n)
        Each row adds up to 0.
    failed : int
        Replicates without an estimate (an item of them never lost, say), which are left out.
    by : {"ballot", "cluster"}
    """

    parameters: FloatArray
    scores: FloatArray
    failed: int
    by: str

    def to_frame(self) -> pd.DataFrame:
        """Return the scores as a data frame, a row per replicate and a column per item number."""
        import pandas as pd

        return pd.DataFrame(self.scores).rename_axis("replicate")

    def _repr_html_(self) -> str:
        left = note("The scores of every replicate: to_frame().")
        return block(repr(self), facts({"failed": self.failed}), left)

    def __repr__(self) -> str:
        return f"Bootstrap({plural(len(self.scores), 'replicate')} by {self.by})"


def draw(
    fit: Fit,
    replicates: int,
    *,
    by: str | None,
    rng: RandomState,
    n_jobs: int,
    progress: bool,
) -> Bootstrap:
    """Repeat a fit; parameters as in `Fit.bootstrap`."""
    from permdist.inference.duels import Duels
    from permdist.inference.fit import REFIT_TOL, refit

    replicates = count("replicates", replicates, minimum=2)
    ballots = fit.ballots
    by = by or ("ballot" if ballots.clusters is None else "cluster")
    choice("by", by, ("ballot", "cluster"))
    if by == "cluster" and ballots.clusters is None:
        raise ValueError("by: the ballots have no clusters")
    if isinstance(rng, np.random.Generator):
        seeds = rng.bit_generator.seed_seq.spawn(replicates)  # type: ignore[attr-defined]
    else:
        seeds = np.random.SeedSequence(rng).spawn(replicates)

    workers = (os.cpu_count() or 1) if n_jobs == -1 else count("n_jobs", n_jobs)

    duels = Duels.of(fit)

    def some(few: list[np.random.SeedSequence]) -> list[FloatArray | None]:
        weights = np.array([
            resampled(np.random.default_rng(seed), ballots, by) for seed in few
        ])  # fmt: skip
        if duels is None:
            return [refit(fit, row) for row in weights]
        parameters, good = duels.refit(fit.parameters, fit.n_items, weights, REFIT_TOL)
        return [parameters[k] if good[k] else refit(fit, weights[k]) for k in range(len(few))]

    chunks = [seeds[start : start + CHUNK] for start in range(0, replicates, CHUNK)]
    with ThreadPoolExecutor(workers) as pool:
        results: Iterable[list[FloatArray | None]] = pool.map(some, chunks)
        if progress:
            results = tracked(results, "bootstrap", len(chunks))
        found = [each for few in results for each in few]
    kept = [each for each in found if each is not None]
    failed = replicates - len(kept)
    if len(kept) < 2:
        raise ValueError(
            "bootstrap: no estimate exists in nearly all replicates; set a prior or use errors of "
            "another kind"
        )
    if failed:
        warnings.warn(
            f"bootstrap: no estimate exists in {failed} of {replicates} replicates, which are left "
            "out; set a prior to keep them",
            stacklevel=3,
        )
    parameters = np.array(kept)
    n = fit.n_items
    scores = np.array([fit.likelihood.split(row)[0][:n] for row in kept])
    return Bootstrap(parameters, scores - scores.mean(axis=1)[:, None], failed, by)


def resampled(generator: np.random.Generator, ballots: Ballots, by: str) -> FloatArray:
    """Return the weights of ballots in a sample drawn with replacement.

    Ballots that were counted together are drawn one by one; see `Ballots.units`.
    """
    if by == "cluster":
        numbers = ballots.cluster_numbers
        groups = int(numbers.max()) + 1
        drawn = np.bincount(generator.integers(groups, size=groups), minlength=groups)
        return ballots.weights * drawn[numbers]
    counts, unit = ballots.units()
    total = counts.sum()
    return generator.multinomial(total, counts / total) * unit
