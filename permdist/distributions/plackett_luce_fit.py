"""Maximum likelihood for Plackett-Luce: the likelihood of ragged rankings and its derivatives."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import count
from permdist._kernels import kernel
from permdist.ballots import Ballots, Rankings, check_existence, check_names, check_penalty
from permdist.distributions.newton import (
    EPSILON,
    Equations,
    Network,
    Products,
    check_tol,
    minimize,
)
from permdist.inference.conjugate import TINY
from permdist.inference.large import LargeFit
from permdist.inference.likelihood import Likelihood
from permdist.inference.priors import Ridge
from permdist.inference.results import MAX_MATRIX, Fit
from permdist.inference.sparse import SparseLikelihood, ridge_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray


def fit_scores(
    orders: Any,
    n_items: int | None,
    subset: bool | None,
    weights: ArrayLike | None,
    regularization: float,
    names: Sequence[str] | None,
    max_iter: int,
    tol: float,
) -> Fit:
    """Maximize the penalized likelihood."""
    penalty, tol = check_penalty(regularization), check_tol(tol)
    max_iter = count("max_iter", max_iter)
    data = Rankings(orders, n_items, weights, subset, penalized=penalty > 0.0)
    names = check_names(names, data.n_items)
    kind = Likelihood if data.n_items <= MAX_MATRIX else SparseLikelihood
    make = partial(_likelihood_of, kind, orders, data.n_items, subset, names, weights)
    return fit_rankings(data, names, penalty, max_iter, tol, make)


def fit_rankings(
    data: Rankings,
    names: Sequence[str] | None,
    penalty: float,
    max_iter: int,
    tol: float,
    make: Callable[[], Likelihood],
) -> Fit:
    """Maximize the penalized likelihood of rankings, in time proportional to their length.

    `make` returns their likelihood as that of ballots, for errors of other kinds.
    """
    if penalty == 0.0:
        check_existence(data, names)
    n = data.n_items
    # A power of two scales without rounding; the largest weight or the penalty is near 1 then.
    unit = 2.0 ** math.frexp(max(float(data.weights.max()), penalty))[1]
    penalty /= unit
    flat = (data.items, data.ptr, data.weights / unit, data.rest)
    tolerated = EPSILON * (4.0 + math.sqrt(len(data.weights)))

    def objective(scores: FloatArray) -> tuple[Callable[[], float], FloatArray]:
        value, gradient = _likelihood(scores, *flat)
        centered = scores - scores.mean()
        total = -value + 0.5 * penalty * float((centered * centered).sum())
        return lambda: total, penalty * centered - gradient

    def system(scores: FloatArray) -> Equations:
        pull = penalty * np.abs(scores)
        if n <= MAX_MATRIX:
            # A penalty on scores that add up to 0 is a weak comparison of all with all.
            matrix = _information(scores, *flat) + penalty / n
            return Network(matrix, lambda: tolerated * (_sizes(scores, *flat) + pull))
        totals, diagonal, size, charges = _stages(scores, *flat)

        def product(vector: FloatArray) -> FloatArray:
            result = _product(vector, scores, totals, *flat)
            return result + penalty * (vector - vector.mean())

        scale = np.maximum(diagonal + penalty, TINY)
        errors = tolerated * (size + pull)
        blur = 4.0 * EPSILON * float((charges / scale).max())
        firm = int(scale.argmax())
        return Products(product, lambda right: right / scale, errors, firm, blur=blur)

    found = minimize(objective, system, np.zeros(n), max_iter, tol)
    value, slope = _likelihood(found.scores, *flat)
    slope -= penalty * found.scores
    covariance = None
    if isinstance(found.equations, Network) and penalty == 0.0:
        covariance = found.equations.inverse() / unit
        covariance.flags.writeable = False
    found.scores.flags.writeable = False
    worst = float(np.abs(slope).max()) / float(flat[2].sum())

    ridge = None
    if penalty > 0.0:
        small = partial(_ridge, penalty * unit)
        ridge = small if n <= MAX_MATRIX else partial(ridge_terms, penalty * unit, 0.0, n, 0)
    return (Fit if n <= MAX_MATRIX else LargeFit)(
        tuple(names) if names else tuple(map(str, range(n))),
        found.scores,
        np.zeros(0),
        value * unit,
        found.n_iter,
        worst,
        found.accuracy,
        parameters=found.scores,
        penalty=ridge,
        _make=make,
        _observed=covariance,
    )


def _likelihood_of(
    kind: type[Likelihood],
    orders: Any,
    n_items: int,
    subset: bool | None,
    names: Sequence[str] | None,
    weights: ArrayLike | None,
) -> Likelihood:
    """Return the likelihood of orders as ballots, for errors of other kinds."""
    ballots = Ballots.of(orders, n_items=n_items, subset=subset, names=names, weights=weights)
    return kind(ballots.merged(), ())


def _ridge(strength: float, scores: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Return the penalty of scores that add up to 0, with its derivatives."""
    value, gradient, second = Ridge(strength).terms(scores - scores.mean(), np.zeros(0))
    return value, gradient, second - strength / len(scores)


