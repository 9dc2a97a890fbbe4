"""Checks of draws: that they are orders, follow the distribution, and reproduce by seed."""

from __future__ import annotations

import contextlib
import math
import random
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from permdist._check import as_rng
from permdist.distributions import Distribution, GaussianScores
from permdist.distributions.base import MAX_LISTED
from permdist.identities import chance
from permdist.identities.answers import Answers, Wrong, proper_orders
from permdist.measures import parse
from permdist.rankings import kendall, order_to_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from permdist._typing import FloatArray, IntArray

FEW = 1000  # draws that are compared with those of another seed
SINGLE = 500  # draws that are asked for one at a time
LAGS = 100  # distances up to this one, and some beyond, at which draws are compared
FEW_ITEMS = 40  # whose places are compared at most distances
ENOUGH = 20  # quadruples of draws that a test takes
MORE = 3  # times as many draws again where only draws can tell an entropy
COSTLY = 200  # log-probabilities, where each is a nested integral
UNSEEN = 23.0  # nats: less probable orders than exp(-23) / n! add nothing to the entropy
SURE = 1e-9  # how likely an estimate may be farther off than it is taken to be
NEVER = 32.0  # nats: less probable orders than exp(-32) / n! are never drawn
MOST_PAIRS = 2 * 10**8  # comparisons of two items
MEASURES = ("ap", "ndcg", "p@1", "rr", "auc", "tau")


Tested = tuple[float, int]  # a p-value, and the number of draws it comes from


class Draws(Answers):
    """A distribution, what it said, and what it drew.

    Parameters
    ----------
    dist : Distribution
    size : int
        The number of draws to check.
    rng : Generator
        The source of all seeds.
    slack : float
        By how much an exact answer may be off.
    """

    def __init__(
        self, dist: Distribution, size: int, rng: np.random.Generator, slack: float
    ) -> None:
        super().__init__(dist)
        self.size, self.slack = size, slack
        first, second, third, own, fourth = (int(seed) for seed in rng.integers(2**62, size=5))
        self.seeds = first, second, third, fourth
        self.own = own

    @property
    def is_listed(self) -> bool:
        """Whether all orders are listed."""
        return self.n <= MAX_LISTED

    def choices(self, number: int) -> np.random.Generator:
        """Return a generator for what the check itself leaves to chance, one for each claim."""
        return np.random.default_rng([self.own, number])

    def sample(self, size: Any, rng: Any) -> IntArray:
        """Draw orders that are orders and have the right shape."""
        batch = () if size is None else size if isinstance(size, tuple) else (size,)
        return proper_orders(f"sample({size})", self.dist.sample(size, rng), batch, self.n)

    @cached_property
    def orders_drawn(self) -> IntArray:
        """The draws, shape (size, n)."""
        return self.sample(self.size, self.seeds[0])

    @cached_property
    def weighed(self) -> IntArray:
        """The draws whose log-probability is looked at: all, unless that takes too long."""
        costly = isinstance(self.dist, GaussianScores) and not self.is_listed
        return self.orders_drawn[: COSTLY if costly else self.size]

    @cached_property
    def logs_drawn(self) -> FloatArray:
        """Their log-probabilities."""
        return self.weigh(self.weighed)

    def weigh(self, orders: IntArray) -> FloatArray:
        """Return log-probabilities of orders, from the list of all of them if there is one."""
        return self.logs[self.places(orders)] if self.is_listed else self.log_prob(orders)

    def places(self, orders: IntArray) -> IntArray:
        """Find orders in the list of all of them."""
        return np.searchsorted(self._keys, self._key(orders))

    def _key(self, orders: IntArray) -> IntArray:
        # Read as numbers, orders are listed in ascending sequence.
        return orders @ self.n ** np.arange(self.n)[::-1]

    @cached_property
    def _keys(self) -> IntArray:
        return self._key(self.orders)

    def repeated(self, orders: IntArray) -> float:
        """Return the chance to draw the same orders once more."""
        kept = orders[: len(self.weighed)]
        return math.exp(min(0.0, float(self.weigh(kept).sum())))


