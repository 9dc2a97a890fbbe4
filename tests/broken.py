"""Distributions with one mistake each, and the entry of `check_distribution` that must find it."""

import math
import random

import numpy as np

from permdist import Distribution, PlackettLuce, rankings
from permdist.distributions.base import Estimate

ITEMS = 4


class Uniform(Distribution):
    """A correct one to start from: all orders alike."""

    def log_prob(self, orders):
        return np.full(np.shape(orders)[:-1], -math.lgamma(self.n_items + 1))

    def _sample(self, size, rng):
        return rankings.random_orders(self.n_items, size, rng)


class Sorted(Distribution):
    """Another: Plackett-Luce from the two functions that a user writes."""

    def __init__(self, scores, drawn=None):
        super().__init__(len(scores))
        self._scores = np.array(scores, dtype=float)
        self._drawn = self._scores if drawn is None else np.array(drawn, dtype=float)

    def log_prob(self, orders):
        return PlackettLuce(self._scores).log_prob(orders)

    def _sample(self, size, rng):
        return np.argsort(-self._drawn - rng.gumbel(size=(size, self.n_items)), axis=1)


class CyclicShifts(Uniform):
    def _sample(self, size, rng):
        shifts = rng.integers(self.n_items, size=(size, 1))
        return (np.arange(self.n_items) + shifts) % self.n_items


class EvenOnly(Uniform):
    def _sample(self, size, rng):
        orders = super()._sample(size, rng)
        odd = rankings.kendall(orders, np.arange(self.n_items)) % 2 == 1
        orders[odd, :2] = orders[odd, 1::-1]
        return orders


class NoOrders(Uniform):
    def _sample(self, size, rng):
        return np.zeros((size, self.n_items), dtype=np.int64)


class RareNonOrder(Uniform):
    def _sample(self, size, rng):
        orders = super()._sample(size, rng)
        orders[-1:, 0] = orders[-1:, 1]
        return orders


class Floats(Uniform):
    def _sample(self, size, rng):
        return super()._sample(size, rng).astype(float)


class IgnoresSeed(Uniform):
    def _sample(self, size, rng):
        return super()._sample(size, np.random.default_rng())


class FixedSeed(Uniform):
    def _sample(self, size, rng):
        return super()._sample(size, np.random.default_rng(7))


class SeedsAfresh(Uniform):
    """Makes a generator of the first bits of the one given, and never moves that one on."""

    def _sample(self, size, rng):
        return super()._sample(size, np.random.default_rng(rng.bit_generator.state["state"]["inc"]))


class NumpyGlobal(Uniform):
    def _sample(self, size, rng):
        np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002
        return np.random.random((size, self.n_items)).argsort(axis=1)  # noqa: NPY002


class PythonGlobal(Uniform):
    def _sample(self, size, rng):
        random.seed(int(rng.integers(2**31)))
        drawn = [random.sample(range(self.n_items), self.n_items) for _ in range(size)]
        return np.array(drawn, dtype=np.int64).reshape(size, self.n_items)


class Ranks(Sorted):
    """Returns the positions of the items for the items at the positions."""

    def _sample(self, size, rng):
        return rankings.order_to_ranks(super()._sample(size, rng))


class Reversed(Sorted):
    def _sample(self, size, rng):
        return super()._sample(size, rng)[:, ::-1]


class OffByConstant(Sorted):
    def log_prob(self, orders):
        return super().log_prob(orders) + 0.01


class NotANumber(Uniform):
    def log_prob(self, orders):
        return super().log_prob(orders) * np.nan


class Tempered(Sorted):
    def log_prob(self, orders):
        every = rankings.enumerate_orders(self.n_items)
        total = np.logaddexp.reduce(1.2 * PlackettLuce(self._scores).log_prob(every))
        return 1.2 * super().log_prob(orders) - total


class OneShapeOnly(Sorted):
    """Takes orders of shape (batch, n) only."""

    def log_prob(self, orders):
        return np.array([super(OneShapeOnly, self).log_prob(row) for row in np.atleast_2d(orders)])


class WrongInBatches(Sorted):
    """Sorts the log-probabilities of a batch by mistake."""

    def log_prob(self, orders):
        return np.sort(super().log_prob(orders), axis=None).reshape(np.shape(orders)[:-1])[()]


class Excludes(Uniform):
    """Says that item 0 is never on top, and draws it there."""

    def log_prob(self, orders):
        top = np.asarray(orders)[..., 0] == 0
        share = -math.lgamma(self.n_items + 1) - math.log1p(-1 / self.n_items)
        return np.where(top, -np.inf, share)[()]


class WrongShape(Uniform):
    def sample(self, size=None, rng=None):
        return super().sample(size, rng).reshape(-1, self.n_items)


