"""All sign vectors of the good-bad pairs, for every measure that is a sum over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from permdist.models.rules import Whole
from permdist.models.spaces.base import Space, Sums, register_space
from permdist.models.spaces.pairs import PairSums
from permdist.sums.row_tables import decompose
from permdist.sums.rows import BatchRows

if TYPE_CHECKING:
    from permdist._typing import FloatArray, RandomState
    from permdist.measures import Measure
    from permdist.models.batch import Batch


class RowSums(Sums):
    """Sign vectors, transitive or not, with the goods of each query in a fixed order.

    Until `resort` fixes it, the order is that of the scores of every call.
    """

    def __init__(self, batch: Batch, measure: Measure, n_jobs: int | None = None) -> None:
        super().__init__(batch, measure, n_jobs)
        self._pairs = PairSums(batch, measure, n_jobs)
        self._rows = BatchRows(batch.labels, batch.ptr, batch.scale, measure, batch.shared)

    def log_sums(self, scores: FloatArray, kappa: float) -> tuple[FloatArray, FloatArray]:
        """Add up the likelihood over pairs and the logs of the rows' tilts."""
        if kappa == 0.0:
            return self._pairs.log_sums(scores, 0.0)
        if self._rows.whole:
            values, gradient = self._rows.log_sums(scores, kappa, self._in_threads)
        else:
            values, gradient = self._pairs.with_rows(
                scores, lambda spread: self._rows.log_means(scores, kappa, spread)
            )
        return values + kappa * (1.0 - self._rows.best(scores)), gradient

    def mean_gains(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Add up the mean steps of the rows."""
        return self._rows.means(scores, self._in_threads)

    def resort(self, scores: FloatArray) -> bool:
        """Sort the goods by these scores from now on; return whether their order is a new one."""
        return self._rows.sort(scores)


@register_space
@dataclass(frozen=True)
class Rows(Space):
    """All sign vectors of pairs with different labels, for measures of positions.

    The rows of different good documents are independent: the number i of bads above a good one is
    Poisson-binomial. With the goods in a fixed order, that at place j of it has rank ``j + i``, and
    AP, NDCG, precision, RR and others are sums over rows, so that their sums over all sign vectors
    are exact, smooth and, for `ConvexLoss`, convex; nothing is drawn. Learners sort the goods by
    the likelihood over pairs, and again by what they have found, `rounds` times at most.

    Of graded labels, a sum of gains such as NDCG is split by thresholds: the gain of a grade is
    the sum of what each grade up to it adds, and at each threshold the documents of lower grades
    are the bads. The mean of the measure is the sum of the means over thresholds. In
    `ConvexLoss`, where a document is above several thresholds, the logs of its rows, each with
    its whole gain, are averaged by the thresholds' shares in that gain: an upper bound of the log
    of the joint sum, and convex as well.

    Parameters
    ----------
    rounds : int
        How often a learner sorts the goods and solves, at most.

    Examples
    --------
    >>> Rows(rounds=1).name
    'rows[rounds=1]'
    """

    alias: ClassVar[str] = "rows"
    independent: ClassVar[bool] = True
    kinked: ClassVar[bool] = True  # until the order of the goods is fixed
    rounds: int = 5

    def __post_init__(self) -> None:
        Whole().check("rounds", self.rounds)

    @staticmethod
    def supports(measure: Measure, *, graded: bool = False) -> bool:
        """Return whether a measure is a sum over rows, of binary or of graded labels."""
        values = np.arange(3 if graded else 2)
        return decompose(measure, values, np.full(len(values), 2)) is not None

    def _sums(self, batch: Batch, measure: Measure, n_jobs: int | None, _rng: RandomState) -> Sums:
        return RowSums(batch, measure, n_jobs)
