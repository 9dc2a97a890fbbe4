"""Claims that hold for every distribution over orders, tried on all of ours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from permdist.distributions import Distribution
from permdist.identities.answers import Answers
from permdist.identities.catalogue import add, max_of, relative


def _distributions() -> Any:
    from hypothesis import strategies as st

    from permdist import strategies

    ordinary = [
        strategies.plackett_luces(min_items=2, max_items=5),
        strategies.gaussian_scores(min_items=2, max_items=5),
        strategies.good_bads(min_items=2, max_items=5),
    ]
    wide = [
        strategies.plackett_luces(min_items=2, max_items=5, wide=True),
        strategies.gaussian_scores(min_items=2, max_items=4, wide=True),
        strategies.good_bads(min_items=2, max_items=5, wide=True),
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


@add(
    "probabilities-sum-to-one",
    "the probabilities of all orders add up to 1",
    "definition",
    _distributions,
)
def probabilities_sum_to_one(dist: Distribution | Answers) -> float:
    """Add up over all orders."""
    return relative(Answers.of(dist).chances.sum(), 1.0)


@add(
    "marginals-doubly-stochastic",
    "every item has one position, every position one item",
    "definition",
    _distributions,
)
def marginals_doubly_stochastic(dist: Distribution | Answers) -> float:
    """Add up rank marginals both ways, and look for one outside 0 to 1."""
    marginals = Answers.of(dist).marginals
    sums = np.concatenate([marginals.sum(axis=0), marginals.sum(axis=1)])
    return max_of(relative(sums, np.ones_like(sums)), _outside(marginals))


@add(
    "pairwise-complementary",
    "P[i above j] + P[j above i] = 1",
    "definition",
    _distributions,
)
def pairwise_complementary(dist: Distribution | Answers) -> float:
    """Add up both ways to order each pair, and look for a chance outside 0 to 1."""
    pairwise = Answers.of(dist).pairwise
    sums = relative(pairwise + pairwise.T, 1.0 - np.eye(len(pairwise)))
    return max_of(sums, _outside(pairwise))


@add(
    "ranks-from-pairs",
    "the expected rank of an item is the number of items expected above it",
    "linearity of expectation",
    _distributions,
)
def ranks_from_pairs(dist: Distribution | Answers) -> float:
    """Compare expected ranks from marginals and from pairwise chances."""
    given = Answers.of(dist)
    return relative(given.marginals @ np.arange(given.n), given.pairwise.sum(axis=0))


@add(
    "marginals-from-probabilities",
    "rank marginals are sums of probabilities of orders",
    "definition",
    _distributions,
)
def marginals_from_probabilities(dist: Distribution | Answers) -> float:
    """Compare rank marginals with the sum over all orders."""
    given = Answers.of(dist)
    return relative(given.marginals, given.listed_marginals)


@add(
    "pairwise-from-probabilities",
    "pairwise chances are sums of probabilities of orders",
    "definition",
    _distributions,
)
def pairwise_from_probabilities(dist: Distribution | Answers) -> float:
    """Compare pairwise chances with the sum over all orders."""
    given = Answers.of(dist)
    return relative(given.pairwise, given.listed_pairwise)


@add(
    "top-k-from-marginals",
    "the chance to be among the first k is a sum of rank marginals",
    "definition",
    _distributions,
)
def top_k_from_marginals(dist: Distribution | Answers) -> float:
    """Compare `top_k` for the first, the middle and the last position."""
    given = Answers.of(dist)
    sums = np.cumsum(given.marginals, axis=1)
    places = {1, (given.n + 1) // 2, given.n}
    return max_of(*(relative(given.dist.top_k(k), sums[:, k - 1]) for k in places))


@add(
    "expectations-from-probabilities",
    "the expectation of a measure is its mean over all orders",
    "definition",
    _with_labels,
)
def expectations_from_probabilities(
    dist: Distribution | Answers, labels: Any, measure: str
) -> float:
    """Compare `expect` with the sum over all orders."""
    from permdist.measures import parse

    given = Answers.of(dist)
    listed = given.chances @ parse(measure)(given.orders, labels)
    return relative(float(given.dist.expect(measure, labels, method="exact")), listed)


@add(
    "mode-is-most-probable",
    "no order is more probable than the mode",
    "definition",
    _distributions,
)
def mode_is_most_probable(dist: Distribution | Answers) -> float:
    """Compare the mode's log-probability with the largest one."""
    given = Answers.of(dist)
    return relative(given.log_prob(given.mode), given.logs.max())


@add(
    "entropy-within-bounds",
    "the entropy is between 0 and log n!",
    "Gibbs' inequality",
    _distributions,
)
def entropy_within_bounds(dist: Distribution | Answers) -> float:
    """Say by how much the entropy is outside."""
    given = Answers.of(dist)
    value, largest = given.entropy, math.lgamma(given.n + 1)
    return max_of(-value, (value - largest) / max(1.0, largest), 0.0)


@add(
    "entropy-from-probabilities",
    "the entropy is the mean of -log Pr",
    "definition",
    _distributions,
)
def entropy_from_probabilities(dist: Distribution | Answers) -> float:
    """Compare `entropy` with the sum over all orders."""
    given = Answers.of(dist)
    possible = given.logs > -np.inf
    return relative(given.entropy, -(given.chances[possible] @ given.logs[possible]))


def _outside(chances: Any) -> float:
    """Say how far the worst of some chances is outside 0 to 1."""
    return max_of((-chances).max(), (chances - 1.0).max(), 0.0)
