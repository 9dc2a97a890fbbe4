"""Mallows' model for any registered distance, and the generalized model with a theta per stage."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import choice, finite
from permdist.ballots import Ballots, Collection, check_independent, levels_of
from permdist.distances import (
    DISTANCES,
    AdditiveDistance,
    Distance,
    StagedDistance,
    distance_named,
)
from permdist.distributions.base import DEFAULT_DRAWS, METHODS, Distribution, Estimate
from permdist.distributions.tied_rankings import listed_ballots
from permdist.inference.likelihood import ballots_about
from permdist.rankings import BucketOrder, TopK, check_orders, order_to_ranks
from permdist.sums.lattice import NotExactError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.distributions.mallows_fit import GeneralizedMallowsFit, MallowsFit
    from permdist.sums.shape import Shape
    from permdist.targets import Target

LARGEST_THETA = 1e100  # beyond, all orders but the center are excluded just as well


class Mallows(Distribution):
    """Mallows' model: ``Pr(order) ~ exp(-theta d(order, center))``.

    With Kendall's and Cayley's distance, which are sums of n - 1 stages, theta may be a vector: the
    generalized model, see `GeneralizedMallows`.

    What is exact, for n items: everything for Kendall's, Cayley's and Hamming's distance, for any
    n; for the footrule everything but pairwise chances (up to 21 items); for Ulam's distance
    partition function, draws, entropy and the distribution of distances, up to 61 items or beyond
    where theta is large, marginals up to 8; for Spearman's distance everything up to 21 items; for
    distances from outside what they say in `limits`. `log_prob` takes top-k lists, rankings with
    ties and rankings of some items, too.
    Expectations of measures of positions follow from rank marginals, those of AUC and Kendall's
    tau from pairwise chances, others are exact up to 21 items (8 for Cayley and Ulam). Beyond,
    `NotExactError` says so, and `permdist.samplers.run_chains` draws.

    Parameters
    ----------
    center : array of int, shape (n,)
        The most probable order.
    theta : float or array of float, shape (n - 1,)
        The spread, per unit of distance: 0 is uniform, and a large number a point mass at the
        center. Negative numbers are refused.
    distance : str
        "kendall", "cayley", "hamming", "footrule", "spearman", "ulam", as in `permdist.rankings`,
        or one that was registered with ``permdist.distances.register``.
    names : sequence of str, optional
    fit_result : MallowsFit, optional
        How well the model fits, where it was fitted.

    References
    ----------
    Mallows: Non-null ranking models (1957). Diaconis: Group representations in probability and
    statistics (1988). Irurozki, Calvo, Lozano: PerMallows, an R package for Mallows and
    generalized Mallows models (2016).

    Examples
    --------
    >>> model = Mallows([2, 0, 1], theta=0.7)
    >>> float(np.exp(model.log_prob([2, 0, 1])))
    0.383...
    >>> model.rank_marginals().round(3)
    array([[0.285, 0.43 , 0.285],
           [0.141, 0.285, 0.574],
           [0.574, 0.285, 0.141]])
    >>> model.sample(2, rng=0)
    array([[2, 1, 0],
           [2, 0, 1]])
    >>> Mallows(range(1000), 0.01, distance="footrule").expected_distance()
    87777.1...
    """

    def __init__(
        self,
        center: ArrayLike,
        theta: ArrayLike,
        distance: str = "kendall",
        names: Sequence[str] | None = None,
        fit_result: Any = None,
    ) -> None:
        kind = distance_named(distance)
        order = check_orders(center, name="center").copy()
        if order.ndim != 1:
            raise ValueError(f"center: expected 1 dimension(s), got shape {order.shape}")
        super().__init__(len(order), names)
        value = check_theta("theta", theta, len(order) if issubclass(kind, StagedDistance) else 0)
        self._center, self._ranks = order, order_to_ranks(order)
        self._weights: Distance = kind(len(order), value)
        self._fit = fit_result
        for array in (self._center, self._ranks):
            array.flags.writeable = False

    @property
    def center(self) -> IntArray:
        """The most probable order."""
        return self._center

    @property
    def theta(self) -> Any:
        """The spread parameter, or those of all stages."""
        return self._weights.theta

    @property
    def distance(self) -> str:
        """The name of the distance."""
        return self._weights.name

    @property
    def fit_result(self) -> MallowsFit | None:
        """How the parameters were fitted; None if they were given."""
        return self._fit

    # ---- probabilities -----------------------------------------------------------------------

    def log_weight(self, orders: ArrayLike) -> Any:
        """Return minus theta times the distance of each order from the center.

        Parameters
        ----------
        orders : array of int, shape (..., n)

        Returns
        -------
        float or array of float, shape (...)
        """
        order = self._check_orders(orders)
        energy = self._weights.energy(self._ranks[order.reshape(-1, self.n_items)])
        return (0.0 - energy).reshape(order.shape[:-1])[()]

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
        levels = levels_of(ballots_about(self, listed, subset))[:, self._center]
        different, which = np.unique(levels, axis=0, return_inverse=True)
        logs = self._weights.agreeing_all(different).log_total - self.log_partition()
        logs = np.minimum(logs, 0.0)[which.reshape(-1)]
        return logs if shape is None else logs.reshape(shape)[()]

    def log_partition(self) -> float:
        """Return the log-partition function: the center has weight 1."""
        return self._weights.log_partition

    def expected_distance(self) -> float:
        """Return the expected distance from the center.

        Examples
        --------
        >>> from permdist import Mallows
        >>> round(Mallows(range(10_000), 1.0).expected_distance(), 2)
        5818.58
        """
        return self._weights.sums.mean

    def distance_variance(self) -> float:
        """Return the variance of the distance from the center."""
        return self._weights.sums.variance

    def distance_distribution(self) -> FloatArray:
        """Return the probability of each distance from the center, from 0 to the largest.

        Examples
        --------
        >>> from permdist import Mallows
        >>> Mallows([0, 1, 2], 0.0, distance="footrule").distance_distribution().round(3)
        array([0.167, 0.   , 0.333, 0.   , 0.5  ])
        """
        return self._weights.distribution()

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
        return Estimate(max(0.0, self.log_partition() + self._weights.mean_energy))

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
        if isinstance(other, Mallows) and other.n_items == self.n_items and method != "sample":
            value = self._divergence(other)
            if value is not None:
                return Estimate(max(0.0, value))
        return super().kl(other, method=method, draws=draws, rng=rng)

    def _divergence(self, other: Mallows) -> float | None:
        """Return the exact divergence to a model of this kind, where it is known for any size."""
        mine, theirs = self._weights, other._weights
        if self.distance == other.distance and np.array_equal(self._center, other._center):
            if isinstance(mine, StagedDistance) and isinstance(theirs, StagedDistance):
                change: Any = theirs.thetas - mine.thetas
                means: Any = mine.by_stage.mean
            else:
                change, means = theirs.theta - mine.theta, np.array(mine.sums.mean)
            energy = float(np.where(means > 0.0, change * means, 0.0).sum())
            return energy + other.log_partition() - self.log_partition()
        theta = np.unique(other.theta)
        if len(theta) != 1:
            return None
        statistic = theirs.center_statistic(self.n_items)
        try:
            away = statistic.total(statistic.expect(mine), self._ranks[other._center])
        except NotExactError:
            return None
        return float(theta[0]) * away + other.log_partition() - float(self.entropy(method="exact"))

    # ---- estimation --------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        ballots: Any,
        *,
        distance: str = "kendall",
        center: ArrayLike | None = None,
        theta: float | None = None,
        weights: ArrayLike | None = None,
        n_items: int | None = None,
        subset: bool | None = None,
        names: Sequence[str] | None = None,
        method: str = "auto",
        draws: int = 400,
        max_iter: int = 100,
        rng: RandomState = None,
    ) -> Mallows:
        """Estimate center and spread by maximum likelihood, from rankings or parts of rankings.

        From full rankings: the center is the order with the least total distance from the
        ballots, the spread the one at which the expected distance is the mean distance of the
        ballots. From ballots with ties, of the first places or of some of the items: the
        likelihood is the probability of the orders that agree with each ballot, as in `log_prob`.
        With Kendall's distance and ballots that place all items (ties, first places) the center is
        a Kemeny order of what the ballots say, for every theta. Otherwise EM alternates between
        expected pairs or positions given the ballots, the center that they lead to, and theta.

        Parameters
        ----------
        ballots : array of int, shape (rankings, k), sequence of rankings, Ballots or Preferences
            All that `permdist.Ballots.of` accepts.
        distance : str
        center : array of int, shape (n,), optional
            A known center. By default it is estimated. From full rankings: for the footrule,
            Spearman's and Hamming's distance by an assignment problem, for any number of items;
            for Kendall's distance by `permdist.rankings.consensus`; for Cayley's and Ulam's up to 8
            items. From parts of rankings: for Cayley's and Ulam's distance up to 6 items.
        theta : float, optional
            A known spread.
        weights : array of float, shape (rankings,), optional
            How often each ranking counts.
        n_items, subset
            As in `permdist.Ballots.from_orders`: the number of items, and what ballots that are
            short of them mean.
        names : sequence of str, optional
        method : {"auto", "exact", "sample"}
            How to sum over the orders that agree with a ballot: exactly where that is affordable;
            exactly or not at all; or by draws, a Markov chain per ballot (Monte Carlo EM). Full
            rankings need no sums.
        draws : int
            The number of draws per ballot in the last rounds of Monte Carlo EM.
        max_iter : int
            The largest number of iterations.
        rng : int, Generator or None
            For draws.

        Returns
        -------
        Mallows
            With `fit_result`. Where the ballots are farther from the center than orders at random
            are, theta is 0.

        Raises
        ------
        ValueError
            Where all ballots are equal to the center or agree with it, so that theta has no finite
            estimate; or no ballot says anything.
        NotExactError
            Where the center or the expected distance is not known exactly for so many items.

        Examples
        --------
        >>> ballots = Mallows([3, 1, 0, 2], 0.8).sample(2000, rng=0)
        >>> model = Mallows.fit(ballots)
        >>> model.center, round(model.theta, 2), round(model.fit_result.standard_error, 3)
        (array([3, 1, 0, 2]), 0.81, 0.018)
        >>> first_two = Mallows.fit(ballots[:, :2], subset=False)
        >>> first_two.center, round(first_two.theta, 2)
        (array([3, 1, 0, 2]), 0.82)
        """
        from permdist.distributions.fit_tables import ranked_names
        from permdist.distributions.mallows_fit import Search, fit_theta

        data = Ballots.of(ballots, n_items=n_items, subset=subset, names=names, weights=weights)
        check_independent(data, "a Mallows model")
        kind, search = distance_named(distance), Search(method, draws, max_iter, rng)
        known = None if center is None else check_orders(center, data.n_items, name="center")
        spread = None if theta is None else check_theta("theta", theta)
        order, value, result = fit_theta(kind, data, known, spread, search)
        shown = data.names if data.is_named else names
        model = cls(order, value, distance, shown)
        about = f"Mallows ({distance}): {ranked_names(model.names, model.center.tolist())}"
        return cls(order, value, distance, shown, replace(result, about=about))

    # ---- what `Distribution` asks for --------------------------------------------------------

    def _sample(self, size: int, rng: np.random.Generator) -> IntArray:
        return self._center[self._weights.sample(size, rng)]

    def _mode(self) -> IntArray:
        return self._center.copy()

    def _rank_marginals(self) -> FloatArray:
        return self._weights.rank_marginals()[self._ranks]

    def _pairwise(self) -> FloatArray:
        return self._weights.pairwise()[np.ix_(self._ranks, self._ranks)]

    @property
    def _has_marginals(self) -> bool:
        return self._weights.can("rank_marginals")

    @property
    def _has_pairwise(self) -> bool:
        return self._weights.can("pairwise")

    @property
    def _relative_partition(self) -> float:
        return self.log_partition()

    @property
    def _can_be_tempered(self) -> bool:
        return True

    @property
    def _is_additive(self) -> bool:
        return isinstance(self._weights, AdditiveDistance)

    def _refusal(self, what: str) -> str:
        general = super()._refusal(what)
        return general.replace(f"{what}: exact", f"{what}: for {self.distance} exact", 1)

    def _step_weights(self, shape: Shape) -> FloatArray | None:
        weights = self._weights
        if not isinstance(weights, AdditiveDistance):
            return None
        return weights.step_weights(shape, self._ranks)

    def _target(self) -> Target:
        try:
            return self._weights.target(self._ranks, normalizer=self.log_partition(), exact=True)
        except NotExactError:
            return self._weights.target(self._ranks, normalizer=None, exact=False)

    def _quick(self) -> tuple[int, int]:
        return self._weights.quick

    def __repr__(self) -> str:
        center = np.array2string(self._center, threshold=8, separator=", ")
        if np.ndim(self.theta) == 0:
            theta = f"{self.theta:.6g}"
        else:
            theta = np.array2string(self.theta, precision=4, threshold=8, separator=", ")
        return f"{type(self).__name__}({center}, {theta}, distance={self.distance!r})"


class GeneralizedMallows(Mallows):
    """The generalized Mallows model: a spread parameter per stage.

    With Kendall's distance, ``log Pr(order) = -sum_k thetas[k] V_k - log Z``, where `V_k` counts
    the items below position k that the center ranks above the item at position k: the ranking is
    made from the top, and the choice at position k may be more or less careful. With Cayley's
    distance `V_k` is 0 if place k is the last of its cycle, and 1 otherwise. With equal
    parameters both are `Mallows`. Rank marginals and pairwise chances are exact for any number of
    items with Kendall's distance, and up to 8 items with Cayley's and parameters that differ;
    everything else is exact for any number of items.

    Parameters
    ----------
    center : array of int, shape (n,)
        The most probable order.
    thetas : array of float, shape (n - 1,)
        The spread at each position but the last, which has no choice; not negative.
    distance : {"kendall", "cayley"}
    names : sequence of str, optional
    fit_result : GeneralizedMallowsFit, optional
        How well the model fits, where it was fitted.

    References
    ----------
    Fligner, Verducci: Distance based ranking models (1986); Multistage ranking models (1988).

    Examples
    --------
    The first place is chosen with care, the others by chance:

    >>> model = GeneralizedMallows([0, 1, 2, 3], [2.0, 0.0, 0.0])
    >>> model.rank_marginals().round(3)
    array([[0.865, 0.045, 0.045, 0.045],
           [0.117, 0.294, 0.294, 0.294],
           [0.016, 0.328, 0.328, 0.328],
           [0.002, 0.333, 0.333, 0.333]])
    """

    def __init__(
        self,
        center: ArrayLike,
        thetas: ArrayLike,
        distance: str = "kendall",
        names: Sequence[str] | None = None,
        fit_result: Any = None,
    ) -> None:
        _staged(distance)
        values = check_theta("thetas", finite("thetas", thetas, ndim=1), np.shape(center)[-1])
        super().__init__(center, values, distance, names, fit_result)

    @property
    def thetas(self) -> FloatArray:
        """The spread parameters."""
        return np.asarray(self.theta)

    @property
    def fit_result(self) -> GeneralizedMallowsFit | None:  # type: ignore[override]
        """How the parameters were fitted; None if they were given."""
        return self._fit

    @classmethod
    def fit(  # type: ignore[override]
        cls,
        ballots: Any,
        *,
        distance: str = "kendall",
        center: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        prior: float = 0.0,
        n_items: int | None = None,
        subset: bool | None = None,
        names: Sequence[str] | None = None,
    ) -> GeneralizedMallows:
        """Estimate the parameters of all stages from full rankings or first places.

        Given the center, the stages are independent, and each parameter is the one at which the
        expected value of its `V` is the mean over the ballots. The center is the consensus that
        `Mallows.fit` finds; with parameters that differ it need not have the highest likelihood.

        Parameters
        ----------
        ballots : array of int, shape (rankings, k), sequence of lists or TopK, Ballots, Preferences
            Full rankings, or lists of the first places, which may differ in length; no ties, and
            no rankings of some of the items only. A list of k places determines k stages.
        distance : {"kendall", "cayley"}
        center : array of int, shape (n,), optional
            A known center.
        weights : array of float, shape (rankings,), optional
            How often each ranking counts.
        prior : float
            The number of ballots to add that are spread evenly over all orders: with more than 0
            every stage has a finite estimate.
        n_items, subset
            As in `permdist.Ballots.from_orders`; ``subset=False`` says that plain lists which are
            short of the items are first places.
        names : sequence of str, optional

        Returns
        -------
        GeneralizedMallows
            With `fit_result`. Stages that no ballot reaches have theta 0.

        Raises
        ------
        ValueError
            Where all ballots agree with the center at a stage, so that its theta has no finite
            estimate; or ballots have ties or leave items out.

        Examples
        --------
        >>> truth = GeneralizedMallows([2, 0, 3, 1], [2.0, 1.0, 0.3])
        >>> model = GeneralizedMallows.fit(truth.sample(2000, rng=0))
        >>> model.center, model.thetas.round(1)
        (array([2, 0, 3, 1]), array([2. , 1. , 0.3]))
        >>> bool((model.fit_result.standard_errors < 0.06).all())
        True
        """
        from permdist.distributions.fit_tables import ranked_names
        from permdist.distributions.mallows_fit import fit_stages

        data = Ballots.of(ballots, n_items=n_items, subset=subset, names=names, weights=weights)
        check_independent(data, "a generalized Mallows model")
        kind, strength = _staged(distance), float(finite("prior", prior, ndim=0))
        known = None if center is None else check_orders(center, data.n_items, name="center")
        order, thetas, result = fit_stages(kind, data, known, strength)
        shown = data.names if data.is_named else names
        model = cls(order, thetas, distance, shown)
        items = model.center.tolist()
        labels = [f"theta {k + 1}: {model.names[item]}" for k, item in enumerate(items[:-1])]
        rows = tuple(zip(labels, thetas.tolist(), result.standard_errors.tolist(), strict=True))
        about = f"GeneralizedMallows ({distance}): {ranked_names(model.names, items)}"
        result = replace(result, estimates=rows, about=about)
        return cls(order, thetas, distance, shown, result)


def check_theta(name: str, value: Any, stages_of: int = 0) -> Any:
    """Check a number from 0 to `LARGEST_THETA`, or a row of n - 1 for n items with stages."""
    array = finite(name, value, ndim=1 if np.ndim(value) and stages_of else 0).copy()
    wrong = ~((array >= 0.0) & (array <= LARGEST_THETA))
    if wrong.any():
        raise ValueError(
            f"{name}: expected at least 0 and at most {LARGEST_THETA:g}, got {array[wrong][0]:g}; "
            "with 0 all orders are equally probable, and for a model that avoids the center take "
            "the reverse of it"
        )
    if array.ndim == 0:
        return float(array)
    if len(array) != stages_of - 1:
        raise ValueError(
            f"{name}: expected {stages_of - 1} parameters for {stages_of} items, got {len(array)}"
        )
    array.flags.writeable = False
    return array


def _staged(distance: str) -> type[StagedDistance]:
    """Return a distance that has stages from its name."""
    staged = {name: kind for name, kind in DISTANCES.items() if issubclass(kind, StagedDistance)}
    choice("distance", distance, staged)
    return staged[distance]


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
