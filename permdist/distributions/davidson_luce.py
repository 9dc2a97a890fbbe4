"""Davidson-Luce: rankings with ties; each stage chooses one item or a set of tied ones."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import as_array, check_scores, finite, frozen
from permdist._parallel import rows_of
from permdist.ballots import Ballots
from permdist.ballots.ballots import find_item
from permdist.distributions.tied_rankings import TiedRankings, listed_ballots
from permdist.inference.likelihood import ballot_log_prob, ballots_about
from permdist.rankings import BucketOrder, order_by_scores
from permdist.sums import davidson_draws, davidson_sets
from permdist.sums.davidson_slopes import log_prob_slopes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.inference import Fit
    from permdist.sums.davidson_sets import Sums

# exp(300) can still be multiplied with a sum over sets.
LARGEST_LOG_DELTA = 300.0


class PairChances(NamedTuple):
    """The chances of the results of a contest of two items."""

    above: float
    tied: float
    below: float


class Slopes(NamedTuple):
    """Derivatives by the scores (..., n) and by the logarithms of deltas (..., T - 1)."""

    scores: FloatArray
    ties: FloatArray


class DavidsonLuce(TiedRankings):
    """The Davidson-Luce distribution over rankings with ties.

    Out of the items that are not ranked yet, each stage chooses a set S of t items, which are tied,
    with probability proportional to ``delta_t exp(mean of the scores in S)``; ``delta_1 = 1``.
    A draw is a `BucketOrder`. Without ties this is `PlackettLuce`; with two items it is Davidson's
    model, which is that of Bradley and Terry with ties.

    Parameters
    ----------
    scores : array of float, shape (n,)
        Log-worths; any finite numbers.
    ties : array of float, shape (T - 1,)
        ``log delta_2, log delta_3, ...``, from -300 to 300, or -inf where there are no ties of a
        size. By default there are none at all.
    names : sequence of str, optional

    Attributes
    ----------
    fit_result : Fit or None
        Standard errors and more, where the parameters were fitted.

    References
    ----------
    Davidson: On extending the Bradley-Terry model to accommodate ties in paired comparison
    experiments, JASA 1970. Turner, van Etten, Firth, Kosmidis: Modelling rankings in R: the
    PlackettLuce package, Computational Statistics 2020.

    Examples
    --------
    >>> model = DavidsonLuce([1.0, 0.0, -1.0], ties=[-0.5])
    >>> model.sample(3, rng=0)
    [BucketOrder([[0], [1], [2]]), BucketOrder([[2], [0, 1]]), BucketOrder([[0], [1], [2]])]
    >>> model.pair_chances(0, 1)
    PairChances(above=0.576..., tied=0.211..., below=0.211...)
    >>> model.rank_marginals().round(3)
    array([[0.581, 0.309, 0.11 ],
           [0.278, 0.438, 0.284],
           [0.141, 0.253, 0.606]])
    """

    def __init__(
        self, scores: ArrayLike, ties: ArrayLike = (), names: Sequence[str] | None = None
    ) -> None:
        values = finite("scores", scores, ndim=1).copy()
        check_scores(values)
        if len(values) == 0:
            raise ValueError("scores: expected at least one item, got none")
        super().__init__(len(values), names)
        deltas = np.array(as_array("ties", ties), dtype=np.float64)
        if deltas.ndim != 1:
            raise ValueError(f"ties: expected 1 dimension(s), got shape {deltas.shape}")
        wrong = ~((deltas == -np.inf) | (np.abs(deltas) <= LARGEST_LOG_DELTA))
        if wrong.any():
            raise ValueError(
                f"ties: expected logarithms from -{LARGEST_LOG_DELTA:g} to {LARGEST_LOG_DELTA:g}, "
                f"or -inf, got {deltas[wrong][0]} at index {int(np.argmax(wrong))}"
            )
        for array in (values, deltas):
            array.flags.writeable = False
        self._scores, self._ties = values, deltas
        self._fit: Fit | None = None

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

    @property
    def fit_result(self) -> Fit | None:
        """How the parameters were fitted; None if they were given."""
        return self._fit

    # ---- probabilities -----------------------------------------------------------------------

    def log_prob(self, ballots: Any, *, subset: bool | None = None) -> Any:
        """Return the log-probability of rankings with ties, and of all else that ballots can be.

        Parameters
        ----------
        ballots : BucketOrder, TopK, array, sequence of rankings, Ballots or Preferences
            One ranking or many, as `permdist.Ballots.of` accepts them; weights do not matter.
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
        listed, shape = listed_ballots(ballots)
        if shape is not None and 0 in shape:
            return np.zeros(shape)
        logs = ballot_log_prob(listed, self, tuple(self._ties), self._scores, subset)
        return logs if shape is None else logs.reshape(shape)[()]

    def log_prob_gradient(self, ballots: Any, *, subset: bool | None = None) -> Slopes:
        """Differentiate `log_prob` by the scores and by the logarithms of deltas.

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
        >>> slopes = model.log_prob_gradient(BucketOrder([[0, 1], [2]]))
        >>> slopes.scores.round(4), slopes.ties
        (array([ 0.1667,  0.1667, -0.3333]), array([0.5]))
        """
        listed, shape = listed_ballots(ballots)
        data = ballots_about(self, listed, subset)
        deltas = np.concatenate([[0.0, 1.0], np.exp(self._ties)])
        if data.largest_tie >= len(deltas) or (deltas[data.sizes] == 0.0).any():
            raise ValueError("ballots: expected no probability of 0, got ties of such a size")
        number, n = data.n_ballots, self.n_items
        owner = rows_of(data.ptr)
        signs = data.signs[owner]
        by_utility, by_tie = log_prob_slopes(
            signs * self._scores[data.items], deltas, data.ptr, data.sizes, data.stages
        )
        scores, ties = np.zeros((number, n)), np.zeros((number, len(self._ties)))
        np.add.at(scores, (data.ballot[owner], data.items), signs * by_utility)
        np.add.at(ties, data.ballot, by_tie[:, 2:])
        batch = (number,) if shape is None else shape
        return Slopes(scores.reshape(*batch, n), ties.reshape(*batch, len(self._ties)))

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
        >>> model = DavidsonLuce([0.0, 0.0], ties=[np.log(2.0)], names=["tea", "milk"])
        >>> model.pair_chances("tea", "milk")
        PairChances(above=0.25, tied=0.5, below=0.25)
        """
        i, j = find_item(a, self.names), find_item(b, self.names)
        if i == j:
            raise ValueError(f"a, b: expected two different items, got {self.names[i]!r} twice")
        tie = self._ties[0] if len(self._ties) else -np.inf
        logs = np.array([self._centered[i], self._centered[[i, j]].mean() + tie, self._centered[j]])
        weights = np.exp(logs - logs.max())
        return PairChances(*(weights / weights.sum()).tolist())

    def mode(self) -> BucketOrder:
        """Find the most probable ranking.

        It need not be in the order of the scores: a tie of lower items may come first, since
        fewer alternatives are left after it. So all sets of items are considered, up to about 20
        items. Without ties the items are sorted.

        Raises
        ------
        NotExactError
            With too many items.

        Examples
        --------
        >>> DavidsonLuce([0.15, 0.08, 0.03, 0.02, 0.0], ties=[-1.04]).mode()
        BucketOrder([[1, 2], [0], [3], [4]])
        """
        if self.largest_tie == 1:
            return BucketOrder.from_order(order_by_scores(self._scores))
        self._need_few("mode")
        return BucketOrder(davidson_sets.best_ranking(self._centered, self._log_deltas))

    # ---- fits --------------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        ballots: Any,
        *,
        n_items: int | None = None,
        subset: bool | None = None,
        weights: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        clusters: ArrayLike | None = None,
        features: Any = None,
        offset: ArrayLike | None = None,
        times: ArrayLike | None = None,
        half_life: float | None = None,
        prior: Any = None,
        max_iter: int = 100,
        tol: float = 1e-9,
    ) -> DavidsonLuce:
        """Estimate scores and the prevalence of ties, by maximum likelihood.

        Parameters
        ----------
        ballots : Ballots, Preferences, array, or sequence of rankings
            Rankings with or without ties, of all items or of some, choices, contests, in any
            mixture, as `permdist.Ballots.of` accepts them, and blocks of ballots. Ties of the
            sizes that occur are part of the model.
        n_items, subset, weights, names
            As in `permdist.Ballots.from_orders`. Weights that are not whole numbers are the
            importance of single ballots.
        clusters : array of shape (ballots,), optional
            Labels; ballots with one label, a voter's, need not be independent. For errors of
            the kinds ``"sandwich"`` and ``"bootstrap"``.
        features : array of float or data frame, shape (n, k), optional
            Features of the items: scores are their products with coefficients, which are
            estimated.
        offset : array of float, shape (n,) or (ballots, n), optional
            Known parts of the scores; those of single ballots are beside the scores.
        times : array of float, shape (ballots,), optional
            When each ballot was cast, in any unit; ``time=COLUMN`` of
            `permdist.data.load_battles`.
        half_life : float, optional
            The time after which a ballot counts half, in days where times are dates or Unix times.
        prior : float, Ridge, Normal or PseudoWins, optional
            A number is the strength of a ridge; see `permdist.inference`.
        max_iter : int
            How many Newton steps may be taken.
        tol : float
            The error of a parameter that is tolerated, 0.01 at most.

        Returns
        -------
        DavidsonLuce
            With scores that add up to 0, and `fit_result`.

        Raises
        ------
        ValueError
            Where no estimate exists: some items never win or never lose, are on no ballot, or
            are never compared.
        RuntimeError
            Where `tol` is not reached within `max_iter` steps.

        Examples
        --------
        >>> truth = DavidsonLuce([1.0, 0.0, -1.0], ties=[-0.5])
        >>> model = DavidsonLuce.fit(truth.sample(5000, rng=1))
        >>> model.scores.round(1), model.ties.round(1)
        (array([ 1., -0., -1.]), array([-0.5]))
        """
        from permdist.inference.fit import fit_ballots, named_features

        data = Ballots.of(
            ballots,
            n_items=n_items,
            subset=subset,
            names=names,
            weights=weights,
            clusters=clusters,
            times=times,
        )
        design, feature_names = named_features(features)
        result = fit_ballots(
            data,
            data.tie_sizes,
            features=design,
            feature_names=feature_names,
            offset=offset,
            half_life=half_life,
            prior=prior,
            max_iter=max_iter,
            tol=tol,
        )
        model = cls(result.scores, result.ties, data.names if data.is_named else names)
        model.__dict__["_fit"] = result
        return model

    @classmethod
    def fit_pairs(
        cls,
        winners: ArrayLike,
        losers: ArrayLike,
        *,
        ties: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        **options: Any,
    ) -> DavidsonLuce:
        """Estimate scores from contests of two (Davidson's model).

        Parameters
        ----------
        winners, losers : arrays of int or str, shape (contests,)
        ties : array of bool, shape (contests,), optional
            Contests without a winner.
        weights : array of float, shape (contests,), optional
            How often each contest had this result; as in `fit`.
        **options
            As in `fit`.

        Examples
        --------
        >>> model = DavidsonLuce.fit_pairs(
        ...     ["tea", "milk", "tea"], ["milk", "tea", "milk"], ties=[False, False, True],
        ...     weights=[4, 1, 2],
        ... )
        >>> model.pair_chances("tea", "milk")
        PairChances(above=0.571..., tied=0.285..., below=0.142...)
        """
        return cls.fit(Ballots.from_pairs(winners, losers, ties=ties, weights=weights), **options)

    # ---- inside ------------------------------------------------------------------------------

    @cached_property
    def _log_deltas(self) -> FloatArray:
        """Logarithms from that of delta_1 on, up to the largest tie there can be."""
        logs = np.concatenate([[0.0], self._ties])[: self.n_items]
        return logs[: int(np.flatnonzero(logs > -np.inf)[-1]) + 1]

    @cached_property
    def _centered(self) -> FloatArray:
        """The scores, the highest at 0."""
        scores = self._scores - self._scores.min()
        return scores - scores.max()

    @cached_property
    def _tree(self) -> tuple[FloatArray, bool]:
        return davidson_draws.tree_of(self._centered, self.largest_tie)

    def _draw(self, size: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        uniforms, (tree, logs) = rng.random((size, self.n_items)), self._tree
        scores, ties = frozen(self._centered), frozen(self._log_deltas)
        return davidson_draws.draw(frozen(tree), logs, scores, ties, uniforms)

    def _add_up(self, *, numbered: bool = False, codes: IntArray | None = None) -> Sums:
        inputs = self._centered, self._log_deltas
        return davidson_sets.add_up(*inputs, numbered=numbered, codes=codes)

    @property
    def _is_small(self) -> bool:
        return davidson_sets.fits(self.n_items, self.largest_tie)

    @property
    def _limit(self) -> int:
        return max(n for n in range(1, 40) if davidson_sets.fits(n, self.largest_tie))

    def _quick(self) -> tuple[int, int]:
        return 10, 60

    def __repr__(self) -> str:
        scores, ties = (
            np.array2string(array, precision=4, threshold=8, separator=", ")
            for array in (self._scores, self._ties)
        )
        return f"DavidsonLuce({scores}, ties={ties})"
