"""Posteriors of Mallows' model: center, theta, and the missing parts of partial ballots.

Gibbs sampling: items of the center are relocated from their full conditionals (`centers.py`),
theta is drawn by slices with the exact partition function (`spreads.py`), and ballots that say
less than a full ranking are completed (`completions.py`) where their probability is no closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist import rankings
from permdist.ballots import Ballots, levels_of
from permdist.distances import Displacement, Kendall, distance_named
from permdist.distances.completions import kernel_of
from permdist.distances.levels import is_top
from permdist.distributions import Distribution
from permdist.distributions.mallows import Mallows, check_theta
from permdist.posterior.ballots import (
    observed_ballots,
    one_by_one,
    read_ballots,
    replicate_ballots,
)
from permdist.posterior.centers import CAYLEY, CAYLEY_TOP, Energy, energy_of, joined, move_center
from permdist.posterior.completions import (
    any_completions,
    complete,
    count_pairs,
    count_places,
    ranks_of,
    relabel,
)
from permdist.posterior.priors import Flat, UniformCenter
from permdist.posterior.problem import Problem, Variable
from permdist.posterior.spreads import ThetaStep, normalizer
from permdist.rankings import check_orders, order_to_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, IntArray

BLOCKS = 2  # proposals of blocks per transition
MOST_COPIES = 5_000_000  # entries of completed orders


@dataclass(frozen=True)
class MallowsPrior:
    """The prior of a Mallows model.

    Parameters
    ----------
    theta : Gamma, Flat, or an object with `log_density_of_values` and `draw_values`
        `Flat` is improper: it is refused where some center agrees with all ballots.
    center : UniformCenter or Distribution
        Any distribution over orders, such as ``Mallows(order, 0.5)`` around an order. Kendall's
        distance, the footrule, Spearman's and Hamming's are as fast as a uniform center.

    Examples
    --------
    >>> from permdist.posterior import Gamma
    >>> MallowsPrior(Gamma(2.0, 1.0), Mallows([0, 1, 2], 0.5)).center
    Mallows([0, 1, 2], 0.5, distance='kendall')
    """

    theta: Any = field(default_factory=Flat)
    center: Any = field(default_factory=UniformCenter)

    def __post_init__(self) -> None:
        known = isinstance(self.theta, Flat)
        if not known and not hasattr(self.theta, "log_density_of_values"):
            raise TypeError(
                f"prior: expected Gamma(shape, rate) for theta, got {type(self.theta).__name__}"
            )
        if not isinstance(self.center, UniformCenter | Distribution):
            raise TypeError(
                "prior: expected UniformCenter() or a distribution over orders for the center, "
                f"got {type(self.center).__name__}"
            )

    @classmethod
    def of(cls, prior: Any) -> MallowsPrior:
        """Return the prior from a prior of theta or of the center, from both, or from None.

        Parameters
        ----------
        prior : MallowsPrior, Gamma, Flat, UniformCenter, Distribution or None
        """
        if prior is None:
            return cls()
        if isinstance(prior, MallowsPrior):
            return prior
        if isinstance(prior, UniformCenter | Distribution):
            return cls(center=prior)
        return cls(theta=prior)

    def draw_centers(self, size: int, n: int, rng: np.random.Generator) -> IntArray:
        """Draw orders from the prior of the center, shape (size, n)."""
        if isinstance(self.center, Distribution):
            return np.asarray(self.center.sample(size, rng=rng))
        return np.argsort(rng.random((size, n)), axis=1)

    def draw_thetas(self, size: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Draw from the prior of theta; a flat one raises a ValueError."""
        if isinstance(self.theta, Flat):
            raise ValueError(
                "prior: theta has a flat prior, which nothing can be drawn from; set "
                "prior=Gamma(shape, rate)"
            )
        return np.asarray(self.theta.draw_values(size, rng))

    def log_center(self, orders: IntArray) -> FloatArray:
        """Return the log-probability of centers, up to a constant, shape (...)."""
        if not isinstance(self.center, Distribution):
            return np.zeros(orders.shape[:-1])
        if isinstance(self.center, Mallows):
            return np.asarray(self.center.log_weight(orders))
        return np.asarray(self.center.log_prob(orders))

    def energy(self, n: int) -> Energy | None:
        """Return minus the log-probability of a center as tables; None if it is no such sum."""
        none = np.zeros((0, 0))
        pairs, places = none, none
        if isinstance(self.center, Distribution):
            given = self.center
            if not isinstance(given, Mallows) or np.ndim(given.theta):
                return None
            kind = distance_named(given.distance)
            if not issubclass(kind, Kendall | Displacement):
                return None
            ranks = order_to_ranks(given.center)
            if issubclass(kind, Kendall):
                pairs = given.theta * (ranks[:, None] > ranks).astype(np.float64)
            else:
                moves = np.abs(ranks[:, None] - np.arange(n))
                places = given.theta * kind.cost(moves, n)
        return Energy(pairs, places, np.zeros((0, n), np.int64), np.zeros(0), CAYLEY)


