"""Differences of estimated scores: intervals and tests, one at a time or all at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from permdist._check import choice, finite, integers
from permdist._kernels import kernel
from permdist._result import record_frame, record_html
from permdist.inference.adjustments import adjust as adjust_p
from permdist.inference.normal import (
    DRAWS,
    check_covariance,
    check_estimate,
    check_level,
    difference_errors,
    draw_blocks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd
    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, RandomState

ADJUSTMENTS = ("max-t", "holm", "bonferroni", "none")


class Difference(NamedTuple):
    """The difference of two estimated scores.

    Attributes
    ----------
    estimate : float
        The score of the first item minus that of the second.
    standard_error : float
    z : float
        The estimate in standard errors.
    p_value : float
        Two-sided, of the hypothesis that both items have the same true score.
    low, high : float
        A confidence interval of the true difference.
    """

    estimate: float
    standard_error: float
    z: float
    p_value: float
    low: float
    high: float

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers as a data frame with one row."""
        return record_frame(self._asdict())

    def _repr_html_(self) -> str:
        return record_html(type(self).__name__, self._asdict())


class CriticalValue(NamedTuple):
    """A simulated quantile and the standard error of the simulation.

    Attributes
    ----------
    value : float
    standard_error : float
        What another seed may change; 0 where the value is exact.
    """

    value: float
    standard_error: float

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers as a data frame with one row."""
        return record_frame(self._asdict())

    def _repr_html_(self) -> str:
        return record_html(type(self).__name__, self._asdict())


def compare(
    scores: ArrayLike, covariance: ArrayLike, i: int, j: int, level: float = 0.95
) -> Difference:
    """Compare the true scores of two items, chosen before looking at the estimates.

    This asks how sure the estimate is that i is truly better than j. How often i is above j in a
    single ranking is another question: `Distribution.pairwise` answers it.

    Parameters
    ----------
    scores : array of float, shape (n,)
        Estimated scores.
    covariance : array of float, shape (n, n)
        Of the estimates.
    i, j : int
        The items.
    level : float
        Of the interval.

    Returns
    -------
    Difference

    Examples
    --------
    >>> found = compare([1.0, 0.4, -1.4], np.diag([0.02, 0.02, 0.03]), 0, 1)
    >>> round(found.z, 2), round(found.p_value, 4)
    (3.0, 0.0027)
    >>> round(found.low, 3), round(found.high, 3)
    (0.208, 0.992)
    """
    values, matrix = check_estimate(scores, covariance)
    first, second = (_item(name, item, len(values)) for name, item in (("i", i), ("j", j)))
    pair = [first, second]
    error = float(difference_errors(matrix[np.ix_(pair, pair)])[0, 1]) if first != second else 0.0
    return difference_of(float(values[first] - values[second]), error, check_level(level))


def difference_of(estimate: float, error: float, level: float) -> Difference:
    """Return a difference with its interval and test, from its standard error.

    Parameters
    ----------
    estimate, error : float
    level : float
        Of the interval.
    """
    reach = float(special.ndtri(0.5 + 0.5 * level)) * error
    z = float(z_values(np.array(estimate), np.array(error)))
    p = 2.0 * float(special.ndtr(-abs(z)))
    return Difference(estimate, error, z, p, estimate - reach, estimate + reach)


def critical_value(
    covariance: ArrayLike,
    level: float = 0.95,
    pairs: str | ArrayLike = "all",
    draws: int = DRAWS,
    rng: RandomState = 0,
) -> CriticalValue:
    """Compute the multiple of the standard errors that makes intervals of differences simultaneous.

    It is the quantile of the largest ``|z_i - z_j| / se_ij`` over the pairs, where z is normal with
    the given covariance. With it instead of 1.96, all intervals cover the true differences at once
    with a chance of `level`.

    Parameters
    ----------
    covariance : array of float, shape (n, n)
    level : float
    pairs : "all" or array of int, shape (pairs, 2)
        The comparisons that are made.
    draws : int
        The size of the simulation.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    CriticalValue

    Examples
    --------
    Tukey's studentized range of 4 equally well known items is 3.633 / sqrt(2) = 2.569:

    >>> found = critical_value(np.eye(4))
    >>> bool(abs(found.value - 2.569) < 4 * found.standard_error)
    True
    >>> bool(found.standard_error < 0.02)
    True
    >>> critical_value(np.eye(4), pairs=[(0, 1)])  # a single comparison: exact
    CriticalValue(value=1.95..., standard_error=0.0)
    """
    matrix, level = check_covariance(covariance), check_level(level)
    wanted = _wanted(pairs, len(matrix))
    wanted |= wanted.T
    if np.count_nonzero(wanted & (difference_errors(matrix) > 0.0)) <= 2:
        return CriticalValue(float(special.ndtri(0.5 + 0.5 * level)), 0.0)
    largest = greatest_errors(matrix, wanted, draw_blocks(matrix, draws, rng))
    return upper_quantile(largest, level)


def all_pairs(
    scores: ArrayLike,
    covariance: ArrayLike,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    adjust: str = "max-t",
    draws: int = DRAWS,
    rng: RandomState = 0,
) -> pd.DataFrame:
    """Compare the true scores of all pairs of items, adjusted for the number of comparisons.

    Parameters
    ----------
    scores : array of float, shape (n,)
        Estimated scores.
    covariance : array of float, shape (n, n)
        Of the estimates.
    names : sequence of str, optional
        Of the items; their numbers by default.
    level : float
        Of the intervals: of all together, or of each if `adjust` is "none".
    adjust : {"max-t", "holm", "bonferroni", "none"}
        How p-values and intervals account for the number of pairs. "max-t" uses the distribution
        of the largest of all standardized differences (see `critical_value`) and is the sharpest
        for intervals; with "holm" the intervals are those of Bonferroni.
    draws : int
        The size of the simulation of "max-t", whose p-values are at least ``1 / (draws + 1)``.
    rng : int, numpy.random.Generator or None
        Of the simulation.

    Returns
    -------
    pandas.DataFrame
        One row per pair, the item with the higher score first: ``first``, ``second``, and the
        fields of `Difference`.

    Examples
    --------
    >>> found = all_pairs([1.0, 0.4, -1.4], np.diag([0.02, 0.02, 0.03]), ["a", "b", "c"])
    >>> found[["first", "second", "estimate", "z"]].round(2).values.tolist()
    [['a', 'b', 0.6, 3.0], ['a', 'c', 2.4, 10.73], ['b', 'c', 1.8, 8.05]]
    """
    import pandas as pd

    values, matrix = check_estimate(scores, covariance)
    level, n = check_level(level), len(values)
    choice("adjust", adjust, ADJUSTMENTS)
    labels = names_of(names, n)
    order = np.argsort(-values, kind="stable")
    upper = np.triu_indices(n, 1)
    i, j = order[upper[0]], order[upper[1]]
    errors = difference_errors(matrix)[i, j]
    estimates = values[i] - values[j]
    z = z_values(estimates, errors)
    p = 2.0 * special.ndtr(-np.abs(z))
    tail = 1.0 - level
    if adjust == "max-t" and len(i) > 1:
        every = ~np.eye(n, dtype=bool)
        largest = np.sort(greatest_errors(matrix, every, draw_blocks(matrix, draws, rng)))
        multiple = upper_quantile(largest, level).value
        beyond = len(largest) - np.searchsorted(largest, np.abs(z), side="left")
        # Never below the p-value of the pair alone, which the simulation only resolves so far.
        p = np.maximum(p, (1.0 + beyond) / (1.0 + len(largest)))
    else:
        m = 1 if adjust in ("none", "max-t") else max(1, len(i))
        multiple = float(special.ndtri(1.0 - 0.5 * tail / m))
        p = p if m == 1 else adjust_p(p, adjust)
    columns = {
        "first": [labels[k] for k in i],
        "second": [labels[k] for k in j],
        "estimate": estimates,
        "standard_error": errors,
        "z": z,
        "p_value": p,
        "low": estimates - multiple * errors,
        "high": estimates + multiple * errors,
    }
    return pd.DataFrame(columns)


# ---- the largest of many standardized differences -----------------------------------------------


def greatest_errors(
    covariance: FloatArray, ordered: BoolArray, blocks: Iterable[FloatArray]
) -> FloatArray:
    """Return, for each draw, the largest of ``(z_i - z_j) / se_ij`` over ordered pairs, or 0.

    Parameters
    ----------
    covariance : array of float, shape (n, n)
    ordered : array of bool, shape (n, n)
        The pairs; symmetric for the largest absolute value.
    blocks : iterable of arrays of float, shape (draws, n)
        Draws of z, as by `draw_blocks`.
    """
    errors = difference_errors(covariance)
    weights = np.zeros_like(errors)
    np.divide(1.0, errors, out=weights, where=ordered & (errors > 0.0))
    return np.concatenate([_greatest(block, weights) for block in blocks])


def upper_quantile(values: FloatArray, level: float) -> CriticalValue:
    """Return a quantile of draws, on the safe side by at most one draw, with its error."""
    n, spread = len(values), math.sqrt(level * (1.0 - level) / len(values))
    ranks = [
        min(n - 1, max(0, math.ceil(share * (n + 1)) - 1))
        for share in (level, level - spread, level + spread)
    ]
    ordered = np.partition(values, sorted(set(ranks)))
    value, low, high = (float(ordered[rank]) for rank in ranks)
    return CriticalValue(value, 0.5 * (high - low))


def z_values(estimates: FloatArray, errors: FloatArray) -> FloatArray:
    """Divide differences by their errors; a difference known exactly is 0 or infinite."""
    exact = np.where(estimates == 0.0, 0.0, np.copysign(np.inf, estimates))
    return np.divide(estimates, errors, out=exact, where=errors > 0.0)


def names_of(names: Sequence[str] | None, n: int) -> list[str]:
    """Return the names of n items, by default their numbers."""
    labels = [str(k) for k in range(n)] if names is None else [str(name) for name in names]
    if len(labels) != n:
        raise ValueError(f"names: expected {n}, one per score, got {len(labels)}")
    return labels


def check_contrasts(contrasts: ArrayLike, n_items: int) -> FloatArray:
    """Return weights of scores, or say what is wrong with them."""
    rows = finite("contrasts", contrasts, ndim=2)
    if rows.shape[1] != n_items:
        raise ValueError(f"contrasts: expected shape (r, {n_items}), got {rows.shape}")
    sizes, sums = np.abs(rows).sum(axis=1), rows.sum(axis=1)
    wrong = np.abs(sums) > 1e-9 * np.maximum(sizes, 1e-300)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"contrasts: expected rows that add up to 0, got {sums[row]:g} in {row}")
    return rows


def _item(name: str, item: int, n: int) -> int:
    number = integers(name, item, what="the number of an item")
    if number.ndim or not 0 <= int(number) < n:
        raise ValueError(f"{name}: expected an item from 0 to {n - 1}, got {item!r}")
    return int(number)


def _wanted(pairs: str | ArrayLike, n: int) -> BoolArray:
    if isinstance(pairs, str):
        choice("pairs", pairs, ["all"])
        return ~np.eye(n, dtype=bool)
    listed = integers("pairs", pairs)
    if listed.ndim != 2 or listed.shape[1] != 2 or not len(listed):
        raise ValueError(f'pairs: expected "all" or shape (pairs, 2), got shape {listed.shape}')
    if listed.min() < 0 or listed.max() >= n or (listed[:, 0] == listed[:, 1]).any():
        raise ValueError(f"pairs: expected two different items from 0 to {n - 1} in each row")
    wanted = np.zeros((n, n), dtype=bool)
    wanted[listed[:, 0], listed[:, 1]] = True
    return wanted


@kernel
def _greatest(draws: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the largest weighted difference of each row, 0 if all are negative.

    ``weights[i, j]`` is that of item i minus item j. The extreme items give a first value; after
    that, only items that could be in a larger difference are looked at.
    """
    size, n = draws.shape
    result = np.zeros(size)
    most_above, most_below = np.zeros(n), np.zeros(n)
    for i in range(n):
        for j in range(n):
            most_above[i] = max(most_above[i], weights[i, j])
            most_below[j] = max(most_below[j], weights[i, j])
    above, below = np.empty(n, np.int64), np.empty(n, np.int64)
    for k in range(size):
        z = draws[k]
        top, bottom, best = np.argmax(z), np.argmin(z), 0.0
        for i in range(n):
            best = max(best, (z[top] - z[i]) * weights[top, i])
            best = max(best, (z[i] - z[bottom]) * weights[i, bottom])
        n_above = n_below = 0
        for i in range(n):
            if (z[i] - z[bottom]) * most_above[i] > best:
                above[n_above] = i
                n_above += 1
            if (z[top] - z[i]) * most_below[i] > best:
                below[n_below] = i
                n_below += 1
        for i in above[:n_above]:
            for j in below[:n_below]:
                best = max(best, (z[i] - z[j]) * weights[i, j])
        result[k] = best
    return result
