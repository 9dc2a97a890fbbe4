"""Maximum likelihood for ballots of any kind, by Newton's method, with a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse import csgraph

from permdist._check import count, finite
from permdist.ballots import cast_ballots, fading
from permdist.ballots.flat import entries_of
from permdist.ballots.rankings import listing
from permdist.inference.large import LargeFit
from permdist.inference.likelihood import (
    Likelihood,
    Penalty,
    check_design,
    free_directions,
    idle_covariates,
)
from permdist.inference.priors import PseudoWins, as_prior
from permdist.inference.results import Fit
from permdist.inference.sparse import DENSE_ITEMS, Information, SparseLikelihood, SparsePenalty

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray
    from permdist.ballots import Ballots

# Utilities beyond this many units of the Gumbel noise are as good as infinite.
ENDLESS = 60.0
# The tolerance of resampled fits; the last step is taken, too, and leaves about its square.
REFIT_TOL = 1e-4
# The largest change of a utility in one step: the curvature is another beyond.
LONGEST = 3.0
# Pivots of equations, relative to the diagonal, that are 0 but for rounding.
SINGULAR = 1e-13
NO_ESTIMATE = "fit: no maximum likelihood estimate exists"
# The precision of steps that are solved for by conjugate gradients, and of the last one.
LOOSE, TIGHT = 1e-3, 1e-8
REMEDY = "leave these items out (Ballots.without) or set a prior"


@dataclass(frozen=True, eq=False)
class Optimum:
    """Parameters at a maximum, the steps it took, and the last one's size."""

    parameters: FloatArray
    value: float
    gradient: FloatArray
    n_iter: int
    accuracy: float


class NoEstimateError(ValueError):
    """The likelihood has no maximum."""


def fit_ballots(
    ballots: Ballots,
    tie_sizes: tuple[int, ...],
    *,
    features: ArrayLike | None = None,
    feature_names: tuple[str, ...] | None = None,
    offset: ArrayLike | None = None,
    half_life: float | None = None,
    prior: Any = None,
    max_iter: int = 100,
    tol: float = 1e-9,
    start: FloatArray | None = None,
) -> Fit:
    """Estimate scores, coefficients and the prevalence of ties.

    Parameters
    ----------
    ballots : Ballots
    tie_sizes : tuple of int
        The sizes above 1 that a tie may have; those of faded ballots only are left out.
    features : array of float, shape (n, k), optional
        Features of the items; scores are their products with coefficients then.
    feature_names : tuple of str, optional
    offset : array of float, shape (n,) or (ballots, n), optional
        Known parts of the scores, of all ballots or of each; NaN for items that are not on one.
    half_life : float, optional
        The time after which a ballot counts half, in days where times are dates or Unix times.
    prior : float, Prior or None
    max_iter : int
    tol : float
        The largest error of a score, or of what covariates add to one.
    start : array of float, optional
        The parameters of a similar fit, to begin with; what does not suit is not used.
    """
    max_iter = count("max_iter", max_iter)
    tol = float(finite("tol", tol, ndim=0))
    if not 0.0 < tol <= 0.01:
        raise ValueError(f"tol: expected a number above 0 and up to 0.01, got {tol:g}")
    n = ballots.n_items
    given, (ballots, offset) = ballots, cast_ballots(ballots, half_life, offset)
    if ballots is not given:
        faded = {*given.tie_sizes} - {*ballots.tie_sizes}
        tie_sizes = tuple(size for size in tie_sizes if size not in faded)
    known, shift = _check_offset(offset, ballots)
    data = ballots.merged() if half_life is None and shift is None else ballots
    many = n > DENSE_ITEMS
    likelihood = (SparseLikelihood if many else Likelihood)(
        data,
        tie_sizes,
        design=check_design(features, n),
        offset=known,
        importance=fading(ballots.times, half_life),
        shift=shift,
    )
    chosen = as_prior(prior)
    if chosen is None and likelihood.design is None:
        check_connected(data)
    bound = likelihood.with_ghost() if isinstance(chosen, PseudoWins) else likelihood
    penalty = None
    if chosen is not None:
        penalty = SparsePenalty(chosen, bound) if many else Penalty(chosen, bound)
    if start is None or len(start) != bound.size:
        start = np.zeros(bound.size)
    try:
        found = maximize(bound, penalty, start, max_iter, tol)
    except NoEstimateError:
        _explain(data, likelihood)
    return (LargeFit if many else Fit).of(bound, penalty, found, data, feature_names)


