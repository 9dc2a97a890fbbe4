"""The good-bad pair model over the sign vectors that orders have, each counted once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng, batch_shape, grades
from permdist.distributions.pair_model import arrange
from permdist.distributions.pair_signs import PairSigns
from permdist.measures import parse
from permdist.sums.lattice import NotExactError
from permdist.sums.subsets import Subsets, check_items

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.measures import Measure


class ValidSigns(PairSigns):
    """The good-bad pair model over valid sign vectors: ``Pr(y) proportional to exp F(y)``.

    A sign vector is valid if some order has it. Each is counted once, where `GoodBad` over orders
    counts it as often as it has orders: the product of the factorials of the sizes of its blocks,
    runs of items of the same label. Without scores there are as many as the poly-Bernoulli number
    of the two classes. All sums are exact, over the subsets of up to 18 items.

    Parameters
    ----------
    scores : array of float, shape (n,)
    labels : array of int, shape (n,)
        Relevance labels, at least two different ones.
    scale : float
        The factor of the score differences.
    tilt : Measure or str, optional
        Adds ``kappa * (1 - measure)`` to the exponent: the loss-augmented distribution. A valid
        sign vector fixes where the items of each label are, and so any measure.
    kappa : float
        The weight of the tilt.
    names : sequence of str, optional
        Item names.

    References
    ----------
    Dubey et al.: Conditional Models for Non-smooth Ranking Loss Functions, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> round(np.exp(ValidSigns(np.zeros(5), [1, 1, 0, 0, 0]).log_partition()))
    46
    >>> model = ValidSigns([1.0, 0.2, -0.4], [1, 0, 0])
    >>> model.pair_probabilities().round(4)
    array([[0.832 , 0.9427]])
    >>> round(model.expect("ap"), 4)
    0.8906
    >>> model.sample(rng=1)
    array([[1, 1]], dtype=int8)
    """

    def _check_tilt(self) -> None:
        check_items(self.n_items, distinct=True)

    def sample(self, size: int | tuple[int, ...] | None = None, rng: RandomState = None) -> Any:
        """Draw sign matrices, as `PairSigns.sample` returns them.

        Parameters
        ----------
        size : int or tuple of int, optional
            The batch shape; a single matrix without it.
        rng : int, Generator or None

        Returns
        -------
        array of int8, shape (..., p, m) or (..., n, n)
        """
        shape = batch_shape(size)
        signs = self.signs_of(self._subsets.sample(int(np.prod(shape, dtype=int)), as_rng(rng)))
        return signs.reshape(*shape, *signs.shape[1:])

    def signs_of(self, orders: ArrayLike) -> Any:
        """Return the sign matrices of orders, shape (..., p, m) or (..., n, n).

        Parameters
        ----------
        orders : array of int, shape (..., n)
        """
        ranks = np.argsort(np.asarray(orders), axis=-1)
        signs = np.sign(ranks[..., None, :] - ranks[..., :, None]).astype(np.int8)
        if self._is_binary:
            level_of = self._levels[0]
            return signs[..., level_of == 1, :][..., level_of == 0]
        return signs * self._differ.astype(np.int8)

    def log_prob(self, signs: ArrayLike) -> Any:
        """Return the log-probability of each sign matrix; -inf if no order has these signs.

        Parameters
        ----------
        signs : array of int, shape (..., p, m) or (..., n, n)
            As the draws of `sample`.
        """
        super().log_prob(signs)  # checks them
        array = np.asarray(signs)
        orders = self._orders_of(array)
        valid = (self.signs_of(orders) == array).all(axis=(-1, -2))
        F = 0.5 * (array[..., self._counted] * self._pair_gaps).sum(axis=-1)
        if self._tilt is not None:
            F = F + self._kappa * (1.0 - self._tilt(orders, self._own_labels))
        return np.where(valid, F - self.log_partition(), -np.inf)[()]

    @property
    def _pair_gaps(self) -> FloatArray:
        """Twice the scaled difference of the scores of each counted pair."""
        gap = 2.0 * self._scale * (self._scores[:, None] - self._scores[None, :])
        if self._is_binary:
            level_of = self._levels[0]
            gap = gap[np.ix_(level_of == 1, level_of == 0)]
        return gap[self._counted]

    def _orders_of(self, signs: Any) -> IntArray:
        """Return orders that have these signs, if any has: by the others above each item."""
        above = np.empty((*signs.shape[:-2], self.n_items))
        if self._is_binary:
            level_of = self._levels[0]
            above[..., level_of == 1] = (signs < 0).sum(axis=-1)
            above[..., level_of == 0] = (signs > 0).sum(axis=-2)
        else:
            above[...] = (signs < 0).sum(axis=-1)
        # The k-th of a level with a others above is at position a + k.
        for level in range(len(self._arranged.totals)):
            members = np.flatnonzero(self._levels[0] == level)
            place = np.argsort(np.argsort(above[..., members], axis=-1, kind="stable"), axis=-1)
            above[..., members] += place
        return np.argsort(above, axis=-1, kind="stable")

    def log_partition(self) -> float:
        """Return ``log sum_y exp F(y)``, with the tilt if there is one."""
        # Relative to the order of the labels; and beyond narrowed gaps, to that of the scores.
        half = 0.5 * self._standard
        best = float(half @ self._arranged.balance)
        narrow = arrange(half, self._own_labels, 1.0).reference
        found = self._subsets.log_sum + self._constant
        return found + best + self._reference - narrow

    @property
    def _constant(self) -> float:
        if self._tilt is None:
            return 0.0
        arranged = self._arranged
        return self._kappa * (1.0 - self._tilt.offset(arranged.values, arranged.totals))

    def log_partition_gradient(self) -> FloatArray:
        """Differentiate `log_partition` by the scores, shape (n,)."""
        return self._scale * (2.0 * self._subsets.slopes() + self._arranged.balance)

    def pair_probabilities(self) -> FloatArray:
        """Return the probability that each pair is in the right order, as `PairSigns` does.

        Returns
        -------
        array of float, shape (p, m), or (n, n)
        """
        chances = np.where(self._differ, self._subsets.pairwise(), 0.5)
        if not self._is_binary:
            return chances
        level_of = self._levels[0]
        return chances[np.ix_(level_of == 1, level_of == 0)]

    def expect(self, measure: str | Measure, labels: ArrayLike | None = None) -> float:
        """Return the expected value of a measure that adds up along the ranking.

        Parameters
        ----------
        measure : Measure or str
        labels : array of int, shape (n,), optional
            The model's own labels; sign vectors do not fix measures of others.
        """
        found = self._averaged(measure, labels)
        return found.mean + parse(measure).offset(self._arranged.values, self._arranged.totals)

    def expect_gradient(
        self, measure: str | Measure, labels: ArrayLike | None = None
    ) -> FloatArray:
        """Differentiate `expect` by the scores, shape (n,)."""
        return 2.0 * self._scale * self._averaged(measure, labels).mean_slopes()

    def entropy(self) -> float:
        """Return the entropy in nats."""
        found = self._subsets.log_sum - float(self._standard @ self._subsets.slopes())
        if self._tilt is not None:
            found += self._kappa * self._subsets.mean
        return found

    @cached_property
    def _subsets(self) -> Subsets:
        return self._sums_of(self._tilt)

    def _sums_of(self, measure: Measure | None) -> Subsets:
        inputs = self._standard, self._own_labels, measure, self._tilt, -self._kappa
        return Subsets(*inputs, distinct=True)

    def _quick(self) -> tuple[int, int]:
        return 12, 0

    def _averaged(self, measure: str | Measure, labels: ArrayLike | None) -> Subsets:
        chosen = parse(measure)
        if labels is not None and not np.array_equal(grades("labels", labels), self._own_labels):
            raise TypeError("labels: over sign vectors there are only the model's own")
        if not chosen.additive:
            raise NotExactError(f"expect({chosen.name!r}): no sum along the ranking")
        return self._subsets if chosen == self._tilt else self._sums_of(chosen)
