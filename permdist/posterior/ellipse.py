"""Elliptical slice sampling around a Gaussian, in coordinates that take the skewness away.

A smooth posterior is close to a Gaussian around its mode, and closer in coordinates x in which
each parameter is ``mode + T(tau x) / tau``: T turns a normal variable into the logarithm of a
gamma variable, by ``exp(T) - 1 - T = y^2 / 2``, and tau is how skewed the parameter is. A chain
moves on ellipses through its state and a draw of the Gaussian; the exact log-posterior, relative
to the Gaussian, decides where on the ellipse it may stop. No move is rejected, and nothing is
tuned.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._kernels import kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import FloatArray

# T is interpolated between this many knots of each unit, up to EDGE, and linear beyond.
KNOTS, EDGE = 16, 16
# Where skewness is measured, in conditional standard deviations.
PROBE = 1.5
# The most that a parameter may be skewed: tau times that distance.
MOST_SKEWED = 2.5
# Where the Gaussian is compared with the posterior, in standard deviations, and how far it is
# widened at most so that it is not the lighter one.
REACHES, WIDEST = (3.0, 6.0), 8.0
# A Gaussian is close enough if no parameter is more correlated than this with that of the
# transition before, in so many transitions (and 20 per parameter). Otherwise it is replaced by one
# with the moments of these, a little wider, some times over.
CLOSE, TRIAL, ROUNDS, WIDER = 0.5, 2000, 8, 1.2


class Reference(NamedTuple):
    """The Gaussian around which chains move, and the coordinates in which it is one.

    Attributes
    ----------
    mode : array of float, shape (p,)
    skew : array of float, shape (p,)
        tau of each parameter.
    center : array of float, shape (p,)
        Of the Gaussian, in the coordinates x.
    root : array of float, shape (p, p)
        Rows are multiplied with standard normals and added up: the transposed root of the
        covariance.
    table : array of float, shape (knots, 2)
        T and its derivative, times the distance of two knots.
    """

    mode: FloatArray
    skew: FloatArray
    center: FloatArray
    root: FloatArray
    table: FloatArray


def reference(
    value: Callable[[FloatArray], float], mode: FloatArray, curvature: FloatArray
) -> Reference:
    """Return the Gaussian for a log-density, given its mode and minus its second derivatives.

    Parameters
    ----------
    value : callable
        The log-density of parameters (p,), up to a constant.
    mode : array of float, shape (p,)
    curvature : array of float, shape (p, p)
        Positive definite.
    """
    top, size = value(mode), len(mode)
    skew = np.zeros(size)
    for i in range(size):
        bend = float(curvature[i, i])
        step = PROBE / np.sqrt(bend)
        forth, back = mode.copy(), mode.copy()
        forth[i] += step
        back[i] -= step
        skew[i] = _skewness((value(back) - value(forth)) / bend, step)
    # Second derivatives in x, with those of the change of variables, log T' = -y / 3 + y^2 / 36.
    while True:
        values, vectors = np.linalg.eigh(curvature - np.diag(skew**2 / 18.0))
        if values[0] > 1e-3 * float(np.linalg.eigvalsh(curvature)[0]):
            break
        skew *= 0.7
    center = vectors @ ((vectors.T @ (-skew / 3.0)) / values)
    root = np.ascontiguousarray((vectors / np.sqrt(values)).T)
    found = Reference(mode, skew, center, root, _table())
    top = _density(value, found, center)
    for row in range(size):
        wide = 1.0
        for reach in REACHES:
            for side in (-reach, reach):
                drop = top - _density(value, found, center + side * root[row])
                wide = max(wide, 0.5 * reach * reach / max(drop, 1e-6))
        root[row] *= min(np.sqrt(wide), WIDEST)
    return found


def refined(
    found: Reference, pilot: Callable[[Reference, int, bool], tuple[FloatArray, FloatArray]]
) -> Reference:
    """Return a Gaussian that is closer to the posterior, where the one at the mode is far from it.

    Parameters
    ----------
    found : Reference
    pilot : callable
        Makes some transitions around a Gaussian; returns parameters after each, and coordinates x
        if asked to.
    """
    best, size = found, len(found.mode)
    number = TRIAL + 20 * size
    least = _stickiness(pilot(found, number, False)[0])
    if least < CLOSE:
        return best
    _, xs = pilot(found, number, True)
    for _ in range(ROUNDS):
        later = xs[len(xs) // 4 :]
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(later.T)) * WIDER)
        values = np.maximum(values, 1e-12 * values[-1])
        root = np.ascontiguousarray((vectors * np.sqrt(values)).T)
        found = found._replace(center=later.mean(axis=0), root=root)
        thetas, xs = pilot(found, number, True)
        stickiness = _stickiness(thetas)
        if stickiness < least:
            best, least = found, stickiness
        if least < CLOSE:
            break
    return best


def _stickiness(xs: FloatArray) -> float:
    """Return the largest correlation of a number with that of the transition before."""
    later = xs[len(xs) // 4 :]
    away = later - later.mean(axis=0)
    squares = (away**2).sum(axis=0)
    products = (away[1:] * away[:-1]).sum(axis=0)
    return float((products / np.maximum(squares, 1e-300)).max())


def _density(value: Callable[[FloatArray], float], found: Reference, x: FloatArray) -> float:
    theta = np.empty(len(x))
    return outward(found, x, theta) + value(theta)


def _skewness(gap: float, step: float) -> float:
    """Return tau for which ``2 (sinh(tau h) - tau h) / tau^2`` is the gap, by Newton's method."""
    if not np.isfinite(gap):
        return 0.0
    tau = 3.0 * gap / step**3
    for _ in range(30):
        a = tau * step
        if abs(a) > MOST_SKEWED:
            a = MOST_SKEWED * np.sign(a)
        tau = 3.0 * gap / step**3 / (1.0 + a * a / 20.0 + a**4 / 840.0)
    return float(np.clip(tau, -MOST_SKEWED / step, MOST_SKEWED / step))


