"""Ballots that count less as they grow old."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist._check import finite

if TYPE_CHECKING:
    from permdist._typing import FloatArray


def fading(times: FloatArray | None, half_life: float | None) -> FloatArray | None:
    """Return what ballots count that lose half their weight with every half-life; None if none do.

    Parameters
    ----------
    times : array of float, shape (ballots,), or None
    half_life : float or None
        In the unit of the times; the latest ballot counts as 1.

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
    return np.exp2((times - times.max()) / value)
