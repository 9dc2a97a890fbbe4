"""Exact posteriors of Mallows models of a few items: sums over all centers and all orders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from permdist import rankings
from permdist.ballots import levels_of
from permdist.rankings import enumerate_orders, order_to_ranks

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.posterior.problem import Problem

MOST_ITEMS = 6
# Nodes of theta on a logarithmic scale: everywhere first, then where the posterior is.
WIDE, NODES, NARROW = (-14.0, 7.0), 127, 40.0


def enumerate_centers(problem: Problem) -> tuple[FloatArray, FloatArray, float]:
    """Return draws (N, size) with their posterior weights, and the log-evidence.

    Parameters
    ----------
    problem : MallowsPosterior
        With both the center and theta unknown, and up to six items.
    """
    given: Any = problem
    names = tuple(variable.name for variable in problem.variables)
    if names != ("center", "theta") or not hasattr(given, "distance"):
        raise ValueError(
            f"exact: known for smooth models of a few parameters, and for Mallows models with both "
            f"center and theta, not for {problem.family}; use draws"
        )
    data, n = given.data, given.data.n_items
    if n > MOST_ITEMS:
        raise ValueError(f"exact: expected at most {MOST_ITEMS} items, got {n}; use draws")
    orders = enumerate_orders(n)
    ranks = order_to_ranks(orders)
    between = getattr(rankings, given.distance)(orders[:, None], orders[None]).astype(np.float64)
    levels, which = np.unique(levels_of(data), axis=0, return_inverse=True)
    weights = np.bincount(which.reshape(-1), data.weights, len(levels))
    agree = _agreeing(levels, ranks)
    log_center = given.prior.log_center(orders)
    log_center = log_center - special.logsumexp(log_center)
    improper = not hasattr(given.prior.theta, "log_density_of_values")

    def log_joint(theta: float) -> FloatArray:
        """Return the log of prior times likelihood of every center."""
        kernel = np.exp(-theta * between)
        with np.errstate(divide="ignore"):
            each = np.log(kernel @ agree.T)
        prior = 0.0 if improper else float(given.prior.theta.log_density_of_values(theta))
        each = each - np.log(kernel[0].sum())
        return log_center + each @ weights + prior + np.log(theta)

    wide = np.linspace(*WIDE, NODES)
    masses = np.array([special.logsumexp(log_joint(float(np.exp(x)))) for x in wide])
    near = np.flatnonzero(masses > masses.max() - NARROW)
    low, high = wide[max(near[0] - 1, 0)], wide[min(near[-1] + 1, NODES - 1)]
    fine = np.linspace(low, high, NODES)
    thetas = np.exp(fine)
    table = np.array([log_joint(float(theta)) for theta in thetas])
    total = float(special.logsumexp(table))
    points = np.column_stack([np.tile(ranks, (NODES, 1)), np.repeat(thetas, len(orders))]).astype(
        np.float64
    )
    log_evidence = np.nan if improper else total + float(np.log(fine[1] - fine[0]))
    return points, np.exp(table.ravel() - total), log_evidence


def _agreeing(levels: IntArray, ranks: IntArray) -> FloatArray:
    """Return which orders agree with which ballots, 1 or 0, shape (ballots, orders)."""
    result = np.ones((len(levels), len(ranks)))
    for row, level in enumerate(levels):
        above = (level >= 0)[:, None] & (level[:, None] < level)
        for i, j in zip(*np.nonzero(above), strict=True):
            result[row] *= ranks[:, i] < ranks[:, j]
    return result
