"""Plackett-Luce: the winner of each stage is drawn with probability proportional to its worth."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from permdist._check import as_rng, batch_shape, count
from permdist._parallel import row_blocks
from permdist.ballots import (
    Ballots,
    Collection,
    are_ballots,
    check_penalty,
    default_to,
    is_item_lists,
    whole,
)
from permdist.distributions.random_utility import RandomUtility
from permdist.distributions.tied_rankings import listed_ballots
from permdist.inference.likelihood import ballot_log_prob
from permdist.rankings import TopK
from permdist.rankings.partial import (
    check_lists,
    check_subset,
    refuse_short,
    refuse_top_as_subset,
)
from permdist.sums import luce
from permdist.sums.positions import RandomNoise
from permdist.sums.utilities import Noise, at_nodes, nodes
from permdist.targets.plackett_luce import plackett_luce_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.inference import Fit
    from permdist.sums.shape import Shape
    from permdist.targets import Target

# Worths within this range of the largest are exact as plain numbers; beyond, logarithms are used.
PLAIN_SPREAD = 300.0
# exp(-800) is 0: a wider gap between scores makes no difference to any chance.
IMPASSABLE = 800.0
# The Gumbel density is below 1e-16 outside.
LOW, HIGH = -4.0, 38.0


class PlackettLuce(RandomUtility):
    """The Plackett-Luce distribution.

    ``log Pr(order) = sum_k [s_(k) - log sum_(l >= k) exp(s_(l))]``: ranking by scores with
    independent Gumbel noise.

    Parameters
    ----------
    scores : array of float, shape (n,)
        Log-worths; any finite numbers.
    names : sequence of str, optional

    Attributes
    ----------
    fit_result : Fit or None
        Standard errors and more, where the scores were fitted.

    Examples
    --------
    >>> import numpy as np
    >>> model = PlackettLuce(np.log([3.0, 2.0, 1.0]))
    >>> float(np.exp(model.log_prob([0, 1, 2])))  # 3/6 * 2/3
    0.333...
    >>> model.rank_marginals().round(4)
    array([[0.5   , 0.35  , 0.15  ],
           [0.3333, 0.4   , 0.2667],
           [0.1667, 0.25  , 0.5833]])
    >>> model.sample(2, rng=0)
    array([[2, 0, 1],
           [0, 1, 2]])
    """

    def __init__(self, scores: ArrayLike, names: Sequence[str] | None = None) -> None:
        super().__init__(scores, names)
        self._fit: Fit | None = None

    @property
    def fit_result(self) -> Fit | None:
        """How the scores were fitted; None if they were given."""
        return self._fit

    def log_prob(self, orders: ArrayLike | TopK | Ballots, *, subset: bool | None = None) -> Any:
        """Return the log-probability of full rankings, of top-k lists or of rankings of a subset.

        Parameters
        ----------
        orders : array of int, shape (..., k), TopK, or Ballots
            Different items from the top down; with all n items these are full rankings. Ballots,
            and sequences of rankings that `fit` accepts, also of unequal length, have one value
            each.
        subset : bool, optional
            What plain lists that are short of the items mean, and needed for these only: True
            if they rank the listed items among themselves, False if they are the first k places
            out of all items, as `TopK` lists are.

        Returns
        -------
        float or array of float, shape (...)

        Examples
        --------
        >>> model = PlackettLuce([0.0, 0.0, 0.0, 0.0])
        >>> float(np.exp(model.log_prob([2, 0], subset=False)))  # 1/4 * 1/3
        0.0833...
        >>> float(np.exp(model.log_prob([2, 0], subset=True)))
        0.5
        """
        if are_ballots(orders):
            listed, shape = listed_ballots(orders)
            logs = ballot_log_prob(listed, self, (), self._scores, subset)
            return logs if shape is None else logs.reshape(shape)[()]
        lists = self._lists(orders, subset)
        flat = lists.reshape(-1, lists.shape[-1])
        compute: Callable[..., FloatArray]
        inputs: tuple[Any, ...]
        if self._is_plain:
            compute, inputs = luce.log_prob, (self._centered, np.exp(self._centered), not subset)
        else:
            compute, inputs = luce.log_prob_spread, (self._scores, not subset)
        return compute(flat, *inputs).reshape(lists.shape[:-1])[()]

    def log_prob_gradient(
        self, orders: ArrayLike | TopK | Ballots, *, subset: bool | None = None
    ) -> FloatArray:
        """Differentiate `log_prob` by the scores.

        Parameters
        ----------
        orders, subset
            As in `log_prob`; no ballot may have ties.

        Returns
        -------
        array of float, shape (..., n)
        """
        if are_ballots(orders):
            from permdist.distributions.davidson_luce import DavidsonLuce

            without_ties = DavidsonLuce(self._centered, names=self.names)
            return without_ties.log_prob_gradient(orders, subset=subset).scores
        lists = self._lists(orders, subset)
        flat = lists.reshape(-1, lists.shape[-1])
        result = luce.log_prob_gradient(flat, self._centered, not subset)
        return result.reshape(*lists.shape[:-1], self.n_items)

    def sample_top_k(
        self, k: int, size: int | tuple[int, ...] | None = None, rng: RandomState = None
    ) -> IntArray:
        """Draw the first k places only, without ranking the rest.

        Parameters
        ----------
        k : int
        size, rng
            As in `sample`.

        Returns
        -------
        array of int, shape (..., k)

        Examples
        --------
        >>> PlackettLuce([2.0, 1.0, 0.0, -1.0]).sample_top_k(2, size=3, rng=0).shape
        (3, 2)
        """
        kept = min(count("k", k), self.n_items)
        shape = batch_shape(size)
        number = math.prod(shape)
        generator = as_rng(rng)
        by_tree = self._is_plain and kept * 8 < self.n_items
        worths, drawn = np.exp(self._centered), np.empty((number, kept), dtype=np.int64)
        for a, b in row_blocks(number, kept if by_tree else self.n_items):
            if by_tree:
                drawn[a:b] = luce.draw_top(worths, generator.random((b - a, kept)))
            else:
                drawn[a:b] = self._sample(b - a, generator)[:, :kept]
        return drawn.reshape(*shape, kept)

    def _sample(self, size: int, rng: np.random.Generator) -> IntArray:
        keys = rng.standard_exponential((size, self.n_items))
        if self._is_plain:
            keys *= np.exp(-self._centered)
        else:
            np.log(keys, out=keys)
            keys -= self._centered
        return luce.argsort_rows(keys) if self.n_items <= 24 else np.argsort(keys, axis=1)

    @property
    def _is_plain(self) -> bool:
        """Whether all worths are exact as plain numbers."""
        return bool(self._centered.min() > -PLAIN_SPREAD)

    @cached_property
    def _centered(self) -> FloatArray:
        """The scores, the highest at 0."""
        scores = self._scores - self._scores.min()
        return scores - scores.max()

    def _pairwise(self) -> FloatArray:
        """Return ``P[i, j] = 1 / (1 + exp(s_j - s_i))``; 0 on the diagonal."""
        result = expit(self._scores[:, None] - self._scores[None, :])
        np.fill_diagonal(result, 0.0)
        return result

    def _pairwise_slopes(self) -> FloatArray:
        chance = self._pairwise()
        return chance * chance.T

    @property
    def _kind(self) -> RandomNoise:
        return RandomNoise(gaussian=False)

    def _noise(self) -> Noise:
        # The item at a given position has a utility that is known to about 1.24 / sqrt(n).
        step = min(0.25, 0.85 / np.sqrt(self.n_items))
        scores = self._centered
        x = at_nodes(nodes(scores, LOW, HIGH, HIGH - LOW, step), scores)
        # Far on either side everything is 0 or 1; there the exponentials need not be computed.
        reach = np.exp(-np.clip(x, -700.0, 700.0))
        density = reach * np.exp(-np.minimum(reach, 1e6))
        below = np.exp(-np.minimum(reach, 1e6))
        slope = density * (np.minimum(reach, 1e6) - 1.0)
        return Noise(density, slope, -np.expm1(-reach), below, step)

    def _step_weights(self, shape: Shape) -> FloatArray | None:
        # Every item is a class of its own here. The last state is complete: nothing is left.
        left = shape.counts[:-1] == 0
        masked = np.where(left, self._scores[shape.items], -np.inf)
        weights = np.full((shape.n_states, len(shape.items)), -np.inf)
        with np.errstate(over="ignore"):
            relative = masked - masked.max(axis=1, keepdims=True)
        total = np.log(np.exp(relative).sum(axis=1, keepdims=True))
        np.subtract(relative, total, out=weights[:-1], where=left)
        return weights

    def log_partition(self) -> float:
        """Return 0: the stages are normalized one by one."""
        return 0.0

    @classmethod
    def fit(
        cls,
        ballots: Any,
        *,
        n_items: int | None = None,
        subset: bool | None = None,
        weights: ArrayLike | None = None,
        regularization: float = 0.0,
        names: Sequence[str] | None = None,
        clusters: ArrayLike | None = None,
        features: Any = None,
        offset: ArrayLike | None = None,
        times: ArrayLike | None = None,
        half_life: float | None = None,
        prior: Any = None,
        max_iter: int = 100,
        tol: float = 1e-9,
    ) -> PlackettLuce:
        """Estimate the scores from rankings, by maximum likelihood.

        Parameters
        ----------
        ballots : array of int, shape (rankings, k), sequence of lists or TopK, or Ballots
            Full rankings, top-k lists or (with `subset`) rankings of some of the items, given by
            number or name; choices, contests and mixtures as `permdist.Ballots`, or as an
            iterable of blocks of these, which are merged as by `Ballots.from_blocks`. Ballots
            from `permdist.data.load_preflib` bring weights and names; what they leave out is
            below what they list, unless `subset` says otherwise.
        n_items : int, optional
            The number of items; by default the largest number in the data plus one.
        subset : bool, optional
            What plain lists that are short of the items mean: True if they rank the listed items
            among themselves, as a winner and a loser do, False if they are the first places out
            of all items. It must be given where there are such lists, since one reading is
            noise under the other; `TopK` lists say it themselves.
        weights : array of float, shape (rankings,), optional
            How often each ranking was made, or its importance where this is no whole number,
            which makes a difference for errors only; see `permdist.Ballots`.
        regularization : float
            A penalty of half of this times the squared scores; above 0 there is always an
            estimate.
        names : sequence of str, optional
        clusters : array of shape (rankings,), optional
            Labels; rankings with one label, a voter's, need not be independent. For errors of
            the kinds ``"sandwich"`` and ``"bootstrap"``.
        features : array of float or data frame, shape (n, k), optional
            Of the items: scores are their products with coefficients, which are estimated.
            `permdist.inference.team_features` makes those of teams.
        offset : array of float, shape (n,) or (rankings, n), optional
            Known parts of the scores; those of single rankings are beside the scores.
        times : array of float, shape (rankings,), optional
            When each ranking was made, in any unit; ``time=COLUMN`` of
            `permdist.data.load_battles`.
        half_life : float, optional
            The time after which a ranking counts half, in days where times are dates or Unix
            times; errors are best of kind ``"sandwich"`` then.
        prior : float, Ridge, Normal or PseudoWins, optional
            A number is the same as `regularization`; see `permdist.inference`.
        max_iter : int
            How many Newton steps may be taken.
        tol : float
            The error of a score that is tolerated, 0.01 at most: Newton's method ends when a
            step moves no score by more than this, and rounding errors cannot either. Weights
            have no say in it, however different they are.

        Returns
        -------
        PlackettLuce
            With scores that add up to 0, and `fit_result`.

        Raises
        ------
        ValueError
            Where no estimate exists: some items always win or lose, or are never compared; and
            where lists are short of the items and `subset` is not given.
        RuntimeError
            Where `tol` is not reached within `max_iter` steps, or not within the precision of
            floats. There are no unconverged estimates.

        Examples
        --------
        >>> rankings = PlackettLuce([1.0, 0.0, -1.0]).sample(5000, rng=0)
        >>> model = PlackettLuce.fit(rankings)
        >>> model.scores.round(1)
        array([ 1.,  0., -1.])
        >>> model.fit_result.standard_errors().round(3)
        array([0.019, 0.016, 0.02 ])

        Games, each a winner and a loser:

        >>> games = [[0, 1], [0, 1], [1, 0], [1, 2], [1, 2], [2, 0]]
        >>> PlackettLuce.fit(games, subset=True).scores.round(2)
        array([ 0.13,  0.31, -0.44])
        """
        from permdist.distributions.plackett_luce_ballots import fit_any, ridge_strength
        from permdist.distributions.plackett_luce_fit import fit_scores
        from permdist.inference.priors import as_prior

        if regularization and prior is not None:
            raise ValueError("regularization: expected one of regularization and prior, got both")
        ballots = whole(ballots, weights=weights, clusters=clusters, times=times)
        chosen = as_prior(check_penalty(regularization) if prior is None else prior)
        strength = ridge_strength(chosen)
        result: Fit
        plain = strength is not None and is_item_lists(ballots)
        if plain and all(each is None for each in (clusters, features, offset, half_life)):
            if isinstance(ballots, Collection):
                weights, names = default_to(ballots, weights, names)
                n_items, ballots = ballots.n_items, ballots.rankings()
                if subset and isinstance(ballots, list):
                    ballots = [top.items for top in ballots]
            result = fit_scores(
                ballots, n_items, subset, weights, float(strength or 0.0), names, max_iter, tol
            )
        else:
            data = Ballots.of(
                ballots,
                n_items=n_items,
                subset=subset,
                names=names,
                weights=weights,
                clusters=clusters,
                times=times,
            )
            result = fit_any(
                data,
                features=features,
                offset=offset,
                half_life=half_life,
                prior=chosen,
                max_iter=max_iter,
                tol=tol,
            )
            names = data.names if data.is_named else names
        model = cls(result.scores, names)
        model.__dict__["_fit"] = result
        return model

    @classmethod
    def fit_pairs(
        cls,
        winners: ArrayLike,
        losers: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        **options: Any,
    ) -> PlackettLuce:
        """Estimate the scores from contests of two (the Bradley-Terry model).

        Parameters
        ----------
        winners, losers : arrays of int or str, shape (contests,)
            `permdist.DavidsonLuce.fit_pairs` has ties, too.
        weights : array of float, shape (contests,), optional
            How often each contest had this result; as in `fit`.
        **options
            As in `fit`.

        Examples
        --------
        >>> model = PlackettLuce.fit_pairs(["tea", "tea", "milk"], ["milk", "milk", "tea"])
        >>> model.names, model.scores.round(3)
        (('milk', 'tea'), array([-0.347,  0.347]))
        """
        return cls.fit(Ballots.from_pairs(winners, losers, weights=weights), **options)

    def _lists(self, orders: Any, subset: bool | None) -> IntArray:
        """Check lists, and that it is said what they mean where they are short of the items."""
        subset = check_subset(subset)
        if isinstance(orders, TopK):
            if orders.n_items != self.n_items:
                raise ValueError(f"orders: expected {self.n_items} items, got {orders.n_items}")
            if subset:
                refuse_top_as_subset()
            return np.array(orders.items)
        lists = check_lists(orders, self.n_items)
        if subset is None and lists.shape[-1] < self.n_items:
            refuse_short("orders", lists.shape[-1], self.n_items)
        return lists

    def _target(self) -> Target:
        return plackett_luce_target(self._centered)
