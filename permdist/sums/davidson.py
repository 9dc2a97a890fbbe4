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

from typing import TYPE_CHECKING

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


@kernel
def _duel(gap: float, delta: float, tied: bool) -> tuple[float, float, float, float, float]:
    """Return the value of a contest of two, and its derivatives by the gap of utilities.

    That is: value, slope, variance; the chance of a tie; the covariance with a tie. The first
    one wins unless it is a tie.
    """
    root = np.exp(-abs(gap) / 2.0)
    total = 1.0 + root * root + delta * root
    first, second, both = 1.0 / total, root * root / total, delta * root / total
    if gap < 0.0:
        first, second = second, first
    expected = first + 0.5 * both
    variance = first * second + 0.25 * both * (first + second)
    between = 0.5 * both * (second - first)
    if tied:
        value = np.log(delta) - abs(gap) / 2.0 - np.log(total)
        return value, 0.5 - expected, variance, both, between
    return min(gap, 0.0) - np.log(total), 1.0 - expected, variance, both, between


@kernel
def _pair_terms(
    values: FloatArray,
    delta: float,
    sizes: IntArray,
    second: bool,
    slope: FloatArray,
    covariance: FloatArray,
    ties: FloatArray,
    cross: FloatArray,
) -> float:
    """Return the value of a record whose ties are of two items at most, and fill in derivatives.

    ``slope`` and ``covariance`` are by utilities, ``ties`` has the slope and the variance for
    log delta, ``cross`` the covariances with it. The chances of one item at the stages that it
    takes part in are ``a / Z + b E / Z``, with E the sum of ``exp(v / 2)``: sums of products of
    1 / Z and E / Z over stages are all that pairs of items need.
    """
    m, stages = len(values), len(sizes)
    high = values.max()
    x = np.exp((values - high) / 2.0)
    # Per stage: 1/Z, E/Z and the chance of a tie.
    inverse, share, tied = np.empty(stages), np.empty(stages), np.empty(stages)
    last = np.empty(m, np.int64)  # the last stage of each alternative
    singles, roots, pairs, value = 0.0, 0.0, 0.0, 0.0
    stop = m
    start = 0
    for stage in range(stages):
        start += sizes[stage]
    for k in range(start, m):
        last[k] = stages - 1
    stage = stages
    while True:
        for k in range(start, stop):
            pairs += x[k] * roots
            roots += x[k]
            singles += x[k] * x[k]
        if stage < stages:
            total = singles + delta * pairs
            if total < FAINT:
                return np.nan
            inverse[stage], share[stage] = 1.0 / total, roots / total
            tied[stage] = delta * pairs / total
            size = sizes[stage]
            if size == 2:
                value += np.log(delta)
                ties[0] += 1.0
            ties[0] -= tied[stage]
            ties[1] += tied[stage] * (1.0 - tied[stage])
            for k in range(start, stop):
                last[k] = stage
                slope[k] += 1.0 / size
                value += (values[k] - high) / size
            value -= np.log(total)
        if stage == 0:
            break
        stage -= 1
        stop = start
        start -= sizes[stage]
    # Sums over the stages up to each one: 1/Z, E/Z, 1/Z^2, E/Z^2, (E/Z)^2, tie/Z, tie E/Z.
    sums = np.zeros((stages, 7))
    for s in range(stages):
        if s > 0:
            for c in range(7):
                sums[s, c] = sums[s - 1, c]
        sums[s, 0] += inverse[s]
        sums[s, 1] += share[s]
        sums[s, 2] += inverse[s] * inverse[s]
        sums[s, 3] += share[s] * inverse[s]
        sums[s, 4] += share[s] * share[s]
        sums[s, 5] += tied[s] * inverse[s]
        sums[s, 6] += tied[s] * share[s]
    for i in range(m):
        s = last[i]
        b = 0.5 * delta * x[i]
        a = x[i] * x[i] - b * x[i]
        slope[i] -= a * sums[s, 0] + b * sums[s, 1]
        cross[i] += b * (sums[s, 1] - x[i] * sums[s, 0]) - a * sums[s, 5] - b * sums[s, 6]
    if not second:
        return value
    for i in range(m):
        b = 0.5 * delta * x[i]
        a = x[i] * x[i] - b * x[i]
        for j in range(i + 1, m):
            # Alternatives are in the order of their last stage but for the end: take the earlier.
            s = min(last[i], last[j])
            d = 0.5 * delta * x[j]
            c = x[j] * x[j] - d * x[j]
            both = 0.5 * b * x[j] * sums[s, 0] - (
                a * c * sums[s, 2] + (a * d + b * c) * sums[s, 3] + b * d * sums[s, 4]
            )
            covariance[i, j] += both
            covariance[j, i] += both
            covariance[i, i] -= both
            covariance[j, j] -= both
    return value