def _check_offset(
    offset: ArrayLike | None, ballots: Ballots
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return known parts of the scores of items, or of the alternatives on each ballot."""
    if offset is None:
        return None, None
    n, table = ballots.n_items, finite("offset", offset, nan=True)
    if table.ndim == 2:
        return None, entries_of(ballots, "offset", table)
    known = finite("offset", table, ndim=1)
    if len(known) != n:
        raise ValueError(f"offset: expected {n} numbers, got {len(known)}")
    return known, None


def maximize(
    likelihood: Likelihood,
    penalty: Callable[[FloatArray], tuple[float, FloatArray, Any]] | None,
    start: FloatArray,
    max_iter: int,
    tol: float,
    weights: FloatArray | None = None,
    fixed: FloatArray | None = None,
) -> Optimum:
    """Maximize the likelihood, less the penalty; `fixed` are orthonormal directions to stay in.

    The function is concave. A step is taken in full where it leads uphill at its end or gains
    enough, and halved otherwise. It ends when a step changes no utility by more than `tol`;
    that step is taken, too.
    """
    free = free_directions(likelihood, penalty)
    parameters = start.copy()

    def derivatives(at: FloatArray) -> tuple[float, FloatArray, Any]:
        value, gradient, information = likelihood(at, weights)
        if penalty is not None:
            less, slope, second = penalty(at)
            value, gradient, information = value - less, gradient - slope, information + second
        return value, gradient, information

    value, gradient, information = derivatives(parameters)
    if likelihood.n_covariates and penalty is None:
        idle = idle_covariates(likelihood, _diagonal(information))
        if idle.any():
            name = likelihood.ballots.feature_names[int(np.argmax(idle))]
            raise ValueError(f"covariates: {name!r} never differs within a ballot; leave it out")
    precision = LOOSE
    for iteration in range(max_iter + 1):
        step, pivot, error = _solve(information, gradient, free, fixed, precision)
        largest = likelihood.reach(step)
        if largest <= tol and error > 0.0:
            step, pivot, error = _solve(information, gradient, free, fixed, TIGHT)
            largest = likelihood.reach(step)
            if error > tol:
                raise RuntimeError(
                    f"fit: equations cannot be solved to less than {error:.1g}, more than the "
                    f"{tol:g} tolerated; raise tol or set a prior"
                )
        precision = min(LOOSE, max(largest, 1e-3 * LOOSE))
        if largest <= tol:
            # Where the supremum is at infinity, the curvature vanishes on the way there.
            if pivot < SINGULAR:
                raise NoEstimateError
            parameters = parameters + step
            return Optimum(parameters, value, gradient, iteration, largest + error)
        if iteration == max_iter:
            break
        size, slope = min(1.0, LONGEST / largest), float(gradient @ step)
        # A gain that rounding hides cannot be judged; so near the maximum every step is good.
        near = slope <= 1e-9 * (1.0 + abs(value))
        while True:
            trial = parameters + size * step
            if np.ptp(trial[: likelihood.n_scores]) > 2e4:
                raise NoEstimateError
            new = derivatives(trial)
            if not np.isnan(new[0]) and (
                near or float(new[1] @ step) >= 0.0 or new[0] >= value + 1e-4 * size * slope
            ):
                break
            size *= 0.5
            if size < 1e-10:
                raise NoEstimateError
        parameters, (value, gradient, information) = trial, new
        spread = np.ptp(likelihood.split(parameters)[0])
        if spread > ENDLESS * max(1.0, likelihood.ballots.n_items / 10.0):
            raise NoEstimateError
    raise RuntimeError(
        f"fit: not converged after {max_iter} steps, the next one would move a utility by "
        f"{largest:.1e}; raise max_iter or set a prior"
    )


def _diagonal(information: Any) -> FloatArray:
    sparse_one = isinstance(information, Information)
    return information.diagonal if sparse_one else np.diagonal(information)


def _solve(
    information: Any,
    gradient: FloatArray,
    free: FloatArray,
    fixed: FloatArray | None,
    precision: float,
) -> tuple[FloatArray, float, float]:
    """Return the Newton step, off the free and fixed directions, the least pivot, and its error.

    `precision` is for a sparse information; the others are solved as they are, with error 0.
    """
    if isinstance(information, Information):
        found = information.solve(gradient, precision, certified=precision == TIGHT)
        if np.isnan(found.step).any():
            raise RuntimeError(
                "fit: conjugate gradients have not converged: items are connected by long chains "
                "of comparisons, or by very few; set a prior"
            )
        return found
    # In units in which the diagonal is 1; these directions are held by a term of that size.
    diagonal = np.diagonal(information)
    largest = max(float(diagonal.max()), 1e-300)
    scale = 1.0 / np.sqrt(np.where(diagonal > 1e-200 * largest, diagonal, largest))
    if fixed is not None:
        free = np.column_stack([free, fixed])
        across = np.eye(len(gradient)) - free @ free.T
        information, gradient = across @ information @ across, across @ gradient
        scale = np.full(len(gradient), 1.0 / np.sqrt(largest))
    ground = free / scale[:, None]
    ground /= np.maximum(np.linalg.norm(ground, axis=0), 1e-300)
    matrix = information * scale[:, None] * scale + ground @ ground.T
    factor, solution, fault = lapack.dposv(matrix, scale * gradient)
    if fault:
        raise NoEstimateError
    step: FloatArray = scale * solution
    return step - free @ (free.T @ step), float(np.diagonal(factor).min()) ** 2, 0.0


def check_connected(ballots: Ballots) -> None:
    """Explain why there is no estimate where wins and ties do not connect all items."""
    n = ballots.n_items
    if n == 1:
        return
    sources, targets = ballots.graph()
    graph = sparse.csr_matrix((np.ones(len(sources), np.int8), (sources, targets)), shape=(n, n))
    parts, part = csgraph.connected_components(graph, connection="strong")
    if parts == 1:
        return
    names = ballots.names
    absent = np.flatnonzero(ballots.counts() == 0.0)
    if len(absent):
        raise NoEstimateError(f"{NO_ESTIMATE}, on no ballot: {_some(absent, names)}; {REMEDY}")
    islands, island = csgraph.connected_components(graph, connection="weak")
    if islands > 1:
        which = np.flatnonzero(island == np.bincount(island).argmin())
        raise NoEstimateError(
            f"{NO_ESTIMATE}, never compared with the others: {_some(which, names)}; {REMEDY}"
        )
    crosses = part[sources] != part[targets]
    above, below = np.zeros(parts, np.bool_), np.zeros(parts, np.bool_)
    above[part[sources[crosses]]] = True
    below[part[targets[crosses]]] = True
    best, worst = np.flatnonzero((above & ~below)[part]), np.flatnonzero((below & ~above)[part])
    which, word = (best, "above") if len(best) <= len(worst) else (worst, "below")
    raise NoEstimateError(
        f"{NO_ESTIMATE}, always {word} the others: {_some(which, names)}; {REMEDY}"
    )


def _some(which: Any, names: tuple[str, ...]) -> str:
    return listing(which, len(which), names)


def _explain(ballots: Ballots, likelihood: Likelihood) -> None:
    """Say why Newton's method has found no maximum."""
    if likelihood.design is None and likelihood.n_covariates == 0:
        if (ballots.sizes > 1).all():
            raise NoEstimateError(
                f"{NO_ESTIMATE}, all results are ties; set a prior of pseudo-wins"
            )
        won, lost = ballots.ever()
        groups = [(np.flatnonzero(~lost), "never below"), (np.flatnonzero(~won), "never above")]
        for which, word in sorted(groups, key=lambda group: len(group[0])):
            if len(which):
                raise NoEstimateError(
                    f"{NO_ESTIMATE}, {word} another one but for ties: "
                    f"{_some(which, ballots.names)}; {REMEDY}"
                )
        raise NoEstimateError(
            f"{NO_ESTIMATE}, a group of items is never below the others but for ties; {REMEDY}"
        )
    raise NoEstimateError(
        f"{NO_ESTIMATE}, some combination of the covariates predicts every result; set a prior"
    )


def named_features(features: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Return features of the items and their names, which a data frame has."""
    columns = getattr(features, "columns", None)
    if columns is None:
        return features, None
    return features.to_numpy(), tuple(map(str, columns))


def refit(fit: Fit, weights: FloatArray) -> FloatArray | None:
    """Return the parameters for other weights of the ballots; None if there is no estimate."""
    try:
        found = maximize(fit.likelihood, fit.penalty, fit.parameters, 50, REFIT_TOL, weights)
    except (NoEstimateError, RuntimeError):
        return None
    return found.parameters
