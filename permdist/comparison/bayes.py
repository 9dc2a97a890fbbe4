"""Probabilities that one learner is better than another, with a region of practical equivalence.

Two models of paired differences over queries: `signed_rank`, a Dirichlet process without any
assumption about their distribution, and `hierarchical`, normal differences whose mean differs
from fold to fold. Neither depends on the order of the queries, and an exchange of the learners
exchanges the probabilities, to the last bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special, stats

from permdist._check import as_rng, count, finite

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState

__all__ = ["MODELS", "Probabilities", "check_rope", "hierarchical", "probabilities", "signed_rank"]

MODELS = ("signed-rank", "hierarchical")
STRENGTH = 0.5  # of the prior of the signed-rank test, in queries
DRAWS = 10_000
SLICE = 2_000_000  # entries of weights that are drawn together
ROUNDING = 1e-12
NEGLIGIBLE = 23.0  # differences of log-densities beyond which nodes are left out


class Probabilities(NamedTuple):
    """What is known about a learner against another.

    Attributes
    ----------
    worse, rope, better : float
        The probabilities that its typical difference is below the region of practical equivalence
        (rope), within it, or above it.
    worse_query, rope_query, better_query : float
        The same for the difference on a new query.
    """

    worse: float
    rope: float
    better: float
    worse_query: float
    rope_query: float
    better_query: float

    def exchanged(self) -> Probabilities:
        """Return the probabilities of the other learner."""
        a, b, c, x, y, z = self
        return Probabilities(c, b, a, z, y, x)


def check_rope(rope: float) -> float:
    """Check half the width of the region of practical equivalence."""
    value = float(finite("rope", rope, ndim=0))
    if value < 0.0:
        raise ValueError(
            f"rope: expected a non-negative difference that does not matter, got {value:g}"
        )
    return value


def signed_rank(
    differences: ArrayLike,
    *,
    rope: float = 0.005,
    strength: float = STRENGTH,
    draws: int = DRAWS,
    rng: RandomState = 0,
) -> Probabilities:
    """Compare two learners by the Bayesian signed-rank test.

    The distribution F of differences has a Dirichlet process prior with a weight of `strength`
    queries at 0. For every F drawn from the posterior, the mean of two differences drawn from F is
    most often below the rope, within it, or above it; the probabilities are the shares of draws in
    which each of the three is the largest. On a new query a difference has the mean of F as its
    distribution, which is known exactly.

    Parameters
    ----------
    differences : array of float, shape (queries,)
        Of the learner from the other one; positive where it is better.
    rope : float
        Differences of at most this size are equivalent in practice.
    strength : float
        The weight of the prior, as a number of queries without a difference.
    draws : int
        The number of draws of F.
    rng : int, Generator or None

    Returns
    -------
    Probabilities

    References
    ----------
    Benavoli, Corani, Mangili, Zaffalon, Ruggeri: A Bayesian Wilcoxon signed-rank test based on the
    Dirichlet process (2014). Benavoli, Corani, Demsar, Zaffalon: Time for a change (2017).

    Examples
    --------
    >>> found = signed_rank([0.02, 0.1, -0.01, 0.07, 0.05, 0.03, 0.0, 0.08])
    >>> round(found.better, 2), round(found.better_query, 2)
    (0.99, 0.71)
    """
    values = _ascending(differences)
    rope, draws = check_rope(rope), count("draws", draws)
    prior = float(finite("strength", strength, ndim=0))
    if prior < 0.0:
        raise ValueError(f"strength: expected a non-negative number, got {prior:g}")
    if not values.size:
        return Probabilities(0.0, 1.0, 0.0, 0.0, 1.0, 0.0)
    turn = _side(values)
    if turn < 0:
        return signed_rank(-values, rope=rope, strength=prior, draws=draws, rng=rng).exchanged()
    total = len(values) + prior
    below = float((values < -rope - ROUNDING).sum()) / total
    above = float((values > rope + ROUNDING).sum()) / total
    regions = _dominant(values, rope, prior, draws, as_rng(rng))
    if turn == 0:  # the mirror image of itself
        regions = 0.5 * (regions + regions[::-1])
    worse, same, better = regions.tolist()
    return Probabilities(worse, same, better, below, 1.0 - below - above, above)


def _dominant(
    values: FloatArray, rope: float, prior: float, draws: int, rng: np.random.Generator
) -> FloatArray:
    """Return the shares of draws in which means of pairs are mostly below, within, or above."""
    points = np.insert(values, np.searchsorted(values, 0.0), 0.0) if prior else values
    shapes = np.ones(len(points))
    if prior:
        shapes[np.searchsorted(values, 0.0)] = prior
    # For each point, how many others give a mean below the rope, and from where on above.
    low = np.searchsorted(points, -2.0 * rope - points - ROUNDING, side="left")
    high = np.searchsorted(points, 2.0 * rope - points + ROUNDING, side="right")
    counts, done = np.zeros(3), 0
    while done < draws:
        size = min(draws - done, max(1, SLICE // len(points)))
        weights = rng.standard_gamma(shapes, size=(size, len(points)))
        sums = np.zeros((size, len(points) + 1))
        np.cumsum(weights, axis=1, out=sums[:, 1:])
        whole = sums[:, -1]
        below = (weights * sums[:, low]).sum(axis=1)
        above = (weights * (whole[:, None] - sums[:, high])).sum(axis=1)
        regions = np.stack([below, whole**2 - below - above, above])
        regions[np.abs(regions) < ROUNDING * whole**2] = 0.0
        best = regions == regions.max(axis=0)
        counts += (best / best.sum(axis=0)).sum(axis=1)
        done += size
    return counts / draws


def hierarchical(
    differences: ArrayLike,
    folds: ArrayLike | None = None,
    *,
    rope: float = 0.005,
    correlation: float | None = None,
) -> Probabilities:
    """Compare two learners by a hierarchical model of the folds of a cross-validation.

    Differences of the queries of fold f are normal with mean ``mu_f`` and a standard deviation of
    the fold's own; the means ``mu_f`` are normal around mu with standard deviation tau, and have a
    correlation, as the training parts of folds overlap. Priors: flat for mu and the logarithms of
    the standard deviations within folds; half-Cauchy for tau, with the standard error of the mean
    of a fold as its scale. All are integrated out by quadrature, to about 1e-6: nothing is drawn.
    With one fold tau is 0, and mu has Student's distribution.

    Parameters
    ----------
    differences : array of float, shape (queries,)
        Positive where the learner is better than the other one.
    folds : array of int, shape (queries,), optional
        The fold of each query; all in one by default.
    rope : float
        Differences of at most this size are equivalent in practice.
    correlation : float, optional
        Of the means of two folds; by default one over the number of folds, the share of data that
        is tested on in each of them (Nadeau and Bengio's heuristic).

    Returns
    -------
    Probabilities
        Of mu, and of the difference on a query of a new fold.

    References
    ----------
    Nadeau, Bengio: Inference for the generalization error (2003). Corani, Benavoli, Demsar,
    Mangili, Zaffalon: Statistical comparison of classifiers through Bayesian hierarchical
    modelling (2017).

    Examples
    --------
    >>> differences = [0.02, 0.1, -0.01, 0.07, 0.05, 0.03, 0.0, 0.08]
    >>> found = hierarchical(differences, [0, 0, 0, 0, 1, 1, 1, 1])
    >>> round(found.better, 2), round(found.worse, 2)
    (0.92, 0.05)
    """
    rope = check_rope(rope)
    values = finite("differences", differences, ndim=1)
    labels = np.zeros(len(values), np.int64) if folds is None else np.asarray(folds)
    if labels.shape != values.shape:
        raise ValueError(f"folds: expected {len(values)} fold numbers, got shape {labels.shape}")
    if not values.size:
        return Probabilities(0.0, 1.0, 0.0, 0.0, 1.0, 0.0)
    parts = sorted(_ascending(values[labels == fold]).tolist() for fold in np.unique(labels))
    mirror = sorted(_ascending(-np.array(part)).tolist() for part in parts)
    if parts < mirror:
        other = hierarchical(-values, labels, rope=rope, correlation=correlation)
        return other.exchanged()
    found = _of_folds(parts, rope, correlation)
    if parts > mirror:
        return found
    return Probabilities(*(0.5 * (a + b) for a, b in zip(found, found.exchanged(), strict=True)))


def _of_folds(parts: list[list[float]], rope: float, correlation: float | None) -> Probabilities:
    """Return the probabilities for the differences of each fold."""
    k = len(parts)
    shared = 1.0 / k if correlation is None else float(finite("correlation", correlation, ndim=0))
    if not 0.0 <= shared <= 1.0 or (shared == 1.0 and k > 1):
        raise ValueError(f"correlation: expected a number from 0 to below 1, got {shared:g}")
    sizes = np.array([len(part) for part in parts], dtype=np.float64)
    means = np.array([np.mean(part) for part in parts])
    squares = np.array([np.var(part) * len(part) for part in parts])
    squares[squares < (ROUNDING**2) * sizes] = 0.0
    freedom = sizes - 1.0
    if not squares.any():
        return _certain(means, rope, k, shared)
    pooled = squares.sum() / freedom.sum()
    # Folds without a variance of their own have that of the others.
    alone = squares == 0.0
    squares = np.where(alone, pooled * freedom.sum(), squares)
    freedom = np.where(alone, freedom.sum(), freedom)
    if k == 1:
        return _student(float(means[0]), float(squares[0]), float(sizes[0]), rope)
    return _integrated(means, squares, freedom, sizes, shared, rope)


def _student(mean: float, squares: float, size: float, rope: float) -> Probabilities:
    """Return the probabilities of one fold."""
    scale = np.sqrt(squares / (size - 1.0))
    found = []
    for spread in (scale / np.sqrt(size), scale * np.sqrt(1.0 + 1.0 / size)):
        below = float(stats.t.cdf((-rope - mean) / spread, size - 1.0))
        above = float(stats.t.sf((rope - mean) / spread, size - 1.0))
        found += [below, max(0.0, 1.0 - below - above), above]
    return Probabilities(*found)


def _certain(means: FloatArray, rope: float, k: int, shared: float) -> Probabilities:
    """Return the probabilities where all queries of a fold have the same difference."""
    spread = float(means.std(ddof=1)) if k > 1 else 0.0
    if spread < ROUNDING:
        mean = float(means.mean())
        below, above = float(mean < -rope - ROUNDING), float(mean > rope + ROUNDING)
        same = 1.0 - below - above
        return Probabilities(below, same, above, below, same, above)
    # The corrected t-test of the means of folds.
    found: list[float] = []
    for share in (1.0 / k + shared / (1.0 - shared), 1.0 + 1.0 / k + shared / (1.0 - shared)):
        scale = spread * np.sqrt(share)
        below = float(stats.t.cdf((-rope - means.mean()) / scale, k - 1.0))
        above = float(stats.t.sf((rope - means.mean()) / scale, k - 1.0))
        found += [below, max(0.0, 1.0 - below - above), above]
    return Probabilities(*found)


def _integrated(
    means: FloatArray,
    squares: FloatArray,
    freedom: FloatArray,
    sizes: FloatArray,
    shared: float,
    rope: float,
) -> Probabilities:
    """Integrate over the standard deviations within folds and between them, and over mu.

    Let m be mu and the common part of the means of folds, which is normal with variance
    ``shared * tau ** 2``. Given m and tau, folds are independent: the density of each one's mean
    is an integral over its own variance, and mu is normal around m.
    """
    variances, weights = _variances(squares, freedom)
    scales = squares / freedom / sizes  # of the means of folds
    taus, priors = _taus(means, scales)
    own = (1.0 - shared) * taus**2
    nodes, lengths, which = _mesh(means, scales, freedom, own, shared * taus**2, rope)
    about = _bound(nodes, own[which], means, scales, freedom) + np.log(lengths * priors[which])
    kept = np.flatnonzero(about > about.max() - NEGLIGIBLE)
    logs, regions = np.empty(len(kept)), np.empty((4, len(kept)))
    size = max(1, SLICE // variances.size)
    for start in range(0, len(kept), size):
        some = slice(start, start + size)
        m, number = nodes[kept[some]], which[kept[some]]
        spread = own[number][:, None, None] + variances / sizes[:, None]
        away = (means - m[:, None])[..., None]
        each = weights * np.exp(-0.5 * away**2 / spread) / np.sqrt(spread)
        folds = each.sum(axis=2)
        logs[some] = np.log(np.maximum(folds, 1e-300)).sum(axis=1)
        each /= np.maximum(folds, 1e-300)[..., None] * len(means)  # of a query of any fold
        new = np.sqrt(own[number][:, None, None] + variances)
        common = np.maximum(np.sqrt(shared) * taus[number], 1e-300)
        for row, end in ((0, -rope - m), (1, m - rope)):
            regions[row, some] = special.ndtr(end / common)
            chances = special.ndtr(end[:, None, None] / new)
            regions[row + 2, some] = (each * chances).sum(axis=(1, 2))
    shares = np.exp(logs - logs.max()) * (lengths * priors[which])[kept]
    below, above, below_query, above_query = (regions @ (shares / shares.sum())).tolist()
    same, same_query = max(0.0, 1.0 - below - above), max(0.0, 1.0 - below_query - above_query)
    return Probabilities(below, same, above, below_query, same_query, above_query)


def _variances(squares: FloatArray, freedom: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return variances within each fold, given its data alone, and their weights, (folds, j)."""
    # The trapezoidal rule in logarithms: the density vanishes at both ends, with all derivatives.
    low, high = np.log(stats.chi2.ppf(1e-9, freedom)), np.log(stats.chi2.isf(1e-10, freedom))
    steps = np.minimum(0.8, 0.8 / np.sqrt(freedom))
    number = int(np.ceil(((high - low) / steps).max()))
    logs = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, number)
    weights = stats.chi2.pdf(np.exp(logs), freedom[:, None]) * np.exp(logs)
    return squares[:, None] / np.exp(logs), weights / weights.sum(axis=1)[:, None]