@kernel
def _stage_terms(
    values: FloatArray,
    size: int,
    deltas: FloatArray,
    second: bool,
    slope: FloatArray,
    covariance: FloatArray,
    tie_slope: FloatArray,
    tie_covariance: FloatArray,
    cross: FloatArray,
) -> float:
    """Return the value of one stage with ties of any size, and add its derivatives.

    The first `size` of the values are those chosen.
    """
    m, most = len(values), len(deltas)
    high = values.max()
    sums = np.zeros((most, most))
    sums[:, 0] = 1.0
    for k in range(m):
        _join(sums, deltas, values[k] - high)
    total = 0.0
    for t in range(1, min(most, m + 1)):
        total += deltas[t] * sums[t, t]
    x = np.zeros((most, m))
    without = np.zeros((m, most, most))  # polynomials of all alternatives but one
    chance = np.zeros((m, most))  # to be one of t chosen
    expected, tied = np.zeros(m), np.zeros(most)
    for t in range(1, min(most, m + 1)):
        if deltas[t] == 0.0:
            continue
        tied[t] = deltas[t] * sums[t, t] / total
        for i in range(m):
            x[t, i] = np.exp((values[i] - high) / t)
            without[i, t, 0] = 1.0
            for k in range(1, t):
                without[i, t, k] = max(sums[t, k] - x[t, i] * without[i, t, k - 1], 0.0)
            chance[i, t] = deltas[t] * x[t, i] * without[i, t, t - 1] / total
            expected[i] += chance[i, t] / t
    value = np.log(deltas[size]) - np.log(total)
    for i in range(size):
        value += (values[i] - high) / size
        slope[i] += 1.0 / size
    tie_slope[size] += 1.0
    for t in range(2, most):
        tie_slope[t] -= tied[t]
        tie_covariance[t, t] += tied[t]
        for r in range(2, most):
            tie_covariance[t, r] -= tied[t] * tied[r]
        for i in range(m):
            cross[i, t] += chance[i, t] / t - expected[i] * tied[t]
    for i in range(m):
        slope[i] -= expected[i]
    if not second:
        return value
    for i in range(m):
        for j in range(i + 1, m):
            both = -expected[i] * expected[j]
            for t in range(2, min(most, m + 1)):
                if deltas[t] == 0.0:
                    continue
                rest = 1.0
                for k in range(1, t - 1):
                    rest = max(without[i, t, k] - x[t, j] * rest, 0.0)
                both += deltas[t] * x[t, i] * x[t, j] * rest / (t * t * total)
            covariance[i, j] += both
            covariance[j, i] += both
            covariance[i, i] -= both
            covariance[j, j] -= both
    return value


