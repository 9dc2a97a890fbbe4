"""What a distance between rankings is, and all that follows from its definition alone.

A class is a distance; an instance is that distance with weights ``exp(-theta d)`` on the orders of
n items. Items are numbered as the center ranks them, so that d is the distance from the identity.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from permdist._check import choice
from permdist.distances.centers import Orders, Pairs
from permdist.distances.levels import allowed_steps, are_full, completions, n_completions
from permdist.rankings import enumerate_orders, order_to_ranks
from permdist.sums.lattice import Lattice, NotExactError
from permdist.sums.shape import Shape, fits
from permdist.targets.base import Target, anywhere
from permdist.targets.function import function_target

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.distances.centers import CenterStatistic

ANSWERS = ("log_partition", "distance_distribution", "sample", "rank_marginals", "pairwise")
ANY = np.inf  # number of items
LARGE = 100.0  # a theta with which sums of log-weights may be so large that they lose digits
LISTED = 8  # items, of which all orders are listed
SUBSETS = next(n for n in range(40, 0, -1) if fits(n))  # items, for sums over all subsets


class Sums(NamedTuple):
    """Sums over a set of orders, each with the weight ``exp(-theta d)``; or over several sets.

    Attributes
    ----------
    log_total : float or array of float
        The log of the sum of the weights.
    mean, variance : float or array of float
        Of the distance, under these weights.
    """

    log_total: Any
    mean: Any
    variance: Any


class Distance:
    """A distance between orders of the same items that does not depend on how items are numbered.

    A subclass must give `from_identity` and `largest`. Everything else is then exact up to 8 items,
    by enumeration; a subclass that knows better overrides it, and says so in `limits`.

    Parameters
    ----------
    n : int
        The number of items.
    theta : float
        Not negative.

    Attributes
    ----------
    name : str
        What users call it.
    limits : dict
        Up to how many items each answer is exact; those that are missing up to `default_limit`.
    quick : (int, int)
        Up to how many items a notebook shows marginals without being asked: exact ones, drawn ones.
    takes_ties : bool
        Whether `between_ranks` compares rankings with ties.
    also_exact : str
        Ballots with a closed form, in words, for messages.
    """

    name: ClassVar[str]
    takes_ties: ClassVar[bool] = False
    limits: ClassVar[dict[str, float]] = {}
    default_limit: ClassVar[int] = LISTED
    quick: ClassVar[tuple[int, int]] = (LISTED, 30)
    center_limit: ClassVar[int] = 6  # items, to find a center by EM: all orders are compared
    also_exact: ClassVar[str] = ""

    def __init__(self, n: int, theta: Any) -> None:
        self.n, self.theta = n, theta

    # ---- the distance itself: no n, no theta -------------------------------------------------

    @classmethod
    def from_identity(cls, orders: IntArray) -> Any:
        """Return the distance of each order from 0, 1, ..., shape (m,) for orders (m, n)."""
        raise NotImplementedError

    @classmethod
    def largest(cls, n: int) -> float:
        """Return the largest distance between orders of n items."""
        raise NotImplementedError

    @classmethod
    def between_ranks(cls, a: FloatArray, b: FloatArray, penalty: float) -> FloatArray:
        """Return distances between rankings with ties, shape (m,); a, b (m, n) are mean ranks.

        Needed where `takes_ties` is True.
        """
        raise NotImplementedError

    @classmethod
    def center_statistic(cls, n: int) -> CenterStatistic:
        """Return what the total distance of a set of orders from a center depends on."""
        del n
        return Orders(cls)

    @classmethod
    def best_center(cls, levels: IntArray, weights: FloatArray) -> tuple[IntArray, bool] | None:
        """Return the center with the least total distance from ballots, and whether it is proved.

        None where it depends on theta, as it may for ballots that are no full rankings.
        """
        statistic = cls.center_statistic(levels.shape[1])
        return statistic.best(statistic.count(levels, weights)) if are_full(levels).all() else None

    @classmethod
    def start_center(cls, levels: IntArray, weights: FloatArray) -> IntArray:
        """Return a center for EM to start from: a Kemeny order."""
        return Pairs().kemeny(Pairs().count(levels, weights))[0]

    # ---- sums over all orders ----------------------------------------------------------------

    def can(self, answer: str) -> bool:
        """Whether an answer, such as "pairwise", is exact for so many items."""
        return self.n <= self.limits.get(answer, self.default_limit)

    def check_can(self, answer: str) -> None:
        """Raise NotExactError where an answer is not exact for so many items."""
        if not self.can(answer):
            most = self.limits.get(answer, self.default_limit)
            remedy = "draw with permdist.samplers.run_chains and average over the draws"
            if answer == "log_partition":
                remedy = "estimate it with permdist.samplers.estimate_log_partition"
            raise NotExactError(
                f"{answer}: for {self.name} exact up to {most:,.0f} items, this distribution has "
                f"{self.n:,}; {remedy}"
            )

    def energy(self, orders: IntArray) -> Any:
        """Return minus the log-weight of orders, shape (m,) for orders (m, n)."""
        return self.theta * self.from_identity(orders)

    @cached_property
    def listing(self) -> tuple[IntArray, FloatArray]:
        """All orders and their probabilities."""
        orders = enumerate_orders(self.n)
        weights = np.exp(-self.energy(orders))
        return orders, weights / weights.sum()

    @cached_property
    def sums(self) -> Sums:
        """The log of the sum of all weights, and mean and variance of the distance."""
        self.check_can("log_partition")
        return self.sums_of(enumerate_orders(self.n))

    @property
    def log_partition(self) -> float:
        """The log of the sum of all weights."""
        return self.sums.log_total

    @property
    def mean_energy(self) -> float:
        """The mean of minus the log-weight."""
        return self.theta * self.sums.mean if self.sums.mean > 0.0 else 0.0

    def distribution(self) -> FloatArray:
        """Return the probability of each distance from 0 to the largest."""
        self.check_can("distance_distribution")
        orders, shares = self.listing
        size = int(self.largest(self.n)) + 1
        found = np.bincount(self.from_identity(orders), shares, minlength=size)
        return found.astype(np.float64, copy=False)

    def sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders, shape (size, n)."""
        self.check_can("sample")
        orders, shares = self.listing
        return orders[rng.choice(len(orders), size, p=shares)]

    def rank_marginals(self) -> FloatArray:
        """Return ``M[i, r]``, the probability that item i is at position r."""
        self.check_can("rank_marginals")
        orders, shares = self.listing
        result = np.zeros((self.n, self.n))
        np.add.at(result, (orders, np.arange(self.n)), shares[:, None])
        return result

    def pairwise(self) -> FloatArray:
        """Return ``P[i, j]``, the probability that item i is above item j."""
        self.check_can("pairwise")
        orders, shares = self.listing
        ranks = order_to_ranks(orders)
        return np.einsum("o,oij->ij", shares, ranks[:, :, None] < ranks[:, None, :])

    # ---- sums over the orders that agree with a ballot ---------------------------------------

    def agreeing(self, levels: IntArray) -> Sums:
        """Add up over the orders that agree with a ballot.

        Parameters
        ----------
        levels : array of int, shape (n,)
            Of each item: items are above those of higher levels, equal levels say nothing, and
            items of level -1 are not on the ballot.
        """
        found = self._agreeing(levels)
        if found is None:
            raise NotExactError(
                f"log_prob: for {self.name} not exact on this ballot of {self.n} items; exact are "
                f"ballots that few orders agree with{self.also_exact}"
            )
        return found

    def agreeing_all(self, levels: IntArray) -> Sums:
        """Add up for each of several ballots, levels (ballots, n); fields have shape (ballots,)."""
        full, found = are_full(levels), np.zeros((len(levels), 3))
        orders = order_to_ranks(levels[full])
        found[full, 0], found[full, 1] = -self.energy(orders), self.from_identity(orders)
        found[~full] = np.array([self.agreeing(row) for row in levels[~full]]).reshape(-1, 3)
        return Sums(*found.T)

    def _agreeing(self, levels: IntArray) -> Sums | None:
        """Return what `agreeing` does, or None where it is not exact."""
        orders = completions(levels)
        return None if orders is None else self.sums_of(orders)

    def work(self, levels: IntArray) -> float:
        """Return about how many elementary operations `agreeing` takes; infinite if not exact."""
        return 10.0 * self.n * n_completions(levels)

    def sums_of(self, orders: IntArray) -> Sums:
        """Add up over a list of orders."""
        logs, values = -self.energy(orders), self.from_identity(orders)
        weights = np.exp(logs - logs.max())
        shares = weights / weights.sum()
        mean = float(shares @ values)
        variance = float(shares @ (values - mean) ** 2)
        return Sums(float(logs.max() + np.log(weights.sum())), mean, variance)

    def expected_statistic(self, levels: IntArray) -> FloatArray:
        """Return the expected center statistic of an order that agrees with a ballot."""
        orders = completions(levels)
        if orders is None:
            raise NotExactError(f"ballots: too many orders agree with one for {self.name}")
        weights = np.exp(-self.energy(orders))
        ranks = order_to_ranks(orders)
        return self.center_statistic(self.n).count(ranks, weights / weights.sum())

    # ---- chains ------------------------------------------------------------------------------

    def target(self, ranks: IntArray, **options: Any) -> Target:
        """Return what Markov chains need to know; `ranks` has the center's rank of each item.

        By default every step measures the distance anew. A distance whose change by a swap of
        neighbors is cheap gives compiled functions instead.
        """
        return function_target(self.n, lambda order: -self.energy(ranks[order][None])[0], **options)


