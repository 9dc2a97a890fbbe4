"""`check_distribution`: what any distribution must satisfy, tried on a user's own."""

from __future__ import annotations

from permdist._check import RandomState, as_rng, count
from permdist.distributions import Distribution
from permdist.distributions.base import MAX_LISTED, NotExactError
from permdist.identities.catalogue import Identity, Result, Results
from permdist.identities.general import (
    entropy_from_probabilities,
    marginals_doubly_stochastic,
    marginals_from_probabilities,
    mode_is_most_probable,
    pairwise_complementary,
    probabilities_sum_to_one,
    ranks_from_pairs,
)

LISTED = {
    "probabilities sum to one": probabilities_sum_to_one,
    "marginals from probabilities": marginals_from_probabilities,
    "entropy from probabilities": entropy_from_probabilities,
    "mode is most probable": mode_is_most_probable,
}
ALWAYS = {
    "marginals doubly stochastic": marginals_doubly_stochastic,
    "pairwise complementary": pairwise_complementary,
    "ranks from pairs": ranks_from_pairs,
}


def check_distribution(
    dist: Distribution, *, draws: int = 10_000, rng: RandomState = 0, tolerance: float = 1e-8
) -> Results:
    """Check a distribution against what every distribution over orders satisfies.

    Up to 8 items all orders are listed. A distribution of your own that has no rank marginals
    beyond that is checked on an instance of at most 8 items. Draws are compared with the rank
    marginals; the residual is then the largest difference in standard errors, and up to 6 of them
    pass.

    Parameters
    ----------
    dist : Distribution
        Ours or your own.
    draws : int
    rng : int, Generator or None
    tolerance : float
        The largest residual that counts as rounding.

    Returns
    -------
    Results

    Examples
    --------
    >>> from permdist import PlackettLuce
    >>> check_distribution(PlackettLuce([1.0, 0.0, -1.0])).passed
    True
    """
    if not isinstance(dist, Distribution):
        raise TypeError(f"dist: expected a Distribution, got {type(dist).__name__}")
    if dist.n_items > MAX_LISTED:
        try:
            dist.rank_marginals()
        except NotExactError as error:
            raise ValueError(
                f"dist: expected at most {MAX_LISTED} items, got {dist.n_items}: without rank "
                "marginals of its own a distribution is checked by listing all orders"
            ) from error
    size, generator = count("draws", draws, minimum=100), as_rng(rng)
    chosen = {**ALWAYS, **(LISTED if dist.n_items <= MAX_LISTED else {})}
    results = []
    for name, residual in chosen.items():
        summary = (residual.__doc__ or "").split(".")[0].lower()
        identity = Identity(name, summary, "definition", residual, dict, tolerance)
        results.append(Result(identity, 1, identity.check(dist=dist)))
    statement = "draws follow the rank marginals (residual in standard errors)"

    def drawn(dist: Distribution) -> float:
        return _in_standard_errors(dist, dist.sample(size, generator))

    identity = Identity("draws", statement, "definition", drawn, dict, 6.0)
    results.append(Result(identity, size, identity.check(dist=dist)))
    return Results(results)


def _in_standard_errors(dist: Distribution, orders: object) -> float:
    import numpy as np

    drawn = np.asarray(orders)
    n, size = dist.n_items, len(drawn)
    counts = np.zeros((n, n))
    np.add.at(counts, (drawn, np.arange(n)), 1.0)
    expected = dist.rank_marginals()
    # Half an observation of slack keeps rare events from counting as many standard errors.
    spread = np.sqrt(np.maximum(expected * (1.0 - expected), 0.0) * size + 0.25)
    return float((np.abs(counts - size * expected) / spread).max())
