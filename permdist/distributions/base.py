"""What every distribution over rankings can do, exactly where that is affordable."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import entr

from permdist._check import as_rng, batch_shape, choice, count
from permdist._parallel import row_blocks
from permdist.distributions.batches import log_probs
from permdist.distributions.drawn import (
    first_counted,
    mode_drawn,
    pairs_counted,
    positions_counted,
    shares,
)
from permdist.distributions.estimates import Estimate as Estimate
from permdist.distributions.estimates import EstimatedOrder, Estimates, mean_of
from permdist.distributions.exact import MAX_LISTED as MAX_LISTED
from permdist.distributions.exact import ExactAnswers
from permdist.measures import Measure, parse
from permdist.rankings import check_orders, enumerate_orders
from permdist.rankings.orders import FEW_ENTRIES
from permdist.sums.lattice import NotExactError as NotExactError
from permdist.targets.function import function_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import IntArray, RandomState
    from permdist.targets import Target

METHODS = ("auto", "exact", "sample")
DEFAULT_DRAWS = 10_000


class Distribution(ExactAnswers):
    """A distribution over the rankings of items ``0, ..., n-1``; immutable.

    A subclass provides `log_prob` and `_sample`; everything else follows, by enumeration or better.
    A model whose log-weight adds up along the ranking provides `_step_weights`, too, and has
    everything exactly up to about 20 items.

    Attributes
    ----------
    n_items : int
    names : tuple of str
        Item names, used in reprs, tables and plots.
    """

    @staticmethod
    def from_functions(
        n_items: int,
        log_prob: Callable[[IntArray], Any] | None = None,
        sample: Callable[..., Any] | None = None,
        *,
        normalized: bool = True,
        batched: bool | None = None,
        names: Sequence[str] | None = None,
    ) -> Distribution:
        """Make a distribution of one's own from functions, without a class.

        Up to 8 items `log_prob` is enough for everything: all orders are listed. Beyond, it has
        log-probabilities and Markov chains (`permdist.samplers.run_chains`), and with `sample` also
        draws, and estimates of everything else from them, with standard errors. `sample` alone
        gives draws and estimates for any number of items, without log-probabilities and entropy.

        Parameters
        ----------
        n_items : int
        log_prob : callable, optional
            The log-probability of an order: takes orders of shape (batch, n) and returns
            log-probabilities of shape (batch,), or takes one order of shape (n,) and returns a
            number; -inf for impossible orders. Which of the two is found out by trial, and a
            function of one order is called for each. Chains are fast if it is compiled with numba.
        sample : callable, optional
            Draws orders: takes the number of draws and a `numpy.random.Generator` and returns
            orders of shape (size, n), or takes the generator alone and returns one order.
        normalized : bool
            False if `log_prob` returns log-weights, whose exponentials do not add up to 1. Up to 8
            items they are normalized; beyond, `log_weight` has them, and `log_prob` refuses.
        batched : bool, optional
            Whether `log_prob` takes several orders at once, where that is not to be tried.
        names : sequence of str, optional
            The names of the items.

        Returns
        -------
        Distribution

        Examples
        --------
        Every pair of neighbors that goes up costs one half:

        >>> from permdist import Distribution
        >>> def cost(order):
        ...     return -0.5 * sum(order[k] < order[k + 1] for k in range(len(order) - 1))
        >>> model = Distribution.from_functions(4, cost, normalized=False)
        >>> model.mode()
        array([3, 2, 1, 0])
        >>> model.sample(2, rng=0)
        array([[2, 3, 1, 0],
               [1, 0, 3, 2]])

        From draws alone, with standard errors:

        >>> shuffled = Distribution.from_functions(20, sample=lambda rng: rng.permutation(20))
        >>> top = shuffled.top_k(5, rng=0)
        >>> bool((abs(top - 0.25) < 4 * top.standard_error).all())
        True
        """
        from permdist.distributions.functions import FromFunctions

        options: dict[str, Any] = {"normalized": normalized, "batched": batched, "names": names}
        return FromFunctions(n_items, log_prob, sample, **options)

    # ---- what a model gives ------------------------------------------------------------------

    @abstractmethod
    def _sample(self, size: int, rng: np.random.Generator) -> IntArray:
        """Draw `size` orders."""

    # ---- what follows ------------------------------------------------------------------------

    def sample(
        self, size: int | tuple[int, ...] | None = None, rng: RandomState = None
    ) -> IntArray:
        """Draw orders.

        Parameters
        ----------
        size : int or tuple of int, optional
            The batch shape; a single order without it.
        rng : int, Generator or None

        Returns
        -------
        array of int, shape (..., n)
        """
        shape, generator = batch_shape(size), as_rng(rng)
        number, n = math.prod(shape), self.n_items
        if number * n <= FEW_ENTRIES:
            return self._sample(number, generator).reshape(*shape, n)
        # Blocks draw the same numbers one after the other, and Ctrl-C ends them.
        blocks = list(row_blocks(number, n))
        if len(blocks) == 1:
            return self._sample(number, generator).reshape(*shape, n)
        orders = np.empty((number, n), dtype=np.int64)
        for a, b in blocks:
            orders[a:b] = self._sample(b - a, generator)
        return orders.reshape(*shape, n)

    def log_partition(self) -> float:
        """Return the log-partition function, log Z, of the model's own weights."""
        return self._exact("log_partition").log_partition

    def mode(
        self, *, method: str = "auto", draws: int = DEFAULT_DRAWS, rng: RandomState = None
    ) -> EstimatedOrder:
        """Find the most probable order.

        Parameters
        ----------
        method : {"auto", "exact", "sample"}
            As in `rank_marginals`. From draws it is the most probable one, improved by exchanges of
            two items until none makes it more probable; without log-probabilities, the order that
            was drawn most often.
        draws : int
            The number of draws to start from.
        rng : int, Generator or None

        Returns
        -------
        EstimatedOrder, shape (n,)
            An array of int, with the number of `draws` that it was found from, 0 if it is certain,
            and the `share` of them that are this order.
        """
        weigh = self._weigh if self._has_weights else None
        return self._answer(
            lambda: EstimatedOrder(self._mode()),
            lambda orders: mode_drawn(orders, weigh),
            method,
            draws,
            rng,
        )

    def rank_marginals(
        self, *, method: str = "auto", draws: int = DEFAULT_DRAWS, rng: RandomState = None
    ) -> Estimates:
        """Return ``M[i, r]``, the probability that item i is at position r.

        Parameters
        ----------
        method : {"auto", "exact", "sample"}
            ``"auto"``: exact if feasible, otherwise Monte Carlo; ``"exact"``: raise
            `NotExactError` if infeasible; ``"sample"``: always Monte Carlo.
        draws : int
            The number of draws of a Monte Carlo estimate.
        rng : int, Generator or None

        Returns
        -------
        Estimates, shape (n, n)
            An array with a `standard_error`, 0 where exact.
        """
        return self._answer(
            lambda: Estimates.exact(self._rank_marginals()),
            lambda orders: shares(orders, positions_counted),
            method,
            draws,
            rng,
        )

    def pairwise(
        self, *, method: str = "auto", draws: int = DEFAULT_DRAWS, rng: RandomState = None
    ) -> Estimates:
        """Return ``P[i, j]``, the probability that item i is above item j; 0 on the diagonal.

        Parameters
        ----------
        method, draws, rng
            As in `rank_marginals`.

        Returns
        -------
        Estimates, shape (n, n)
        """
        return self._answer(
            lambda: Estimates.exact(self._pairwise()),
            lambda orders: shares(orders, pairs_counted),
            method,
            draws,
            rng,
        )

    def top_k(
        self,
        k: int,
        *,
        method: str = "auto",
        draws: int = DEFAULT_DRAWS,
        rng: RandomState = None,
    ) -> Estimates:
        """Return each item's probability to be among the first k.

        Parameters
        ----------
        k : int
        method, draws, rng
            As in `rank_marginals`.

        Returns
        -------
        Estimates, shape (n,)
        """
        kept = min(count("k", k), self.n_items)
        return self._answer(
            lambda: Estimates.exact(self._top_k(kept)),
            lambda orders: shares(orders, lambda some: first_counted(some, kept)),
            method,
            draws,
            rng,
        )

    def _answer(
        self,
        exact: Callable[[], Any],
        estimate: Callable[[IntArray], Any],
        method: str,
        draws: int,
        rng: RandomState,
    ) -> Any:
        """Answer exactly, or from draws if that is not possible or not wanted."""
        choice("method", method, METHODS)
        number, refusal = count("draws", draws, minimum=2), None
        if method != "sample":
            try:
                return exact()
            except NotExactError as error:
                if method == "exact":
                    raise
                refusal = error
        try:
            drawn = self.sample(number, rng)
        except NotExactError as error:
            raise refusal or error from None
        return estimate(check_orders(drawn, self.n_items, name=f"{type(self).__name__}.sample"))

    @property
    def _has_weights(self) -> bool:
        """Whether orders can be compared by their probabilities."""
        return True

    def _weigh(self, orders: IntArray) -> Any:
        """Return log-weights of draws, up to a constant."""
        return log_probs(self._relative_weight, orders)

    def expect(
        self,
        measure: str | Measure,
        labels: ArrayLike | None = None,
        *,
        method: str = "auto",
        draws: int = DEFAULT_DRAWS,
        rng: RandomState = None,
    ) -> Estimate:
        """Return the expected value of a measure.

        Parameters
        ----------
        measure : Measure or str
        labels : array of int, shape (n,)
            Relevance labels of the items.
        method : {"auto", "exact", "sample"}
            ``"auto"``: exact if feasible, otherwise Monte Carlo; ``"exact"``: raise
            `NotExactError` if infeasible; ``"sample"``: always Monte Carlo.
        draws : int
            The number of draws of a Monte Carlo estimate.
        rng : int, Generator or None

        Returns
        -------
        Estimate
            A float with a `standard_error`, 0 where exact.
        """
        chosen, label = parse(measure), self._labels(labels)
        choice("method", method, METHODS)
        if not self._defines(chosen, label):
            return Estimate(chosen(np.arange(self.n_items), label))
        if method != "sample":
            value = self._expect_sum_exactly(chosen, label)
            if value is not None:
                return Estimate(value)
            if method == "exact":
                if not chosen.additive:
                    raise NotExactError(
                        f"expect({chosen.name!r}): no sum along the ranking, exact up to "
                        f"{MAX_LISTED} items, this distribution has {self.n_items}"
                    )
                raise NotExactError(self._refusal(f"expect({chosen.name!r})"))
        return mean_of(chosen(self.sample(count("draws", draws, minimum=2), rng), label))

    def entropy(
        self, *, method: str = "auto", draws: int = DEFAULT_DRAWS, rng: RandomState = None
    ) -> Estimate:
        """Return the entropy in nats; parameters as in `expect`."""
        choice("method", method, METHODS)
        if method != "sample":
            if self._is_small:
                return Estimate(self._lattice.entropy)
            if self._is_listed:
                chances = self._listing[1]
                return Estimate(float(entr(chances).sum()))
            if method == "exact":
                raise NotExactError(self._refusal("entropy"))
        drawn = self.sample(count("draws", draws, minimum=2), rng)
        return mean_of(-log_probs(self.log_prob, drawn))

    def kl(
        self,
        other: Distribution,
        *,
        method: str = "auto",
        draws: int = DEFAULT_DRAWS,
        rng: RandomState = None,
    ) -> Estimate:
        """Return the Kullback-Leibler divergence from this distribution to another, in nats.

        Infinite where the other one excludes an order that this one allows. Parameters as in
        `expect`.
        """
        choice("method", method, METHODS)
        if not isinstance(other, Distribution):
            raise TypeError(f"other: expected a Distribution, got {type(other).__name__}")
        if other.n_items != self.n_items:
            raise ValueError(f"other: expected {self.n_items} items, got {other.n_items}")
        if method != "sample":
            if self._is_small and other._is_small:
                mine, theirs = self._lattice, other._lattice
                singles = len(mine.shape.classes) == len(theirs.shape.classes) == self.n_items
                if singles and np.array_equal(mine.shape.items, theirs.shape.items):
                    usable = np.arange(mine.shape.n_states)[:, None] < mine.shape.n_states - 1
                    usable = usable & (mine.shape.counts < mine.shape.sizes)
                    # A step may be possible and its probability too small for a double.
                    everything = np.isfinite(mine.weights[usable]).all()
                    possible = usable if everything else mine.flows > 0
                    if (theirs.weights[possible] == -np.inf).any():
                        return Estimate(np.inf)
                    return Estimate(mine.divergence(theirs))
            if self._can_list:
                orders = enumerate_orders(self.n_items)
                p = self.listed_log_prob(orders)
                here = p > -np.inf
                q = log_probs(other.log_prob, orders[here])
                if (q == -np.inf).any():
                    return Estimate(np.inf)
                return Estimate(max(0.0, float(np.exp(p[here]) @ (p[here] - q))))
            if method == "exact":
                raise NotExactError(self._refusal("kl"))
        drawn = self.sample(count("draws", draws, minimum=2), rng)
        return mean_of(log_probs(self.log_prob, drawn) - log_probs(other.log_prob, drawn))

    def _check_orders(self, orders: ArrayLike) -> IntArray:
        return check_orders(orders, self.n_items)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_items} items)"

    def _quick(self) -> tuple[int, int]:
        return (12 if self._is_additive else 6), 0

    # ---- Markov chains -----------------------------------------------------------------------

    def _target(self) -> Target:
        """Return what Markov chains need to know; `permdist.targets` explains how to be fast.

        Without a target of its own a distribution is asked for `log_prob` at every step.
        """
        return function_target(
            self.n_items, lambda order: float(self.log_prob(order)), normalizer=0.0
        )
