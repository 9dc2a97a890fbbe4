"""Maximum likelihood for Mallows' models: the center, then theta by one root, or one per stage.

With d the distance from the center, the log-probability of a ballot has the slope
``E[d] - E[d | ballot]`` by theta, and the curvature ``Var[d | ballot] - Var[d]`` (Louis' formula):
for a given center theta is one root, whether the conditional moments are exact or from draws.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from permdist._check import as_rng, choice, count
from permdist._parallel import rows_of
from permdist.ballots import Ballots, levels_of
from permdist.distances import AdditiveDistance, Distance, StagedDistance
from permdist.distances.centers import Pairs
from permdist.distances.compare import between
from permdist.distances.completions import Chains
from permdist.distances.levels import agree, are_full, is_top
from permdist.distances.staged import MOST_THETA
from permdist.distributions.base import METHODS, NotExactError
from permdist.distributions.fit_tables import FitTable
from permdist.rankings import order_to_ranks

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray, RandomState

MOST_WORK = 1e9  # elementary operations of one exact pass over the ballots
FIRST_DRAWS = 10  # per ballot, before the last rounds
FIRST_ROUNDS = 5
NEIGHBOR_DRAWS = 100  # per ballot, to compare centers
SMALL_GAIN = 0.05  # of log-likelihood, which may be chance
STILL = 3  # rounds without a change
ROUNDING = 1e-9  # a gain of log-likelihood per ballot that is no gain
PATIENCE = 20.0  # seconds for one center, where it is one of many


@dataclass(frozen=True)
class MallowsFit(FitTable):
    """How a Mallows model was fitted. Prints as a table.

    Attributes
    ----------
    log_likelihood : float
        The sum of the log-probabilities of the ballots, by weight.
    standard_error : float
        Of theta, from the curvature of the log-likelihood; 0 if theta was given. The center is
        taken as known. NaN where the curvature is not negative, as it may be if theta is 0.
    mean_distance : float
        The mean distance of the ballots from the center; for ballots that say less than a full
        ranking the expected one, given what they say.
    n_ballots : float
        The sum of the weights.
    proved : bool
        Whether no other center has a higher likelihood, or the center was given.
    n_iter : int
        The number of iterations of EM; 0 where none are needed.
    converged : bool
        Whether these came to an end before the largest number.
    draws : int
        The number of draws per ballot behind the estimate; 0 if all sums are exact.
    monte_carlo_error : float
        The standard error of theta as an estimate of the maximum, from the draws; 0 if exact.
    log_likelihood_error : float
        The Monte Carlo error of the log-likelihood; 0 if exact.
    estimates : tuple of (str, float, float)
        Theta, with its standard error; see `to_frame`.
    about : str
        What was fitted, in one line.
    """

    log_likelihood: float
    standard_error: float
    mean_distance: float
    n_ballots: float
    proved: bool = True
    n_iter: int = 0
    converged: bool = True
    draws: int = 0
    monte_carlo_error: float = 0.0
    log_likelihood_error: float = 0.0
    estimates: tuple[tuple[str, float, float], ...] = field(default=(), repr=False)
    about: str = field(default="", repr=False)

    def _remarks(self) -> list[str]:
        proof = "no other has a higher likelihood" if self.proved else "not proved to be the best"
        return [f"mean distance {self.mean_distance:.6g}; the center: {proof}"]


@dataclass(frozen=True)
class GeneralizedMallowsFit(FitTable):
    """How a generalized Mallows model was fitted. Prints as a table.

    Attributes
    ----------
    log_likelihood : float
        The sum of the log-probabilities of the ballots, by weight.
    standard_errors : array of float, shape (n - 1,)
        Of the thetas, from the curvature of the log-likelihood without the prior; infinite for
        stages that no ballot reaches. The center is taken as known.
    stage_means : array of float, shape (n - 1,)
        What each stage adds to the distance of a ballot, on average; NaN for stages that no ballot
        reaches.
    stage_weights : array of float, shape (n - 1,)
        The sum of the weights of the ballots that reach each stage.
    n_ballots : float
        The sum of the weights.
    proved : bool
        Whether the center is proved to be the consensus of the ballots, or was given.
    estimates : tuple of (str, float, float)
        The thetas, with their standard errors; see `to_frame`.
    about : str
        What was fitted, in one line.
    """

    log_likelihood: float
    standard_errors: FloatArray
    stage_means: FloatArray
    stage_weights: FloatArray
    n_ballots: float
    proved: bool = True
    estimates: tuple[tuple[str, float, float], ...] = field(default=(), repr=False)
    about: str = field(default="", repr=False)


@dataclass(frozen=True)
class Search:
    """How to look for a maximum: as in `Mallows.fit`, and where to start."""

    method: str = "auto"
    draws: int = 400
    max_iter: int = 100
    rng: RandomState = None
    start: IntArray | None = None

    def __post_init__(self) -> None:
        choice("method", self.method, METHODS)
        count("draws", self.draws, minimum=2)
        count("max_iter", self.max_iter)


class Given(NamedTuple):
    """Sums over the ballots, by weight, at a center and a parameter.

    Attributes
    ----------
    log_likelihood : float
    distance, variance : float
        Conditional mean and variance of the distance from the center, added up.
    error : float
        Monte Carlo standard error of `distance`.
    """

    log_likelihood: float
    distance: float
    variance: float
    error: float = 0.0


@dataclass(eq=False)
class Evidence:
    """Different ballots and how often each was cast, with sums over the orders that agree.

    Attributes
    ----------
    kind : type of Distance
    levels : array of int, shape (ballots, n)
        As from `permdist.ballots.levels_of`.
    weights : array of float, shape (ballots,)
    prior : float
        The number of ballots to add that are spread evenly over all orders.
    """

    kind: type[Distance]
    levels: IntArray
    weights: FloatArray
    prior: float = 0.0

    @classmethod
    def of(cls, kind: type[Distance], data: Ballots) -> Evidence:
        """Count equal ballots together; full rankings are looked at once in any case."""
        if data.features is not None:
            raise ValueError("ballots: covariates have no coefficients in a Mallows model")
        if data.n_items == 1:
            raise ValueError("ballots: expected at least two items, got one")
        if not short_of_full(data):
            return cls(kind, order_to_ranks(full_orders(data)), data.weights)
        return cls.counted(kind, levels_of(data), data.weights)

    @classmethod
    def counted(
        cls, kind: type[Distance], levels: IntArray, weights: FloatArray, prior: float = 0.0
    ) -> Evidence:
        """Count equal ballots together; leave out those that do not count."""
        cast = weights > 0.0
        different, which = np.unique(levels[cast], axis=0, return_inverse=True)
        counts = np.bincount(which.reshape(-1), weights[cast]).astype(np.float64)
        if (different < 1).all():
            raise ValueError("ballots: none of them says which of two items is above the other")
        return cls(kind, different, counts, prior)

    @property
    def n(self) -> int:
        """The number of items."""
        return self.levels.shape[1]

    @cached_property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    @cached_property
    def is_full(self) -> bool:
        """Whether all ballots are full rankings, whose distance is known for any theta."""
        return bool(are_full(self.levels).all())

    @cached_property
    def _chance_distance(self) -> float:
        return self.kind(self.n, 0.0).sums.mean

    def given(self, center: IntArray, theta: float) -> Given:
        """Add up over all ballots."""
        model = self.kind(self.n, theta)
        log, mean, variance = model.agreeing_all(self.levels[:, center])
        log_likelihood = float(self.weights @ log) - self.total * model.log_partition
        return Given(log_likelihood, float(self.weights @ mean), float(self.weights @ variance))

    def work(self, center: IntArray) -> float:
        """Return about how many elementary operations `given` takes; infinite if impossible."""
        model = self.kind(self.n, 1.0)
        return sum(model.work(levels) for levels in self.levels[:, center])

    def theta(self, center: IntArray, guess: float = 0.0) -> float:
        """Maximize the likelihood for a center."""
        if not self.prior and agree(self.levels, center).all():
            raise ValueError(
                "ballots: all agree with the center, so theta has no finite estimate; pass theta"
            )
        known = self.given(center, 0.0).distance if self.is_full else None

        def slope(theta: float) -> float:
            mean = self.kind(self.n, theta).sums.mean
            seen = self.given(center, theta).distance if known is None else known
            more = self.prior * (mean - self._chance_distance) if self.prior else 0.0
            return self.total * mean - seen + more

        return _root(slope, guess or 1.0 / self.n)

    @cached_property
    def statistic(self) -> Any:
        """What the choice of a center depends on."""
        return self.kind.center_statistic(self.n)

    def expected_counts(self, center: IntArray, theta: float) -> FloatArray:
        """Return the expected statistic, given the ballots: the E-step."""
        model, levels = self.kind(self.n, theta), self.levels[:, center]
        expected = zip(self.weights.tolist(), map(model.expected_statistic, levels), strict=True)
        counts: Any = sum(weight * counted for weight, counted in expected)
        return self.statistic.relabeled(counts, order_to_ranks(center))


class Draws(Evidence):
    """Draws of orders that agree with each ballot; `draws` may be changed between calls."""

    draws: int
    rng: np.random.Generator
    chains: Chains

    @classmethod
    def from_chains(cls, exact: Evidence, draws: int, rng: np.random.Generator) -> Draws:
        """Take draws instead of sums."""
        self = cls(exact.kind, exact.levels, exact.weights, exact.prior)
        self.draws, self.rng = draws, rng
        self.chains = Chains(exact.levels, exact.weights, exact.kind)
        return self

    def given(self, center: IntArray, theta: float) -> Given:
        """Average over draws; the log-likelihood is not known."""
        self.chains(center, theta, max(1, self.draws // 10), self.rng)
        distances = self.chains(center, theta, self.draws, self.rng).distances
        variance = float(self.weights @ distances.var(axis=0, ddof=min(1, self.draws - 1)))
        series = distances @ self.weights
        return Given(np.nan, float(series.mean()), variance, _batch_error(series))

    def expected_counts(self, center: IntArray, theta: float) -> FloatArray:
        """Average the statistic over draws."""
        drawn = self.chains(center, theta, self.draws, self.rng)
        return drawn.pairs if isinstance(self.statistic, Pairs) else drawn.places

    def best_center(self, counts: FloatArray) -> IntArray:
        """Return the center with the least expected distance: the M-step."""
        if isinstance(self.statistic, Pairs):
            return Pairs(PATIENCE).best(counts)[0]
        return self.statistic.best(counts)[0]

    def neighbor_gains(self, center: IntArray, theta: float) -> FloatArray:
        """Estimate the gain of log-likelihood from each swap of neighbors in the center, (n - 1,).

        The probabilities of a ballot under two centers have the ratio of the mean of
        ``exp(-theta (d' - d))`` over orders that agree with it, drawn with the first.
        """
        others = np.tile(center, (len(center) - 1, 1))
        rows = np.arange(len(others))
        others[rows, rows], others[rows, rows + 1] = center[1:], center[:-1]
        ratios = np.zeros((len(others), len(self.levels)))
        for _ in range(self.draws):
            self.chains(center, theta, 1, self.rng)
            orders = self.chains.orders
            before = between(self.kind.name, orders, center)
            for row, other in enumerate(others):
                away = between(self.kind.name, orders, other)
                ratios[row] += np.exp(-theta * (away - before))
        gains: FloatArray = np.log(ratios / self.draws) @ self.weights
        return gains

    def log_likelihood(self, center: IntArray, theta: float) -> tuple[float, float]:
        """Integrate the slope from theta 0, where all is known; return the value and its error."""
        nodes, shares = np.polynomial.legendre.leggauss(8)
        value, squares = float(self.weights @ log_uniform(self.levels)), 0.0
        for node, share in zip(theta * (nodes + 1.0) / 2.0, theta * shares / 2.0, strict=True):
            found = self.given(center, node)
            mean = self.kind(self.n, node).sums.mean
            value += share * (self.total * mean - found.distance)
            squares += (share * found.error) ** 2
        return float(value), float(squares**0.5)


class Found(NamedTuple):
    """An estimate: center and theta, whether the center is proved, and how it was found."""

    center: IntArray
    theta: float
    proved: bool
    n_iter: int = 0
    converged: bool = True


# ---- one theta ---------------------------------------------------------------------------------


def fit_theta(
    kind: type[Distance],
    data: Ballots,
    center: IntArray | None,
    theta: float | None,
    search: Search,
) -> tuple[IntArray, float, MallowsFit]:
    """Estimate what was not given of a model with one theta; parameters as in `Mallows.fit`."""
    evidence = Evidence.of(kind, data)
    drawn = _draws(evidence, center, search)
    if drawn is not None:
        found = _by_draws(drawn, center, theta, search)
        given = drawn.given(found.center, found.theta)
        likelihood, noise = drawn.log_likelihood(found.center, found.theta)
        given = given._replace(log_likelihood=likelihood)
    else:
        found, noise = by_sums(evidence, center, theta, search), 0.0
        given = evidence.given(found.center, found.theta)
    variance = kind(evidence.n, found.theta).sums.variance
    information = evidence.total * variance - given.variance
    error = spread = 0.0
    if theta is None:
        error = information**-0.5 if information > 0.0 else np.nan
        spread = given.error / information if information > 0.0 else np.nan
    result = MallowsFit(
        log_likelihood=given.log_likelihood,
        standard_error=error,
        mean_distance=given.distance / evidence.total,
        n_ballots=evidence.total,
        proved=found.proved,
        n_iter=found.n_iter,
        converged=found.converged,
        draws=0 if drawn is None else search.draws,
        monte_carlo_error=spread,
        log_likelihood_error=noise,
        estimates=(("theta", found.theta, error),),
    )
    return found.center, found.theta, result


def _draws(evidence: Evidence, center: IntArray | None, search: Search) -> Draws | None:
    """Return draws instead of exact sums where these are not affordable, or not wanted."""
    kind, n = evidence.kind, evidence.n
    if evidence.is_full:
        return None
    additive = issubclass(kind, AdditiveDistance)
    if center is None:
        if search.method != "sample" and kind.best_center(evidence.levels, evidence.weights):
            return None
        if not additive:
            return None  # orders are listed for the center, whatever the method says
    work = evidence.work(np.arange(n) if center is None else center)
    if center is None:
        exact = n <= kind.center_limit
        work += 40.0 * len(evidence.levels) * n * 2.0**n if exact else np.inf
    if search.method == "exact" and work == np.inf:
        raise NotExactError(
            f"method: exact sums for {kind.name} are not possible for these ballots of {n} items; "
            "use method='sample'"
        )
    if work <= MOST_WORK if search.method == "auto" else search.method == "exact":
        return None
    return Draws.from_chains(evidence, search.draws, as_rng(search.rng))


def by_sums(
    evidence: Evidence, center: IntArray | None, theta: float | None, search: Search
) -> Found:
    """Find theta, and the center by EM where it depends on theta; the likelihood never falls."""

    def spread(center: IntArray, guess: float) -> float:
        return evidence.theta(center, guess) if theta is None else theta

    kind, levels, weights = evidence.kind, evidence.levels, evidence.weights
    known = (center, True) if center is not None else kind.best_center(levels, weights)
    if known is not None:
        return Found(known[0], spread(known[0], 0.0), known[1])
    if evidence.n > kind.center_limit:
        raise NotExactError(
            f"center: for {kind.name} found up to {kind.center_limit} items where ballots have "
            f"ties or items without a place, these have {evidence.n}; pass a center"
        )
    order = kind.start_center(levels, weights) if search.start is None else search.start
    value = spread(order, 0.0)
    best, least = evidence.given(order, value).log_likelihood, ROUNDING * evidence.total
    for number in range(1, search.max_iter + 1):
        counts = evidence.expected_counts(order, value)
        other, gained = evidence.statistic.best(counts)[0], False
        if not np.array_equal(other, order):
            guess = spread(other, value)
            likelihood = evidence.given(other, guess).log_likelihood
            if likelihood > best + least:
                order, value, best, gained = other, guess, likelihood, True
        if not gained:
            # EM can stall; try swaps of the center.
            other, likelihood = _best_swap(evidence, order, value)
            if likelihood <= best + least:
                return Found(order, value, False, number)
            order, value = other, spread(other, value)
            best = evidence.given(order, value).log_likelihood
    return Found(order, value, False, search.max_iter, False)


def _best_swap(evidence: Evidence, center: IntArray, theta: float) -> tuple[IntArray, float]:
    """Try swaps of two items in the center, or where these are too many, of neighbors."""
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


def theta_at(kind: type[Distance], n: int, mean: float) -> float:
    """Find the parameter at which the expected distance is the mean distance."""
    if mean == 0.0:
        raise ValueError(
            "ballots: all agree with the center, so theta has no finite estimate; pass theta"
        )
    return _root(lambda theta: kind(n, theta).sums.mean - mean, 1.0 / n)


def _root(slope: Any, guess: float) -> float:
    """Find where a falling function of theta is 0; 0 where it is negative throughout."""
    if slope(0.0) <= 0.0:
        return 0.0
    low, high = 0.0, guess
    while slope(high) > 0.0:
        low, high = high, 2.0 * high
        if high > MOST_THETA:
            raise ValueError("ballots: theta has no finite estimate; pass theta")
    return float(brentq(slope, low, high, xtol=1e-12, rtol=1e-13))


# ---- draws -------------------------------------------------------------------------------------


def _by_draws(
    evidence: Draws, given: IntArray | None, theta: float | None, search: Search
) -> Found:
    """Monte Carlo EM with few draws first, then Newton steps with all of them."""
    kind, n, total = evidence.kind, evidence.n, evidence.total
    center = kind.start_center(evidence.levels, evidence.weights) if given is None else given
    if given is not None and theta is None and agree(evidence.levels, center).all():
        evidence.theta(center)  # says that there is none
    value = 1.0 / n if theta is None else theta
    evidence.draws = min(FIRST_DRAWS, search.draws)
    still, rounds, counts = 0, 0, np.zeros((n, n))
    while rounds < search.max_iter:
        rounds += 1
        before, previous = value, center
        if given is None:
            # Averages over all rounds but the first ones, so that the center settles.
            share = 1.0 / max(1, rounds - FIRST_ROUNDS)
            counts = (1.0 - share) * counts + share * evidence.expected_counts(center, value)
            center = evidence.best_center(counts)
        value, noise = _em_step(evidence, center, value) if theta is None else (value, 0.0)
        near = abs(value - before) <= 0.02 * before + 2.0 * noise
        still = still + 1 if near and np.array_equal(center, previous) else 0
        if still == STILL:
            # EM can stall; try swaps of neighbors in the center.
            other = _drawn_neighbor(evidence, center, value, search) if given is None else center
            if np.array_equal(other, center):
                break
            # From here on the averages are those of the better center.
            center, still, counts = other, 0, evidence.expected_counts(other, value)
    evidence.draws = search.draws
    for _ in range(4 if theta is None else 0):
        found, sums = evidence.given(center, value), kind(n, value).sums
        information = total * sums.variance - found.variance
        if information > 0.0:
            step = (total * sums.mean - found.distance) / information
            value = min(max(value + step, 0.5 * value), 2.0 * value + 1.0 / n)
    return Found(center, value, given is not None, rounds, still == STILL)


def _em_step(evidence: Draws, center: IntArray, theta: float) -> tuple[float, float]:
    """Return the theta that goes with the expected distance, and its Monte Carlo error."""
    found, total = evidence.given(center, theta), evidence.total
    value = theta_at(evidence.kind, evidence.n, found.distance / total)
    return value, found.error / (total * evidence.kind(evidence.n, value).sums.variance)


def _drawn_neighbor(evidence: Draws, center: IntArray, theta: float, search: Search) -> IntArray:
    """Return the best swap of neighbors in the center, or the center if none is a gain."""
    first = evidence.draws
    evidence.draws = min(search.draws, NEIGHBOR_DRAWS)
    gains = evidence.neighbor_gains(center, theta)
    evidence.draws = first
    k = int(gains.argmax())
    if gains[k] <= SMALL_GAIN:
        return center
    other = center.copy()
    other[[k, k + 1]] = other[[k + 1, k]]
    return other


def _batch_error(series: FloatArray) -> float:
    """Return the standard error of the mean of a chain, from means of batches."""
    batches = min(20, len(series))
    if batches < 2:
        return np.nan
    length = len(series) // batches
    means = series[-batches * length :].reshape(batches, length).mean(axis=1)
    return float(means.std(ddof=1) / batches**0.5)


# ---- a theta per stage -------------------------------------------------------------------------


def fit_stages(
    kind: type[StagedDistance], data: Ballots, center: IntArray | None, prior: float
) -> tuple[IntArray, FloatArray, GeneralizedMallowsFit]:
    """Estimate a theta per stage; parameters as in `GeneralizedMallows.fit`."""
    n = data.n_items
    if prior < 0.0:
        raise ValueError(f"prior: expected a non-negative number, got {prior:g}")
    if n == 1:
        raise ValueError("ballots: expected at least two items, got one: there are no stages")
    levels = levels_of(data)
    wrong = [row for row, each in enumerate(levels) if not is_top(each)]
    if wrong:
        raise ValueError(
            "ballots: expected full rankings or first places out of all items without ties, got "
            f"something else at index {wrong[0]}"
        )
    order, proved = center, True
    if order is None:
        # Centers do not depend on theta, but for Cayley's distance and first places.
        order, _, found = fit_theta(kind, data, None, 1.0, Search())
        proved = found.proved
    evidence = Evidence.counted(kind, levels, data.weights)
    totals, reached = np.zeros(n - 1), np.zeros(n - 1)
    tops = np.argsort(evidence.levels[:, order], axis=1, kind="stable")
    lengths = np.minimum(evidence.levels.max(axis=1), n - 1)  # the last place is no stage
    for k in np.unique(lengths).tolist():
        some, weights = lengths == k, evidence.weights[lengths == k]
        totals[:k] += weights @ kind.stages(tops[some, :k])
        reached[:k] += weights.sum()
    left = np.arange(n, 1.0, -1.0)
    chance = kind.stage_sums(np.zeros(n - 1), left).mean
    thetas = np.zeros(n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (totals + prior * chance) / (reached + prior)
        for stage in np.flatnonzero(reached + prior > 0.0).tolist():
            if means[stage] == 0.0:
                raise ValueError(
                    f"ballots: all agree with the center at position {stage}, so its theta has no "
                    "finite estimate; set prior above 0"
                )
            thetas[stage] = kind.stage_theta(int(left[stage]), float(means[stage]))
        errors = (reached * kind.stage_sums(thetas, left).variance) ** -0.5
        seen = totals / reached
    model = kind(n, thetas)
    logs = model.agreeing_all(evidence.levels[:, order]).log_total - model.log_partition
    likelihood, total = float(evidence.weights @ logs), evidence.total
    result = GeneralizedMallowsFit(likelihood, errors, seen, reached, total, proved)
    return order, thetas, result


# ---- ballots -----------------------------------------------------------------------------------


def log_uniform(levels: IntArray) -> FloatArray:
    """Return the log-probability of each ballot if all orders are equally probable."""
    sizes = [np.bincount(row[row >= 0]) for row in levels]
    return np.array(
        [float(gammaln(each + 1.0).sum() - gammaln(each.sum() + 1.0)) for each in sizes]
    )


def full_orders(data: Ballots) -> IntArray:
    """Return ballots as orders, shape (ballots, n), if they are full rankings without ties."""
    fault = short_of_full(data)
    if fault:
        raise ValueError(f"ballots: expected {fault}")
    return np.asarray(data.items).reshape(-1, data.n_items)


def short_of_full(data: Ballots) -> str:
    """Say what makes ballots less than full rankings; nothing if they are full."""
    n = data.n_items
    short = np.flatnonzero(np.diff(data.ptr) != n)
    if len(short) or len(data.signs) != data.n_ballots or (data.signs < 0).any():
        at = int(short[0]) if len(short) else 0
        length = int(np.diff(data.ptr)[at])
        return f"rankings of all {n} items, got one of {length} at index {int(data.ballot[at])}"
    stages = np.diff(data.stages)
    tied = np.bincount(rows_of(data.stages), data.sizes > 1, minlength=len(stages))
    incomplete = np.flatnonzero((stages < n - 1) | (tied > 0))
    if len(incomplete):
        return (
            "full rankings without ties, got ties or items without a place at index "
            f"{int(incomplete[0])}"
        )
    return ""
