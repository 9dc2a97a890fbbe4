"""Posteriors of mixtures: which ballots belong together, and what each group ranks.

Gibbs sampling: the numbers of each ballot's voters in each component, the weights given these
numbers, and each component given its ballots. The components are in `mixture_parts.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from permdist._check import choice, count, finite
from permdist.ballots import levels_of
from permdist.distributions import Mixture
from permdist.posterior.ballots import (
    observed_ballots,
    one_by_one,
    read_ballots,
    replicate_ballots,
)
from permdist.posterior.mixture_parts import LuceParts, MallowsParts
from permdist.posterior.problem import Problem, Variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray
    from permdist.ballots import Ballots

FAMILIES = ("plackett-luce", "mallows")


class MixturePosterior(Problem):
    """The posterior of a mixture of Plackett-Luce or Mallows models.

    Components have no names of their own: the posterior is the same for every numbering. In the
    draws they are numbered by weight, the largest first, so "component 0" is whatever component is
    the largest in a draw; where weights are close, that is now one group and now another, and means
    over draws mix both. `co_clustering`, `log_likelihood` and `model` do not depend on numbers.
    The posterior may have several modes that chains rarely leave; R-hat shows it.

    Parameters
    ----------
    data : Ballots
        Weights must be whole numbers. For Plackett-Luce rankings without ties, of all or some of
        the items, or of their first places; for Mallows full rankings, and with Kendall's distance
        also ties and first places of all items.
    k : int
        The number of components.
    family : {"plackett-luce", "mallows"}
    prior : Gamma, or MallowsPrior
        Of the worths of each component; or of the center and theta of each component. A prior must
        be proper, as a component may have no ballots. By default ``Gamma(1, 1)``.
    alpha : float
        The parameter of the symmetric Dirichlet prior of the weights.
    distance : str
        Of Mallows components.

    Examples
    --------
    >>> from permdist import Ballots
    >>> ballots = Ballots.from_orders([[0, 1, 2, 3], [3, 2, 1, 0]], weights=[20, 30])
    >>> problem = MixturePosterior(ballots, 2, "mallows")
    >>> rng = np.random.default_rng(0)
    >>> draws, values = np.empty((300, problem.size)), np.empty(300)
    >>> _ = problem.advance(problem.start(rng), draws, values, rng)
    >>> problem.split(draws[200:])["weights"].mean(axis=0).round(1)
    array([0.6, 0.4])
    >>> problem.co_clustering(draws[200:]).round(1)
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(
        self,
        data: Ballots,
        k: int = 2,
        family: str = "plackett-luce",
        prior: Any = None,
        *,
        alpha: float = 1.0,
        distance: str = "kendall",
    ) -> None:
        choice("family", family, FAMILIES)
        self.data, self.k = data, count("k", k)
        self.alpha = float(finite("alpha", alpha, ndim=0))
        if self.alpha <= 0.0:
            raise ValueError(f"alpha: expected a positive number, got {self.alpha:g}")
        unit = data.units()[1]
        if (unit != 1.0).any():
            raise ValueError(
                "data: every voter belongs to one component, expected weights that are whole "
                f"numbers, got {unit[unit != 1.0][0]:g}"
            )
        if data.features is not None:
            raise ValueError("data: covariates have no coefficients in a mixture")
        merged = data.merged() if data.n_ballots else data
        self._cast = merged.weights.astype(np.int64)
        self.parts: LuceParts | MallowsParts
        self._all: LuceParts | MallowsParts
        if family == "mallows":
            self.parts = MallowsParts(merged, prior, distance)
            self._all = MallowsParts(data, prior, distance)
        else:
            self.parts, self._all = LuceParts(merged, prior), LuceParts(data, prior)

    @property
    def family(self) -> str:
        """What is estimated, in words."""
        return f"mixture of {self.k} {self.parts.name}"

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The weights of the components, and their parameters."""
        dims = tuple(("component", *one.dims) for one in self.parts.variables)
        return (
            Variable("weights", (self.k,), ("component",)),
            *(
                Variable(one.name, (self.k, *one.shape), dim)
                for one, dim in zip(self.parts.variables, dims, strict=True)
            ),
        )

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """The names of the items, and the numbers of components and ballots."""
        return {
            "item": list(self.data.names),
            "component": list(range(self.k)),
            "observation": list(range(self.data.n_ballots)),
        }

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Return components and weights from their priors."""
        parts = self.parts.draw(self.k, rng)
        weights = rng.dirichlet(np.full(self.k, self.alpha))
        return np.concatenate([np.maximum(weights, 1e-300), parts.reshape(-1)])

    def advance(
        self,
        state: FloatArray,
        draws: FloatArray,
        log_density: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Make transitions: memberships, weights, components. Parameters as in `Problem`."""
        k = self.k
        weights, parts = state[:k].copy(), state[k:].reshape(k, -1).copy()
        logs = self.parts.log_probs(parts)
        for row in range(len(draws)):
            joint = logs + np.log(weights)
            shares = _shares(joint)
            members = rng.multinomial(self._cast, shares)  # (ballots, k)
            # Weights of rare components may round to 0.
            weights = np.maximum(rng.dirichlet(self.alpha + members.sum(axis=0)), 1e-300)
            for number in range(k):
                parts[number] = self.parts.update(parts[number], members[:, number], rng)
            logs = self.parts.log_probs(parts)
            log_density[row] = self._log_density(weights, parts, logs)
            draws[row] = self._record(weights, parts)
        return np.concatenate([weights, parts.reshape(-1)])

    def _record(self, weights: FloatArray, parts: FloatArray) -> FloatArray:
        """Return a draw, with components in the order of their weights."""
        order = np.argsort(-weights, kind="stable")
        found = [self.parts.record(parts[number]) for number in order]
        several = (np.stack(each).reshape(-1) for each in zip(*found, strict=True))
        return np.concatenate([weights[order], *several])

    def _log_density(self, weights: FloatArray, parts: FloatArray, logs: FloatArray) -> float:
        k, alpha = self.k, self.alpha
        value = float(self._cast @ _log_sum(logs + np.log(weights)))
        value += float(gammaln(k * alpha) - k * gammaln(alpha))
        value += (alpha - 1.0) * float(np.log(weights).sum())
        return value + sum(self.parts.log_prior(part) for part in parts)

    # ---- what draws mean ---------------------------------------------------------------------

    def _joint(self, draws: FloatArray) -> FloatArray:
        """Return log-weights plus log-probabilities, shape (draws, ballots, k)."""
        found = self.split(draws)
        result = np.empty((len(draws), self.data.n_ballots, self.k))
        for row in range(len(draws)):
            values = [found[one.name][row] for one in self.parts.variables]
            result[row] = self._all.log_probs(self._all.from_record(values))
            result[row] += np.log(found["weights"][row])
        return result

    def log_likelihood(self, draws: FloatArray) -> FloatArray:
        """Return the log-probability of each ballot times its weight, shape (draws, ballots).

        It is that of the mixture: memberships are summed out.
        """
        result: FloatArray = _log_sum(self._joint(draws)) * self.data.weights
        return result

    def co_clustering(self, draws: FloatArray) -> FloatArray:
        """Return the probability that two voters are of one component, shape (ballots, ballots).

        It does not depend on how components are numbered. The diagonal is 1.

        Parameters
        ----------
        draws : array of float, shape (..., size)
        """
        flat = np.asarray(draws).reshape(-1, self.size)
        total = np.zeros((self.data.n_ballots, self.data.n_ballots))
        for start in range(0, len(flat), 100):
            shares = _shares(self._joint(flat[start : start + 100]))
            total += np.einsum("dik,djk->ij", shares, shares)
        total /= max(1, len(flat))
        np.fill_diagonal(total, 1.0)
        return total

    def prior_draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw from the prior, shape (size, self.size)."""
        result = np.empty((size, self.size))
        for row in range(size):
            weights = rng.dirichlet(np.full(self.k, self.alpha))
            result[row] = self._record(weights, self.parts.draw(self.k, rng))
        return result

    def replicate(self, draw: FloatArray, rng: np.random.Generator) -> Ballots:
        """Draw ballots on the same alternatives, each from a component of its own.

        Weights are numbers of ballots.
        """
        cast = one_by_one(self.data)
        return replicate_ballots(cast, self.model(draw).sample(cast.n_ballots, rng=rng))

    def model(self, draw: FloatArray) -> Mixture:
        """Return the mixture of a draw, shape (size,)."""
        found = self.split(np.asarray(draw))
        values = [found[one.name] for one in self.parts.variables]
        components = self.parts.models(self.parts.from_record(values), self.data.names)
        weights = found["weights"]
        return Mixture(components, weights / weights.sum(), self.data.names)

    @property
    def observed(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """The levels of the items on each ballot, NaN where they are not on it; and weights."""
        return observed_ballots(self.data, levels_of(self.data))

    def memberships(self, draws: FloatArray) -> FloatArray:
        """Return the probability of each component, as numbered by weight, for each ballot.

        Parameters
        ----------
        draws : array of float, shape (..., size)

        Returns
        -------
        array of float, shape (ballots, k)
        """
        joint = self._joint(np.asarray(draws).reshape(-1, self.size))
        result: FloatArray = _shares(joint).mean(axis=0)
        return result


def _shares(logs: FloatArray) -> FloatArray:
    """Return weights with a sum of 1 from their logarithms, shape (..., k)."""
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    result: FloatArray = weights / weights.sum(axis=-1, keepdims=True)
    return result


def _log_sum(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of the last axis."""
    largest = logs.max(axis=-1)
    result: FloatArray = largest + np.log(np.exp(logs - largest[..., None]).sum(axis=-1))
    return result


def mixture_problem(
    model: Any,
    data: Any,
    prior: Any = None,
    *,
    k: int = 2,
    family: str = "plackett-luce",
    alpha: float = 1.0,
    distance: str = "kendall",
    weights: ArrayLike | None = None,
    n_items: int | None = None,
    subset: bool | None = None,
    names: Sequence[str] | None = None,
) -> MixturePosterior:
    """Return the posterior of a `Mixture`, as `permdist.posterior.sample` makes it.

    Parameters
    ----------
    model : type or Mixture
    data : Ballots, or what `permdist.Ballots.of` accepts, or None
        Without ballots (and with `n_items`) the posterior is the prior.
    prior, k, family, alpha, distance
        As in `MixturePosterior`. A fitted mixture says the number of components, the family and
        the distance.
    weights, n_items, subset, names
        As in `permdist.Ballots.of`.
    """
    if isinstance(model, Mixture):
        first, k = model.components[0], model.n_components
        family = "mallows" if type(first).__name__ == "Mallows" else "plackett-luce"
        distance = getattr(first, "distance", distance)
        n_items = model.n_items if n_items is None else n_items
    ballots = read_ballots(data, weights=weights, n_items=n_items, subset=subset, names=names)
    return MixturePosterior(ballots, k, family, prior, alpha=alpha, distance=distance)