class MallowsPosterior(Problem):
    """The posterior of `Mallows`: the ranks of the items in the center, and theta.

    Full rankings, with Cayley's distance also first places, and with Kendall's distance all
    rankings of all items with ties or of the first places, are summed up once. Other
    ballots are completed: the orders that agree with them are part of the state of a chain, and of
    the log-density that is recorded with the draws.

    The posterior of a center may have several modes. Chains start at random centers and propose to
    relocate and swap items, and to reverse and exchange blocks; R-hat shows where that is not
    enough, as with Ulam's distance and lists of a few first places of many items, where completed
    orders and center hold each other.

    Parameters
    ----------
    data : Ballots
        A ballot that must be completed counts as often as its weight says, which must be a whole
        number.
    distance : {"kendall", "cayley", "hamming", "footrule", "spearman", "ulam"}
    prior : MallowsPrior
    theta : float, optional
        A known spread: with it, no partition function is needed.
    center : array of int, shape (n,), optional
        A known center.

    Examples
    --------
    >>> from permdist.posterior import Gamma
    >>> ballots = Ballots.of(Mallows([2, 0, 1, 3], 1.0).sample(50, rng=0))
    >>> problem = MallowsPosterior(ballots, "kendall", MallowsPrior(Gamma(1.0, 1.0)))
    >>> draws, log_density, rng = np.empty((2000, 5)), np.empty(2000), np.random.default_rng(0)
    >>> _ = problem.advance(problem.start(rng), draws, log_density, rng)
    >>> draws[1000:].mean(axis=0).round(1)
    array([1. , 2. , 0. , 3. , 1.1])
    """

    def __init__(
        self,
        data: Ballots,
        distance: str = "kendall",
        prior: MallowsPrior | None = None,
        *,
        theta: float | None = None,
        center: ArrayLike | None = None,
    ) -> None:
        kind = distance_named(distance)
        if data.features is not None:
            raise ValueError("data: covariates have no coefficients in a Mallows model")
        self.data, self.distance = data, distance
        self._adds_up = issubclass(kind, Displacement)
        self.prior = MallowsPrior.of(prior)
        self.n = data.n_items
        self.theta = None if theta is None else check_theta("theta", theta)
        self.center = None if center is None else check_orders(center, self.n, name="center")
        if self.theta is not None and self.center is not None:
            raise ValueError("theta, center: both are given, so nothing is left to estimate")
        given = self.prior.center
        if isinstance(given, Distribution) and given.n_items != self.n:
            raise ValueError(
                f"prior: expected a center of {self.n} items, got one of {given.n_items}"
            )
        self._read(levels_of(data), data.weights)
        self._refuse_improper()
        self._theta_step = ThetaStep(
            self.prior.theta,
            normalizer(distance, self.n, self._total, self._buckets, self._missing),
        )

    # ---- data --------------------------------------------------------------------------------

    def _read(self, levels: IntArray, weights: FloatArray) -> None:
        """Sum up ballots with a closed form, and list those that must be completed."""
        self.levels = levels
        n, says = self.n, (levels.max(axis=1, initial=-1) >= 1) & (weights > 0.0)
        whole = (levels >= 0).all(axis=1)
        full = whole & (levels.max(axis=1, initial=-1) == n - 1)
        known = whole if self.distance == "kendall" else full
        self._missing = None
        if self.distance == "cayley":
            known = np.array([bool((row >= 0).all()) and is_top(row) for row in levels], np.bool_)
            self._missing = np.zeros(n + 1)
            below = n - levels.max(axis=1, initial=0)
            np.add.at(self._missing, below[says & known], weights[says & known])
        self._kind, self._costs = kernel_of(distance_named(self.distance), n)
        static, self._buckets = levels[says & known], None
        counts = weights[says & known]
        none = np.zeros((0, 0))
        pairs, places, ranks, coefs = none, none, np.zeros((0, n), np.int64), np.zeros(0)
        if self.distance == "kendall":
            pairs, self._buckets = np.zeros((n, n)), np.zeros(n + 1)
            for level, count in zip(static, counts, strict=True):
                pairs += count * (level[:, None] > level)
                np.add.at(self._buckets, np.bincount(level), count)
            self._buckets[0] = 0.0
        elif self._adds_up:
            at = np.zeros((n, n))
            np.add.at(at, (np.arange(n), static), counts[:, None])
            places = at @ self._table
        elif len(static):
            ranks, which = np.unique(static, axis=0, return_inverse=True)
            coefs = np.bincount(which.reshape(-1), counts).astype(np.float64)
        kind = max(self._kind, CAYLEY)
        if self.distance == "cayley" and not full[says & known].all():
            kind = CAYLEY_TOP
        self._static = Energy(pairs, places, ranks, coefs, kind)
        rest = says & ~known
        copies = weights[rest]
        if (copies != np.rint(copies)).any():
            raise ValueError(
                "data: ballots that are completed by draws are counted one by one, expected "
                f"weights that are whole numbers, got {copies[copies != np.rint(copies)][0]:g}"
            )
        if copies.sum() * n > MOST_COPIES:
            raise ValueError(
                f"data: {copies.sum():,.0f} ballots of {n} items to be completed by draws are too "
                f"many, expected at most {MOST_COPIES // n:,}; take a sample of the ballots"
            )
        self._open = np.repeat(levels[rest], copies.astype(np.int64), axis=0)
        self._total = float(counts.sum() + copies.sum())

    @cached_property
    def _table(self) -> FloatArray:
        """What it costs that an item at one position is at another in the center, (n, n)."""
        return self._costs[np.abs(np.arange(self.n)[:, None] - np.arange(self.n))]

    def _refuse_improper(self) -> None:
        if self.theta is not None or not isinstance(self.prior.theta, Flat):
            return
        said = np.zeros((self.n, self.n), np.bool_)  # the first item is above the second
        for level in np.unique(self.levels[self.data.weights > 0.0], axis=0):
            said |= (level >= 0)[:, None] & (level[:, None] < level)
        if self.center is None:
            agrees = not _has_cycle(said)
        else:
            ranks = order_to_ranks(self.center)
            agrees = not (said & (ranks[:, None] > ranks)).any()
        if agrees:
            raise ValueError(
                "prior: with a flat prior of theta there is no posterior, since a center agrees "
                "with all ballots; set prior=Gamma(shape, rate), such as Gamma(1, 1)"
            )

    # ---- the problem -------------------------------------------------------------------------

    @property
    def family(self) -> str:
        """What is estimated, in words."""
        return f"Mallows ({self.distance})"

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The center as ranks of the items, 0 at the top, and theta, unless they are given."""
        center = (Variable("center", (self.n,), ("item",)),) if self.center is None else ()
        return center + ((Variable("theta"),) if self.theta is None else ())

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """The names of the items and the numbers of the ballots."""
        return {"item": list(self.data.names), "observation": list(range(self.data.n_ballots))}

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Return a random center, a theta of any order of magnitude, and any completions."""
        order = rng.permutation(self.n) if self.center is None else self.center
        theta = self.theta
        if theta is None:
            farthest = distance_named(self.distance).largest(self.n)
            theta = float(np.exp(rng.uniform(-3.0, 2.0)) * self.n / max(farthest, 1.0))
        orders = any_completions(self._open, rng)
        return np.concatenate([order, [theta], orders.reshape(-1)]).astype(np.float64)

    def advance(
        self,
        state: FloatArray,
        draws: FloatArray,
        log_density: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Make transitions: completions, center, theta. Parameters as in `Problem.advance`."""
        n, prior = self.n, self._prior_energy
        order, theta = state[:n].astype(np.int64), float(state[n])
        orders = state[n + 1 :].astype(np.int64).reshape(-1, n)
        cost = self._cost(orders)
        for row in range(len(draws)):
            if len(orders):
                if self.center is None and prior is not None:
                    fixed = joined(self._static, theta, prior)
                    inputs = self._open, order, self._kind, self._costs, theta
                    relabel(orders, *inputs, *fixed, n // 4 + 1, rng)
                complete(orders, self._open, order, self._kind, self._costs, theta, rng)
                cost = self._cost(orders)
            if self.center is None and prior is not None:
                move_center(order, *joined(cost, theta, prior), BLOCKS, rng)
            elif self.center is None:
                order = self._move_slowly(order, cost, theta, rng)
            total = energy_of(order, *cost)
            if self.theta is None:
                theta = self._theta_step(theta, total, rng)
            log_density[row] = self._log_density(order, theta, total)
            if self.center is None:
                draws[row, order] = np.arange(n)
            if self.theta is None:
                draws[row, -1] = theta
        return np.concatenate([order, [theta], orders.reshape(-1)]).astype(np.float64)

    def _cost(self, orders: IntArray) -> Energy:
        """Return the total distance as a function of the center, with completed orders."""
        base = self._static
        if not len(orders):
            return base
        if self.distance == "kendall":
            return base._replace(pairs=base.pairs + count_pairs(orders))
        if self._adds_up:
            return base._replace(places=base.places + count_places(orders) @ self._table)
        ranks = np.concatenate([base.ranks, ranks_of(orders)])
        return base._replace(ranks=ranks, coefs=np.append(base.coefs, np.ones(len(orders))))

    def _move_slowly(
        self, order: IntArray, cost: Energy, theta: float, rng: np.random.Generator
    ) -> IntArray:
        """Relocate or swap each item with any prior of the center, from its full conditional."""
        n = self.n
        for item in range(n):
            if self.distance == "cayley" or (item % 2 and self._adds_up):
                other = order.copy()
                k, p = int(np.flatnonzero(order == item)[0]), int(rng.integers(n))
                other[[k, p]] = other[[p, k]]
                tried = np.stack([order, other])
            else:
                rest = order[order != item]
                tried = np.stack([np.insert(rest, p, item) for p in range(n)])
            logs = self.prior.log_center(tried)
            logs = logs - theta * np.array([energy_of(each, *cost) for each in tried])
            shares = np.cumsum(np.exp(logs - logs.max()))
            picked = int(np.searchsorted(shares, rng.random() * shares[-1], side="right"))
            order = tried[min(picked, len(tried) - 1)]
        return order

    def _log_density(self, order: IntArray, theta: float, total: float) -> float:
        value = self._theta_step.normalizer(theta) if self.theta is None else 0.0
        value += self._log_center(order) - theta * total
        return value + (self._theta_step.log_prior(theta) if self.theta is None else 0.0)

    def _log_center(self, order: IntArray) -> float:
        if isinstance(self.prior.center, UniformCenter):
            return 0.0
        energy = self._prior_energy
        if energy is not None:
            return -float(energy_of(order, *energy))
        return float(self.prior.log_center(order))

    @cached_property
    def _prior_energy(self) -> Energy | None:
        return self.prior.energy(self.n)

    # ---- what draws mean ---------------------------------------------------------------------

    def parameters(self, draws: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the centers (draws, n), as orders, and the thetas (draws,) of draws.

        Parameters
        ----------
        draws : array of float, shape (draws, size)
        """
        size = len(draws)
        if self.center is None:
            centers = np.argsort(draws[:, : self.n], axis=1)
        else:
            centers = np.tile(self.center, (size, 1))
        thetas = draws[:, -1] if self.theta is None else np.full(size, self.theta)
        return centers, thetas

    def log_likelihood(self, draws: FloatArray) -> FloatArray:
        """Return the log-probability of each ballot times its weight, shape (draws, ballots).

        The missing parts of ballots are summed out, exactly. Where that is not possible, a
        `NotExactError` says so.
        """
        centers, thetas = self.parameters(draws)
        different, which = np.unique(self.levels, axis=0, return_inverse=True)
        first = np.unique(which.reshape(-1), return_index=True)[1]
        found = log_probs(self.data, different, first, centers, thetas, self.distance)
        result: FloatArray = found[:, which.reshape(-1)] * self.data.weights
        return result

    def prior_draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw from the prior, shape (size, self.size)."""
        parts: list[Any] = []
        if self.center is None:
            parts.append(order_to_ranks(self.prior.draw_centers(size, self.n, rng)))
        if self.theta is None:
            parts.append(self.prior.draw_thetas((size, 1), rng))
        return np.concatenate(parts, axis=1).astype(np.float64)

    def replicate(self, draw: FloatArray, rng: np.random.Generator) -> Ballots:
        """Draw ballots that say as much as those observed: of the same items, with the same ties.

        Weights that are whole numbers are numbers of ballots.

        Parameters
        ----------
        draw : array of float, shape (size,)
        rng : Generator
        """
        cast = one_by_one(self.data)
        return replicate_ballots(cast, self.model(draw).sample(cast.n_ballots, rng=rng))

    def model(self, draw: FloatArray) -> Mallows:
        """Return the distribution of a draw, shape (size,)."""
        centers, thetas = self.parameters(np.asarray(draw)[None, :])
        return Mallows(centers[0], float(thetas[0]), self.distance, self.data.names)

    @property
    def observed(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """The levels of the items on each ballot, NaN where they are not on it; and weights."""
        return observed_ballots(self.data, self.levels)


def mallows_problem(
    model: Any,
    data: Any,
    prior: Any = None,
    *,
    distance: str | None = None,
    theta: float | None = None,
    center: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    n_items: int | None = None,
    subset: bool | None = None,
    names: Sequence[str] | None = None,
) -> MallowsPosterior:
    """Return the posterior of `Mallows`, as `permdist.posterior.sample` makes it.

    Parameters
    ----------
    model : type or Mallows
        A model says the distance, unless it is given.
    data : Ballots, or what `permdist.Ballots.of` accepts, or None
        Without ballots (and with `n_items`) the posterior is the prior.
    prior : MallowsPrior, Gamma, UniformCenter, Distribution or None
        As in `MallowsPrior.of`: of theta, of the center, or of both; None is flat.
    distance, theta, center
        As in `MallowsPosterior`.
    weights, n_items, subset, names
        As in `permdist.Ballots.of`.
    """
    if distance is None:
        distance = model.distance if isinstance(model, Mallows) else "kendall"
    if n_items is None and isinstance(model, Mallows):
        n_items = model.n_items
    ballots = read_ballots(data, weights=weights, n_items=n_items, subset=subset, names=names)
    return MallowsPosterior(ballots, distance, prior, theta=theta, center=center)


def log_probs(
    data: Ballots,
    levels: IntArray,
    rows: IntArray,
    centers: IntArray,
    thetas: FloatArray,
    distance: str,
) -> FloatArray:
    """Return the log-probability of ballots under several models, shape (models, ballots).

    Parameters
    ----------
    data : Ballots
    levels : array of int, shape (ballots, n)
        Of some of them.
    rows : array of int, shape (ballots,)
        Which ones.
    centers : array of int, shape (models, n)
    thetas : array of float, shape (models,)
    distance : str
    """
    n = levels.shape[1]
    whole = (levels >= 0).all(axis=1)
    full = whole & (levels.max(axis=1, initial=-1) == n - 1)
    known = whole if distance == "kendall" else full
    norm = normalizer(distance, n, 1.0)
    norms = np.array([norm(float(theta)) if theta > 0.0 else -_log_count(n) for theta in thetas])
    result = np.empty((len(centers), len(levels)))
    away = _distances(levels[known], centers, distance)
    result[:, known] = norms[:, None] - thetas[:, None] * away
    for column in np.flatnonzero(known & ~full).tolist():
        for size in np.bincount(levels[column]).tolist():
            left = np.arange(2.0, size + 1.0)
            result[:, column] += Kendall.stage_sums(thetas[:, None], left).log_total.sum(axis=1)
    others = np.flatnonzero(~known)
    if len(others):
        picked = rows[others]
        some = data.take(np.isin(np.arange(data.n_ballots), picked))
        others = others[np.argsort(picked)]
        for row, (center, theta) in enumerate(zip(centers, thetas, strict=True)):
            result[row, others] = Mallows(center, float(theta), distance).log_prob(some)
    return np.minimum(result, 0.0)


def _log_count(n: int) -> float:
    return float(np.log(np.arange(1.0, n + 1.0)).sum())


def _distances(levels: IntArray, centers: IntArray, distance: str) -> FloatArray:
    """Return distances between ballots and centers, shape (centers, ballots).

    Of a ballot with ties, for Kendall's distance, the number of pairs it has in the other order.
    """
    if distance == "kendall":
        result = np.empty((len(centers), len(levels)))
        for column, level in enumerate(levels):
            seen, away = level[centers], np.zeros(len(centers))
            for k in range(1, seen.shape[1]):
                away += (seen[:, :k] > seen[:, k : k + 1]).sum(axis=1)
            result[:, column] = away
        return result
    orders = np.argsort(levels, axis=1)
    return rankings.distance_matrix(centers, orders, distance=distance).astype(np.float64)


def _has_cycle(above: BoolArray) -> bool:
    """Check whether statements about who is above whom contradict each other."""
    left = np.ones(len(above), np.bool_)
    while left.any():
        top = left & ~above[left].any(axis=0)
        if not top.any():
            return True
        left &= ~top
    return False
