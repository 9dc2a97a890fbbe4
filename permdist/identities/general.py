"""Claims that hold for every distribution over orders, tried on all of ours."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.distributions.drawn import ask
from permdist.identities.answers import Answers
from permdist.identities.catalogue import claims_of, max_of, relative

if TYPE_CHECKING:
    from collections.abc import Callable

    from permdist.distributions import Distribution


def _distributions() -> Any:
    from hypothesis import strategies as st

    from permdist import strategies

    ordinary = [
        strategies.plackett_luces(min_items=2, max_items=5),
        strategies.gaussian_scores(min_items=2, max_items=5),
        strategies.good_bads(min_items=2, max_items=5),
        strategies.mallows(min_items=2, max_items=5),
        strategies.generalized_mallows(min_items=2, max_items=5),
        strategies.mixtures(min_items=2, max_items=5),
    ]
    wide = [
        strategies.plackett_luces(min_items=2, max_items=5, wide=True),
        strategies.gaussian_scores(min_items=2, max_items=4, wide=True),
        strategies.good_bads(min_items=2, max_items=5, wide=True),
        strategies.mallows(min_items=2, max_items=5, wide=True),
        strategies.generalized_mallows(min_items=2, max_items=5, wide=True),
    ]
    return st.fixed_dictionaries({"dist": st.one_of(*ordinary, *wide)})


def _with_labels() -> Any:
    from hypothesis import strategies as st

    from permdist import strategies

    def labelled(instance: dict[str, Any]) -> Any:
        n = instance["dist"].n_items
        label = strategies.labels(n_items=n, min_relevant=1, min_irrelevant=1)
        measure = st.sampled_from(["ap", "ndcg", "ndcg@2", "p@1", "rr", "auc", "tau"])
        return st.fixed_dictionaries(
            {"dist": st.just(instance["dist"]), "labels": label, "measure": measure}
        )

    return _distributions().flatmap(labelled)


def _claim(
    statement: str, source: str = "definition", instances: Callable[[], Any] = _distributions
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Add a claim about the answers of any distribution, named as its function."""

    def register(residual: Callable[..., float]) -> Callable[..., float]:
        @functools.wraps(residual)
        def of_distribution(dist: Distribution | Answers, *more: Any, **named: Any) -> float:
            return residual(Answers.of(dist), *more, **named)

        return claims_of("")(statement, source, instances)(of_distribution)

    return register


@_claim("the probabilities of all orders add up to 1")
def probabilities_sum_to_one(given: Answers) -> float:
    """Add up over all orders."""
    return relative(given.chances.sum(), 1.0)


@_claim("every item has one position, every position one item")
def marginals_doubly_stochastic(given: Answers) -> float:
    """Add up rank marginals both ways, and look for one outside 0 to 1."""
    marginals = given.marginals
    sums = np.concatenate([marginals.sum(axis=0), marginals.sum(axis=1)])
    return max_of(relative(sums, np.ones_like(sums)), _outside(marginals))


@_claim("P[i above j] + P[j above i] = 1")
def pairwise_complementary(given: Answers) -> float:
    """Add up both ways to order each pair, and look for a chance outside 0 to 1."""
    pairwise = given.pairwise
    sums = relative(pairwise + pairwise.T, 1.0 - np.eye(len(pairwise)))
    return max_of(sums, _outside(pairwise))


@_claim(
    "the expected rank of an item is the number of items expected above it",
    "linearity of expectation",
)
def ranks_from_pairs(given: Answers) -> float:
    """Compare expected ranks from marginals and from pairwise chances."""
    return relative(given.marginals @ np.arange(given.n), given.pairwise.sum(axis=0))


@_claim("rank marginals are sums of probabilities of orders")
def marginals_from_probabilities(given: Answers) -> float:
    """Compare rank marginals with the sum over all orders."""
    return relative(given.marginals, given.listed_marginals)


@_claim("pairwise chances are sums of probabilities of orders")
def pairwise_from_probabilities(given: Answers) -> float:
    """Compare pairwise chances with the sum over all orders."""
    return relative(given.pairwise, given.listed_pairwise)


@_claim("the chance to be among the first k is a sum of rank marginals")
def top_k_from_marginals(given: Answers) -> float:
    """Compare `top_k` for the first, the middle and the last position."""
    sums = np.cumsum(given.marginals, axis=1)
    places = {1, (given.n + 1) // 2, given.n}
    firsts = {k: ask(given.dist.top_k, k, method="exact") for k in places}
    return max_of(*(relative(firsts[k], sums[:, k - 1]) for k in places))


@_claim("the expectation of a measure is its mean over all orders", instances=_with_labels)
def expectations_from_probabilities(given: Answers, labels: Any, measure: str) -> float:
    """Compare `expect` with the sum over all orders."""
    from permdist.measures import parse

    listed = given.chances @ parse(measure)(given.orders, labels)
    return relative(float(given.dist.expect(measure, labels, method="exact")), listed)


@_claim("no order is more probable than the mode")
def mode_is_most_probable(given: Answers) -> float:
    """Compare the mode's log-probability with the largest one."""
    return relative(given.log_prob(given.mode), given.logs.max())


@_claim("the entropy is between 0 and log n!", "Gibbs' inequality")
def entropy_within_bounds(given: Answers) -> float:
    """Return by how much the entropy is outside."""
    value, largest = given.entropy, math.lgamma(given.n + 1)
    return max_of(-value, (value - largest) / max(1.0, largest), 0.0)


@_claim("the entropy is the mean of -log Pr")
def entropy_from_probabilities(given: Answers) -> float:
    """Compare `entropy` with the sum over all orders."""
    possible = given.logs > -np.inf
    return relative(given.entropy, -(given.chances[possible] @ given.logs[possible]))


def _outside(chances: Any) -> float:
    """Return how far the worst of some chances is outside 0 to 1."""
    return max_of((-chances).max(), (chances - 1.0).max(), 0.0)