# ---- exact claims: residuals -------------------------------------------------------------------


def are_orders(given: Draws) -> float:
    """Look at every draw of a large batch."""
    _ = given.orders_drawn
    return 0.0


def have_the_shape(given: Draws) -> float:
    """Draw one order, none, several, and a table of them."""
    rng = np.random.default_rng(given.seeds[1])
    for size in (None, (), 0, 1, 3, (2, 3), (0, 2)):
        given.sample(size, rng)
    return 0.0


def are_possible(given: Draws) -> float:
    """Return the share of draws with probability 0."""
    return float(np.mean(given.logs_drawn == -np.inf))


def obey_the_seed(given: Draws) -> float:
    """Draw with a seed, with it again, and with a generator made from it."""
    seed, size = given.seeds[1], min(FEW, given.size)
    first = given.sample(size, seed)
    again, third = given.sample(size, seed), given.sample(size, as_rng(seed))
    return float(max(np.mean(first != again), np.mean(first != third)))


def leave_global_state_alone(given: Draws) -> float:
    """Compare the state of the global generators before and after."""
    with same_global_state() as (before, numpys):
        given.dist.sample(3, given.seeds[1])
        given.dist.sample(None, np.random.default_rng(given.seeds[1]))
        if random.getstate() != before:
            raise Wrong("sample: it draws from the global generator of Python's random")
        if repr(np.random.get_state()) != repr(numpys):  # noqa: NPY002
            raise Wrong("sample: it draws from numpy's global generator; use the one given")
    return 0.0


@contextlib.contextmanager
def same_global_state() -> Iterator[tuple[Any, Any]]:
    """Put the global generators back to where they were, whatever a user's code does to them."""
    pythons, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield pythons, numpys
    finally:
        random.setstate(pythons)
        np.random.set_state(numpys)  # noqa: NPY002


# ---- claims about chance: p-values -------------------------------------------------------------


def differ_by_seed(given: Draws) -> Tested:
    """Draw with two seeds, and twice with one generator; return the chance of no difference."""
    size = min(FEW, given.size)
    rng = np.random.default_rng(given.seeds[2])
    first, second, third = (
        given.sample(size, given.seeds[1]),
        *(given.sample(size, rng) for _ in range(2)),
    )
    pairs = [(first, second), (second, third)]
    return min(given.repeated(a) if (a == b).all() else 1.0 for a, b in pairs), size


def follow_the_probabilities(given: Draws) -> Tested:
    """Count every order."""
    return _whole_law(given, given.orders_drawn, given.choices(0))


def follow_one_at_a_time(given: Draws) -> Tested:
    """Count what single draws from one generator are, and compare them with those of a batch.

    If both have the same law, a single draw and one of the batch can change places: the difference
    of their log-probabilities, and of the places of each item, has either sign.
    """
    rng = np.random.default_rng(given.seeds[1])
    drawn = np.stack([given.sample(None, rng) for _ in range(min(SINGLE, len(given.weighed)))])
    law = _whole_law if given.is_listed else _swaps
    logs = np.clip(np.stack([given.weigh(drawn), given.logs_drawn[: len(drawn)]]), -1e6, None)
    ranks = order_to_ranks(drawn), order_to_ranks(given.weighed[: len(drawn)])
    apart = np.column_stack([logs[0] - logs[1], ranks[0] - ranks[1]])
    found = [
        law(given, drawn, given.choices(1))[0],
        _repeats(given, given.choices(4).permutation(drawn)),
        chance.symmetric(apart),
    ]
    return chance.bonferroni(found), len(drawn)


def follow_swaps(given: Draws) -> Tested:
    """Exchange two items of each draw, and compare which of the two orders was drawn."""
    return _swaps(given, given.weighed, given.choices(2))


