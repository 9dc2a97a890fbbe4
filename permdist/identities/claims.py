"""The entries of `check_distribution`, one after the other."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from permdist.distributions.base import NotExactError
from permdist.identities import draws as drawn
from permdist.identities import general
from permdist.identities.answers import Wrong
from permdist.identities.catalogue import max_of, relative

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist._typing import IntArray
    from permdist.identities.draws import Draws


class Claim(NamedTuple):
    """One entry: its name, what it says, and the function that returns a residual or a p-value.

    `where` says for which distributions: all, those whose orders are listed, or those with more
    items; `chance` that the function returns a p-value.
    """

    name: str
    statement: str
    check: Callable[[Draws], Any]
    chance: bool = False
    where: str = "all"


def _batches(given: Draws) -> float:
    """Compare the log-probabilities of a table of orders with those of each order."""
    orders = some_orders(given.n)
    table = orders[:6].reshape(2, 3, given.n)
    single = np.array([given.log_prob(order) for order in orders])
    given.log_prob(table[:0])
    worst = max_of(_entrywise(given.log_prob(orders), single), 0.0)
    mine = table.copy()
    together = np.asarray(given.dist.log_prob(mine))
    if not np.array_equal(mine, table):
        raise Wrong("log_prob: it changes the array of orders that it is given")
    return max_of(worst, _entrywise(together, single[:6].reshape(2, 3)))


def _log_probabilities(given: Draws) -> float:
    """Return the largest log-probability, if it is above 0."""
    known = given.logs if given.is_listed else given.log_prob(some_orders(given.n))
    return max_of(float(known.max()), 0.0)


def _mode_beyond(given: Draws) -> float:
    """Compare the mode with draws, and with all orders that differ by a swap of neighbors."""
    mode, best = given.mode, given.log_prob(given.mode)
    near = np.tile(mode, (given.n - 1, 1))
    rows = np.arange(given.n - 1)
    near[rows, rows], near[rows, rows + 1] = mode[1:], mode[:-1]
    others = given.log_prob(near)
    with contextlib.suppress(NotExactError):
        others = np.concatenate([others, given.logs_drawn])
    return max_of(float(others.max() - best) / max(1.0, abs(float(best))), 0.0)


def _expectations(given: Draws) -> float:
    labels = drawn.some_labels(given.n)
    return max_of(
        *(
            general.expectations_from_probabilities(given, labels, measure)
            for measure in drawn.MEASURES
        )
    )


def _divergence(given: Draws) -> float:
    return abs(float(given.dist.kl(given.dist, method="exact")))


def _divergence_from_uniform(given: Draws) -> float:
    """Compare it with what the entropy leaves of log n!."""
    kl = float(given.divergence_from_uniform())
    if given.is_listed:
        here = given.chances > 0.0
        entropy = -float(given.chances[here] @ given.logs[here])
    else:
        entropy = given.entropy
    return relative(kl, math.lgamma(given.n + 1) - entropy)


def some_orders(n: int) -> IntArray:
    """Return a few orders, always the same."""
    rng = np.random.default_rng(n)
    return np.stack([np.arange(n), np.arange(n)[::-1], *(rng.permutation(n) for _ in range(6))])


def _entrywise(ours: object, truth: object) -> float:
    """Return the largest difference, each relative to its own number, and at least to 1."""
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    scale = np.where(np.isfinite(b), np.maximum(1.0, np.abs(b)), 1.0)
    return relative(a / scale, b / scale)


CLAIMS = (
    Claim("log-probabilities", "they are numbers of at most 0, or -inf", _log_probabilities),
    Claim("batches of orders", "log_prob takes any batch shape, and changes no input", _batches),
    Claim(
        "probabilities sum to one",
        "the probabilities of all orders add up to 1",
        general.probabilities_sum_to_one,
        where="listed",
    ),
    Claim("draws are orders", "each item occurs once in each draw", drawn.are_orders),
    Claim("shapes of draws", "draws have the batch shape asked for", drawn.have_the_shape),
    Claim("draws are possible", "no draw has probability 0", drawn.are_possible),
    Claim("same seed", "the same seed draws the same", drawn.obey_the_seed),
    Claim(
        "other seeds",
        "another seed, or the same generator again, draws something else",
        drawn.differ_by_seed,
        chance=True,
    ),
    Claim(
        "no global state",
        "draws leave the global random generators alone",
        drawn.leave_global_state_alone,
    ),
    Claim(
        "draws: every order",
        "each order is drawn as often as its probability says",
        drawn.follow_the_probabilities,
        chance=True,
        where="listed",
    ),
    Claim(
        "draws: exchanges",
        "of two orders that differ by an exchange, each is drawn as often as log_prob says",
        drawn.follow_swaps,
        chance=True,
    ),
    Claim(
        "draws: one at a time",
        "single draws have the same law",
        drawn.follow_one_at_a_time,
        chance=True,
    ),
    Claim(
        "draws: positions",
        "items are drawn at positions as often as the rank marginals say",
        drawn.follow_the_marginals,
        chance=True,
    ),
    Claim(
        "draws: pairs",
        "items are drawn above others as often as the pairwise chances say",
        drawn.follow_the_pairs,
        chance=True,
    ),
    Claim(
        "draws: log-probabilities",
        "the mean of -log Pr of the draws is the entropy",
        drawn.follow_the_entropy,
        chance=True,
    ),
    Claim(
        "draws: divergence",
        "the mean of log n! Pr of the draws is the divergence from all orders alike",
        drawn.follow_the_divergence,
        chance=True,
        where="beyond",
    ),
    Claim(
        "draws: measures",
        "means of measures over the draws are their expectations",
        drawn.follow_expectations,
        chance=True,
        where="beyond",
    ),
    Claim(
        "draws: repeats",
        "orders drawn before come again as often as their probabilities say",
        drawn.repeat_by_chance,
        chance=True,
    ),
    Claim(
        "draws: independence",
        "draws tell nothing about later ones",
        drawn.are_independent,
        chance=True,
    ),
    Claim(
        "marginals doubly stochastic",
        "every item has one position, every position one item",
        general.marginals_doubly_stochastic,
    ),
    Claim(
        "marginals from probabilities",
        "rank marginals are sums of probabilities of orders",
        general.marginals_from_probabilities,
        where="listed",
    ),
    Claim(
        "top k from marginals",
        "the chance to be among the first k is a sum of rank marginals",
        general.top_k_from_marginals,
    ),
    Claim(
        "pairwise complementary",
        "one of two items is above the other; 0 on the diagonal",
        general.pairwise_complementary,
    ),
    Claim(
        "pairwise from probabilities",
        "pairwise chances are sums of probabilities of orders",
        general.pairwise_from_probabilities,
        where="listed",
    ),
    Claim(
        "ranks from pairs",
        "the expected rank of an item is the number of items expected above it",
        general.ranks_from_pairs,
    ),
    Claim(
        "expectations from probabilities",
        "the expectation of a measure is its mean over all orders",
        _expectations,
        where="listed",
    ),
    Claim("entropy within bounds", "it is between 0 and log n!", general.entropy_within_bounds),
    Claim(
        "entropy from probabilities",
        "the entropy is the mean of -log Pr",
        general.entropy_from_probabilities,
        where="listed",
    ),
    Claim("divergence from itself", "its divergence from itself is 0", _divergence),
    Claim(
        "divergence from uniform",
        "its divergence from all orders alike is log n! less the entropy",
        _divergence_from_uniform,
    ),
    Claim(
        "mode is most probable",
        "no order is more probable than the mode",
        general.mode_is_most_probable,
        where="listed",
    ),
    Claim(
        "mode is most probable",
        "no draw, and no order nearby, is more probable than the mode",
        _mode_beyond,
        where="beyond",
    ),
)