class AdditiveDistance(Distance):
    """A distance that adds up along the order, whichever items are placed so far.

    Everything is then exact up to about 21 items, by sums over all subsets.
    """

    default_limit: ClassVar[int] = SUBSETS
    quick: ClassVar[tuple[int, int]] = (14, 14)
    center_limit: ClassVar[int] = SUBSETS

    def step_costs(self, shape: Shape, ranks: IntArray) -> FloatArray:
        """Return what the next item adds to the distance, shape (subsets, items).

        Parameters
        ----------
        shape : Shape
            Of the subsets of the items placed.
        ranks : array of int
            The place of each item in the center.
        """
        raise NotImplementedError

    def step_weights(self, shape: Shape, ranks: IntArray) -> FloatArray:
        """Return the log-weight of each next item in each state."""
        return -self.theta * self.step_costs(shape, ranks)

    @cached_property
    def lattice(self) -> Lattice:
        """The program over subsets."""
        shape = Shape.of_orders(self.n)
        return Lattice(shape, self.step_weights(shape, np.arange(self.n)))

    @cached_property
    def sums(self) -> Sums:
        """The log of the sum of all weights, and mean and variance of the distance."""
        self.check_can("log_partition")
        return self._sums_of_lattice(self.lattice, np.arange(self.n))

    @property
    def log_partition(self) -> float:
        """The log of the sum of all weights; the moments take longer."""
        self.check_can("log_partition")
        return self.lattice.log_partition

    def _sums_of_lattice(self, lattice: Lattice, ranks: IntArray) -> Sums:
        costs, best = self.step_costs(lattice.shape, ranks), 0.0
        if np.max(self.theta, initial=0.0) > LARGE:
            lattice, best = _about_the_best(lattice)
        variance = float(np.sum(lattice.expect_gradient(costs) * costs))
        return Sums(lattice.log_partition + best, lattice.expect(costs), max(0.0, variance))

    def sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw orders by a walk back through the subsets."""
        self.check_can("sample")
        return self.lattice.sample(size, rng)

    def rank_marginals(self) -> FloatArray:
        """Return rank marginals from the probabilities of all steps."""
        self.check_can("rank_marginals")
        return self.lattice.rank_marginals()

    def pairwise(self) -> FloatArray:
        """Return pairwise chances from the probabilities of all steps."""
        self.check_can("pairwise")
        return self.lattice.pairwise()

    def _agreeing(self, levels: IntArray) -> Sums | None:
        found = super()._agreeing(levels)
        if found is None and fits(len(levels)):
            found = self._sums_of_lattice(self.lattice_given(levels), np.arange(len(levels)))
        return found

    def work(self, levels: IntArray) -> float:
        """Return about how many elementary operations `agreeing` takes; infinite if not exact."""
        listed = super().work(levels)
        return listed if listed < np.inf else subset_work(len(levels))

    def lattice_given(self, levels: IntArray, ranks: IntArray | None = None) -> Lattice:
        """Return the program over subsets for the orders that agree with a ballot."""
        shape = Shape.of_orders(len(levels))
        weights = self.step_weights(shape, np.arange(len(levels)) if ranks is None else ranks)
        return Lattice(shape, np.where(allowed_steps(levels), weights, -np.inf))

    def expected_statistic(self, levels: IntArray) -> FloatArray:
        """Return the expected center statistic of an order that agrees with a ballot."""
        return self.center_statistic(self.n).expect(self.lattice_given(levels))


class Center(NamedTuple):
    """The constants of compiled targets.

    Attributes
    ----------
    ranks : array of int, shape (n,)
        The center's rank of each item.
    costs : array of float
        What the distance adds up from, times theta.
    levels : array of int, shape (n,)
        Of each item on a ballot, for kernels that keep to what it says.
    """

    ranks: IntArray
    costs: FloatArray
    levels: IntArray

    @classmethod
    def target(
        cls, ranks: IntArray, costs: FloatArray, peek: Any, restore: Any, /, **options: Any
    ) -> Target:
        """Return the target with some compiled functions; options as for `Target`."""
        center = cls(ranks, costs, np.full(len(ranks), -1))
        options |= {"start": anywhere(len(ranks)), "temper": center.tempered}
        return Target(len(ranks), peek, restore, constants=center, **options)

    def tempered(self, share: float) -> Center:
        """Return the constants for log-weights that are `share` times as large."""
        return self._replace(costs=share * self.costs)


def _about_the_best(lattice: Lattice) -> tuple[Lattice, float]:
    """Return a program with the same chances in which the best path has weight 1, and its log.

    Every step is weighed relative to the best one from its state, so that digits are not lost to
    what all orders share.
    """
    shape, ahead = lattice.shape, lattice.best_ahead()
    after = np.arange(shape.n_states)[:, None] + shape.strides[:-1]
    with np.errstate(invalid="ignore"):
        gains = lattice.weights + ahead[np.minimum(after, shape.n_states - 1)] - ahead[:, None]
    gains[np.isnan(gains)] = -np.inf
    return Lattice(shape, np.minimum(gains, 0.0)), float(ahead[0])


def subset_work(n: int) -> float:
    """Return about how many operations a program over all subsets takes; infinite if too many."""
    return 40.0 * n * 2.0**n if fits(n) else np.inf


DISTANCES: dict[str, type[Distance]] = {}


def register(cls: type[Distance]) -> type[Distance]:
    """Make a distance known by its name, to `Mallows`, `compare` and `distance_matrix`."""
    DISTANCES[cls.name] = cls
    return cls


def distance_named(name: str) -> type[Distance]:
    """Return a distance from its name."""
    choice("distance", name, DISTANCES)
    return DISTANCES[name]


def exchangeable(
    n: int, both: float, swapped: float, one: float, chain: float, apart: float
) -> FloatArray:
    """Return pairwise chances where no item differs from another but by its own place.

    Parameters
    ----------
    n : int
    both : float
        The probability that two given items both stay.
    swapped : float
        That they change places.
    one : float
        That the first stays and the second goes to a given third place.
    chain : float
        That the first goes to the place of the second, and the second to a given third place.
    apart : float
        That they go to two given other places.
    """
    # For i < j: who stays, or goes where, so that i is above j.
    i, j = np.arange(n)[:, None], np.arange(n)[None, :]
    elsewhere = apart * (n - 2) * (n - 3) / 2.0
    above = both + one * ((n - 2 - i) + (j - 1)) + chain * ((n - 1 - j) + i) + elsewhere
    below = swapped + one * (i + (n - 1 - j)) + chain * ((j - 1) + (n - 2 - i)) + elsewhere
    return np.minimum(np.triu(above, 1) + np.triu(below, 1).T, 1.0)
