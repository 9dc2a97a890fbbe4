"""Posteriors from functions of one's own: a log-likelihood of a few parameters, and a prior."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from permdist.ballots import Ballots, check_independent
from permdist.posterior.ballots import observed_ballots, one_by_one, replicate_ballots
from permdist.posterior.priors import Prior, as_prior
from permdist.posterior.problem import Variable
from permdist.posterior.smooth import Smooth

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray
    from permdist.distributions import Distribution

# Derivatives are difference quotients, which take p^2 values.
MOST_PARAMETERS = 30
# Their steps, in standard deviations, and before these are known.
STEP, FIRST_STEP = 0.01, 1e-3
# What a search takes for a log-density of minus infinity.
LOWEST = -1e300


class OwnPosterior(Smooth):
    """A posterior from functions; `from_functions` makes it and documents the parameters."""

    def __init__(
        self,
        log_likelihood: Callable[[FloatArray, Any], ArrayLike],
        prior: Any,
        data: Any,
        names: Sequence[str] | str,
        *,
        model: Callable[[FloatArray], Distribution] | None,
        replicate: Callable[[FloatArray, np.random.Generator], Any] | None,
        items: Sequence[str] | None,
        start: ArrayLike | None,
        family: str,
    ) -> None:
        functions = {"log_likelihood": log_likelihood, "model": model, "replicate": replicate}
        for name, function in functions.items():
            optional = name != "log_likelihood" and function is None
            if not (optional or callable(function)):
                raise TypeError(f"{name}: expected a function, got {type(function).__name__}")
        self.parameter_names = (names,) if isinstance(names, str) else tuple(map(str, names))
        p = len(self.parameter_names)
        if not 0 < p <= MOST_PARAMETERS or len(set(self.parameter_names)) < p:
            raise ValueError(
                f"names: expected 1 to {MOST_PARAMETERS} different names of parameters, got "
                f"{list(self.parameter_names)}"
            )
        self.data, self._family = data, family
        self._function, self._model, self._replicate = log_likelihood, model, replicate
        self._priors = self._read(prior)
        self._start = np.zeros(p) if start is None else np.array(start, dtype=np.float64)
        if self._start.shape != (p,):
            raise ValueError(f"start: expected {p} numbers, got shape {self._start.shape}")
        if isinstance(data, Ballots):
            check_independent(data, "a posterior")
        self._casts = data.weights if isinstance(data, Ballots) else None
        self.n_observations = len(self._each(self._start))
        if not np.isfinite(self.value(self._start)):
            raise ValueError(
                f"start: prior times likelihood is 0 at {self._start.tolist()}; pass start= where "
                "it is not, and take parameters that may be any number, such as a logarithm"
            )
        self._items = self._items_of(items)

    def _read(self, prior: Any) -> list[tuple[slice, Prior]]:
        """Return priors with the parameters that they belong to."""
        if not isinstance(prior, Mapping):
            return [(slice(0, self.n_parameters), as_prior("prior", prior))]
        if set(prior) != set(self.parameter_names):
            raise ValueError(
                f"prior: expected a prior of each of {', '.join(self.parameter_names)}, got "
                f"{', '.join(map(str, prior)) or 'none'}"
            )
        return [
            (slice(at, at + 1), as_prior(name, prior[name]))
            for at, name in enumerate(self.parameter_names)
        ]

    def _items_of(self, items: Sequence[str] | None) -> tuple[str, ...]:
        if items is not None:
            return tuple(map(str, items))
        if isinstance(self.data, Ballots):
            return self.data.names
        return () if self._model is None else Ballots.of(self.data).names

    @property
    def family(self) -> str:
        """What is estimated, in words."""
        return self._family

    @property
    def n_parameters(self) -> int:
        """The number of parameters."""
        return len(self.parameter_names)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that are recorded: a number for each name."""
        return tuple(Variable(name) for name in self.parameter_names)

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """The items, where they are known, and the observations."""
        found: dict[str, Sequence[Any]] = {"item": self._items} if self._items else {}
        return found | {"observation": range(self.n_observations)}

    def record(self, parameters: FloatArray) -> FloatArray:
        """Return the draws for parameters: the same."""
        return parameters

    def _each(self, parameters: FloatArray) -> FloatArray:
        """Return the log-likelihood of each observation, times its weight."""
        found = self._function(parameters, self.data)
        if found is None:
            raise TypeError("log_likelihood: expected an array, got None; does it return anything?")
        values = np.asarray(found, dtype=np.float64)
        expected = getattr(self, "n_observations", values.size)
        if values.ndim != 1 or len(values) != expected or not len(values):
            raise ValueError(
                "log_likelihood: expected an array with one number per observation"
                f"{f' ({expected})' if values.ndim == 1 else ''}, got shape {values.shape}"
            )
        if self._casts is None:
            return values
        if len(values) != len(self._casts):
            raise ValueError(
                f"log_likelihood: expected one number per ballot ({len(self._casts)}), got "
                f"{len(values)}"
            )
        return np.asarray(values * self._casts, dtype=np.float64)

    def value(self, parameters: FloatArray) -> float:
        """Return the logarithm of prior times likelihood."""
        found = sum(prior.log_density(parameters[at]) for at, prior in self._priors)
        return float(found) + float(self._each(parameters).sum())

    def derivatives(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the value, the gradient (p,) and minus the second derivatives (p, p).

        They are difference quotients; chains correct for what these are off by.
        """
        value, p = self.value(parameters), self.n_parameters
        steps = FIRST_STEP * np.maximum(1.0, np.abs(parameters))
        for _ in range(2):
            ends = np.array(
                [[self.value(parameters + s * e) for e in np.diag(steps)] for s in (1.0, -1.0)]
            )
            bends = (2.0 * value - ends[0] - ends[1]) / steps**2
            good = np.isfinite(bends) & (bends > 0.0)
            before, steps = steps, np.where(good, STEP / np.sqrt(np.where(good, bends, 1.0)), steps)
        gradient = (ends[0] - ends[1]) / (2.0 * before)
        curvature = np.diag(bends)
        for i in range(p):
            for j in range(i):
                one, two = before[i] * np.eye(p)[i], before[j] * np.eye(p)[j]
                mixed = self.value(parameters + one + two) + self.value(parameters - one - two)
                mixed -= self.value(parameters + one - two) + self.value(parameters - one + two)
                curvature[i, j] = curvature[j, i] = -mixed / (4.0 * before[i] * before[j])
        return value, gradient, curvature

    @cached_property
    def first_guess(self) -> FloatArray:
        """Parameters near the mode, by a search without derivatives."""

        def loss(parameters: FloatArray) -> float:
            value = self.value(parameters)
            return -value if value > LOWEST else -LOWEST

        options = {"maxiter": 400 * self.n_parameters, "adaptive": True}
        found: FloatArray = minimize(loss, self._start, method="Nelder-Mead", options=options).x
        return found

    def log_likelihood(self, draws: FloatArray) -> FloatArray:
        """Return the log-likelihood of each observation, shape (draws, observations)."""
        return np.stack([self._each(draw) for draw in draws])

    def prior_draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw from the prior, shape (size, self.size); an improper prior raises a ValueError."""
        p = self.n_parameters
        parts = [prior.draw(size, len(range(p)[at]), rng) for at, prior in self._priors]
        return np.column_stack(parts)

    def replicate(self, draw: FloatArray, rng: np.random.Generator) -> Any:
        """Draw data like those observed, given a draw."""
        if self._replicate is not None:
            return self._replicate(draw, rng)
        if self._model is None:
            raise NotImplementedError(
                "replicate: this posterior cannot make data; pass replicate= or model= to "
                "permdist.posterior.from_functions"
            )
        cast = one_by_one(Ballots.of(self.data))
        return replicate_ballots(cast, self._model(draw).sample(cast.n_ballots, rng=rng))

    def model(self, draw: FloatArray) -> Distribution | None:
        """Return the distribution over rankings of a draw; None if no function makes it."""
        return None if self._model is None else self._model(draw)

    @property
    def observed(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Ballots as levels and weights, or an array of numbers by observations."""
        if isinstance(self.data, Ballots):
            return observed_ballots(self.data)
        try:
            table = np.asarray(self.data)
        except ValueError:  # rows of several lengths
            return {}
        if table.dtype.kind not in "biuf" or table.shape[:1] != (self.n_observations,):
            return {}
        dims = ("observation", *(f"data_dim_{k}" for k in range(1, table.ndim)))
        return {"data": (dims, table)}


def from_functions(
    log_likelihood: Callable[[FloatArray, Any], ArrayLike],
    prior: Any,
    *,
    data: Any,
    names: Sequence[str] | str = ("theta",),
    model: Callable[[FloatArray], Distribution] | None = None,
    replicate: Callable[[FloatArray, np.random.Generator], Any] | None = None,
    items: Sequence[str] | None = None,
    start: ArrayLike | None = None,
    family: str = "a model of one's own",
) -> OwnPosterior:
    """Return the posterior of a few parameters of a model of your own, for `sample`.

    Parameters may be any real numbers: take the logarithm of what must be positive, and the
    log-odds of what must be between 0 and 1. The mode and the curvature there come from difference
    quotients; chains correct for what they are off by, so only speed depends on them.

    Parameters
    ----------
    log_likelihood : callable
        Called with the parameters, an array of shape (p,), and `data`; returns the log-probability
        of each observation, shape (observations,). Where `data` are `Ballots`, these are multiplied
        by their weights.
    prior : Prior, float, or mapping of str to these
        Of all parameters, or of each by its name; a number is the precision of a normal prior.
    data : object
        What was observed, in any form that the functions take.
    names : sequence of str
        Of the parameters, up to 30.
    model : callable, optional
        Returns the distribution over rankings for parameters, shape (p,); used by
        `Posterior.models`, and to replicate data that `Ballots.of` accepts.
    replicate : callable, optional
        Called with parameters and a Generator; returns data like `data`. For checks and for
        `simulation_based_calibration`.
    items : sequence of str, optional
        The names of the items, by which the checks "wins" and "top" are labeled; known where the
        data are `Ballots` or there is a `model`.
    start : array of float, shape (p,), optional
        Where the search for the mode begins; zeros by default.
    family : str
        What is estimated, in words.

    Returns
    -------
    Smooth
        A `Problem`.

    Examples
    --------
    The chance that a coin shows heads, in log-odds:

    >>> from permdist.posterior import Normal, exact
    >>> flips = np.array([1, 1, 1, 0, 1, 1])
    >>> problem = from_functions(
    ...     lambda theta, data: -np.log1p(np.exp(np.where(data == 1, -theta[0], theta[0]))),
    ...     Normal(0.0, 1.0), data=flips, names="log_odds",
    ... )
    >>> exact(problem).mean.round(3)
    array([0.882])
    """
    return OwnPosterior(
        log_likelihood,
        prior,
        data,
        names,
        model=model,
        replicate=replicate,
        items=items,
        start=start,
        family=family,
    )