@kernel
def _record_terms(
    values: FloatArray,
    deltas: FloatArray,
    sizes: IntArray,
    second: bool,
    slope: FloatArray,
    covariance: FloatArray,
    tie_slope: FloatArray,
    tie_covariance: FloatArray,
    cross: FloatArray,
) -> float:
    """Return the value of one record and set its derivatives."""
    most = len(deltas)
    slope[:] = 0.0
    covariance[:, :] = 0.0
    tie_slope[:] = 0.0
    tie_covariance[:, :] = 0.0
    cross[:, :] = 0.0
    if most <= 3:
        ties, between = np.zeros(2), np.zeros(len(values))
        delta = deltas[2] if most == 3 else 0.0
        value = _pair_terms(values, delta, sizes, second, slope, covariance, ties, between)
        if most == 3:
            tie_slope[2] = ties[0]
            tie_covariance[2, 2] = ties[1]
            for i in range(len(values)):
                cross[i, 2] = between[i]
        return value
    value = 0.0
    start = 0
    for stage in range(len(sizes)):
        value += _stage_terms(
            values[start:],
            sizes[stage],
            deltas,
            second,
            slope[start:],
            covariance[start:, start:],
            tie_slope,
            tie_covariance,
            cross[start:],
        )
        start += sizes[stage]
    return value


@kernel
def derivatives(
    scores: FloatArray,
    gamma: FloatArray,
    deltas: FloatArray,
    items: IntArray,
    ptr: IntArray,
    sizes: IntArray,
    stages: IntArray,
    signs: FloatArray,
    weights: FloatArray,
    features: FloatArray,
    offsets: FloatArray,
) -> tuple[float, FloatArray, FloatArray]:
    """Return the log-likelihood, its gradient (p,) and minus its second derivatives (p, p).

    The parameters are the scores (n,), the coefficients gamma (q,) of the features, and
    log delta_2, log delta_3, ... The value is NaN where the scores are too far apart.
    """
    n, q, most = len(scores), len(gamma), len(deltas)
    size = n + q + most - 2
    value = 0.0
    gradient, information = np.zeros(size), np.zeros((size, size))
    longest = 0
    for row in range(len(ptr) - 1):
        longest = max(longest, ptr[row + 1] - ptr[row])
    values, slope = np.empty(longest), np.empty(longest)
    covariance, cross = np.empty((longest, longest)), np.empty((longest, most))
    tie_slope, tie_covariance = np.empty(most), np.empty((most, most))
    spread = np.empty(q)
    ties = n + q - 2  # log delta_t is parameter ties + t
    for row in range(len(ptr) - 1):
        weight, sign = weights[row], signs[row]
        if weight == 0.0:
            continue
        low = ptr[row]
        m = ptr[row + 1] - low
        for k in range(m):
            total = scores[items[low + k]] + offsets[low + k]
            for c in range(q):
                total += features[low + k, c] * gamma[c]
            values[k] = sign * total
        if m == 2 and most <= 3:
            tied = sizes[stages[row]] == 2
            here, pull, variance, both, between = _duel(
                values[0] - values[1], deltas[most - 1] if most == 3 else 0.0, tied
            )
            value += weight * here
            one, two = items[low], items[low + 1]
            gradient[one] += weight * sign * pull
            gradient[two] -= weight * sign * pull
            held = weight * variance
            information[one, one] += held
            information[two, two] += held
            information[one, two] -= held
            information[two, one] -= held
            if most == 3:
                last = ties + 2
                gradient[last] += weight * ((1.0 if tied else 0.0) - both)
                information[last, last] += weight * both * (1.0 - both)
                turn = weight * sign * between
                information[one, last] += turn
                information[last, one] += turn
                information[two, last] -= turn
                information[last, two] -= turn
                for c in range(q):
                    change = turn * (features[low, c] - features[low + 1, c])
                    information[n + c, last] += change
                    information[last, n + c] += change
            for c in range(q):
                spread[c] = features[low, c] - features[low + 1, c]
            for c in range(q):
                change = held * spread[c]
                gradient[n + c] += weight * sign * pull * spread[c]
                information[one, n + c] += change
                information[n + c, one] += change
                information[two, n + c] -= change
                information[n + c, two] -= change
                line = information[n + c]
                for d in range(q):
                    line[n + d] += change * spread[d]
            continue
        here = _record_terms(
            values[:m],
            deltas,
            sizes[stages[row] : stages[row + 1]],
            True,
            slope[:m],
            covariance[:m, :m],
            tie_slope,
            tie_covariance,
            cross[:m],
        )
        if np.isnan(here):
            return np.nan, gradient, information
        value += weight * here
        for t in range(2, most):
            gradient[ties + t] += weight * tie_slope[t]
            for r in range(2, most):
                information[ties + t, ties + r] += weight * tie_covariance[t, r]
        for i in range(m):
            item = items[low + i]
            gradient[item] += weight * sign * slope[i]
            for j in range(m):
                information[item, items[low + j]] += weight * covariance[i, j]
            for t in range(2, most):
                both = weight * sign * cross[i, t]
                information[item, ties + t] += both
                information[ties + t, item] += both
                for c in range(q):
                    change = both * features[low + i, c]
                    information[n + c, ties + t] += change
                    information[ties + t, n + c] += change
            if q == 0:
                continue
            spread[:] = 0.0
            for j in range(m):
                for c in range(q):
                    spread[c] += covariance[i, j] * features[low + j, c]
            for c in range(q):
                feature = features[low + i, c]
                gradient[n + c] += weight * sign * slope[i] * feature
                information[item, n + c] += weight * spread[c]
                information[n + c, item] += weight * spread[c]
                for d in range(q):
                    information[n + c, n + d] += weight * feature * spread[d]
    return value, gradient, information


