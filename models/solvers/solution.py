"""What solvers take and return."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from permdist._typing import FloatArray

UNCHANGED = "the objective does not change with the scores"
SMALL = 5_000_000  # entries of a matrix whose products gain nothing from several threads

Objective = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
Note = Callable[..., bool]


class Solution(NamedTuple):
    """What a solver came to.

    Attributes
    ----------
    w : array of float, shape (features,)
    value : float
        ``objective(X w)`` with the penalty.
    lower : float
        No w has a smaller value than this; minus infinity where nothing is known.
    converged : bool
        Whether the certificate of the solver holds: the gap between the value and the minimum is
        within the tolerance.
    message : str
        Why it stopped.
    starts : tuple of float
        What each start came to, where there were several.
    gap : float
        The difference between the value and the minimum, relative to the value: a bound for
        cutting planes, an estimate from gradient and curvature for L-BFGS.
    """

    w: FloatArray
    value: float
    lower: float = -np.inf
    converged: bool = False
    message: str = ""
    starts: tuple[float, ...] = ()
    gap: float = np.inf


def ignore(w: FloatArray, **values: float) -> bool:  # noqa: ARG001
    """Note nothing, and go on."""
    return False


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def few_threads(size: int) -> AbstractContextManager[Any]:
    """Keep linear algebra on one thread where matrices are small.

    The many small products of an optimizer gain nothing from more, and wait for threads that
    other work keeps busy.
    """
    return _libraries().limit(limits=1, user_api="blas") if size < SMALL else nullcontext()
