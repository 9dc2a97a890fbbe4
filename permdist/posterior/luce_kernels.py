"""Compiled transitions for Plackett-Luce and Davidson-Luce: the log-posterior as one kernel.

The likelihood of a stage in which a set S of t alternatives is chosen out of those that are left
is ``delta_t prod_S exp(u / t) / Z``; the logarithms of numerators add up to a linear function, so
that only the sums Z remain to be computed. Their product is carried along, and a logarithm taken
only when it leaves the range of plain numbers. Where a ballot ranks a few items out of all, the
sum of the others is what is left of the sum of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._kernels import kernel
from permdist.posterior.ellipse import Reference, outward

if TYPE_CHECKING:
    from permdist._typing import BoolArray, FloatArray, IntArray

# Utilities further apart than this count as impossible: products would leave the range of numbers.
PLAIN_SPREAD = 600.0


class Records(NamedTuple):
    """Ballots as the kernels read them; as in `permdist.ballots.Ballots` where not said.

    Attributes
    ----------
    items : array of int, shape (entries,)
        The place of each alternative in the table of utilities.
    ptr, sizes, stages : array of int
    weights : array of float, shape (records,)
    whole : array of bool, shape (records,)
        Whether a record's alternatives are all items, and most of them were not chosen.
    linear : array of float, shape (utilities,)
        What the utilities are multiplied with in the logarithms of numerators.
    tie_counts : array of float, shape (T + 1,)
        How often, with weights, ties of each size were chosen.
    offset : array of float, shape (n,)
        Known parts of the scores.
    design : array of float, shape (n, k) or (0, 0)
        Features of the items; none if the parameters are scores.
    features : array of float, shape (entries, q)
        Covariates of alternatives on ballots.
    shift : array of float, shape (entries,)
        Known parts of their utilities.
    signs : array of float, shape (entries,)
    owners : array of int, shape (entries,)
        The item of each alternative.
    layout : int
        What the table of utilities has: 0 scores, 1 scores and then minus scores, 2 one number
        per alternative.
    tie_sizes : array of int
    """

    items: IntArray
    ptr: IntArray
    sizes: IntArray
    stages: IntArray
    weights: FloatArray
    whole: BoolArray
    linear: FloatArray
    tie_counts: FloatArray
    offset: FloatArray
    design: FloatArray
    features: FloatArray
    shift: FloatArray
    signs: FloatArray
    owners: IntArray
    layout: int
    tie_sizes: IntArray


class Priors(NamedTuple):
    """Priors of the parameters, each normal or gamma or flat.

    Attributes
    ----------
    mean, precision : array of float, shape (p,)
    matrix : array of float, shape (k, k) or (0, 0)
        A precision matrix of the first k parameters, in place of precisions.
    shape, rate : array of float, shape (p,)
    constant : float
    centered : int
        How many of the first parameters count relative to their mean.
    pooled : int
        How many of the first parameters have gamma priors of ratios only, as of
        `permdist.posterior.priors.Relative`; rates do not matter then.
    """

    mean: FloatArray
    precision: FloatArray
    matrix: FloatArray
    shape: FloatArray
    rate: FloatArray
    constant: float
    centered: int
    pooled: int


class Level(NamedTuple):
    """A density of what is added to all scores, where nothing else says what that is.

    Where stages are many and each alternative is a small part of what is left, the likelihood
    times a gamma density of a weighted sum of all worths falls into gamma densities of the worths.

    Attributes
    ----------
    mode : array of float, shape (n,)
        Scores; of length 0 if the level is known.
    shares : array of float, shape (n,)
        Of the sum, at the mode; they add up to 1.
    strength : float
        The shape of the gamma density, whose mean is 1; 0 for a normal density of the mean.
    precision : float
        Of the latter, along the unit vector.
    """

    mode: FloatArray
    shares: FloatArray
    strength: float
    precision: float


@kernel
def log_level(level: Level, theta: FloatArray) -> float:
    """Return the log-density of the level of scores, 0 at the mode."""
    n, total = len(level.mode), 0.0
    if n == 0:
        return 0.0
    if level.strength == 0.0:
        for i in range(n):
            total += theta[i]
        return -0.5 * level.precision * total * total / n
    for i in range(n):
        total += level.shares[i] * np.exp(theta[i] - level.mode[i])
    return level.strength * (np.log(total) - total + 1.0)


@kernel
def log_prior(priors: Priors, theta: FloatArray) -> float:
    """Return the log-density of all priors."""
    value, k, level, high = priors.constant, len(priors.matrix), 0.0, -np.inf
    if priors.centered > 0:
        for i in range(priors.centered):
            level += theta[i] - priors.mean[i]
        level /= priors.centered
    for i in range(len(theta)):
        if priors.precision[i] > 0.0:
            away = theta[i] - priors.mean[i]
            if i < priors.centered:
                away -= level
            value -= 0.5 * priors.precision[i] * away * away
        if priors.shape[i] > 0.0:
            value += priors.shape[i] * theta[i]
            if i < priors.pooled:
                high = max(high, theta[i])
            else:
                value -= priors.rate[i] * np.exp(theta[i])
    if priors.pooled > 0:
        worths = 0.0
        for i in range(priors.pooled):
            worths += np.exp(theta[i] - high)
        total = priors.shape[0] * priors.pooled
        value -= total * (high + np.log(worths) - np.log(total) + 1.0)
    for i in range(k):
        total = 0.0
        for j in range(i):
            total += priors.matrix[i, j] * (theta[j] - priors.mean[j])
        away = theta[i] - priors.mean[i]
        value -= away * (total + 0.5 * priors.matrix[i, i] * away)
    return value


@kernel
def utilities_of(records: Records, theta: FloatArray, table: FloatArray) -> None:
    """Fill in the table of utilities."""
    n, k, q = len(records.offset), records.design.shape[1], records.features.shape[1]
    scores = np.empty(n) if records.layout == 2 else table
    for i in range(n):
        value = records.offset[i]
        if k == 0:
            value += theta[i]
        else:
            for j in range(k):
                value += records.design[i, j] * theta[j]
        scores[i] = value
    if records.layout == 1:
        for i in range(n):
            table[n + i] = -table[i]
    if records.layout == 2:
        first = n if k == 0 else k
        for entry in range(len(table)):
            value = scores[records.owners[entry]] + records.shift[entry]
            for j in range(q):
                value += records.features[entry, j] * theta[first + j]
            table[entry] = value * records.signs[entry]


@kernel
def _plain(records: Records, worths: FloatArray) -> float:
    """Add up weighted logarithms of sums, without ties; worths are exponentials of the table."""
    everything = 0.0
    for i in range(len(worths)):
        everything += worths[i]
    total, product, weight = 0.0, 1.0, 0.0
    for row in range(len(records.weights)):
        begin, end = records.ptr[row], records.ptr[row + 1]
        places = records.stages[row + 1] - records.stages[row]
        if records.weights[row] != weight:
            total += weight * np.log(product)
            product, weight = 1.0, records.weights[row]
        rest, k = 0.0, end
        if records.whole[row]:
            listed = 0.0
            for at in range(begin, begin + places):
                listed += worths[records.items[at]]
            rest = everything - listed
            k = begin + places
            if rest < 1e-3 * everything:  # too much cancellation: add up what is left
                rest, k = 0.0, end
        while k > begin + places:
            k -= 1
            rest += worths[records.items[k]]
        while k > begin:
            k -= 1
            rest += worths[records.items[k]]
            product *= rest
            if product < 1e-120 or product > 1e120:
                total += weight * np.log(product)
                product = 1.0
    return total + weight * np.log(product)


@kernel
def _tied(records: Records, table: FloatArray, deltas: FloatArray) -> float:
    """Add up weighted logarithms of sums with ties; the table has utilities."""
    most = len(deltas)
    powers = np.empty((most, len(table)))
    for t in range(1, most):
        for i in range(len(table)):
            powers[t, i] = np.exp(table[i] / t)
    sums = np.empty((most, most))
    total = 0.0
    for row in range(len(records.weights)):
        for t in range(most):
            for k in range(most):
                sums[t, k] = 1.0 if k == 0 else 0.0
        weight, product, part = records.weights[row], 1.0, 0.0
        begin, end = records.ptr[row], records.ptr[row + 1]
        low = begin
        for stage in range(records.stages[row], records.stages[row + 1]):
            low += records.sizes[stage]
        stage = records.stages[row + 1]
        while True:
            for at in range(low, end):
                item = records.items[at]
                for t in range(1, most):
                    if deltas[t] > 0.0:
                        x = powers[t, item]
                        for k in range(t, 0, -1):
                            sums[t, k] += x * sums[t, k - 1]
            if stage < records.stages[row + 1]:
                normalizer = 0.0
                for t in range(1, most):
                    normalizer += deltas[t] * sums[t, t]
                product *= normalizer
                if product < 1e-120 or product > 1e120:
                    part += np.log(product)
                    product = 1.0
            if stage == records.stages[row]:
                break
            stage -= 1
            end = low
            low -= records.sizes[stage]
        total += weight * (part + np.log(product))
    return total


@kernel
def log_likelihood(records: Records, theta: FloatArray, table: FloatArray) -> float:
    """Return the log-likelihood; NaN where utilities are too far apart. The table is filled in."""
    if len(records.weights) == 0:
        return 0.0
    utilities_of(records, theta, table)
    low, high = np.inf, -np.inf
    for i in range(len(table)):
        low, high = min(low, table[i]), max(high, table[i])
    if not high - low < PLAIN_SPREAD:
        return np.nan
    # Chances do not depend on what is added to all utilities.
    middle, value = 0.5 * (low + high), 0.0
    for i in range(len(table)):
        table[i] -= middle
        value += records.linear[i] * table[i]
    if len(records.tie_sizes) == 0:
        worths = np.empty(len(table))
        for i in range(len(table)):
            worths[i] = np.exp(table[i])
        return value - _plain(records, worths)
    deltas = np.zeros(len(records.tie_counts))
    deltas[1] = 1.0
    first = len(theta) - len(records.tie_sizes)
    for i in range(len(records.tie_sizes)):
        size = records.tie_sizes[i]
        value += records.tie_counts[size] * theta[first + i]
        deltas[size] = np.exp(theta[first + i])
    return value - _tied(records, table, deltas)


@kernel
def advance(
    records: Records,
    priors: Priors,
    level: Level,
    reference: Reference,
    state: FloatArray,
    thetas: FloatArray,
    values: FloatArray,
    uniforms: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Make transitions as `permdist.posterior.ellipse.advance` does; the state is replaced."""
    p = len(reference.mode)
    table = np.empty(len(records.linear))
    v, e, x, new = np.empty(p), np.empty(p), np.empty(p), np.empty(p)
    theta = np.empty(p)
    for step in range(len(values)):
        for i in range(p):
            v[i] = rng.standard_normal()
            e[i] = 0.0
        for j in range(p):
            row, factor = reference.root[j], v[j]
            for i in range(p):
                e[i] += factor * row[i]
        height = state[2 * p] + np.log(1.0 - rng.random())
        angle = 2.0 * np.pi * rng.random()
        low, high = angle - 2.0 * np.pi, angle
        while True:
            cosine, sine = np.cos(angle), np.sin(angle)
            length = 0.0
            for i in range(p):
                new[i] = cosine * state[i] + sine * v[i]
                length += new[i] * new[i]
                x[i] = reference.center[i] + (cosine * state[p + i] + sine * e[i])
            volume = outward(reference, x, theta)
            value = log_prior(priors, theta) + log_likelihood(records, theta, table)
            gain = value + log_level(level, theta) + volume + 0.5 * length
            if gain > height:
                for i in range(p):
                    state[i] = new[i]
                    state[p + i] = cosine * state[p + i] + sine * e[i]
                    thetas[step, i] = theta[i]
                state[2 * p] = gain
                values[step] = value
                break
            if high - low < 1e-14:  # as good as the state itself
                for i in range(p):
                    thetas[step, i] = theta[i]
                values[step] = value
                break
            if angle < 0.0:
                low = angle
            else:
                high = angle
            angle = low + (high - low) * rng.random()
        if len(uniforms) > 0:
            uniforms[step] = 1.0 - rng.random()
