"""Davidson-Luce: rankings with ties; each stage chooses one item or a set of tied ones."""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import as_rng, batch_shape, choice, count, finite
from permdist._interrupts import parts
from permdist._limits import need_memory
from permdist._offer import offer_strategy
from permdist.ballots import Ballots, find_item
from permdist.distributions.base import DEFAULT_DRAWS, METHODS, NotExactError
from permdist.distributions.estimates import Estimate, Estimates, mean_of, means_of
from permdist.distributions.gaps import narrowed
from permdist.distributions.items import Items
from permdist.distributions.plackett_luce import IMPASSABLE, PlackettLuce
from permdist.measures import AUC, KendallTau, Measure, parse
from permdist.rankings import BucketOrder, TopK
from permdist.sums import davidson, davidson_draws, davidson_sets
from permdist.sums.davidson_slopes import log_prob_slopes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState

RULES = ("share", "min", "max", "dense")
# exp(300) can still be multiplied with a sum over sets.
LARGEST_TIE = 300.0


class PairChances(NamedTuple):
    """The chances of the results of a contest of two items."""

    above: float
    tied: float
    below: float


class Slopes(NamedTuple):
    """Derivatives by the scores (..., n) and by the parameters of ties (..., T - 1)."""

    scores: FloatArray
    ties: FloatArray


