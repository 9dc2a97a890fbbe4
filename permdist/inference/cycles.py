"""Transitivity of battles: majorities that go in circles, and how many are to be expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from permdist._check import as_rng, count, finite
from permdist._result import record_frame, record_html

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike
    from pandas import DataFrame

    from permdist._typing import BoolArray, FloatArray, IntArray, RandomState

__all__ = ["Transitivity", "expected_cycles", "transitivity"]


class Transitivity(NamedTuple):
    """How often majorities go in circles: A beats B, B beats C, C beats A.

    Attributes
    ----------
    triads : int
        Triples in which each pair has a majority.
    cyclic : int
        Those that are circles.
    share : float
        ``cyclic / triads``; a quarter if coins decided, NaN without triads.
    significant : int
        Circles in which each of the three majorities is significant by an exact binomial test.
    examples : array of int, shape (up to 20, 3)
        Significant circles: each item beats the next one, and the last the first.
    """

    triads: int
    cyclic: int
    share: float
    significant: int
    examples: IntArray

    def to_frame(self) -> pd.DataFrame:
        """Return the counts, without the examples, as a data frame with one row."""
        return record_frame(self._asdict())

    def _repr_html_(self) -> str:
        return record_html(type(self).__name__, self._asdict())


def transitivity(wins: ArrayLike, *, level: float = 0.05) -> Transitivity:
    """Count the triples of items whose majorities go in circles.

    Parameters
    ----------
    wins : array of float, shape (n, n)
        ``wins[i, j]``: how often i beat j.
    level : float
        The level of each of the three tests that a significant circle has passed.

    Examples
    --------
    >>> found = transitivity([[0, 9, 1], [1, 0, 9], [9, 1, 0]])
    >>> found.triads, found.cyclic, found.significant, found.examples.tolist()
    (1, 1, 1, [[0, 1, 2]])
    """
    table = _square("wins", wins)
    above = table > table.T
    triads = _traces(above | above.T) // 6
    cyclic = _traces(above) // 3
    # At least so many wins out of so many, by tosses of a coin; weights need not be whole.
    tail = special.betainc(np.where(above, table, 1.0), np.where(above, table.T, 0.0) + 1.0, 0.5)
    clear = above & (2.0 * tail <= level)
    significant = _traces(clear) // 3
    examples = _circles(clear) if significant else np.zeros((0, 3), dtype=np.int64)
    share = cyclic / triads if triads else np.nan
    return Transitivity(triads, cyclic, share, significant, examples)


def expected_cycles(
    residuals: DataFrame, *, draws: int = 200, rng: RandomState = 0
) -> tuple[float, float]:
    """Return the share of cyclic triads to be expected if the model were true, and its deviation.

    Majorities of few battles go in circles by chance. Each draw simulates the same number of
    battles for every pair.

    Parameters
    ----------
    residuals : DataFrame
        As from `pair_residuals`.
    draws : int
    rng : int, Generator or None

    Returns
    -------
    mean, standard_deviation : float
        Of the share over data sets; NaN without triads.

    Examples
    --------
    >>> from permdist.inference.goodness import pair_chances, pair_residuals
    >>> even = pair_chances([0.0] * 3, None, [0, 1, 2], [1, 2, 0])
    >>> met_once = pair_residuals([0, 1, 2], [1, 2, 0], [0, 0, 0], even)
    >>> mean, _ = expected_cycles(met_once, draws=2000)
    >>> round(mean, 2)  # 2 of the 8 ways to toss three coins
    0.2...
    """
    generator = as_rng(rng)
    items, number = np.unique(
        residuals[["first", "second"]].to_numpy(dtype=str), return_inverse=True
    )
    one, two = number.reshape(-1, 2).T
    battles = np.round(residuals["battles"].to_numpy()).astype(np.int64)
    expected = residuals[["expected_wins", "expected_losses", "expected_ties"]].to_numpy()
    chances = expected / expected.sum(axis=1, keepdims=True)
    shares = []
    for _ in range(count("draws", draws)):
        drawn = generator.multinomial(battles, chances)
        wins = np.zeros((len(items), len(items)))
        wins[one, two], wins[two, one] = drawn[:, 0], drawn[:, 1]
        above = wins > wins.T
        triads = _traces(above | above.T) // 6
        if triads:
            shares.append(_traces(above) // 3 / triads)
    return (float(np.mean(shares)), float(np.std(shares))) if shares else (np.nan, np.nan)


# ---- helpers -----------------------------------------------------------------------------------


def _square(name: str, values: ArrayLike) -> FloatArray:
    table = finite(name, values, ndim=2)
    if table.shape[0] != table.shape[1]:
        raise ValueError(f"{name}: expected a square matrix, got shape {table.shape}")
    return table


def _traces(graph: BoolArray) -> int:
    """Return the number of closed walks of three steps in a graph of zeros and ones."""
    links = graph.astype(np.float32)  # whole numbers up to n, which it holds exactly
    return round(float(((links @ links) * links.T).sum(dtype=np.float64)))


def _circles(clear: BoolArray, most: int = 20) -> IntArray:
    """List circles of three, each from its lowest item on."""
    found = []
    for i in range(len(clear)):
        later = np.flatnonzero(clear[i, i + 1 :]) + i + 1
        for j in later:
            for k in np.flatnonzero(clear[j] & clear[:, i]):
                if k > i:
                    found.append((i, int(j), int(k)))
                if len(found) == most:
                    return np.array(found)
    return np.array(found)
