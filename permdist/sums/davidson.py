"""Sums over sets of items that tie: the Davidson-Luce likelihood of stages and its derivatives.

At a stage a set S of t alternatives is chosen with weight ``delta_t * prod_S exp(v / t)``. These
weights are exponentials of functions that are linear in the utilities v and in log delta_t, so
that gradients are observed minus expected values of ``f_i = [i in S] / t`` and of ``[t = |S|]``,
and second derivatives are their covariances. The normalizer is a sum of elementary symmetric
polynomials of ``exp(v / t)``, built up from the last stage to the first.

Records are as in `permdist.ballots.Ballots`; ``deltas[t]`` is delta_t, with ``deltas[1] = 1`` and
0 for ties of a size that do not occur.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from permdist._kernels import kernel

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

# Totals below this, relative to the largest worth of a record, are too small to divide by twice.
FAINT = 1e-140


@kernel
def _raise(sums: FloatArray, deltas: FloatArray, shift: float) -> None:
    """Express the polynomials relative to a reference that is higher by `shift`, in place."""
    for t in range(1, len(deltas)):
        factor = np.exp(-shift / t)
        power = 1.0
        for k in range(1, t + 1):
            power *= factor
            sums[t, k] *= power


@kernel
def _join(sums: FloatArray, deltas: FloatArray, value: float) -> None:
    """Let one more alternative join, with a utility relative to the reference, in place."""
    for t in range(1, len(deltas)):
        if deltas[t] == 0.0:
            continue
        x = np.exp(value / t)
        for k in range(t, 0, -1):
            sums[t, k] += x * sums[t, k - 1]


@kernel
def log_likelihoods(
    utilities: FloatArray,
    deltas: FloatArray,
    ptr: IntArray,
    sizes: IntArray,
    stages: IntArray,
) -> FloatArray:
    """Return the log-probability of each record, for any spread of utilities.

    ``sums[t, k]`` is the elementary symmetric polynomial of degree k of ``exp(v / t)`` over the
    alternatives so far, relative to the highest of them.
    """
    most = len(deltas)
    result = np.zeros(len(ptr) - 1)
    sums = np.empty((most, most))
    for row in range(len(ptr) - 1):
        sums[:, :] = 0.0
        sums[:, 0] = 1.0
        high = -np.inf
        end = ptr[row + 1]
        start = ptr[row]
        for stage in range(stages[row], stages[row + 1]):
            start += sizes[stage]
        stage = stages[row + 1]
        while True:
            # The alternatives from `start` to `end` join: first those that are never chosen.
            for k in range(start, end):
                value = utilities[k]
                if value > high:
                    if high > -np.inf:
                        _raise(sums, deltas, value - high)
                    high = value
                _join(sums, deltas, value - high)
            if stage < stages[row + 1]:
                size = sizes[stage]
                total, tied = 0.0, 0.0
                for t in range(1, most):
                    total += deltas[t] * sums[t, t]
                for k in range(start, end):
                    tied += utilities[k] - high
                if size >= most or deltas[size] == 0.0:
                    result[row] = -np.inf
                    break
                result[row] += np.log(deltas[size]) + tied / size - np.log(total)
            if stage == stages[row]:
                break
            stage -= 1
            end = start
            start -= sizes[stage]
    return result


class Terms(NamedTuple):
    """Log-probabilities of records and their derivatives by utilities and by log delta_t.

    Attributes
    ----------
    values : array of float, shape (records,)
        NaN where utilities are too far apart.
    slopes : array of float, shape (entries,)
        By the utility of each alternative.
    covariances : array of float
        Minus the second derivatives of record r, row after row, from ``starts[r]`` on.
    starts : array of int, shape (records + 1,)
    tie_slopes : array of float, shape (records, T + 1)
        By log delta_t, at t.
    tie_covariances : array of float, shape (records, T + 1, T + 1)
    crossed : array of float, shape (entries, T + 1)
        Minus the second derivatives by a utility and by log delta_t.
    """

    values: FloatArray
    slopes: FloatArray
    covariances: FloatArray
    starts: IntArray
    tie_slopes: FloatArray
    tie_covariances: FloatArray
    crossed: FloatArray


def terms(
    utilities: FloatArray, deltas: FloatArray, ptr: IntArray, sizes: IntArray, stages: IntArray
) -> Terms:
    """Return the log-probabilities of records and their derivatives.

    Parameters
    ----------
    utilities : array of float, shape (entries,)
        Of the alternatives, with their signs.
    deltas : array of float, shape (T + 1,)
    ptr, sizes, stages
        As in `permdist.ballots.Ballots`; ``ptr[0]`` and ``stages[0]`` need not be 0.
    """
    widths = np.diff(ptr)
    records, most, entries = len(widths), len(deltas), int(ptr[-1] - ptr[0])
    starts = np.zeros(records + 1, dtype=np.int64)
    np.cumsum(widths * widths, out=starts[1:])
    result = Terms(
        np.zeros(records),
        np.zeros(entries),
        np.zeros(starts[-1]),
        starts,
        np.zeros((records, most)),
        np.zeros((records, most, most)),
        np.zeros((entries, most)),
    )
    # Each has its own compiled code, so that contests of two need not wait for the others'.
    fill = _fill_stages if most > 3 else _fill_duels if widths.max() == 2 else _fill_pairs
    if most > 3 or widths.max() > 1:
        fill(utilities, deltas, ptr - ptr[0], sizes, stages, *result)
    return result


@kernel
def _fill_duels(
    utilities: FloatArray,
    deltas: FloatArray,
    ptr: IntArray,
    sizes: IntArray,
    stages: IntArray,
    values: FloatArray,
    slopes: FloatArray,
    covariances: FloatArray,
    starts: IntArray,
    tie_slopes: FloatArray,
    tie_covariances: FloatArray,
    crossed: FloatArray,
) -> None:
    """Fill in terms of contests of two, or of one with nobody."""
    most = len(deltas)
    delta = deltas[2] if most == 3 else 0.0
    for row in range(len(ptr) - 1):
        low, at = ptr[row], starts[row]
        if ptr[row + 1] - low < 2:
            continue
        gap = utilities[low] - utilities[low + 1]
        root = np.exp(-abs(gap) / 2.0)
        total = 1.0 + root * root + delta * root
        first, second, both = 1.0 / total, root * root / total, delta * root / total
        if gap < 0.0:
            first, second = second, first
        tied = sizes[stages[row]] == 2
        if tied:
            values[row] = np.log(delta) - abs(gap) / 2.0 - np.log(total)
        else:
            values[row] = min(gap, 0.0) - np.log(total)
        slope = (0.5 if tied else 1.0) - first - 0.5 * both
        slopes[low] = slope
        slopes[low + 1] = -slope
        variance = first * second + 0.25 * both * (first + second)
        covariances[at] = variance
        covariances[at + 1] = -variance
        covariances[at + 2] = -variance
        covariances[at + 3] = variance
        if most == 3:
            tie_slopes[row, 2] = (1.0 if tied else 0.0) - both
            tie_covariances[row, 2, 2] = both * (1.0 - both)
            crossed[low, 2] = 0.5 * both * (second - first)
            crossed[low + 1, 2] = -crossed[low, 2]


@kernel
def _fill_pairs(
    utilities: FloatArray,
    deltas: FloatArray,
    ptr: IntArray,
    sizes: IntArray,
    stages: IntArray,
    values: FloatArray,
    slopes: FloatArray,
    covariances: FloatArray,
    starts: IntArray,
    tie_slopes: FloatArray,
    tie_covariances: FloatArray,
    crossed: FloatArray,
) -> None:
    """Fill in terms of records whose ties are of two items at most.

    The chance of one item at a stage that it takes part in is ``a / Z + b E / Z``, with E the sum
    of ``exp(v / 2)``, so that sums of products of 1 / Z and E / Z over stages are all that pairs
    of items need.
    """
    most = len(deltas)
    delta = deltas[2] if most == 3 else 0.0
    longest, deepest = 1, 1
    for row in range(len(ptr) - 1):
        longest = max(longest, ptr[row + 1] - ptr[row])
        deepest = max(deepest, stages[row + 1] - stages[row])
    x, last = np.empty(longest), np.empty(longest, np.int64)
    one, two = np.empty(longest), np.empty(longest)  # a and b
    # Per stage: 1/Z, E/Z, the chance of a tie; then sums up to each stage of
    # 1/Z, E/Z, 1/Z^2, E/Z^2, (E/Z)^2, tie/Z, tie E/Z.
    inverse, share, tied = np.empty(deepest), np.empty(deepest), np.empty(deepest)
    sums = np.zeros((deepest, 7))
    for row in range(len(ptr) - 1):
        low = ptr[row]
        m = ptr[row + 1] - low
        depth = stages[row + 1] - stages[row]
        high = utilities[low]
        for k in range(1, m):
            high = max(high, utilities[low + k])
        for k in range(m):
            x[k] = np.exp((utilities[low + k] - high) / 2.0)
            two[k] = 0.5 * delta * x[k]
            one[k] = x[k] * x[k] - two[k] * x[k]
        singles, roots, pairs, value = 0.0, 0.0, 0.0, 0.0
        start, stop = 0, m
        for stage in range(stages[row], stages[row + 1]):
            start += sizes[stage]
        stage = depth
        while True:
            for k in range(start, stop):
                pairs += x[k] * roots
                roots += x[k]
                singles += x[k] * x[k]
                last[k] = min(stage, depth - 1)
            if stage < depth:
                size = sizes[stages[row] + stage]
                total = singles + delta * pairs
                if total < FAINT:
                    value = np.nan
                    break
                inverse[stage], share[stage] = 1.0 / total, roots / total
                tied[stage] = delta * pairs / total
                for k in range(start, stop):
                    slopes[low + k] += 1.0 / size
                    value += (utilities[low + k] - high) / size
                value -= np.log(total)
                if size == 2:
                    value += np.log(delta)
                if most == 3:
                    tie_slopes[row, 2] += (1.0 if size == 2 else 0.0) - tied[stage]
                    tie_covariances[row, 2, 2] += tied[stage] * (1.0 - tied[stage])
            if stage == 0:
                break
            stage -= 1
            stop = start
            start -= sizes[stages[row] + stage]
        values[row] = value
        if np.isnan(value):
            continue
        for s in range(depth):
            for c in range(7):
                sums[s, c] = sums[s - 1, c] if s > 0 else 0.0
            sums[s, 0] += inverse[s]
            sums[s, 1] += share[s]
            sums[s, 2] += inverse[s] * inverse[s]
            sums[s, 3] += share[s] * inverse[s]
            sums[s, 4] += share[s] * share[s]
            sums[s, 5] += tied[s] * inverse[s]
            sums[s, 6] += tied[s] * share[s]
        for i in range(m):
            a, b, s = one[i], two[i], last[i]
            slopes[low + i] -= a * sums[s, 0] + b * sums[s, 1]
            if most == 3:
                own = b * (sums[s, 1] - x[i] * sums[s, 0])
                crossed[low + i, 2] = own - a * sums[s, 5] - b * sums[s, 6]
            for j in range(i + 1, m):
                c, d, s = one[j], two[j], min(last[i], last[j])
                both = 0.5 * b * x[j] * sums[s, 0] - (
                    a * c * sums[s, 2] + (a * d + b * c) * sums[s, 3] + b * d * sums[s, 4]
                )
                at = starts[row]
                covariances[at + i * m + j] += both
                covariances[at + j * m + i] += both
                covariances[at + i * m + i] -= both
                covariances[at + j * m + j] -= both


@kernel
def _fill_stages(
    utilities: FloatArray,
    deltas: FloatArray,
    ptr: IntArray,
    sizes: IntArray,
    stages: IntArray,
    values: FloatArray,
    slopes: FloatArray,
    covariances: FloatArray,
    starts: IntArray,
    tie_slopes: FloatArray,
    tie_covariances: FloatArray,
    crossed: FloatArray,
) -> None:
    """Fill in terms of records with ties of any size, stage by stage."""
    most, longest = len(deltas), 1
    for row in range(len(ptr) - 1):
        longest = max(longest, ptr[row + 1] - ptr[row])
    x, sums = np.zeros((most, longest)), np.zeros((most, most))
    without = np.zeros((longest, most, most))  # polynomials of all alternatives but one
    chance = np.zeros((longest, most))  # to be one of t chosen
    expected, tied = np.zeros(longest), np.zeros(most)
    for row in range(len(ptr) - 1):
        start = ptr[row]
        width = ptr[row + 1] - start
        for stage in range(stages[row], stages[row + 1]):
            m, size = ptr[row + 1] - start, sizes[stage]
            high = utilities[start]
            for k in range(1, m):
                high = max(high, utilities[start + k])
            for t in range(most):
                tied[t] = 0.0
                for k in range(most):
                    sums[t, k] = 1.0 if k == 0 else 0.0
                for i in range(m):
                    chance[i, t] = 0.0
            for i in range(m):
                expected[i] = 0.0
                _join(sums, deltas, utilities[start + i] - high)
            total = 0.0
            top = min(most, m + 1)
            for t in range(1, top):
                total += deltas[t] * sums[t, t]
            for t in range(1, top):
                if deltas[t] == 0.0:
                    continue
                tied[t] = deltas[t] * sums[t, t] / total
                for i in range(m):
                    x[t, i] = np.exp((utilities[start + i] - high) / t)
                    without[i, t, 0] = 1.0
                    for k in range(1, t):
                        without[i, t, k] = max(sums[t, k] - x[t, i] * without[i, t, k - 1], 0.0)
                    chance[i, t] = deltas[t] * x[t, i] * without[i, t, t - 1] / total
                    expected[i] += chance[i, t] / t
            values[row] += np.log(deltas[size]) - np.log(total)
            for i in range(size):
                values[row] += (utilities[start + i] - high) / size
                slopes[start + i] += 1.0 / size
            tie_slopes[row, size] += 1.0
            for t in range(2, most):
                tie_slopes[row, t] -= tied[t]
                tie_covariances[row, t, t] += tied[t]
                for r in range(2, most):
                    tie_covariances[row, t, r] -= tied[t] * tied[r]
                for i in range(m):
                    crossed[start + i, t] += chance[i, t] / t - expected[i] * tied[t]
            shift = start - ptr[row]
            for i in range(m):
                slopes[start + i] -= expected[i]
                for j in range(i + 1, m):
                    both = -expected[i] * expected[j]
                    for t in range(2, top):
                        if deltas[t] == 0.0:
                            continue
                        rest = 1.0
                        for k in range(1, t - 1):
                            rest = max(without[i, t, k] - x[t, j] * rest, 0.0)
                        both += deltas[t] * x[t, i] * x[t, j] * rest / (t * t * total)
                    a, b, at = shift + i, shift + j, starts[row]
                    covariances[at + a * width + b] += both
                    covariances[at + b * width + a] += both
                    covariances[at + a * width + a] -= both
                    covariances[at + b * width + b] -= both
            start += size


@kernel
def gather(
    covariances: FloatArray,
    starts: IntArray,
    items: IntArray,
    ptr: IntArray,
    weights: FloatArray,
    features: FloatArray,
    n_items: int,
) -> FloatArray:
    """Add up second derivatives of records, by items and by coefficients, (n + q, n + q).

    ``ptr[0]`` need not be 0: it is where the features and items of the first record are.
    """
    n, q = n_items, features.shape[1]
    result, spread = np.zeros((n + q, n + q)), np.empty(q)
    for row in range(len(ptr) - 1):
        low, weight = ptr[row], weights[row]
        m = ptr[row + 1] - low
        for i in range(m):
            line = result[items[low + i]]
            at = starts[row] + i * m
            for j in range(m):
                line[items[low + j]] += weight * covariances[at + j]
            if q == 0:
                continue
            for c in range(q):
                spread[c] = 0.0
            for j in range(m):
                change = weight * covariances[at + j]
                for c in range(q):
                    spread[c] += change * features[low + j, c]
            for c in range(q):
                line[n + c] += spread[c]
                feature = features[low + i, c]
                other = result[n + c]
                for d in range(q):
                    other[n + d] += feature * spread[d]
    for c in range(n, n + q):
        for i in range(n):
            result[c, i] = result[i, c]
    return result
