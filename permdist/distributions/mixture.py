"""Mixtures: several distributions over the same items, each with its share of the rankings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from permdist._check import as_rng, batch_shape, finite, frozen
from permdist.ballots import Ballots, are_ballots, check_independent
from permdist.distributions.base import Distribution, NotExactError
from permdist.distributions.drawn import ask
from permdist.distributions.mallows import Mallows
from permdist.distributions.mallows_fit import full_orders
from permdist.distributions.plackett_luce import PlackettLuce
from permdist.inference.likelihood import ballots_about

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.distributions.mixture_fit import MixtureFit
    from permdist.measures import Measure

# Weights may miss a sum of 1 by rounding, but by no more than this.
ROUNDING = 1e-8


class Mixture(Distribution):
    """A mixture of distributions: a component is drawn by its weight, and a ranking from it.

    ``Pr(order) = sum_k weights[k] Pr_k(order)``. Rank marginals, pairwise chances and expected
    measures are weighted sums over the components, exact where these are; the mode and the entropy
    are exact up to 8 items, and the mode for any number of items that all components agree on.

    Parameters
    ----------
    components : sequence of Distribution
        Over the same items.
    weights : array of float, shape (k,)
        Not negative, with a sum of 1.
    names : sequence of str, optional
        Item names; by default those of the components, which must agree.

    Attributes
    ----------
    fit_result : MixtureFit or None
        Likelihood, errors and criteria, where the mixture was fitted.

    Examples
    --------
    >>> from permdist import Mallows
    >>> model = Mixture([Mallows([0, 1, 2], 1.0), Mallows([2, 1, 0], 1.0)], [0.75, 0.25])
    >>> model.pairwise().round(3)
    array([[0.   , 0.616, 0.672],
           [0.384, 0.   , 0.616],
           [0.328, 0.384, 0.   ]])
    >>> model.responsibilities([[0, 1, 2], [1, 2, 0], [2, 1, 0]]).round(3)
    array([[0.984, 0.016],
           [0.525, 0.475],
           [0.13 , 0.87 ]])
    """

    def __init__(
        self,
        components: Iterable[Distribution],
        weights: ArrayLike,
        names: Sequence[str] | None = None,
    ) -> None:
        parts = _check_components(components)
        if names is None:
            names = next((part.names for part in parts if part.is_named), None)
        super().__init__(parts[0].n_items, names)
        shares = finite("weights", weights, ndim=1)
        if len(shares) != len(parts):
            raise ValueError(f"weights: expected {len(parts)} weights, got {len(shares)}")
        if (shares < 0.0).any():
            raise ValueError(f"weights: expected no negative number, got {shares.min():g}")
        total = float(shares.sum())
        if abs(total - 1.0) > ROUNDING:
            raise ValueError(
                f"weights: expected a sum of 1, got {total:g}; divide them by their sum"
            )
        self._components = parts
        self._weights = frozen(shares / total)
        self._fit: MixtureFit | None = None

    @property
    def components(self) -> tuple[Distribution, ...]:
        """The distributions that are mixed."""
        return self._components

    @property
    def weights(self) -> FloatArray:
        """The share of each component."""
        return self._weights

    @property
    def n_components(self) -> int:
        """The number of components."""
        return len(self._components)

    @property
    def fit_result(self) -> MixtureFit | None:
        """How the mixture was fitted; None if its components were given."""
        return self._fit

    # ---- probabilities -----------------------------------------------------------------------

    def log_prob(self, orders: Any, *, subset: bool | None = None) -> Any:
        """Return the log-probability of each ranking.

        Parameters
        ----------
        orders : array of int, shape (..., n), or what every component accepts
            With Plackett-Luce and Mallows components also `TopK` lists, `Ballots` of any kind and
            sequences of such; with others full rankings, which may be given as `Ballots`.
        subset : bool, optional
            What plain lists that are short of the items mean, as in `PlackettLuce.log_prob`.

        Returns
        -------
        float or array of float, shape (...)
        """
        return logsumexp(self._joint(orders, subset), axis=0)[()]

    def responsibilities(self, ballots: Any, *, subset: bool | None = None) -> FloatArray:
        """Return the probability that each ranking came from each component.

        Parameters
        ----------
        ballots : array of int, shape (..., n), or what every component accepts
            As in `log_prob`. At least one component must allow each of them.
        subset : bool, optional
            As in `log_prob`.

        Returns
        -------
        array of float, shape (..., k)
            Each row has a sum of 1.

        Examples
        --------
        >>> from permdist import PlackettLuce
        >>> model = Mixture([PlackettLuce([1.0, 0.0]), PlackettLuce([0.0, 1.0])], [0.5, 0.5])
        >>> model.responsibilities([0, 1]).round(3)
        array([0.731, 0.269])
        """
        joint = self._joint(ballots, subset)
        total = logsumexp(joint, axis=0)
        if (total == -np.inf).any():
            raise ValueError(
                "ballots: no component allows the one at index "
                f"{int(np.argmax(np.ravel(total) == -np.inf))}"
            )
        return np.moveaxis(np.exp(joint - total), 0, -1)

    def _joint(self, orders: Any, subset: bool | None) -> FloatArray:
        """Return the log-probability of each component and each ranking, shape (k, ...)."""
        log_prob = self._reader(orders, subset)
        pairs = zip(self._logs, self._components, strict=True)
        return np.stack([log + log_prob(part) for log, part in pairs])

    def _reader(self, orders: Any, subset: bool | None) -> Callable[[Distribution], Any]:
        """Return a function that returns a component's log-probabilities of some rankings."""
        if are_ballots(orders):
            data = ballots_about(self, orders, subset)
            return lambda part: ballot_log_probs(part, data)
        options: dict[str, Any] = {} if subset is None else {"subset": subset}
        return lambda part: part.log_prob(orders, **options)

    def listed_log_prob(self, orders: IntArray) -> Any:
        """Return log-probabilities of valid orders; -inf where the chance is 0 in doubles."""
        parts = [part.listed_log_prob(orders) for part in self._components]
        return logsumexp(np.stack(parts) + self._logs[:, None], axis=0)

    @property
    def _logs(self) -> FloatArray:
        """The logarithms of the weights."""
        with np.errstate(divide="ignore"):
            return np.log(self._weights)

    def log_partition(self) -> float:
        """Return 0: the components are normalized, and so are the weights."""
        return 0.0

    # ---- draws -------------------------------------------------------------------------------

    def sample_components(
        self, size: int | tuple[int, ...] | None = None, rng: RandomState = None
    ) -> tuple[IntArray, IntArray]:
        """Draw orders, and the components that they come from.

        Parameters
        ----------
        size : int or tuple of int, optional
            The batch shape; a single order without it.
        rng : int, Generator or None

        Returns
        -------
        orders : array of int, shape (..., n)
        numbers : array of int, shape (...)
            The number of each order's component.

        Examples
        --------
        >>> from permdist import Mallows
        >>> model = Mixture([Mallows([0, 1, 2], 3.0), Mallows([2, 1, 0], 3.0)], [0.5, 0.5])
        >>> orders, numbers = model.sample_components(1000, rng=0)
        >>> orders.shape, np.bincount(numbers)
        ((1000, 3), array([473, 527]))
        """
        shape, generator = batch_shape(size), as_rng(rng)
        number, n = math.prod(shape), self.n_items
        orders, numbers = self._draw(number, generator)
        return orders.reshape(*shape, n), numbers.reshape(shape)[()]

    def _draw(self, size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        # The last cumulative sum may miss 1 by rounding.
        edges = np.cumsum(self._weights)[:-1]
        numbers = np.searchsorted(edges, rng.random(size), side="right").astype(np.int64)
        orders = np.empty((size, self.n_items), dtype=np.int64)
        for number, part in enumerate(self._components):
            mine = np.flatnonzero(numbers == number)
            if len(mine):
                orders[mine] = part.sample(len(mine), rng)
        return orders, numbers

    def _sample(self, size: int, rng: np.random.Generator) -> IntArray:
        return self._draw(size, rng)[0]

    # ---- what follows ------------------------------------------------------------------------

    def _mode(self) -> IntArray:
        """Find the most probable order: up to 8 items, or where all components have the same."""
        if self._is_listed:
            return super()._mode()
        modes = [ask(part.mode, method="exact") for part in self._present()[1]]
        if all(np.array_equal(modes[0], other) for other in modes[1:]):
            return modes[0]
        return super()._mode()

    def _rank_marginals(self) -> FloatArray:
        """Return ``M[i, r]``, the probability that item i is at position r."""
        return self._mean(lambda part: ask(part.rank_marginals, method="exact"))

    def _pairwise(self) -> FloatArray:
        """Return ``P[i, j]``, the probability that item i is above item j; 0 on the diagonal."""
        return self._mean(lambda part: ask(part.pairwise, method="exact"))

    def _mean(self, answer: Callable[[Distribution], FloatArray]) -> FloatArray:
        """Return the weighted mean of what each component answers."""
        result = np.zeros((self.n_items, self.n_items))
        for weight, part in zip(*self._present(), strict=True):
            result += weight * answer(part)
        return result

    def _present(self) -> tuple[FloatArray, list[Distribution]]:
        """Return the components with a weight above 0, and their weights."""
        here = self._weights > 0.0
        kept = [part for part, some in zip(self._components, here, strict=True) if some]
        return self._weights[here], kept

    def _expect_exactly(self, measure: Measure, labels: IntArray) -> float | None:
        total = 0.0
        for weight, part in zip(*self._present(), strict=True):
            try:
                total += float(weight) * part.expect(measure, labels, method="exact")
            except NotExactError:
                return None
        return total

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{weight:.3g} {type(part).__name__}"
            for weight, part in list(zip(self._weights, self._components, strict=True))[:6]
        )
        more = ", ..." if self.n_components > 6 else ""
        return f"Mixture({shown}{more}; {self.n_items} items)"

    def _quick(self) -> tuple[int, int]:
        return min(part._quick() for part in self._components)

    # ---- fits --------------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        ballots: Any,
        family: str | type | Callable[..., Distribution] = "plackett-luce",
        *,
        k: int | Iterable[int],
        criterion: str = "bic",
        n_init: int = 10,
        weights: ArrayLike | None = None,
        noise: bool = False,
        prior: float = 0.01,
        distance: str = "kendall",
        n_parameters: int | None = None,
        n_items: int | None = None,
        subset: bool | None = None,
        names: Sequence[str] | None = None,
        max_iter: int = 1000,
        tol: float = 1e-7,
        folds: int = 5,
        accelerate: bool = True,
        rng: RandomState = None,
        n_jobs: int = 1,
    ) -> Mixture:
        """Find groups of rankings: estimate components and their weights by EM.

        Every start takes one ballot per component as its seed, chosen far from the other seeds,
        and alternates between responsibilities and weighted fits of the components until the
        gain is small. The best start is kept. The objective, the log-likelihood plus the logarithm
        of a weak prior, never falls from one iteration to the next.

        The prior keeps components finite that would otherwise leave for infinity: one that holds
        a single ballot or equal ballots, or items that always win in a group. Its weight is that
        of `prior` ballots per component: for Plackett-Luce it is a ridge, half of `prior` times
        the squared scores; for Mallows it is `prior` ballots spread evenly over all orders. A
        family of your own has no prior but what its fit brings along.

        Parameters
        ----------
        ballots : array of int, shape (rankings, n), sequence of rankings, Ballots or Preferences
            For Plackett-Luce and Mallows whatever their `fit` accepts, with top-k lists and
            rankings of some of the items, and for Mallows with ties, as far as sums over the orders
            that agree with a ballot are exact; for others full rankings without ties.
        family : {"plackett-luce", "mallows"}, class or callable
            What the components are. A class has a class method ``fit(orders, weights=weights)``;
            a callable takes ``(ballots, weights)``, with ballots as an array of orders if all are
            full rankings and as `Ballots` otherwise, and returns a `Distribution`. If it does not
            maximize the weighted likelihood, the objective may fall; the iteration stops then,
            at the components before.
        k : int or iterable of int
            The number of components; out of several, the best one by `criterion`.
        criterion : {"bic", "icl", "cv"}
            How to choose k: the Bayesian information criterion; the same with a penalty for
            groups that overlap; or the log-likelihood of ballots left out, by cross-validation.
        n_init : int
            The number of starts.
        weights : array of float, shape (rankings,), optional
            How often each ranking counts.
        noise : bool
            Whether to add a uniform component, for ballots of no group; it is not counted in `k`
            and comes last.
        prior : float
            The weight of the prior, in ballots. With 0 the estimate is by maximum likelihood, and
            an error is raised where there is none.
        distance : {"kendall", "cayley", "hamming", "footrule", "spearman", "ulam"}
            Of Mallows components.
        n_parameters : int, optional
            The number of parameters of a component, where `family` is a class or callable of your
            own: without it there is no BIC or ICL.
        n_items, subset, names
            As in `PlackettLuce.fit`.
        max_iter : int
            The largest number of iterations per start.
        tol : float
            A start has converged when an iteration gains no more than this per ballot.
        folds : int
            The number of parts for ``criterion="cv"``. Equal ballots are separate voters here;
            see `permdist.Ballots.units`.
        accelerate : bool
            Whether to extrapolate after every second iteration (SQUAREM), if that gains; False is
            plain EM.
        rng : int, Generator or None
        n_jobs : int
            The number of threads; -1 is one per core. The result does not depend on it.

        Returns
        -------
        Mixture
            Components in decreasing order of weight, with `fit_result`.

        Examples
        --------
        >>> from permdist import PlackettLuce
        >>> groups = [PlackettLuce([2.0, 1.0, 0.0, -1.0]), PlackettLuce([-2.0, 0.0, 0.0, 2.0])]
        >>> ballots = Mixture(groups, [0.7, 0.3]).sample(2000, rng=0)
        >>> model = Mixture.fit(ballots, k=range(1, 4), n_init=3, rng=0)
        >>> model
        Mixture(0.703 PlackettLuce, 0.297 PlackettLuce; 4 items)
        >>> model.fit_result.weight_errors.round(3)
        array([0.011, 0.011])
        >>> [component.mode().tolist() for component in model.components]
        [[0, 1, 2, 3], [3, 1, 2, 0]]
        """
        from permdist.distributions.mixture_families import family_of
        from permdist.distributions.mixture_fit import Settings, fit_mixture

        settings = Settings(n_init, max_iter, tol, folds, n_jobs, bool(accelerate))
        data = Ballots.of(ballots, n_items=n_items, subset=subset, names=names, weights=weights)
        check_independent(data, "a mixture")
        kind = family_of(family, data, noise, prior, distance, n_parameters)
        return fit_mixture(cls, kind, k, criterion, settings, rng)


