"""The probability of an order under independent Gaussian noise: nested integrals on panels."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial import legendre
from scipy.special import log_ndtr

from permdist._kernels import kernel
from permdist.rankings.sorting import copy
from permdist.sums.lattice import NotExactError

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

REACH = 9.0  # standard deviations beyond which a Gaussian is below 1e-18 of its peak
NODES, POINTS = 16, 10  # of a panel, and between two neighboring nodes
STEEP = 8.0  # a change of the log integrand that the points between two nodes still resolve
MAX_SPREAD = 20_000.0


def log_probs(orders: IntArray, standard: FloatArray) -> FloatArray:
    """Return log-probabilities of orders (rankings, n) for scores in standard deviations."""
    edges = _panels(standard)
    last, result = _last(standard, edges), np.empty(len(orders))
    # Rankings that share their last places share the integrals over them: side by side, then.
    by_end = np.lexsort(orders.T)
    result[by_end] = _nested(orders[by_end], standard, edges, last, *_rules())
    return result


def posterior_means(orders: IntArray, standard: FloatArray) -> FloatArray:
    """Return the mean utility of each item given each order (rankings, n), same shape."""
    edges = _panels(standard)
    last, mirrored = _last(standard, edges), _last(-standard, -edges[::-1])
    tables = standard, edges, last, mirrored, *_rules(), _integration_weights()
    return _posterior_means(orders, *tables)


# ---- panels: Chebyshev nodes inside, Gauss-Legendre points between neighboring nodes ----------


def _panels(means: FloatArray) -> FloatArray:
    """Return the edges of panels that cover all utilities, in standard deviations."""
    width = 0.5 if len(means) > 30 else 1.0
    low, high = float(means.min()) - REACH - 1.0, float(means.max()) + REACH
    if not high - low < MAX_SPREAD:
        raise NotExactError(
            f"scores: expected them within {MAX_SPREAD:,.0f} standard deviations for the "
            f"probability of an order, got {high - low:,.6g}"
        )
    steps = np.arange(int(np.ceil((high - low) / width)) + 1, dtype=np.float64)
    return low + width * steps


def _last(means: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the innermost integrals, log Phi, at the nodes, shape (n, panels, nodes)."""
    return log_ndtr(_panel_nodes(edges)[None] - means[:, None, None])


def _panel_nodes(edges: FloatArray) -> FloatArray:
    """Return the Chebyshev nodes of each panel, both ends included, shape (panels, NODES)."""
    unit = _rules()[0]
    return np.asarray(edges[:-1, None] + (edges[1] - edges[0]) * unit, dtype=np.float64)


