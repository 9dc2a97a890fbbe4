"""Fairness of exposure between groups of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from permdist._check import grades
from permdist.models.objectives.exposure import Exposure, merits
from permdist.models.rules import OneOf

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray
    from permdist.models.batch import Batch
    from permdist.models.objectives.prepared import Derivatives, Prepared
    from permdist.models.rules import Rule

GRADES = 1024  # what labels with groups count groups in


def grouped_labels(labels: ArrayLike, groups: ArrayLike) -> IntArray:
    """Return labels that say the group of each document, too: ``1024 (group + 1) + label``.

    `GroupExposure` reads them. They go wherever labels go, such as through libraries that know
    scores, labels and queries only, and are exact in float32 up to 16,382 groups. Measures do not
    know them: what evaluates needs the labels themselves.

    Parameters
    ----------
    labels : array of int
        Grades below 1,024.
    groups : array of int, of the same shape
        Numbers of groups, from 0 on.

    Examples
    --------
    >>> grouped_labels([2, 0, 1], [0, 0, 1])
    array([1026, 1024, 2049])
    """
    label, group = grades("labels", labels), grades("groups", groups)
    if label.shape != group.shape:
        raise ValueError(f"groups: expected shape {label.shape} as labels, got {group.shape}")
    if label.size and label.max() >= GRADES:
        raise ValueError(f"labels: expected grades below {GRADES:,}, got {label.max()}")
    return (group + 1) * GRADES + label


@dataclass(frozen=True)
class GroupExposure(Exposure):
    """Squared differences between what groups of documents are seen: fairness of exposure.

    With the mean exposure E and the mean merit M (mean of ``2^label - 1``) of each group of a
    query, averaged over the pairs of groups in it that have any merit where merit counts:

    - ``"parity"`` (demographic parity): ``(E_g - E_h)^2`` over the squared mean exposure;
    - ``"merit"`` (disparate treatment): ``(E_g / M_g - E_h / M_h)^2``, with merits in multiples of
      the query's mean and exposures in multiples of its mean, too.

    Plus ``1 - E[measure]`` if there is a measure. Queries with one group only have no such
    differences.

    Not convex; the curvature is ``(|slope| + mean |slope| of the query) / noise``.

    Which group each document is in, `derivatives`, `prepare`, `values` and calls take as
    ``groups``, numbers from 0 on beside the labels. Where only labels can be passed on,
    `grouped_labels` take their place.

    Parameters
    ----------
    form : {"parity", "merit"}
    discount, k, measure, weight, distribution, noise
        How much is seen of each position (``"log2"``, ``"jk"``, ``"reciprocal"`` or the chance to
        go on to the next position), how many positions are seen, a measure of the utility, the
        weight of the differences beside it, and the noise of the scores: ``"plackett-luce"`` or
        ``"gaussian"``, and its scale.

    References
    ----------
    Singh and Joachims: Fairness of Exposure in Rankings (2018).

    Examples
    --------
    >>> fair = GroupExposure()
    >>> value, gradient = fair([1.0, 0.8, -0.5], [1, 1, 1], groups=[0, 0, 1])
    >>> round(value, 4), gradient.round(4)
    (0.0781, array([ 0.0381,  0.0383, -0.0764]))
    """

    alias: ClassVar[str] = "group-exposure"
    form: str = "parity"

    rules: ClassVar[Mapping[str, Rule]] = {
        **Exposure.rules,
        "form": OneOf(("parity", "merit")),
    }

    def _grades(self, batch: Batch) -> IntArray:
        return batch.labels % GRADES

    def _loss(
        self, batch: Batch, seen: FloatArray, ptr: IntArray
    ) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        if batch.labels.min() < GRADES:
            raise ValueError(
                "groups: expected the group of each document, got labels alone; pass groups=, or "
                "grouped_labels(labels, groups) in place of labels"
            )
        starts, sizes, query = batch.ptr[:-1], np.diff(batch.ptr), batch.query_of
        number = batch.labels // GRADES
        # Groups of each query, one after the other.
        order = np.lexsort((number, query))
        new = np.r_[True, (np.diff(number[order]) != 0) | (np.diff(query[order]) != 0)]
        group = np.empty(len(order), dtype=np.int64)
        group[order] = np.cumsum(new) - 1
        of_query, members = query[order][new], np.bincount(group)
        # What a group's mean is multiplied by: 1 over its merit, and over the mean exposure.
        scale = (sizes / np.add.reduceat(seen, ptr[:-1]))[of_query]
        counts = np.ones(len(members))
        if self.form == "merit":
            merit = merits(self._grades(batch))
            total = np.add.reduceat(merit, starts) / sizes
            own = np.bincount(group, merit) / members
            counts = (own > 0.0).astype(float)
            scale = scale * np.divide(total[of_query], own, out=np.zeros_like(own), where=own > 0.0)
        several = np.bincount(of_query, counts)
        pairs = np.maximum(several * (several - 1.0) / 2.0, 1.0)

        def loss(exposures: FloatArray) -> tuple[FloatArray, FloatArray]:
            level = scale * np.bincount(group, exposures) / members
            mean = np.bincount(of_query, counts * level) / np.maximum(several, 1.0)
            gap = counts * (level - mean[of_query])
            # Squared differences of all pairs are the number of groups times squared deviations.
            factor = several / pairs
            values = factor * np.bincount(of_query, gap**2)
            slopes = 2.0 * factor[of_query] * gap * scale / members
            return values, slopes[group]

        return loss

    def prepare(
        self,
        labels: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        **options: Any,
    ) -> Prepared:
        """Make the objective ready for many calls on the same queries.

        Parameters
        ----------
        labels : array of int, shape (documents,) or (queries, n)
        qid, **options
            As in `Objective.prepare`.
        groups : array of int, of the shape of labels, optional
            The group of each document; not needed with `grouped_labels`.
        """
        return super().prepare(_with_groups(labels, groups), qid, **options)

    def derivatives(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        **options: Any,
    ) -> Derivatives:
        """Return values, the gradient and a positive curvature.

        Parameters
        ----------
        scores, labels, qid, **options
            As in `Objective.derivatives`.
        groups : array of int, of the shape of labels, optional
            The group of each document; not needed with `grouped_labels`.
        """
        return self.prepare(labels, qid, groups=groups, **options)(scores)

    def values(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        qid: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the value of each query, and the gradient of their sum by the scores.

        Parameters
        ----------
        scores, labels, qid
            As in `Objective.values`.
        groups : array of int, shape (documents,), optional
            The group of each document; not needed with `grouped_labels`.
        """
        return super().values(scores, _with_groups(labels, groups), qid)

    def __call__(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        qid: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> tuple[float, FloatArray]:
        """Return the sum over queries and its gradient by the scores; see `values`."""
        values, gradient = self.values(scores, labels, qid, groups)
        return float(values.sum()), gradient


def _with_groups(labels: ArrayLike, groups: ArrayLike | None) -> ArrayLike:
    return labels if groups is None else grouped_labels(labels, groups)
