"""Smooth positions: a sigmoid in place of "is above", and measures as functions of positions.

The sums over pairs run over windows of the sorted scores: beyond them a sigmoid is 0 or 1 to the
last digit of a double, and counting is enough.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from permdist._check import check_scores, choice, finite
from permdist._kernels import kernel
from permdist.measures import AP, NDCG, RR, KendallTau, Measure, Precision
from permdist.rankings.sorting import descending
from permdist.sums.exponential import exp_down

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray

SIGMOIDS = ("logistic", "tanh", "erf", "arctan")
# Where each is 0 to the last digit beside a position of at least 1; arctan never is.
WINDOWS = (37.0, 18.5, 6.0, math.inf)
MEASURES: tuple[type[Measure], ...] = (NDCG, AP, Precision, RR, KendallTau)


def smooth_positions(
    scores: ArrayLike, alpha: float = 10.0, sigmoid: str = "logistic"
) -> FloatArray:
    """Return ``1 + sum_j sigmoid(alpha (s_j - s_i))``, a smooth version of each item's position.

    Parameters
    ----------
    scores : array of float, shape (n,)
    alpha : float
        The larger, the closer to true positions, and the fewer pairs are looked at.
    sigmoid : {"logistic", "tanh", "erf", "arctan"}
        ``1 / (1 + exp(-x))``, ``(1 + tanh x) / 2``, ``(1 + erf x) / 2``, ``1/2 + arctan(x) / pi``.

    References
    ----------
    Qin et al.: A General Approximation Framework for Direct Optimization of Information Retrieval
    Measures, equation (20).

    Examples
    --------
    >>> smooth_positions([4.20074, 3.12378, 4.40918, 1.55258, 4.13330], alpha=100.0).round(5)
    array([2.00118, 4.     , 1.     , 5.     , 2.99882])
    """
    score = finite("scores", scores, ndim=1)
    check_scores(score)
    if not float(finite("alpha", alpha, ndim=0)) > 0.0:
        raise ValueError(f"alpha: expected a positive number, got {alpha!r}")
    kind = SIGMOIDS.index(choice("sigmoid", sigmoid, SIGMOIDS))
    order = np.argsort(-score, kind="stable")
    result = np.empty(len(score))
    everyone = np.arange(len(score))
    result[order] = _positions(float(alpha) * score[order], everyone, kind, WINDOWS[kind])
    return result


def code_of(measure: Measure) -> int:
    """Return a measure's number in the kernel; refuse those that have no smooth version."""
    for code, kind in enumerate(MEASURES):
        if isinstance(measure, kind):
            if code in (1, 3) and getattr(measure, "k", None) is not None:
                raise ValueError(f"measure: {measure.name!r} has no smooth version with a cut-off")
            return code
    raise ValueError(
        f"measure: {measure.name!r} has no smooth version; there is one of ap, ndcg, precision, "
        "rr and tau"
    )


# ---- kernels ------------------------------------------------------------------------------------


@kernel(inline=True)
def _sigmoid(kind: int, x: float) -> float:
    """Evaluate a sigmoid; kinds are numbered as in SIGMOIDS."""
    if kind == 0:
        return 1.0 / (1.0 + math.exp(-x))
    if kind == 1:
        return 1.0 / (1.0 + math.exp(-2.0 * x))
    if kind == 2:
        return 0.5 * math.erfc(-x)
    return 0.5 + math.atan(x) / math.pi


@kernel(inline=True)
def _slope(kind: int, x: float) -> float:
    """Differentiate a sigmoid."""
    if kind == 0:
        e = math.exp(-abs(x))
        return e / ((1.0 + e) * (1.0 + e))
    if kind == 1:
        e = math.exp(-2.0 * abs(x))
        return 2.0 * e / ((1.0 + e) * (1.0 + e))
    if kind == 2:
        return math.exp(-x * x) / math.sqrt(math.pi)
    return 1.0 / (math.pi * (1.0 + x * x))


