"""Mallows' model, for six distances."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist import rankings
from permdist._check import choice
from permdist.ballots import Ballots, check_independent
from permdist.distributions.distance_model import (
    DISPLACEMENTS,
    DistanceModel,
    check_theta,
    displacement_costs,
)
from permdist.sums.agreeing import (
    Agreement,
    CayleyAgreement,
    DisplacementAgreement,
    KendallAgreement,
    UlamAgreement,
)
from permdist.sums.lattice import NotExactError
from permdist.sums.mallows_cayley import CayleySums
from permdist.sums.mallows_footrule import FootruleSums
from permdist.sums.mallows_hamming import HammingSums
from permdist.sums.mallows_kendall import KendallSums
from permdist.sums.mallows_spearman import SpearmanSums
from permdist.sums.mallows_ulam import UlamSums
from permdist.targets import mallows as targets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, RandomState
    from permdist.distributions.mallows_fit import MallowsFit
    from permdist.sums.mallows import DistanceSums
    from permdist.targets import Target

STAGED: dict[str, Callable[[FloatArray], KendallSums | CayleySums]] = {
    "kendall": KendallSums,
    "cayley": CayleySums,
}
_PLAIN: dict[str, Callable[[int, float], DistanceSums]] = {
    "hamming": HammingSums,
    "footrule": FootruleSums,
    "spearman": SpearmanSums,
    "ulam": UlamSums,
}


class Mallows(DistanceModel):
    """Mallows' model: ``Pr(order) ~ exp(-theta d(order, center))``.

    What is exact, for n items: everything for Kendall's, Cayley's and Hamming's distance, for any
    n; for the footrule everything but pairwise chances (up to 21 items); for Ulam's distance
    partition function, draws, entropy and the distribution of distances, up to 61 items or beyond
    where theta is large, marginals up to 8; for Spearman's distance everything up to 21 items, and
    where theta is about 0.5 or more, for any number of items all but pairwise chances and the
    distribution of distances, with at most 1e-13 of the probability left out (orders in which an
    item is far from its place). `log_prob` takes top-k lists, rankings with ties and rankings of
    some items, too.
    Expectations of measures of positions follow from rank marginals, those of AUC and Kendall's
    tau from pairwise chances, others are exact up to 21 items (8 for Cayley and Ulam). Beyond,
    `NotExactError` says so, and `permdist.samplers.run_chains` draws.

    Parameters
    ----------
    center : array of int, shape (n,)
        The most probable order.
    theta : float
        The spread, per unit of distance: 0 is uniform, and a large number a point mass at the
        center. Negative numbers are refused.
    distance : {"kendall", "cayley", "hamming", "footrule", "spearman", "ulam"}
        As in `permdist.rankings`.
    names : sequence of str, optional

    Attributes
    ----------
    fit_result : MallowsFit or None
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
        theta: float,
        distance: str = "kendall",
        names: Sequence[str] | None = None,
    ) -> None:
        choice("distance", distance, rankings.DISTANCES)
        super().__init__(center, distance, names)
        self._theta = check_theta("theta", theta)
        self._fit: MallowsFit | None = None

    @property
    def theta(self) -> float:
        """The spread parameter."""
        return self._theta

    @property
    def fit_result(self) -> MallowsFit | None:
        """How the parameters were fitted; None if they were given."""
        return self._fit

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
        return -self._theta * getattr(rankings, self._distance)(order, self._center) + 0.0

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
        distance : {"kendall", "cayley", "hamming", "footrule", "spearman", "ulam"}
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
        from permdist.distributions.mallows_em import Settings
        from permdist.distributions.mallows_fit import fit_mallows

        data = Ballots.of(ballots, n_items=n_items, subset=subset, names=names, weights=weights)
        check_independent(data, "a Mallows model")
        settings = Settings(method, draws, max_iter, rng)
        return fit_mallows(cls, data, distance, center, theta, names, settings)

    @cached_property
    def _sums(self) -> DistanceSums:
        if self._distance in STAGED:
            return STAGED[self._distance](np.full(self.n_items - 1, self._theta))
        return _PLAIN[self._distance](self.n_items, self._theta)

    @cached_property
    def _agreement(self) -> Agreement:
        if self._distance in STAGED:
            return STAGED_AGREEMENTS[self._distance](self._sums)
        if self._distance == "ulam":
            return UlamAgreement(self._sums, self._theta)
        costs = displacement_costs(self._distance, self.n_items)
        return DisplacementAgreement(self._sums, self._distance, self._theta, costs)

    @property
    def _stage_thetas(self) -> FloatArray:
        return np.array([self._theta])

    def _target(self) -> Target:
        options: dict[str, Any] = {"exact": True, "normalizer": None}
        try:
            options["normalizer"] = self.log_partition()
        except NotExactError:
            options["exact"] = False
        if self._distance in DISPLACEMENTS:
            costs = self._theta * displacement_costs(self._distance, self.n_items)
            return targets.displacement_target(self._ranks, costs, **options)
        if self._distance == "ulam":
            return targets.ulam_target(self._ranks, self._theta, **options)
        thetas = np.full(self.n_items - 1, self._theta)
        return STAGED_TARGETS[self._distance](self._ranks, thetas, **options)


STAGED_AGREEMENTS: dict[str, Callable[..., Agreement]] = {
    "kendall": KendallAgreement,
    "cayley": CayleyAgreement,
}
STAGED_TARGETS: dict[str, Callable[..., Target]] = {
    "kendall": targets.stages_target,
    "cayley": targets.cycles_target,
}
