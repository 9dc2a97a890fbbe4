"""Times of ballots, and ballots that count less as they grow old."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import finite

if TYPE_CHECKING:
    from typing import Any

    from permdist._typing import FloatArray
    from permdist.ballots.ballots import Ballots

# Weights are far below the rounding of any sum that matters beyond so many half-lives.
OLDEST = 100.0

DAYS = "days"
DAY = 86_400.0
FIRST_EPOCH, LAST_EPOCH = 3e8, 4.1e9  # Unix times of 1979 to 2099, in seconds
FIRST_DATE, LAST_DATE = 19_000_101, 21_000_101  # as whole numbers, such as 20240131


def read_times(given: Any) -> tuple[FloatArray, str]:
    """Return times as numbers, and their unit: dates and Unix times in days since 1970.

    Parameters
    ----------
    given : array, Series or sequence of numbers, dates or texts
        Numbers that are all Unix times from 1979 to 2099, in seconds, milliseconds, microseconds
        or nanoseconds, are taken as such, and so are dates written as 20240131.

    Returns
    -------
    times : array of float
        NaN where a time cannot be read.
    unit : {"days", ""}
        Empty for other numbers, which stay as they are.

    Examples
    --------
    >>> read_times(["1970-01-02", "1970-01-03T12:00"])
    (array([1. , 2.5]), 'days')
    >>> read_times([864_000_000, 864_086_400])
    (array([10000., 10001.]), 'days')
    >>> read_times([3.0, 4.5])
    (array([3. , 4.5]), '')
    """
    from pandas import Series, Timedelta, Timestamp, to_datetime, to_numeric

    def in_days(dates: Any) -> FloatArray:
        days = (dates - Timestamp(0, tz="UTC")) / Timedelta(days=1)
        return np.asarray(days.to_numpy(np.float64))

    values = given if isinstance(given, Series) else Series(given)
    kind = values.dtype.kind
    if kind != "M":
        found = to_numeric(values, errors="coerce").to_numpy(np.float64)
        low, high = (found.min(), found.max()) if found.size else (0.0, 0.0)
        for size in (1.0, 1e3, 1e6, 1e9):
            if size * FIRST_EPOCH <= low and high <= size * LAST_EPOCH:
                return found / (size * DAY), DAYS
        if low >= FIRST_DATE and high < LAST_DATE and (found % 1.0 == 0.0).all():
            texts = Series(found.astype(np.int64).astype(str))
            dates = to_datetime(texts, errors="coerce", utc=True, format="%Y%m%d")
            if dates.notna().all():
                return in_days(dates), DAYS
        if kind in "biuf" or not np.isnan(found).any():
            return found, ""
    dates = to_datetime(values, errors="coerce", utc=True, format="ISO8601")
    if dates.isna().any():
        dates = to_datetime(values, errors="coerce", utc=True, format="mixed")
    return in_days(dates), DAYS


def describe_half_life(half_life: float, times: FloatArray, unit: str) -> str:
    """Say in words what a half-life means, and over what time there are ballots.

    Examples
    --------
    >>> import numpy as np
    >>> describe_half_life(30.0, np.array([19_723.0, 19_783.0]), "days")
    '30 days; from 2024-01-01 to 2024-03-01'
    >>> describe_half_life(2.0, np.array([0.0, 7.5]), "")
    '2 in the unit of the times, which are 0 to 7.5'
    """
    ends = times.min(), times.max()
    if unit == DAYS:
        first, last = (np.datetime64(int(np.floor(end)), "D") for end in ends)
        return f"{half_life:g} day{'s' * (half_life != 1)}; from {first} to {last}"
    return f"{half_life:g} in the unit of the times, which are {ends[0]:.6g} to {ends[1]:.6g}"


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
