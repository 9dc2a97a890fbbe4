"""What a distribution over rankings with ties can do, exactly where that is affordable."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from permdist._check import as_rng, batch_shape, choice, count
from permdist._parallel import row_blocks
from permdist.distributions.base import DEFAULT_DRAWS, METHODS, NotExactError
from permdist.distributions.estimates import Estimate, Estimates, mean_of, means_of
from permdist.distributions.items import Items
from permdist.distributions.tied_draws import (
    first_drawn,
    measured,
    pairs_drawn,
    places,
    places_drawn,
)
from permdist.measures import AUC, KendallTau, Measure, parse
from permdist.rankings import BucketOrder, TopK
from permdist.sums.davidson_sets import mean_over_extensions
from permdist.sums.shape import level_steps
from permdist.sums.subsets import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from permdist._typing import FloatArray, IntArray, RandomState
    from permdist.sums.davidson_sets import Sums

RULES = ("share", "min", "max", "dense")
# Kinds of sets of items, by how many of each label they have, for which flows are tabulated.
MOST_CODES = 500


class TiedRankings(Items, ABC):
    """A distribution over the rankings with ties of items ``0, ..., n-1``; immutable.

    A subclass provides `log_prob`, `_draw` and `_add_up`; everything else follows. The verbs are
    those of `Distribution`, whose rankings have no ties.

    Attributes
    ----------
    n_items : int
    names : tuple of str
        Item names, used in reprs, tables and plots.
    """

    # ---- what a model gives ------------------------------------------------------------------

    @abstractmethod
    def log_prob(self, ballots: Any, *, subset: bool | None = None) -> Any:
        """Return the log-probability of each ranking."""

    @abstractmethod
    def _draw(self, size: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Draw bucket numbers (size, n) and return their log-probabilities (size,), too."""

    @abstractmethod
    def _add_up(self, *, numbered: bool = False, codes: IntArray | None = None) -> Sums:
        """Run the exact program; only where `_is_small`."""

    @property
    @abstractmethod
    def _is_small(self) -> bool:
        """Whether the exact program is affordable."""

    @property
    @abstractmethod
    def _limit(self) -> int:
        """The largest number of items for which it is."""

    # ---- draws -------------------------------------------------------------------------------

    def sample_ranks(
        self, size: int | tuple[int, ...] | None = None, rng: RandomState = None
    ) -> IntArray:
        """Draw rankings as the numbers of the items' buckets.

        Parameters
        ----------
        size : int or tuple of int, optional
            The batch shape; a single ranking without it.
        rng : int, Generator or None

        Returns
        -------
        array of int, shape (..., n)
            0 for the items of the first bucket, 1 for those of the next, and so on.

        Examples
        --------
        >>> from permdist import DavidsonLuce
        >>> DavidsonLuce([0.0, 0.0, -30.0], ties=[5.0]).sample_ranks(2, rng=0)
        array([[0, 0, 1],
               [0, 0, 1]])
        """
        shape = batch_shape(size)
        number, n = math.prod(shape), self.n_items
        ranks = np.empty((number, n), dtype=np.int64)
        start = 0
        for drawn, _ in self._blocks(number, rng):
            ranks[start : start + len(drawn)] = drawn
            start += len(drawn)
        return ranks.reshape(*shape, n)

    def sample(self, size: int | None = None, rng: RandomState = None) -> Any:
        """Draw rankings with ties.

        Parameters
        ----------
        size : int, optional
            How many; a single ranking without it. `sample_ranks` draws the same ones, faster, as
            an array of any shape.
        rng : int, Generator or None

        Returns
        -------
        BucketOrder, or list of BucketOrder
        """
        number = None if size is None else count("size", size, minimum=0)
        ranks = self.sample_ranks(number, rng)
        if number is None:
            return BucketOrder.from_scores(-ranks)
        return [BucketOrder.from_scores(-row) for row in ranks]

    def _blocks(self, number: int, rng: RandomState) -> Iterator[tuple[IntArray, FloatArray]]:
        """Draw block by block, so that Ctrl-C ends it; blocks do not change what is drawn."""
        generator = as_rng(rng)
        for a, b in row_blocks(number, self.n_items):
            yield self._draw(b - a, generator)

    # ---- chances in one ranking --------------------------------------------------------------

    def rank_marginals(
        self,
        *,
        ties: str = "share",
        method: str = "auto",
        draws: int = DEFAULT_DRAWS,
        rng: RandomState = None,
    ) -> Estimates:
        """Return ``M[i, r]``, the probability that item i is at position r of one ranking.

        Parameters
        ----------
        ties : {"share", "min", "max", "dense"}
            Which position a tied item has. ``"share"``: each of its bucket's positions with equal
            probability, as if ties were broken by chance; ``"min"`` the first of them, ``"max"``
            the last; ``"dense"`` the number of its bucket.
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

        Examples
        --------
        >>> from permdist import DavidsonLuce
        >>> model = DavidsonLuce([0.0, 0.0], ties=[0.0])  # one tie in three
        >>> model.rank_marginals(ties="min").round(3)
        array([[0.667, 0.333],
               [0.667, 0.333]])
        """
        choice("ties", ties, RULES)
        if not self._exactly("rank_marginals", method):
            return self._average(lambda ranks: places_drawn(ranks, ties), draws, rng)
        return Estimates(self._buckets if ties == "dense" else places(self._sums.starts, ties))

    def top_k(
        self,
        k: int,
        *,
        method: str = "auto",
        draws: int = DEFAULT_DRAWS,
        rng: RandomState = None,
    ) -> Estimates:
        """Return each item's probability to be among the first k, ties broken by chance.

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
        if not self._exactly("top_k", method):
            return self._average(lambda ranks: first_drawn(ranks, kept), draws, rng)
        return Estimates(places(self._sums.starts, "share")[:, :kept].sum(axis=1))

    def pairwise(
        self, *, method: str = "auto", draws: int = DEFAULT_DRAWS, rng: RandomState = None
    ) -> Estimates:
        """Return ``P[i, j]``, the probability that i is above j in one ranking of all items.

        ``P[i, j] + P[j, i]`` is 1 less the probability of a tie, which is in `pairwise_ties`.

        Parameters
        ----------
        method, draws, rng
            As in `rank_marginals`.

        Returns
        -------
        Estimates, shape (n, n)
            0 on the diagonal.
        """
        if not self._exactly("pairwise", method):
            return self._average(lambda ranks: pairs_drawn(ranks, np.less), draws, rng)
        return Estimates(self._sums.above)

    def pairwise_ties(
        self, *, method: str = "auto", draws: int = DEFAULT_DRAWS, rng: RandomState = None
    ) -> Estimates:
        """Return the probability that i and j are tied in one ranking of all items.

        Parameters
        ----------
        method, draws, rng
            As in `rank_marginals`.

        Returns
        -------
        Estimates, shape (n, n)
            0 on the diagonal.
        """
        if not self._exactly("pairwise_ties", method):
            return self._average(lambda ranks: pairs_drawn(ranks, np.equal), draws, rng)
        return Estimates(self._sums.tied)

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

        The measure of a ranking with ties is the mean over all ways to break them, whatever the
        measure's own rule for equal scores.

        Parameters
        ----------
        measure : Measure or str
        labels : array of int, shape (n,)
            Relevance labels of the items.
        method, draws, rng
            As in `rank_marginals`.

        Returns
        -------
        Estimate
            A float with a `standard_error`, 0 where exact.

        Examples
        --------
        >>> from permdist import DavidsonLuce
        >>> round(DavidsonLuce([0.0, 0.0], ties=[0.0]).expect("rr", [1, 0]), 6)
        0.75
        """
        chosen, label = parse(measure), self._labels(labels)
        choice("method", method, METHODS)
        if not chosen.defined(label):
            return Estimate(chosen(np.arange(self.n_items), label))
        if method != "sample":
            value = self._expect_exactly(chosen, label)
            if value is not None:
                return Estimate(value)
            if method == "exact":
                raise NotExactError(self._refusal(f"expect({chosen.name!r})"))
        generator = as_rng(rng)
        values = [
            measured(chosen, ranks, label, generator)
            for ranks, _ in self._blocks(count("draws", draws, minimum=2), generator)
        ]
        return mean_of(np.concatenate(values))

    def _expect_exactly(self, measure: Measure, labels: IntArray) -> float | None:
        """Return the exact expectation, or None where it is not affordable."""
        if not self._is_small:
            return None
        form = measure.positional(labels)
        if form is not None:
            shares = np.asarray(self.rank_marginals())
            return form.offset + float(form.gains @ shares @ form.weights)
        if isinstance(measure, AUC | KendallTau):
            better = labels[:, None] > labels[None, :]
            chances = np.asarray(self.pairwise()) + 0.5 * np.asarray(self.pairwise_ties())
            share = float(chances[better].mean())
            return share if isinstance(measure, AUC) else 2.0 * share - 1.0
        if not measure.additive:
            return None
        kinds = (labels > 0).astype(np.int64) if measure.binary else labels
        values, totals = np.unique(kinds, return_counts=True)
        if math.prod((totals + 1).tolist()) > MOST_CODES:
            return None
        level_of, strides, _ = layout(kinds)
        flows = self._add_up(codes=strides[level_of]).flows
        steps = level_steps(measure, tuple(values.tolist()), tuple(totals.tolist()))
        return measure.offset(values, totals) + mean_over_extensions(flows, steps, strides, totals)

    def entropy(
        self, *, method: str = "auto", draws: int = DEFAULT_DRAWS, rng: RandomState = None
    ) -> Estimate:
        """Return the entropy in nats.

        Parameters
        ----------
        method, draws, rng
            As in `rank_marginals`.

        Returns
        -------
        Estimate
            A float with a `standard_error`, 0 where exact.
        """
        if self._exactly("entropy", method):
            return Estimate(self._sums.entropy)
        drawn = self._blocks(count("draws", draws, minimum=2), rng)
        return mean_of(-np.concatenate([log_prob for _, log_prob in drawn]))

    # ---- inside ------------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> Sums:
        return self._add_up()

    @cached_property
    def _buckets(self) -> FloatArray:
        return self._add_up(numbered=True).buckets

    def _exactly(self, what: str, method: str) -> bool:
        """Check whether to compute exactly; refuse where that is asked for and not possible."""
        choice("method", method, METHODS)
        if method == "exact":
            self._need_few(what)
        return method != "sample" and self._is_small

    def _need_few(self, what: str) -> None:
        if not self._is_small:
            raise NotExactError(self._refusal(what))

    def _refusal(self, what: str) -> str:
        if self._is_small:
            return f"{what}: there is no exact sum for this measure; use method='sample'"
        remedy = "draw with sample and keep the most probable ranking"
        if what != "mode":
            remedy = "use method='sample'"
        return (
            f"{what}: exact up to {self._limit} items with ties of this size, this distribution "
            f"has {self.n_items}; {remedy}"
        )

    def _average(
        self, tables: Callable[[IntArray], tuple[Any, Any]], draws: int, rng: RandomState
    ) -> Estimates:
        """Average a table over draws; `tables` returns sums of its entries and of their squares."""
        number = count("draws", draws, minimum=2)
        total, squares = np.zeros(()), np.zeros(())
        for ranks, _ in self._blocks(number, rng):
            for a, b in row_blocks(len(ranks), self.n_items**2):
                first, second = tables(ranks[a:b])
                total, squares = total + first, squares + second
        return means_of(total, squares, number)


def listed_ballots(ballots: Any) -> tuple[Any, tuple[int, ...] | None]:
    """Return one ranking as a list of one, tables as one table, and the shape of the answer.

    That is None where there is an answer per ballot.
    """
    if isinstance(ballots, BucketOrder | TopK):
        return [ballots], ()
    if isinstance(ballots, np.ndarray) and ballots.ndim > 0:
        return ballots.reshape(-1, ballots.shape[-1]), ballots.shape[:-1]
    if isinstance(ballots, list | tuple):
        if any(isinstance(entry, int | np.integer | str) for entry in ballots):
            return [ballots], ()
        if not ballots:
            return ballots, (0,)
    return ballots, None
