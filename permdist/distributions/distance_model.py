"""What Mallows' models share: a center, and weights that fall with the distance from it."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from permdist._check import choice, finite
from permdist.ballots import Ballots, Collection, levels_of
from permdist.distributions.base import DEFAULT_DRAWS, METHODS, Distribution, Estimate
from permdist.distributions.tied_rankings import listed_ballots
from permdist.inference.likelihood import ballots_about
from permdist.rankings import BucketOrder, TopK, check_orders, order_to_ranks
from permdist.sums.mallows_spearman import displacement_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.sums.agreeing import Agreement
    from permdist.sums.mallows import DistanceSums
    from permdist.sums.shape import Shape

# A larger parameter excludes all orders but the center just as well.
LARGEST_THETA = 1e100
DISPLACEMENTS = ("footrule", "spearman", "hamming")


class DistanceModel(Distribution):
    """A distribution over orders whose log-weight is minus a weighted distance from a center.

    Parameters
    ----------
    center : array of int, shape (n,)
    distance : str
    names : sequence of str, optional
    """

    def __init__(self, center: ArrayLike, distance: str, names: Sequence[str] | None) -> None:
        order = check_orders(center, name="center").copy()
        if order.ndim != 1:
            raise ValueError(f"center: expected 1 dimension(s), got shape {order.shape}")
        super().__init__(len(order), names)
        ranks = order_to_ranks(order)
        for array in (order, ranks):
            array.flags.writeable = False
        self._center, self._ranks, self._distance = order, ranks, distance

    @property
    def center(self) -> IntArray:
        """The most probable order."""
        return self._center

    @property
    def distance(self) -> str:
        """The name of the distance."""
        return self._distance

    # ---- what a model gives ------------------------------------------------------------------

    @abstractmethod
    def log_weight(self, orders: ArrayLike) -> Any:
        """Return minus the weighted distance of each order from the center."""

    @cached_property
    @abstractmethod
    def _sums(self) -> DistanceSums:
        """The exact engine, for items numbered as the center ranks them."""

    @cached_property
    @abstractmethod
    def _agreement(self) -> Agreement:
        """The engine for sums over the orders that agree with a ballot."""

    @property
    @abstractmethod
    def _stage_thetas(self) -> FloatArray:
        """The parameter of each stage, shape (n - 1,), or the only one, shape (1,)."""

    # ---- what follows ------------------------------------------------------------------------

    def log_prob(self, orders: Any, *, subset: bool | None = None) -> Any:
        """Return the log-probability of rankings: full ones, or what is known of them.

        The probability of a top-k list, of a ranking of some items, of a pair or of a ranking with
        ties is the probability that a draw agrees with all that it says. Tied items, and items
        below all that are listed, may be in any order: a tie is no statement. So, unlike full
        rankings, ballots with different ties are no alternatives, and their probabilities do not
        add up to 1.

        Exact are rankings of all items, with ties or of the first places, for Kendall's and
        Hamming's distance and the footrule and any number of items (stages that differ: first
        places, and others with few items in each bucket); for Spearman's distance with buckets of
        up to 21 items; for Cayley's distance of the first places. Rankings of some of the items
        are exact for Kendall's distance if they leave few gaps in the center (a pair always, for
        any number of items), and up to 21 items for the footrule, Hamming's and Spearman's
        distance. All others are exact where few orders agree with them, or up to 8 items.

        Parameters
        ----------
        orders : array of int, shape (..., k), BucketOrder, TopK, Ballots, or sequence of rankings
            Items from the top down; with all n items these are full rankings. Ballots, and
            sequences of rankings with ties or of unequal length, have one value each.
        subset : bool, optional
            What rankings that are short of the items mean, and needed for these only: True if
            they rank the listed items among themselves, False if all others are below, as in
            `TopK` lists.

        Returns
        -------
        float or array of float, shape (...)

        Raises
        ------
        NotExactError
            Where the sum over the orders that agree is too large; the message says what is not.

        Examples
        --------
        >>> from permdist import Mallows
        >>> model = Mallows([0, 1, 2, 3], 0.7)
        >>> float(np.exp(model.log_prob([1, 0], subset=False)))  # 1 is first, 0 second
        0.1526...
        >>> float(np.exp(model.log_prob([1, 0], subset=True)))  # 1 is above 0
        0.3318...
        >>> model.log_prob([[0, [1, 2], 3], [[0, 1], [2, 3]]]).round(3)
        array([-1.179, -0.776])
        """
        if subset is None and _are_full(orders):
            return self.log_weight(orders) - self.log_partition()
        listed, shape = listed_ballots(orders)
        if shape is not None and 0 in shape:
            return np.zeros(shape)
        logs = self._ballot_log_prob(ballots_about(self, listed, subset))
        return logs if shape is None else logs.reshape(shape)[()]

    def _ballot_log_prob(self, ballots: Ballots) -> FloatArray:
        """Return the log-probability of each ballot; equal ones are looked at once."""
        levels = levels_of(ballots)[:, self._center]
        different, which = np.unique(levels, axis=0, return_inverse=True)
        full = (different >= 0).all(axis=1) & (different.max(axis=1) == self.n_items - 1)
        logs = np.empty(len(different))
        if full.any():
            logs[full] = self.log_weight(self._center[np.argsort(different[full], axis=1)])
        agreement = self._agreement
        logs[~full] = [agreement(row).log_weight for row in different[~full]]
        return np.minimum(logs - self.log_partition(), 0.0)[which.reshape(-1)]

    def log_partition(self) -> float:
        """Return the log-partition function: the center has weight 1."""
        return self._sums.log_partition

    def _sample(self, size: int, rng: np.random.Generator) -> IntArray:
        return self._center[self._sums.draw(size, rng)]

    def _mode(self) -> IntArray:
        """Return the center."""
        return self._center.copy()

    def expected_distance(self) -> float:
        """Return the expected distance from the center.

        Examples
        --------
        >>> from permdist import Mallows
        >>> round(Mallows(range(10_000), 1.0).expected_distance(), 2)
        5818.58
        """
        return self._sums.moments.mean

    def distance_variance(self) -> float:
        """Return the variance of the distance from the center."""
        return self._sums.moments.variance

    def distance_distribution(self) -> FloatArray:
        """Return the probability of each distance from the center, from 0 to the largest.

        Examples
        --------
        >>> from permdist import Mallows
        >>> Mallows([0, 1, 2], 0.0, distance="footrule").distance_distribution().round(3)
        array([0.167, 0.   , 0.333, 0.   , 0.5  ])
        """
        return self._sums.distances()

    def _rank_marginals(self) -> FloatArray:
        """Return ``M[i, r]``, the probability that item i is at position r."""
        found = self._sums.rank_marginals() if self._sums.has_marginals else None
        return super()._rank_marginals() if found is None else found[self._ranks]

    def _pairwise(self) -> FloatArray:
        """Return ``P[i, j]``, the probability that item i is above item j; 0 on the diagonal."""
        found = self._sums.pairwise() if self._sums.has_pairwise else None
        return super()._pairwise() if found is None else found[np.ix_(self._ranks, self._ranks)]

    def entropy(
        self, *, method: str = "auto", draws: int = DEFAULT_DRAWS, rng: RandomState = None
    ) -> Estimate:
        """Return the entropy in nats: the log-partition function plus the mean of minus log-weight.

        Parameters
        ----------
        method : {"auto", "exact", "sample"}
            As in `expect`.
        draws : int
            The number of draws of a Monte Carlo estimate.
        rng : int, Generator or None
        """
        choice("method", method, METHODS)
        if method == "sample":
            return super().entropy(method=method, draws=draws, rng=rng)
        return Estimate(self.log_partition() + self._sums.moments.energy)

    def kl(
        self,
        other: Distribution,
        *,
        method: str = "auto",
        draws: int = DEFAULT_DRAWS,
        rng: RandomState = None,
    ) -> Estimate:
        """Return the Kullback-Leibler divergence from this distribution to another, in nats.

        To a model with the same center and distance it follows from the moments of the distance;
        to one with Kendall's distance from any center, from pairwise chances; with the footrule,
        Spearman's or Hamming's distance, from rank marginals. Otherwise it is exact for few items.

        Parameters
        ----------
        other : Distribution
            Over as many items.
        method : {"auto", "exact", "sample"}
            As in `expect`.
        draws : int
            The number of draws of a Monte Carlo estimate.
        rng : int, Generator or None
        """
        choice("method", method, METHODS)
        if isinstance(other, DistanceModel) and other.n_items == self.n_items:
            value = None if method == "sample" else self._divergence(other)
            if value is not None:
                return Estimate(max(0.0, value))
        return super().kl(other, method=method, draws=draws, rng=rng)

    def _divergence(self, other: DistanceModel) -> float | None:
        """Return the exact divergence to a model of this kind, where it is known for any size."""
        if self._distance == other._distance and np.array_equal(self._center, other._center):
            mine, theirs = np.broadcast_arrays(self._stage_thetas, other._stage_thetas)
            means = self._stage_means(len(mine))
            if means is not None:
                change = np.where(means > 0.0, (theirs - mine) * means, 0.0).sum()
                return float(change + (other.log_partition() - self.log_partition()))
        energy = self._energy_of(other)
        if energy is None:
            return None
        return energy + other.log_partition() - float(self.entropy(method="exact"))

    def _stage_means(self, length: int) -> FloatArray | None:
        """Return the mean of what each parameter multiplies, for one parameter or all stages."""
        if length == 1 and len(self._stage_thetas) == 1:
            return np.array([self._sums.moments.mean])
        return getattr(self._sums, "stage_means", None)

    def _energy_of(self, other: DistanceModel) -> float | None:
        """Return the mean of minus another model's log-weight; None where it is not known."""
        thetas = other._stage_thetas
        if len(thetas) and not (thetas == thetas[0]).all():
            return None
        theta = float(thetas[0]) if len(thetas) else 0.0
        if other._distance == "kendall" and self._has_pairwise:
            above = self._pairwise()[np.ix_(other._center, other._center)]
            return theta * float(np.tril(above).sum())
        if other._distance in DISPLACEMENTS and self._has_marginals:
            moves = np.abs(np.arange(self.n_items) - np.arange(self.n_items)[:, None])
            costs = displacement_costs(other._distance, self.n_items)[moves]
            return theta * float((self._rank_marginals()[other._center] * costs).sum())
        return None

    # ---- inside ------------------------------------------------------------------------------

    @property
    def _is_additive(self) -> bool:
        return self._distance not in ("cayley", "ulam")

    @property
    def _has_marginals(self) -> bool:
        return self._sums.has_marginals or super()._has_marginals

    @property
    def _has_pairwise(self) -> bool:
        return self._sums.has_pairwise or super()._has_pairwise

    @property
    def _relative_partition(self) -> float:
        return self.log_partition()

    @property
    def _can_be_tempered(self) -> bool:
        return True

    def _refusal(self, what: str) -> str:
        general = super()._refusal(what)
        return general.replace(f"{what}: exact", f"{what}: for {self._distance} exact", 1)

    def _step_weights(self, shape: Shape) -> FloatArray | None:
        if self._distance == "kendall":
            worse = self._ranks[:, None] > self._ranks[None, :]
            counts = shape.sum_pairs(-worse.astype(np.float64))
            thetas = self._stage_thetas
            if len(thetas) == 1:
                return thetas[0] * counts
            placed = shape.counts.sum(axis=1)
            return np.append(thetas, [0.0, 0.0])[placed][:, None] * counts
        if self._distance in DISPLACEMENTS:
            costs = displacement_costs(self._distance, self.n_items)
            return displacement_weights(shape, self._ranks, -self._stage_thetas[0] * costs)
        return None

    def _quick(self) -> tuple[int, int]:
        return {"ulam": (8, 30), "spearman": (14, 14)}.get(self._distance, (150, 2000))

    def __repr__(self) -> str:
        center = np.array2string(self._center, threshold=8, separator=", ")
        thetas = self._stage_thetas
        given = f"{thetas[0]:.6g}" if hasattr(self, "theta") else _short(thetas)
        return f"{type(self).__name__}({center}, {given}, distance={self._distance!r})"


