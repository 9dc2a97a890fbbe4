"""The answers of a distribution, computed once for all the claims that use them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from permdist.distributions.batches import BatchError, log_probs
from permdist.distributions.drawn import ask
from permdist.rankings import enumerate_orders, order_to_ranks

if TYPE_CHECKING:
    from permdist._typing import FloatArray, IntArray
    from permdist.distributions import Distribution
    from permdist.distributions.base import Estimate


class Wrong(Exception):
    """An answer that no distribution over orders may give; the message says which."""


class Answers:
    """A distribution and its answers: the list of all orders, marginals, pairwise probabilities.

    Parameters
    ----------
    dist : Distribution
    """

    def __init__(self, dist: Distribution) -> None:
        self.dist, self.n = dist, dist.n_items

    @classmethod
    def of(cls, dist: Distribution | Answers) -> Answers:
        """Return the answers of a distribution, or answers as they are."""
        return dist if isinstance(dist, Answers) else cls(dist)

    def log_prob(self, orders: IntArray) -> FloatArray:
        """Ask for log-probabilities; refuse what is no number or has another shape.

        Parameters
        ----------
        orders : array of int, shape (..., n)
        """
        try:
            answer = log_probs(self.dist.log_prob, orders.copy())
        except BatchError as error:
            raise Wrong(str(error)) from error
        wrong = np.isnan(answer) | (answer == np.inf)
        if wrong.any():
            value = answer.ravel()[int(np.argmax(wrong))]
            raise Wrong(f"log_prob: expected numbers or -inf, got {value}")
        return answer

    @cached_property
    def orders(self) -> IntArray:
        """All orders."""
        return enumerate_orders(self.n)

    @cached_property
    def logs(self) -> FloatArray:
        """The log-probabilities of all orders."""
        return self.log_prob(self.orders)

    @cached_property
    def chances(self) -> FloatArray:
        """The probabilities of all orders."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.logs))

    @cached_property
    def listed_marginals(self) -> FloatArray:
        """The chance of each item at each position, added up over all orders."""
        result = np.zeros((self.n, self.n))
        np.add.at(result, (self.orders, np.arange(self.n)), self.chances[:, None])
        return result

    @cached_property
    def listed_pairwise(self) -> FloatArray:
        """The chance of each item above each other, added up over all orders."""
        ranks = order_to_ranks(self.orders)
        return np.stack([self.chances @ (row[:, None] < ranks) for row in ranks.T])

    @cached_property
    def marginals(self) -> FloatArray:
        """The rank marginals, as the distribution says."""
        return self._square("rank_marginals", ask(self.dist.rank_marginals, method="exact"))

    @cached_property
    def pairwise(self) -> FloatArray:
        """The pairwise chances, as the distribution says."""
        return self._square("pairwise", ask(self.dist.pairwise, method="exact"))

    @cached_property
    def entropy(self) -> float:
        """The exact entropy, as the distribution says."""
        return float(self.dist.entropy(method="exact"))

    def divergence_from_uniform(self, draws: int = 0) -> Estimate | float:
        """Return the divergence from all orders alike: exactly, or from draws if there are any.

        Parameters
        ----------
        draws : int
        """
        from permdist.distributions import PlackettLuce

        uniform = PlackettLuce(np.zeros(self.n))
        if not draws:
            return ask(self.dist.kl, uniform, method="exact")
        return ask(self.dist.kl, uniform, method="auto", draws=draws, rng=0)

    @cached_property
    def mode(self) -> IntArray:
        """The most probable order, as the distribution says."""
        return proper_orders("mode", ask(self.dist.mode, method="exact"), (), self.n)

    def _square(self, name: str, values: object) -> FloatArray:
        array = np.array(values, dtype=np.float64)
        if array.shape != (self.n, self.n):
            raise Wrong(f"{name}: expected shape {(self.n, self.n)}, got {array.shape}")
        return array


def proper_orders(name: str, values: object, batch: tuple[int, ...], n: int) -> IntArray:
    """Return orders of a batch shape, or say what is wrong with them.

    Parameters
    ----------
    name : str
        Where they come from.
    values : array of int, shape (*batch, n)
    batch : tuple of int
    n : int
        The number of items.
    """
    from permdist.rankings import check_orders

    array = np.asarray(values)
    if array.shape != (*batch, n):
        raise Wrong(f"{name}: expected shape {(*batch, n)}, got {array.shape}")
    if array.dtype.kind not in "iu":
        raise Wrong(f"{name}: expected item numbers, got dtype {array.dtype}")
    try:
        return check_orders(array, n, name=name)
    except ValueError as error:
        raise Wrong(str(error)) from error
