"""Objectives as losses for JAX: a function with a gradient of its own, computed on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_array, choice, import_extra
from permdist._parallel import rows_of
from permdist.data.tables import group_queries
from permdist.models.objectives import parse_objective

if TYPE_CHECKING:
    from permdist.models.objectives import Objective

REDUCTIONS = ("mean", "sum", "none")


class JaxLoss:
    """An objective as a loss for JAX, to be used under ``jit``, ``grad`` and ``vmap``.

    Values and gradients are computed on the host by `jax.pure_callback`, in one call. Gradients of
    gradients, and forward mode, are refused.

    Parameters
    ----------
    objective : Objective or str
    reduction : {"mean", "sum", "none"}
        The mean over queries (a weighted one, with weights), their sum, or the value of each query.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.

    Examples
    --------
    >>> import jax
    >>> from permdist import objectives
    >>> loss = objectives.ListNet().jax()
    >>> gradient = jax.jit(jax.grad(loss))(jax.numpy.zeros(2), jax.numpy.array([1, 0]))
    >>> [round(float(entry), 4) for entry in gradient]
    [-0.2311, 0.2311]
    """

    def __init__(
        self,
        objective: Objective | str,
        *,
        reduction: str = "mean",
        n_jobs: int | None = None,
    ) -> None:
        import_extra("jax", "jax()")
        self.objective: Objective = parse_objective(objective)
        self.reduction = choice("reduction", reduction, REDUCTIONS)
        self.n_jobs = n_jobs
        self._values = _with_gradient(self._on_host)

    def __repr__(self) -> str:
        return f"JaxLoss({self.objective.name!r}, reduction={self.reduction!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_values"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._values = _with_gradient(self._on_host)

    def __call__(
        self, scores: Any, labels: Any, qid: Any = None, *, weights: Any = None, mask: Any = None
    ) -> Any:
        """Return the loss as an array of JAX.

        Parameters
        ----------
        scores : array of float32 or float64, shape (documents,) or (queries, n)
            float64 if JAX has it: ``jax.config.update("jax_enable_x64", True)``.
        labels : array of int, of the same shape
            What is not scores may be an array of JAX, or whatever `Objective.derivatives` takes:
            an array, a list, a column of a data frame.
        qid : array, shape (documents,), optional
            The query of each document of flat scores, which are one query by default: whole
            numbers or names. It decides the number of queries, so it must be known when the
            function is traced; padded scores with a mask need not be.
        weights : array of float, shape (queries,), optional
        mask : array of bool, shape (queries, n), optional
            True where padded scores have a document.
        """
        jax = import_extra("jax", "jax()")
        if labels is None:
            raise TypeError("labels: expected relevance labels, got none")
        scores = jax.numpy.asarray(scores)
        labels = jax.numpy.asarray(_readable(jax, "labels", labels))
        if scores.dtype not in (np.float32, np.float64):
            raise TypeError(f"scores: expected dtype float32 or float64, got {scores.dtype}")
        if scores.ndim not in (1, 2):
            raise ValueError(
                f"scores: expected shape (documents,) or (queries, n), got {scores.shape}"
            )
        if labels.shape != scores.shape:
            raise ValueError(f"labels: expected shape {scores.shape} as scores, got {labels.shape}")
        if scores.ndim == 2 and qid is not None:
            raise ValueError("qid: padded scores have a query in each row; pass one of the two")
        groups: Any = np.zeros(0, dtype=np.int32)
        number = len(scores) if scores.ndim == 2 else 1
        if scores.ndim == 1:
            if isinstance(qid, jax.core.Tracer):
                raise TypeError(
                    "qid: expected values that are known when the function is traced, got a "
                    "tracer; close over qid, or pass padded scores (queries, n) with a mask"
                )
            found = group_queries(qid, len(scores))
            groups = rows_of(found.ptr).astype(np.int32)
            number = len(found.qids)
        filled = np.ones(scores.shape, dtype=bool) if mask is None else jax.numpy.asarray(mask)
        if filled.shape != scores.shape:
            raise ValueError(f"mask: expected shape {scores.shape} as scores, got {filled.shape}")
        if mask is not None and scores.ndim == 1:
            raise ValueError("mask: flat scores have none; pass padded scores (queries, n)")
        each = np.ones(number) if weights is None else _readable(jax, "weights", weights)
        each = jax.numpy.asarray(each, dtype=scores.dtype)
        if each.shape != (number,):
            raise ValueError(
                f"weights: expected shape ({number},), one per query, got {each.shape}"
            )
        values = self._values(scores, labels, groups, each, filled)
        if self.reduction == "none":
            return values
        total = values.sum()
        return total if self.reduction == "sum" else total / each.sum()

    def _on_host(
        self, scores: Any, labels: Any, groups: Any, weights: Any, mask: Any
    ) -> tuple[Any, Any]:
        """Return values and gradient of arrays, which may have further axes in front."""
        scores, labels, groups = np.asarray(scores), np.asarray(labels), np.asarray(groups)
        weights, mask = np.asarray(weights), np.asarray(mask)
        dtype, padded = scores.dtype, groups.shape[-1] == 0
        ndim = 2 if padded else 1
        lead = scores.shape[: scores.ndim - ndim]
        values = np.empty((*lead, weights.shape[-1]), dtype=dtype)
        gradient = np.empty(scores.shape, dtype=dtype)
        for place in np.ndindex(*lead):
            options: dict[str, Any] = {"mask": mask[place]} if padded else {"qid": groups[place]}
            found = self.objective.derivatives(
                scores[place], labels[place], weights=weights[place], n_jobs=self.n_jobs, **options
            )
            values[place], gradient[place] = found.values, found.gradient
        return values, gradient


def _readable(jax: Any, name: str, value: Any) -> Any:
    """Return what JAX reads: its own arrays as they are, columns and lists as arrays."""
    return value if isinstance(value, jax.Array) else as_array(name, value)


def _with_gradient(on_host: Any) -> Any:
    """Return the function of scores whose gradient is that which the host computes."""
    jax = import_extra("jax", "jax()")

    def call(scores: Any, labels: Any, groups: Any, weights: Any, mask: Any) -> Any:
        shapes = (
            jax.ShapeDtypeStruct(weights.shape, scores.dtype),
            jax.ShapeDtypeStruct(scores.shape, scores.dtype),
        )
        arguments = scores, labels, groups, weights, mask
        return jax.pure_callback(on_host, shapes, *arguments, vmap_method="broadcast_all")

    @jax.custom_vjp  # type: ignore[untyped-decorator, unused-ignore]
    def values(scores: Any, labels: Any, groups: Any, weights: Any, mask: Any) -> Any:
        return call(scores, labels, groups, weights, mask)[0]

    @jax.custom_vjp  # type: ignore[untyped-decorator, unused-ignore]
    def once(scores: Any, labels: Any, groups: Any, weights: Any, mask: Any) -> Any:
        return call(scores, labels, groups, weights, mask)

    def refuse(*_: Any) -> Any:
        raise NotImplementedError(
            "permdist: the gradient of an objective cannot be differentiated again; use the "
            "curvature of objective.derivatives(...)"
        )

    once.defvjp(lambda *arguments: (once(*arguments), None), refuse)

    def forward(scores: Any, labels: Any, groups: Any, weights: Any, mask: Any) -> Any:
        found, gradient = once(scores, labels, groups, weights, mask)
        return found, (gradient, groups)

    def backward(kept: Any, slope: Any) -> Any:
        gradient, groups = kept
        each = slope[:, None] if gradient.ndim == 2 else slope[groups]
        return each * gradient, None, None, None, None

    values.defvjp(forward, backward)
    return values