@kernel
def _fill(
    kind: int, slope: bool, scores: FloatArray, i: int, first: int, end: int, terms: FloatArray
) -> None:
    """Evaluate the sigmoid of minus the distance of item i from others, or its slope.

    The argument of the exponential is never positive, and the two kinds that are made of one go
    through vector instructions.
    """
    if kind < 2:
        unit = 1.0 + kind
        for j in range(first, end):
            e = exp_down(-unit * abs(scores[j] - scores[i]))
            terms[j] = unit * e / ((1.0 + e) * (1.0 + e)) if slope else e / (1.0 + e)
    elif slope:
        for j in range(first, end):
            terms[j] = _slope(kind, -abs(scores[j] - scores[i]))
    else:
        for j in range(first, end):
            terms[j] = _sigmoid(kind, -abs(scores[j] - scores[i]))


@kernel
def _reach(scores: FloatArray, i: int, first: int, end: int, window: float) -> tuple[int, int]:
    """Move on the range of scores, which fall, that are within a window of score i."""
    while scores[first] - scores[i] > window:
        first += 1
    end = max(end, i + 1)
    while end < len(scores) and scores[i] - scores[end] <= window:
        end += 1
    return first, end


@kernel
def _positions(scores: FloatArray, wanted: IntArray, kind: int, window: float) -> FloatArray:
    """Return the smooth positions of the wanted items, shape (wanted,).

    Scores fall and are already multiplied by alpha.
    """
    n = len(scores)
    result, terms = np.empty(len(wanted)), np.empty(n)
    first, end = 0, 0
    for t in range(len(wanted)):
        i = wanted[t]
        # Those who are above by more than the window count 1 each, those below by more 0.
        first, end = _reach(scores, i, first, end, window)
        _fill(kind, False, scores, i, first, end, terms)
        position = 1.0 + first
        for j in range(first, i):
            position += 1.0 - terms[j]
        for j in range(i + 1, end):
            position += terms[j]
        result[t] = position
    return result


@kernel
def _pull_back(
    scores: FloatArray,
    wanted: IntArray,
    kind: int,
    window: float,
    slopes: FloatArray,
    out: FloatArray,
) -> None:
    """Turn derivatives by the wanted positions into derivatives by scores (times alpha)."""
    n, first, end = len(scores), 0, 0
    terms = np.empty(n)
    out[:] = 0.0
    for t in range(len(wanted)):
        i = wanted[t]
        first, end = _reach(scores, i, first, end, window)
        _fill(kind, True, scores, i, first, end, terms)
        total = 0.0
        for j in range(first, end):
            if j != i:
                flow = slopes[t] * terms[j]
                out[j] += flow
                total += flow
        out[i] -= total


@kernel
def sum_measures(
    first_query: int,
    last_query: int,
    scores: FloatArray,
    gains: FloatArray,
    levels: IntArray,
    ptr: IntArray,
    units: FloatArray,
    alpha: float,
    beta: float,
    kind: int,
    window: float,
    measure: int,
    cut: float,
    log2: bool,
    values: FloatArray,
    gradient: FloatArray,
) -> None:
    """Fill in 1 less the smooth measure, values (queries,), and its gradient (documents,).

    Gains are those of the measure, units what they are divided by in each query; levels number
    the labels. Measures are numbered as in MEASURES; cut is infinite where there is none.
    """
    for q in range(first_query, last_query):
        a, n = ptr[q], ptr[q + 1] - ptr[q]
        order = descending(scores[a : a + n])
        s, gain = np.empty(n), np.empty(n)
        level = np.empty(n, np.int64)
        for t in range(n):
            s[t] = alpha * scores[a + order[t]]
            gain[t] = gains[a + order[t]] / units[q]
            level[t] = levels[a + order[t]]
        back = np.empty(n)
        if measure == 4:
            value = _tau(s, level, kind, window, back)
        else:
            good = np.flatnonzero(gain)  # the measure depends on their positions alone
            position, slopes = _positions(s, good, kind, window), np.zeros(len(good))
            inside = cut if cut < n else np.inf
            form = gain[good], measure, inside, beta, kind, window, log2
            value = _measure(position, *form, slopes)
            _pull_back(s, good, kind, window, slopes, back)
        values[q] = 1.0 - value
        for t in range(n):
            gradient[a + order[t]] = -alpha * back[t]