@cache
def _rules() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return nodes in 0..1, points between them, their weights, and the interpolation matrix."""
    unit = (1.0 - np.cos(np.pi * np.arange(NODES) / (NODES - 1))) / 2.0
    x, w = legendre.leggauss(POINTS)
    gaps = np.diff(unit)
    points = unit[:-1, None] + gaps[:, None] * (x + 1.0) / 2.0
    weights = gaps[:, None] * w / 2.0
    barycentric = (-1.0) ** np.arange(NODES)
    barycentric[[0, -1]] *= 0.5
    factors = barycentric / (points[..., None] - unit)
    return unit, points, weights, factors / factors.sum(axis=-1, keepdims=True)


@cache
def _integration_weights() -> FloatArray:
    """Return the weights that integrate a polynomial through the nodes over 0..1."""
    _, _, weights, matrix = _rules()
    return np.einsum("gp,gpn->n", weights, matrix)


@kernel
def _interpolate(values: FloatArray, unit: FloatArray, x: float) -> float:
    """Evaluate the polynomial through values (nodes,) at a point x of 0..1."""
    above, below = 0.0, 0.0
    for node in range(len(unit)):
        gap = x - unit[node]
        if gap == 0.0:
            return values[node]
        weight = 1.0 / gap
        if node % 2 == 1:
            weight = -weight
        if node == 0 or node == len(unit) - 1:
            weight *= 0.5
        above += weight * values[node]
        below += weight
    return above / below


@kernel
def _next_level(
    inner: FloatArray,
    mean: float,
    edges: FloatArray,
    unit: FloatArray,
    points: FloatArray,
    weights: FloatArray,
    matrix: FloatArray,
    outer: FloatArray,
) -> None:
    """One integration: log h_k at all nodes from log h_(k+1), both (panels, nodes)."""
    panels, n_nodes = inner.shape
    width = edges[1] - edges[0]
    constant = -0.5 * np.log(2.0 * np.pi) + np.log(width)
    n_points = points.shape[1]
    logs = np.empty(n_points)
    fractions = (points[0] - unit[0]) / (unit[1] - unit[0])
    shares = weights[0] / (unit[1] - unit[0])
    # To the left of all panels the integrand grows like an exponential: its integral is its
    # value over its rate. Whatever is wrong with that is far too small to matter.
    first = (inner[0, 1] - inner[0, 0]) / (width * points[0, 0] + 1e-300)
    rate = max((mean - edges[0]) + min(max(first, 0.0), 1e3), 1.0)
    reached = inner[0, 0] - 0.5 * (edges[0] - mean) ** 2 + constant - np.log(width) - np.log(rate)
    for panel in range(panels):
        outer[panel, 0] = reached
        for gap in range(n_nodes - 1):
            left, right = unit[gap], unit[gap + 1]
            at_left = edges[panel] + width * left - mean
            at_right = edges[panel] + width * right - mean
            log_left = inner[panel, gap] - 0.5 * at_left * at_left
            log_right = inner[panel, gap + 1] - 0.5 * at_right * at_right
            change = abs(log_right - log_left)
            if change > STEEP:
                # Pieces over which the integrand changes little, from its larger end on.
                largest = max(log_left, log_right)
                pieces = int(min(change / STEEP, 1e9)) + 1
                size = (right - left) / pieces
                total = 0.0
                for piece in range(min(pieces, 5)):  # beyond, below 1e-17 of it
                    start = (
                        left + piece * size if log_left > log_right else right - (piece + 1) * size
                    )
                    for p in range(n_points):
                        x = start + size * fractions[p]
                        t = edges[panel] + width * x - mean
                        value = _interpolate(inner[panel], unit, x) - 0.5 * t * t
                        total += size * shares[p] * np.exp(value - largest)
                part = largest + constant + np.log(total)
                top, low = max(reached, part), min(reached, part)
                reached = top + np.log1p(np.exp(low - top))
                outer[panel, gap + 1] = reached
                continue
            largest = -np.inf
            for p in range(n_points):
                value = 0.0
                for node in range(n_nodes):
                    value += matrix[gap, p, node] * inner[panel, node]
                t = edges[panel] + width * points[gap, p] - mean
                logs[p] = value - 0.5 * t * t
                largest = max(largest, logs[p])
            total = 0.0
            for p in range(n_points):
                total += weights[gap, p] * np.exp(logs[p] - largest)
            part = largest + constant + np.log(total)
            top, low = max(reached, part), min(reached, part)
            reached = top + np.log1p(np.exp(low - top))
            outer[panel, gap + 1] = reached


@kernel
def _copy_panels(source: FloatArray, target: FloatArray) -> None:
    for panel in range(len(source)):
        copy(source[panel], target[panel])


@kernel
def _nested(
    orders: IntArray,
    means: FloatArray,
    edges: FloatArray,
    last: FloatArray,
    unit: FloatArray,
    points: FloatArray,
    weights: FloatArray,
    matrix: FloatArray,
) -> FloatArray:
    """Log-probabilities of orders (rankings, n); last (n, panels, nodes) is log Phi.

    Places that a ranking shares with the one before it, from the end, are not integrated again.
    """
    rankings, n = orders.shape
    out = np.empty(rankings)
    levels = np.empty((n, *last.shape[1:]))  # log integral over the places from k on
    for row in range(rankings):
        place = n - 1
        if row > 0:
            while place >= 0 and orders[row, place] == orders[row - 1, place]:
                place -= 1
        while place >= 0:
            item = orders[row, place]
            if place == n - 1:
                _copy_panels(last[item], levels[place])
            else:
                inner, outer = levels[place + 1], levels[place]
                _next_level(inner, means[item], edges, unit, points, weights, matrix, outer)
            place -= 1
        out[row] = levels[0, -1, -1]
    return out


@kernel
def _posterior_means(
    orders: IntArray,
    means: FloatArray,
    edges: FloatArray,
    last: FloatArray,
    mirrored: FloatArray,
    unit: FloatArray,
    points: FloatArray,
    weights: FloatArray,
    matrix: FloatArray,
    integrate: FloatArray,
) -> FloatArray:
    """Mean utility of each item given the order, shape (rankings, n).

    The density of the utility at a place is the integral over all places below it, times its
    Gaussian, times the integral over all places above, which is the mirror image of the first.
    """
    rankings, n = orders.shape
    panels, n_nodes = last.shape[1:]
    out = np.empty((rankings, n))
    below = np.zeros((n, panels, n_nodes))  # log integral over the places from k on
    above = np.zeros((n, panels, n_nodes))  # log integral over the places up to k, mirrored
    flipped = -edges[::-1]
    width = edges[1] - edges[0]
    for row in range(rankings):
        _copy_panels(last[orders[row, n - 1]], below[n - 1])
        for k in range(n - 2, -1, -1):
            mean = means[orders[row, k]]
            _next_level(below[k + 1], mean, edges, unit, points, weights, matrix, below[k])
        _copy_panels(mirrored[orders[row, 0]], above[0])
        for k in range(1, n):
            mean = -means[orders[row, k]]
            _next_level(above[k - 1], mean, flipped, unit, points, weights, matrix, above[k])
        for k in range(n):
            item = orders[row, k]
            largest = -np.inf
            for sweep in range(2):
                total, moment = 0.0, 0.0
                for panel in range(panels):
                    for node in range(n_nodes):
                        t = edges[panel] + width * unit[node]
                        value = -0.5 * (t - means[item]) ** 2
                        if k < n - 1:
                            value += below[k + 1, panel, node]
                        if k > 0:
                            value += above[k - 1, panels - 1 - panel, n_nodes - 1 - node]
                        if sweep == 0:
                            largest = max(largest, value)
                        elif value > largest - 745.0:
                            share = integrate[node] * np.exp(value - largest)
                            total += share
                            moment += share * t
                if sweep == 1:
                    out[row, item] = moment / total
    return out
