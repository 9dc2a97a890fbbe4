"""Claims about distances from a center, tried on Mallows' models and the generalized ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from permdist.distances.compare import between
from permdist.distributions import GeneralizedMallows, Mallows
from permdist.identities.catalogue import claims_of, max_of, relative
from permdist.rankings import enumerate_orders

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray

_mallows = claims_of("Mallows (1957)")
_fligner = claims_of("Fligner and Verducci (1986)")
_diaconis = claims_of("Diaconis (1988)")


def _models(**options: Any) -> Any:
    from hypothesis import strategies as st

    from permdist import strategies

    model = st.one_of(
        strategies.mallows(max_items=5, **options),
        strategies.mallows(max_items=5, wide=True, **options),
    )
    return st.fixed_dictionaries({"model": model})


def _kendall_models() -> Any:
    return _models(distances=["kendall"])


def _staged_models() -> Any:
    return _models(distances=["kendall", "cayley"])


def _distances(model: Mallows, orders: IntArray) -> IntArray:
    values: IntArray = between(model.distance, orders, model.center)
    return values


def _chances(model: Mallows) -> tuple[IntArray, FloatArray]:
    orders = enumerate_orders(model.n_items)
    return orders, np.exp(model.log_prob(orders))


@_mallows("log Pr(center) - log Pr(order) = theta d(order, center)", "definition", _models)
def log_odds_are_distances(model: Mallows) -> float:
    """Compare differences of log-probabilities with distances."""
    orders = enumerate_orders(model.n_items)
    gaps = model.log_prob(model.center) - model.log_prob(orders)
    return relative(gaps, model.theta * _distances(model, orders))


@_mallows(
    "the distribution of the distance adds up the probabilities of orders", "definition", _models
)
def distances_from_probabilities(model: Mallows) -> float:
    """Compare the distribution, its mean and its variance with sums over all orders."""
    orders, chances = _chances(model)
    values, found = _distances(model, orders), model.distance_distribution()
    listed = np.bincount(values, weights=chances, minlength=len(found))
    mean = float(chances @ values)
    variance = float(chances @ (values - mean) ** 2)
    moments = relative([model.expected_distance(), model.distance_variance()], [mean, variance])
    return max_of(relative(found, listed), moments)


@_diaconis("the entropy is log Z + theta E[d]", "exponential families", _models)
def entropy_from_distances(model: Mallows) -> float:
    """Compare the entropy with the mean of -log Pr over all orders."""
    orders, chances = _chances(model)
    possible = chances > 0.0
    return relative(float(model.entropy()), -(chances[possible] @ model.log_prob(orders[possible])))


@_diaconis(
    "with new numbers for the items, the same rankings have the same probabilities",
    "right invariance",
    _models,
)
def numbers_of_items_do_not_matter(model: Mallows) -> float:
    """Reverse the numbers of all items, in the center and in the orders."""
    last = model.n_items - 1
    other = Mallows(last - model.center, model.theta, model.distance)
    orders = enumerate_orders(model.n_items)
    return relative(other.log_prob(last - orders), model.log_prob(orders))


@_diaconis(
    "the item at place i of the center is at position r as often as that at r is at i",
    "d(order, center) is symmetric",
    _models,
)
def marginals_about_the_center_are_symmetric(model: Mallows) -> float:
    """Sort the rank marginals by the center, and transpose them."""
    marginals = model.rank_marginals()[model.center]
    return relative(marginals, marginals.T)


@_diaconis("with theta = 0, log Z = log n!", "definition", _models)
def uniform_partition(model: Mallows) -> float:
    """Compare the model without a spread parameter with the uniform distribution."""
    uniform = Mallows(model.center, 0.0, model.distance)
    return relative(uniform.log_partition(), gammaln(model.n_items + 1.0))


@_mallows(
    "Pr(i above j) = h(k + 1) - h(k), h(k) = k / (1 - exp(-k theta)), j is k places lower",
    "Kendall's distance",
    _kendall_models,
)
def kendall_pairs(model: Mallows) -> float:
    """Compare pairwise chances with the closed form, where it has digits."""
    theta = max(model.theta, 0.1)
    found = Mallows(model.center, theta).pairwise()[np.ix_(model.center, model.center)]
    k = np.arange(1, model.n_items)
    with np.errstate(over="ignore"):
        truth = (k + 1) / -np.expm1(-(k + 1) * theta) - k / -np.expm1(-k * theta)
    return relative(found[0, 1:], truth)


@_fligner("with equal parameters the stages are Mallows' model", "definition", _staged_models)
def equal_stages_are_mallows(model: Mallows) -> float:
    """Compare the probabilities of all orders, and the divergence with 0."""
    thetas = np.full(model.n_items - 1, model.theta)
    staged = GeneralizedMallows(model.center, thetas, model.distance)
    orders = enumerate_orders(model.n_items)
    gap = relative(staged.log_prob(orders), model.log_prob(orders))
    return max_of(gap, float(staged.kl(model, method="exact")))


@_mallows(
    "the probability of a top-k list or of a subset's order is that of all orders that agree",
    "definition",
    _models,
)
def partial_rankings_are_sums(model: Mallows) -> float:
    """Add up the probabilities of the orders that begin with two items, or have them so."""
    orders, chances = _chances(model)
    n = model.n_items
    lists = np.array([(i, j) for i in range(n) for j in range(n) if i != j]).reshape(-1, 2)
    if not len(lists):
        return 0.0
    ranks = np.argsort(orders, axis=1)[:, lists]
    first = chances @ ((ranks[..., 0] == 0) & (ranks[..., 1] == 1))
    above = chances @ (ranks[..., 0] < ranks[..., 1])
    top = np.exp(model.log_prob(lists, subset=False))
    return max_of(relative(top, first), relative(np.exp(model.log_prob(lists, subset=True)), above))
