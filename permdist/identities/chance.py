"""Statistical tests of draws whose rate of false alarms is bounded exactly.

Every function returns a p-value: a correct sampler gets one below alpha with a chance of at most
alpha, whatever the number of draws and however rare what is counted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc, chdtrc, ndtr, ndtri

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray

EXPECTED = 10.0  # rare outcomes are counted together until so many draws are expected


def binomial(counts: ArrayLike, size: int, chances: ArrayLike, slack: float = 0.0) -> float:
    """Test numbers of successes, each against its chance.

    Parameters
    ----------
    counts : array of int
    size : int
        The number of draws.
    chances : array of float
    slack : float
        By how much a chance may be off.

    Returns
    -------
    float
        The smallest exact binomial p-value, times the number of them (Bonferroni).

    Examples
    --------
    >>> binomial([5012, 4988], 10_000, [0.5, 0.5])
    1.0
    >>> binomial([5400, 4600], 10_000, [0.5, 0.5]) < 1e-12
    True
    """
    seen = np.asarray(counts, dtype=np.float64)
    chance = np.asarray(chances, dtype=np.float64)
    if not seen.size:
        return 1.0
    at_least = _upper(seen, size, np.clip(chance + slack, 0.0, 1.0))
    at_most = _upper(size - seen, size, np.clip(1.0 - chance + slack, 0.0, 1.0))
    smallest = 2.0 * np.minimum(at_least, at_most).min()
    return float(np.minimum(1.0, smallest * seen.size))


def multinomial(counts: IntArray, chances: FloatArray, rng: np.random.Generator) -> float:
    """Test how often each of many outcomes was drawn against all their probabilities.

    Given those before it, each count is binomial. Its distribution function, with the step at the
    count divided at random, is exactly uniform; so the normal scores are exactly normal, their
    squares add up to a chi-square, and none is far out.

    Parameters
    ----------
    counts : array of int, shape (outcomes,)
    chances : array of float, shape (outcomes,)
        They need not add up to one.
    rng : Generator
        Divides the steps, and says which of the equally rare outcomes are counted together.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> multinomial(np.array([330, 340, 330]), np.ones(3), rng) > 0.01
    True
    >>> multinomial(np.array([500, 500, 0]), np.ones(3), rng) < 1e-12
    True
    """
    size = int(counts.sum())
    total = float(chances.sum())
    if not 0.0 < total < np.inf:
        return float("nan")
    order = np.lexsort((rng.random(len(chances)), -chances))
    seen, chance = counts[order].astype(np.float64), chances[order] / total
    expected = size * chance
    rare = expected < EXPECTED
    # Sorted, so that the rare ones are last; each common one is a group of its own.
    first = int(len(chance) - rare.sum())
    numbers = np.arange(len(chance))
    numbers[first:] = first + np.floor(np.cumsum(expected[first:]) / EXPECTED).astype(np.int64)
    group = np.unique(numbers, return_inverse=True)[1]
    seen = np.bincount(group, seen).astype(np.float64)
    chance = np.bincount(group, chance).astype(np.float64)
    if len(seen) < 2:
        return 1.0
    left = size - np.concatenate([[0.0], np.cumsum(seen)[:-1]])
    tail = np.cumsum(chance[::-1])[::-1]
    share = np.divide(chance, tail, out=np.ones_like(chance), where=tail > 0.0)
    seen, left, share = seen[:-1], left[:-1], np.minimum(share[:-1], 1.0)
    above, below = _upper(seen + 1.0, left, share), _upper(left - seen + 1.0, left, 1.0 - share)
    here = np.maximum(1.0 - above - below, 0.0)
    part = rng.random(len(seen))
    low, high = below + part * here, above + (1.0 - part) * here
    scores = np.where(low < high, ndtri(low), -ndtri(high))
    together = float(chdtrc(len(scores), float(scores @ scores)))
    alone = float(2.0 * ndtr(-np.abs(scores).max()) * len(scores))
    return min(1.0, 2.0 * min(together, alone))


def centered(totals: ArrayLike, variances: ArrayLike) -> float:
    """Test sums of independent terms between -1 and 1 with mean 0 and known variance.

    By Bernstein's inequality, times the number of sums that have a term.

    Parameters
    ----------
    totals, variances : array of float
    """
    sums, spread = np.abs(np.atleast_1d(totals)), np.atleast_1d(variances)
    below = 2.0 * (spread + sums / 3.0)
    exponents = np.divide(sums**2, below, out=np.zeros_like(sums), where=below > 0.0)
    tests = max(1, int((below > 0.0).sum()))
    return float(min(1.0, 2.0 * tests * math.exp(-float(exponents.max(initial=0.0)))))


def symmetric(values: FloatArray) -> float:
    """Test independent values that are as likely to be x as to be -x.

    By Hoeffding's inequality for random signs; each column is a test.

    Parameters
    ----------
    values : array of float, shape (values, tests)
    """
    squares = (values**2).sum(axis=0)
    sums = values.sum(axis=0) ** 2
    exponents = np.divide(sums, 2.0 * squares, out=np.zeros_like(sums), where=squares > 0.0)
    return bonferroni(2.0 * np.exp(-exponents))


def bonferroni(smallest: ArrayLike) -> float:
    """Return the smallest of several p-values, times their number."""
    found = np.asarray(smallest, dtype=np.float64)
    return float(np.minimum(1.0, found.min() * found.size)) if found.size else 1.0


def mean(values: FloatArray, expected: float, low: float, high: float, slack: float = 0.0) -> float:
    """Test the mean of independent draws from an interval.

    By betting: whoever stakes a fixed share of a capital on every draw being above the expected
    mean, or below it, makes nothing on average, so a capital of 1 reaches 1 / alpha with a chance
    of at most alpha (Markov's inequality). The capital is divided among many shares.

    Parameters
    ----------
    values : array of float, shape (draws,)
    expected : float
    low, high : float
        The interval.
    slack : float
        By how much `expected` may be off.

    References
    ----------
    Waudby-Smith and Ramdas: Estimating means of bounded random variables by betting (2024).

    Examples
    --------
    >>> coins = np.arange(1000) % 2
    >>> mean(coins, 0.5, 0.0, 1.0)
    1.0
    >>> mean(coins, 0.6, 0.0, 1.0) < 1e-6
    True
    """
    if not np.isfinite(expected):
        return float("nan")
    shares = 2.0 ** -np.arange(1.0, 15.5, 0.5)
    capital = []
    for side in (1.0, -1.0):
        gains = side * (np.asarray(values, dtype=np.float64) - expected) - slack
        most = (expected - low if side > 0.0 else high - expected) + slack  # to be lost on a draw
        stakes = shares / max(most, 1e-12 * (high - low))
        capital += [float(np.log1p(stake * gains).sum()) for stake in stakes]
    log_mean = float(np.logaddexp.reduce(capital)) - math.log(len(capital))
    return math.exp(min(0.0, -log_mean))


def _upper(least: FloatArray, size: FloatArray | int, chance: FloatArray) -> FloatArray:
    """Return the chance of `least` successes or more among `size`."""
    inside = (least >= 1.0) & (least <= size)
    a, b = np.where(inside, least, 1.0), np.where(inside, size - least + 1.0, 1.0)
    tail = np.where(inside, betainc(a, b, chance), np.where(least < 1.0, 1.0, 0.0))
    return np.asarray(np.where(np.isnan(chance), np.nan, tail))
