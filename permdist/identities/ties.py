"""Claims about rankings with ties, tried on Davidson-Luce models."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.distributions import DavidsonLuce, PlackettLuce
from permdist.identities.catalogue import claims_of, max_of, relative
from permdist.rankings import BucketOrder, enumerate_orders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from permdist._typing import FloatArray

_definition = claims_of("")
_davidson = claims_of("Davidson (1970)")


def _models() -> Any:
    from hypothesis import strategies as st

    from permdist import strategies

    model = st.one_of(
        strategies.davidson_luces(min_items=2, max_items=4),
        strategies.davidson_luces(min_items=2, max_items=4, wide=True),
    )
    return st.fixed_dictionaries({"model": model})


@lru_cache(maxsize=8)
def _rankings(n: int) -> list[BucketOrder]:
    """List all rankings of n items with ties."""

    def below(items: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
        if not items:
            yield []
        for size in range(1, len(items) + 1):
            for first in itertools.combinations(items, size):
                rest = tuple(item for item in items if item not in first)
                for others in below(rest):
                    yield [first, *others]

    return [BucketOrder(buckets) for buckets in below(tuple(range(n)))]


def _chances(model: DavidsonLuce) -> FloatArray:
    return np.exp(model.log_prob(_rankings(model.n_items)))


@_definition("the probabilities of all rankings with ties add up to 1", "definition", _models)
def tied_rankings_sum_to_one(model: DavidsonLuce) -> float:
    """Add up over all rankings with ties."""
    return relative(_chances(model).sum(), 1.0)


@_davidson(
    "of two items alone: Pr(a above b) : Pr(tie) : Pr(b above a) = a : delta sqrt(a b) : b",
    "",
    _models,
)
def davidson_pairs(model: DavidsonLuce) -> float:
    """Compare a contest of two, each relative to the larger worth, with the formula."""
    worst = 0.0
    delta = np.exp(model.ties[0]) if len(model.ties) else 0.0
    for a, b in itertools.permutations(range(model.n_items), 2):
        with np.errstate(over="ignore"):
            root = np.exp(-abs(model.scores[a] - model.scores[b]) / 2.0)
        better, worse = (1.0, root**2) if model.scores[a] >= model.scores[b] else (root**2, 1.0)
        truth = np.array([better, delta * root, worse])
        worst = max_of(worst, relative(model.pair_chances(a, b), truth / truth.sum()))
    return worst


@_definition(
    "in any company, {a}, {b} and {a, b} come first with the odds of a contest of a and b",
    "independence of irrelevant alternatives",
    _models,
)
def tied_alternatives_are_independent(model: DavidsonLuce) -> float:
    """Compare the chances to be the first bucket with those of the pair alone, crosswise."""
    first: dict[tuple[int, ...], float] = {}
    for ranking, chance in zip(_rankings(model.n_items), _chances(model), strict=True):
        key = ranking.buckets[0]
        first[key] = first.get(key, 0.0) + float(chance)
    worst = 0.0
    for a, b in itertools.combinations(range(model.n_items), 2):
        here = np.array([first[a,], first[a, b], first[b,]])
        alone = np.array(model.pair_chances(a, b))
        worst = max_of(worst, relative(here * alone.sum(), alone * here.sum()))
    return worst


@_definition("with deltas of 0 it is the Plackett-Luce distribution", "definition", _models)
def no_ties_is_plackett_luce(model: DavidsonLuce) -> float:
    """Compare the probabilities of all orders, and those of rankings with ties with 0."""
    without = DavidsonLuce(model.scores, np.full(len(model.ties), -np.inf))
    orders = enumerate_orders(model.n_items)
    truth = PlackettLuce(model.scores).log_prob(orders)
    tied = [ranking for ranking in _rankings(model.n_items) if not ranking.is_total]
    impossible = float(np.exp(without.log_prob(tied)).max(initial=0.0))
    return max_of(relative(without.log_prob(orders), truth), impossible)


@_definition("the gradient of log Pr has mean 0", "the score function", _models)
def tied_gradients_have_mean_zero(model: DavidsonLuce) -> float:
    """Average the gradients by scores and deltas over all rankings that are possible."""
    logs = model.log_prob(_rankings(model.n_items))
    possible = [
        ranking
        for ranking, log in zip(_rankings(model.n_items), logs, strict=True)
        if log > -np.inf
    ]
    slopes = model.log_prob_gradient(possible)
    chances = np.exp(logs[logs > -np.inf])
    return max_of(
        np.abs(chances @ slopes.scores).max(), np.abs(chances @ slopes.ties).max(initial=0.0)
    )


@_definition("an item is above another, below it or tied with it", "definition", _models)
def tied_pairs_add_up(model: DavidsonLuce) -> float:
    """Add up the three chances of each pair, and compare each with the sum over all rankings."""
    above, tied = np.asarray(model.pairwise()), np.asarray(model.pairwise_ties())
    numbers = np.array([ranking.ranks("dense") for ranking in _rankings(model.n_items)])
    listed = np.einsum("r,rij->ij", _chances(model), numbers[:, :, None] < numbers[:, None, :])
    sums = relative(above + above.T + tied, 1.0 - np.eye(model.n_items))
    return max_of(sums, relative(above, listed))


@_definition(
    "the expected rank of an item is the number of items expected above it, and half of those tied",
    "linearity of expectation",
    _models,
)
def tied_ranks_from_pairs(model: DavidsonLuce) -> float:
    """Compare expected ranks from marginals, ties shared, and from chances of pairs."""
    marginals = np.asarray(model.rank_marginals())
    sums = np.concatenate([marginals.sum(axis=0), marginals.sum(axis=1)])
    above = np.asarray(model.pairwise()).sum(axis=0)
    tied = np.asarray(model.pairwise_ties()).sum(axis=0)
    ranks = relative(marginals @ np.arange(model.n_items), above + 0.5 * tied)
    return max_of(ranks, relative(sums, np.ones_like(sums)))


@_definition("no ranking with ties is more probable than the mode", "definition", _models)
def tied_mode_is_most_probable(model: DavidsonLuce) -> float:
    """Compare the mode's log-probability with the largest one."""
    return relative(model.log_prob(model.mode()), model.log_prob(_rankings(model.n_items)).max())


@_definition("the entropy of rankings with ties is the mean of -log Pr", "definition", _models)
def tied_entropy(model: DavidsonLuce) -> float:
    """Compare `entropy` with the sum over all rankings with ties."""
    logs = model.log_prob(_rankings(model.n_items))
    chances = np.exp(logs)
    return relative(float(model.entropy()), -(chances[chances > 0] @ logs[chances > 0]))