def _are_full(orders: Any) -> bool:
    """Check for plain lists of items, which are full rankings unless it is said otherwise."""
    if isinstance(orders, Ballots | BucketOrder | TopK | Collection):
        return False
    if not isinstance(orders, list | tuple):
        return True
    inside = [each for entry in orders if isinstance(entry, list | tuple) for each in entry]
    others = (str, set, frozenset, BucketOrder, TopK)
    nested = any(isinstance(item, list | tuple) for item in inside)
    ragged = len({len(entry) for entry in orders if isinstance(entry, list | tuple)}) > 1
    return not (nested or ragged or any(isinstance(e, others) for e in [*orders, *inside]))


def displacement_costs(distance: str, n: int) -> FloatArray:
    """Return what each displacement from 0 to n - 1 adds to a distance."""
    moves = np.arange(n, dtype=np.float64)
    if distance == "spearman":
        return moves**2
    return moves if distance == "footrule" else (moves > 0).astype(np.float64)


def _short(values: FloatArray) -> str:
    return np.array2string(values, precision=4, threshold=8, separator=", ")


@overload
def check_theta(name: str, value: Any, *, several: Literal[False] = False) -> float: ...
@overload
def check_theta(name: str, value: Any, *, several: Literal[True]) -> FloatArray: ...
def check_theta(name: str, value: Any, *, several: bool = False) -> Any:
    """Check one parameter, or a row of them: numbers from 0 to `LARGEST_THETA`."""
    array = finite(name, value, ndim=1 if several else 0)
    wrong = ~((array >= 0.0) & (array <= LARGEST_THETA))
    if wrong.any():
        bad = array[wrong][0] if several else array
        raise ValueError(
            f"{name}: expected at least 0 and at most {LARGEST_THETA:g}, got {bad:g}; with 0 all "
            "orders are equally probable, and for a model that avoids the center take the reverse "
            "of it"
        )
    return array.copy() if several else float(array)