def follow_the_marginals(given: Draws) -> Tested:
    """Count the positions of each item."""
    counts = np.zeros((given.n, given.n))
    np.add.at(counts, (given.orders_drawn, np.arange(given.n)), 1.0)
    return chance.binomial(counts, given.size, given.marginals, given.slack), given.size


def follow_the_pairs(given: Draws) -> Tested:
    """Count which of two items is above."""
    size = max(100, min(given.size, MOST_PAIRS // given.n**2))
    ranks, upper = order_to_ranks(given.orders_drawn[:size]), np.triu_indices(given.n, 1)
    counts = np.stack([(row[:, None] < ranks).sum(axis=0) for row in ranks.T])
    return chance.binomial(counts[upper], size, given.pairwise[upper], given.slack), size


def follow_the_entropy(given: Draws) -> Tested:
    """Compare the mean of -log Pr of the draws with the entropy."""
    entropy, logs = given.entropy, given.logs_drawn
    if not given.is_listed and len(logs) == given.size:
        more = given.sample(MORE * given.size, given.seeds[3])
        logs = np.concatenate([logs, given.weigh(more)])
    # Orders less probable than exp(-UNSEEN) / n! have a part of at most exp(-UNSEEN) in it.
    largest = math.lgamma(given.n + 1) + UNSEEN
    slack = largest * (math.exp(-UNSEEN) + given.slack)
    return chance.mean(np.clip(-logs, 0.0, largest), entropy, 0.0, largest, slack), len(logs)


def follow_the_divergence(given: Draws) -> Tested:
    """Compare the mean of log Pr over that of all orders alike with the divergence from these."""
    logs, width = given.logs_drawn, math.lgamma(given.n + 1) + NEVER
    size, kl = len(logs), given.divergence_from_uniform(len(logs))
    values = np.clip(logs + math.lgamma(given.n + 1), -NEVER, width - NEVER)
    slack = width * (math.exp(-NEVER) + given.slack)
    if number := getattr(kl, "draws", 0):
        # It is a mean of other draws, whose variance these bound (Maurer and Pontil, 2009).
        nats = math.log(2.0 / SURE)
        spread = float(values.std(ddof=1)) + width * math.sqrt(2.0 * nats / (size - 1))
        slack += spread * math.sqrt(2.0 * nats / number) + width * nats / (3.0 * number)
    return chance.mean(values, float(kl), -NEVER, width - NEVER, slack), size


def follow_expectations(given: Draws) -> Tested:
    """Compare means of measures over the draws with `expect`."""
    labels = some_labels(given.n)
    worst = 1.0
    for name in MEASURES:
        expected = float(given.dist.expect(name, labels, method="exact"))
        values = np.asarray(parse(name)(given.orders_drawn, labels), dtype=np.float64)
        low = -1.0 if name == "tau" else 0.0
        found = chance.mean(values, expected, low, 1.0, given.slack)
        worst = float(np.minimum(worst, found * len(MEASURES)))
    return worst, given.size


def repeat_by_chance(given: Draws) -> Tested:
    """Count the draws of one half that the other half has, too, halved at random."""
    drawn = given.choices(3).permutation(given.weighed)
    return _repeats(given, drawn), len(drawn) // 2


def _repeats(given: Draws, drawn: IntArray) -> float:
    first, second = np.array_split(drawn, 2)
    different = np.unique(first, axis=0)
    probability = float(np.exp(np.minimum(given.weigh(different), 0.0)).sum())
    both = np.unique(np.concatenate([different, second]), axis=0, return_inverse=True)[1].ravel()
    seen = int(np.isin(both[len(different) :], both[: len(different)]).sum())
    return chance.binomial([seen], len(second), [probability], given.slack)


def are_independent(given: Draws) -> Tested:
    """Compare draws with later ones, at distances from 1 to half of them.

    If four draws a, b, c, d are independent, then b and c can change places: likenesses of (a, b)
    and of (c, d), less those of (a, c) and of (b, d), are as likely positive as negative. Draws a
    and b, and c and d, are one lag apart; no draw is in two of these quadruples of a test.
    """
    size, n = given.size, given.n
    ranks = order_to_ranks(given.orders_drawn).astype(np.float64)
    # Equal orders have equal keys. A few items are enough where there are so many tests.
    keys = given.orders_drawn @ given.choices(5).integers(2**62, size=n)
    few = ranks[:, given.choices(6).permutation(n)[:FEW_ITEMS]]
    rounder = {k * 10**p for k in (1, 2, 5) for p in range(2, 9)} | {2**p for p in range(7, 30)}
    rounder |= {size // parts for parts in range(2, 11)}
    lags = [*range(1, LAGS + 1), *sorted(lag for lag in rounder if lag > LAGS)]
    columns = []
    for lag in lags:
        values = ranks if lag in (1, size // 2) else few
        for phase in (0, lag):
            start = np.arange(phase, size - lag)
            start = start[(start - phase) % (2 * lag) < lag]
            half = len(start) // 2
            if half < ENOUGH:
                continue
            a, c = start[:half], start[half : 2 * half]
            b, d = a + lag, c + lag
            columns.append(((values[a] - values[d]) * (values[b] - values[c])).sum(axis=1))
            same = [(keys[x] == keys[y]).astype(float) for x, y in ((a, b), (c, d), (a, c), (b, d))]
            columns.append(same[0] + same[1] - same[2] - same[3])
    return chance.bonferroni([chance.symmetric(one[:, None]) for one in columns]), size


def some_labels(n: int) -> IntArray:
    """Return labels with every grade that so many items can have."""
    return np.arange(1, n + 1) % 3


def _whole_law(given: Draws, drawn: IntArray, rng: np.random.Generator) -> Tested:
    counts = np.bincount(given.places(drawn), minlength=len(given.orders))
    return chance.multinomial(counts, given.chances, rng), len(drawn)


def _swaps(given: Draws, drawn: IntArray, rng: np.random.Generator) -> Tested:
    """Exchange two items of each draw at random and look which of the two orders came.

    Whatever the law, given that one of the two was drawn, log_prob alone says with which chance
    it was which. Sums over pairs, items and places, of the more probable one, and of the even
    permutation: together they determine the law.
    """
    n, size = given.n, len(drawn)
    if n < 2:
        return 1.0, size
    rows = np.arange(size)
    first = rng.integers(n - 1, size=size)
    second = np.where(rng.random(size) < 0.5, first + 1, rng.integers(first + 1, n))
    swapped = drawn.copy()
    swapped[rows, first], swapped[rows, second] = drawn[rows, second], drawn[rows, first]
    here, there = given.weigh(drawn), given.weigh(swapped)
    known = here > -np.inf
    drawn, swapped, first = drawn[known], swapped[known], first[known]
    second, here, there = second[known], here[known], there[known]
    rows = rows[: len(drawn)]
    if not len(rows):
        return 1.0, size
    # 1 - Pr(drawn | one of the two); the sign says whether the first named item is on top.
    missed = expit(there - here)
    spread = missed * (1.0 - missed)
    top, bottom = drawn[rows, first], drawn[rows, second]
    sign = np.where(top < bottom, 1.0, -1.0)
    low, high = np.minimum(top, bottom), np.maximum(top, bottom)
    totals, variances = [], []

    def add(signs: FloatArray, groups: IntArray, number: int) -> None:
        times = len(groups) // len(missed)  # each draw counts for one group, or for two
        totals.append(np.bincount(groups, signs * np.tile(missed, times), minlength=number))
        variances.append(np.bincount(groups, np.tile(spread, times), minlength=number))

    everywhere = np.zeros(len(drawn), dtype=np.int64)
    add(np.sign(here - there), everywhere, 1)
    add(1.0 - 2.0 * (kendall(drawn, np.arange(n)) % 2), everywhere, 1)
    add(sign, low * n + high, n * n)
    add(sign, first, n)
    add(np.concatenate([sign, -sign]), np.concatenate([low, high]), n)
    return chance.centered(np.concatenate(totals), np.concatenate(variances)), size