@cache
def _table() -> FloatArray:
    """Return T and its derivative, times the distance of knots, from -EDGE to EDGE."""
    y = np.arange(-EDGE * KNOTS, EDGE * KNOTS + 1) / KNOTS
    half = 0.5 * y * y
    t = np.where(y < 0.0, -half - 1.0 + np.exp(-half - 1.0), np.log1p(half + np.maximum(y, 0.0)))
    t = np.where(np.abs(y) < 1.0, y - y * y / 6.0 + y**3 / 36.0, t)
    for _ in range(50):
        slope = np.expm1(t)
        safe = np.where(slope == 0.0, 1.0, slope)
        t = t - np.where(slope == 0.0, 0.0, (slope - t - half) / safe)
    slope = np.expm1(t)
    derivative = np.where(y == 0.0, 1.0, y / np.where(slope == 0.0, 1.0, slope))
    t[y == 0.0] = 0.0
    result = np.column_stack([t, derivative / KNOTS])
    result.setflags(write=False)
    return result


@kernel
def outward(reference: Reference, x: FloatArray, theta: FloatArray) -> float:
    """Fill in the parameters of coordinates x; return the logarithm of the change of volume."""
    table, edge = reference.table, float(EDGE)
    last = len(table) - 1
    total, product = 0.0, 1.0
    for i in range(len(x)):
        tau = reference.skew[i]
        y = tau * x[i]
        if abs(y) < 1e-9:
            theta[i] = reference.mode[i] + x[i]
            continue
        if not abs(y) < edge:  # NaN, too, which has no place in the table
            k = 0 if y < 0.0 else last
            slope = table[k, 1] * KNOTS
            t = table[k, 0] + slope * (y - (-edge if y < 0.0 else edge))
        else:
            at = (y + edge) * KNOTS
            k = min(int(at), last - 1)
            u = at - k
            a, b = table[k, 0], table[k + 1, 0]
            da, db = table[k, 1], table[k + 1, 1]
            square = 3.0 * (b - a) - 2.0 * da - db
            cube = da + db - 2.0 * (b - a)
            t = a + u * (da + u * (square + u * cube))
            slope = (da + u * (2.0 * square + 3.0 * u * cube)) * KNOTS
        theta[i] = reference.mode[i] + t / tau
        product *= slope
        if product < 1e-150 or product > 1e150:
            total += np.log(product)
            product = 1.0
    return total + np.log(product)


