"""Standard errors of a fitted mixture, from its observed information."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import linalg

if TYPE_CHECKING:
    from permdist._typing import FloatArray
    from permdist.distributions.mixture_families import Family
    from permdist.distributions.mixture_fit import State

# Errors are computed for up to this many parameters, and numbers in a matrix by ballots.
MOST_PARAMETERS, MOST_SLOPES = 1000, 30_000_000
# A component with less than this share keeps its parameters, and has no errors.
NOTHING = 1e-12
# Slopes that add up to 0 but for this part of the largest belong to parameters with a free level.
LEVEL = 1e-5


class Errors(NamedTuple):
    """Standard errors of weights and of the parameters of each component, and what they lack."""

    weights: FloatArray
    components: tuple[FloatArray, ...]
    note: str


def standard_errors(family: Family, state: State) -> Errors:
    """Return standard errors by Louis' formula.

    The observed information of the mixture is that of the complete data, less the covariance of its
    score given the ballots. Weights have a sum of 1; where only differences of a component's
    parameters matter, as of scores, these are held at the sum that they have.

    Parameters
    ----------
    family : Family
    state : State
        The components in their final order.
    """
    held, weights = state.responsibilities, state.weights
    counts, k = family.counts, len(weights)
    if len(counts) * (len(state.models) + 1) > MOST_SLOPES:
        return _without(k, "there are too many ballots")
    known, note = [], ""
    for model in state.models:
        try:
            known.append(family.derivatives(model))
        except ValueError as error:
            return _without(k, f"a component has no derivatives: {error}")
        if known[-1] is None:
            note = (
                f"{type(model).__name__} has no attribute parameters and no method with_parameters,"
                " so such components are taken as known, and only the weights have errors"
            )
    slopes = [np.zeros((len(counts), 0)) if each is None else each[0] for each in known]
    slopes += [np.zeros((len(counts), 0))] * (k - len(slopes))  # noise
    edges = np.cumsum([k, *(each.shape[1] for each in slopes)])
    size = int(edges[-1])
    if size > MOST_PARAMETERS or size * len(counts) > MOST_SLOPES:
        return _without(k, f"{size:,} parameters and {len(counts):,} ballots are too many", slopes)
    if weights.min() < NOTHING:
        return _without(k, "a component has no ballots", slopes)
    score, information = np.zeros((len(counts), size)), np.zeros((size, size))
    fixed = [np.arange(size) < k]
    for j in range(k):
        own = np.r_[j, edges[j] : edges[j + 1]]
        rows = np.column_stack([np.full(len(counts), 1.0 / weights[j]), slopes[j]])
        score[:, own] = held[j][:, None] * rows
        mine = counts * held[j]
        block = -(rows * mine[:, None]).T @ rows
        block[0, 0] += mine.sum() / weights[j] ** 2
        if slopes[j].shape[1]:
            block[1:, 1:] += known[j][1](mine)  # type: ignore[index]
            level = np.abs(slopes[j].sum(axis=1)).max()
            if level <= LEVEL * np.abs(slopes[j]).max():
                fixed.append((np.arange(size) >= edges[j]) & (np.arange(size) < edges[j + 1]))
        information[np.ix_(own, own)] += block
    information += (score * counts[:, None]).T @ score
    free = linalg.null_space(np.array(fixed, dtype=np.float64))
    if not free.shape[1]:
        return Errors(np.zeros(k), tuple(np.zeros(each.shape[1]) for each in slopes), note)
    try:
        inverse = linalg.inv(linalg.cholesky(free.T @ information @ free, lower=True))
    except (linalg.LinAlgError, ValueError):
        return _without(k, "the ballots do not determine all parameters", slopes)
    errors = np.linalg.norm(inverse @ free.T, axis=0)
    return Errors(errors[:k], tuple(errors[edges[j] : edges[j + 1]] for j in range(k)), note)


def _without(k: int, note: str, slopes: list[FloatArray] | None = None) -> Errors:
    """Return NaN, and why."""
    sizes = [each.shape[1] for each in slopes or [np.zeros((0, 0))] * k]
    return Errors(np.full(k, np.nan), tuple(np.full(size, np.nan) for size in sizes), note)
