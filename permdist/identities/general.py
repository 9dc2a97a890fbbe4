"""Claims that hold for every distribution over orders, tried on all of ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from permdist.distributions import Distribution
from permdist.identities.catalogue import add, relative
from permdist.rankings import enumerate_orders


def _distributions() -> Any:
    from hypothesis import strategies as st

    from permdist import strategies

    return st.fixed_dictionaries(
        {
            "dist": st.one_of(
                strategies.plackett_luces(min_items=2, max_items=5),
                strategies.gaussian_scores(min_items=2, max_items=5),
                strategies.good_bads(min_items=2, max_items=5),
            )
        }
    )


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
def probabilities_sum_to_one(dist: Distribution) -> float:
    """Add up over all orders."""
    return relative(np.exp(dist.log_prob(enumerate_orders(dist.n_items))).sum(), 1.0)


@add(
    "marginals-doubly-stochastic",
    "every item has one position, every position one item",
    "definition",
    _distributions,
)
def marginals_doubly_stochastic(dist: Distribution) -> float:
    """Add up rank marginals both ways."""
    marginals = dist.rank_marginals()
    sums = np.concatenate([marginals.sum(axis=0), marginals.sum(axis=1)])
    return max(relative(sums, np.ones_like(sums)), float(np.maximum(-marginals, 0).max()))


@add(
    "pairwise-complementary",
    "P[i above j] + P[j above i] = 1",
    "definition",
    _distributions,
)
def pairwise_complementary(dist: Distribution) -> float:
    """Add up both ways to order each pair."""
    pairwise = dist.pairwise()
    return relative(pairwise + pairwise.T, 1.0 - np.eye(dist.n_items))


@add(
    "ranks-from-pairs",
    "the expected rank of an item is the number of items expected above it",
    "linearity of expectation",
    _distributions,
)
def ranks_from_pairs(dist: Distribution) -> float:
    """Compare expected ranks from marginals and from pairwise chances."""
    ranks = dist.rank_marginals() @ np.arange(dist.n_items)
    return relative(ranks, dist.pairwise().sum(axis=0))


@add(
    "marginals-from-probabilities",
    "rank marginals are sums of probabilities of orders",
    "definition",
    _distributions,
)
def marginals_from_probabilities(dist: Distribution) -> float:
    """Compare rank marginals with the sum over all orders."""
    orders = enumerate_orders(dist.n_items)
    listed = np.zeros((dist.n_items, dist.n_items))
    chances = np.exp(dist.log_prob(orders))[:, None]
    np.add.at(listed, (orders, np.arange(dist.n_items)), chances)
    return relative(dist.rank_marginals(), listed)


@add(
    "expectations-from-probabilities",
    "the expectation of a measure is its mean over all orders",
    "definition",
    _with_labels,
)
def expectations_from_probabilities(dist: Distribution, labels: Any, measure: str) -> float:
    """Compare `expect` with the sum over all orders."""
    from permdist.measures import parse

    orders = enumerate_orders(dist.n_items)
    listed = np.exp(dist.log_prob(orders)) @ parse(measure)(orders, labels)
    return relative(float(dist.expect(measure, labels)), listed)


@add(
    "mode-is-most-probable",
    "no order is more probable than the mode",
    "definition",
    _distributions,
)
def mode_is_most_probable(dist: Distribution) -> float:
    """Compare the mode's log-probability with the largest one."""
    largest = dist.log_prob(enumerate_orders(dist.n_items)).max()
    return relative(float(dist.log_prob(dist.mode())), largest)


@add(
    "entropy-from-probabilities",
    "the entropy is the mean of -log Pr",
    "definition",
    _distributions,
)
def entropy_from_probabilities(dist: Distribution) -> float:
    """Compare `entropy` with the sum over all orders."""
    logs = np.asarray(dist.log_prob(enumerate_orders(dist.n_items)))
    logs = logs[np.isfinite(logs)]
    return relative(float(dist.entropy()), -(np.exp(logs) @ logs))