def times(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """Multiply rows (..., p) with a matrix (p, k).

    The bits of a row do not depend on how many there are, unlike those of the usual product.
    """
    flat = np.ascontiguousarray(rows, dtype=np.float64).reshape(-1, rows.shape[-1])
    return _times(flat, np.ascontiguousarray(matrix)).reshape(*rows.shape[:-1], matrix.shape[1])


@kernel
def _times(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """Multiply rows (m, p) with a matrix (p, k)."""
    result = np.zeros((rows.shape[0], matrix.shape[1]))
    for row in range(rows.shape[0]):
        for i in range(matrix.shape[0]):
            factor = rows[row, i]
            for j in range(matrix.shape[1]):
                result[row, j] += factor * matrix[i, j]
    return result


def advance(
    value: Callable[[FloatArray], float],
    found: Reference,
    state: FloatArray,
    thetas: FloatArray,
    values: FloatArray,
    uniforms: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Make a transition per row of `thetas`, and return the new state.

    Parameters
    ----------
    value : callable
        The log-density of parameters (p,), up to a constant.
    found : Reference
    state : array of float, shape (2 p + 1,)
        As of `start`.
    thetas : array of float, shape (steps, p)
        Filled in with parameters.
    values : array of float, shape (steps,)
        Filled in with their log-densities.
    uniforms : array of float, shape (steps,) or (0,)
        Filled in with uniform random numbers, for what else there is to draw.
    rng : Generator
    """
    p = len(found.mode)
    z, d, level = state[:p].copy(), state[p : 2 * p].copy(), state[2 * p]
    theta = np.empty(p)
    for step in range(len(values)):
        v = rng.standard_normal(p)
        e = v @ found.root
        height = level - rng.standard_exponential()
        angle = 2.0 * np.pi * rng.random()
        low, high = angle - 2.0 * np.pi, angle
        while True:
            cosine, sine = np.cos(angle), np.sin(angle)
            new, moved = cosine * z + sine * v, cosine * d + sine * e
            volume = outward(found, found.center + moved, theta)
            held = value(theta)
            gain = held + volume + 0.5 * float(new @ new)
            if gain > height:
                z, d, level = new, moved, gain
                break
            if high - low < 1e-14:  # as good as the state itself
                outward(found, found.center + d, theta)
                held = value(theta)
                break
            if angle < 0.0:
                low = angle
            else:
                high = angle
            angle = low + (high - low) * rng.random()
        thetas[step], values[step] = theta, held
        if len(uniforms):
            uniforms[step] = 1.0 - rng.random()
    return np.concatenate([z, d, [level]])


def start(
    value: Callable[[FloatArray], float], found: Reference, rng: np.random.Generator, spread: float
) -> FloatArray:
    """Return the state of a chain at a draw from the Gaussian, widened by a factor.

    Parameters
    ----------
    value, found, rng
        As of `advance`.
    spread : float

    Returns
    -------
    array of float, shape (2 p + 1,)
        Standardized coordinates, coordinates relative to the center, and the log-density relative
        to that of the Gaussian.
    """
    z = spread * rng.standard_normal(len(found.mode))
    d = z @ found.root
    theta = np.empty(len(z))
    volume = outward(found, found.center + d, theta)
    return np.concatenate([z, d, [value(theta) + volume + 0.5 * float(z @ z)]])
