"""The posterior of the expected value of a measure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._result import record_frame, record_html
from permdist._text import aligned
from permdist.diagnostics.summary import diagnose
from permdist.measures import Measure, parse

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, RandomState
    from permdist.posterior.result import Posterior


@dataclass(frozen=True, eq=False, repr=False)
class Expected:
    """What is known of the expected value of a measure.

    Attributes
    ----------
    measure : str
    mean, sd : float
        Of the posterior.
    low, high : float
        The ends of the credible interval.
    level : float
        Its level.
    mcse : float
        Monte Carlo standard error of the mean; NaN with fewer than four draws per chain.
    noise : float
        The standard error of the expectation under one draw's model, at most: 0 where it is
        exact. It widens the interval.
    values : array of float, shape (draws,)
        The expectation under the model of each draw.
    """

    measure: str
    mean: float
    sd: float
    low: float
    high: float
    level: float
    mcse: float
    noise: float
    values: FloatArray = field(repr=False)

    def _record(self) -> dict[str, Any]:
        names = ("measure", "mean", "sd", "low", "high", "level", "mcse", "noise")
        return {name: getattr(self, name) for name in names}

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers as a data frame with one row."""
        return record_frame(self._record())

    def _repr_html_(self) -> str:
        return record_html(f"Posterior of the expected {self.measure}", self._record())

    def __float__(self) -> float:
        return self.mean

    def __repr__(self) -> str:
        return (
            f"Expected({self.measure}: {self.mean:.4g}, {100.0 * self.level:g}% from "
            f"{self.low:.4g} to {self.high:.4g})"
        )

    def __str__(self) -> str:
        return aligned({name: f"{value}" for name, value in self._record().items()})


def expectation(
    posterior: Posterior,
    measure: str | Measure,
    labels: ArrayLike,
    size: int,
    level: float,
    rng: RandomState,
) -> Expected:
    """Compute the expectation of a measure under the models of draws at equal distances.

    Parameters
    ----------
    posterior : Posterior
    measure : Measure or str
    labels : array of int
    size : int
    level : float
    rng : int, Generator or None
    """
    from permdist._check import as_rng

    chosen, generator = parse(measure), as_rng(rng)
    found = [model.expect(chosen, labels, rng=generator) for model in posterior.models(size)]
    values = np.array([float(one) for one in found])
    errors = [float(getattr(one, "standard_error", 0.0)) for one in found]
    low, high = np.quantile(values, [0.5 - 0.5 * level, 0.5 + 0.5 * level])
    # The draws are in the order of the chains: as many columns as there are whole chains.
    chains = posterior.n_chains
    length = len(values) // chains
    mcse = np.nan
    if length >= 4:
        table = values[: chains * length].reshape(chains, length, 1)
        mcse = float(np.nan_to_num(diagnose(table)["mcse"][0]))
    sd = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return Expected(
        chosen.name,
        float(values.mean()),
        sd,
        float(low),
        float(high),
        level,
        mcse,
        max(errors, default=0.0),
        values,
    )
