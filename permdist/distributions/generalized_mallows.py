"""The generalized Mallows model, with a parameter per stage."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from permdist._check import choice
from permdist.ballots import Ballots, check_independent
from permdist.distributions.distance_model import DistanceModel, check_theta
from permdist.distributions.mallows import STAGED, STAGED_AGREEMENTS, STAGED_TARGETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray
    from permdist.distributions.generalized_mallows_fit import GeneralizedMallowsFit
    from permdist.sums.agreeing import Agreement
    from permdist.sums.mallows_cayley import CayleySums
    from permdist.sums.mallows_kendall import KendallSums
    from permdist.targets import Target


class GeneralizedMallows(DistanceModel):
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

    References
    ----------
    Fligner, Verducci: Distance based ranking models (1986); Multistage ranking models (1988).

    Attributes
    ----------
    fit_result : GeneralizedMallowsFit or None
        How well the model fits, where it was fitted.

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
    ) -> None:
        choice("distance", distance, STAGED)
        super().__init__(center, distance, names)
        values = check_theta("thetas", thetas, several=True)
        if len(values) != self.n_items - 1:
            raise ValueError(
                f"thetas: expected {self.n_items - 1} parameters for {self.n_items} items, got "
                f"{len(values)}"
            )
        values.flags.writeable = False
        self._thetas = values
        self._fit: GeneralizedMallowsFit | None = None

    @property
    def thetas(self) -> FloatArray:
        """The spread parameters."""
        return self._thetas

    @property
    def fit_result(self) -> GeneralizedMallowsFit | None:
        """How the parameters were fitted; None if they were given."""
        return self._fit

    def log_weight(self, orders: ArrayLike) -> Any:
        """Return minus the sum of thetas times what each stage adds to the distance.

        Parameters
        ----------
        orders : array of int, shape (..., n)

        Returns
        -------
        float or array of float, shape (...)
        """
        order = self._check_orders(orders)
        flat = self._ranks[order.reshape(-1, self.n_items)]
        return (0.0 - self._sums.stage_total(flat)).reshape(order.shape[:-1])[()]

    @classmethod
    def fit(
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
        from permdist.distributions.generalized_mallows_fit import fit_stages

        choice("distance", distance, STAGED)
        data = Ballots.of(ballots, n_items=n_items, subset=subset, names=names, weights=weights)
        check_independent(data, "a generalized Mallows model")
        return fit_stages(cls, data, distance, center, prior, names)

    @cached_property
    def _sums(self) -> KendallSums | CayleySums:
        return STAGED[self._distance](self._thetas)

    @cached_property
    def _agreement(self) -> Agreement:
        return STAGED_AGREEMENTS[self._distance](self._sums)

    @property
    def _stage_thetas(self) -> FloatArray:
        return self._thetas

    def _target(self) -> Target:
        make, normalizer = STAGED_TARGETS[self._distance], self.log_partition()
        return make(self._ranks, self._thetas, normalizer=normalizer)
