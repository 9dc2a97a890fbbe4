"""Posterior draws and what is known about the run that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.posterior.problem import Problem


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws from a posterior distribution.

    Parameters
    ----------
    problem : Problem
        What was drawn from.
    draws : array of float, shape (chains, draws, problem.size)
    log_density : array of float, shape (chains, draws)
        The logarithm of prior times likelihood of each draw, not normalized.
    seconds : float
        How long the chains ran, without compiling.
    tune : int
        The number of draws per chain that were discarded at the beginning.
    complete : bool
        Whether the run came to its end; False after Ctrl-C.
    """

    problem: Problem
    draws: FloatArray
    log_density: FloatArray
    seconds: float
    tune: int
    complete: bool
