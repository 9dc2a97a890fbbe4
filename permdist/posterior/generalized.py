"""Posteriors of the generalized Mallows model with Kendall's distance: a spread for each stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.ballots import levels_of
from permdist.distances.levels import is_top
from permdist.distributions import GeneralizedMallows
from permdist.posterior.ballots import (
    observed_ballots,
    one_by_one,
    read_ballots,
    replicate_ballots,
)
from permdist.posterior.centers import CAYLEY, Energy, energy_of, joined, move_center
from permdist.posterior.mallows import BLOCKS, MallowsPrior
from permdist.posterior.priors import Flat
from permdist.posterior.problem import Problem, Variable
from permdist.posterior.spreads import Normalizer, ThetaStep
from permdist.rankings import order_to_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray
    from permdist.ballots import Ballots

MOST_ITEMS = 150  # the table of what stages say has n^3 entries


class GeneralizedMallowsPosterior(Problem):
    """The posterior of `GeneralizedMallows` with Kendall's distance: center, and a theta per stage.

    Given the center, the stages are independent. A list of k first places says something about k
    stages.

    Parameters
    ----------
    data : Ballots
        Full rankings or first places, without ties.
    prior : MallowsPrior or Gamma
        The thetas are independent. Their prior must be proper, as the last stages may have no
        ballots or no finite estimate.

    Examples
    --------
    >>> from permdist import Ballots
    >>> from permdist.posterior import Gamma
    >>> orders = GeneralizedMallows([2, 0, 1], [2.0, 0.3]).sample(200, rng=0)
    >>> problem = GeneralizedMallowsPosterior(Ballots.of(orders), Gamma(1.0, 1.0))
    >>> rng = np.random.default_rng(0)
    >>> draws, values = np.empty((1000, 5)), np.empty(1000)
    >>> _ = problem.advance(problem.start(rng), draws, values, rng)
    >>> draws[500:].mean(axis=0).round(1)
    array([1. , 2. , 0. , 1.9, 0.3])
    """

    def __init__(self, data: Ballots, prior: Any = None) -> None:
        self.data, self.n = data, data.n_items
        self.prior = MallowsPrior.of(prior)
        if self.n < 2 or self.n > MOST_ITEMS:
            raise ValueError(f"data: expected from 2 to {MOST_ITEMS} items, got {self.n}")
        if data.features is not None:
            raise ValueError("data: covariates have no coefficients in a Mallows model")
        if isinstance(self.prior.theta, Flat):
            raise ValueError(
                "prior: expected a proper prior of the thetas, got a flat one; set "
                "prior=Gamma(shape, rate)"
            )
        energy = self.prior.energy(self.n)
        if energy is None:
            raise ValueError(
                "prior: expected UniformCenter() or a Mallows model with Kendall's, Hamming's or "
                "Spearman's distance or the footrule as prior of the center"
            )
        self._center_energy = energy
        levels = levels_of(data)
        wrong = [row for row, each in enumerate(levels) if (each < 0).any() or not is_top(each)]
        if wrong:
            raise ValueError(
                "data: expected full rankings or first places out of all items without ties, got "
                f"something else at index {wrong[0]}"
            )
        # How often the first item is chosen at a stage while the second is still there.
        self._stages = np.zeros((self.n - 1, self.n, self.n))
        reached = np.zeros(self.n - 1)
        for level, weight in zip(levels, data.weights, strict=True):
            last = min(int(level.max(initial=0)), self.n - 1)
            chosen = np.argsort(level, kind="stable")[:last]
            for stage, item in enumerate(chosen.tolist()):
                self._stages[stage, item] += weight * (level > stage)
            reached[:last] += weight
        none = np.zeros(0)
        self._steps = []
        for stage, number in enumerate(reached.tolist()):
            coefs = np.zeros(self.n + 1)
            coefs[self.n - stage] = -number
            self._steps.append(ThetaStep(self.prior.theta, Normalizer(0, coefs, none, none)))

    @property
    def family(self) -> str:
        """What is estimated, in words."""
        return "generalized Mallows (kendall)"

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The center as ranks of the items, 0 at the top, and the thetas."""
        return (
            Variable("center", (self.n,), ("item",)),
            Variable("thetas", (self.n - 1,), ("stage",)),
        )

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """The names of the items, and the numbers of stages and ballots."""
        return {
            "item": list(self.data.names),
            "stage": list(range(self.n - 1)),
            "observation": list(range(self.data.n_ballots)),
        }

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Return a random center, and thetas of any order of magnitude."""
        thetas = np.exp(rng.uniform(-3.0, 1.0, self.n - 1))
        return np.concatenate([rng.permutation(self.n), thetas]).astype(np.float64)

    def advance(
        self,
        state: FloatArray,
        draws: FloatArray,
        log_density: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Make transitions of center and thetas. Parameters as in `Problem.advance`."""
        n, none = self.n, np.zeros((0, 0))
        order, thetas = state[:n].astype(np.int64), state[n:].copy()
        for row in range(len(draws)):
            # An item that is chosen costs theta for each item below that the center has above.
            above = np.tensordot(thetas, self._stages, axes=1).T
            cost = Energy(np.ascontiguousarray(above), none, np.zeros((0, n), np.int64),
                          np.zeros(0), CAYLEY)  # fmt: skip
            move_center(order, *joined(cost, 1.0, self._center_energy), BLOCKS, rng)
            ranks = order_to_ranks(order)
            passed = ranks[:, None] > ranks
            totals = (self._stages * passed).sum(axis=(1, 2))
            value = -float(energy_of(order, *self._center_energy))
            for stage, step in enumerate(self._steps):
                thetas[stage] = step(float(thetas[stage]), float(totals[stage]), rng)
                theta = float(thetas[stage])
                value += step.normalizer(theta) - theta * totals[stage] + step.log_prior(theta)
            log_density[row] = value
            draws[row, :n], draws[row, n:] = ranks, thetas
        return np.concatenate([order, thetas]).astype(np.float64)

    def log_likelihood(self, draws: FloatArray) -> FloatArray:
        """Return the log-probability of each ballot times its weight, shape (draws, ballots)."""
        if not self.data.n_ballots:
            return np.zeros((len(draws), 0))
        found = [self.model(draw).log_prob(self.data) for draw in draws]
        return np.array(found) * self.data.weights

    def prior_draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw from the prior, shape (size, self.size)."""
        centers = order_to_ranks(self.prior.draw_centers(size, self.n, rng))
        return np.column_stack([centers, self.prior.draw_thetas((size, self.n - 1), rng)])

    def replicate(self, draw: FloatArray, rng: np.random.Generator) -> Ballots:
        """Draw ballots with as many places as those observed; weights are numbers of ballots."""
        cast = one_by_one(self.data)
        return replicate_ballots(cast, self.model(draw).sample(cast.n_ballots, rng=rng))

    def model(self, draw: FloatArray) -> GeneralizedMallows:
        """Return the distribution of a draw, shape (size,)."""
        values = np.asarray(draw)
        center, thetas = np.argsort(values[: self.n]), values[self.n :]
        return GeneralizedMallows(center, thetas, "kendall", self.data.names)

    @property
    def observed(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """The levels of the items on each ballot, and the weights."""
        return observed_ballots(self.data)


def generalized_problem(
    model: Any,
    data: Any,
    prior: Any = None,
    *,
    distance: str | None = None,
    weights: ArrayLike | None = None,
    n_items: int | None = None,
    subset: bool | None = None,
    names: Sequence[str] | None = None,
) -> GeneralizedMallowsPosterior:
    """Return the posterior of `GeneralizedMallows`, as `permdist.posterior.sample` makes it.

    Parameters
    ----------
    model : type or GeneralizedMallows
    data : Ballots, or what `permdist.Ballots.of` accepts, or None
        Without ballots (and with `n_items`) the posterior is the prior.
    prior : MallowsPrior or Gamma
    distance : {"kendall"}, optional
        Posteriors with Cayley's distance are not known.
    weights, n_items, subset, names
        As in `permdist.Ballots.of`.
    """
    if isinstance(model, GeneralizedMallows):
        distance = model.distance if distance is None else distance
        n_items = model.n_items if n_items is None else n_items
    if distance not in (None, "kendall"):
        raise ValueError(f"distance: expected 'kendall' for this posterior, got {distance!r}")
    ballots = read_ballots(data, weights=weights, n_items=n_items, subset=subset, names=names)
    return GeneralizedMallowsPosterior(ballots, prior)
