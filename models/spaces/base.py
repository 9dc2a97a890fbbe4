"""What a learner asks of a space of rankings: two numbers per query, and their derivatives.

A space is a choice; `Space.sums` makes it ready for a collection, once, and the result is asked
again and again for other scores. All sums are relative to the best ranking of each query, so that
a good model keeps its digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist.models.batch import in_threads
from permdist.models.specs import Spec, SpecRegistry

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.measures import Measure
    from permdist.models.batch import Batch
    from permdist.models.spaces.sample import Sample

SHORTEST_WAY = 1e-2


class Sums(ABC):
    """Sums over the rankings of a space, for every query of a batch.

    Parameters
    ----------
    batch : Batch
    measure : Measure
        The gain; the loss is 1 less it.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.
    """

    def __init__(self, batch: Batch, measure: Measure, n_jobs: int | None = None) -> None:
        self.batch, self.measure, self.n_jobs = batch, measure, n_jobs

    @abstractmethod
    def log_sums(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:
        """Return ``log sum_y exp(F(y) - F(best) + kappa loss(y))`` and derivatives by scores.

        Returns
        -------
        values : array of float, shape (queries,)
        gradient : array of float, shape (documents,)
            Each query's value by its own scores.
        """

    @abstractmethod
    def mean_gains(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the expected gain under ``exp F``, and derivatives, shapes as in `log_sums`."""

    @property
    def adapts(self) -> bool:
        """Whether `resort` may change anything later, even if it does not at first."""
        return False

    def resort(self, scores: FloatArray) -> bool:  # noqa: ARG002
        """Fix whatever the space sorts or draws by scores; return whether that changes anything.

        Learners solve, sort or draw again by what they have found and go on, until nothing
        changes; by default nothing does.
        """
        return False

    def redraw(self, scores: FloatArray) -> bool:
        """Do as `resort`, without drawing more than before."""
        return self.resort(scores)

    def grow(self) -> bool:
        """Draw more from the next `redraw` on; return whether that is more than before."""
        return False

    def effective(self, scores: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the share of draws that are effective, of each query for which any were drawn."""
        return np.zeros(0)

    def reach(self, start: FloatArray, scores: FloatArray) -> float:
        """Return how much of the way between two scores what was drawn can be relied on."""
        return reach(lambda share: self.effective((1.0 - share) * start + share * scores))

    def report(self, scores: FloatArray) -> Sample | None:  # noqa: ARG002
        """Report how well what was drawn stands for the space; None if nothing is drawn."""
        return None

    def _in_threads(self, work: Callable[[int, int], None], cost: FloatArray) -> None:
        in_threads(work, cost, self.n_jobs)


def reach(effective: Callable[[float], FloatArray]) -> float:
    """Halve a way until half of what was drawn is effective at its end.

    Parameters
    ----------
    effective : callable
        Takes a share of the way; returns shares of draws.
    """
    share = 1.0
    while share > SHORTEST_WAY:
        found = effective(share)
        if not len(found) or found.mean() >= 0.5:
            break
        share *= 0.5
    return share


class Space(Spec, ABC):
    """A space of rankings to sum over, with its own options; a frozen dataclass makes one.

    Attributes
    ----------
    kinked : bool
        Whether ``log_sums`` has kinks where scores tie, as at w = 0; learners then start from the
        likelihood over pairs.
    draws : bool
        Whether what is summed over is drawn, document by document.
    independent : bool
        Whether, without a tilt, pairs are in the right order independently of each other.
    """

    independent: ClassVar[bool] = False
    kinked: ClassVar[bool] = False
    draws: ClassVar[bool] = False

    def sums(
        self,
        batch: Batch,
        measure: Measure,
        *,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> Sums:
        """Make the space ready for the queries of a batch.

        Parameters
        ----------
        batch : Batch
        measure : Measure
        n_jobs : int, optional
        random_state : int, Generator or None
            The learner's own, for a space that draws and has none.
        """
        own = getattr(self, "random_state", None)
        return self._sums(batch, measure, n_jobs, random_state if own is None else own)

    @abstractmethod
    def _sums(
        self, batch: Batch, measure: Measure, n_jobs: int | None, rng: RandomState
    ) -> Sums: ...

    def settle(self, labels: IntArray, ptr: IntArray) -> Space:  # noqa: ARG002
        """Return the space with what depends on all queries decided, before they are cut up.

        Parameters
        ----------
        labels : array of int, shape (documents,)
        ptr : array of int, shape (queries + 1,)
        """
        return self


SPACES: SpecRegistry[Space] = SpecRegistry("space", Space)


def register_space(kind: type[Space]) -> type[Space]:
    """Let learners find a class of spaces by its `alias`; usable as a decorator."""
    return SPACES.register(kind)


def parse_space(value: str | Space) -> Space:
    """Return a space from its text form, such as ``"orders[orders=64]"``."""
    return SPACES.parse(value)


def best_slopes(labels: IntArray) -> FloatArray:
    """Differentiate F at the best ranking: items with lower labels less those with higher ones."""
    _, level, totals = np.unique(labels, return_inverse=True, return_counts=True)
    below = np.concatenate([[0], np.cumsum(totals)[:-1]])[level]
    return (2 * below + totals[level] - len(labels)).astype(float)
