"""Losses of relevance, estimated without bias from clicks at displayed positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._check import as_array, finite, integers
from permdist._kernels import kernel
from permdist.models.batch import derivatives_in_threads
from permdist.models.objectives.base import Bound, BoundDerivatives, Objective
from permdist.models.objectives.lambda_loss import logistic_row
from permdist.models.objectives.prepared import Derivatives, Prepared
from permdist.models.objectives.softmax import softmax_losses
from permdist.models.rules import Number, OneOf
from permdist.models.smooth_derivatives import measure_derivatives
from permdist.models.smooth_positions import WINDOWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.models.batch import Batch
    from permdist.models.rules import Rule

LOSSES = ("softmax", "all-pairs", "pairs", "dcg")


@dataclass(frozen=True)
class Unbiased(Objective):
    """A loss of the relevance of documents, with clicks weighed by inverse propensities.

    Labels are clicks: a document is clicked, label 1, if it is relevant and was examined, which
    happens with a probability that depends on the position at which it was displayed, its
    propensity, and independently of the others. With ``a = click / propensity`` in place of
    relevance, the expectation over examinations is the loss of the true relevance r:

    - ``softmax``: ``sum r_i (log sum_j exp(s_j) - s_i)``;
    - ``all-pairs``: ``sum r_i log(1 + exp(s_j - s_i))`` over all other documents j, which bounds
      the sum of the ranks of the relevant documents;
    - ``pairs``: ``sum r_i (1 - r_j) log(1 + exp(s_j - s_i))``; estimated weights may be negative;
    - ``dcg``: ``sum r_i (1 - 1 / log2(1 + p_i))`` at smooth positions p, as in `SmoothMeasure`.

    The first two are convex, with an exact curvature; so is the third, with the absolute values of
    weights in the curvature, if no weight is negative. The curvature of the last is that of
    `SmoothMeasure`. A query counts if it has a click.

    Parameters
    ----------
    loss : {"softmax", "all-pairs", "pairs", "dcg"}
    eta : float
        The propensity of position r, from 1, is ``r^-eta``; 0 for clicks without a bias.
    propensities : str, float or sequence of float, optional
        Of positions 1, 2 and so on, in place of `eta`: ``"1:0.5:0.3"``, or ``(1, 0.5, 0.3)``. The
        last one stands for all further positions.
    smallest : float
        Propensities below it count as that much, which bounds the weights, at the price of a bias.
    alpha : float
        For ``dcg``: how steep the sigmoids of scores are.

    References
    ----------
    Joachims et al.: Unbiased Learning-to-Rank with Biased Feedback; Wang et al.: Learning to Rank
    with Selection Bias in Personal Search.

    Examples
    --------
    Documents are in the order in which they were displayed, unless `positions` says where they
    were. A click at the second position, examined half the time, counts twice:

    >>> value, gradient = Unbiased(eta=1.0)([0.0, 0.0], [0, 1])
    >>> round(value, 4), gradient
    (1.3863, array([ 1., -1.]))
    >>> found = Unbiased(propensities="1:0.5").derivatives([0.0, 0.0], [0, 1], positions=[1, 0])
    >>> found.gradient
    array([ 0.5, -0.5])
    """

    alias: ClassVar[str] = "unbiased"
    loss: str = "softmax"
    eta: float = 1.0
    propensities: Any = None
    smallest: float = 0.0
    alpha: float = 10.0

    rules: ClassVar[Mapping[str, Rule]] = {
        "loss": OneOf(LOSSES),
        **dict.fromkeys(("eta", "smallest", "alpha"), Number(0.0)),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.propensities is not None:
            if not isinstance(self.propensities, str):
                numbers = np.atleast_1d(finite("propensities", self.propensities)).tolist()
                object.__setattr__(self, "propensities", ":".join(f"{p:.15g}" for p in numbers))
            self._propensities(np.zeros(1, dtype=np.int64))

    def _propensities(self, positions: IntArray) -> FloatArray:
        """Return the propensity of each position, counted from 0."""
        if self.propensities is None:
            found: FloatArray = np.power(1.0 + positions, -float(self.eta), dtype=np.float64)
        else:
            try:
                table = np.array([float(part) for part in self.propensities.split(":")])
            except ValueError:
                table = np.zeros(1)
            if not ((table > 0.0) & (table <= 1.0)).all():
                raise ValueError(
                    "propensities: expected numbers above 0, up to 1, such as '1:0.5:0.3', got "
                    f"{self.propensities!r:.100}"
                )
            found = table[np.minimum(positions, len(table) - 1)]
        return np.maximum(found, float(self.smallest))

    def teaches(self, labels: IntArray, ptr: IntArray) -> BoolArray:
        """Return which queries have a click; see `Objective.teaches`."""
        result: BoolArray = np.maximum.reduceat(labels, ptr[:-1]) > 0
        return result

    def derivatives(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        weights: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        n_jobs: int | None = None,
        positions: ArrayLike | None = None,
    ) -> Derivatives:
        """Return values, gradient and curvature; see `Objective.derivatives`.

        Parameters
        ----------
        scores, labels, qid, weights, mask, n_jobs
            As in `Objective.derivatives`; labels are clicks.
        positions : array of int, of the shape of labels, optional
            Where each document was displayed, from 0; by default in the order of the documents of
            each query.
        """
        options = {"weights": weights, "mask": mask, "n_jobs": n_jobs, "positions": positions}
        return self.prepare(labels, qid, **options)(scores)  # type: ignore[arg-type]

    def prepare(
        self,
        labels: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        weights: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        n_jobs: int | None = None,
        positions: ArrayLike | None = None,
    ) -> Prepared:
        """Make the objective ready for many calls; see `Objective.prepare`.

        Parameters
        ----------
        labels, qid, weights, mask, n_jobs, positions
            As in `derivatives`.
        """
        details = {}
        if positions is not None:
            where = integers("positions", positions)
            wanted = as_array("labels", labels).shape
            if where.shape != wanted:
                raise ValueError(f"positions: expected shape {wanted} as labels, got {where.shape}")
            real = where if mask is None else where[np.asarray(mask, dtype=bool)]
            if (real < 0).any():
                raise ValueError(f"positions: expected at least 0, got {real.min()}")
            details["positions"] = where
        return Prepared(self, labels, qid, weights, mask, n_jobs, details)

    def bind(self, batch: Batch, n_jobs: int | None = None) -> Bound:
        """Make the objective ready for the queries of a batch; see `Objective.bind`."""
        derivatives = self.bind_derivatives(batch, n_jobs)
        return lambda scores: derivatives(scores)[:2]

    def bind_derivatives(self, batch: Batch, n_jobs: int | None = None) -> BoundDerivatives:
        """Do so with the curvature; see `Objective.bind_derivatives`."""
        positions = batch.shared.get("positions")
        if positions is None:
            positions = np.arange(len(batch.labels)) - batch.ptr[batch.query_of]
        weights = (batch.labels > 0) / self._propensities(positions)
        if self.loss == "softmax":
            return softmax_losses(batch, weights, n_jobs)
        if self.loss == "dcg":
            return self._smooth(batch, weights, n_jobs)
        against_all = self.loss == "all-pairs"

        def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
            _pairs(first, last, scores, weights, against_all, batch.ptr, *out)

        return derivatives_in_threads(work, batch, 10.0 * batch.sizes**2, n_jobs)

    def _smooth(self, batch: Batch, weights: FloatArray, n_jobs: int | None) -> BoundDerivatives:
        """Return the function of all scores for discounted gains at smooth positions."""
        totals = np.add.reduceat(weights, batch.ptr[:-1])
        levels, units = np.zeros(len(weights), dtype=np.int64), np.ones(len(batch))
        slopes = float(self.alpha), 1.0, 0, WINDOWS[0]
        form: tuple[Any, ...] = weights, levels, batch.ptr, units, *slopes, 0, np.inf, True

        def work(first: int, last: int, scores: FloatArray, *out: FloatArray) -> None:
            measure_derivatives(first, last, scores, *form, *out)
            out[0][first:last] += totals[first:last] - 1.0

        return derivatives_in_threads(work, batch, 5.0 * batch.sizes**2, n_jobs)


@kernel
def _pairs(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    weights: FloatArray,
    against_all: bool,
    ptr: IntArray,
    values: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
) -> None:
    """Add up ``weight log(1 + exp(s_j - s_i))`` over ordered pairs of different documents.

    The weight is that of i, and where not `against_all` times 1 less that of j.
    """
    for q in range(first_query, last_query):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        row, value = np.empty(n), 0.0
        losses, pulls, parts = np.empty(n), np.empty(n), np.empty(n)
        for i in range(n):
            weight = weights[a + i]
            if weight == 0.0:
                continue
            for j in range(n):
                row[j] = weight * (1.0 if against_all else 1.0 - weights[a + j])
            row[i] = 0.0
            logistic_row(scores[a + i], scores[a : a + n], row, losses, pulls, parts)
            slope, curve = 0.0, 0.0
            for j in range(n):
                part = abs(parts[j])
                value += losses[j]
                slope += pulls[j]
                curve += part
                gradient[a + j] += pulls[j]
                curvature[a + j] += part
            gradient[a + i] -= slope
            curvature[a + i] += curve
        values[q] = value
