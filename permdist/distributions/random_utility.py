"""Random utilities: items with independent noisy scores.

Plackett-Luce and Gaussian scores differ only in the noise; `permdist.sums.utilities` integrates it.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from permdist._check import check_scores, finite
from permdist.distributions.base import Distribution
from permdist.distributions.exposures import position_weights
from permdist.measures import AUC, Composite, KendallTau, Measure, parse
from permdist.rankings import order_by_scores
from permdist.sums.utilities import expected_steps, expected_sum, marginals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.measures import Positional
    from permdist.sums.positions import RandomNoise
    from permdist.sums.utilities import Noise


class RandomUtility(Distribution):
    """A distribution in which items are ranked by independent noisy scores.

    Parameters
    ----------
    scores : array of float, shape (n,)
    names : sequence of str, optional
    """

    def __init__(self, scores: ArrayLike, names: Sequence[str] | None = None) -> None:
        values = finite("scores", scores, ndim=1)
        if len(values) == 0:
            raise ValueError("scores: expected at least one item, got none")
        super().__init__(len(values), names)
        check_scores(values, self._unit)
        values = values.copy()
        values.flags.writeable = False
        self._scores = values

    @property
    def scores(self) -> FloatArray:
        """The items' scores."""
        return self._scores

    @abstractmethod
    def _noise(self) -> Noise:
        """Evaluate the noise, in units of its scale, at nodes that cover all of it."""

    @property
    @abstractmethod
    def _kind(self) -> RandomNoise:
        """Which noise it is, for sums over positions of many lists."""

    @property
    def _unit(self) -> float:
        """The scale of the noise."""
        return 1.0

    def _mode(self) -> IntArray:
        """Return the order of the scores; equal scores by item number."""
        return order_by_scores(self._scores)

    def _rank_marginals(self) -> FloatArray:
        """Return ``M[i, r]``, the probability that item i is at position r.

        Exact to about 1e-15, relative for all but the smallest; O(n^2 log n) for each node.
        """
        return self._marginals.copy()

    @cached_property
    def _marginals(self) -> FloatArray:
        return marginals(self._noise(), self.n_items)

    def _top_k(self, k: int) -> FloatArray:
        if "_marginals" in self.__dict__:
            return self._marginals[:, :k].sum(axis=1)
        return marginals(self._noise(), k).sum(axis=1)

    @property
    def _has_marginals(self) -> bool:
        return True

    @property
    def _has_pairwise(self) -> bool:
        return True

    def expect_gradient(self, measure: str | Measure, labels: ArrayLike) -> FloatArray:
        """Differentiate `expect` by the scores.

        Parameters
        ----------
        measure : Measure or str
            Positional (NDCG, Precision, WTA, binary AUC), or AUC or Kendall's tau.
        labels : array of int, shape (n,)

        Returns
        -------
        array of float, shape (n,)
        """
        chosen, label = parse(measure), self._labels(labels)
        if not chosen.defined(label):
            return np.zeros(self.n_items)
        if isinstance(chosen, Composite):
            slopes = np.array([self.expect_gradient(part, label) for part in chosen.parts])
            return np.array(chosen.weights) @ slopes
        if isinstance(chosen, AUC | KendallTau):
            better = label[:, None] > label[None, :]
            slopes = self._pairwise_slopes() * (better.astype(float) - better.T) / better.sum()
            factor = 1.0 if isinstance(chosen, AUC) else 2.0
            return factor * slopes.sum(axis=1)
        form = chosen.positional(label)
        if form is None:
            raise ValueError(
                f"measure: no exact gradient of {chosen.name!r} for these labels; there is one "
                "for ndcg, precision, wta, auc and tau"
            )
        return self.expected_sum(form)[1]

    def expected_sum(self, form: Positional) -> tuple[float, FloatArray]:
        """Return the expected value of a sum over positions, and its gradient.

        Costs O(items x positions that count) per node of the quadrature.

        Parameters
        ----------
        form : Positional
            Of a measure and labels, by its `positional` method.

        Examples
        --------
        >>> from permdist import GaussianScores
        >>> from permdist.measures import NDCG
        >>> value, gradient = GaussianScores([1.0, 0.0]).expected_sum(NDCG().positional([1, 0]))
        >>> round(value, 4), gradient.round(4)
        (0.9115, array([ 0.0811, -0.0811]))
        """
        value, gradient = expected_sum(self._noise(), form)
        return value, gradient / self._unit

    def exposure(
        self, discount: str | float | ArrayLike = "log2", k: int | None = None
    ) -> FloatArray:
        """Return how much of each item is seen: the expected weight of its position.

        Exact to 1e-12; O(items x positions that count) per node of the quadrature.

        Parameters
        ----------
        discount : {"log2", "jk", "reciprocal"}, float, or array of float
            The weights of positions; see `permdist.distributions.position_weights`.
        k : int, optional
            Positions beyond the first k are not seen.

        Returns
        -------
        array of float, shape (n,)

        Examples
        --------
        >>> from permdist import PlackettLuce
        >>> PlackettLuce([1.0, 0.9, -1.0]).exposure().round(3)
        array([0.801, 0.782, 0.548])
        """
        weights = position_weights(discount, k, self.n_items)
        ends = np.array([0, self.n_items]), np.array([0, len(weights)])
        return self._kind.exposures(self._scores, ends[0], weights, ends[1])

    def exposure_gradient(
        self,
        cotangent: ArrayLike,
        discount: str | float | ArrayLike = "log2",
        k: int | None = None,
    ) -> FloatArray:
        """Differentiate ``sum(cotangent * exposure(discount, k))`` by the scores.

        Parameters
        ----------
        cotangent : array of float, shape (n,)
            Derivatives of anything by the exposures.
        discount, k
            As in `exposure`.

        Returns
        -------
        array of float, shape (n,)
        """
        gains = finite("cotangent", cotangent, ndim=1)
        if gains.shape != self._scores.shape:
            raise ValueError(f"cotangent: expected shape {self._scores.shape}, got {gains.shape}")
        weights = position_weights(discount, k, self.n_items)
        ends = np.array([0, self.n_items]), np.array([0, len(weights)])
        return self._kind.expected_sums(self._scores, ends[0], gains, weights, ends[1])[1]

    def rank_marginals_gradient(self, cotangent: ArrayLike) -> FloatArray:
        """Differentiate ``sum(cotangent * rank_marginals())`` by the scores.

        Parameters
        ----------
        cotangent : array of float, shape (n, k)
            Derivatives of anything by the probabilities of the first k positions, k up to n.

        Returns
        -------
        array of float, shape (n,)

        Examples
        --------
        >>> from permdist import PlackettLuce
        >>> wanted = np.zeros((3, 1))
        >>> wanted[0] = 1.0  # item 0 first: a softmax
        >>> PlackettLuce([1.0, 0.9, -1.0]).rank_marginals_gradient(wanted).round(3)
        array([ 0.25 , -0.217, -0.033])
        """
        weight = finite("cotangent", cotangent, ndim=2)
        n = self.n_items
        if len(weight) != n or weight.shape[1] > n:
            raise ValueError(f"cotangent: expected shape {n, n}, got {weight.shape}")
        return self._kind.marginals_gradient(self._scores, weight)

    @abstractmethod
    def _pairwise_slopes(self) -> FloatArray:
        """Differentiate ``P[i, j]`` by score i, shape (n, n); by score j it is the negative."""

    def _expect_exactly(self, measure: Measure, labels: IntArray) -> float | None:
        good = labels > 0
        two_kinds = len(np.unique(labels)) == 2 and labels.min() == 0
        by_places = measure.positional(labels) is not None or isinstance(measure, AUC | KendallTau)
        if by_places or not measure.additive or not (measure.binary or two_kinds):
            return super()._expect_exactly(measure, labels)
        # Few items have few orders, but to list them takes longer.
        p, m = int(good.sum()), int((~good).sum())
        top = np.unique(labels)[-1] if not measure.binary else 1
        values, totals = np.array([0, top]), np.array([m, p])
        steps = measure.step(values, totals, 1, np.moveaxis(np.mgrid[0 : m + 1, 0:p], 0, -1))
        total = expected_steps(self._noise(), good, np.ascontiguousarray(steps.T))
        return measure.offset(values, totals) + total

    def __repr__(self) -> str:
        shown = np.array2string(self._scores, precision=4, threshold=8, separator=", ")
        return f"{type(self).__name__}({shown}{self._options()})"

    def _quick(self) -> tuple[int, int]:
        return 100, 2000

    def _options(self) -> str:
        return ""
