"""Slow, obvious posteriors: sums over grids, and likelihoods by enumerating sets."""

import itertools

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm


def log_ballot(stages, rest, scores, log_ties=None):
    """Davidson-Luce for scores (m, n): stages are tuples of items, rest was never chosen."""
    log_ties = {1: 0.0, **(log_ties or {})}
    left = [item for stage in stages for item in stage] + list(rest)
    total = np.zeros(len(scores))
    for stage in stages:
        terms = [
            log_ties[size] + scores[:, list(some)].mean(axis=1)
            for size in log_ties
            for some in itertools.combinations(left, size)
        ]
        total += log_ties[len(stage)] + scores[:, list(stage)].mean(axis=1)
        total -= logsumexp(terms, axis=0)
        left = [item for item in left if item not in stage]
    return total


def log_order(order, rest, scores):
    """Plackett-Luce for scores (m, n)."""
    return log_ballot([(item,) for item in order], rest, scores)


def log_gaussian_order(order, scores, nodes=4001):
    """Independent Gaussian noise: nested integrals by the trapezoid rule, scores (m, n)."""
    x = np.linspace(-14.0, 14.0, nodes)
    step = x[1] - x[0]
    result = np.empty(len(scores))
    for row, score in enumerate(scores):
        below = np.ones(nodes)
        for item in reversed(order):
            values = norm.pdf(x - score[item]) * below
            below = np.concatenate([[0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * step)])
        result[row] = np.log(below[-1])
    return result


def grid(log_density, low, high, points):
    """Return the points of a grid (m, d) and their probabilities (m,)."""
    axes = [np.linspace(a, b, points) for a, b in zip(low, high, strict=True)]
    table = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    logs = log_density(table)
    cell = float(np.prod([axis[1] - axis[0] for axis in axes]))
    evidence = logsumexp(logs) + np.log(cell)
    return table, np.exp(logs - logsumexp(logs)), evidence


def centered_basis(n):
    """Return an orthonormal basis (n, n - 1) of the vectors that add up to 0."""
    full, _ = np.linalg.qr(np.ones((n, 1)), mode="complete")
    return full[:, 1:]


def run(problem, draws, seed):
    """Draw by a problem itself; a tenth of the draws is discarded."""
    rng = np.random.default_rng(seed)
    table, values = np.empty((draws, problem.size)), np.empty(draws)
    problem.advance(problem.start(rng), table, values, rng)
    assert np.isfinite(values).all()
    return table[draws // 10 :]
