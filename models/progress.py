"""How long a fit may still take, from how its gap to the minimum has declined so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST = 8  # iterations before anything can be said
RECENT = 20  # iterations that the decline is taken from
CLEAR = 2.0  # standard errors that the slope of a decline must have
UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def iterations_left(gaps: Sequence[float], tol: float) -> float | None:
    """Return about how many more iterations bring a gap down to a tolerance.

    The logarithms of the last gaps are extrapolated along a line. None where there are too few of
    them, or where they do not clearly decline.

    Parameters
    ----------
    gaps : sequence of float
        One per iteration.
    tol : float

    Examples
    --------
    >>> iterations_left([10.0**-k for k in range(10)], 1e-12)
    3.0
    >>> iterations_left([1.0] * 10, 1e-12) is None
    True
    """
    recent = np.array(gaps[-RECENT:], dtype=float)
    if len(recent) < FEWEST or not (np.isfinite(recent) & (recent > 0.0)).all() or not tol > 0.0:
        return None
    x = np.arange(len(recent)) - (len(recent) - 1) / 2.0
    y = np.log(recent)
    slope = float(x @ y) / float(x @ x)
    residuals = y - y.mean() - slope * x
    error = np.sqrt(float(residuals @ residuals) / (len(x) - 2) / float(x @ x))
    if not slope < -max(CLEAR * error, 1e-6):
        return None
    now = y.mean() + slope * x[-1]
    return round(max(0.0, float(now - np.log(tol)) / -slope), 6)


def told(seconds: float) -> str:
    """Return a time in words, to one or two digits.

    Examples
    --------
    >>> [told(seconds) for seconds in (0.4, 47.0, 200.0, 5000.0, 200_000.0)]
    ['1 s', '50 s', '3 min', '1.5 h', '2.5 d']
    """
    size, unit = next((one for one in UNITS if seconds >= one[0]), UNITS[-1])
    number = seconds / size
    if unit in "dh" and number < 10.0:
        return f"{max(1.0, round(2.0 * number) / 2.0):g} {unit}"
    number = max(1.0, round(number) if number < 10.0 else round(number, -1))
    return f"{number:.0f} {unit}"
