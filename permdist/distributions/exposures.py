"""Weights of positions by how much is seen of them, and a mixin for exposures of one ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._check import choice, count, finite

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray

DISCOUNTS = ("log2", "jk", "reciprocal")


def position_weights(
    discount: str | float | ArrayLike = "log2", k: int | None = None, n_items: int = 10
) -> FloatArray:
    """Return how much of each position is seen.

    Parameters
    ----------
    discount : {"log2", "jk", "reciprocal"}, float, or array of float
        For the position r, from 1 on: ``1 / log2(1 + r)``, ``1 / max(1, log2 r)`` or ``1 / r``. A
        number p between 0 and 1 is the chance to go on from a position to the next one: its weights
        are ``p^(r - 1)``, as in rank-biased precision. An array has the weights themselves, 0
        behind its end.
    k : int, optional
        Positions beyond the first k are not seen.
    n_items : int
        The number of positions.

    Returns
    -------
    array of float, shape (positions,)
        Up to the last position that is seen.

    Examples
    --------
    >>> position_weights("reciprocal", n_items=4).round(3)
    array([1.   , 0.5  , 0.333, 0.25 ])
    >>> position_weights(0.5, k=3)
    array([1.  , 0.5 , 0.25])
    """
    kept = n_items if k is None else min(count("k", k), n_items)
    rank = np.arange(1, kept + 1, dtype=np.float64)
    if isinstance(discount, str):
        choice("discount", discount, DISCOUNTS)
        if discount == "reciprocal":
            return 1.0 / rank
        return 1.0 / (np.log2(1.0 + rank) if discount == "log2" else np.log2(np.maximum(rank, 2)))
    values = finite("discount", discount)
    if values.ndim == 0:
        if not 0.0 < values < 1.0:
            raise ValueError(
                f"discount: expected a number between 0 and 1, the chance to go on to the next "
                f"position, got {values:g}"
            )
        return float(values) ** (rank - 1.0)
    if values.ndim != 1 or not len(values):
        raise ValueError(
            f"discount: expected one weight per position, got shape {values.shape}; use one of "
            f"{', '.join(DISCOUNTS)}, a number or an array of shape (positions,)"
        )
    return values[:kept].copy()
