"""One type for all preference data: orders, ties, top-k lists, choices, battles, in any mixture."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from permdist._check import finite, frozen
from permdist._parallel import pointers, rows_of
from permdist._text import aligned, as_text, hint, plural
from permdist.ballots import reading
from permdist.ballots.blocks import joint_names, merge_blocks, whole
from permdist.ballots.flat import edges_of, entries_of, equal_rows, ever_of
from permdist.ballots.makers import Makers
from permdist.ballots.rankings import check_weights
from permdist.ballots.view import BallotsView

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike

    from permdist._typing import BoolArray, FloatArray, IntArray

# Whole weights from here on cannot be told from others.
LARGEST_COUNT = 2.0**53
# What two collections both have or both lack.
_SHARED = ("clusters", "times", "features")
# Equal ballots are looked for in tables of up to this many entries.
MOST_ENTRIES = 30_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Ballots(Makers, BallotsView):
    """Ballots of any kind, as flat arrays; made by `of` or one of the ``from_`` methods.

    Every ballot is a sequence of stages: out of the alternatives that are still there, one or
    several (a tie) are chosen. The order of a ballot's items within a bucket has no meaning. A
    *record* is such a sequence; a best-worst choice has two records, any other ballot one.

    Parameters
    ----------
    items : array of int
        The alternatives of all records: bucket after bucket from the top, then those that were
        there and never chosen. Record r owns ``items[ptr[r]:ptr[r + 1]]``.
    ptr : array of int, shape (records + 1,)
    sizes : array of int
        Record r has buckets of the sizes ``sizes[stages[r]:stages[r + 1]]``.
    stages : array of int, shape (records + 1,)
    signs : array of float, shape (records,)
        1, or -1 where the worst was chosen: then scores count with the opposite sign.
    ballot : array of int, shape (records,)
        The ballot that a record belongs to, in increasing order.
    weights : array of float, shape (ballots,)
        A whole number says how often the ballot was cast; any other number is the importance of
        a single ballot. See the notes.
    names : tuple of str
        The names of the items; their numbers if they have none.
    clusters : array of labels, shape (ballots,), optional
        Ballots of one cluster (a voter's, say) need not be independent. Equal labels are the
        same cluster, also where ballots are added up.
    times : array of float, shape (ballots,), optional
        When each ballot was cast; ``time=COLUMN`` of `permdist.data.load_battles`.
    features : array of float, shape (len(items), q), optional
        Covariates of an alternative on a ballot.
    feature_names : tuple of str
    time_unit : str
        ``"days"`` where the times were dates or Unix times, empty for other numbers.
    unit_weights : array of float, shape (ballots,), optional
        The weight of one of the equal ballots that an entry stands for, as `merged` sets it. By
        default 1 where the weight is a whole number, and else the weight.

    Notes
    -----
    What is independent, and drawn by the bootstrap, is a ballot as it was given: the weight 3
    stands for three ballots of weight 1, and the weight 2.5 for one ballot that counts 2.5 times
    in the likelihood. So errors of the kinds ``"sandwich"`` and ``"bootstrap"`` do not depend on
    the unit of weights that are not whole, and do not change when equal ballots are counted
    together. With clusters, all ballots of one cluster together are what is independent.

    Examples
    --------
    >>> ballots = Ballots.from_orders([["tea", "milk", "cola"], [["cola", "tea"], "milk"]])
    >>> print(ballots.describe())
    items         3
    ballots       2
    alternatives  3 on a ballot
    with ties     1, of up to 2 items
    >>> battles = Ballots.from_pairs(["tea", "milk"], ["milk", "cola"], ties=[False, True])
    >>> (ballots + battles).n_ballots
    4
    """

    items: IntArray
    ptr: IntArray
    sizes: IntArray
    stages: IntArray
    signs: FloatArray
    ballot: IntArray
    weights: FloatArray
    names: tuple[str, ...]
    clusters: Any = None
    times: FloatArray | None = None
    features: FloatArray | None = None
    feature_names: tuple[str, ...] = ()
    time_unit: str = ""
    unit_weights: FloatArray | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, field.name, frozen(np.ascontiguousarray(value)))

    # ---- makers ------------------------------------------------------------------------------

    @classmethod
    def of(
        cls,
        ballots: Any,
        *,
        n_items: int | None = None,
        subset: bool | None = None,
        names: Sequence[str] | None = None,
        weights: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Ballots:
        """Return ballots from whatever holds some.

        Parameters
        ----------
        ballots : Ballots, Preferences, array, BucketOrder, TopK, or sequence of rankings
            As in `from_orders`, or blocks as in `from_blocks`; ballots from
            `permdist.data.load_preflib` bring their counts and names, and what they leave out
            is below what they list unless `subset` is True.
        n_items, subset, names, weights, clusters, times
            As in `from_orders`; they replace what the ballots bring along.

        Examples
        --------
        >>> import numpy as np
        >>> Ballots.of(np.array([[0, 2, 1], [1, 0, 2]])).n_items
        3
        """
        ballots = whole(ballots, weights=weights, clusters=clusters, times=times)
        if not isinstance(ballots, cls):
            if reading.is_collection(ballots):
                weights = ballots.counts if weights is None else weights
                names = ballots.names if names is None else names
                n_items, subset = ballots.n_items, bool(subset)
                ballots = [list(entry) for entry in ballots.ballots]
            return cls.from_orders(
                ballots,
                n_items=n_items,
                subset=subset,
                names=names,
                weights=weights,
                clusters=clusters,
                times=times,
            )
        if n_items is not None and n_items != ballots.n_items:
            raise ValueError(f"n_items: the ballots have {ballots.n_items} items, got {n_items}")
        changes: dict[str, Any] = {}
        if names is not None:
            changes["names"] = reading.check_names(names, ballots.n_items)
        if weights is not None:
            changes["weights"] = check_weights(weights, ballots.n_ballots)
            changes["unit_weights"] = None
        return dataclasses.replace(
            ballots, **changes, **reading.per_ballot(ballots.n_ballots, clusters, times)
        )

    @classmethod
    def _from_flat(
        cls,
        flat: dict[str, Any],
        weights: ArrayLike | None,
        clusters: ArrayLike | None,
        times: ArrayLike | None,
    ) -> Self:
        number = int(flat["ballot"][-1]) + 1
        rest = reading.per_ballot(number, clusters, times)
        return cls(**flat, weights=check_weights(weights, number), **rest)

    # ---- what they are -----------------------------------------------------------------------

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.names)

    @property
    def is_named(self) -> bool:
        """Whether the items have names other than their numbers."""
        return self.names != tuple(map(str, range(len(self.names))))

    @property
    def n_ballots(self) -> int:
        """The number of ballots; equal ones may have been counted together, by `weights`."""
        return len(self.weights)

    def __len__(self) -> int:
        return self.n_ballots

    @property
    def largest_tie(self) -> int:
        """The largest number of items in one bucket."""
        return int(self.sizes.max())

    @property
    def tie_sizes(self) -> tuple[int, ...]:
        """The numbers above 1 of items that share a bucket, in increasing order."""
        voted = self.sizes[self.record_weights[rows_of(self.stages)] > 0.0]
        return tuple(int(size) for size in np.unique(voted) if size > 1)

    @property
    def record_weights(self) -> FloatArray:
        """The weight of each record's ballot, shape (records,)."""
        return self.weights[self.ballot]

    def units(self) -> tuple[IntArray, FloatArray]:
        """Return how many ballots each entry stands for, and the weight of one of them.

        Returns
        -------
        counts : array of int, shape (ballots,)
            0 where the weight is 0.
        unit_weights : array of float, shape (ballots,)

        Examples
        --------
        >>> Ballots.from_pairs([0, 0, 0], [1, 1, 1], weights=[3, 2.5, 0]).units()
        (array([3, 1, 0]), array([1. , 2.5, 1. ]))
        """
        unit = self.unit_weights
        if unit is None:
            whole = (self.weights == np.floor(self.weights)) & (self.weights < LARGEST_COUNT)
            unit = np.where(whole, 1.0, self.weights)
        return np.rint(self.weights / unit).astype(np.int64), unit

    @cached_property
    def cluster_numbers(self) -> IntArray:
        """The number of each ballot's cluster, from 0 in the order of their first ballots."""
        import pandas as pd

        return pd.factorize(self.clusters, use_na_sentinel=False)[0].astype(np.int64)

    def counts(self) -> FloatArray:
        """Return how often each item was an alternative, with weights, shape (n,)."""
        at = np.repeat(self.record_weights, np.diff(self.ptr))
        # The worst of a menu is chosen from alternatives that were counted already.
        at = np.where(np.repeat(self.signs, np.diff(self.ptr)) > 0, at, 0.0)
        return np.bincount(self.items, at, self.n_items).astype(np.float64)

    def index(self, item: int | str) -> int:
        """Return the number of an item that is given by number or name."""
        return find_item(item, self.names)

    def describe(self) -> str:
        """Summarize the ballots in a few lines."""
        lengths = np.diff(self.ptr)
        tied = np.zeros(self.n_ballots, np.bool_)
        tied[self.ballot[rows_of(self.stages)[self.sizes > 1]]] = True
        low, high = int(lengths.min()), int(lengths.max())
        total = float(self.weights.sum())
        rows = {
            "items": f"{self.n_items:,}",
            "ballots": f"{total:,.6g}"
            + (f"  ({self.n_ballots:,} different)" if total > self.n_ballots else ""),
            "alternatives": f"{low if low == high else f'{low} to {high}'} on a ballot",
            "with ties": f"{self.weights[tied].sum():,.6g}"
            + (f", of up to {self.largest_tie} items" if tied.any() else ""),
        }
        if self.clusters is not None:
            rows["clusters"] = f"{int(self.cluster_numbers.max()) + 1:,}"
        if self.features is not None:
            rows["covariates"] = ", ".join(self.feature_names)
        return aligned(rows)

    def __repr__(self) -> str:
        return f"Ballots({plural(self.n_ballots, 'ballot')} over {plural(self.n_items, 'item')})"

    # ---- others made from them ---------------------------------------------------------------

    def __add__(self, other: Ballots) -> Ballots:
        """Return the ballots of both; names decide which items are the same.

        Items without names are numbered alike in both and come first. Clusters with equal labels
        are the same cluster.
        """
        if not isinstance(other, Ballots):
            return NotImplemented
        for what in _SHARED:
            if (getattr(self, what) is None) != (getattr(other, what) is None):
                raise ValueError(f"ballots: only one of the two has {what}")
        if self.time_unit != other.time_unit:
            raise ValueError("ballots: only one of the two has dates as times")
        if self.feature_names != other.feature_names:
            raise ValueError(
                f"ballots: expected the covariates {self.feature_names}, got {other.feature_names}"
            )
        mine, theirs = self, other
        if self.names != other.names:
            names = joint_names(self.names, other.names)
            mine, theirs = self.renamed(names), other.renamed(names)
        shared: dict[str, Any] = {
            what: None
            if getattr(self, what) is None
            else np.concatenate(_alike(getattr(self, what), getattr(other, what)))
            for what in _SHARED
        }
        if self.unit_weights is not None or other.unit_weights is not None:
            shared["unit_weights"] = np.concatenate([self.units()[1], other.units()[1]])
        return Ballots(
            items=np.concatenate([mine.items, theirs.items]),
            ptr=np.concatenate([mine.ptr, mine.ptr[-1] + theirs.ptr[1:]]),
            sizes=np.concatenate([mine.sizes, theirs.sizes]),
            stages=np.concatenate([mine.stages, mine.stages[-1] + theirs.stages[1:]]),
            signs=np.concatenate([mine.signs, theirs.signs]),
            ballot=np.concatenate([mine.ballot, mine.n_ballots + theirs.ballot]),
            weights=np.concatenate([mine.weights, theirs.weights]),
            names=mine.names,
            feature_names=self.feature_names,
            time_unit=self.time_unit,
            **shared,
        )

    def renamed(self, names: tuple[str, ...]) -> Ballots:
        """Return the ballots with items numbered by another list of names.

        Parameters
        ----------
        names : tuple of str
            All names of these ballots, and perhaps more, in any order.
        """
        place = {name: number for number, name in enumerate(names)}
        for name in self.names:
            if name not in place:
                raise ValueError(f"ballots: unknown item {name!r}{hint(name, names)}")
        numbers = np.array([place[name] for name in self.names], dtype=np.int64)
        return dataclasses.replace(self, items=numbers[self.items], names=names)

    def take(self, which: ArrayLike) -> Ballots:
        """Return some of the ballots.

        Parameters
        ----------
        which : array of bool, shape (ballots,)
        """
        mask = np.asarray(which)
        if mask.dtype != np.bool_ or mask.shape != (self.n_ballots,):
            raise ValueError(f"which: expected {self.n_ballots} booleans, got shape {mask.shape}")
        if not mask.any():
            raise ValueError("which: expected at least one ballot, got none")
        return self._keep(np.ones(len(self.items), np.bool_), mask[self.ballot], least=1)

    def without(self, items: Iterable[int | str]) -> Ballots:
        """Return the ballots as if some items had never been there.

        Parameters
        ----------
        items : iterable of int or str
            A ballot with fewer than two alternatives left is dropped.
        """
        gone = np.zeros(self.n_items, np.bool_)
        gone[[self.index(item) for item in items]] = True
        if gone.sum() > self.n_items - 2:
            raise ValueError("items: expected at least two items to remain")
        kept = self._keep(~gone[self.items], np.ones(len(self.signs), np.bool_), least=2)
        numbers = np.cumsum(~gone) - 1
        names = tuple(name for name, left in zip(self.names, ~gone, strict=True) if left)
        return dataclasses.replace(kept, items=numbers[kept.items], names=names)

    def with_features(self, features: ArrayLike, names: Sequence[str] = ()) -> Ballots:
        """Return the ballots with covariates of every item on every ballot.

        Parameters
        ----------
        features : array of float, shape (ballots, n, q)
            What is given for items that were not there does not matter; it may be NaN.
        names : sequence of str, optional
            The names of the q covariates.

        Examples
        --------
        >>> ballots = Ballots.from_orders([["tea", "milk"], ["milk", "tea"]])
        >>> prices = [[[1.0], [2.0]], [[1.5], [1.0]]]  # of milk and tea, on each occasion
        >>> ballots.with_features(prices, ["price"]).features.ravel()
        array([2. , 1. , 1.5, 1. ])
        """
        table = finite("features", features, ndim=3, nan=True)
        if not table.shape[2]:
            raise ValueError(f"features: expected at least one covariate, got {table.shape}")
        rows = entries_of(self, "features", table)
        chosen = tuple(map(str, names)) or reading.default_features(table.shape[2])
        if len(chosen) != table.shape[2]:
            raise ValueError(f"names: expected {table.shape[2]}, got {len(chosen)}")
        return dataclasses.replace(self, features=rows, feature_names=chosen)

    def _keep(self, entries: BoolArray, records: BoolArray, least: int) -> Ballots:
        """Keep some entries of `items`, and records with so many alternatives left at least."""
        owner = rows_of(self.ptr)
        entries = entries & records[owner]
        bucket_owner = rows_of(self.stages)
        within = self.bucket_of_entry()
        left = np.bincount(within[entries & (within >= 0)], minlength=len(self.sizes))
        lengths = np.bincount(owner[entries], minlength=len(self.signs))
        stages = np.bincount(bucket_owner[left > 0], minlength=len(self.signs))
        told = (lengths >= least) & (stages > 0)
        entries, buckets = entries & told[owner], (left > 0) & told[bucket_owner]
        if not told.any():
            raise ValueError("ballots: none with two alternatives or more remains")
        present, ballot = np.unique(self.ballot[told], return_inverse=True)
        return dataclasses.replace(
            self,
            items=self.items[entries],
            ptr=pointers(lengths[told]),
            sizes=left[buckets],
            stages=pointers(stages[told]),
            signs=self.signs[told],
            ballot=ballot,
            weights=self.weights[present],
            clusters=None if self.clusters is None else self.clusters[present],
            times=None if self.times is None else self.times[present],
            features=None if self.features is None else self.features[entries],
            unit_weights=None if self.unit_weights is None else self.unit_weights[present],
        )

    def bucket_of_entry(self) -> IntArray:
        """Return the bucket of each entry of `items`, -1 for those that were never chosen."""
        owner = rows_of(self.ptr)
        chosen = np.bincount(rows_of(self.stages), self.sizes, len(self.signs)).astype(np.int64)
        place = np.arange(len(self.items)) - self.ptr[owner]
        result = np.full(len(self.items), -1, dtype=np.int64)
        result[place < chosen[owner]] = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return result

    def merged(self) -> Ballots:
        """Return different ballots only, with their weights added up.

        Ballots whose weights are different numbers, not whole, are different; see `units`.
        Ballots with clusters, times or features stay as they are.
        """
        if any(each is not None for each in (self.clusters, self.times, self.features)):
            return self
        number = len(self.signs)
        longest, most = int(np.diff(self.ptr).max()), int(np.diff(self.stages).max())
        if len(self.ballot) != self.n_ballots or number * (longest + most) > MOST_ENTRIES:
            return merge_blocks([self])
        counts, unit = self.units()
        first, which = equal_rows(self, longest, most, unit)
        if len(first) == number:
            return self
        mask = np.zeros(number, np.bool_)
        mask[first] = True
        return dataclasses.replace(
            self.take(mask),
            weights=np.bincount(which, counts) * unit[first],
            unit_weights=None if (unit == 1.0).all() else unit[first],
        )

    def ever(self) -> tuple[BoolArray, BoolArray]:
        """Return which items were ever above another one, and which below one, shape (n,) each."""
        return ever_of(self, self.bucket_of_entry())

    def graph(self) -> tuple[IntArray, IntArray]:
        """Return who was preferred to whom: edges from items to those below or tied with them.

        As few as connect the same items: from each item of a bucket to one of the next, and both
        ways within a bucket.
        """
        return edges_of(
            self.items, self.ptr, self.sizes, self.stages, self.signs, self.record_weights
        )


def _alike(one: Any, two: Any) -> tuple[Any, Any]:
    """Return labels of both as text where one of them has numbers and the other does not."""
    if one.dtype.kind == two.dtype.kind or {one.dtype.kind, two.dtype.kind} <= set("iuf"):
        return one, two
    texts = [np.array(list(map(as_text, each.tolist())), object) for each in (one, two)]
    return texts[0], texts[1]


def find_item(item: int | str, names: Sequence[str]) -> int:
    """Return the number of an item that is given by number or name.

    Examples
    --------
    >>> find_item("milk", ["tea", "milk"])
    1
    """
    if isinstance(item, str):
        try:
            return list(names).index(item)
        except ValueError:
            raise ValueError(f"item: unknown name {item!r}{hint(item, names)}") from None
    if isinstance(item, bool) or not isinstance(item, int | np.integer):
        raise TypeError(f"item: expected a number or a name, got {item!r}")
    if not 0 <= item < len(names):
        raise ValueError(f"item: expected a number from 0 to {len(names) - 1}, got {item}")
    return int(item)
