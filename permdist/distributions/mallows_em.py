"""Mallows' model from ballots that say less than a full ranking: centers by EM, theta by a root."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from permdist import rankings
from permdist._check import as_rng, choice, count
from permdist.ballots import Ballots
from permdist.distributions.base import METHODS, NotExactError
from permdist.distributions.custom import WeightedOrders
from permdist.distributions.distance_model import DISPLACEMENTS, displacement_costs
from permdist.distributions.mallows_evidence import Buckets, Draws, Evidence, Exact, Given, Partial
from permdist.rankings import enumerate_orders
from permdist.sums.agreeing_levels import allowed_steps
from permdist.sums.lattice import Lattice
from permdist.sums.shape import Shape, fits

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.distributions.mallows import Mallows

MOST_WORK = 1e9  # elementary operations of one exact pass over the ballots
MOST_LISTED = 6  # items, for centers of distances that are no sums
FIRST_DRAWS = 10  # per ballot, before the last rounds
FIRST_ROUNDS = 5
NEIGHBOR_DRAWS = 100  # per ballot, to compare centers
SMALL_GAIN = 0.05  # of log-likelihood, which may be chance
STILL = 3  # rounds without a change
ROUNDING = 1e-9  # a gain of log-likelihood per ballot that is no gain


@dataclass(frozen=True)
class Settings:
    """How to look for a maximum: as in `Mallows.fit`, a prior in ballots, and where to start."""

    method: str = "auto"
    draws: int = 400
    max_iter: int = 100
    rng: RandomState = None
    prior: float = 0.0
    start: IntArray | None = None

    def __post_init__(self) -> None:
        choice("method", self.method, METHODS)
        count("draws", self.draws, minimum=2)
        count("max_iter", self.max_iter)


@dataclass(frozen=True)
class Found:
    """An estimate from partial ballots.

    Attributes
    ----------
    center : array of int, shape (n,)
    theta : float
    given : Given
        Sums over the ballots at the estimate.
    information : float
        Minus the second derivative of the log-likelihood by theta.
    proved : bool
        Whether no other center has a higher likelihood, or the center was given.
    n_iter : int
    converged : bool
    draws : int
        Per ballot in the last round; 0 if all sums are exact.
    log_likelihood_error : float
    """

    center: IntArray
    theta: float
    given: Given
    information: float
    proved: bool
    n_iter: int
    converged: bool
    draws: int = 0
    log_likelihood_error: float = 0.0


def fit_partial(
    cls: type[Mallows],
    data: Ballots,
    ballots: Partial,
    distance: str,
    center: IntArray | None,
    theta: float | None,
    settings: Settings,
) -> Found:
    """Estimate what was not given.

    Parameters
    ----------
    cls : type
        Of the model.
    data : Ballots
    ballots : Partial
        The same.
    distance : str
    center : array of int, shape (n,), or None
    theta : float or None
    settings : Settings
    """
    if (ballots.levels < 1).all():
        raise ValueError("ballots: none of them says which of two items is above the other")
    if distance == "kendall" and ballots.are_whole and settings.method != "sample":
        proved = True
        if center is None:
            # Only pairs that the ballots order depend on the center: Kemeny's problem.
            kemeny = rankings.consensus(data, "kemeny")
            center, proved = np.array(kemeny.order), bool(kemeny.proved)
        exact = Buckets(cls, ballots, distance)
        exact.prior = settings.prior
        value = exact.theta(center, 0.0) if theta is None else theta
        return _finished(exact, center, value, proved, 1)
    start = settings.start if center is None else center
    start = _start(data, distance) if start is None else start
    evidence = _evidence(cls, ballots, distance, start, center is None, settings)
    evidence.prior = settings.prior
    if isinstance(evidence, Draws):
        return _by_draws(evidence, start, theta, center is None, settings)
    return _by_sums(evidence, start, theta, center is None, settings)


def _evidence(
    cls: type[Mallows],
    ballots: Partial,
    distance: str,
    start: IntArray,
    search: bool,
    settings: Settings,
) -> Exact | Draws:
    """Choose exact sums where they are affordable, and draws elsewhere."""
    n, additive = ballots.n_items, distance in (*DISPLACEMENTS, "kendall")
    if search and not additive and n > MOST_LISTED:
        raise NotExactError(
            f"center: for {distance} found up to {MOST_LISTED} items where ballots have ties or "
            f"items without a place, these have {n}; pass a center"
        )
    exact = Exact(cls, ballots, distance)
    work = exact.work(start)
    if search and additive:
        work += 40.0 * len(ballots.levels) * n * 2.0 ** min(n, 1000) if fits(n) else np.inf
    must_draw = work > MOST_WORK if settings.method == "auto" else settings.method == "sample"
    if settings.method == "exact" and work == np.inf:
        raise NotExactError(
            f"method: exact sums for {distance} are not possible for these ballots of {n} items; "
            "use method='sample'"
        )
    # Orders are listed for centers of distances that are no sums, whatever the method.
    if not must_draw or (search and not additive):
        return exact
    return Draws(cls, ballots, distance, settings.draws, as_rng(settings.rng))


def _start(data: Ballots, distance: str) -> IntArray:
    """Return a center to start from."""
    try:
        method = distance if distance in ("footrule", "spearman") else "kemeny"
        return np.array(rankings.consensus(data, method, time_limit=20.0).order)
    except ValueError:  # ballots of some of the items have no positions
        return np.array(rankings.consensus(data, "kemeny", time_limit=20.0).order)


def _finished(
    evidence: Evidence, center: IntArray, theta: float, proved: bool, n_iter: int, **more: Any
) -> Found:
    """Add up what is reported at the estimate."""
    given = more.pop("given", None) or evidence.given(center, theta)
    variance = evidence.model(center, theta).distance_variance()
    information = evidence.ballots.total * variance - given.variance
    converged = more.pop("converged", True)
    return Found(center, theta, given, information, proved, n_iter, converged, **more)


# ---- exact -------------------------------------------------------------------------------------


def _by_sums(
    evidence: Exact, center: IntArray, theta: float | None, search: bool, settings: Settings
) -> Found:
    """Alternate between centers and theta; the log-likelihood never falls."""

    def spread(center: IntArray, guess: float) -> float:
        return evidence.theta(center, guess) if theta is None else theta

    value = spread(center, 0.0)
    if not search:
        return _finished(evidence, center, value, True, 1)
    best, least = evidence.given(center, value).log_likelihood, ROUNDING * evidence.ballots.total
    for number in range(1, settings.max_iter + 1):
        costs = expected_costs(evidence, center, value)
        other = best_center_of(costs, evidence.distance)
        gained = False
        if not np.array_equal(other, center):
            guess = spread(other, value)
            likelihood = evidence.given(other, guess).log_likelihood
            if likelihood > best + least:
                center, value, best, gained = other, guess, likelihood, True
        if not gained:
            # Where EM stands still, a neighbor may be better nevertheless.
            other, likelihood = _best_neighbor(evidence, center, value)
            if likelihood <= best + least:
                return _finished(evidence, center, value, False, number)
            center, value = other, spread(other, value)
            best = evidence.given(center, value).log_likelihood
    return _finished(evidence, center, value, False, settings.max_iter, converged=False)


def _best_neighbor(evidence: Exact, center: IntArray, theta: float) -> tuple[IntArray, float]:
    """Try all swaps of two items in the center, or where these are too many, of neighbors."""
    n = len(center)
    few = evidence.work(center) * n * n / 2.0 <= MOST_WORK
    best, value = center, -np.inf
    for i, j in itertools.combinations(range(n), 2):
        if j > i + 1 and not few:
            continue
        other = center.copy()
        other[[i, j]] = other[[j, i]]
        likelihood = evidence.given(other, theta).log_likelihood
        if likelihood > value:
            best, value = other, likelihood
    return best, value


# ---- draws -------------------------------------------------------------------------------------


def _by_draws(
    evidence: Draws, center: IntArray, theta: float | None, search: bool, settings: Settings
) -> Found:
    """Monte Carlo EM with few draws first, then Newton steps with all of them."""
    total, all_draws = evidence.ballots.total, evidence.draws
    if not search and theta is None and evidence.ballots.agree_with(center):
        evidence.theta(center, 0.0)  # says that there is none
    value = 1.0 / len(center) if theta is None else theta
    evidence.draws = min(FIRST_DRAWS, all_draws)
    still, rounds, costs = 0, 0, np.zeros((len(center), len(center)))
    while rounds < settings.max_iter:
        rounds += 1
        before, previous = value, center
        if search:
            # Averages over all rounds but the first ones, so that the center settles.
            share = 1.0 / max(1, rounds - FIRST_ROUNDS)
            costs = (1.0 - share) * costs + share * expected_costs(evidence, center, value)
            center = best_center_of(costs, evidence.distance)
        value, noise = _em_step(evidence, center, value) if theta is None else (value, 0.0)
        near = abs(value - before) <= 0.02 * before + 2.0 * noise
        still = still + 1 if near and np.array_equal(center, previous) else 0
        if still == STILL:
            # Where EM stands still, a neighbor may be better nevertheless.
            other = _drawn_neighbor(evidence, center, value, all_draws) if search else center
            if np.array_equal(other, center):
                break
            # From here on the averages are those of the better center.
            center, still, costs = other, 0, expected_costs(evidence, other, value)
    evidence.draws = all_draws
    for _ in range(4 if theta is None else 0):
        found = evidence.given(center, value)
        model = evidence.model(center, value)
        information = total * model.distance_variance() - found.variance
        if information > 0.0:
            step = (total * model.expected_distance() - found.distance) / information
            value = min(max(value + step, 0.5 * value), 2.0 * value + 1.0 / len(center))
    found = evidence.given(center, value)
    likelihood, error = evidence.log_likelihood(center, value)
    return _finished(
        evidence,
        center,
        value,
        not search,
        rounds,
        given=found._replace(log_likelihood=likelihood),
        converged=still == STILL,
        draws=all_draws,
        log_likelihood_error=error,
    )


def _em_step(evidence: Draws, center: IntArray, theta: float) -> tuple[float, float]:
    """Return the theta that goes with the expected distance, and its Monte Carlo error."""
    from permdist.distributions.mallows_fit import theta_at

    found, total = evidence.given(center, theta), evidence.ballots.total
    value = theta_at(evidence.cls, center, evidence.distance, found.distance / total)
    return value, found.error / (total * evidence.model(center, value).distance_variance())


def _drawn_neighbor(evidence: Draws, center: IntArray, theta: float, draws: int) -> IntArray:
    """Return the best swap of neighbors in the center, or the center if none is a gain."""
    first = evidence.draws
    evidence.draws = min(draws, NEIGHBOR_DRAWS)
    gains = evidence.neighbor_gains(center, theta)
    evidence.draws = first
    k = int(gains.argmax())
    if gains[k] <= SMALL_GAIN:
        return center
    other = center.copy()
    other[[k, k + 1]] = other[[k + 1, k]]
    return other


# ---- centers -----------------------------------------------------------------------------------


def expected_costs(evidence: Evidence, center: IntArray, theta: float) -> FloatArray:
    """Return what the choice of a center depends on, given the ballots: the E-step.

    For Kendall's distance how often one item is above another; for distances that add up over
    items how often each is at each position; for others how often each order is, shape (n!,).
    """
    distance, n = evidence.distance, evidence.ballots.n_items
    if isinstance(evidence, Draws):
        drawn = evidence.chains(center, theta, evidence.draws, evidence.rng)
        return drawn.pairs if distance == "kendall" else drawn.places
    ranks, model = np.argsort(center), evidence.model(center, theta)
    result = np.zeros((n, n))
    if distance not in DISPLACEMENTS and distance != "kendall":
        return _expected_orders(evidence.ballots, model)
    shape = Shape.of_orders(n)
    for levels, weight in zip(
        evidence.ballots.levels[:, center], evidence.ballots.weights, strict=True
    ):
        if distance == "kendall":
            steps = shape.sum_pairs(-np.tri(n, k=-1))
            weights = np.where(allowed_steps(levels), theta * steps, -np.inf)
            result += weight * Lattice(shape, weights).pairwise()
        else:
            engine: Any = model._agreement  # noqa: SLF001
            lattice, _ = engine.lattice(np.arange(n), levels)
            result += weight * lattice.rank_marginals()
    return result[np.ix_(ranks, ranks)] if distance == "kendall" else result[ranks]


def _expected_orders(ballots: Partial, model: Mallows) -> FloatArray:
    """Return how often each order is expected, in the order of `enumerate_orders`."""
    every = enumerate_orders(ballots.n_items)
    logs, result = model.log_weight(every), np.zeros(len(every))
    for levels, weight in zip(ballots.levels, ballots.weights, strict=True):
        marks = levels[every]
        agrees = ((marks < 0) | (marks == np.maximum.accumulate(marks, axis=1))).all(axis=1)
        shares = np.where(agrees, np.exp(logs - logs[agrees].max()), 0.0)
        result += weight * shares / shares.sum()
    return result


def best_center_of(costs: FloatArray, distance: str) -> IntArray:
    """Find the center with the least expected distance: the M-step."""
    n = len(costs)
    if distance == "kendall":
        if fits(n):
            return WeightedOrders.from_pairs(costs).mode()
        i, j = np.nonzero(np.triu(np.ones((n, n)), 1))
        winners, losers = np.concatenate([i, j]), np.concatenate([j, i])
        pairs = Ballots.from_pairs(winners, losers, weights=costs[winners, losers] + 1e-12)
        return np.array(rankings.consensus(pairs, "kemeny", time_limit=20.0).order)
    if distance in DISPLACEMENTS:
        moves = np.abs(np.arange(n)[:, None] - np.arange(n))
        table = costs @ displacement_costs(distance, n)[moves]
        return np.argsort(linear_sum_assignment(table)[1])
    size = next(m for m in range(1, MOST_LISTED + 1) if len(enumerate_orders(m)) == n)
    every = enumerate_orders(size)
    return every[int((rankings.distance_matrix(every, every, distance=distance) @ costs).argmin())]