@kernel
def spread_of_slopes(
    scores: FloatArray,
    gamma: FloatArray,
    deltas: FloatArray,
    items: IntArray,
    ptr: IntArray,
    sizes: IntArray,
    stages: IntArray,
    signs: FloatArray,
    factors: FloatArray,
    counts: FloatArray,
    group: IntArray,
    features: FloatArray,
    offsets: FloatArray,
) -> FloatArray:
    """Return the sum over groups of count times the outer square of the group's slope, (p, p).

    Records of a group follow each other; each adds its gradient times its factor, and the count
    of a group is that of its first record.
    """
    n, q, most = len(scores), len(gamma), len(deltas)
    size = n + q + most - 2
    result, total = np.zeros((size, size)), np.zeros(size)
    touched, used = np.empty(size, np.int64), 0
    marked = np.zeros(size, np.bool_)
    longest = 0
    for row in range(len(ptr) - 1):
        longest = max(longest, ptr[row + 1] - ptr[row])
    values, slope = np.empty(longest), np.empty(longest)
    covariance, cross = np.empty((longest, longest)), np.empty((longest, most))
    tie_slope, tie_covariance = np.empty(most), np.empty((most, most))
    first = 0
    for row in range(len(ptr) - 1):
        low = ptr[row]
        m = ptr[row + 1] - low
        for k in range(m):
            here = scores[items[low + k]] + offsets[low + k]
            for c in range(q):
                here += features[low + k, c] * gamma[c]
            values[k] = signs[row] * here
        if m == 2 and most <= 3:
            tied = sizes[stages[row]] == 2
            _, slope[0], _, both, _ = _duel(
                values[0] - values[1], deltas[most - 1] if most == 3 else 0.0, tied
            )
            slope[1] = -slope[0]
            if most == 3:
                tie_slope[2] = (1.0 if tied else 0.0) - both
        else:
            _record_terms(
                values[:m],
                deltas,
                sizes[stages[row] : stages[row + 1]],
                False,
                slope[:m],
                covariance[:m, :m],
                tie_slope,
                tie_covariance,
                cross[:m],
            )
        for k in range(m + q + most - 2):
            at = items[low + k] if k < m else n + (k - m)
            if not marked[at]:
                marked[at] = True
                touched[used] = at
                used += 1
        for k in range(m):
            change = factors[row] * signs[row] * slope[k]
            total[items[low + k]] += change
            for c in range(q):
                total[n + c] += change * features[low + k, c]
        for t in range(2, most):
            total[n + q - 2 + t] += factors[row] * tie_slope[t]
        if row + 2 == len(ptr) or group[row + 1] != group[row]:
            for a in range(used):
                for b in range(used):
                    result[touched[a], touched[b]] += (
                        counts[first] * total[touched[a]] * total[touched[b]]
                    )
            for a in range(used):
                total[touched[a]] = 0.0
                marked[touched[a]] = False
            used = 0
            first = row + 1
    return result