class DavidsonLuce(Items):
    """The Davidson-Luce distribution over rankings with ties.

    Out of the items that are not ranked yet, each stage chooses a set S of t items, which are tied,
    with probability proportional to ``delta_t exp(mean of the scores in S)``; ``delta_1 = 1``.
    A draw is a `BucketOrder`. Without ties this is `PlackettLuce`; of two items it is Davidson's
    model, Bradley and Terry's with ties.

    Parameters
    ----------
    scores : array of float, shape (n,)
        Log-worths; any finite numbers.
    ties : array of float, shape (T - 1,)
        ``log delta_2, log delta_3, ...``, from -300 to 300, or -inf where there are no ties of a
        size. By default there are none at all.
    names : sequence of str, optional

    References
    ----------
    Davidson: On Extending the Bradley-Terry Model to Accommodate Ties in Paired Comparison
    Experiments, JASA 1970. Turner, van Etten, Firth, Kosmidis: Modelling Rankings in R: the
    PlackettLuce Package, Computational Statistics 2020.

    Examples
    --------
    >>> model = DavidsonLuce([1.0, 0.0, -1.0], ties=[-0.5])
    >>> model.sample(3, rng=0)
    [BucketOrder([[0], [1], [2]]), BucketOrder([[0], [1, 2]]), BucketOrder([[0], [2], [1]])]
    >>> model.pair_chances(0, 1)
    PairChances(above=0.577..., tied=0.212..., below=0.212...)
    >>> model.rank_marginals().round(3)
    array([[0.658, 0.264, 0.078],
           [0.249, 0.486, 0.265],
           [0.093, 0.25 , 0.657]])
    """

    def __init__(
        self, scores: ArrayLike, ties: ArrayLike = (), names: Sequence[str] | None = None
    ) -> None:
        values = finite("scores", scores, ndim=1).copy()
        if len(values) == 0:
            raise ValueError("scores: expected at least one item, got none")
        super().__init__(len(values), names)
        deltas = np.array(ties, dtype=np.float64)
        if deltas.ndim != 1:
            raise ValueError(f"ties: expected 1 dimension(s), got shape {deltas.shape}")
        wrong = ~((deltas == -np.inf) | (np.abs(deltas) <= LARGEST_TIE))
        if wrong.any():
            raise ValueError(
                f"ties: expected logarithms from -{LARGEST_TIE:g} to {LARGEST_TIE:g}, or -inf, "
                f"got {deltas[wrong][0]} at index {int(np.argmax(wrong))}"
            )
        for array in (values, deltas):
            array.flags.writeable = False
        self._scores, self._ties = values, deltas

    @property
    def scores(self) -> FloatArray:
        """The items' scores."""
        return self._scores

    @property
    def ties(self) -> FloatArray:
        """The logarithms of delta_2, delta_3, ..."""
        return self._ties

    @property
    def largest_tie(self) -> int:
        """The largest number of items that can be tied."""
        return len(self._log_deltas)

    # ---- probabilities -----------------------------------------------------------------------

    def log_prob(self, ballots: Any, *, subset: bool | None = None) -> Any:
        """Return the log-probability of rankings with ties, and of all else that ballots can be.

        Parameters
        ----------
        ballots : BucketOrder, TopK, array, sequence of rankings, Ballots or Preferences
            One ranking or many: see `permdist.ballots.Ballots.of`. Weights have no part in it.
        subset : bool, optional
            What rankings that are short of the items mean, and needed for these only: True if
            they rank the listed items among themselves, False if all others are below.

        Returns
        -------
        float or array of float
            One number per ballot; -inf where ties are larger than the model has them.

        Examples
        --------
        >>> model = DavidsonLuce([0.0, 0.0, 0.0], ties=[0.0])
        >>> float(np.exp(model.log_prob(BucketOrder([[0, 1], [2]]))))  # one of six sets
        0.1666...
        >>> np.exp(model.log_prob([[[0, 1], 2], [2, 0, 1]])).round(4)
        array([0.1667, 0.0556])
        """
        data, shape = self._ballots(ballots, subset)
        signs = np.repeat(data.signs, np.diff(data.ptr))
        values = davidson.log_likelihoods(
            signs * self._scores[data.items], self._deltas, data.ptr, data.sizes, data.stages
        )
        return np.bincount(data.ballot, values, data.n_ballots).reshape(shape)[()]

    def log_prob_gradient(self, ballots: Any, *, subset: bool | None = None) -> Slopes:
        """Differentiate `log_prob` by the scores and by the parameters of ties.

        Parameters
        ----------
        ballots, subset
            As in `log_prob`; no ballot may have probability 0.

        Returns
        -------
        Slopes
            With `scores`, shape (..., n), and `ties`, shape (..., T - 1).

        Examples
        --------
        >>> model = DavidsonLuce([0.0, 0.0, 0.0], ties=[0.0])
        >>> model.log_prob_gradient(BucketOrder([[0, 1], [2]]))
        Slopes(scores=array([ 0.1666...,  0.1666..., -0.3333...]), ties=array([0.5]))
        """
        data, shape = self._ballots(ballots, subset)
        if data.largest_tie > self.largest_tie or (self._deltas[data.sizes] == 0.0).any():
            raise ValueError("ballots: expected ties of sizes that the model has, got another")
        n, t = self.n_items, 1 + len(self._ties)
        need_memory(f"ballots: gradients of {len(data):,} ballots", 8.0 * len(data) * (n + t))
        signs = np.repeat(data.signs, np.diff(data.ptr))
        by_utility, by_tie = log_prob_slopes(
            signs * self._scores[data.items], self._deltas, data.ptr, data.sizes, data.stages
        )
        scores, ties = np.zeros((len(data), n)), np.zeros((len(data), max(t, by_tie.shape[1] - 1)))
        owner = np.repeat(data.ballot, np.diff(data.ptr))
        np.add.at(scores, (owner, data.items), signs * by_utility)
        np.add.at(ties[:, : by_tie.shape[1] - 1], data.ballot, by_tie[:, 1:])
        return Slopes(scores.reshape(*shape, n), ties[:, 1:].reshape(*shape, t - 1))

    def pair_chances(self, a: int | str, b: int | str) -> PairChances:
        """Return the chances of a contest of two items alone.

        In a ranking of more items the chances of a pair are others: see `pairwise`.

        Parameters
        ----------
        a, b : int or str
            Two items, by number or name.

        Returns
        -------
        PairChances
            Of a above b, of a tie, and of a below b.

        Examples
        --------
        >>> DavidsonLuce([0.0, 0.0], ties=[np.log(2.0)], names=["tea", "milk"]).pair_chances(0, 1)
        PairChances(above=0.25, tied=0.5, below=0.25)
        """
        i, j = find_item(a, self.names), find_item(b, self.names)
        if i == j:
            raise ValueError(f"a, b: expected two different items, got {self.names[i]!r} twice")
        s, t = self._narrow[i], self._narrow[j]
        tie = self._ties[0] if len(self._ties) else -np.inf
        logs = np.array([s, (s + t) / 2.0 + tie, t])
        weights = np.exp(logs - logs.max())
        return PairChances(*(weights / weights.sum()).tolist())

    # ---- draws -------------------------------------------------------------------------------

    def sample_ranks(
        self, size: int | tuple[int, ...] | None = None, rng: RandomState = None
    ) -> IntArray:
        """Draw rankings as the numbers of the items' buckets.

        Parameters
        ----------
        size : int or tuple of int, optional
            The batch shape; a single ranking without it.
        rng : int, Generator or None

        Returns
        -------
        array of int, shape (..., n)
            0 for the items of the first bucket, 1 for those of the next, and so on.

        Examples
        --------
        >>> DavidsonLuce([0.0, 0.0, -9.0], ties=[5.0]).sample_ranks(2, rng=0)
        array([[0, 0, 1],
               [0, 0, 1]])
        """
        shape, generator = batch_shape(size), as_rng(rng)
        number = math.prod(shape)
        need_memory(f"size: {number:,} rankings of {self.n_items:,} items", 8.0 * number)
        ranks = np.empty((number, self.n_items), dtype=np.int64)
        for (a, b), drawn, _ in self._draws(number, generator):
            ranks[a:b] = drawn
        return ranks.reshape(*shape, self.n_items)

    def sample(self, size: int | None = None, rng: RandomState = None) -> Any:
        """Draw rankings with ties.

        Parameters
        ----------
        size : int, optional
            How many; a single ranking without it. `sample_ranks` draws the same ones, faster, as
            an array of any shape.
        rng : int, Generator or None

        Returns
        -------
        BucketOrder, or list of BucketOrder
        """
        number = None if size is None else count("size", size, minimum=0)
        ranks = self.sample_ranks(number, rng)
        if number is None:
            return BucketOrder.from_scores(-ranks)
        return [BucketOrder.from_scores(-row) for row in ranks]

    # ---- sums over all rankings --------------------------------------------------------------

    def mode(self) -> BucketOrder:
        """Find the most probable ranking.

        It need not be in the order of the scores: a tie of lower items may come first, since
        more alternatives are gone after it. So all sets are looked at, as for other exact
        answers; without ties the items are sorted.

        Raises
        ------
        NotExactError
            With too many items.

        Examples
        --------
        >>> DavidsonLuce([0.03, 0.02, 0.01, 0.0, 0.0], ties=[-0.75]).mode()
        BucketOrder([[1, 2], [0], [3], [4]])
        """
        if self._luce is not None:
            return BucketOrder.from_order(self._luce.mode())
        self._need("mode", "take the most probable of many draws")
        return BucketOrder(davidson_sets.best_ranking(self._narrow, self._log_deltas))

    def rank_marginals(
        self,
        *,
        ties: str = "share",
        method: str = "auto",
        draws: int = DEFAULT_DRAWS,
        rng: RandomState = None,
    ) -> Estimates:
        """Return ``M[i, r]``, the probability that item i is at position r of one ranking.

        Parameters
        ----------
        ties : {"share", "min", "max", "dense"}
            Which position a tied item has. ``"share"``: each of its bucket's positions with equal
            probability, as if ties were broken by chance; ``"min"`` the first of them, ``"max"``
            the last; ``"dense"`` the number of its bucket.
        method : {"auto", "exact", "sample"}
            ``"auto"``: exact if feasible, otherwise Monte Carlo; ``"exact"``: raise
            `NotExactError` if infeasible; ``"sample"``: always Monte Carlo.
        draws : int
            The number of draws of a Monte Carlo estimate.
        rng : int, Generator or None

        Returns
        -------
        Estimates, shape (n, n)
            An array with a `standard_error`, 0 where exact.
        """
        choice("ties", ties, RULES)
        if self._is_exact("rank_marginals", method, closed=True):
            if self._luce is not None:
                return Estimates(self._luce.rank_marginals())
            if ties == "dense":
                return Estimates(self._buckets)
            return Estimates(_placed(self._sums.starts, ties))
        return self._average(lambda ranks: _places_drawn(ranks, ties), draws, rng)

    def top_k(self, k: int, **options: Any) -> FloatArray:
        """Return each item's probability to be among the first k, ties broken by chance.

        Parameters
        ----------
        k : int
        **options
            `method`, `draws` and `rng`, as in `rank_marginals`.
        """
        kept = min(count("k", k), self.n_items)
        return self.rank_marginals(**options)[:, :kept].sum(axis=1)

    def pairwise(
        self, *, method: str = "auto", draws: int = DEFAULT_DRAWS, rng: RandomState = None
    ) -> Estimates:
        """Return ``P[i, j]``, the probability that i is above j in one ranking of all items.

        What is missing from ``P[i, j] + P[j, i] = 1`` is the probability of a tie, `pairwise_ties`.
        For a contest of the two alone see `pair_chances`.

        Parameters
        ----------
        method, draws, rng
            As in `rank_marginals`.

        Returns
        -------
        Estimates, shape (n, n)
            0 on the diagonal.
        """
        if self._is_exact("pairwise", method, closed=True):
            return Estimates((self._luce or self)._pairs()[0])
        return self._average(lambda ranks: _pairs_drawn(ranks, np.less), draws, rng)
