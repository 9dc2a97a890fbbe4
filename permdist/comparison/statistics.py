"""Paired tests over queries, and intervals."""

from __future__ import annotations

import itertools
import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._check import as_rng, count, finite
from permdist.inference.adjustments import CORRECTIONS, adjust

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState

__all__ = [
    "CORRECTIONS",
    "TESTS",
    "Interval",
    "adjust",
    "friedman",
    "interval",
    "mean_ranks",
    "paired_tests",
    "randomization_test",
]

TESTS = ("t", "wilcoxon", "randomization")
EXACT = 14  # up to this many differences, all sign vectors are tried
RESAMPLES = 10_000
SAME = 1e-12


class Interval(NamedTuple):
    """A mean with its standard error and a confidence interval."""

    mean: float
    standard_error: float
    low: float
    high: float


def paired_tests(
    differences: ArrayLike, folds: ArrayLike | None = None, *, rng: RandomState = 0
) -> dict[str, FloatArray]:
    """Compute two-sided p-values of rows of paired differences by three tests.

    Parameters
    ----------
    differences : array of float, shape (rows, queries)
        A row that is 0 everywhere has p = 1 by every test.
    folds : array of int, shape (queries,), optional
        The fold of each query. If given, the tests are of the mean over folds of the means over
        queries, instead of the mean over all queries; the signed-rank test ignores it.
    rng : int, numpy.random.Generator or None
        For the randomization test.

    Returns
    -------
    dict
        ``t``, Student's t-test; ``wilcoxon``, the signed-rank test without zero differences;
        ``randomization``, see `randomization_test`.

    Examples
    --------
    >>> found = paired_tests([[0.1, 0.3, 0.2, -0.1], [0.0, 0.0, 0.0, 0.0]])
    >>> {name: values.round(3).tolist() for name, values in found.items()}
    {'t': [0.239, 1.0], 'wilcoxon': [0.375, 1.0], 'randomization': [0.375, 1.0]}
    """
    from scipy import stats

    # Differences in the last digits are rounding errors.
    rows = np.round(np.atleast_2d(finite("differences", differences)), 12)
    weighted = rows if folds is None else rows * _weights(np.asarray(folds))
    by_t, by_ranks = np.ones(len(rows)), np.ones(len(rows))
    for number, (row, weighted_row) in enumerate(zip(rows, weighted, strict=True)):
        if not row.any():
            continue
        with warnings.catch_warnings():
            # Without variance p is 0 or undefined.
            warnings.simplefilter("ignore", RuntimeWarning)
            by_t[number] = stats.ttest_1samp(weighted_row, 0.0).pvalue if len(row) > 1 else 1.0
        by_ranks[number] = stats.wilcoxon(row[row != 0.0]).pvalue
    by_t[np.isnan(by_t)] = 1.0
    return {
        "t": by_t,
        "wilcoxon": by_ranks,
        "randomization": randomization_test(weighted, rng=rng),
    }


def _weights(folds: IntArray) -> FloatArray:
    """Return weights of queries that make all folds count alike; 1 for folds of equal size."""
    _, number, sizes = np.unique(folds, return_inverse=True, return_counts=True)
    return len(folds) / (len(sizes) * sizes[number])


