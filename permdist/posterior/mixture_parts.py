"""The components of mixtures: Plackett-Luce and Mallows models given the ballots of their voters.

Parameters of a component are a vector; each class says how to draw it from the prior, update it
given the numbers of voters of each ballot, and what its ballots' probabilities are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._kernels import kernel
from permdist.ballots import levels_of
from permdist.distances import Displacement, distance_named
from permdist.distances.completions import kernel_of
from permdist.distributions import Mallows, PlackettLuce
from permdist.posterior.centers import CAYLEY, Energy, energy_of, joined, move_center
from permdist.posterior.completions import distances_to
from permdist.posterior.mallows import BLOCKS, MallowsPrior
from permdist.posterior.priors import Flat, Gamma
from permdist.posterior.problem import Variable
from permdist.posterior.spreads import ThetaStep, normalizer
from permdist.rankings import order_to_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from permdist._typing import FloatArray, IntArray
    from permdist.ballots import Ballots


class LuceParts:
    """Plackett-Luce components with gamma priors of worths; parameters are log-worths.

    Given exponential times of all stages, the worths are independent gamma variables (Caron and
    Doucet: Efficient Bayesian inference for generalized Bradley-Terry models, 2012).

    Parameters
    ----------
    ballots : Ballots
    prior : Gamma or None
    """

    def __init__(self, ballots: Ballots, prior: Any) -> None:
        prior = Gamma(1.0, 1.0) if prior is None else prior
        if not isinstance(prior, Gamma):
            raise TypeError(
                "prior: expected Gamma(shape, rate) on the worths of the components, got "
                f"{type(prior).__name__}"
            )
        if (ballots.sizes > 1).any():
            raise ValueError("data: some ballots have ties; Plackett-Luce components have none")
        if (ballots.signs < 0.0).any():
            raise ValueError("data: best-worst choices are no rankings of Plackett-Luce components")
        self.prior, self.n = prior, ballots.n_items
        self.items, self.ptr = np.asarray(ballots.items), np.asarray(ballots.ptr)
        self.chosen = np.diff(ballots.stages)
        self.name = "Plackett-Luce models"
        self.variables = (Variable("scores", (self.n,), ("item",)),)

    def draw(self, k: int, rng: np.random.Generator) -> FloatArray:
        """Draw parameters from the prior, shape (k, n)."""
        return self.prior.draw(k, self.n, rng)

    def log_probs(self, parts: FloatArray) -> FloatArray:
        """Return log-probabilities, shape (ballots, k)."""
        return luce_log_probs(self.items, self.ptr, self.chosen, parts)

    def update(self, part: FloatArray, members: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return new parameters of a component with so many voters of each ballot."""
        top = part.max()
        wins, times = luce_times(
            self.items, self.ptr, self.chosen, members, np.exp(part - top), rng
        )
        # Times are those of worths relative to the largest; the prior has its own unit.
        rates = self.prior.rate + times * np.exp(-top)
        shapes = self.prior.shape + wins
        # Logarithms of gamma variables; those of a small shape would round to 0.
        logs = np.log(rng.standard_gamma(shapes + 1.0)) - rng.standard_exponential(self.n) / shapes
        logs -= np.log(rates)
        # Ballots say nothing about the sum of the worths: it is drawn from its prior.
        largest = logs.max()
        total = np.log(rng.standard_gamma(self.n * self.prior.shape + 1.0))
        total -= rng.standard_exponential() / (self.n * self.prior.shape)
        total -= np.log(self.prior.rate)
        result: FloatArray = logs - largest - np.log(np.exp(logs - largest).sum()) + total
        return result

    def log_prior(self, part: FloatArray) -> float:
        """Return the log-density of the prior."""
        return self.prior.log_density(part)

    def record(self, part: FloatArray) -> tuple[FloatArray]:
        """Return what is recorded: scores that add up to 0."""
        return (part - part.mean(),)

    def from_record(self, values: Sequence[FloatArray]) -> FloatArray:
        """Return parameters (k, n) from recorded values."""
        return values[0]

    def models(self, parts: FloatArray, names: Sequence[str]) -> list[PlackettLuce]:
        """Return the distributions of parameters (k, n)."""
        return [PlackettLuce(part, names) for part in parts]