# ---- kernels: items, ptr and rest as in Rankings, weights (rankings,), scores (n,) -------------


@kernel
def _rest_total(worths: FloatArray, everything: float, own: IntArray) -> float:
    """Add up the worths of all items but a ranking's own."""
    total = everything
    for item in own:
        total -= worths[item]
    if total < 1e-3 * everything:  # too much cancellation: add up what is left
        taken = np.zeros(len(worths), np.bool_)
        for item in own:
            taken[item] = True
        total = 0.0
        for item in range(len(worths)):
            if not taken[item]:
                total += worths[item]
    return total


@kernel
def _likelihood(
    scores: FloatArray, items: IntArray, ptr: IntArray, weights: FloatArray, rest: bool
) -> tuple[float, FloatArray]:
    """Return the log-likelihood and its gradient (n,).

    The gradient adds up what an item wins in its own stage, the chance of the others there, and
    what it owes to the stages before, its own chance: no digits cancel within a ranking.
    """
    n = len(scores)
    largest = scores.max()
    worths = np.exp(scores - largest)
    everything = worths.sum()
    gradient = np.zeros(n)
    # What every item owes, and what is not owed by those that are listed, as sums with a
    # second part for what rounding leaves behind: their difference may be much smaller.
    everyone, everyone_low = 0.0, 0.0
    paid, paid_low = np.zeros(n if rest else 0), np.zeros(n if rest else 0)
    inverses = np.empty(n)
    value = 0.0
    for row in range(len(ptr) - 1):
        weight = weights[row]
        low, high = ptr[row], ptr[row + 1]
        k = high - low
        total = 0.0
        partial = rest and k < n
        if partial:
            total = _rest_total(worths, everything, items[low:high])
        product, log_product, sum_scores = 1.0, 0.0, 0.0
        for place in range(k - 1, -1, -1):
            item = items[low + place]
            others = total
            total += worths[item]
            if total < 1e-140:  # scores too far apart for plain numbers: the search must step back
                return -np.inf, np.full(n, np.nan)
            inverses[place] = 1.0 / total
            gradient[item] += weight * (others * inverses[place])
            sum_scores += scores[item] - largest
            product *= total
            if product < 1e-150 or product > 1e150:
                log_product += np.log(product)
                product = 1.0
        value += weight * (sum_scores - log_product - np.log(product))
        stages = 0.0
        for place in range(k):
            item = items[low + place]
            gradient[item] -= weight * (worths[item] * stages)
            stages += inverses[place]
        if partial:
            owed = weight * stages
            whole = everyone + owed
            part = whole - everyone
            everyone_low += (everyone - (whole - part)) + (owed - part)
            everyone = whole
            for place in range(low, high):
                item = items[place]
                whole = paid[item] + owed
                part = whole - paid[item]
                paid_low[item] += (paid[item] - (whole - part)) + (owed - part)
                paid[item] = whole
    if rest:
        for item in range(n):
            gradient[item] -= worths[item] * (
                (everyone - paid[item]) + (everyone_low - paid_low[item])
            )
    return value, gradient


@kernel
def _information(
    scores: FloatArray, items: IntArray, ptr: IntArray, weights: FloatArray, rest: bool
) -> FloatArray:
    """Return the second derivatives of the log-likelihood, 0 on the diagonal, shape (n, n).

    Items i and j take part together in the stages up to the earlier of the two, so that the sum
    over stages of 1 / total^2 up to there is all that a pair needs.
    """
    n = len(scores)
    worths = np.exp(scores - scores.max())
    result = np.zeros((n, n))
    position = np.empty(n, np.int64)
    squares = np.empty(n)
    members = np.empty(n, np.int64)
    for row in range(len(ptr) - 1):
        low, high = ptr[row], ptr[row + 1]
        k = high - low
        size = 0
        for place in range(k):
            members[size] = items[low + place]
            position[members[size]] = place
            size += 1
        total = 0.0
        if rest and k < n:
            taken = np.zeros(n, np.bool_)
            for place in range(low, high):
                taken[items[place]] = True
            for item in range(n):
                if not taken[item]:
                    total += worths[item]
                    members[size] = item
                    position[item] = k - 1
                    size += 1
        for place in range(k - 1, -1, -1):
            total += worths[items[low + place]]
            squares[place] = weights[row] / (total * total)
        for place in range(1, k):
            squares[place] += squares[place - 1]
        # Members are in order of position, so that the earlier one of a pair comes first.
        for a in range(size):
            i = members[a]
            factor = worths[i] * squares[position[i]]
            for b in range(a + 1, size):
                result[i, members[b]] += factor * worths[members[b]]
    for i in range(n):
        for j in range(i + 1, n):
            both = result[i, j] + result[j, i]
            result[i, j] = both
            result[j, i] = both
    return result


