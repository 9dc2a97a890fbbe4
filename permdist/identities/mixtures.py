"""Claims about mixtures: sums over components, and who is responsible for a ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from permdist.distributions import Mixture
from permdist.identities.catalogue import claims_of, max_of, relative
from permdist.rankings import enumerate_orders

if TYPE_CHECKING:
    from permdist._typing import FloatArray

_claim = claims_of("")


def _models() -> Any:
    from hypothesis import strategies as st

    from permdist import strategies

    return st.fixed_dictionaries({"model": strategies.mixtures(max_items=5)})


def _sum(model: Mixture, answers: list[FloatArray]) -> FloatArray:
    return np.tensordot(model.weights, np.stack(answers), axes=1)


@_claim("a mixture of equal components is the component", "definition", _models)
def equal_components_are_one(model: Mixture) -> float:
    """Compare probabilities, marginals and the mode's probability."""
    part = model.components[0]
    same = Mixture([part] * model.n_components, model.weights)
    orders = enumerate_orders(model.n_items)
    return max_of(
        relative(same.log_prob(orders), part.log_prob(orders)),
        relative(same.rank_marginals(), part.rank_marginals()),
        relative(same.log_prob(same.mode()), part.log_prob(part.mode())),
    )


@_claim("marginals and pairwise chances are weighted sums", "linearity of expectation", _models)
def mixed_marginals_are_sums(model: Mixture) -> float:
    """Compare both with the sums over components of sums over orders."""
    orders, n = enumerate_orders(model.n_items), model.n_items
    chances = _sum(model, [np.exp(part.log_prob(orders)) for part in model.components])
    listed = np.zeros((n, n))
    np.add.at(listed, (orders, np.arange(n)), chances[:, None])
    pairs = _sum(model, [part.pairwise() for part in model.components])
    return max_of(relative(model.rank_marginals(), listed), relative(model.pairwise(), pairs))


@_claim("responsibilities, averaged over all orders, are the weights", "total probability", _models)
def responsibilities_average_to_weights(model: Mixture) -> float:
    """Add up responsibilities by the probabilities of orders."""
    orders = enumerate_orders(model.n_items)
    logs = model.log_prob(orders)
    possible = logs > -np.inf
    shares = model.responsibilities(orders[possible])
    return relative(np.exp(logs[possible]) @ shares, model.weights)


@_claim(
    "the entropy is at least the components' mean, and at most that plus that of the weights",
    "concavity",
    _models,
)
def entropy_of_a_mixture_is_bounded(model: Mixture) -> float:
    """Return by how much the entropy is outside."""
    value = float(model.entropy())
    mean = float(model.weights @ [float(part.entropy()) for part in model.components])
    most = mean - float(model.weights @ np.log(model.weights))
    return max_of((mean - value) / max(1.0, mean), (value - most) / max(1.0, most), 0.0)
