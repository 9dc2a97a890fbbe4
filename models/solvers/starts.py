"""Several starts against local minima."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from permdist.models.scaling import inverse

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray
    from permdist.models.solvers.solution import Solution


def multistart(
    solve: Callable[[FloatArray], Solution],
    start: FloatArray,
    n_starts: int,
    rng: np.random.Generator,
    *,
    units: FloatArray | None = None,
    merit: Callable[[Solution], float] = lambda solution: solution.value,
) -> Solution:
    """Solve from a start and from points near it, and return the solution of the least merit.

    Parameters
    ----------
    solve : callable
        Takes a start, returns a `Solution`.
    start : array of float, shape (features,)
    n_starts : int
    rng : numpy.random.Generator
        Of the points near the start.
    units : array of float, shape (features,), optional
        What a step of length 1 is for each coefficient; 1 by default.
    merit : callable, optional
        What to choose by; the value by default.

    Returns
    -------
    Solution
        With the values of all starts in `starts`.
    """
    found: list[Solution] = []
    unit = np.ones(len(start)) if units is None else units
    furthest = float(np.abs(start * inverse(unit)).max(initial=0.0))
    for number in range(n_starts):
        spread = 0.0 if number == 0 else 0.5 * max(1.0, furthest)
        found.append(solve(start + spread * unit * rng.normal(size=len(start))))
    best = min(range(n_starts), key=[merit(one) for one in found].__getitem__)
    return found[best]._replace(starts=tuple(one.value for one in found))
