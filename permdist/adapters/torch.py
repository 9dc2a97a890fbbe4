"""Objectives as losses for PyTorch: values and gradients of CPU tensors, without copies."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from permdist._check import as_array, choice, import_extra
from permdist._parallel import rows_of
from permdist.data.tables import group_queries
from permdist.models.objectives import parse_objective

if TYPE_CHECKING:
    from permdist.models.objectives import Objective

REDUCTIONS = ("mean", "sum", "none")


class TorchLoss:
    """An objective as a loss for PyTorch, called like a module of ``torch.nn``.

    Gradients reach the scores by autograd. Second derivatives do not: to differentiate twice is
    refused.

    Parameters
    ----------
    objective : Objective or str
    reduction : {"mean", "sum", "none"}
        The mean over queries (a weighted one, with weights), their sum, or the value of each query.
    n_jobs : int, optional
        Threads, all processors by default; the result does not depend on it.

    Examples
    --------
    >>> import torch
    >>> from permdist import objectives
    >>> loss = objectives.ListNet().torch()
    >>> scores = torch.zeros((2, 3), requires_grad=True)
    >>> mask = torch.tensor([[True, True, True], [True, True, False]])
    >>> value = loss(scores, torch.tensor([[1, 0, 0], [1, 0, 0]]), mask=mask)
    >>> value.backward()
    >>> scores.grad[1].tolist() == [-scores.grad[1, 1].item(), scores.grad[1, 1].item(), 0.0]
    True
    """

    def __init__(
        self,
        objective: Objective | str,
        *,
        reduction: str = "mean",
        n_jobs: int | None = None,
    ) -> None:
        import_extra("torch", "torch()")
        self.objective: Objective = parse_objective(objective)
        self.reduction = choice("reduction", reduction, REDUCTIONS)
        self.n_jobs = n_jobs

    def __repr__(self) -> str:
        return f"TorchLoss({self.objective.name!r}, reduction={self.reduction!r})"

    def __call__(
        self, scores: Any, labels: Any, qid: Any = None, *, weights: Any = None, mask: Any = None
    ) -> Any:
        """Return the loss as a tensor.

        Parameters
        ----------
        scores : tensor of float32 or float64, shape (documents,) or (queries, n)
            On the CPU.
        labels : tensor or array of int, of the same shape
            What is not scores may be a tensor, or whatever `Objective.derivatives` takes: an
            array, a list, a column of a data frame.
        qid : tensor or array, shape (documents,), optional
            The query of each document of flat scores, which are one query by default: whole
            numbers or, in an array or a column, names.
        weights : tensor or array of float, shape (queries,), optional
        mask : tensor or array of bool, shape (queries, n), optional
            True where padded scores have a document.

        Returns
        -------
        tensor
            A number; of shape (queries,) with ``reduction="none"``.
        """
        torch = import_extra("torch", "torch()")
        _need_scores(torch, scores)
        given = {"labels": labels, "qid": qid, "weights": weights, "mask": mask}
        if labels is None:
            raise TypeError("labels: expected relevance labels, got none")
        arrays = {name: _array(torch, name, one) for name, one in given.items()}
        for name in ("labels", "weights"):
            if arrays[name] is not None:
                arrays[name] = as_array(name, arrays[name])
        label = arrays["labels"]
        if tuple(label.shape) != tuple(scores.shape):
            raise ValueError(
                f"labels: expected shape {tuple(scores.shape)} as scores, got {tuple(label.shape)}"
            )
        if scores.ndim == 1:
            arrays["qid"] = rows_of(group_queries(arrays["qid"], len(scores)).ptr)
        values = _function().apply(scores, self.objective, arrays, self.n_jobs)
        if self.reduction == "none":
            return values
        total = values.sum()
        if self.reduction == "sum":
            return total
        if arrays["weights"] is None:
            return total / len(values)
        return total / float(arrays["weights"].sum())


def _need_scores(torch: Any, scores: Any) -> None:
    """Refuse scores that are no floating tensors in the memory of the processor."""
    if not isinstance(scores, torch.Tensor):
        raise TypeError(f"scores: expected a torch tensor, got {type(scores).__name__}")
    if scores.device.type != "cpu":
        raise ValueError(
            f"scores: expected a tensor on the CPU, got one on {scores.device}; objectives are "
            "computed there: pass scores.cpu(), through which gradients flow back"
        )
    if scores.dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"scores: expected dtype float32 or float64, got {scores.dtype}; pass scores.float()"
        )
    if scores.layout != torch.strided:
        raise TypeError(f"scores: expected a dense tensor, got layout {scores.layout}")
    if scores.ndim not in (1, 2):
        raise ValueError(
            f"scores: expected shape (documents,) or (queries, n), got {tuple(scores.shape)}; "
            "a last axis of length 1 goes away with scores.squeeze(-1)"
        )


def _array(torch: Any, name: str, value: Any) -> Any:
    """Return a tensor as an array that shares its memory; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.device.type != "cpu":
        raise ValueError(
            f"{name}: expected a tensor on the CPU, got one on {value.device}; pass {name}.cpu()"
        )
    if value.requires_grad:
        raise ValueError(f"{name}: there is no gradient by it; pass {name}.detach()")
    return value.numpy()


@cache
def _function() -> Any:
    """Make the autograd function."""
    torch = import_extra("torch", "torch()")

    class Values(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """The value of each query, with the gradient by all scores."""

        @staticmethod
        def forward(ctx: Any, scores: Any, objective: Any, arrays: Any, n_jobs: Any) -> Any:
            """Compute values and gradient together."""
            found = objective.derivatives(scores.detach().numpy(), n_jobs=n_jobs, **arrays)
            gradient = torch.from_numpy(found.gradient)
            ctx.save_for_backward(gradient, scores)
            ctx.query_of = None if scores.ndim == 2 else torch.from_numpy(arrays["qid"])
            return torch.from_numpy(found.values).to(scores.dtype)

        @staticmethod
        def backward(ctx: Any, *outer: Any) -> Any:
            """Multiply the gradient of each query by the slope of what is made of its value."""
            gradient, scores = ctx.saved_tensors
            (slope,) = outer
            each = slope[:, None] if ctx.query_of is None else slope[ctx.query_of]
            return _once().apply(each * gradient, scores), None, None, None

    return Values


@cache
def _once() -> Any:
    """Make the function whose own gradient is refused."""
    torch = import_extra("torch", "torch()")

    class Once(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """The gradient at scores; to differentiate it is an error."""

        @staticmethod
        def forward(ctx: Any, gradient: Any, scores: Any) -> Any:  # noqa: ARG004
            """Return the gradient."""
            return gradient.clone()

        @staticmethod
        def backward(ctx: Any, *outer: Any) -> Any:
            """Refuse second derivatives."""
            raise NotImplementedError(
                "permdist: the gradient of an objective cannot be differentiated again; leave out "
                "create_graph=True, or use the curvature of objective.derivatives(...)"
            )

    return Once
