"""An objective made ready for many calls on the same queries, flat or padded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._check import as_array, check_masks, check_scores, finite, first_index, grades
from permdist._parallel import pointers
from permdist.data.tables import group_queries
from permdist.models.batch import teaching

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.models.objectives.base import Objective

SMALLEST = 1e-12  # the least curvature of a document of a query that teaches
TINIEST = float(np.finfo(np.float32).tiny)


class Derivatives(NamedTuple):
    """Values and derivatives of an objective by the scores of all documents.

    Attributes
    ----------
    values : array of float64, shape (queries,)
        0 for a query whose documents all have the same label.
    gradient : array, shape and dtype of the scores
        Of the sum of the values; 0 where there is no document.
    curvature : array, shape and dtype of the scores
        A positive diagonal in place of the second derivatives; 0 where there is no document and
        for queries that teach nothing: all labels the same, or of weight 0.
    """

    values: FloatArray
    gradient: NDArray[Any]
    curvature: NDArray[Any]


class Prepared:
    """What `Objective.prepare` returns: call it with scores.

    Attributes
    ----------
    shape : tuple of int
        The shape that scores must have.
    n_queries : int
    """

    def __init__(
        self,
        objective: Objective,
        labels: ArrayLike,
        qid: ArrayLike | None,
        weights: ArrayLike | None,
        mask: ArrayLike | None,
        n_jobs: int | None,
    ) -> None:
        flat, sizes, places, self.shape = _lay_out(labels, qid, mask)
        self.n_queries = len(sizes)
        useful = np.zeros(len(sizes), dtype=bool)
        if len(flat):
            useful[sizes > 0] = teaching(flat, pointers(sizes[sizes > 0]))
        weight = None if weights is None else _check_weights(weights, len(sizes))
        self._real = places  # of real documents, None for all
        rows = np.repeat(useful, sizes)
        if not useful.all():
            real = np.arange(len(flat)) if places is None else places
            places = real[rows]
        self._places, self._useful = places, useful
        self._function: Callable[[FloatArray], tuple[FloatArray, ...]] | None = None
        self._floor: Any = SMALLEST
        self._weights: tuple[FloatArray, FloatArray] | None = None
        if useful.any():
            label, ptr = flat[rows], pointers(sizes[useful])
            settled = objective.settle(label, ptr)
            batch = settled.batch(label, ptr)
            self._function = settled.bind_derivatives(batch, n_jobs)
        if weight is not None:
            each = np.repeat(weight[useful], sizes[useful])
            self._weights = weight[useful], each
            self._floor = np.where(each > 0.0, np.maximum(SMALLEST * each, TINIEST), 0.0)

    def __call__(self, scores: ArrayLike) -> Derivatives:
        """Return values, gradient and curvature.

        Parameters
        ----------
        scores : array of float32 or float64, of the `shape` of the labels
            What is at places without a document does not matter.

        Returns
        -------
        Derivatives
        """
        given = _check_scores(scores, self.shape)
        own = given.reshape(-1)
        _check_finite(own if self._real is None else own[self._real], given, self._real)
        if self._places is not None:
            own = own[self._places]
        values = np.zeros(self.n_queries)
        if self._function is None:
            return Derivatives(values, np.zeros_like(given), np.zeros_like(given))
        own = np.ascontiguousarray(own, dtype=np.float64)
        if not own.flags.writeable:  # kernels would be compiled again for such arrays
            own = own.copy()
        found, gradient, curvature = self._function(own)
        if self._weights is not None:
            found, gradient = found * self._weights[0], gradient * self._weights[1]
            curvature = curvature * self._weights[1]
        values[self._useful] = found
        if (curvature < self._floor).any():
            curvature = np.maximum(curvature, self._floor)
        return Derivatives(values, self._placed(gradient, given), self._placed(curvature, given))

    def _placed(self, found: FloatArray, given: NDArray[Any]) -> NDArray[Any]:
        """Put what was found for documents where their scores are."""
        if self._places is None:
            return found.astype(given.dtype, copy=False).reshape(given.shape)
        result = np.zeros(given.size, given.dtype)
        result[self._places] = found
        return result.reshape(given.shape)


def _lay_out(
    labels: ArrayLike, qid: ArrayLike | None, mask: ArrayLike | None
) -> tuple[IntArray, IntArray, IntArray | None, tuple[int, ...]]:
    """Return the labels of all documents, the sizes of queries, and where documents are.

    The latter is None if they are everywhere, query after query.
    """
    given = as_array("labels", labels)
    if given.ndim == 1:
        if mask is not None:
            raise ValueError(
                "mask: expected labels of shape (queries, n) with it, got shape "
                f"{given.shape}; pass qid for flat labels"
            )
        flat = grades("labels", given)
        return flat, np.diff(group_queries(qid, len(flat)).ptr), None, given.shape
    if given.ndim != 2:
        raise ValueError(
            "labels: expected shape (documents,) with qid, or (queries, n) with a mask, got shape "
            f"{given.shape}"
        )
    if qid is not None:
        raise ValueError(
            f"qid: expected none beside padded labels of shape {given.shape}, each row of which "
            "is a query; pass mask to say where documents are"
        )
    if mask is None:
        sizes = np.full(len(given), given.shape[1])
        return grades("labels", given).reshape(-1), sizes, None, given.shape
    here = _check_mask(mask, given.shape)
    places = None if here.all() else np.flatnonzero(here)
    flat = given.reshape(-1) if places is None else given.reshape(-1)[places]
    return grades("labels", flat), here.sum(axis=1), places, given.shape


def _check_mask(mask: ArrayLike, shape: tuple[int, ...]) -> BoolArray:
    check_masks("mask", mask)
    here = np.asarray(mask)
    if here.dtype.kind != "b":
        raise TypeError(f"mask: expected booleans, True where a document is, got {here.dtype}")
    if here.shape != shape:
        raise ValueError(f"mask: expected shape {shape} as labels, got {here.shape}")
    return here


def _check_weights(weights: ArrayLike, n_queries: int) -> FloatArray:
    weight = finite("weights", weights, ndim=1)
    if len(weight) != n_queries:
        raise ValueError(f"weights: expected one per query, {n_queries} in all, got {len(weight)}")
    if (weight < 0.0).any():
        where = first_index(weight < 0.0)
        raise ValueError(
            f"weights: expected non-negative numbers, got {weight[int(where)]} at index {where}"
        )
    return weight


def _check_scores(scores: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    given = as_array("scores", scores)
    if given.dtype.kind == "b":
        raise TypeError("scores: expected numbers, got booleans")
    if given.shape != shape:
        raise ValueError(f"scores: expected shape {shape} as labels, got {given.shape}")
    if given.dtype not in (np.float32, np.float64):
        given = given.astype(np.float64)
    return given


def _check_finite(own: NDArray[Any], given: NDArray[Any], places: IntArray | None) -> None:
    """Refuse scores of documents that are no finite numbers, or too large."""
    bad = ~np.isfinite(own)
    if bad.any():
        number = int(np.argmax(bad))
        place = number if places is None else int(places[number])
        where = tuple(int(i) for i in np.unravel_index(place, given.shape))
        shown = where[0] if given.ndim == 1 else where
        raise ValueError(f"scores: expected finite numbers, got {own[number]} at index {shown}")
    check_scores(own)
