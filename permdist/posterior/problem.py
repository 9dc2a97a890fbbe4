"""What the driver of chains asks of a posterior: starts, transitions, and the meaning of a draw.

A posterior is a `Problem`; `permdist.posterior.run` owns the loop, the threads, the progress and
the checkpoints, and `permdist.posterior.result` what is made of the draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import FloatArray
    from permdist.distributions import Distribution


@dataclass(frozen=True)
class Variable:
    """A named part of a draw.

    Parameters
    ----------
    name : str
        As in the dataset, such as ``"scores"``.
    shape : tuple of int
        () for a number.
    dims : tuple of str
        The names of its axes, such as ``("item",)``; coordinates are those of the problem.
    """

    name: str
    shape: tuple[int, ...] = ()
    dims: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return int(np.prod(self.shape, dtype=np.int64))


class Problem(ABC):
    """A posterior distribution that chains can be run for.

    A draw is a flat vector of the values of all variables, in their order. The state of a chain
    is a vector of floats, too, so that it can be written to a checkpoint; it may be longer than a
    draw. Nothing may be kept elsewhere: a chain that goes on from its state and its generator
    draws the same bits as one that was never interrupted.

    `permdist.posterior.from_functions` makes one from a log-likelihood and a prior.
    """

    @property
    @abstractmethod
    def variables(self) -> tuple[Variable, ...]:
        """The variables that are recorded."""

    @property
    @abstractmethod
    def coords(self) -> dict[str, Sequence[Any]]:
        """The coordinates of the dims of the variables and of `observation`: a dict of sequences.

        Such as ``{"item": ("tea", "milk"), "observation": range(24)}``. The names of the items
        belong under ``"item"``: `Posterior.best`, and the checks ``"top"`` and ``"wins"``, need
        them.
        """

    @property
    def family(self) -> str:
        """What is estimated, in words, such as ``"Plackett-Luce"``."""
        return type(self).__name__

    @cached_property
    def size(self) -> int:
        """The number of numbers in a draw."""
        return sum(variable.size for variable in self.variables)

    def default_tune(self, draws: int) -> int:
        """Return how many draws a chain discards at its beginning unless told otherwise."""
        return draws // 2

    @abstractmethod
    def start(self, rng: np.random.Generator) -> FloatArray:
        """Return the state of a chain at a start that is spread wider than the posterior."""

    @abstractmethod
    def advance(
        self,
        state: FloatArray,
        draws: FloatArray,
        log_density: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Make one transition per row of `draws`, and return the state after the last.

        Parameters
        ----------
        state : array of float
        draws : array of float, shape (steps, size)
            Filled in.
        log_density : array of float, shape (steps,)
            Filled in: the logarithm of prior times likelihood, not normalized.
        rng : Generator
        """

    @abstractmethod
    def log_likelihood(self, draws: FloatArray) -> FloatArray:
        """Return the log-likelihood of each observation, shape (draws, observations).

        Parameters
        ----------
        draws : array of float, shape (draws, size)
        """

    @abstractmethod
    def prior_draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw from the prior, shape (size, self.size); an improper prior raises a ValueError."""

    @abstractmethod
    def replicate(self, draw: FloatArray, rng: np.random.Generator) -> Any:
        """Draw data like those observed, given a draw: ballots, or labels of documents."""

    @abstractmethod
    def model(self, draw: FloatArray) -> Distribution | None:
        """Return the distribution over rankings of a draw; None where there is no single one."""

    @property
    @abstractmethod
    def observed(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """The data as variables of the group ``observed_data``: dims and values by name.

        A dict from names to pairs of dims, a tuple of str, and values, an array, such as
        ``{"orders": (("observation", "place"), orders)}`` for orders of shape (24, 4). ``{}`` if
        there are no data. Checks compare the attribute ``data`` with what `replicate` returns; or
        else the only one of these values, or a dict of all of them.
        """

    @property
    def weights(self) -> FloatArray | None:
        """How often each observation was made, by which its log-likelihood is multiplied.

        None if each was made once. By default, the variable ``weight`` of `observed`, if its dims
        are ``("observation",)``.
        """
        dims, values = self.observed.get("weight", ((), None))
        return np.asarray(values, np.float64) if tuple(dims) == ("observation",) else None

    def split(self, draws: FloatArray) -> dict[str, FloatArray]:
        """Return the variables of draws, each of shape ``draws.shape[:-1] + variable.shape``."""
        result, begin = {}, 0
        for variable in self.variables:
            part = draws[..., begin : begin + variable.size]
            result[variable.name] = part.reshape(draws.shape[:-1] + variable.shape)
            begin += variable.size
        return result