@kernel
def _measure(
    position: FloatArray,
    gain: FloatArray,
    measure: int,
    cut: float,
    beta: float,
    kind: int,
    window: float,
    log2: bool,
    slopes: FloatArray,
) -> float:
    """Evaluate a measure at the smooth positions of all documents with a gain, which ascend.

    Slopes are its derivatives by them; cut is infinite where no position is beyond it.
    """
    n, value = len(position), 0.0
    if measure == 0 or measure == 2:
        for i in range(n):
            inside, edge = 1.0, 0.0
            if cut < np.inf:
                inside = _sigmoid(kind, beta * (cut + 0.5 - position[i]))
                edge = -beta * _slope(kind, beta * (cut + 0.5 - position[i]))
            worth, fall = 1.0, 0.0
            if measure == 0:
                if log2:
                    logs = math.log(1.0 + position[i])
                    worth = math.log(2.0) / logs
                    fall = -worth / (logs * (1.0 + position[i]))
                elif position[i] > 2.0:
                    logs = math.log(position[i])
                    worth = math.log(2.0) / logs
                    fall = -worth / (logs * position[i])
            value += gain[i] * worth * inside
            slopes[i] += gain[i] * (fall * inside + worth * edge)
        return value
    if measure == 1:
        far, end = 0, 0
        for y in range(n):
            while beta * (position[y] - position[far]) > window:
                far += 1
            end = max(end, y + 1)
            while end < n and beta * (position[end] - position[y]) <= window:
                end += 1
            above = 1.0 + far
            for x in range(far, end):
                if x != y:
                    d = beta * (position[y] - position[x])
                    above += _sigmoid(kind, d)
                    fall = beta * _slope(kind, d) * gain[y] / position[y]
                    slopes[y] += fall
                    slopes[x] -= fall
            value += gain[y] * above / position[y]
            slopes[y] -= gain[y] * above / position[y] ** 2
        return value
    for x in range(n):
        # The chance, so to say, that no other relevant document is above.
        first = 1.0
        for y in range(n):
            if y != x:
                first *= _sigmoid(kind, beta * (position[y] - position[x]))
                if first == 0.0:
                    break
        value += first / position[x]
        slopes[x] -= first / position[x] ** 2
        if first <= 1e-18:
            continue
        for y in range(n):
            if y != x:
                d = beta * (position[y] - position[x])
                part = beta * _slope(kind, d) * first / max(_sigmoid(kind, d), 1e-300)
                slopes[y] += part / position[x]
                slopes[x] -= part / position[x]
    return value


@kernel
def _tau(scores: FloatArray, level: IntArray, kind: int, window: float, back: FloatArray) -> float:
    """Return the smooth share of pairs in the right order less those in the wrong one."""
    n = len(scores)
    levels = level.max() + 1
    counts = np.zeros(levels)
    for t in range(n):
        counts[level[t]] += 1.0
    pairs = 0.5 * (n * n - (counts * counts).sum())
    below = counts.copy()
    total, end = 0.0, 0
    back[:] = 0.0
    for i in range(n):
        while end < n and (end <= i or scores[i] - scores[end] <= window):
            below[level[end]] -= 1.0
            end += 1
        for j in range(i + 1, end):
            if level[i] != level[j]:
                sign = 1.0 if level[i] > level[j] else -1.0
                d = scores[j] - scores[i]
                total += sign * (1.0 - 2.0 * _sigmoid(kind, d))
                flow = 2.0 * sign * _slope(kind, d) / pairs
                back[i] += flow
                back[j] -= flow
        for other in range(levels):  # those below by more than the window
            if other < level[i]:
                total += below[other]
            elif other > level[i]:
                total -= below[other]
    return total / pairs
