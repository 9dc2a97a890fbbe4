"""What solvers take and return."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from permdist._typing import FloatArray

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

UNCHANGED = "the objective does not change with the scores"

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


def one_thread() -> AbstractContextManager[Any]:
    """Keep linear algebra on one thread: blocks of queries have threads of their own.

    More would wait for threads that other work keeps busy, and round differently.
    """
    return _libraries().limit(limits=1, user_api="blas")
