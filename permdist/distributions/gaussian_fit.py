"""Maximum likelihood for Gaussian scores, in standard deviations of the noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, ndtri

from permdist._check import count, integers
from permdist.ballots import (
    LARGEST_TOTAL,
    SMALLEST_TOTAL,
    Rankings,
    check_existence,
    check_names,
    check_penalty,
)
from permdist.distributions.gaussian import GaussianScores
from permdist.distributions.newton import Network, Optimum, PrecisionError, Products, minimize
from permdist.distributions.plackett_luce_fit import _information, fit_scores
from permdist.rankings import check_orders

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray

GUMBEL = math.sqrt(6.0) / math.pi  # a Gaussian's standard deviation over a Gumbel's


def fit_standard(
    orders: Any,
    weights: ArrayLike | None,
    regularization: float,
    scale: float,
    names: Sequence[str] | None,
    max_iter: int,
) -> FloatArray:
    """Maximize the penalized likelihood; return the scores over `scale`, which add up to 0."""
    penalty = check_penalty(regularization)
    if penalty > 0.0:
        with np.errstate(over="ignore", under="ignore"):
            penalty = float(np.float64(penalty) * scale * scale)
        if not SMALLEST_TOTAL <= penalty <= LARGEST_TOTAL:
            raise ValueError(
                f"regularization: expected 0 or {SMALLEST_TOTAL:g} to {LARGEST_TOTAL:g} over the "
                f"square of scale, {scale:g}, got {regularization:g}"
            )
    max_iter = count("max_iter", max_iter)
    table = integers("orders", orders, what="item numbers")
    if table.ndim == 2 and table.size and table.max() >= table.shape[1]:
        raise ValueError(
            f"orders: expected full rankings, got lists of {table.shape[1]} item(s) with item "
            f"{table.max()}; PlackettLuce.fit takes lists that are short of the items"
        )
    check_orders(table)
    data = Rankings(table, None, weights, penalized=penalty > 0.0)
    names = check_names(names, data.n_items)
    if penalty == 0.0:
        check_existence(data, names)
    different = data.items.reshape(-1, data.n_items)
    # A power of two scales without rounding; the largest weight or the penalty is near 1 then.
    unit = 2.0 ** math.frexp(max(float(data.weights.max()), penalty))[1]
    data.weights = data.weights / unit
    target = _Likelihood(data, penalty / unit)
    start = _start(different, data.weights, penalty / unit)
    try:
        return target.best(start, max_iter, central=False).scores
    except PrecisionError:
        return target.best(start, max_iter, central=True).scores


def _start(orders: Any, weights: FloatArray, penalty: float) -> FloatArray:
    """Start where Plackett-Luce, which is quickly fitted, gives pairs much the same chances."""
    try:
        scores = fit_scores(orders, None, None, weights, penalty, None, 100, 0.01).scores
    except RuntimeError:
        return np.zeros(orders.shape[1])
    chance = expit(np.clip(GUMBEL * scores * 2.0 / np.sqrt(np.pi), -30.0, 30.0))
    return np.asarray(np.sqrt(2.0) * ndtri(chance))


class _Likelihood:
    """Minus the penalized log-likelihood and its derivatives, the second by differences.

    Parameters
    ----------
    data : Rankings
        Full rankings.
    penalty : float
    """

    def __init__(self, data: Rankings, penalty: float) -> None:
        self.data, self.penalty = data, penalty
        self.orders, self.weights = data.items.reshape(-1, data.n_items), data.weights
        empty = np.empty(0)
        self.last = empty, empty, empty  # scores, their gradient, its errors

    def best(self, start: FloatArray, max_iter: int, *, central: bool) -> Optimum:
        """Minimize; central differences tell weaker ties from rounding, at twice the price."""
        tol = 1e-6 if central else 1e-7

        def system(scores: FloatArray) -> Products:
            return self._equations(scores, central, 0.1 * tol)

        # The curvature of a pair changes by a factor of e over one standard deviation, or one
        # over their distance if that is less.
        def reach(scores: FloatArray) -> float:
            return 1.0 / (1.0 + float(np.ptp(scores)))

        return minimize(self, system, start, max_iter, tol, reach, "add regularization")

    def __call__(self, scores: FloatArray) -> tuple[Callable[[], float], FloatArray]:
        """Return the value, computed when asked for, and the gradient (n,)."""
        gradient, errors = self._gradient(scores)
        self.last = scores, gradient, errors

        def value() -> float:
            logs = GaussianScores(scores).log_prob(self.orders)
            penalty = 0.5 * self.penalty * float((scores * scores).sum())
            return penalty - float((self.weights * logs).sum())

        return value, gradient

    def _gradient(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient, which adds up to 0, and the size of its errors, both (n,)."""
        slopes = GaussianScores(scores).log_prob_gradient(self.orders)
        # Every ranking's own slopes add up to 0 but for their errors.
        error = 1e-14 + np.abs(slopes.sum(axis=1)).max()
        gradient = self.penalty * (scores - scores.mean()) - (self.weights[:, None] * slopes).sum(
            axis=0
        )
        return gradient - gradient.mean(), np.full(len(scores), error * self.weights.sum())

    def _equations(self, scores: FloatArray, central: bool, neglected: float) -> Products:
        """Return the second derivatives at some scores."""
        if self.last[0] is not scores:
            self(scores)
        _, here, errors = self.last
        size = 1e-3 if central else 1e-6
        # Plain differences must be further from rounding than the gradient itself.
        errors = errors if central else 100.0 * errors

        def product(vector: FloatArray) -> FloatArray:
            step = size / float(np.abs(vector).max())
            there = self._gradient(scores + step * vector)[0]
            if central:
                return (there - self._gradient(scores - step * vector)[0]) / (2.0 * step)
            return (there - here) / step

        # Plackett-Luce ties the items much alike, up to the unit.
        data = self.data
        matrix = _information(scores / GUMBEL, data.items, data.ptr, data.weights, True)
        near = Network(matrix / GUMBEL**2 + self.penalty / len(scores), lambda: errors)
        return Products(product, near.solve, errors, near.firm, neglected)
