"""Orders of the classes of a query, drawn from the good-bad pair model by annealed particles.

Every order of a query's items is an order of each class and an interleaving of these. The weight of
class orders is the sum over all their interleavings, which is exact; only class orders are drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist._kernels import kernel
from permdist.samplers.kernels.randomness import pick
from permdist.sums.blocks import draw as draw_blocks
from permdist.sums.blocks import forward as forward_blocks
from permdist.sums.levels import forward as forward_levels
from permdist.sums.levels import layout
from permdist.sums.two_classes import forward as forward_two

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

SMALLEST_STEP = 1e-3  # of the way, however few particles are left


class Model(NamedTuple):
    """The good-bad pair model of one query, but for its scores.

    Attributes
    ----------
    sizes : array of int, shape (levels,)
        The number of items of each level, the lowest first.
    steps : array of float, shape (levels, states)
        What the steps of an interleaving add to a measure, as the engine of `permdist.sums` for so
        many levels, or for blocks, reads it.
    distinct : bool
        Whether the model is over valid sign vectors, each counted once, instead of orders.
    """

    sizes: IntArray
    steps: FloatArray
    distinct: bool = False


class Particles(NamedTuple):
    """Class orders drawn from the model at some scores.

    Attributes
    ----------
    orders : array of int, shape (K, n)
        Items level after level, from the top down.
    scores : array of float, shape (n,)
        The scores at which they were drawn, times twice the model's scale.
    weight : float
        The weight of the measure there.
    log_mean : float
        An estimate of the log of the mean, over all class orders, of the sum over interleavings.
    variance : float
        Of that estimate, to first order.
    logs : array of float, shape (K,)
        The log of the sum over the interleavings of each of `orders`.
    """

    orders: IntArray
    scores: FloatArray
    weight: float
    log_mean: float
    variance: float
    logs: FloatArray


def start_particles(model: Model, size: int, rng: np.random.Generator) -> Particles:
    """Draw class orders at equal scores and without a measure, where all are equally likely.

    Parameters
    ----------
    model : Model
    size : int
        How many to draw.
    rng : Generator
    """
    n = int(model.sizes.sum())
    parts, first = [], 0
    for total in model.sizes.tolist():
        members = np.tile(np.arange(first, first + total), (size, 1))
        parts.append(rng.permuted(members, axis=1))
        first += total
    orders = np.ascontiguousarray(np.concatenate(parts, axis=1))
    log_mean = float(_log_sum(np.zeros(n), *model[:2], 0.0, model.distinct))
    return Particles(orders, np.zeros(n), 0.0, log_mean, 0.0, np.full(size, log_mean))


def move_particles(
    particles: Particles,
    model: Model,
    scores: FloatArray,
    weight: float,
    rng: np.random.Generator,
    *,
    sweeps: int = 2,
    last_sweeps: int = 5,
) -> Particles:
    """Move class orders from where they were drawn to other scores: sequential Monte Carlo.

    On the straight way there, in steps at which at least half of the effective sample is left,
    particles are weighed by the ratios of their sums, resampled and moved. A sweep draws an
    interleaving of each pair of class orders from its exact distribution and then exchanges items
    of the same class by Metropolis's rule. The mean ratios estimate how the sum over all orders
    changes.

    Parameters
    ----------
    particles : Particles
    model : Model
    scores : array of float, shape (n,)
        Times twice the model's scale.
    weight : float
        The weight of the measure in the exponent.
    rng : Generator
    sweeps, last_sweeps : int
        Sweeps after every step, and those after the last one besides.

    Returns
    -------
    Particles
    """
    orders, target = particles.orders.copy(), np.ascontiguousarray(scores, dtype=np.float64)
    begin = particles.scores, particles.weight
    inputs = *begin, target, float(weight), *model, rng, sweeps, last_sweeps
    gain, variance, logs = _anneal(orders, *inputs)
    return Particles(
        orders,
        target,
        float(weight),
        particles.log_mean + gain,
        particles.variance + variance,
        logs,
    )


# ---- kernels: orders (K, n), scores (n,) by item, items level after level -----------------------


@kernel
def _log_sum(
    scores: FloatArray, sizes: IntArray, steps: FloatArray, weight: float, distinct: bool
) -> float:
    """Return the log of the sum over all interleavings; scores as the class orders have them."""
    if distinct:
        return forward_blocks(scores, sizes, steps, weight)[0]
    if len(sizes) == 2:
        return forward_two(scores, sizes, steps, weight, False)[0]
    return forward_levels(scores, sizes, steps, weight, False)[0]


@kernel
def _anneal(
    orders: IntArray,
    scores: FloatArray,
    weight: float,
    new_scores: FloatArray,
    new_weight: float,
    sizes: IntArray,
    steps: FloatArray,
    distinct: bool,
    rng: Any,
    sweeps: int,
    last_sweeps: int,
) -> tuple[float, float, FloatArray]:
    """Move orders in place; return the log of the ratio of sums, its variance, and the logs."""
    size = len(orders)
    now, then = np.empty(size), np.empty(size)
    for k in range(size):
        now[k] = _log_sum(scores[orders[k]], sizes, steps, weight, distinct)
    at, step, gain, variance = 0.0, 1.0, 0.0, 0.0
    while at < 1.0:
        step = min(step, 1.0 - at)
        share = 1.0 if at + step > 1.0 - 1e-9 else at + step
        here = (1.0 - share) * scores + share * new_scores
        tilt = (1.0 - share) * weight + share * new_weight
        for k in range(size):
            then[k] = _log_sum(here[orders[k]], sizes, steps, tilt, distinct)
        ratios = then - now
        largest = ratios.max()
        ratios = np.exp(ratios - largest)
        left = ratios.sum() ** 2 / (ratios**2).sum()
        if left < 0.5 * size and step > SMALLEST_STEP:
            step *= 0.5
            continue
        gain += largest + np.log(ratios.mean())
        variance += (size / left - 1.0) / size
        _resample(orders, ratios, rng)
        at = share
        step *= 2.0
        for k in range(size):
            for _ in range(sweeps if at < 1.0 else sweeps + last_sweeps):
                _sweep(orders[k], here, sizes, steps, tilt, distinct, rng)
            now[k] = _log_sum(here[orders[k]], sizes, steps, tilt, distinct)
    return gain, variance, now


@kernel
def _resample(orders: IntArray, ratios: FloatArray, rng: Any) -> None:
    """Draw orders in proportion to their ratios: systematic resampling."""
    size = len(orders)
    old = orders.copy()
    total, reached, source = ratios.sum() / size, ratios[0], 0
    at = rng.random() * total
    for k in range(size):
        while reached < at and source < size - 1:
            source += 1
            reached += ratios[source]
        orders[k] = old[source]
        at += total


@kernel
def _sweep(
    order: IntArray,
    scores: FloatArray,
    sizes: IntArray,
    steps: FloatArray,
    weight: float,
    distinct: bool,
    rng: Any,
) -> None:
    """Draw an interleaving; given its pattern, exchange items of the same class."""
    above = np.empty(len(order), np.int64)  # items of other classes above each place of a class
    if distinct:
        draw_blocks(scores[order], sizes, steps, weight, rng, above)
    elif len(sizes) == 2:
        shares = forward_two(scores[order], sizes, steps, weight, False)[1]
        _draw_two(shares, sizes, rng, above)
    else:
        shares = forward_levels(scores[order], sizes, steps, weight, False)[1]
        _draw_levels(shares, sizes, rng, above)
    first = 0
    for c in range(len(sizes)):
        total = sizes[c]
        for turn in range(2 * total if total > 1 else 0):
            if turn % 2 == 0:  # neighbors, and any two
                s = first + pick(rng, total - 1)
                t = s + 1
            else:
                s = first + pick(rng, total)
                t = first + pick(rng, total)
            gain = (scores[order[t]] - scores[order[s]]) * (above[t] - above[s])
            if gain >= 0.0 or rng.random() < np.exp(gain):
                order[s], order[t] = order[t], order[s]
        first += total


@kernel
def _draw_two(shares: FloatArray, sizes: IntArray, rng: Any, above: IntArray) -> None:
    """Walk back from the complete state; shares (2, cells) by diagonals."""
    m, p = sizes
    i, j = m, p
    end = shares.shape[1]
    for t in range(m + p, 0, -1):
        low = max(0, t - m)
        end -= min(p, t) + 1 - low
        by_good = shares[1, end + j - low]
        if i == 0 or (j > 0 and rng.random() < by_good):
            j -= 1
            above[m + j] = i
        else:
            i -= 1
            above[i] = j


@kernel
def _draw_levels(shares: FloatArray, sizes: IntArray, rng: Any, above: IntArray) -> None:
    """Walk back from the complete state; shares (states, levels)."""
    strides, first = layout(sizes)
    counts = sizes.copy()
    state = len(shares) - 1
    for position in range(sizes.sum() - 1, -1, -1):
        u, chosen = rng.random(), -1
        for c in range(len(sizes)):
            if shares[state, c] > 0.0:
                chosen = c
                u -= shares[state, c]
                if u < 0.0:
                    break
        counts[chosen] -= 1
        state -= strides[chosen]
        above[first[chosen] + counts[chosen]] = position - counts[chosen]