def _taus(means: FloatArray, scales: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return standard deviations between folds and their weights by the half-Cauchy prior."""
    unit = float(np.sqrt(np.median(scales)))
    low = np.log(1e-7 * np.sqrt(scales.min()))
    high = np.log(1e5 * (unit + float(np.ptp(means))))
    taus = np.exp(np.arange(low, high, min(0.4, 0.9 / np.sqrt(len(means)))))
    return taus, taus / (unit**2 + taus**2)


def _bound(
    m: FloatArray, own: FloatArray, means: FloatArray, scales: FloatArray, freedom: FloatArray
) -> FloatArray:
    """Return about the log-density of the means of folds: normal, with tails of Student's."""
    square, own = (means - m[:, None]) ** 2, own[:, None]
    core = -0.5 * (square / (own + scales) + np.log(own + scales))
    tails = -0.5 * np.log1p((square + own) / (freedom * scales)) * (freedom + 1.0)
    result: FloatArray = np.maximum(core, tails - 0.5 * np.log(scales)).sum(axis=1)
    return result


def _mesh(
    means: FloatArray,
    scales: FloatArray,
    freedom: FloatArray,
    own: FloatArray,
    common: FloatArray,
    rope: float,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return nodes of m and their weights, for each tau; and the number of the tau.

    Gauss's rule on intervals about as long as the integrand allows: by the curvature of its
    logarithm, and of the chance that mu is beyond the rope. They end at the rope, where that
    chance may leap.
    """
    spread, args = own[:, None] + scales, (means, scales, freedom)
    top = _bound(np.full(len(own), np.median(means)), own, *args)
    for mean in means:
        top = np.maximum(top, _bound(np.full(len(own), mean), own, *args))
    reach = np.sqrt(spread.min(axis=1))
    least = reach.copy()
    while True:
        ends = [_bound(end, own, *args) for end in (means.min() - reach, means.max() + reach)]
        wide = np.maximum(*ends) + np.log(reach / least) > top - NEGLIGIBLE
        if not wide.any():
            break
        reach = np.where(wide, 1.5 * reach, reach)
    at, end = means.min() - reach, means.max() + reach
    starts, lengths, which = [], [], []
    rows = np.arange(len(own))
    while len(rows):
        square = (means - at[:, None]) ** 2
        tails = (freedom + 1.0) / (freedom * spread + square)
        width = np.where(square < 64.0 * spread, 1.0 / spread, tails).sum(axis=1) ** -0.5
        for side in (-rope, rope):
            narrow = np.maximum(common, (0.05 * width) ** 2) + ((at - side) / 2.0) ** 2
            width = np.minimum(width, np.sqrt(narrow))
        following = np.minimum(at + width, end)
        for side in (-rope, rope):
            following = np.where((at < side) & (following > side), side, following)
        starts.append(at)
        lengths.append(following - at)
        which.append(rows)
        more = following < end
        at, end, rows = following[more], end[more], rows[more]
        spread, common = spread[more], common[more]
    points, shares = np.polynomial.legendre.leggauss(5)
    start, length = np.concatenate(starts)[:, None], np.concatenate(lengths)[:, None]
    nodes, weights = start + length * 0.5 * (points + 1.0), 0.5 * length * shares
    return nodes.ravel(), weights.ravel(), np.repeat(np.concatenate(which), len(points))


def _ascending(differences: ArrayLike) -> FloatArray:
    # Differences in the last digits are rounding errors.
    values = np.round(finite("differences", differences, ndim=1), 12) + 0.0
    return np.sort(values)


def _side(values: FloatArray) -> int:
    """Return 1 or -1 as values are the ones to work with or those of the exchange; 0 if equal."""
    mirror = -values[::-1]
    other = np.flatnonzero(values != mirror)
    return 0 if not other.size else (1 if values[other[0]] > mirror[other[0]] else -1)


def probabilities(
    differences: FloatArray, folds: IntArray, model: str, rope: float, rng: int
) -> Probabilities:
    """Return the probabilities of one of the `MODELS`."""
    if model == "hierarchical":
        return hierarchical(differences, folds, rope=rope)
    return signed_rank(differences, rope=rope, rng=rng)
