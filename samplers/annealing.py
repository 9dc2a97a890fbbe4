"""The log-partition function of distributions that are too large for an exact sum, by annealing."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln, logsumexp

from permdist._check import as_rng, count
from permdist._result import Result, record_frame
from permdist.distributions import Distribution
from permdist.rankings import random_orders
from permdist.samplers.auto import applicable, default_thin
from permdist.samplers.kernels import advance_with, mixture_of, parts_of
from permdist.samplers.run import check_kernel
from permdist.targets import target_of

if TYPE_CHECKING:
    import pandas as pd

    from permdist._typing import FloatArray, RandomState
    from permdist.targets import Target

PILOT = 32  # orders that choose the temperatures
STRIDE = 0.5  # of the pilot, in standard deviations of the log-weight
VARIANCE = 0.25  # of a draw's log-weight, for which the number of temperatures is chosen
SWEEPS = 4  # at each temperature, for kernels that move few items in a step
FEWEST = 8  # temperatures
TOO_FEW = 0.1  # effective draws per draw, below which the standard error cannot be trusted


@dataclass(frozen=True)
class LogPartition(Result):
    """An estimate of a log-partition function.

    Attributes
    ----------
    value : float
        The estimate of log Z; its exponential is unbiased for Z.
    standard_error : float
        The standard error of `value`.
    effective_sample_size : float
        ``(sum w)^2 / sum w^2`` for the weights w of the draws. If it is a small part of `draws`,
        then few draws decide, and the standard error is too small.
    draws : int
        The number of independent draws.
    temperatures : array of float, shape (steps + 1,)
        The factors of the log-weight, from 0 to 1.
    kernel : str
        The kernel that moved the orders at each temperature.
    log_weights : array of float, shape (draws,)
        The log of each draw's own estimate of Z; where log-weights are beyond 4e6, up to a
        constant, to keep their digits.
    """

    value: float
    standard_error: float
    effective_sample_size: float
    draws: int
    temperatures: FloatArray = field(repr=False)
    kernel: str
    log_weights: FloatArray = field(repr=False)

    @property
    def steps(self) -> int:
        """The number of steps of the temperature."""
        return len(self.temperatures) - 1

    def to_frame(self) -> pd.DataFrame:
        """Return the estimate as a data frame with one row.

        Returns
        -------
        DataFrame
            With the columns ``value``, ``standard_error``, ``effective_sample_size``, ``draws``,
            ``kernel`` and ``steps``.
        """
        return record_frame(vars(self) | {"steps": self.steps})

    def __str__(self) -> str:
        return (
            f"log Z = {self.value:.6g} ± {self.standard_error:.2g} "
            f"({self.draws} draws, {self.effective_sample_size:.0f} effective, "
            f"{self.steps} temperatures)"
        )


def estimate_log_partition(
    dist: Distribution,
    draws: int = 200,
    *,
    steps: int | None = None,
    kernel: str | None = None,
    thin: int | None = None,
    rng: RandomState = None,
) -> LogPartition:
    """Estimate the log-partition function by annealed importance sampling.

    Every draw begins at a uniform random order, where the log-weight counts for nothing and log Z
    is log n!, and moves by a Markov chain while the log-weight is turned on step by step. The
    weights that it collects on the way have mean Z, however well the chain mixes. A short pilot run
    places the temperatures at equal distances in standard deviations of the log-weight. To halve
    the standard error, take four times as many draws; if few of them are effective, more steps.

    Parameters
    ----------
    dist : Distribution
        `GoodBad` over orders, `WeightedOrders.from_pairs`, or a distribution whose target can be
        tempered (see `permdist.targets.Target`).
    draws : int
        The number of independent draws, at least 2.
    steps : int, optional
        The number of steps of the temperature. By default so many that the log-weight of a draw
        has a variance of about 1/4 if the chain mixes well.
    kernel : str, optional
        A kernel of `run_chains`, or a mixture; by default ``"block"`` where it needs no rejections
        and ``"relocation"`` elsewhere.
    thin : int, optional
        The number of steps of the kernel at each temperature; by default 1 for ``"block"``, as
        many as there are items for ``"relocation"``.
    rng : int, Generator or None

    Returns
    -------
    LogPartition

    References
    ----------
    Neal: Annealed importance sampling, Statistics and Computing 11 (2001).

    Examples
    --------
    >>> from permdist import GoodBad
    >>> model = GoodBad([0.3, 0.1, -0.2] * 5, [1, 0, 0] * 5)
    >>> found = estimate_log_partition(model, rng=0)
    >>> abs(found.value - model.log_partition()) < 4 * found.standard_error
    True
    """
    if not isinstance(dist, Distribution):
        raise TypeError(f"dist: expected a Distribution, got {type(dist).__name__}")
    count("draws", draws, minimum=2)
    target = target_of(dist)
    if target.temper is None:
        raise ValueError(
            "dist: expected GoodBad over orders, WeightedOrders.from_pairs or a distribution whose "
            f"target has temper, got {dist!r}"
        )
    name = _default_kernel(target) if kernel is None else kernel
    check_kernel(name, target)
    sweep = default_thin(name, SWEEPS * dist.n_items) if thin is None else count("thin", thin)
    pilot, stream = as_rng(rng).spawn(2)
    path = _temperatures(_Crowd(target, name, sweep, PILOT, pilot), steps)
    crowd = _Crowd(target, name, sweep, draws, stream)
    logs = np.zeros(draws)
    for before, after in pairwise(path):
        if before > 0.0:
            crowd.move(before)
        logs += (after - before) * crowd.heights
    logs += gammaln(dist.n_items + 1.0)
    # The log-weights of a target may be relative to a reference, so large that digits would go.
    first = np.arange(dist.n_items)
    own: Any = getattr(dist, "log_weight", dist.log_prob)
    reference = float(own(first)) - float(target.log_weights(first))
    return _summary(logs, reference, path, name)


def _default_kernel(target: Target) -> str:
    """Choose the block step for pair models that are not tilted."""
    constants: Any = target.constants
    free = "block" in applicable(target) and not np.any(constants.table)
    return "block" if free else "relocation"


def _summary(logs: FloatArray, reference: float, path: FloatArray, name: str) -> LogPartition:
    """Average the weights of the draws."""
    draws = len(logs)
    weights = np.exp(logs - logs.max())
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    if effective < TOO_FEW * draws:
        warnings.warn(
            f"estimate_log_partition: only {effective:.1f} of {draws} draws are effective, so that "
            f"the standard error is too small; pass steps={4 * (len(path) - 1)} or more",
            RuntimeWarning,
            stacklevel=3,
        )
    value = float(logsumexp(logs) - np.log(draws)) + reference
    error = float(weights.std(ddof=1) / weights.mean() / np.sqrt(draws))
    return LogPartition(value, error, effective, draws, path, name, logs)


def _temperatures(crowd: _Crowd, steps: int | None) -> FloatArray:
    """Find the path from 0 to 1 along which the log-weight varies equally from step to step."""
    if steps is not None:
        count("steps", steps)
    shares, lengths = [0.0], [0.0]
    while shares[-1] < 1.0:
        if shares[-1] > 0.0:
            crowd.move(shares[-1])
        deviation = float(crowd.heights.std(ddof=1))
        step = min(1.0 - shares[-1], STRIDE / max(deviation, STRIDE))
        shares.append(shares[-1] + step)
        lengths.append(lengths[-1] + step * deviation)
    shares[-1] = 1.0
    number = max(FEWEST, int(np.ceil(lengths[-1] ** 2 / VARIANCE))) if steps is None else steps
    if lengths[-1] == 0.0:  # all orders have the same weight
        return np.linspace(0.0, 1.0, number + 1)
    path = np.interp(np.linspace(0.0, lengths[-1], number + 1), lengths, shares)
    path[-1] = 1.0
    return path


class _Crowd:
    """Independent chains that move at the same temperature."""

    def __init__(
        self, target: Target, name: str, thin: int, size: int, rng: np.random.Generator
    ) -> None:
        parts = parts_of(name)
        self.target, self.thin, self.streams = target, thin, rng.spawn(size)
        self.advance, self.mixture = advance_with(parts, target), mixture_of(parts)
        starts = random_orders(target.n_items, size, rng=rng)
        self.states = [target.state_at(start) for start in starts]
        self.orders = np.empty((1, target.n_items), dtype=np.int32)
        self.values, self.moved = np.empty(1), np.zeros((len(parts), 2), dtype=np.int64)
        self.heights = np.asarray(target.log_weights(starts), dtype=float)  # at temperature 1

    def move(self, share: float) -> None:
        """Move every order by `thin` steps for log-weights that are `share` times as large."""
        if self.target.temper is None:
            raise ValueError("dist: its target has no temper")
        constants = self.target.temper(share)
        outputs = self.orders, self.values, self.moved
        for number, (state, stream) in enumerate(zip(self.states, self.streams, strict=True)):
            self.advance(self.mixture, constants, state, stream, 0, 1, self.thin, *outputs)
            self.heights[number] = self.values[0] / share