def randomization_test(
    differences: ArrayLike, *, resamples: int = RESAMPLES, rng: RandomState = 0
) -> FloatArray:
    """Compute two-sided p-values of mean differences by random sign changes.

    If two systems are equally good, every difference could as well have the opposite sign. The
    p-value is the share of sign vectors whose mean is at least as far from 0 as the observed one:
    of all sign vectors if at most 14 queries differ, otherwise of `resamples` random ones and the
    observed one.

    Parameters
    ----------
    differences : array of float, shape (rows, queries) or (queries,)
    resamples : int
    rng : int, numpy.random.Generator or None
        All rows are tested with the same signs.

    Returns
    -------
    array of float, shape (rows,)

    Examples
    --------
    >>> randomization_test([1.0, 2.0, 3.0])  # 2 of 8 sign vectors go as far
    array([0.25])
    """
    rows = np.atleast_2d(finite("differences", differences))
    resamples = count("resamples", resamples)
    result = np.ones(len(rows))
    few = np.count_nonzero(rows, axis=1) <= EXACT
    for number in np.flatnonzero(few):
        row = rows[number][rows[number] != 0.0]
        if not row.size:
            continue
        signs = np.array(list(itertools.product([-1.0, 1.0], repeat=len(row))))
        result[number] = _as_far(signs @ row[:, None], row[None])[0] / len(signs)
    many = np.flatnonzero(~few)
    if many.size:
        generator = as_rng(rng)
        further = np.ones(len(many))
        for start in range(0, resamples, 1000):  # in slices, to limit memory
            size = min(1000, resamples - start)
            signs = 2.0 * generator.integers(0, 2, size=(size, rows.shape[1])) - 1.0
            further += _as_far(signs @ rows[many].T, rows[many])
        result[many] = further / (resamples + 1)
    return result


def _as_far(sums: FloatArray, rows: FloatArray) -> FloatArray:
    """Count the sums that are, up to rounding, at least as far from 0 as those of the rows."""
    rounding = SAME * np.abs(rows).sum(axis=1)
    return (np.abs(sums) >= np.abs(rows.sum(axis=1)) - rounding).sum(axis=0)


def interval(values: FloatArray, folds: IntArray, level: float = 0.95) -> Interval:
    """Compute the mean over folds of the means over queries, with a confidence interval.

    The sampling units are queries, and each fold's mean has the variance of its own queries. The
    interval is Student's, with the Welch-Satterthwaite degrees of freedom.

    Parameters
    ----------
    values : array of float, shape (queries,)
        Without NaN.
    folds : array of int, shape (queries,)
        The fold of each query.
    level : float

    Examples
    --------
    >>> interval(np.array([0.0, 1.0, 0.5, 0.7]), np.array([0, 0, 1, 1])).mean
    0.55
    """
    from scipy import stats

    parts = [values[folds == fold] for fold in np.unique(folds)]
    mean = float(np.mean([part.mean() for part in parts])) if parts else float("nan")
    if len(values) < 2:
        return Interval(mean, float("nan"), float("nan"), float("nan"))
    sizes = np.array([len(part) for part in parts])
    several = [part for part in parts if len(part) > 1]
    # A fold of one query has no variance of its own: use the mean of the others'.
    usual = np.mean([part.var(ddof=1) for part in several]) if several else values.var(ddof=1)
    variances = np.array([part.var(ddof=1) if len(part) > 1 else usual for part in parts])
    shares = variances / sizes / len(parts) ** 2
    error = float(np.sqrt(shares.sum()))
    if error == 0.0:
        return Interval(mean, 0.0, mean, mean)
    if several:
        known = sizes > 1
        freedom = shares[known].sum() ** 2 / (shares[known] ** 2 / (sizes[known] - 1)).sum()
    else:
        freedom = len(values) - 1.0
    reach = float(stats.t.ppf(0.5 + level / 2.0, freedom)) * error
    return Interval(mean, error, mean - reach, mean + reach)


def mean_ranks(values: FloatArray) -> FloatArray:
    """Compute each row's mean rank over the columns: 1 is best, ties share their mean rank.

    Examples
    --------
    >>> mean_ranks(np.array([[0.9, 0.5], [0.1, 0.5]]))
    array([1.25, 1.75])
    """
    from scipy.stats import rankdata

    if not values.shape[1]:
        return np.full(len(values), np.nan)
    return rankdata(-np.round(values, 12), axis=0).mean(axis=1)


def friedman(values: FloatArray) -> float:
    """Compute the p-value of Friedman's test that all rows are alike; NaN for fewer than three."""
    from scipy.stats import friedmanchisquare

    if len(values) < 3 or values.shape[1] < 2:
        return float("nan")
    rounded = np.round(values, 12)
    if (rounded == rounded[0]).all():
        return 1.0
    return float(friedmanchisquare(*rounded).pvalue)
