"""How well a model of pairs fits: residuals, deviance, calibration.

Pure functions of the outcomes of battles and of a model's chances; none of them fits anything.
A battle's outcome is 0 if the first won, 1 if the second won, and 2 or more for a tie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special, stats

from permdist._check import count, finite, integers
from permdist._result import record_frame, record_html
from permdist.inference.adjustments import adjust

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import ArrayLike
    from pandas import DataFrame

    from permdist._typing import FloatArray, IntArray

__all__ = [
    "Deviance",
    "calibration",
    "deviance",
    "log_loss",
    "pair_chances",
    "pair_residuals",
]

# Below this expected count, the chi-squared approximation of the deviance is rough.
SMALL = 5.0


class Deviance(NamedTuple):
    """The distance of a fitted model from the one with free chances for every pair.

    Attributes
    ----------
    value : float
        Twice the difference of the log-likelihoods.
    degrees : int
        Degrees of freedom: free chances minus the model's parameters.
    p_value : float
        By the chi-squared distribution; NaN without degrees of freedom.
    pearson : float
        Pearson's statistic, the sum of ``(observed - expected)^2 / expected``.
    sparse : float
        The share of expected counts below 5. If it is large, the p-value is rough.
    """

    value: float
    degrees: int
    p_value: float
    pearson: float
    sparse: float

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers as a data frame with one row."""
        return record_frame(self._asdict())

    def _repr_html_(self) -> str:
        return record_html(type(self).__name__, self._asdict())


def pair_chances(
    scores: ArrayLike,
    log_tie: float | None,
    first: ArrayLike,
    second: ArrayLike,
    shift: ArrayLike = 0.0,
) -> FloatArray:
    r"""Return the chances that the first wins, that the second wins, and of a tie.

    In Davidson's model they are proportional to :math:`\alpha_i`, :math:`\alpha_j` and
    :math:`\delta \sqrt{\alpha_i \alpha_j}`.

    Parameters
    ----------
    scores : array of float, shape (n,)
        Log-worths.
    log_tie : float or None
        The logarithm of :math:`\delta`; None if there are no ties.
    first, second : arrays of int, shape (battles,)
    shift : float or array of float, shape (battles,)
        Added to the score of the first: what covariates contribute to the difference.

    Returns
    -------
    array of float, shape (battles, 3)

    Examples
    --------
    >>> pair_chances([0.0, 0.0], 0.0, [0], [1])
    array([[0.33333333, 0.33333333, 0.33333333]])
    """
    values = finite("scores", scores, ndim=1)
    half = (values[integers("first", first)] - values[integers("second", second)]) / 2.0
    half = half + finite("shift", shift) / 2.0
    tie = np.full_like(half, -np.inf if log_tie is None else log_tie)
    return special.softmax(np.stack([half, -half, tie], axis=-1), axis=-1)