def ballot_log_probs(part: Distribution, ballots: Ballots) -> FloatArray:
    """Return the log-probability of each ballot under one distribution.

    Parameters
    ----------
    part : Distribution
    ballots : Ballots
        Full rankings, unless the distribution is Plackett-Luce, a Mallows model or a mixture.
    """
    takes_all = isinstance(part, PlackettLuce | Mixture | Mallows)
    rankings: Any = ballots if takes_all else full_orders(ballots)
    found: FloatArray = part.log_prob(rankings)
    return found


def _check_components(components: Iterable[Distribution]) -> tuple[Distribution, ...]:
    """Return the components, or say what is wrong with them."""
    if isinstance(components, Distribution):
        raise TypeError("components: expected a sequence of distributions, got one; use [it]")
    parts = tuple(components)
    if not parts:
        raise ValueError("components: expected at least one distribution, got none")
    for number, part in enumerate(parts):
        if not isinstance(part, Distribution):
            raise TypeError(
                "components: expected distributions over orders, got "
                f"{type(part).__name__} at index {number}"
            )
        if part.n_items != parts[0].n_items:
            raise ValueError(
                f"components: expected {parts[0].n_items} items in all, got {part.n_items} at "
                f"index {number}"
            )
    given = list(dict.fromkeys(part.names for part in parts if part.is_named))
    if len(given) > 1:
        raise ValueError(
            "components: expected the same item names in all, got "
            + " and ".join(repr(names) for names in given[:2])
        )
    return parts
