"""Many lists of items with independent noisy scores at once: what batches of models share."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from permdist._check import as_array, as_rng, batch_shape, check_scores, count, finite, grades
from permdist._parallel import bounds, in_threads, pointers, row_blocks
from permdist._result import block, note, table
from permdist.distributions.exposures import position_weights
from permdist.distributions.items import Items
from permdist.measures import Measure, parse
from permdist.measures.positional import positional_batch
from permdist.rankings import check_orders
from permdist.sums import luce_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, IntArray, RandomState
    from permdist.measures.positional import PositionalBatch
    from permdist.sums.positions import RandomNoise

MOST_LISTS, MOST_PLACES = 12, 5  # that notebooks show


class RandomUtilityBatch(Items):
    """Lists of items, each ranked by independent noisy scores of its own; immutable.

    Parameters
    ----------
    scores : array of float, shape (..., n)
        One list per row.
    mask : array of bool, shape (..., n), optional
        Which entries are items, where lists are shorter than n; all by default.
    names : sequence of str, optional
        Of the n entries of every list.
    n_jobs : int, optional
        Threads, all processors by default; results do not depend on it.
    """

    def __init__(
        self,
        scores: ArrayLike,
        mask: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        try:
            given = as_array("scores", scores)
        except ValueError as error:
            raise ValueError(f"{error}; use from_lists, or pad them and pass mask") from error
        if given.dtype.kind == "b":
            raise TypeError("scores: expected numbers, got booleans")
        if given.ndim == 0 or given.shape[-1] == 0:
            raise ValueError(f"scores: expected shape (..., n), got shape {given.shape}")
        super().__init__(given.shape[-1], names)
        kept = _as_mask(mask, given.shape)
        table = np.ascontiguousarray(finite("scores", np.where(kept, given, 0)))
        check_scores(table, self._unit)
        self._scores, self._mask = table.copy(), kept
        self._scores.flags.writeable = self._mask.flags.writeable = False
        self._n_jobs = None if n_jobs is None or n_jobs == -1 else count("n_jobs", n_jobs)

    @classmethod
    def from_lists(cls, scores: Sequence[ArrayLike], **options: Any) -> Self:
        """Make a batch from lists of any lengths, which are padded.

        Parameters
        ----------
        scores : sequence of arrays of float
        **options
            As of the class.

        Examples
        --------
        >>> from permdist import PlackettLuceBatch
        >>> PlackettLuceBatch.from_lists([[1.0, 0.0], [0.5, 0.0, 2.0]]).mask
        array([[ True,  True, False],
               [ True,  True,  True]])
        """
        rows = [finite(f"scores[{row}]", values, ndim=1) for row, values in enumerate(scores)]
        if not rows:
            raise ValueError("scores: expected at least one list, got none")
        sizes = np.array([len(row) for row in rows])
        mask = np.arange(max(1, sizes.max())) < sizes[:, None]
        table = np.zeros(mask.shape)
        table[mask] = np.concatenate(rows)
        return cls(table, mask=mask, **options)

    @property
    def _unit(self) -> float:
        """The scale of the noise."""
        return 1.0

    # ---- what a model gives ------------------------------------------------------------------

    @abstractmethod
    def _single(self, scores: FloatArray) -> Any:
        """Return the model of one list."""

    @abstractmethod
    def _like(self, scores: FloatArray, mask: BoolArray) -> Self:
        """Return a batch of other lists with the same options."""

    @property
    @abstractmethod
    def _noise(self) -> RandomNoise:
        """The noise of the scores."""

    @abstractmethod
    def _keys(self, draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw what items are ranked by, the lowest first, shape (draws, all items)."""

    @abstractmethod
    def _log_probs(self, orders: IntArray) -> FloatArray:
        """Return log-probabilities (draws, lists) of valid orders (draws, lists, n)."""

    @abstractmethod
    def _gradients(self, orders: IntArray) -> FloatArray:
        """Return their derivatives, shape (draws, all items)."""

    # ---- lists -------------------------------------------------------------------------------

    @property
    def scores(self) -> FloatArray:
        """The scores, shape (..., n); 0 where the mask is false."""
        return self._scores

    @property
    def mask(self) -> BoolArray:
        """Which entries are items, shape (..., n)."""
        return self._mask

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the batch, without the items."""
        return self._scores.shape[:-1]

    @property
    def sizes(self) -> IntArray:
        """The number of items of each list, shape (...)."""
        return self._mask.sum(axis=-1)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a batch of shape () has no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        """Return the distribution of one list, without what the mask excludes, or some lists."""
        number = np.arange(math.prod(self.shape)).reshape(self.shape)[index]
        if np.ndim(number) == 0:
            return self._list(int(number))
        rows = self._scores.reshape(-1, self.n_items), self._mask.reshape(-1, self.n_items)
        return self._like(rows[0][number], rows[1][number])

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.shape)) or "1"
        return f"{type(self).__name__}({shape} lists of up to {self.sizes.max(initial=0)} items)"

    def _repr_html_(self) -> str:
        lists = math.prod(self.shape)
        shown = self._like(
            self._scores.reshape(-1, self.n_items)[:MOST_LISTS],
            self._mask.reshape(-1, self.n_items)[:MOST_LISTS],
        )
        rows = []
        for number, (order, size) in enumerate(zip(shown.mode(), shown.sizes, strict=True)):
            index = ", ".join(map(str, np.unravel_index(number, self.shape or (1,))))
            best = [self.names[item] for item in order[: min(size, MOST_PLACES)]]
            rest = ["..."] if size > MOST_PLACES else []
            rows.append([index, int(size), " > ".join([*best, *rest])])
        told = [table(["list", "items", "most probable order"], rows)]
        if lists > len(rows):
            told.append(note(f"{lists - len(rows):,} more lists are not shown."))
        return block(repr(self), *told)

    # ---- draws and probabilities -------------------------------------------------------------

    def sample(
        self, size: int | tuple[int, ...] | None = None, rng: RandomState = None
    ) -> IntArray:
        """Draw orders of every list.

        The draws are those that the distributions of the lists make one after the other with the
        same generator, all lists before the next draw.

        Parameters
        ----------
        size : int or tuple of int, optional
            The shape of the draws of each list; a single one without it.
        rng : int, Generator or None

        Returns
        -------
        array of int, shape size + (..., n)
            Entries of each list from the top down, and behind them those that are no items.
        """
        shape, generator = batch_shape(size), as_rng(rng)
        number, lists, total = math.prod(shape), len(self._ptr) - 1, int(self._ptr[-1])
        orders = np.empty((number, lists, self.n_items), dtype=np.int64)
        for a, b in row_blocks(number, total):
            self._order(self._keys(b - a, generator), orders[a:b])
        return orders.reshape(*shape, *self.shape, self.n_items)

    def mode(self) -> IntArray:
        """Return the most probable order of each list: by score, equal scores by item number.

        Returns
        -------
        array of int, shape (..., n)
            As those of `sample`.
        """
        orders = np.empty((1, len(self._ptr) - 1, self.n_items), dtype=np.int64)
        self._order(-self._flat[None], orders)
        return orders.reshape(self._scores.shape)

    def log_prob(self, orders: ArrayLike) -> Any:
        """Return the log-probability of full rankings.

        Parameters
        ----------
        orders : array of int, shape (..., n)
            As `sample` returns them: of one order per list, or with further axes in front. What
            stands behind the items of a list does not matter.

        Returns
        -------
        float or array of float, shape (...)
        """
        flat, shape = self._orders(orders)
        return self._log_probs(flat).reshape(shape)[()]

    def log_prob_gradient(self, orders: ArrayLike) -> FloatArray:
        """Differentiate `log_prob` by the scores.

        Parameters
        ----------
        orders : array of int, shape (..., n)
            As in `log_prob`.

        Returns
        -------
        array of float, shape (..., n)
            0 where the mask is false.
        """
        flat, shape = self._orders(orders)
        slopes = self._gradients(flat)
        result = np.zeros((len(flat), math.prod(self.shape), self.n_items))
        result[:, self._mask.reshape(-1, self.n_items)] = slopes
        return result.reshape(*shape, self.n_items)

    # ---- marginals ---------------------------------------------------------------------------

    def rank_marginals(self) -> FloatArray:
        """Return the probabilities ``M[..., i, r]`` that item i is at position r.

        Returns
        -------
        array of float, shape (..., n, n)
            0 where the mask is false and beyond the end of a list.
        """
        return self._tables("rank_marginals", lambda one: one.rank_marginals(method="exact"))

    def pairwise(self) -> FloatArray:
        """Return the probabilities ``P[..., i, j]`` that item i is above item j.

        Returns
        -------
        array of float, shape (..., n, n)
            0 on the diagonal and where the mask is false.
        """
        return self._tables("pairwise", lambda one: one.pairwise(method="exact"))

    def top_k(self, k: int) -> FloatArray:
        """Return each item's probability to be among the first k of its list, to 1e-12.

        Parameters
        ----------
        k : int

        Returns
        -------
        array of float, shape (..., n)
        """
        return self.exposure(np.ones(min(count("k", k), self.n_items)))

    def rank_marginals_gradient(self, cotangent: ArrayLike) -> FloatArray:
        """Differentiate ``sum(cotangent * rank_marginals())`` by the scores.

        Parameters
        ----------
        cotangent : array of float, shape (..., n, k)
            Derivatives by the probabilities of the first k positions, k up to n.

        Returns
        -------
        array of float, shape (..., n)
        """
        weight = finite("cotangent", cotangent)
        wanted = (*self._scores.shape, self.n_items)
        if weight.shape[:-1] != wanted[:-1] or weight.shape[-1] > self.n_items:
            raise ValueError(f"cotangent: expected shape {wanted}, got {weight.shape}")
        rows = weight.reshape(-1, *weight.shape[-2:])
        mask, result = self._mask.reshape(-1, self.n_items), np.empty(len(self._flat))
        for q, (a, b) in enumerate(bounds(self._ptr)):
            one = rows[q][mask[q]][:, : b - a]
            result[a:b] = self._noise.marginals_gradient(self._flat[a:b], one, self._n_jobs)
        return self._padded(result)

    # ---- measures and exposures --------------------------------------------------------------

    def expect(self, measure: str | Measure, labels: ArrayLike) -> FloatArray:
        """Return the exact expected value of a measure for each list.

        Parameters
        ----------
        measure : Measure or str
            As in `Distribution.expect`; NDCG, Precision and other sums over positions take about
            20 microseconds for 30 items and 10 positions.
        labels : array of int, shape (..., n)
            Relevance labels; those where the mask is false do not matter.

        Returns
        -------
        array of float, shape (...)
            What the measure says about lists that it is not defined for.
        """
        return self.expect_with_gradient(measure, labels, _gradient=False)[0]

    def expect_gradient(self, measure: str | Measure, labels: ArrayLike) -> FloatArray:
        """Differentiate `expect` by the scores.

        Parameters
        ----------
        measure : Measure or str
            Positional (NDCG, Precision, WTA, binary AUC), or AUC or Kendall's tau.
        labels : array of int, shape (..., n)

        Returns
        -------
        array of float, shape (..., n)
        """
        return self.expect_with_gradient(measure, labels)[1]

    def expect_with_gradient(
        self, measure: str | Measure, labels: ArrayLike, *, _gradient: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Return `expect` and `expect_gradient`, which share their work.

        Parameters
        ----------
        measure : Measure or str
        labels : array of int, shape (..., n)

        Returns
        -------
        values : array of float, shape (...)
        gradient : array of float, shape (..., n)
        """
        chosen, label = parse(measure), self._flat_labels(labels)
        form = positional_batch(chosen, label, self._ptr)
        values, slopes = self._sums(form)
        values += form.offsets

        def work(first: int, last: int) -> None:
            for q in (np.flatnonzero(~form.known[first:last]) + first).tolist():
                a, b = self._ptr[q : q + 2]
                one = self._list(q)
                values[q] = one.expect(chosen, label[a:b], method="exact")
                if _gradient:
                    slopes[a:b] = one.expect_gradient(chosen, label[a:b])

        self._in_threads(work, 1e3 * np.where(form.known, 0.0, np.diff(self._ptr)))
        return values.reshape(self.shape), self._padded(slopes)

    def exposure(
        self, discount: str | float | ArrayLike = "log2", k: int | None = None
    ) -> FloatArray:
        """Return how much of each item is seen: the expected weight of its position.

        Parameters
        ----------
        discount : {"log2", "jk", "reciprocal"}, float, or array of float
            The weights of positions; see `position_weights`.
        k : int, optional
            Positions beyond the first k are not seen.

        Returns
        -------
        array of float, shape (..., n)
        """
        found = self._noise.exposures(
            self._flat, self._ptr, *self._position_weights(discount, k), self._n_jobs
        )
        return self._padded(found)

    def exposure_gradient(
        self,
        cotangent: ArrayLike,
        discount: str | float | ArrayLike = "log2",
        k: int | None = None,
    ) -> FloatArray:
        """Differentiate ``sum(cotangent * exposure(discount, k))`` by the scores.

        Parameters
        ----------
        cotangent : array of float, shape (..., n)
            Derivatives by the exposures.
        discount, k
            As in `exposure`.

        Returns
        -------
        array of float, shape (..., n)
        """
        weight = finite("cotangent", cotangent)
        if weight.shape != self._scores.shape:
            raise ValueError(f"cotangent: expected shape {self._scores.shape}, got {weight.shape}")
        gains = np.ascontiguousarray(weight[self._mask])
        layout = self._position_weights(discount, k)
        return self._padded(
            self._noise.expected_sums(self._flat, self._ptr, gains, *layout, self._n_jobs)[1]
        )

    # ---- inside ------------------------------------------------------------------------------

    @cached_property
    def _flat(self) -> FloatArray:
        """The scores of all items, one list after the other."""
        return np.ascontiguousarray(self._scores[self._mask])

    @cached_property
    def _ptr(self) -> IntArray:
        """Where each list starts in `_flat`."""
        return pointers(self._mask.reshape(-1, self.n_items).sum(axis=1))

    @cached_property
    def _places(self) -> IntArray:
        """The entries of each list that are items, and then the others, shape (lists, n)."""
        return np.argsort(~self._mask.reshape(-1, self.n_items), axis=1, kind="stable")

    @cached_property
    def _number(self) -> IntArray:
        """The number of each entry within its list, shape (lists, n)."""
        return np.cumsum(self._mask.reshape(-1, self.n_items), axis=1) - 1

    def _list(self, number: int) -> Any:
        a, b = self._ptr[number : number + 2]
        return self._single(self._flat[a:b])

    def _in_threads(self, work: Callable[[int, int], None], cost: FloatArray) -> None:
        in_threads(work, cost * np.diff(self._ptr), self._n_jobs)

    def _padded(self, flat: FloatArray) -> FloatArray:
        result = np.zeros(self._scores.shape)
        result[self._mask] = flat
        return result

    def _order(self, keys: FloatArray, out: IntArray) -> None:
        """Fill in orders (draws, lists, n) by keys, the lowest first."""
        places, ptr = self._places, self._ptr

        def work(first: int, last: int) -> None:
            luce_batches.order_lists(first, last, keys, ptr, places, out)

        in_threads(work, 20.0 * len(keys) * np.diff(ptr), self._n_jobs)

    def _orders(self, orders: ArrayLike) -> tuple[IntArray, tuple[int, ...]]:
        """Check orders; return them in shape (draws, lists, n), and the shape without items."""
        order = check_orders(orders, self.n_items)
        shape = order.shape[:-1]
        depth = len(self.shape)
        if len(shape) < depth or shape[len(shape) - depth :] != self.shape:
            wanted = ", ".join(map(str, (*self.shape, self.n_items)))
            raise ValueError(f"orders: expected shape (..., {wanted}), got {order.shape}")
        draws = math.prod(shape[: len(shape) - depth])
        flat = order.reshape(draws, math.prod(self.shape), self.n_items)
        sizes, mask = np.diff(self._ptr), self._mask.reshape(-1, self.n_items)
        at = luce_batches.first_stranger(flat, sizes, mask)
        if at >= 0:
            where = tuple(int(i) for i in np.unravel_index(at, order.shape))
            raise ValueError(
                f"orders: expected the items of each list first, got entry {order[where]} at index "
                f"{where}, which the mask excludes"
            )
        return flat, shape

    def _flat_labels(self, labels: ArrayLike) -> IntArray:
        if labels is None:
            raise TypeError("labels: expected the items' relevance labels, got none")
        given = as_array("labels", labels)
        try:
            given = np.broadcast_to(given, self._scores.shape)
        except ValueError as error:
            raise ValueError(
                f"labels: expected shape {self._scores.shape}, got {given.shape}"
            ) from error
        return grades("labels", np.where(self._mask, given, 0))[self._mask]

    def _sums(self, form: PositionalBatch) -> tuple[FloatArray, FloatArray]:
        layout = form.gains, form.weights, form.weight_ptr
        return self._noise.expected_sums(self._flat, self._ptr, *layout, self._n_jobs)

    def _position_weights(
        self, discount: str | float | ArrayLike, k: int | None
    ) -> tuple[FloatArray, IntArray]:
        """Return the weights of the positions of all lists, and where those of each start."""
        weights = position_weights(discount, k, self.n_items)
        counts = np.minimum(np.diff(self._ptr), len(weights))
        seen = np.arange(len(weights)) < counts[:, None]
        return np.broadcast_to(weights, seen.shape)[seen], pointers(counts)

    def _tables(self, what: str, of: Callable[[Any], FloatArray]) -> FloatArray:
        """Return a table (n, n) for each list, computed list by list."""
        n, lists = self.n_items, len(self._ptr) - 1
        result, mask = np.zeros((lists, n, n)), self._mask.reshape(-1, n)

        def work(first: int, last: int) -> None:
            for q in range(first, last):
                table, size = np.asarray(of(self._list(q))), self._ptr[q + 1] - self._ptr[q]
                if size == n:
                    result[q] = table
                elif what == "pairwise":
                    result[q][np.ix_(mask[q], mask[q])] = table
                else:
                    result[q][mask[q], :size] = table

        self._in_threads(work, 500.0 * np.diff(self._ptr))
        return result.reshape(*self.shape, n, n)


def _as_mask(mask: ArrayLike | None, shape: tuple[int, ...]) -> BoolArray:
    """Check a mask, and that it leaves at least one item in each list."""
    if mask is None:
        return np.ones(shape, dtype=bool)
    given = np.asarray(mask)
    if given.dtype != bool:
        raise TypeError(f"mask: expected booleans, got dtype {given.dtype}")
    if given.shape != shape:
        raise ValueError(f"mask: expected shape {shape} as scores, got {given.shape}")
    empty = ~given.any(axis=-1)
    if empty.any():
        where = np.argwhere(np.atleast_1d(empty))[0].tolist()
        raise ValueError(f"mask: expected at least one item in each list, got none in list {where}")
    return given.copy()
