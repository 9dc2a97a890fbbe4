"""Scores by their gaps: differences are taken before anything else, so that no digit is lost.

Probabilities depend on differences of scores alone. Beyond a gap that no noise bridges they do
not depend on its width either, so that a wide gap can be narrowed, and scores of any size become
small numbers whose differences have all their digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from permdist._typing import FloatArray


def narrowed(scores: FloatArray, unit: float, cap: float, spread: float = np.inf) -> FloatArray:
    """Return the scores in multiples of `unit`, the lowest at 0, with no gap above `cap`.

    Scores between two wide gaps keep their differences; only the wide gaps shrink.

    Parameters
    ----------
    scores : array of float, shape (n,)
    unit : float
        Positive; what a score is measured in.
    cap : float
        In multiples of `unit`. A gap of `cap` must be as good as an infinite one.
    spread : float
        The difference between the largest and the smallest score, if it is known.

    Examples
    --------
    >>> narrowed(np.array([1e17, 1.0, 0.0]), 1.0, 800.0)
    array([801.,   1.,   0.])
    """
    lowest = scores.min()
    if spread <= cap * unit:
        return (scores - lowest) / unit
    with np.errstate(over="ignore"):
        result = np.asarray((scores - lowest) / unit, dtype=np.float64)
        if result.max() <= cap:
            return result
        order = np.argsort(scores, kind="stable")
        ranked = scores[order]
        wide = np.flatnonzero(np.diff(ranked) / unit > cap) + 1
        starts = np.concatenate([[0], wide])
        sizes = np.diff(np.append(starts, len(ranked)))
        within = (ranked - np.repeat(ranked[starts], sizes)) / unit
    # Each block starts one cap above the end of the block below it.
    heights = np.concatenate([[0.0], np.cumsum(within[wide - 1] + cap)])
    result[order] = within + np.repeat(heights, sizes)
    return result