class MallowsParts:
    """Mallows components; parameters are the order of the center, and theta.

    Parameters
    ----------
    ballots : Ballots
    prior : MallowsPrior, Gamma or None
    distance : str
    """

    def __init__(self, ballots: Ballots, prior: Any, distance: str) -> None:
        kind = distance_named(distance)
        self.prior = MallowsPrior.of(Gamma(1.0, 1.0) if prior is None else prior)
        energy = self.prior.energy(ballots.n_items)
        if isinstance(self.prior.theta, Flat):
            raise ValueError(
                "prior: expected a proper prior of theta, as a component may have no ballots, got "
                "a flat one; set prior=Gamma(shape, rate)"
            )
        if energy is None:
            raise ValueError(
                "prior: expected UniformCenter() or a Mallows model with Kendall's, Hamming's or "
                "Spearman's distance or the footrule as prior of the centers of a mixture"
            )
        self.center_energy = energy
        self.n, self.distance = ballots.n_items, distance
        self.levels = levels_of(ballots)
        whole = (self.levels >= 0).all(axis=1)
        full = whole & (self.levels.max(axis=1, initial=-1) == self.n - 1)
        wrong = np.flatnonzero(~(whole if distance == "kendall" else full))
        if len(wrong):
            kinds = "rankings of all items" if distance == "kendall" else "full rankings"
            raise ValueError(
                f"data: expected {kinds} for a mixture of Mallows models with {distance}, got "
                f"something else at index {int(wrong[0])}; family='plackett-luce' takes any"
            )
        self.kind, self.costs = kernel_of(kind, self.n)
        self.adds_up = issubclass(kind, Displacement)
        self.moves = self.costs[np.abs(np.arange(self.n)[:, None] - np.arange(self.n))]
        # How many buckets of each size each ballot has.
        self.sizes = np.zeros((len(self.levels), self.n + 1))
        for row, level in zip(self.sizes, self.levels, strict=True):
            np.add.at(row, np.bincount(level), 1.0)
        self.sizes[:, 0] = 0.0
        self.name = f"Mallows models ({distance})"
        self.variables = (Variable("center", (self.n,), ("item",)), Variable("theta"))

    def draw(self, k: int, rng: np.random.Generator) -> FloatArray:
        """Draw parameters from the prior, shape (k, n + 1)."""
        centers = self.prior.draw_centers(k, self.n, rng)
        return np.column_stack([centers, self.prior.draw_thetas(k, rng)]).astype(np.float64)

    def log_probs(self, parts: FloatArray) -> FloatArray:
        """Return log-probabilities, shape (ballots, k)."""
        result = np.empty((len(self.levels), len(parts)))
        each = np.eye(self.n + 1)
        for number, part in enumerate(parts):
            center, theta = part[:-1].astype(np.int64), max(float(part[-1]), 1e-290)
            away = distances_to(self.levels, center, self.kind, self.costs)
            norm = normalizer(self.distance, self.n, 1.0)(theta)
            result[:, number] = norm - theta * away
            if self.distance == "kendall" and (self.sizes[:, 2:] > 0.0).any():
                logs = [normalizer("kendall", self.n, 0.0, row)(theta) for row in each]
                result[:, number] += self.sizes @ np.array(logs)
        return result

    def update(self, part: FloatArray, members: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return new parameters of a component with so many voters of each ballot."""
        order, theta = part[:-1].astype(np.int64), float(part[-1])
        cost = self._cost(members)
        move_center(order, *joined(cost, theta, self.center_energy), BLOCKS, rng)
        buckets = members @ self.sizes if self.distance == "kendall" else None
        norm = normalizer(self.distance, self.n, float(members.sum()), buckets)
        theta = ThetaStep(self.prior.theta, norm)(theta, energy_of(order, *cost), rng)
        return np.append(order, theta).astype(np.float64)

    def _cost(self, members: IntArray) -> Energy:
        """Return the total distance from the voters' ballots as a function of the center."""
        n, none = self.n, np.zeros((0, 0))
        there = members > 0
        levels, voters = self.levels[there], members[there].astype(np.float64)
        ranks, coefs = np.zeros((0, n), np.int64), np.zeros(0)
        if self.distance == "kendall":
            return Energy(weigh_pairs(levels, voters), none, ranks, coefs, CAYLEY)
        if self.adds_up:
            at = np.zeros((n, n))
            np.add.at(at, (np.arange(n), levels), voters[:, None])
            return Energy(none, at @ self.moves, ranks, coefs, CAYLEY)
        return Energy(none, none, levels, voters, self.kind)

    def log_prior(self, part: FloatArray) -> float:
        """Return the log-density of the prior, up to a constant."""
        center = -energy_of(part[:-1].astype(np.int64), *self.center_energy)
        return float(center) + float(self.prior.theta.log_density_of_values(part[-1]))

    def record(self, part: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is recorded: the ranks of the items, and theta."""
        return order_to_ranks(part[:-1].astype(np.int64)).astype(np.float64), part[-1:]

    def from_record(self, values: Sequence[FloatArray]) -> FloatArray:
        """Return parameters (k, n + 1) from recorded values."""
        return np.column_stack([np.argsort(values[0], axis=1), values[1]]).astype(np.float64)

    def models(self, parts: FloatArray, names: Sequence[str]) -> list[Mallows]:
        """Return the distributions of parameters (k, n + 1)."""
        return [
            Mallows(part[:-1].astype(np.int64), float(part[-1]), self.distance, names)
            for part in parts
        ]


# ---- kernels: a record owns items[ptr[r]:ptr[r + 1]], of which the first chosen[r] are ranked ----


@kernel
def luce_log_probs(
    items: IntArray, ptr: IntArray, chosen: IntArray, scores: FloatArray
) -> FloatArray:
    """Return log-probabilities of rankings, shape (records, k); scores (k, n)."""
    records, k = len(chosen), len(scores)
    result = np.zeros((records, k))
    for part in range(k):
        for r in range(records):
            top, total = -np.inf, 0.0
            for j in range(ptr[r + 1] - 1, ptr[r] - 1, -1):
                score = scores[part, items[j]]
                if score > top:  # the sum is kept relative to the largest score so far
                    total = total * np.exp(top - score) + 1.0 if top > -np.inf else 1.0
                    top = score
                else:
                    total += np.exp(score - top)
                if j - ptr[r] < chosen[r]:
                    result[r, part] += score - top - np.log(total)
    return result


@kernel
def luce_times(
    items: IntArray,
    ptr: IntArray,
    chosen: IntArray,
    members: IntArray,
    worths: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Count how often each item is chosen, and add up the times it waits for that, shapes (n,)."""
    n = len(worths)
    wins, times = np.zeros(n), np.zeros(n)
    for r in range(len(chosen)):
        voters = members[r]
        first, end = ptr[r], ptr[r + 1]
        if voters == 0 or end - first < 2:
            continue
        waited = 0.0
        for j in range(first, end):
            if j - first < chosen[r] and j < end - 1:
                # Sums from the end, so that nothing is left of what was subtracted.
                rest = 0.0
                for later in range(j, end):
                    rest += worths[items[later]]
                waited += rng.standard_gamma(float(voters)) / max(rest, 1e-300)
                wins[items[j]] += voters
            times[items[j]] += waited
    return wins, times


@kernel
def weigh_pairs(levels: IntArray, voters: FloatArray) -> FloatArray:
    """Count the voters who have the second item above the first, shape (n, n)."""
    rows, n = levels.shape
    result = np.zeros((n, n))
    for row in range(rows):
        for i in range(n):
            for j in range(n):
                if levels[row, i] > levels[row, j]:
                    result[i, j] += voters[row]
    return result
