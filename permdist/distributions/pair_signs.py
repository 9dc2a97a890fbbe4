"""The good-bad pair model over sign vectors, transitive or not: all pairs are independent."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, log_expit

from permdist._check import as_rng, batch_shape, grades
from permdist.distributions.pair_model import PairModel, arrange
from permdist.measures import AUC, KendallTau, Measure, parse
from permdist.sums.pairs import BatchPairs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, RandomState


class PairSigns(PairModel):
    """The good-bad pair model over all sign vectors: ``Pr(y) proportional to exp F(y)``.

    ``F(y) = scale * sum_gb y_gb (s_g - s_b)`` over the pairs of a good and a bad item, with
    ``y_gb = 1`` if the good one is above and -1 if not; with graded labels, over all pairs with
    different labels. The signs are independent, and a draw is a sign matrix that need not be that
    of any order: this is no `Distribution` over rankings. For these see `GoodBad`.

    Parameters
    ----------
    scores : array of float, shape (n,)
    labels : array of int, shape (n,)
        Relevance labels, at least two different ones.
    scale : float
        The factor of the score differences.
    tilt : Measure or str, optional
        Adds ``kappa * (1 - measure)`` to the exponent: the loss-augmented distribution. Over sign
        vectors only AUC factorizes.
    kappa : float
        The weight of the tilt.
    names : sequence of str, optional
        Item names.

    References
    ----------
    Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, section 2.3.

    Examples
    --------
    >>> model = PairSigns([1.0, 0.2, -0.4], [1, 0, 0])
    >>> model.pair_probabilities().round(4)
    array([[0.832 , 0.9427]])
    >>> round(model.expect("auc"), 4)
    0.8873
    >>> model.sample(rng=0)
    array([[1, 1]], dtype=int8)
    """

    def _check_tilt(self) -> None:
        if not (self._tilt is None or isinstance(self._tilt, AUC)):
            raise ValueError(
                f"tilt: over sign vectors only AUC factorizes, got {self._tilt.name!r}; "
                "use GoodBad(..., space='interleavings')"
            )

    def sample(self, size: int | tuple[int, ...] | None = None, rng: RandomState = None) -> Any:
        """Draw sign matrices.

        Parameters
        ----------
        size : int or tuple of int, optional
            The batch shape; a single matrix without it.
        rng : int, Generator or None

        Returns
        -------
        array of int8, shape (..., p, m) or (..., n, n)
            +1 where the good item is above and -1 where it is not, goods by bads; for graded
            labels antisymmetric matrices with 0 where labels are equal.
        """
        shape, chance = batch_shape(size), self.pair_probabilities()
        drawn = as_rng(rng).random((math.prod(shape), *chance.shape)) < chance
        signs = np.where(drawn, 1, -1).astype(np.int8)
        if not self._is_binary:
            upper = np.triu(np.ones(chance.shape, dtype=bool), 1)
            signs = np.where(upper, signs, 0).astype(np.int8)
            signs -= signs.transpose(0, 2, 1)
            signs *= self._differ.astype(np.int8)
        return signs.reshape(*shape, *chance.shape)

    def log_prob(self, signs: ArrayLike) -> Any:
        """Return the log-probability of each sign matrix, shaped as the draws of `sample`."""
        array, odds = np.asarray(signs), self._log_odds()
        if array.shape[-2:] != odds.shape:
            raise ValueError(
                f"signs: expected sign matrices of shape (..., {odds.shape[0]}, "
                f"{odds.shape[1]}), got {array.shape}; over pairs a draw is no order"
            )
        counted = self._counted
        if not np.isin(array[..., counted], (-1, 1)).all():
            raise ValueError("signs: expected entries +1 and -1")
        if not self._is_binary and (array != -np.swapaxes(array, -1, -2)).any():
            raise ValueError("signs: expected antisymmetric matrices for graded labels")
        odds = odds[counted]
        return log_expit(np.where(array[..., counted] > 0, odds, -odds)).sum(axis=-1)[()]

    def log_partition(self) -> float:
        """Return ``log sum_y exp F(y)``, with the tilt if there is one."""
        # Beyond the gaps that were narrowed every term is linear in its difference.
        narrow = arrange(0.5 * self._standard, self._own_labels, 1.0).reference
        return float(self._sums[0][0, 0]) + self._reference - narrow

    def log_partition_gradient(self) -> FloatArray:
        """Differentiate `log_partition` by the scores, shape (n,)."""
        return self._scale * self._sums[1][0]

    def pair_probabilities(self) -> FloatArray:
        """Return the probability that each pair is in the right order.

        Returns
        -------
        array of float, shape (p, m), or (n, n)
            For binary labels, goods by bads, both by item number. For graded labels entry
            [i, j] is the probability that i is above j; 1/2 where the labels are equal.
        """
        return expit(self._log_odds())

    def expect(self, measure: str | Measure, labels: ArrayLike | None = None) -> float:
        """Return the expected value of AUC or of Kendall's tau.

        Parameters
        ----------
        measure : Measure or str
        labels : array of int, shape (n,), optional
            The model's own labels; there is no closed form for others.
        """
        factor = self._factor(measure, labels)
        return factor * float(self._sums[0][1, 0]) / self._n_pairs - (factor - 1.0)

    def expect_gradient(
        self, measure: str | Measure, labels: ArrayLike | None = None
    ) -> FloatArray:
        """Differentiate `expect` by the scores, shape (n,)."""
        return self._factor(measure, labels) * (self._scale * self._sums[1][1]) / self._n_pairs

    def entropy(self) -> float:
        """Return the entropy in nats."""
        odds = self._log_odds()[self._counted]
        parts = expit(odds) * log_expit(odds) + expit(-odds) * log_expit(-odds)
        return -float(parts.sum())

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Log-partition and pairs in the right order, and derivatives by the scaled scores."""
        scores, tilt = 0.5 * self._standard, np.array([self._tilt_per_pair])
        return self._pairs.sums(scores, np.ones(1), tilt, lambda work, _cost: work(0, 1))

    @cached_property
    def _pairs(self) -> BatchPairs:
        return BatchPairs(self._own_labels, np.array([0, self.n_items]))

    @property
    def _n_pairs(self) -> float:
        return float(self._pairs.n_pairs[0])

    @property
    def _tilt_per_pair(self) -> float:
        return 0.0 if self._tilt is None else self._kappa / self._n_pairs

    @property
    def _is_binary(self) -> bool:
        return len(self._arranged.totals) == 2

    @property
    def _differ(self) -> BoolArray:
        """Whether two items have different labels, shape (n, n)."""
        differ: BoolArray = self._own_labels[:, None] != self._own_labels[None, :]
        return differ

    @property
    def _counted(self) -> BoolArray:
        """The entries of a sign matrix that are independent."""
        if self._is_binary:
            return np.ones(self._arranged.totals[::-1], dtype=bool)
        return np.triu(self._differ)

    def _log_odds(self) -> FloatArray:
        """Return the log-odds of each pair, in the shape of `pair_probabilities`."""
        gap = 2.0 * self._scale * (self._scores[:, None] - self._scores[None, :])
        sign = np.sign(self._own_labels[:, None] - self._own_labels[None, :])
        odds = np.where(sign == 0, 0.0, gap - self._tilt_per_pair * sign)
        if not self._is_binary:
            return odds
        level_of = self._levels[0]
        return odds[np.ix_(np.flatnonzero(level_of == 1), np.flatnonzero(level_of == 0))]

    def _factor(self, measure: str | Measure, labels: ArrayLike | None) -> float:
        """Return how often AUC counts in a measure: tau is twice AUC, less 1."""
        chosen = parse(measure)
        own = labels is None or np.array_equal(grades("labels", labels), self._own_labels)
        if not isinstance(chosen, AUC | KendallTau) or not own:
            raise TypeError(
                f"measure: over sign vectors there are only AUC and tau, for the model's own "
                f"labels, got {chosen.name!r}; use GoodBad, over interleavings or orders"
            )
        return 1.0 if isinstance(chosen, AUC) else 2.0

    def _quick(self) -> tuple[int, int]:
        return 1000, 0

    def _repr_html_(self) -> str:
        from permdist.distributions.view import pairs_html

        return pairs_html(self)

    def __repr__(self) -> str:
        return self._shown()
