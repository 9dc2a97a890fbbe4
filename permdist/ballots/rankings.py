"""Rankings and top-k lists as flat arrays, and whether they determine an estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from permdist._check import as_array, count, finite, integers
from permdist._files import check_size
from permdist._kernels import kernel
from permdist._parallel import pointers
from permdist._text import visible
from permdist.ballots.makers import Makers
from permdist.rankings import BucketOrder, TopK
from permdist.rankings.orders import first_fault
from permdist.rankings.partial import check_subset, refuse_short, refuse_top_as_subset
from permdist.rankings.sorting import ascending, sort

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, IntArray
    from permdist.ballots.ballots import Ballots

# Sums and products of weights stay far from the ends of the range of floats.
SMALLEST_TOTAL, LARGEST_TOTAL = 1e-200, 1e200


@runtime_checkable
class Collection(Protocol):
    """Ballots with counts and names, as `permdist.data.load_preflib` reads them."""

    names: Any
    counts: Any

    @property
    def n_items(self) -> int:
        """The number of items."""

    def orders(self) -> IntArray:
        """Return the different orders, if all ballots are strict and complete."""

    def rankings(self) -> IntArray | list[TopK]:
        """Return the different ballots as orders or top-k lists."""


def is_item_lists(ballots: Any) -> bool:
    """Check for lists of item numbers, without names or ties, for which there are faster ways."""
    if isinstance(ballots, Makers | BucketOrder):
        return False
    if isinstance(ballots, np.ndarray):
        return ballots.dtype.kind not in "OUST"
    if not isinstance(ballots, list | tuple):
        return True
    listed = [entry for entry in ballots if isinstance(entry, list | tuple)]
    kinds = {type(item) for entry in listed for item in entry} | {type(e) for e in ballots}
    return not any(
        issubclass(kind, str | set | frozenset | BucketOrder) for kind in kinds
    ) and not any(isinstance(item, list | tuple) for entry in listed for item in entry)


def are_ballots(orders: Any) -> bool:
    """Check for rankings that no array of item numbers can hold, of which each has one answer.

    Examples
    --------
    >>> are_ballots([[0, 1, 2], [2, 0]]), are_ballots([TopK([2, 0], n_items=3)])
    (True, True)
    >>> are_ballots([[0, 1, 2], [2, 0, 1]])
    False
    """
    if not is_item_lists(orders):
        return True
    if not isinstance(orders, list | tuple):
        return isinstance(orders, Collection)
    lengths = {len(entry) for entry in orders if isinstance(entry, list | tuple | np.ndarray)}
    return len(lengths) > 1 or any(isinstance(entry, TopK) for entry in orders)


def default_to(
    ballots: Collection, weights: ArrayLike | None, names: Sequence[str] | None
) -> tuple[ArrayLike, Sequence[str]]:
    """Return the weights and names that were given, or those of the ballots."""
    return (
        ballots.counts if weights is None else weights,
        ballots.names if names is None else names,
    )


class Rankings:
    """Rankings of unequal length as flat arrays; ranking r owns ``items[ptr[r]:ptr[r + 1]]``.

    Parameters
    ----------
    orders : array of int, shape (rankings, k), or sequence of lists or TopK
    n_items : int or None
        The number of items; by default the largest number in the data plus one.
    weights : array of float, shape (rankings,), or None
    subset : bool or None
        Whether lists that are short of the items rank the listed ones only (True) or are the
        first places of all (False); None refuses them.
    penalized : bool
        Whether items that are nowhere listed can be estimated.

    Attributes
    ----------
    items, ptr : arrays of int
    weights : array of float, shape (rankings,)
        Equal rankings of one length may have been counted together.
    n_items : int
    rest : bool
        Whether unlisted items are below the listed ones.
    """

    def __init__(
        self,
        orders: Any,
        n_items: int | None,
        weights: ArrayLike | None,
        subset: bool | None = None,
        *,
        penalized: bool = False,
    ) -> None:
        subset = check_subset(subset)
        if not isinstance(orders, np.ndarray | list | tuple | TopK):
            orders = as_array("orders", orders)
        if isinstance(orders, TopK):
            orders = [orders]
        declared: BoolArray | None = None
        if not isinstance(orders, np.ndarray):
            orders, n_items, declared = _without_tops(orders, n_items, subset)
        flat, sizes, ragged = _flatten(orders)
        # From here on the number of items is known; nothing of that size exists yet.
        self.n_items = int(flat.max()) + 1 if n_items is None else count("n_items", n_items)
        self.items, self.ptr = flat, pointers(sizes)
        self._check_range()
        short = sizes < self.n_items
        if subset is None and short.any():
            unclear = short if declared is None else short & ~declared
            if unclear.any():
                row = int(np.argmax(unclear))
                refuse_short("orders", int(sizes[row]), self.n_items, f"ranking {row}")
        if not penalized and self.n_items > len(flat):
            self._refuse_unlisted()
        check_size(f"n_items: an estimate for {self.n_items:,} items", 400.0 * self.n_items)
        self._check_rows()
        self.rest = not subset
        self.weights = check_weights(weights, len(sizes))
        if not ragged:
            self._merge(int(sizes[0]))

    @classmethod
    def of(cls, ballots: Ballots) -> Rankings:
        """Return ballots that rank some items completely, without ties, as rankings.

        Parameters
        ----------
        ballots : Ballots
            Each has one record, whose alternatives are all chosen but perhaps the last.
        """
        result = cls.__new__(cls)
        result.items, result.ptr = ballots.items.copy(), ballots.ptr.copy()
        result.n_items, result.weights, result.rest = ballots.n_items, ballots.weights.copy(), False
        return result

    def _merge(self, k: int) -> None:
        """Count equal rankings once, with their weights added up."""
        if k * np.log2(self.n_items + 1.0) > 62.0:
            return
        table = self.items.reshape(-1, k)
        code = table @ self.n_items ** np.arange(k, dtype=np.int64)
        _, first, which = np.unique(code, return_index=True, return_inverse=True)
        if len(first) < 0.7 * len(table):
            self.weights = np.bincount(which, self.weights).astype(np.float64)
            self.items = np.ascontiguousarray(table[first]).ravel()
            self.ptr = np.arange(len(first) + 1) * k

    def _check_range(self) -> None:
        """Refuse items that there are not."""
        bad = (self.items < 0) | (self.items >= self.n_items)
        if bad.any():
            at = int(np.argmax(bad))
            row = int(np.searchsorted(self.ptr, at, side="right")) - 1
            self._refuse(row, at - int(self.ptr[row]))

    def _check_rows(self) -> None:
        """Refuse a ranking that lists an item twice."""
        row = _first_bad(self.items, self.ptr, self.n_items)
        if row >= 0:
            shown = self.items[self.ptr[row] : self.ptr[row + 1]]
            self._refuse(row, first_fault(shown[None, :], self.n_items))

    def _refuse(self, row: int, at: int) -> None:
        """Name the entry that is wrong."""
        item = self.items[self.ptr[row] + at]
        raise ValueError(
            f"orders: ranking {row} must list different items from 0 to {self.n_items - 1}, "
            f"got {item} at index {at}"
        )

    def _refuse_unlisted(self) -> None:
        """Return which items have no place in any ranking; there are more items than places."""
        few = np.setdiff1d(np.arange(min(self.n_items, len(self.items) + 5)), self.items)
        missing = self.n_items - len(np.unique(self.items))
        raise ValueError(
            f"fit: no maximum likelihood estimate exists, {missing:,} of {self.n_items:,} items "
            f"are nowhere listed: {listing(few, missing, None)}; "
            "leave these items out or set regularization above 0"
        )


def _without_tops(
    orders: Sequence[Any], n_items: int | None, subset: bool | None
) -> tuple[list[Any], int | None, BoolArray]:
    """Replace top-k lists by their items; return the number of items and which ones they were."""
    tops = [isinstance(entry, TopK) for entry in orders]
    declared = {entry.n_items for entry, top in zip(orders, tops, strict=True) if top}
    if len(declared | ({n_items} if n_items is not None else set())) > 1:
        raise ValueError(f"orders: top-k lists out of {sorted(declared)} items do not mix")
    if declared and subset:
        refuse_top_as_subset()
    n_items = declared.pop() if declared else n_items
    lists = [entry.items if top else entry for entry, top in zip(orders, tops, strict=True)]
    for number, entry in enumerate(lists):
        if np.ndim(entry) != 1 or len(entry) == 0:
            raise ValueError(f"orders: expected lists of items, got {entry!r} as {number}")
    return lists, n_items, np.array(tops, dtype=np.bool_)


def _flatten(orders: Any) -> tuple[IntArray, IntArray, bool]:
    """Return all items in one array, the length of each list, and whether lengths differ."""
    if isinstance(orders, np.ndarray) or len({len(entry) for entry in orders}) == 1:
        table = integers("orders", orders, what="item numbers")
        if table.ndim != 2 or table.size == 0:
            raise ValueError(f"orders: expected shape (rankings, k), got {table.shape}")
        return table.ravel(), np.full(len(table), table.shape[1]), False
    if not orders:
        raise ValueError("orders: expected at least one ranking, got none")
    rows = [integers("orders", entry, what="item numbers") for entry in orders]
    return np.concatenate(rows), np.array([len(row) for row in rows]), True


def check_weights(weights: ArrayLike | None, number: int) -> FloatArray:
    """Return the weight of each ranking, or say what is wrong with them."""
    if weights is None:
        return np.ones(number)
    array = finite("weights", weights, ndim=1)
    if len(array) != number:
        raise ValueError(f"weights: expected {number} weights, got {len(array)}")
    if (array < 0).any() or not (array > 0).any():
        raise ValueError("weights: expected no negative weight and one above 0")
    with np.errstate(over="ignore"):
        total = float(array.sum())
    if not SMALLEST_TOTAL <= total <= LARGEST_TOTAL:
        raise ValueError(
            f"weights: expected a sum between {SMALLEST_TOTAL:g} and {LARGEST_TOTAL:g}, got "
            f"{total:g}; multiply all of them by one number, which leaves the estimate as it is"
        )
    return array


def check_penalty(regularization: float) -> float:
    """Return the penalty as a float, or say what is wrong with it."""
    value = float(as_array("regularization", regularization))
    if not 0.0 <= value < np.inf:
        raise ValueError(f"regularization: expected a non-negative number, got {regularization}")
    return value


def check_independent(ballots: Ballots, what: str) -> None:
    """Refuse clusters of ballots where nothing takes them into account."""
    if ballots.clusters is not None:
        raise ValueError(
            f"clusters: {what} takes ballots as independent, and would be too sure of ballots with "
            "clusters; leave these out, dataclasses.replace(ballots, clusters=None), or fit "
            "PlackettLuce or DavidsonLuce, whose errors of kind 'sandwich' are made for them"
        )


def check_names(names: Sequence[str] | None, n_items: int) -> list[str] | None:
    """Turn names into text, one for each item."""
    if names is None:
        return None
    if len(names) != n_items:
        raise ValueError(f"names: expected {n_items} names, got {len(names)}")
    return [str(name) for name in names]


def check_existence(data: Rankings, names: Sequence[str] | None) -> None:
    """Explain why there is no estimate: it exists iff wins connect every item with every other."""
    n = data.n_items
    if n == 1:
        return
    sources, targets, nodes = _edges(data.items, data.ptr, data.weights, n, data.rest)
    graph = sparse.csr_matrix(
        (np.ones(len(sources), np.int8), (sources, targets)), shape=(nodes, nodes)
    )
    # Nodes from n on stand for ranges of items; only those that some item leads to have edges.
    parts, part = csgraph.connected_components(graph, connection="strong")
    if (part[:n] == part[0]).all():
        return
    _, island = csgraph.connected_components(graph, connection="weak")
    islands, sizes = np.unique(island[:n], return_counts=True)
    if len(islands) > 1:
        which = np.flatnonzero(island[:n] == islands[np.argmin(sizes)])
        reason = f"never compared with the others: {listing(which, len(which), names)}"
    else:
        crosses = part[sources] != part[targets]
        wins, losses = np.zeros(parts, np.bool_), np.zeros(parts, np.bool_)
        wins[part[sources[crosses]]] = True
        losses[part[targets[crosses]]] = True
        never_lose = np.flatnonzero((wins & ~losses)[part[:n]])
        never_win = np.flatnonzero((losses & ~wins)[part[:n]])
        # Name the smaller group: the other one is the rest of the field.
        if len(never_lose) <= len(never_win):
            reason = f"always above the others: {listing(never_lose, len(never_lose), names)}"
        else:
            reason = f"always below the others: {listing(never_win, len(never_win), names)}"
    raise ValueError(
        f"fit: no maximum likelihood estimate exists, {reason}; "
        "leave these items out or set regularization above 0"
    )


def listing(which: IntArray, number: int, names: Sequence[str] | None) -> str:
    """Show the first few of some items, by name where they have names."""
    shown = ", ".join(str(item) if names is None else names[item] for item in which[:5].tolist())
    return visible(shown) + (f" and {number - 5:,} more" if number > 5 else "")


# ---- kernels: items and ptr as in Rankings, weights (rankings,) --------------------------------


@kernel
def _first_bad(items: IntArray, ptr: IntArray, n_items: int) -> int:
    """Find the first ranking with a repeated item; -1 if there is none."""
    seen_in = np.full(n_items, -1, np.int64)
    for row in range(len(ptr) - 1):
        for k in range(ptr[row], ptr[row + 1]):
            if seen_in[items[k]] == row:
                return row
            seen_in[items[k]] = row
    return -1


@kernel
def _edges(
    items: IntArray, ptr: IntArray, weights: FloatArray, n: int, rest: bool
) -> tuple[IntArray, IntArray, int]:
    """Return who was above whom, as far as needed to connect them, and the number of nodes.

    A list of k items needs k - 1 edges, from each item to the next. With `rest`, its last item
    is also above all unlisted ones. The lists that end with one item put it above all but those
    that every one of them holds, which are a few ranges of item numbers: a binary tree over the
    items, whose nodes lead to their halves, needs some log n edges for each range.
    """
    rows = len(ptr) - 1
    leaves = 1
    while leaves < n:
        leaves *= 2
    used = 0  # edges so far
    room = len(items) + 16
    sources, targets = np.empty(room, np.int64), np.empty(room, np.int64)
    # Few items and many lists repeat the same edges again and again.
    remember = n * n <= 4 * len(items) + 1_000_000
    known = np.zeros(n * n if remember else 0, np.bool_)
    for row in range(rows):
        if weights[row] == 0.0:
            continue
        for k in range(ptr[row], ptr[row + 1] - 1):
            if remember:
                code = items[k] * n + items[k + 1]
                if known[code]:
                    continue
                known[code] = True
            sources[used], targets[used] = items[k], items[k + 1]
            used += 1
    if not rest:
        return sources[:used], targets[:used], n
    lasts = np.full(rows, n, np.int64)
    for row in range(rows):
        if weights[row] > 0.0 and ptr[row + 1] - ptr[row] < n:
            lasts[row] = items[ptr[row + 1] - 1]
    by_last = ascending(lasts)
    reached = np.zeros(2 * leaves, np.bool_)
    times, times_for = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    at = 0
    while at < rows and lasts[by_last[at]] < n:
        last, end = lasts[by_last[at]], at
        while end < rows and lasts[by_last[end]] == last:
            row = by_last[end]
            for k in range(ptr[row], ptr[row + 1]):
                if times_for[items[k]] != last:
                    times_for[items[k]] = last
                    times[items[k]] = 0
                times[items[k]] += 1
            end += 1
        # What all of these lists hold: all of it is in the first one.
        row, held = by_last[at], 0
        common = np.empty(ptr[row + 1] - ptr[row] + 1, np.int64)
        for k in range(ptr[row], ptr[row + 1]):
            if times[items[k]] == end - at:
                common[held] = items[k]
                held += 1
        common[held] = n
        common = common[: held + 1]
        sort(common)
        start = 0
        for stop in common:
            low, high = start + leaves, stop + leaves  # the items start .. stop - 1
            while low < high:
                for node, inside in ((low, low % 2 == 1), (high - 1, high % 2 == 1)):
                    if inside:
                        if used == len(sources):
                            sources = np.concatenate((sources, np.empty_like(sources)))
                            targets = np.concatenate((targets, np.empty_like(targets)))
                        # Leaves are items; the other nodes come after all items.
                        sources[used] = last
                        targets[used] = node - leaves if node >= leaves else n + node
                        reached[node] = True
                        used += 1
                low, high = (low + low % 2) // 2, (high - high % 2) // 2
            start = stop + 1
        at = end
    branches = np.empty((2, 2 * leaves), np.int64)
    number = 0
    for node in range(1, leaves):
        if reached[node]:
            for child in (2 * node, 2 * node + 1):
                reached[child] = True
                branches[0, number] = n + node
                branches[1, number] = child - leaves if child >= leaves else n + child
                number += 1
    sources = np.concatenate((sources[:used], branches[0, :number]))
    targets = np.concatenate((targets[:used], branches[1, :number]))
    return sources, targets, n + leaves