@kernel
def _sizes(
    scores: FloatArray, items: IntArray, ptr: IntArray, weights: FloatArray, rest: bool
) -> FloatArray:
    """Return what the gradient adds up, all with one sign, times the digits it loses, (n,)."""
    n = len(scores)
    worths = np.exp(scores - scores.max())
    everything = worths.sum()
    sizes, totals = np.zeros(n), np.empty(n)
    everyone = 0.0
    for row in range(len(ptr) - 1):
        low, high = ptr[row], ptr[row + 1]
        partial = rest and high - low < n
        total, loss = 0.0, 1.0
        if partial:
            total = _rest_total(worths, everything, items[low:high])
            if total >= 1e-3 * everything:  # digits lost where it is a difference of sums
                loss = everything / total
        for place in range(high - 1, low - 1, -1):
            others = total
            total += worths[items[place]]
            totals[place - low] = total
            sizes[items[place]] += loss * others * weights[row] / total
        stages = 0.0
        for place in range(low, high):
            sizes[items[place]] += loss * worths[items[place]] * stages
            stages += weights[row] / totals[place - low]
        if partial:
            everyone += stages
            taken = np.zeros(n, np.bool_)
            for place in range(low, high):
                taken[items[place]] = True
            for item in range(n):
                if not taken[item]:
                    sizes[item] += loss * worths[item] * stages
    for item in range(n):
        sizes[item] += EPSILON * worths[item] * everyone  # sums in two parts end there
    return sizes


@kernel
def _stages(
    scores: FloatArray, items: IntArray, ptr: IntArray, weights: FloatArray, rest: bool
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return totals of stages, the second derivatives' diagonal, and what it is a difference of.

    That is: totals as `items`; diagonal (n,); the size of the gradient's sums (n,); the sum of an
    item's chances (n,), which is much larger than the diagonal where chances are near 1.
    """
    n = len(scores)
    worths = np.exp(scores - scores.max())
    everything = worths.sum()
    totals = np.empty(len(items))
    diagonal, sizes, charges = np.zeros(n), np.zeros(n), np.zeros(n)
    all_diagonal, all_squares, all_sizes = 0.0, 0.0, 0.0
    for row in range(len(ptr) - 1):
        low, high = ptr[row], ptr[row + 1]
        total, loss = 0.0, 1.0
        partial = rest and high - low < n
        if partial:
            total = _rest_total(worths, everything, items[low:high])
            if total >= 1e-3 * everything:
                loss = everything / total
        for place in range(high - 1, low - 1, -1):
            others = total
            total += worths[items[place]]
            totals[place] = total
            sizes[items[place]] += loss * weights[row] * others / total
        firsts, squares = 0.0, 0.0
        for place in range(low, high):
            worth = worths[items[place]]
            sizes[items[place]] += loss * worth * firsts
            firsts += weights[row] / totals[place]
            squares += weights[row] / (totals[place] * totals[place])
            diagonal[items[place]] += worth * firsts - worth * worth * squares
            charges[items[place]] += worth * firsts
        if partial:
            all_diagonal += firsts
            all_squares += squares
            all_sizes += loss * firsts
            for place in range(low, high):
                worth = worths[items[place]]
                diagonal[items[place]] -= worth * firsts - worth * worth * squares
                sizes[items[place]] -= loss * worth * firsts
    for item in range(n):
        worth = worths[item]
        diagonal[item] += worth * all_diagonal - worth * worth * all_squares
        charges[item] += worth * all_diagonal
        sizes[item] += worth * all_sizes + EPSILON * worth * all_diagonal
    return totals, diagonal, sizes, charges


@kernel
def _product(
    vector: FloatArray,
    scores: FloatArray,
    totals: FloatArray,
    items: IntArray,
    ptr: IntArray,
    weights: FloatArray,
    rest: bool,
) -> FloatArray:
    """Multiply the second derivatives with a vector (n,); totals as from `_stages`.

    A stage adds ``weight * chance_i * (vector_i - mean)``, with the mean of its own chances.
    """
    n = len(scores)
    worths = np.exp(scores - scores.max())
    products = worths * vector
    everything = products.sum()
    result = np.zeros(n)
    firsts, means = 0.0, 0.0
    all_firsts, all_means = 0.0, 0.0
    stage_means = np.empty(n)
    for row in range(len(ptr) - 1):
        low, high = ptr[row], ptr[row + 1]
        partial = rest and high - low < n
        total = _rest_total(products, everything, items[low:high]) if partial else 0.0
        for place in range(high - 1, low - 1, -1):
            total += products[items[place]]
            stage_means[place - low] = total / totals[place]
        firsts, means = 0.0, 0.0
        for place in range(low, high):
            item = items[place]
            firsts += weights[row] / totals[place]
            means += weights[row] * stage_means[place - low] / totals[place]
            result[item] += worths[item] * (vector[item] * firsts - means)
        if partial:
            all_firsts += firsts
            all_means += means
            for place in range(low, high):
                item = items[place]
                result[item] -= worths[item] * (vector[item] * firsts - means)
    for item in range(n):
        result[item] += worths[item] * (vector[item] * all_firsts - all_means)
    return result