class TooMany(Uniform):
    def _sample(self, size, rng):
        return super()._sample(size + 1, rng)


class ModeWhenAlone(Sorted):
    """A single draw is always the mode."""

    def _sample(self, size, rng):
        drawn = super()._sample(size, rng)
        return np.argsort(-self._scores)[None] if size == 1 else drawn


class SharperWhenAlone(Sorted):
    """A single draw is one with twice the scores."""

    def _sample(self, size, rng):
        drawn = (2.0 if size == 1 else 1.0) * self._scores
        return np.argsort(-drawn - rng.gumbel(size=(size, self.n_items)), axis=1)


class ThreeWhenAlone(Uniform):
    """A single draw is one of three orders."""

    def _sample(self, size, rng):
        pool = rankings.random_orders(self.n_items, 3, rng=5)
        return pool[rng.integers(3, size=1)] if size == 1 else super()._sample(size, rng)


class Twice(Uniform):
    def _sample(self, size, rng):
        return np.repeat(super()._sample(size, rng), 2, axis=0)[:size]


class HalvesAlike(Uniform):
    def _sample(self, size, rng):
        half = super()._sample((size + 1) // 2, rng)
        return np.concatenate([half, half])[:size]


class BlocksAgain(Uniform):
    """Draws a block of orders, then the same block again."""

    def __init__(self, n_items, lag):
        super().__init__(n_items)
        self._lag = lag

    def _sample(self, size, rng):
        number = size // (2 * self._lag) + 1
        blocks = super()._sample(number * self._lag, rng).reshape(number, self._lag, -1)
        return np.concatenate([blocks, blocks], axis=1).reshape(-1, self.n_items)[:size]


class Chain(Uniform):
    """Each draw is the one before with two neighbors swapped."""

    def _sample(self, size, rng):
        drawn = np.empty((size, self.n_items), dtype=np.int64)
        order = rng.permutation(self.n_items)
        for row in drawn:
            k = rng.integers(self.n_items - 1)
            if rng.random() < 0.5:
                order[[k, k + 1]] = order[[k + 1, k]]
            row[:] = order
        return drawn


class Pool(Uniform):
    """Draws from a thousand orders that were drawn once and for all."""

    def _sample(self, size, rng):
        pool = rankings.random_orders(self.n_items, 1000, rng=5)
        return pool[rng.integers(len(pool), size=size)]


class Drifts(Sorted):
    """Changes its own scores with every draw."""

    def _sample(self, size, rng):
        drawn = super()._sample(size, rng)
        self._scores[0] += 0.01
        return drawn


class ChangesInput(Uniform):
    def log_prob(self, orders):
        orders.sort(axis=-1)
        return super().log_prob(orders)


class SharedMarginals(Uniform):
    def __init__(self, n_items):
        super().__init__(n_items)
        self._marginals = np.full((n_items, n_items), 1 / n_items)

    def rank_marginals(self):
        return self._marginals


class MarginalsTransposed(Sorted):
    def rank_marginals(self):
        return super().rank_marginals().T


class MarginalsNegative(Uniform):
    def rank_marginals(self):
        matrix = super().rank_marginals()
        matrix[:2, :2] += [[0.5, -0.5], [-0.5, 0.5]]
        return matrix


class PairwiseTransposed(Sorted):
    def pairwise(self):
        return super().pairwise().T


class PairwiseDiagonal(Sorted):
    def pairwise(self):
        return super().pairwise() + 0.5 * np.eye(self.n_items)


class TopOff(Sorted):
    def top_k(self, k):
        return self.rank_marginals()[:, : k - 1].sum(axis=1)


class EntropyNegative(Sorted):
    def entropy(self, **options):
        return Estimate(-super().entropy(**options))


class EntropyTooLarge(Sorted):
    def entropy(self, **options):
        return Estimate(math.lgamma(self.n_items + 1) + 0.001)


class EntropyInBits(Sorted):
    def entropy(self, **options):
        return Estimate(0.5 * super().entropy(**options))


class EntropyOff(Sorted):
    """Is off by a factor."""

    def __init__(self, scores, factor):
        super().__init__(scores)
        self._factor = factor

    def entropy(self, **options):
        return Estimate(self._factor * PlackettLuce(self._scores).entropy(**options))


class DivergenceTooLarge(Sorted):
    def kl(self, other, **options):
        return Estimate(1.5 * super().kl(other, **options))


class EstimatedDivergenceTooLarge(Sorted):
    def kl(self, other, **options):
        found = super().kl(other, **options)
        return Estimate(1.5 * found, 1.5 * found.standard_error, found.draws)


class ModeWrong(Sorted):
    def mode(self):
        return super().mode()[::-1]


class ExpectationWrong(Sorted):
    def expect(self, measure, labels=None, **options):
        return Estimate(super().expect(measure, labels, **options) ** 2)


class Raises(Sorted):
    """Has a bug in one method."""

    def entropy(self, **options):
        return [][0]


class DrawsRaise(Sorted):
    def _sample(self, size, rng):
        raise ZeroDivisionError("no luck")


SCORES = (1.5, 0.2, -0.4, -1.0)
TWELVE = np.r_[SCORES, SCORES, SCORES]
EVEN = np.linspace(-1.0, 1.0, 12)
PASSING = [Uniform(ITEMS), Uniform(1), Uniform(2), Sorted(SCORES), Uniform(12)]
BROKEN = [
    (CyclicShifts(3), "draws: every order"),
    (CyclicShifts(12), "draws: exchanges"),
    (EvenOnly(ITEMS), "draws: every order"),
    (EvenOnly(20), "draws: exchanges"),
    (NoOrders(3), "draws are orders"),
    (RareNonOrder(12), "draws are orders"),
    (Floats(ITEMS), "draws are orders"),
    (IgnoresSeed(ITEMS), "same seed"),
    (FixedSeed(ITEMS), "other seeds"),
    (FixedSeed(12), "other seeds"),
    (SeedsAfresh(ITEMS), "other seeds"),
    (NumpyGlobal(ITEMS), "no global state"),
    (PythonGlobal(ITEMS), "no global state"),
    (Ranks(SCORES), "draws: every order"),
    (Reversed(SCORES), "draws: pairs"),
    (OffByConstant(SCORES), "probabilities sum to one"),
    (NotANumber(ITEMS), "log-probabilities"),
    (Tempered(SCORES), "draws: exchanges"),
    (Tempered(SCORES), "draws: every order"),
    (Sorted(SCORES, np.add(SCORES, [0.25, 0, 0, 0])), "draws: every order"),
    (Sorted(np.r_[SCORES, SCORES, SCORES], np.zeros(12)), "draws: exchanges"),
    (OneShapeOnly(SCORES), "batches of orders"),
    (WrongInBatches(SCORES), "batches of orders"),
    (Excludes(ITEMS), "draws are possible"),
    (Excludes(12), "draws are possible"),
    (WrongShape(ITEMS), "shapes of draws"),
    (TooMany(ITEMS), "shapes of draws"),
    (ModeWhenAlone(SCORES), "draws: one at a time"),
    (ModeWhenAlone(np.r_[SCORES, SCORES, SCORES]), "draws: one at a time"),
    (SharperWhenAlone(TWELVE), "draws: one at a time"),
    (SharperWhenAlone(EVEN), "draws: one at a time"),
    *((ThreeWhenAlone(n), "draws: one at a time") for n in (3, 7, 12, 30)),
    (Twice(ITEMS), "draws: independence"),
    (Twice(20), "draws: independence"),
    (HalvesAlike(ITEMS), "draws: independence"),
    *((BlocksAgain(n, lag), "draws: independence") for n in (3, 20) for lag in (5, 50)),
    (Chain(ITEMS), "draws: independence"),
    (Pool(20), "draws: repeats"),
    (EvenOnly(7), "draws: repeats"),
    (Drifts(SCORES), "asking changes nothing"),
    (ChangesInput(ITEMS), "batches of orders"),
    (SharedMarginals(ITEMS), "asking changes nothing"),
    (MarginalsTransposed(SCORES), "marginals from probabilities"),
    (MarginalsNegative(ITEMS), "marginals doubly stochastic"),
    (PairwiseTransposed(SCORES), "pairwise from probabilities"),
    (PairwiseDiagonal(SCORES), "pairwise complementary"),
    (TopOff(SCORES), "top k from marginals"),
    (EntropyNegative(SCORES), "entropy within bounds"),
    (EntropyTooLarge(SCORES), "entropy within bounds"),
    (EntropyInBits(SCORES), "entropy from probabilities"),
    (EntropyOff(TWELVE, 1.01), "draws: log-probabilities"),
    (EntropyOff(TWELVE, 0.99), "draws: log-probabilities"),
    (EntropyOff(EVEN, 1.01), "draws: log-probabilities"),
    (DivergenceTooLarge(SCORES), "divergence from uniform"),
    (DivergenceTooLarge(TWELVE), "draws: divergence"),
    (EstimatedDivergenceTooLarge(TWELVE), "draws: divergence"),
    (EstimatedDivergenceTooLarge(np.linspace(-1.0, 1.0, 40)), "draws: divergence"),
    (ModeWrong(SCORES), "mode is most probable"),
    (ExpectationWrong(SCORES), "expectations from probabilities"),
    (Raises(SCORES), "entropy within bounds"),
    (DrawsRaise(SCORES), "draws are orders"),
]
NAMES = [f"{type(d).__name__}-{d.n_items}-{entry}" for d, entry in BROKEN]
