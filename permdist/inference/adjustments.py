"""Adjustments of p-values for multiple comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._check import choice, finite

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray

CORRECTIONS = ("holm", "bonferroni", "bh", "none")


def adjust(p_values: ArrayLike, correction: str = "holm") -> FloatArray:
    """Adjust p-values for multiple comparisons.

    Parameters
    ----------
    p_values : array of float, shape (comparisons,)
    correction : {"holm", "bonferroni", "bh", "none"}
        Holm and Bonferroni control the family-wise error rate, Benjamini and Hochberg ("bh") the
        false discovery rate.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    >>> adjust([0.01, 0.04, 0.03], "bonferroni")
    array([0.03, 0.12, 0.09])
    """
    choice("correction", correction, CORRECTIONS)
    p = finite("p_values", p_values, ndim=1)
    if p.size and not (p.min() >= 0.0 and p.max() <= 1.0):
        raise ValueError("p_values: expected numbers from 0 to 1, got others")
    n, order = len(p), np.argsort(p, kind="stable")
    result = np.empty(n)
    if correction == "none" or n == 0:
        return p.copy()
    if correction == "bonferroni":
        return np.minimum(1.0, n * p)
    if correction == "holm":
        result[order] = np.maximum.accumulate((n - np.arange(n)) * p[order])
    else:
        raised = p[order] * n / np.arange(1, n + 1)
        result[order] = np.minimum.accumulate(raised[::-1])[::-1]
    return np.minimum(1.0, result)
