"""Ballots that count less as they grow old."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import finite

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.ballots.ballots import Ballots

# Weights are far below the rounding of any sum that matters beyond so many half-lives.
OLDEST = 100.0


def fading(times: FloatArray | None, half_life: float | None) -> FloatArray | None:
    """Return what ballots count that lose half their weight with every half-life; None if none do.

    Parameters
    ----------
    times : array of float, shape (ballots,), or None
    half_life : float or None
        In the unit of the times; the latest ballot counts as 1, those that are `OLDEST` half-lives
        older count nothing.

    Examples
    --------
    >>> import numpy as np
    >>> fading(np.array([0.0, 30.0, 60.0]), 30.0)
    array([0.25, 0.5 , 1.  ])
    """
    if half_life is None:
        return None
    value = float(finite("half_life", half_life, ndim=0))
    if value <= 0.0:
        raise ValueError(f"half_life: expected a positive number, got {value:g}")
    if times is None:
        raise ValueError(
            "half_life: expected ballots with times; pass times= to fit or Ballots, or time=COLUMN "
            "to load_battles"
        )
    age = (times.max() - times) / value
    return np.where(age < OLDEST, np.exp2(-age), 0.0)


def cast_ballots(
    ballots: Ballots, half_life: float | None = None, offset: Any = None
) -> tuple[Ballots, Any]:
    """Return the ballots that count, and their offset: those of weight 0 were never cast.

    Parameters
    ----------
    ballots : Ballots
    half_life : float or None
        As in `fading`.
    offset : array of float, shape (n,) or (ballots, n), or None
    """
    cast = ballots.weights > 0.0
    if half_life is not None and ballots.times is not None:
        cast[cast] = np.asarray(fading(ballots.times[cast], half_life)) > 0.0
    if cast.all():
        return ballots, offset
    if np.ndim(offset) == 2:
        if len(offset) != len(cast):
            raise ValueError(f"offset: expected {len(cast)} rows, got {len(offset)}")
        offset = np.asarray(offset)[cast]
    return ballots.take(cast), offset