def pair_residuals(
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    chances: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> DataFrame:
    """Compare observed and expected wins and ties of every pair that met, worst fit first.

    A pair's points are its wins plus half its ties, which are what the scores are estimated from.
    `z` is the difference of the observed from the expected points, in standard deviations under the
    model; `tie_z` is that of the ties. The same battles were fitted, so that both are a little
    smaller than standard normal values.

    Parameters
    ----------
    first, second : arrays of int, shape (battles,)
    outcome : array of int, shape (battles,)
    chances : array of float, shape (battles, 3)
        As from `pair_chances`.
    weights : array of float, shape (battles,), optional
        How often each battle counts.
    names : sequence of str, optional

    Returns
    -------
    DataFrame
        Columns ``first``, ``second``, ``battles``, ``wins``, ``losses``, ``ties`` (of the first),
        ``expected_wins``, ``expected_losses``, ``expected_ties``, ``z``, ``tie_z``, ``p_value``
        (two-sided, of `z`) and ``adjusted`` (by Holm's method for all pairs).

    Examples
    --------
    >>> chances = pair_chances([0.0, 0.0], None, [0, 0, 1], [1, 1, 0])
    >>> found = pair_residuals([0, 0, 1], [1, 1, 0], [0, 0, 1], chances)
    >>> found[["wins", "expected_wins", "z"]].round(3).to_numpy().tolist()
    [[3.0, 1.5, 1.732]]
    """
    from pandas import DataFrame

    table = _Pairs(first, second, outcome, chances, weights)
    z = _standardized(table.points - table.expected_points, table.variance)
    tie_z = _standardized(table.seen[:, 2] - table.expected[:, 2], table.tie_variance)
    p_value = 2.0 * stats.norm.sf(np.abs(z))
    shown = np.arange(table.n_items).astype(str) if names is None else np.array(names, dtype=object)
    frame = DataFrame(
        {
            "first": shown[table.one],
            "second": shown[table.two],
            "battles": table.seen.sum(axis=1),
            "wins": table.seen[:, 0],
            "losses": table.seen[:, 1],
            "ties": table.seen[:, 2],
            "expected_wins": table.expected[:, 0],
            "expected_losses": table.expected[:, 1],
            "expected_ties": table.expected[:, 2],
            "z": z,
            "tie_z": tie_z,
            "p_value": p_value,
            "adjusted": adjust(p_value),
        }
    )
    worst = np.argsort(-np.abs(z), kind="stable")
    return frame.iloc[worst].reset_index(drop=True)


def deviance(
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    chances: ArrayLike,
    n_parameters: int,
    *,
    weights: ArrayLike | None = None,
) -> Deviance:
    """Test a model of pairs against the saturated one, with its own chances for every pair.

    The chances must be the same in all battles of a pair, and the parameters estimated from the
    same battles by maximum likelihood.

    Parameters
    ----------
    first, second : arrays of int, shape (battles,)
    outcome : array of int, shape (battles,)
    chances : array of float, shape (battles, 3)
    n_parameters : int
        The number of parameters that were estimated: competitors minus one, and one for ties.
    weights : array of float, shape (battles,), optional
        How often each battle counts.

    Returns
    -------
    Deviance

    Examples
    --------
    >>> one, two, won = [0, 0, 1, 2, 2], [1, 1, 2, 0, 0], [0, 1, 0, 0, 1]
    >>> found = deviance(one, two, won, pair_chances([0.0] * 3, None, one, two), 2)
    >>> round(found.value, 3), found.degrees  # 2 log 2: one pair met once
    (1.386, 1)
    """
    table = _Pairs(first, second, outcome, chances, weights)
    possible = table.expected > 0.0
    value = 2.0 * float((special.xlogy(table.seen, table.seen / table.battles)).sum())
    value -= 2.0 * table.log_likelihood
    gap = (table.seen - table.expected)[possible]
    pearson = float((gap**2 / table.expected[possible]).sum())
    free = possible.sum(axis=1) - 1
    degrees = int(free.sum()) - count("n_parameters", n_parameters, minimum=0)
    p_value = float(stats.chi2.sf(value, degrees)) if degrees > 0 else np.nan
    sparse = float((table.expected[possible] < SMALL).mean())
    return Deviance(value, degrees, p_value, pearson, sparse)


def calibration(
    outcome: ArrayLike,
    chances: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    bins: int = 10,
    level: float = 0.95,
    ties: bool = False,
) -> DataFrame:
    """Compare predicted chances with what happened, in bins of equal width.

    Parameters
    ----------
    outcome : array of int, shape (battles,)
    chances : array of float, shape (battles, 3)
        Of the first, of the second, and of a tie. Chances from a fit to the same battles look a
        little better than those of new battles.
    weights : array of float, shape (battles,), optional
        How often each battle counts.
    bins : int
    level : float
        The level of the intervals, which are Wilson's.
    ties : bool
        Whether to look at the chance of a tie; by default at the chances of both sides to win.

    Returns
    -------
    DataFrame
        For every bin that is not empty: ``low`` and ``high``, its ends; ``predicted``, the mean
        chance; ``observed``, the share of cases in which it came true; ``interval_low`` and
        ``interval_high``; ``n``, the number of cases. Every battle is a case for both sides, so
        that an interval around 1/2, where both are in the same bin, is wider than it need be.

    Examples
    --------
    >>> found = calibration([0, 0, 0, 1], [[0.75, 0.25, 0.0]] * 4, bins=2)
    >>> found[["predicted", "observed", "n"]].to_numpy().tolist()
    [[0.25, 0.25, 4.0], [0.75, 0.75, 4.0]]
    """
    from pandas import DataFrame

    won, table, weight = _checked(outcome, chances, weights)
    sides = (2,) if ties else (0, 1)
    chance = np.concatenate([table[:, side] for side in sides])
    true = np.concatenate([won == side for side in sides])
    weight = np.tile(weight, len(sides))
    which = np.minimum((chance * count("bins", bins)).astype(np.int64), bins - 1)
    n = np.bincount(which, weight, bins)
    there = n > 0
    n = n[there]
    predicted = np.bincount(which, weight * chance, bins)[there] / n
    observed = np.bincount(which, weight * true, bins)[there] / n
    z = float(stats.norm.isf((1.0 - level) / 2.0))
    middle = (observed + z**2 / (2.0 * n)) / (1.0 + z**2 / n)
    reach = z * np.sqrt(observed * (1.0 - observed) / n + (z / (2.0 * n)) ** 2) / (1.0 + z**2 / n)
    edges = np.arange(bins + 1) / bins
    return DataFrame(
        {
            "low": edges[:-1][there],
            "high": edges[1:][there],
            "predicted": predicted,
            "observed": observed,
            "interval_low": np.maximum(middle - reach, 0.0),
            "interval_high": np.minimum(middle + reach, 1.0),
            "n": n,
        }
    )


def log_loss(outcome: ArrayLike, chances: ArrayLike, *, weights: ArrayLike | None = None) -> float:
    """Return the mean of minus the logarithm of the chance of what happened, in nats.

    Parameters
    ----------
    outcome : array of int, shape (battles,)
    chances : array of float, shape (battles, 3)
    weights : array of float, shape (battles,), optional

    Examples
    --------
    >>> round(log_loss([0, 2], [[0.5, 0.25, 0.25]] * 2), 4)
    1.0397
    """
    won, table, weight = _checked(outcome, chances, weights)
    with np.errstate(divide="ignore"):
        logs = np.log(table[np.arange(len(won)), won])
    return float(-(weight @ logs) / weight.sum())


# ---- helpers -----------------------------------------------------------------------------------


class _Pairs:
    """Battles added up by pair: what was seen and what the model expects of it."""

    def __init__(
        self,
        first: ArrayLike,
        second: ArrayLike,
        outcome: ArrayLike,
        chances: ArrayLike,
        weights: ArrayLike | None,
    ) -> None:
        won, chance, weight = _checked(outcome, chances, weights)
        one, two = integers("first", first), integers("second", second)
        if not one.shape == two.shape == won.shape:
            raise ValueError(
                f"first, second: expected {len(won)} entries, got {one.shape} and {two.shape}"
            )
        self.n_items = int(max(one.max(), two.max())) + 1
        turned = one > two
        chance = np.where(turned[:, None], chance[:, [1, 0, 2]], chance)
        won = np.where(turned & (won < 2), 1 - won, won)
        code = np.where(turned, two * self.n_items + one, one * self.n_items + two)
        codes, which = np.unique(code[weight > 0], return_inverse=True)
        chance, won, weight = chance[weight > 0], won[weight > 0], weight[weight > 0]
        self.one, self.two = codes // self.n_items, codes % self.n_items
        size = len(codes)
        self.seen = np.bincount(3 * which + won, weight, 3 * size).reshape(size, 3)
        self.battles = self.seen.sum(axis=1, keepdims=True)

        def total(values: FloatArray) -> FloatArray:
            return np.bincount(which, weight * values, size).astype(np.float64)

        self.expected = np.stack([total(chance[:, side]) for side in range(3)], axis=1)
        points = chance[:, 0] + chance[:, 2] / 2.0
        self.points = self.seen[:, 0] + self.seen[:, 2] / 2.0
        self.expected_points = total(points)
        self.variance = total(chance[:, 0] + chance[:, 2] / 4.0 - points**2)
        self.tie_variance = total(chance[:, 2] * (1.0 - chance[:, 2]))
        with np.errstate(divide="ignore"):
            self.log_likelihood = float(weight @ np.log(chance[np.arange(len(won)), won]))


def _checked(
    outcome: ArrayLike, chances: ArrayLike, weights: ArrayLike | None
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Check outcomes, chances and weights; all ties become 2."""
    won = integers("outcome", outcome)
    table = finite("chances", chances, ndim=2)
    weight = np.ones(len(won)) if weights is None else finite("weights", weights, ndim=1)
    if won.ndim != 1 or won.size == 0 or won.min() < 0:
        raise ValueError("outcome: expected 0, 1 or 2 for each of at least one battle")
    if table.shape != (len(won), 3) or len(weight) != len(won):
        raise ValueError(
            f"chances, weights: expected {len(won)} battles with three chances each, got shapes "
            f"{table.shape} and {weight.shape}"
        )
    if table.min() < 0.0 or np.abs(table.sum(axis=1) - 1.0).max() > 1e-6:
        raise ValueError("chances: expected three chances that add up to 1 for each battle")
    return np.minimum(won, 2), table, weight


def _standardized(gap: FloatArray, variance: FloatArray) -> FloatArray:
    """Divide by the standard deviation; what is certain and came true is 0 away."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap == 0.0, 0.0, gap / np.sqrt(variance))
